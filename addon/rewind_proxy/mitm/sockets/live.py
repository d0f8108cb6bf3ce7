"""What is known of a served socket when it opens, and of a turn on it that the provider is answering."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field, replace
from typing import Protocol

from mitmproxy import http

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.decisions import Forward, Header, Serve
from rewind_proxy.errors import traceback_of
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.sockets.dial import OWN_HEADERS, Provider
from rewind_proxy.mitm.upstreams import Upstreams
from rewind_proxy.recording import MAX_ANSWER, Captured, passed_step
from rewind_proxy.settings import Settings
from rewind_proxy.wire import Host, sockets
from rewind_proxy.wire.socket_answers import (
    AnswerEvents,
    event_of,
    in_lane,
    is_terminal,
    lane_of,
    of_answer,
    sse_of,
)

logger = logging.getLogger(__name__)

_STREAM: Header = ("content-type", "text/event-stream")


class Owner(Protocol):
    """What a socket needs to know of the add-on it belongs to."""

    runtime: Runtime | None
    settings: Settings | None
    upstreams: Upstreams

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        ...

    def mask(self, flow: http.HTTPFlow) -> None:
        """Mask the credentials of a flow."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """An upgrade that is served, as the client asked for it."""

    serve: Serve
    upgrade: RawRequest
    host: Host
    session: str
    replay_only: bool
    """Whether the client asked for replay mode by a header."""
    provider: Provider = field(repr=False)

    def mode(self, owner: Owner) -> Mode:
        """The mode in force for this socket; the safe one where nobody can decide any more."""
        return "replay" if self.replay_only or owner.runtime is None else owner.mode

    def request(self, body: bytes) -> RawRequest:
        """The POST that a turn of the socket stands for."""
        headers = tuple(pair for pair in self.upgrade.headers if pair[0].lower() not in OWN_HEADERS)
        headers = (*headers, ("content-type", "application/json"))
        return replace(self.upgrade, method="POST", headers=headers, body=body, upgrade=False)


@dataclass(slots=True)
class LiveTurn:
    """A turn whose answer the provider is sending. `forward` is None for what is never recorded."""

    forward: Forward | None
    request: sockets.FullRequest | None
    started: float
    runtime: Runtime
    chunks: list[tuple[bytes, int]] = field(default_factory=list)
    answer: AnswerEvents = field(default_factory=AnswerEvents)
    size: int = 0
    frames: int = 0

    async def passes(self, gone: asyncio.Event) -> bool:
        """Whether the next frame comes through, and when (`rewind_fault`).

        Nobody waits for a client that is `gone`.
        """
        fault = self.forward.fault if self.forward else None
        if fault is None:
            return True
        if not self.frames and fault.stall:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gone.wait(), fault.stall)
        self.frames += 1
        return fault.cut_after is None or self.frames <= fault.cut_after

    def add(self, frame: str, event: JsonObject | None) -> None:
        """Keep a frame of the answer, without its lane, unless the answer is too long to be recorded."""
        self.answer.add(event)
        self.size += len(frame)
        if self.size > MAX_ANSWER:
            self.chunks.clear()
        else:
            kept = frame if lane_of(event) is None else in_lane(frame, None)
            self.chunks.append((sse_of(kept), self.elapsed))

    @property
    def elapsed(self) -> int:
        """Milliseconds since the request was sent."""
        return round((time.monotonic() - self.started) * 1000)

    def end(self, broken: str) -> None:
        """Record the answer, or say why not."""
        forward, self.forward = self.forward, None
        if forward is None:
            return
        if self.size > MAX_ANSWER:
            broken = "longer than is recorded"
        if broken or not forward.record:
            step = passed_step(
                forward, ("", "", ""), status=200, latency_ms=self.elapsed, reason=broken,
                failed=forward.reading is None,
            )  # fmt: skip
            self.runtime.note(step)
        else:
            self.runtime.keep(forward, Captured(200, (_STREAM,), tuple(self.chunks), time.time()))


class Live:
    """What the provider answers on one socket: in each lane a turn at a time, each recorded at its end."""

    def __init__(self, chain: sockets.Chain) -> None:
        self._chain = chain
        self.turns: dict[str | None, LiveTurn] = {}
        """Those under way, by lane."""
        self.made: set[str] = set()
        """Responses of the provider's: it knows what a frame goes on from."""
        self._doubt = ""
        self._cut_short = False
        """Whether a turn ended before its answer did: what follows may still be of that one."""

    def doubt(self, why: str) -> None:
        """Nobody can tell any more which answer is whose: from now on nothing is recorded."""
        self._doubt = self._doubt or why

    async def passes(self, message: str | bytes, gone: asyncio.Event) -> bool:
        """Whether a message comes through, and when (`rewind_fault`); see `LiveTurn.passes`."""
        if all(turn.forward is None or turn.forward.fault is None for turn in self.turns.values()):
            return True
        event = event_of(message) if isinstance(message, str) else None
        turn = self.turns.get(self._lane(event))
        return turn is None or await turn.passes(gone)

    def _lane(self, event: JsonObject | None) -> str | None:
        """The lane of an event. Where the provider or the client names none, it is the only one there is."""
        lane = lane_of(event)
        if lane not in self.turns and len(self.turns) == 1:
            only = next(iter(self.turns))
            return only if lane is None or only is None else lane
        return lane

    def take(self, message: str | bytes) -> None:
        """A message that the client has by now. No fault of ours here harms more than the recording."""
        try:
            self._take(message)
        except Exception as error:
            logger.error("rewind: failed on a frame of the provider's\n%s", traceback_of(error))
            self.doubt(f"Rewind failed ({type(error).__name__})")
            self.end(self._doubt)

    def _take(self, message: str | bytes) -> None:
        if not self.turns:
            return
        event = event_of(message) if isinstance(message, str) else None
        if event is None:
            self.doubt("the provider sent what is no event")
        lane = self._lane(event)
        turn = self.turns.get(lane)
        if turn is None and lane is None and of_answer(event):
            self.doubt("the provider does not say whose of several answers an event is")
            if is_terminal(event):
                self.end(self._doubt)
        if turn is None or isinstance(message, bytes):
            return
        turn.add(message, event)
        if not is_terminal(event):
            return
        del self.turns[lane]
        if mixed := turn.answer.mixed(strict=self._cut_short):
            self.doubt(mixed)
        self._cut_short |= turn.answer.failed
        if turn.request is not None and not self._doubt:
            identifier = self._chain.remember(turn.request, turn.answer)
            if identifier is not None:
                self.made.add(identifier)
        turn.end(self._doubt)

    def end(self, why: str) -> None:
        """What is under way will have no answer, or none that is recorded."""
        self._cut_short |= bool(self.turns)
        while self.turns:
            self.turns.popitem()[1].end(why)
