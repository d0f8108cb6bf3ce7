"""The Responses API over a WebSocket: a client's frames, and the requests that POST would have had.

A client sends `response.create` frames. One with a `previous_response_id` holds only what is new since that
response: the full request is the input that led to it, what it put out, and the frame's own input (OpenAI's
guide to the WebSocket mode). Codex opens with a warm-up, and sends increments from its first turn on.

A frame may name a lane (`stream_id`): turns of one lane follow each other, those of several go side by side,
and each event says whose it is. It is a name for the socket alone, and no part of the request.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, cast

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.wire.socket_answers import AnswerEvents

CREATE = "response.create"
UNANSWERED = frozenset({"response.cancel", "response.processed"})
"""Frames of a client that no event answers."""
_OF_THE_SOCKET = frozenset({"type", "previous_response_id", "generate"})
_REMEMBERED = 32
"""Responses of one socket that a frame may go on from: a client goes on from its last, or shortly before."""


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
    def lane(self) -> str | None:
        """The lane it is of."""
        lane = self.frame.get("stream_id")
        return lane if isinstance(lane, str) else None

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
    lane: str | None = None
    """Whose the events of its answer are."""

    def encoded(self) -> bytes:
        """The body of the POST."""
        return json.dumps(self.body, separators=(",", ":")).encode()

    def frame(self) -> str:
        """A frame that asks for the same of a provider who does not know what it goes on from."""
        body = {name: value for name, value in self.body.items() if name != "stream"}
        if self.lane is not None:
            body["stream_id"] = self.lane
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
        if create.lane is not None:
            del body["stream_id"]
        body["stream"] = True
        before = self._inputs.get(previous) if previous is not None else ()
        if before is None:
            body["previous_response_id"] = previous
        elif before:
            body["input"] = [*before, *_items(frame.get("input"))]
        return FullRequest(body, before is not None, previous, create.lane)

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
