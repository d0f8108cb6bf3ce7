"""One answer in every wire and form, its strings cut where a test says, and how a client reads it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.wire import sse

WIRES_AND_FORMS: tuple[tuple[Wire, Form], ...] = (
    ("chat_completions", "whole"),
    ("chat_completions", "sse"),
    ("responses", "whole"),
    ("responses", "sse"),
    ("anthropic", "whole"),
    ("anthropic", "sse"),
    ("gemini", "whole"),
    ("gemini", "sse"),
    ("gemini", "json-array"),
)


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says: a text, and the arguments of a tool call."""

    text: str
    arguments: JsonObject


def cut(text: str, cuts: Sequence[int]) -> list[str]:
    """`text` in pieces."""
    places = [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def stream(events: Sequence[JsonValue], *, typed: bool) -> bytes:
    """The events as a provider frames them."""
    lines: list[str] = []
    for event in events:
        if typed and isinstance(event, dict):
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {event if event == '[DONE]' else json.dumps(event)}\n\n")
    return "".join(lines).encode()


def body(wire: Wire, form: Form, said: Said, cuts: Sequence[int] = ()) -> bytes:
    """The answer in one wire and form."""
    match wire, form:
        case "chat_completions", "sse":
            return stream([*_chat_events(said, cuts), "[DONE]"], typed=False)
        case "chat_completions", _:
            return json.dumps({"choices": [{"index": 0, "message": _chat_message(said)}]}).encode()
        case "responses", "sse":
            return stream(list(_responses_events(said, cuts)), typed=True)
        case "responses", _:
            return json.dumps({"status": "completed", "output": _responses_items(said)}).encode()
        case "anthropic", "sse":
            return stream(list(_anthropic_events(said, cuts)), typed=True)
        case "anthropic", _:
            return json.dumps({"type": "message", "content": _anthropic_blocks(said)}).encode()
        case "gemini", "whole":
            return json.dumps(_gemini({"text": said.text}, _gemini_call(said))).encode()
    pieces: list[JsonValue] = [_gemini({"text": piece}) for piece in cut(said.text, cuts)]
    pieces.append(_gemini(_gemini_call(said)))
    if form == "sse":
        return stream(pieces, typed=False)
    return json.dumps(pieces, indent=1).encode()


def copies(wire: Wire, form: Form, answer: bytes) -> tuple[list[str], list[JsonValue]]:
    """All copies of the text and of the arguments that a client can read; all JSON is parsed on the way."""
    return _COPIES[wire](form, answer)


def events(answer: bytes) -> list[JsonObject]:
    """The events of a stream that hold an object."""
    found = [json.loads(event.data) for event in sse.parse(answer).events if event.data != "[DONE]"]
    return cast("list[JsonObject]", found)


def dig(value: JsonValue, *path: str | int) -> JsonValue:
    """The value at a path."""
    for step in path:
        if isinstance(step, str):
            assert isinstance(value, dict)
            value = value[step]
        else:
            assert isinstance(value, list)
            value = value[step]
    return value


def _chat_call(arguments: str) -> JsonObject:
    return {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}


def _chat_message(said: Said) -> JsonObject:
    return {
        "role": "assistant",
        "content": said.text,
        "tool_calls": [_chat_call(json.dumps(said.arguments))],
    }


def _chat_events(said: Said, cuts: Sequence[int]) -> Iterator[JsonObject]:
    def chunk(delta: JsonObject) -> JsonObject:
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in cut(said.text, cuts):
        yield chunk({"content": piece})
    yield chunk({"tool_calls": [_chat_call("")]})
    for piece in cut(json.dumps(said.arguments), cuts):
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})


def _chat_copies(form: Form, answer: bytes) -> tuple[list[str], list[JsonValue]]:
    if form == "whole":
        message = dig(json.loads(answer), "choices", 0, "message")
        arguments = dig(message, "tool_calls", 0, "function", "arguments")
        return [str(dig(message, "content"))], [json.loads(str(arguments))]
    text = arguments_text = ""
    for event in events(answer):
        delta = dig(event, "choices", 0, "delta")
        assert isinstance(delta, dict)
        text += str(delta.get("content", ""))
        if "tool_calls" in delta:
            arguments_text += str(dig(delta, "tool_calls", 0, "function", "arguments"))
    return [text], [json.loads(arguments_text)]


def _responses_items(said: Said) -> list[JsonValue]:
    return [
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": said.text, "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "f",
            "call_id": "c1",
            "name": "read",
            "arguments": json.dumps(said.arguments),
        },
    ]


