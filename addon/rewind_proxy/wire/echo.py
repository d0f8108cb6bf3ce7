"""An answer as its client would send it back: the request body of the same wire that holds it as a past turn.

The adapters already read requests of their wire, so an answer read this way becomes canonical parts by the
same rules as the conversation before it. For reading only: lenient, never raises, and what a stream does not
say in full (usage, ids, events of no content) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers


def echo(wire: Wire, form: Form, body: bytes) -> JsonObject | None:
    """A request body with the answer as its only turn, or None when nothing in it can be read as a turn."""
    reader = _READERS.get(wire)
    return reader(form, body) if reader else None


def _chat_completions(form: Form, body: bytes) -> JsonObject | None:
    if form == "whole":
        choices = answers.objects((answers.load_object(body) or {}).get("choices"))
        messages: list[JsonValue] = [choice["message"] for choice in choices if "message" in choice]
        return {"messages": messages} if messages else None
    turns: dict[JsonValue, _ChatTurn] = {}
    for chunk in _objects(body):
        for choice in answers.objects(chunk.get("choices")):
            delta, index = choice.get("delta"), choice.get("index")
            if isinstance(delta, dict) and not isinstance(index, list | dict):
                turns.setdefault(index, _ChatTurn()).add(delta)
    return {"messages": [turn.message() for turn in turns.values()]} if turns else None


class _ChatTurn:
    """The message of one choice, joined from its deltas."""

    def __init__(self) -> None:
        self._texts = _Texts()
        self._calls: dict[str, tuple[JsonObject, str, _Texts]] = {}

    def add(self, delta: JsonObject) -> None:
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            self._texts.add(name, delta.get(name))
        for position, call in enumerate(answers.objects(delta.get("tool_calls"))):
            # Some gateways leave the index out of a chunk that holds one call.
            key = str(call.get("index", position))
            kind = "custom" if call.get("type") == "custom" or "custom" in call else "function"
            started, kind, texts = self._calls.setdefault(key, ({"type": kind}, kind, _Texts()))
            if identifier := answers.string(call.get("id")):
                started["id"] = identifier
            made = call.get(kind)
            for name, value in made.items() if isinstance(made, dict) else ():
                texts.add(name, value)

    def message(self) -> JsonObject:
        message: JsonObject = {"role": "assistant", **self._texts.joined()}
        if self._calls:
            message["tool_calls"] = [
                {**started, kind: texts.joined()} for started, kind, texts in self._calls.values()
            ]
        return message


def _responses(form: Form, body: bytes) -> JsonObject | None:
    if form == "whole":
        output = (answers.load_object(body) or {}).get("output")
        return {"input": output} if isinstance(output, list) and output else None
    items: list[JsonValue] = [
        event["item"]
        for event in _objects(body)
        if event.get("type") == "response.output_item.done" and isinstance(event.get("item"), dict)
    ]
    return {"input": items} if items else None


def _anthropic(form: Form, body: bytes) -> JsonObject | None:
    if form == "whole":
        content = (answers.load_object(body) or {}).get("content")
        return _anthropic_turn(content) if isinstance(content, list) and content else None
    blocks: dict[JsonValue, tuple[JsonObject, _Texts]] = {}
    for event in _objects(body):
        index, block, delta = event.get("index"), event.get("content_block"), event.get("delta")
        if isinstance(index, list | dict):
            continue
        if isinstance(block, dict):
            texts = _Texts()
            for name in _ANTHROPIC_TEXTS:
                texts.add(name, block.get(name))
            blocks[index] = dict(block), texts
        elif isinstance(delta, dict) and index in blocks:
            for name in (*_ANTHROPIC_TEXTS, "partial_json"):
                blocks[index][1].add(name, delta.get(name))
    made: list[JsonValue] = [_anthropic_block(block, texts) for block, texts in blocks.values()]
    return _anthropic_turn(made) if made else None


_ANTHROPIC_TEXTS = ("text", "thinking", "signature")


def _anthropic_block(block: JsonObject, texts: _Texts) -> JsonObject:
    joined = texts.joined()
    arguments = joined.pop("partial_json", "")
    if isinstance(arguments, str) and arguments:
        value = answers.load_object(arguments)
        block["input"] = arguments if value is None else value
    return block | joined


def _anthropic_turn(content: list[JsonValue]) -> JsonObject:
    return {"messages": [{"role": "assistant", "content": content}]}


def _gemini(form: Form, body: bytes) -> JsonObject | None:
    responses: list[JsonObject]
    if form == "sse":
        responses = list(_objects(body))
    elif form == "json-array":
        responses = answers.objects(answers.load_list(body))
    else:
        responses = [answers.load_object(body) or {}]
    parts: list[JsonValue] = []
    for response in responses:
        inner = response.get("response")  # Code Assist wraps it
        wrapped = inner if isinstance(inner, dict) else response
        for candidate in answers.objects(wrapped.get("candidates"))[:1]:
            content = candidate.get("content")
            for part in answers.objects(content.get("parts") if isinstance(content, dict) else None):
                _join_gemini(parts, part)
    return {"contents": [{"role": "model", "parts": parts}]} if parts else None


def _join_gemini(parts: list[JsonValue], part: JsonObject) -> None:
    """Append a part; a piece of text goes on where the piece before it stopped."""
    last = parts[-1] if parts else None
    if isinstance(last, dict) and part.keys() <= {"text", "thought", "thoughtSignature"} and "text" in last:
        before, more = last["text"], part.get("text")
        if isinstance(before, str) and isinstance(more, str) and last.get("thought") == part.get("thought"):
            parts[-1] = {**last, **part, "text": before + more}
            return
    parts.append(part)


class _Texts:
    """Strings that arrive in pieces, by name, in the order in which they began."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}

    def add(self, name: str, piece: JsonValue) -> None:
        if isinstance(piece, str) and piece:
            self._pieces.setdefault(name, []).append(piece)

    def joined(self) -> JsonObject:
        return {name: "".join(pieces) for name, pieces in self._pieces.items()}


def _objects(body: bytes) -> Iterator[JsonObject]:
    for event in answers.events(body):
        value = answers.load_object(event.data)
        if value is not None:
            yield value


_READERS: Mapping[Wire, Callable[[Form, bytes], JsonObject | None]] = {
    "chat_completions": _chat_completions,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
