"""What is known of a served socket when it opens, and of a turn on it that the provider is answering."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Protocol

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.engine import Forward, Header, Serve
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.socket_dial import OWN_HEADERS, Provider
from rewind_proxy.recording import MAX_ANSWER, Captured, passed_step
from rewind_proxy.settings import Settings
from rewind_proxy.wire import Host, sockets

_STREAM: Header = ("content-type", "text/event-stream")


class Owner(Protocol):
    """What a socket needs to know of the add-on it belongs to."""

    runtime: Runtime | None
    settings: Settings | None

    @property
    def mode(self) -> Mode:
        """The mode in force."""
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
        """The mode in force for this socket."""
        return "replay" if self.replay_only else owner.mode

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
    answer: sockets.AnswerEvents = field(default_factory=sockets.AnswerEvents)
    size: int = 0

    def add(self, frame: str, event: JsonObject | None) -> None:
        """Keep a frame of the answer, unless the answer is too long to be recorded."""
        self.answer.add(event)
        self.size += len(frame)
        if self.size > MAX_ANSWER:
            self.chunks.clear()
        else:
            self.chunks.append((sockets.sse_of(frame), self.elapsed))

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
