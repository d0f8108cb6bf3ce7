"""Forwarded calls: sent on, streamed through undelayed, and handed to the recorder when they are over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from typing import Protocol

from mitmproxy import connection, http

from rewind_proxy.decisions import unrecorded
from rewind_proxy.engine import Forward, Header
from rewind_proxy.errors import traceback_of
from rewind_proxy.mitm import labels, traffic
from rewind_proxy.mitm.runtime import RequestLine, Runtime
from rewind_proxy.mitm.tee import Tee
from rewind_proxy.mitm.upstreams import Upstreams
from rewind_proxy.recording import MAX_ANSWER, Captured, passed_step
from rewind_proxy.store.records import StepRecord
from rewind_proxy.wire import Host

logger = logging.getLogger(__name__)

NO_LINE: RequestLine = ("", "", "")
"""For a step whose reading tells method, host and path."""
_POLL = 0.005
_SENT = 0.05
"""Seconds between two looks at whether mitmproxy has sent an answer."""
CLIENT_GONE = "the client or the provider broke off"


class Owner(Protocol):
    """What forwarding needs to know of the add-on it belongs to."""

    runtime: Runtime | None
    upstreams: Upstreams

    def finish(self, flow: http.HTTPFlow, step: StepRecord | None) -> None:
        """Label a flow that is over, and mask its credentials; None while its answer is written down."""
        ...

    def finish_unread(self, flow: http.HTTPFlow) -> None:
        """Label and mask a flow of a known host whose request or answer never became whole."""
        ...

    def mask(self, flow: http.HTTPFlow) -> None:
        """Mask the credentials of a flow."""
        ...

    def label_again(self, flow: http.HTTPFlow, step: StepRecord) -> None:
        """What became of the answer of a flow is known now."""
        ...

    def answers_itself(self, server: connection.Server) -> bool:
        """Whether a connection leads to an answer of our own, and nowhere else."""
        ...


@dataclass(slots=True)
class Pending:
    """A forwarded call whose answer is on its way."""

    flow: http.HTTPFlow
    forward: Forward
    line: RequestLine
    """For a request that was not read."""
    started: float
    """On the monotonic clock."""
    tee: Tee | None = None
    address: traffic.Address | None = None
    """The client's own, while the flow has that of `rewind_upstream`."""
    reason: str = ""
    """Why nothing is recorded, where that is known before the answer."""
    failed: bool = False
    """Whether the reason is a fault of ours."""
    noted: StepRecord | None = None
    """Its step, where that was noted before the answer was over."""


@dataclass(frozen=True, slots=True)
class _Unsent:
    """The headers of an answer without a body: mitmproxy sends them when all add-ons have seen them."""

    true: tuple[tuple[bytes, bytes], ...]
    masked: tuple[tuple[bytes, bytes], ...]


