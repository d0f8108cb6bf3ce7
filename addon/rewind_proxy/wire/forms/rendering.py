"""What all wires share in rendering a canonical answer: ids, notes, tool arguments, and the bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from rewind_proxy.canonical.answer import CanonicalAnswer, Choice, Finish, Rendered
from rewind_proxy.canonical.jcs import store_dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,40}")
# What a provider repeats of the request, or says for itself: no part of what the model answered.
_ECHOES = frozenset(
    "background billing completed_at conversation instructions max_output_tokens max_tool_calls metadata object "
    "parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning "
    "safety_identifier service_tier store temperature text tool_choice tools top_logprobs top_p truncation "
    "user".split()
)


class Notes:
    """What a target could not express: short phrases in the order found, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, note: str) -> None:
        """Note it once."""
        self._found[note] = None

    def foreign(self, value: JsonValue) -> None:
        """An opaque value of another wire, by its `type`."""
        kind = value.get("type") if isinstance(value, dict) else None
        self.add(kind if isinstance(kind, str) and _WORD.fullmatch(kind) else "unknown part")

    def members(self, names: Iterable[str]) -> None:
        """Members that only another wire can say."""
        for name in names:
            self.add(name if _WORD.fullmatch(name) else "unknown member")

    def envelope(self, answer: CanonicalAnswer, target: Wire) -> None:
        """The members of the answer's own envelope, when the target is another wire."""
        if answer.wire != target:
            self.members(name for name in answer.own if name not in _ECHOES)

    def found(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self._found)


class Ids:
    """Ids that the recording has not: derived from the answer's content, so that they are always the same."""

    def __init__(self, answer: CanonicalAnswer) -> None:
        content: JsonValue = [
            answer.id,
            answer.model,
            answer.created,
            [[list(choice.parts), choice.finish, choice.stop_sequence] for choice in answer.choices],
        ]
        self._seed = hashlib.sha256(store_dumps(content))

    def make(self, prefix: str, *place: int) -> str:
        """The id for that prefix and place."""
        digest = self._seed.copy()
        digest.update(f"{prefix}{place}".encode())
        return prefix + digest.hexdigest()[:32]


def only_choice(answer: CanonicalAnswer, notes: Notes) -> Choice:
    """The first choice, for a wire that has one."""
    if len(answer.choices) > 1:
        notes.add(f"choices {len(answer.choices)}->1")
    return answer.choices[0] if answer.choices else Choice()


def finish_of(choice: Choice) -> Finish:
    """How the choice ended; a call that says `stop`, as Gemini's does, waits for its result all the same."""
    if choice.finish not in (None, "stop"):
        return choice.finish
    return "tool_calls" if any(part["type"] == "tool_call" for part in choice.parts) else "stop"


def arguments_object(text: str) -> JsonObject | None:
    """The arguments as the object that they spell, or None when they spell none that JSON can say."""
    if not text.strip():
        return {}
    value = answers.load_object(text)
    if value is not None:
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):  # NaN, 1E400: Python reads what JSON cannot say
            return None
    return value


def text_of(value: JsonValue) -> str:
    """A member that should be a string."""
    return value if isinstance(value, str) else ""


def encode(value: JsonValue) -> bytes:
    """JSON as the providers write it: UTF-8, and escapes where a text holds half a surrogate pair."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def whole(value: JsonValue, notes: Notes) -> Rendered:
    """A body of one JSON document."""
    body = encode(value)
    return Rendered(body, JSON, (len(body),), notes.found())


def stream(events: Iterable[bytes], notes: Notes) -> Rendered:
    """A body of server-sent events, one piece each."""
    sent = list(events)  # rendered before the notes are read
    return Rendered(b"".join(sent), EVENTS, tuple(len(event) for event in sent), notes.found())


def typed_event(event: JsonObject) -> bytes:
    """An event of a wire that names its type in the `event` line too."""
    return b"event: %s\ndata: %s\n\n" % (text_of(event["type"]).encode(), encode(event))