def _responses_events(said: Said, cuts: Sequence[int]) -> Iterator[JsonObject]:
    message, call = _responses_items(said)
    assert isinstance(message, dict)
    assert isinstance(call, dict)
    part = dig(message, "content", 0)
    assert isinstance(part, dict)
    yield {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    first: JsonObject = {"output_index": 0, "content_index": 0, "item_id": "m"}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}}
    yield {"type": "response.content_part.added", **first, "part": {**part, "text": ""}}
    for piece in cut(said.text, cuts):
        yield {"type": "response.output_text.delta", **first, "delta": piece}
    yield {"type": "response.output_text.done", **first, "text": said.text}
    yield {"type": "response.content_part.done", **first, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}
    second: JsonObject = {"output_index": 1, "item_id": "f"}
    yield {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}}
    for piece in cut(json.dumps(said.arguments), cuts):
        yield {"type": "response.function_call_arguments.delta", **second, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **second, "arguments": call["arguments"]}
    yield {"type": "response.output_item.done", "output_index": 1, "item": call}
    yield {"type": "response.completed", "response": {"status": "completed", "output": [message, call]}}


def _responses_copies(form: Form, answer: bytes) -> tuple[list[str], list[JsonValue]]:
    if form == "whole":
        return _items_copies(dig(json.loads(answer), "output"))
    deltas = {"output_text": "", "function_call_arguments": ""}
    texts: list[str] = []
    arguments: list[JsonValue] = []
    for event in events(answer):
        match event["type"]:
            case "response.output_text.delta" | "response.function_call_arguments.delta" as kind:
                deltas[kind.split(".")[1]] += str(event["delta"])
            case "response.output_text.done":
                texts.append(str(event["text"]))
            case "response.content_part.done":
                texts.append(str(dig(event, "part", "text")))
            case "response.function_call_arguments.done":
                arguments.append(json.loads(str(event["arguments"])))
            case "response.output_item.done":
                found = _items_copies([event["item"]])
                texts += found[0]
                arguments += found[1]
            case "response.completed":
                found = _items_copies(dig(event, "response", "output"))
                texts += found[0]
                arguments += found[1]
    return [deltas["output_text"], *texts], [json.loads(deltas["function_call_arguments"]), *arguments]


def _items_copies(items: JsonValue) -> tuple[list[str], list[JsonValue]]:
    assert isinstance(items, list)
    return (
        [str(dig(item, "content", 0, "text")) for item in items if dig(item, "type") == "message"],
        [json.loads(str(dig(item, "arguments"))) for item in items if dig(item, "type") == "function_call"],
    )


def _anthropic_blocks(said: Said) -> list[JsonValue]:
    return [
        {"type": "text", "text": said.text},
        {"type": "tool_use", "id": "t", "name": "read", "input": said.arguments},
    ]


def _anthropic_events(said: Said, cuts: Sequence[int]) -> Iterator[JsonObject]:
    yield {"type": "message_start", "message": {"type": "message", "content": []}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in cut(said.text, cuts):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    use: JsonObject = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    yield {"type": "content_block_start", "index": 1, "content_block": use}
    for piece in cut(json.dumps(said.arguments), cuts):
        delta: JsonObject = {"type": "input_json_delta", "partial_json": piece}
        yield {"type": "content_block_delta", "index": 1, "delta": delta}
    yield {"type": "content_block_stop", "index": 1}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _anthropic_copies(form: Form, answer: bytes) -> tuple[list[str], list[JsonValue]]:
    if form == "whole":
        content = dig(json.loads(answer), "content")
        return [str(dig(content, 0, "text"))], [dig(content, 1, "input")]
    text = arguments = ""
    for event in events(answer):
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            assert isinstance(delta, dict)
            text += str(delta.get("text", ""))
            arguments += str(delta.get("partial_json", ""))
    return [text], [json.loads(arguments)]


def _gemini(*parts: JsonValue) -> JsonObject:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}]}


def _gemini_call(said: Said) -> JsonObject:
    return {"functionCall": {"name": "read", "args": said.arguments}, "thoughtSignature": "c2ln"}


def _gemini_copies(form: Form, answer: bytes) -> tuple[list[str], list[JsonValue]]:
    responses: list[JsonValue]
    if form == "sse":
        responses = list(events(answer))
    else:
        value = json.loads(answer)
        responses = value if isinstance(value, list) else [value]
    text = ""
    arguments: list[JsonValue] = []
    for response in responses:
        parts = dig(response, "candidates", 0, "content", "parts")
        assert isinstance(parts, list)
        for part in parts:
            assert isinstance(part, dict)
            text += str(part.get("text", ""))
            if "functionCall" in part:
                arguments.append(dig(part, "functionCall", "args"))
    return [text], arguments


_COPIES = {
    "chat_completions": _chat_copies,
    "responses": _responses_copies,
    "anthropic": _anthropic_copies,
    "gemini": _gemini_copies,
}
