"""A Gemini answer and its stream: one `GenerateContentResponse` to many and back.

Google's reference of `streamGenerateContent`: each response holds the next parts of the candidates, a
function call is whole (Vertex can cut it, `gemini_partial`), the last has the finish reasons and the usage. A
part with a signature is never merged with the next (its guide to thought signatures); a signature may come in
a part of its own, its text empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms.gemini_partial import PartialCall, is_partial
from rewind_proxy.wire.forms.pieces import pieces
from rewind_proxy.wire.forms.rendering import dump, joined

_PIECE = frozenset({"text", "thought", "thoughtSignature"})


def responses(form: Form, body: bytes) -> list[JsonObject]:
    """The responses in a body of any form, without the wrapping of Code Assist.

    What else the wrapper says (`traceId`) is in `codeAssist`.
    """
    values: Iterable[JsonValue]
    if form == "sse":
        values = [answers.load_object(event.data) for event in answers.events(body)]
    elif form == "json-array":
        values = answers.load_list(body) or []
    else:
        values = [answers.load_object(body)]
    return [_unwrapped(value) for value in values if isinstance(value, dict)]


def _unwrapped(value: JsonObject) -> JsonObject:
    inner = value.get("response")
    if not isinstance(inner, dict) or "candidates" in value:
        return value
    rest: JsonObject = {name: member for name, member in value.items() if name != "response"}
    return {**inner, "codeAssist": rest} if rest else inner


def joined_responses(stream: list[JsonObject]) -> JsonObject:
    """The one response that a stream of them adds up to."""
    answer: JsonObject = {}
    candidates: dict[str, _Candidate] = {}
    for response in stream:
        for name, value in response.items():
            known = answer.get(name)
            if name == "usageMetadata" and isinstance(known, dict) and isinstance(value, dict):
                answer[name] = known | value
            elif name != "candidates" and value is not None:
                answer[name] = value
        for candidate in answers.objects(response.get("candidates")):
            index = candidate.get("index", 0)
            candidates.setdefault(str(index), _Candidate(index)).add(candidate)
    if candidates:
        answer["candidates"] = [candidate.value() for candidate in candidates.values()]
    return answer


class _Candidate:
    """One candidate, joined from its responses."""

    def __init__(self, index: JsonValue) -> None:
        self._members: JsonObject = {"index": index}
        self._content: JsonObject = {}
        self._parts: list[tuple[JsonObject, list[str]] | PartialCall] = []

    def add(self, candidate: JsonObject) -> None:
        for name, value in candidate.items():
            if name == "content" and isinstance(value, dict):
                self._content |= {key: member for key, member in value.items() if key != "parts"}
                for part in answers.objects(value.get("parts")):
                    self._add(part)
            elif value not in (None, {}, []):
                self._members[name] = value

    def _add(self, part: JsonObject) -> None:
        before = self._parts[-1] if self._parts else None
        if isinstance(before, PartialCall) and before.goes_on_in(part):
            before.add(part)
            return
        if is_partial(part):
            begun = PartialCall()
            begun.add(part)
            self._parts.append(begun)
            return
        text = part.get("text")
        piece = isinstance(text, str) and part.keys() <= _PIECE
        if piece and isinstance(before, tuple):
            last, texts = before
            if texts and "thoughtSignature" not in last and last.get("thought") == part.get("thought"):
                last |= part
                texts.append(str(text))
                return
        self._parts.append((dict(part), [str(text)] if piece else []))

    def value(self) -> JsonObject:
        parts: list[JsonValue] = [_whole(part) for part in self._parts]
        return {**self._members, "content": {**self._content, "parts": parts}}


def _whole(part: tuple[JsonObject, list[str]] | PartialCall) -> JsonObject:
    if isinstance(part, PartialCall):
        return part.value()
    said, texts = part
    return {**said, "text": joined(texts)} if texts else said


def split_response(response: JsonObject) -> Iterator[JsonObject]:
    """The responses in which one arrives.

    The first candidate sets the pace, as what the SDK calls the text of a response is that candidate's; the
    others keep up with it, and what they have more comes with the last.
    """
    shared: JsonObject = {}
    first: JsonObject = {}
    for name, value in response.items():
        if name not in ("candidates", "usageMetadata"):
            (first if isinstance(value, dict | list) else shared)[name] = value
    candidates = answers.objects(response.get("candidates"))
    cut = [list(_pieces(candidate)) for candidate in candidates]
    count = max(1, len(cut[0])) if cut else 1
    for number in range(count):
        last = number == count - 1
        chunk: JsonObject = {}
        if candidates:
            said: list[JsonValue] = [
                _said(candidate, parts[number:] if last else parts[number : number + 1], last=last)
                for candidate, parts in zip(candidates, cut, strict=True)
                if last or number < len(parts)
            ]
            chunk["candidates"] = said
        if last and "usageMetadata" in response:
            chunk["usageMetadata"] = response["usageMetadata"]
        yield {**chunk, **shared, **first}
        first = {}


def _said(candidate: JsonObject, parts: list[JsonObject], *, last: bool) -> JsonObject:
    """What a response says of a candidate: the next parts, and in the last everything else."""
    content: JsonObject = {"parts": list(parts), "role": "model"} if parts else {"role": "model"}
    rest = candidate if last else {"index": candidate["index"]}
    return {**rest, "content": content}


def _pieces(candidate: JsonObject) -> Iterator[JsonObject]:
    content = candidate["content"]
    assert isinstance(content, dict)
    for part in answers.objects(content.get("parts")):
        text = part.get("text")
        cut = list(pieces(text)) if isinstance(text, str) else []
        thought: JsonObject = {"thought": True} if part.get("thought") is True else {}
        yield from ({"text": piece, **thought} for piece in cut[:-1])
        yield {**part, "text": cut[-1]} if cut else part


def sse_events(values: Iterable[JsonObject]) -> Iterator[bytes]:
    """The responses as server-sent events."""
    for value in values:
        yield f"data: {dump(value)}\r\n\r\n".encode()


def array_pieces(values: Iterable[JsonObject]) -> Iterator[bytes]:
    """The responses as one JSON array, a piece for each."""
    texts = [dump(value).encode() for value in values]
    for number, text in enumerate(texts):
        end = b"]" if number == len(texts) - 1 else b""
        yield (b",\r\n" if number else b"[") + text + end
