"""What all renderers share: notes of what is lost, ids that are missing, arguments as objects, bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import cast

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Rendered
from rewind_proxy.canonical.model import JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream; charset=utf-8"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.>-]+")
_LONGEST_NOTE = 60
_INFINITE = (float("inf"), float("-inf"))
# What a Responses answer repeats of its request: no part of what the model said, and never missed elsewhere.
_ECHOES = frozenset(
    (
        "background completed_at conversation instructions max_output_tokens max_tool_calls metadata "
        "parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning "
        "safety_identifier store temperature text tool_choice tools top_logprobs top_p truncation user"
    ).split()
)
# What is kept beside a neutral value that says most of it.
_DETAILS = {
    **dict.fromkeys(("usage", "usageMetadata"), "usage details"),
    **dict.fromkeys(("finish_reason", "finishReason", "stop_reason"), "finish details"),
}


class Notes:
    """What the target cannot express: each phrase once, in the order found, safe in a header."""

    def __init__(self) -> None:
        self._phrases: dict[str, None] = {}

    def add(self, *words: str) -> None:
        """Note one phrase made of these words (names in a recording may be anything)."""
        phrase = " ".join(filter(None, (_UNSAFE.sub(" ", word).strip() for word in words)))
        self._phrases.setdefault(phrase[:_LONGEST_NOTE].rstrip() or "opaque")

    def members(self, kind: str, part: JsonObject, *known: str) -> None:
        """Note each member of a part that is not `known`, as `reasoning signature`; an item's id is none."""
        for name in part:
            if name not in known and name not in ("type", "item_id"):
                self.add(kind, name)

    def opaque(self, part: JsonObject) -> None:
        """Note a part that only another wire understands, by its type or its members."""
        value = part.get("value")
        if not isinstance(value, dict):
            self.add("opaque")
        elif isinstance(kind := value.get("type"), str):
            self.add(kind)
        else:
            for name in value:
                self.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._phrases)


def note_own(answer: CanonicalAnswer, wire: Wire, notes: Notes) -> None:
    """Note what only the recording's wire says of the answer and its choices, when `wire` is another."""
    if answer.wire == wire:
        return
    for own in (answer.own, *(choice.own for choice in answer.choices)):
        for name in own:
            if name not in _ECHOES:
                notes.add(_DETAILS.get(name, name))


def derived_id(prefix: str, *content: JsonValue) -> str:
    """An id the recording does not have: made from what it names, so that it is the same each time."""
    source = json.dumps(content, sort_keys=True).encode("ascii")
    return prefix + hashlib.sha256(source).hexdigest()[:24]


def answer_id(prefix: str, answer: CanonicalAnswer) -> str:
    """The id of the answer: the recording's, or one made from the model and the parts."""
    parts: list[JsonValue] = [list(choice.parts) for choice in answer.choices]
    return answer.id or derived_id(prefix, answer.model, parts)


def source_text(arguments: JsonValue) -> str:
    """Arguments as the text that a model would have written; a text is that already."""
    return arguments if isinstance(arguments, str) else dump(arguments)


def arguments_object(part: JsonObject, notes: Notes) -> JsonObject:
    """The arguments of a tool call for a wire where they are an object.

    No text is `{}`. The input of a custom tool, and a text that is no JSON object, become `{"input": text}`,
    which is noted.
    """
    text = source_text(part.get("arguments"))
    if part.get("call_type") == "custom":
        notes.add("custom tool call")
        return {"input": text}
    if not text.strip():
        return {}
    try:
        value = cast("JsonValue", json.loads(text, parse_constant=_refuse, parse_float=_finite))
    except (ValueError, RecursionError):  # the model wrote no JSON, or none that can be written again
        value = None
    if isinstance(value, dict):
        return value
    notes.add("arguments as text")
    return {"input": text}


def custom_input(part: JsonObject, asked: Asked) -> str | None:
    """The input of a custom tool in a call of a wire without them; None when it is no such call."""
    if part.get("name") not in asked.custom_tools:
        return None
    match answers.load_object(source_text(part.get("arguments"))):
        case {"input": str(source), **rest} if not rest:
            return source
    return None


def _refuse(token: str) -> JsonValue:
    raise ValueError(f"{token} is no JSON")


def _finite(token: str) -> float:
    value = float(token)
    if value in _INFINITE:
        raise ValueError(f"{token} is past every float")
    return value


def rejoined(text: str) -> str:
    """`text` with the two halves of a character that came in two pieces as that character again."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined(texts: Iterable[str]) -> str:
    """The text that arrived in pieces. An escape of half a character in each of two pieces is one."""
    text = "".join(texts)
    return text if text.isascii() else rejoined(text)


def dump(value: JsonValue) -> str:
    """Compact JSON, readable where it can be: members in their order, lone surrogates escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() or _encodes(text) else json.dumps(value, separators=(",", ":"))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def whole(value: JsonObject, notes: Notes, content_type: str = JSON_TYPE) -> Rendered:
    """An answer of one JSON object."""
    body = dump(value).encode()
    return Rendered(body, content_type, (len(body),), tuple(notes))


def streamed(chunks: Iterable[bytes], notes: Notes, content_type: str = SSE_TYPE) -> Rendered:
    """An answer in pieces; `notes` are read after the last."""
    made = list(chunks)
    return Rendered(b"".join(made), content_type, tuple(map(len, made)), tuple(notes))
