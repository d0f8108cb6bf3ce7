"""The Responses API as the provider speaks it (the API reference of OpenAI, "Streaming events")."""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.provider.chat_completions import openai_error
from rewind_proxy.cli.provider.turn import (
    Dialect,
    Entry,
    Offer,
    Turn,
    as_object,
    fresh_id,
    now,
    objects,
    pieces,
    speaker,
    texts,
    typed_sse,
)


def _entries(body: JsonObject) -> Iterator[Entry]:
    if isinstance(body.get("input"), str):
        yield "user", str(body["input"])
    for item in objects(body.get("input")):
        kind = item.get("type", "message")
        who = speaker(item.get("role"))
        if kind in ("function_call_output", "custom_tool_call_output"):
            yield "tool", "\n".join(texts(item.get("output")))
        elif kind == "message" and who:
            yield from ((who, text) for text in texts(item.get("content")))


def _offers(body: JsonObject) -> Iterator[Offer]:
    """Codex offers tools at the top, or in the first item of the input, in namespaces."""
    tools = objects(body.get("tools"))
    for item in objects(body.get("input")):
        if item.get("type") == "additional_tools":
            tools += objects(item.get("tools"))
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from (_offer(inner, str(tool.get("name"))) for inner in objects(tool.get("tools")))
        elif tool.get("type") in ("function", "custom"):
            yield _offer(tool, None)


def _offer(tool: JsonObject, namespace: str | None) -> Offer:
    schema = None if tool.get("type") == "custom" else as_object(tool.get("parameters"))
    return Offer(str(tool.get("name")), schema, namespace)


def _thinks(body: JsonObject) -> bool:
    include = body.get("include")
    return isinstance(include, list) and "reasoning.encrypted_content" in include


def _response(turn: Turn, identifier: str, created: int, output: list[JsonObject] | None) -> JsonObject:
    """The response object: in progress while `output` is None."""
    usage: JsonObject = {
        "input_tokens": turn.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }
    items: list[JsonValue] = list(output or [])
    return {
        "id": identifier,
        "object": "response",
        "created_at": created,
        "status": "in_progress" if output is None else "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": turn.model,
        "output": items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if output is None else usage,
    }


def _items(turn: Turn) -> list[JsonObject]:
    items: list[JsonObject] = []
    if turn.thinks:
        sealed = fresh_id("gAAAAFake")
        items.append({"id": fresh_id("rs_"), "type": "reasoning", "summary": [], "encrypted_content": sealed})
    if turn.call is None:
        message: JsonObject = {"id": fresh_id("msg_"), "type": "message", "status": "completed"}
        items.append(message | {"role": "assistant", "content": [_part(turn.text)]})
        return items
    custom = isinstance(turn.call.arguments, str)
    call: JsonObject = {
        "id": fresh_id("ctc_" if custom else "fc_"),
        "type": "custom_tool_call" if custom else "function_call",
        "status": "completed",
        "call_id": fresh_id("call_"),
        "name": turn.call.name,
        "input" if custom else "arguments": turn.call.text,
    }
    if turn.call.namespace:
        call["namespace"] = turn.call.namespace
    items.append(call)
    return items


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _whole(turn: Turn) -> JsonObject:
    return _response(turn, fresh_id("resp_"), now(), _items(turn))


def _events(turn: Turn, _body: JsonObject) -> Iterator[JsonObject]:
    identifier, created = fresh_id("resp_"), now()
    items = _items(turn)
    events: list[JsonObject] = [
        {"type": "response.created", "response": _response(turn, identifier, created, None)},
        {"type": "response.in_progress", "response": _response(turn, identifier, created, None)},
    ]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": _begun(item)})
        events.extend(_item_events(item, {"item_id": item["id"], "output_index": index}))
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": _response(turn, identifier, created, items)})
    yield from (event | {"sequence_number": number} for number, event in enumerate(events))


def _begun(item: JsonObject) -> JsonObject:
    """The item as `output_item.added` shows it: nothing said yet."""
    empty: JsonObject = {"content": [], "arguments": "", "input": "", "encrypted_content": ""}
    begun = item | {member: value for member, value in empty.items() if member in item}
    return begun | {"status": "in_progress"} if "status" in item else begun


def _item_events(item: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    """What stands between `added` and `done` of one item."""
    match item["type"]:
        case "message":
            place = {**place, "content_index": 0}
            (text,) = texts(item["content"])
            yield {"type": "response.content_part.added", "part": _part(""), **place}
            for piece in pieces(text):
                yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place}
            yield {"type": "response.output_text.done", "text": text, "logprobs": [], **place}
            yield {"type": "response.content_part.done", "part": _part(text), **place}
        case "function_call":
            said: JsonObject = {"name": item["name"], "arguments": item["arguments"]}
            for piece in pieces(str(item["arguments"])):
                yield {"type": "response.function_call_arguments.delta", "delta": piece, **place}
            yield {"type": "response.function_call_arguments.done", **said, **place}
        case "custom_tool_call":
            for piece in pieces(str(item["input"])):
                yield {"type": "response.custom_tool_call_input.delta", "delta": piece, **place}
            yield {"type": "response.custom_tool_call_input.done", "input": item["input"], **place}


RESPONSES = Dialect(
    entries=_entries,
    offers=_offers,
    thinks=_thinks,
    schema=lambda _body: {},
    whole=_whole,
    events=_events,
    sse=typed_sse,
    error=openai_error,
)