class Forwarding:
    """The hooks of answers that come from a provider."""

    name = "rewind_forwarding"

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._pending: dict[str, Pending] = {}
        self._unsent: dict[str, _Unsent] = {}

    def send(
        self,
        flow: http.HTTPFlow,
        forward: Forward,
        host: Host | None,
        *,
        line: RequestLine = NO_LINE,
        reason: str = "",
        failed: bool = False,
    ) -> None:
        """Send a flow where its host's live traffic goes, and wait for its answer."""
        pending = Pending(flow, forward, line, time.monotonic(), reason=reason, failed=failed)
        self._pending[flow.id] = pending
        pending.address = self.direct(flow, host)

    def direct(self, flow: http.HTTPFlow, host: Host | None) -> traffic.Address | None:
        """Point a flow at its host's upstream; the client's own address, if that is another."""
        traffic.give_length(flow)
        base_url = self._owner.upstreams.of(host, flow.request.host)
        if base_url is None:
            return None
        address = traffic.address_of(flow)
        traffic.send_to(flow, base_url)
        return address

    async def settle(self, seconds: float) -> None:
        """Wait until the calls that are under way now are over, for so many seconds at most."""
        under_way = set(self._pending)
        deadline = time.monotonic() + seconds
        # A flow ends in one of two hooks, and rarely does anybody wait for that.
        while under_way & self._pending.keys() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)

    def end(self, reason: str) -> None:
        """The proxy ends, or goes on under other settings: note the calls that are still under way.

        Their answers go on to their clients, and are not recorded.
        """
        for pending in self._pending.values():
            if pending.noted is None and self._owner.runtime is not None:
                pending.forward = unrecorded(pending.forward)
                pending.noted = self._passed(pending.flow, pending, reason)

    def finish_all(self, *, shutdown: bool) -> None:
        """Nothing more comes for the flows under way: mask them before they are saved.

        Where the script is only loaded anew, one may still have to be sent, with its credentials.
        """
        for pending in self._pending.values():
            if not shutdown and pending.flow.response is None:
                continue
            labels.label_under_way(pending.flow, "passed")
            self._owner.mask(pending.flow)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Let the answer through as it comes, with a tee when it is to be recorded."""
        response = flow.response
        if response is None:
            return
        pending = self._pending.get(flow.id)
        if pending is None:
            response.stream = True  # an answer of ours goes at once whatever this says
            return
        for name, value in pending.forward.headers:
            response.headers[name] = value
        if response.status_code == 101:
            return
        if pending.forward.record:
            pending.tee = Tee(time.monotonic, pending.started, MAX_ANSWER)
        response.stream = pending.tee or True

    def response(self, flow: http.HTTPFlow) -> None:
        """The answer is over: hand it to the recorder, off the loop."""
        answer = flow.response
        # Of what was streamed mitmproxy keeps no content.
        unsent = answer.headers.fields if answer is not None and answer.raw_content is not None else ()
        self._end(flow, "")
        if answer is not None and unsent and answer.headers.fields != unsent:
            self._unsent[flow.id] = _Unsent(unsent, answer.headers.fields)

    def give_back(self, flow: http.HTTPFlow) -> None:
        """Every other add-on has seen an answer masked; its client gets it as the provider sent it."""
        unsent = self._unsent.pop(flow.id, None)
        if unsent is None or flow.response is None:
            return
        true = list(zip(unsent.masked, unsent.true, strict=True))
        fields: list[tuple[bytes, bytes]] = []
        for field in flow.response.headers.fields:  # another add-on may have added to them
            at = next((place for place, (masked, _) in enumerate(true) if masked == field), None)
            fields.append(field if at is None else true.pop(at)[1])
        flow.response.headers.fields = tuple(fields)
        # As a rule mitmproxy sends it before anything else gets its turn: mitmweb, for one, sees none of it.
        asyncio.get_running_loop().call_soon(self._mask_when_sent, flow)

    def _mask_when_sent(self, flow: http.HTTPFlow) -> None:
        if flow.websocket is not None:
            return  # its start says so
        if flow.live:
            asyncio.get_running_loop().call_later(_SENT, self._mask_when_sent, flow)
        else:
            self._owner.mask(flow)

    def websocket_start(self, flow: http.HTTPFlow) -> None:
        """The answer to an upgrade was sent."""
        if labels.labelled(flow):
            self._owner.mask(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """The provider or the client broke off: nothing is stored but a stream that was complete before."""
        self._end(flow, f"{CLIENT_GONE}: {flow.error.msg if flow.error else 'no answer'}")

    def _end(self, flow: http.HTTPFlow, broken: str) -> None:
        pending = self._pending.pop(flow.id, None)
        if pending is None:
            if broken:
                self._owner.finish_unread(flow)
            elif self._owner.answers_itself(flow.server_conn):
                self._owner.mask(flow)  # of a socket that we serve this is the provider's answer, passed on
            return
        traffic.restore(flow, pending.address)
        step = pending.noted
        try:
            step = step or self._keep(flow, pending, broken)
        except Exception as error:
            why = traceback_of(error)
            logger.error("rewind: failed on the answer to %s\n%s", pending.forward.step.id, why)
            pending.reason, pending.failed = f"Rewind failed ({type(error).__name__})", True
            step = self._passed(flow, pending, broken)
        finally:
            self._owner.finish(flow, step)

    def _keep(self, flow: http.HTTPFlow, pending: Pending, broken: str) -> StepRecord | None:
        """Hand an answer over to be recorded, or note the step of a call that is not recorded."""
        tee, response, runtime = pending.tee, flow.response, self._owner.runtime
        if runtime is None or response is None or tee is None or tee.overflow:
            return self._passed(flow, pending, "longer than is recorded" if tee and tee.overflow else broken)
        loop = asyncio.get_running_loop()

        def told(step: StepRecord) -> None:
            with contextlib.suppress(RuntimeError):  # the proxy ended meanwhile
                loop.call_soon_threadsafe(self._owner.label_again, flow, step)

        runtime.keep(pending.forward, _captured(response, tee, broken), told)
        if not broken:
            # Shows the body in mitmweb and saves it with -w; nothing is sent twice (MITMPROXY.md).
            response.raw_content = b"".join(piece for piece, _ in tee.chunks)
        return None

    def _passed(self, flow: http.HTTPFlow, pending: Pending, reason: str) -> StepRecord:
        status = flow.response.status_code if flow.response else None
        step = _passed_step(pending, status, pending.reason or reason)
        if self._owner.runtime is not None:
            self._owner.runtime.note(step)
        return step


def _passed_step(pending: Pending, status: int | None, reason: str) -> StepRecord:
    return passed_step(
        pending.forward,
        pending.line,
        status=status,
        latency_ms=round((time.monotonic() - pending.started) * 1000),
        reason=reason,
        failed=pending.failed,
    )


def _captured(response: http.Response, tee: Tee, broken: str) -> Captured:
    headers: tuple[Header, ...] = tuple(response.headers.items(multi=True))
    return Captured(response.status_code, headers, tuple(tee.chunks), time.time(), broken)
