"""The Responses API over a WebSocket: the provider's frames, and the answers that POST would have had.

A frame is an event of the stream: its JSON, without the lines of SSE. An answer is recorded as the stream, so
that one cassette serves both. An error has the status and headers that its HTTP answer would have had in it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers, sse

TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
"""The events that end a turn."""
_SUCCESS = frozenset({"response.completed", "response.incomplete"})
_TYPE = re.compile(r"[A-Za-z0-9_.\-]+")
_NEWLINE = re.compile(r"\r\n|\r|\n")


class AnswerEvents:
    """What the events of one answer say of it as a whole."""

    def __init__(self) -> None:
        self._begun: JsonValue = None
        self._begun_first = True
        self._begun_once = True
        self._done: list[JsonValue] = []
        self._last: JsonObject = {}

    def add(self, event: JsonObject | None) -> None:
        """Take the next event."""
        if event is None:
            return
        kind = event.get("type")
        if kind == "response.created":
            self._begun_once &= self._begun in (None, _id_of(event))
            self._begun = _id_of(event)
        elif kind == "response.output_item.done":
            self._done.append(event.get("item"))
            self._begun_first &= self._begun is not None
        if kind in TERMINAL:
            self._last = event

    @property
    def identifier(self) -> str | None:
        """The id of a response that succeeded."""
        return answers.string(_id_of(self._last)) if self._last.get("type") in _SUCCESS else None

    @property
    def output(self) -> list[JsonValue]:
        """Its output items, in the order they were done."""
        response = self._last.get("response")
        whole = response.get("output") if isinstance(response, dict) else None
        return self._done or (whole if isinstance(whole, list) else [])

    @property
    def failed(self) -> bool:
        """Whether it ended in an `error`, which may be of another frame than the one that asked."""
        return self._last.get("type") == "error"

    def mixed(self, *, strict: bool) -> str:
        """Why these may be events of two answers; empty when they are of one.

        `strict`: the answer must show its own beginning, since what is left of another may stand before it.
        """
        if self.failed or (self._begun is None and not strict):
            return ""
        begun = self._begun is not None and self._begun_first and self._begun_once
        same = begun and self._begun == _id_of(self._last)
        return "" if same else "its frames may be those of two answers"


def _id_of(event: JsonObject) -> JsonValue:
    response = event.get("response")
    return response.get("id") if isinstance(response, dict) else None


def event_of(frame: str) -> JsonObject | None:
    """The event that a provider's frame is; None when it is no JSON object."""
    return answers.load_object(frame)


def lane_of(event: JsonObject | None) -> str | None:
    """The lane that an event names (see wire/sockets.py)."""
    return answers.string(event.get("stream_id")) if event else None


def in_lane(frame: str, lane: str | None) -> str:
    """An answer's frame as a client hears it that asked in this lane."""
    event = event_of(frame)
    if event is None or lane_of(event) == lane:
        return frame
    said: JsonObject = {name: value for name, value in event.items() if name != "stream_id"}
    if lane is not None:
        said["stream_id"] = lane
    return json.dumps(said, separators=(",", ":"))


def of_answer(event: JsonObject | None) -> bool:
    """Whether an event is of one answer: others (limits of the account, say) are of the whole socket."""
    kind = event.get("type") if event is not None else None
    return isinstance(kind, str) and (kind.startswith("response.") or kind in TERMINAL)


def is_terminal(event: JsonObject | None) -> bool:
    """Whether an event ends its turn."""
    return event is not None and event.get("type") in TERMINAL


def sse_of(frame: str) -> bytes:
    """A provider's frame as the event of a stream that POST would have had."""
    event = event_of(frame)
    kind = event.get("type") if event else None
    named = f"event: {kind}\n" if isinstance(kind, str) and _TYPE.fullmatch(kind) else ""
    # JSON has line ends between tokens only; SSE has a `data:` line for each (WHATWG HTML §9.2.6).
    data = "".join(f"data: {line}\n" for line in _NEWLINE.split(frame))
    return f"{named}{data}\n".encode("utf-8", "surrogatepass")


class Player:
    """Turns a recorded stream, given in pieces cut anywhere, into the frames of a socket.

    A frame is an event, with its name as `type` in the JSON; the `[DONE]` of gateways is none.
    """

    def __init__(self) -> None:
        self._parser = sse.Parser()

    def frames(self, piece: bytes, *, last: bool) -> list[str]:
        """The frames that a piece completes; the `last` one ends an event that no blank line has ended."""
        found = self._parser.feed(piece)
        if last and (pending := self._parser.pending()) is not None:
            found.append(pending)
        return [frame for event in found if (frame := _frame(event)) is not None]


def _frame(event: sse.Event) -> str | None:
    value = answers.load_object(event.data)
    if value is None:
        return None
    if "type" in value or event.name == "message":  # what has no name in a stream was sent without one
        return event.data
    return json.dumps({"type": event.name, **value}, separators=(",", ":"))


def warm_up_answer() -> bytes:
    """The answer to a warm-up, as a stream: a response that puts nothing out, under an id of its own."""
    identifier = f"resp_{secrets.token_hex(16)}"
    begun: JsonObject = {"id": identifier, "object": "response", "status": "in_progress", "output": []}
    ended: JsonObject = {**begun, "status": "completed", "usage": None}
    events: tuple[JsonObject, ...] = (
        {"type": "response.created", "sequence_number": 0, "response": begun},
        {"type": "response.completed", "sequence_number": 1, "response": ended},
    )
    return b"".join(sse_of(json.dumps(event, separators=(",", ":"))) for event in events)


def refusal_frame(message: str) -> str:
    """The event of an error that no request can be named for."""
    return error_frame(400, json.dumps(answers.openai_error(message)).encode())


def error_frame(status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> str:
    """The event of an error that POST would have answered with this status, body and headers."""
    answer = answers.load_object(body) or {}
    error = answer.get("error")
    if not isinstance(error, dict):
        said = error if isinstance(error, str) else body.decode("utf-8", "replace")[:500]
        error = {"type": "invalid_request_error", "message": said, "param": None, "code": None}
    kept: JsonObject = dict(headers)
    event: JsonObject = {"type": "error", "status": status, "error": error, "headers": kept}
    return json.dumps(event, separators=(",", ":"))
