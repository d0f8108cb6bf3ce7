"""The Responses API over a WebSocket: frames and the requests and answers that POST would have had.

A client sends `response.create` frames. One with a `previous_response_id` holds only what is new since that
response: the full request is the input that led to it, what it put out, and the frame's own input. The
provider answers with the events of the stream, one text frame each, without the lines of SSE (OpenAI's guide
to the WebSocket mode; what Codex sends is in CLIENTS.md). Pure: bytes and frames in, bytes and frames out.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, cast

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.wire import answers, sse

CREATE = "response.create"
UNANSWERED = frozenset({"response.cancel", "response.processed"})
"""Frames of a client that no event answers."""
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
"""The events that end a turn."""
_SUCCESS = frozenset({"response.completed", "response.incomplete"})
_OF_THE_SOCKET = frozenset({"type", "previous_response_id", "generate"})
_REMEMBERED = 32
"""Responses of one socket that a frame may go on from: a client goes on from its last, or shortly before."""
_TYPE = re.compile(r"[A-Za-z0-9_.\-]+")
_NEWLINE = re.compile(r"\r\n|\r|\n")


# -- what a client sends -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    """A frame that asks for a response."""

    frame: JsonObject

    @property
    def previous(self) -> str | None:
        """The response it goes on from."""
        previous = self.frame.get("previous_response_id")
        return previous if isinstance(previous, str) and previous else None

    @property
    def warm_up(self) -> bool:
        """Whether nothing is to be generated: the client opens its conversation ahead of the first turn."""
        return self.frame.get("generate") is False


@dataclass(frozen=True, slots=True)
class OtherFrame:
    """A frame of another type."""

    type: str


@dataclass(frozen=True, slots=True)
class UnreadableFrame:
    """A frame that is no JSON object, or that two readers would read differently."""

    reason: str


ClientFrame: TypeAlias = Create | OtherFrame | UnreadableFrame


def _members(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise OpaqueBodyError("a member is repeated")
    return members


def _number(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise OpaqueBodyError("a number is out of range")
    return value


def _constant(_: str) -> NoReturn:
    raise OpaqueBodyError("a number is none")


_decoder = json.JSONDecoder(object_pairs_hook=_members, parse_float=_number, parse_constant=_constant)


def read_frame(text: str) -> ClientFrame:
    """What a client's text frame is. Never raises."""
    try:
        value = cast("JsonValue", _decoder.decode(text))
    except OpaqueBodyError as error:
        return UnreadableFrame(str(error))
    except (ValueError, RecursionError):  # their texts quote the frame
        return UnreadableFrame("it is not JSON")
    if not isinstance(value, dict):
        return UnreadableFrame("it is no JSON object")
    kind = value.get("type")
    if kind == CREATE:
        return Create(value)
    return OtherFrame(kind if isinstance(kind, str) else "")


# -- requests ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FullRequest:
    """The request that a frame asks for, as POST would have it."""

    body: JsonObject
    known: bool
    """Whether all that it goes on from is in it. If not, its `previous_response_id` stands in the body, and
    means to the provider what it means in a POST."""
    previous: str | None
    """The response that the frame went on from."""

    def encoded(self) -> bytes:
        """The body of the POST."""
        return json.dumps(self.body, separators=(",", ":")).encode()

    def frame(self) -> str:
        """A frame that asks for the same of a provider who does not know what it goes on from."""
        body = {name: value for name, value in self.body.items() if name != "stream"}
        return json.dumps({"type": CREATE, **body}, separators=(",", ":"))


class Chain:
    """What the responses of one socket stand for when a frame goes on from them."""

    def __init__(self) -> None:
        self._inputs: OrderedDict[str, tuple[JsonValue, ...]] = OrderedDict()

    def full(self, create: Create) -> FullRequest:
        """The full request of a frame.

        Its `stream` is always true: a socket has no other form, whatever the frame says of it.
        """
        frame, previous = create.frame, create.previous
        body: JsonObject = {name: value for name, value in frame.items() if name not in _OF_THE_SOCKET}
        generate = frame.get("generate")
        if generate is not None and not isinstance(generate, bool):
            body["generate"] = generate
        body["stream"] = True
        before = self._inputs.get(previous) if previous is not None else ()
        if before is None:
            body["previous_response_id"] = previous
        elif before:
            body["input"] = [*before, *_items(frame.get("input"))]
        return FullRequest(body, before is not None, previous)

    def remember(self, request: FullRequest, answer: AnswerEvents) -> str | None:
        """Keep what an answer adds to its request: a later frame may go on from it. Its id, if it has one.

        A failed answer adds nothing, and nobody can go on from one.
        """
        identifier = answer.identifier
        if identifier is not None and request.known:
            self._inputs[identifier] = (*_items(request.body.get("input")), *answer.output)
            if len(self._inputs) > _REMEMBERED:
                self._inputs.popitem(last=False)
        return identifier


def _items(given: JsonValue) -> list[JsonValue]:
    """An `input` as items: a string is a message of the user."""
    if isinstance(given, list):
        return given
    return [] if given is None else [{"type": "message", "role": "user", "content": given}]


# -- answers -----------------------------------------------------------------------------------------------


class AnswerEvents:
    """What the events of one answer say of it as a whole."""

    def __init__(self) -> None:
        self._begun: JsonValue = None
        self._begun_first = True
        self._done: list[JsonValue] = []
        self._last: JsonObject = {}

    def add(self, event: JsonObject | None) -> None:
        """Take the next event."""
        if event is None:
            return
        kind = event.get("type")
        if kind == "response.created":
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
        same = self._begun is not None and self._begun_first and self._begun == _id_of(self._last)
        return "" if same else "its frames may be those of two answers"


def _id_of(event: JsonObject) -> JsonValue:
    response = event.get("response")
    return response.get("id") if isinstance(response, dict) else None


def event_of(frame: str) -> JsonObject | None:
    """The event that a provider's frame is; None when it is no JSON object."""
    return answers.load_object(frame)


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

    A frame is an event, with its `type` in the JSON; the `[DONE]` of gateways is none.
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
    if "type" in value:
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
