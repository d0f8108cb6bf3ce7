"""Faults on purpose in live answers (`rewind_fault`): a stall before the first byte, a cut in the stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from mitmproxy import connection, http

from rewind_proxy.faults import Fault
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.mitm.connections import close_provider
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
        self._under_way: dict[str, http.HTTPFlow] = {}
        """Flows that a provider answers, or is about to."""
        self._cut: dict[str, http.HTTPFlow] = {}
        """Those of them that are cut, and whose connection is other answers' too."""

    def expect(self, flow: http.HTTPFlow, fault: Fault) -> None:
        """Give the answer of a flow that is about to go upstream its fault."""
        self._flows[flow.id] = _Faulted(flow, fault)
        if fault.cut_after is not None:
            # Events cannot be told apart in a compressed body. The answer is not recorded either way.
            flow.request.headers["accept-encoding"] = "identity"

    def request(self, flow: http.HTTPFlow) -> None:
        """A flow that is not answered yet goes to its provider."""
        if flow.response is None and flow.error is None:
            self._under_way[flow.id] = flow

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
            flow.response.stream = _CutStream(
                Cut(fault.cut_after, streamed=streamed), lambda: self._break_off(flow)
            )

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
        self._under_way.pop(flow.id, None)
        self._cut.pop(flow.id, None)
        for cut in self._cut.values():
            self._break_connection(cut)

    def _break_off(self, flow: http.HTTPFlow) -> None:
        """Break an answer off as a provider does whose connection dies: mitmproxy ends its flow for that.

        Over HTTP/2 that connection may carry other answers too. Then it stays until they are over, or until
        the provider has ended this one; meanwhile the client hears nothing more.
        """
        flow.kill()
        self._cut[flow.id] = flow
        self._break_connection(flow)

    def _break_connection(self, flow: http.HTTPFlow) -> None:
        """Close the provider's connection, if all that is under way on it is cut."""
        others = (each for each in self._under_way.values() if each.id not in self._cut)
        if any(other.server_conn is flow.server_conn for other in others):
            return
        close_provider(flow)


class _CutStream:
    """A `flow.response.stream` callable that lets an answer through up to its cut, and calls once there."""

    def __init__(self, cut: Cut, reached: Callable[[], None]) -> None:
        self._cut = cut
        self._reached = reached
        self._told = False

    def __call__(self, data: bytes) -> list[bytes]:
        kept = self._cut.keep(data)
        if self._cut.over and not self._told:
            self._told = True
            self._reached()
        return [kept] if kept else []  # an empty chunk would end a chunked body
