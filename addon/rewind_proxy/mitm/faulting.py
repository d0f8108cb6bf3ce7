"""Faults on purpose in live answers (`rewind_fault`): a stall before the first byte, a cut in the stream."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from mitmproxy import connection, ctx, http

from rewind_proxy.faults import Fault
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.wire.cut import Cut


@dataclass(frozen=True, slots=True)
class _Faulted:
    """A live flow with a fault."""

    flow: http.HTTPFlow
    fault: Fault
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Nobody waits for its answer any more."""


class Faulting:
    """The hooks of live flows with a fault: an add-on beside the one that decides."""

    name = "rewind_faulting"

    def __init__(self) -> None:
        self._flows: dict[str, _Faulted] = {}

    def expect(self, flow: http.HTTPFlow, fault: Fault) -> None:
        """Give the answer of a flow that is about to go upstream its fault."""
        self._flows[flow.id] = _Faulted(flow, fault)
        if fault.cut_after is not None:
            # Events cannot be told apart in a compressed body. The answer is not recorded either way.
            flow.request.headers["accept-encoding"] = "identity"

    async def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Hold the answer back, and let it through up to its cut."""
        faulted = self._flows.get(flow.id)
        if faulted is None or flow.response is None:
            return
        fault = faulted.fault
        if fault.stall:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(faulted.over.wait(), fault.stall)
        if fault.cut_after is not None and flow.response is not None:
            streamed = answer_form(flow.response.headers.get("content-type", ""), "whole") == "sse"
            flow.response.stream = _CutStream(flow, Cut(fault.cut_after, streamed=streamed))

    def response(self, flow: http.HTTPFlow) -> None:
        """The answer is over."""
        self._over(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """It broke off."""
        self._over(flow)

    def client_disconnected(self, client: connection.Client) -> None:
        """Stall nobody who has left."""
        for faulted in list(self._flows.values()):
            if faulted.flow.client_conn.id == client.id:
                self._over(faulted.flow)

    def done(self) -> None:
        """Stall nobody any longer."""
        for faulted in list(self._flows.values()):
            self._over(faulted.flow)

    def _over(self, flow: http.HTTPFlow) -> None:
        faulted = self._flows.pop(flow.id, None)
        if faulted is not None:
            faulted.over.set()


class _CutStream:
    """A `flow.response.stream` callable that breaks the answer off where it is to be cut."""

    def __init__(self, flow: http.HTTPFlow, cut: Cut) -> None:
        self._flow = flow
        self._cut = cut
        self._broken = False

    def __call__(self, data: bytes) -> list[bytes]:
        kept = self._cut.keep(data)
        if self._cut.over and not self._broken:
            self._broken = True
            _break_off(self._flow)
        return [kept] if kept else []  # an empty chunk would end a chunked body


def _break_off(flow: http.HTTPFlow) -> None:
    """Break an answer off as a provider does whose connection dies.

    Over HTTP/2 the provider's connection is other answers' too. It stays, and mitmproxy breaks this answer
    off when the provider has ended it; until then the client hears nothing more.
    """
    flow.kill()
    proxyserver = ctx.master.addons.get("proxyserver")
    handler = proxyserver.connections.get(flow.client_conn.id)
    transport = handler.transports.get(flow.server_conn) if handler else None
    if transport is not None and transport.writer is not None and flow.server_conn.alpn != b"h2":
        transport.writer.close()
