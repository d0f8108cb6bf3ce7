"""Answers that take their time: `rewind_pace`, and what `rewind_fault` makes of a replayed answer.

An answer that is due at once is a made response, as ever. Any other comes from the loopback origin: the flow
is sent there instead of to its provider, with a request of ours in place of the client's, which holds
credentials and may be long. The client's own stands in the flow again as soon as the answer begins.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mitmproxy import connection, http
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from rewind_proxy.engine import Fail, Header, Replay
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.mitm import traffic
from rewind_proxy.mitm.origin import Delivery, Origin, Script
from rewind_proxy.pace import Cue, Pace, cues, faulted

logger = logging.getLogger(__name__)

SOON = 0.001
"""Seconds. What is due so soon is sent at once."""


@dataclass(frozen=True, slots=True)
class _Paced:
    """A flow whose answer comes from a delivery, and what the flow has of its own."""

    flow: http.HTTPFlow
    delivery: Delivery
    request: http.Request
    response: http.Response
    server: connection.Server
    """Which nobody has opened."""
    target: tuple[str, str, int]
    """Scheme, host and port of the request."""


class Pacing:
    """The hooks of paced flows: an add-on beside the one that decides."""

    name = "rewind_pacing"

    def __init__(self) -> None:
        self._origin = Origin()
        self._flows: dict[str, _Paced] = {}

    def replay(self, flow: http.HTTPFlow, replay: Replay, headers: tuple[Header, ...], pace: Pace) -> float:
        """Answer a flow from the store at a pace, with the fault of its turn; as `answer`."""
        answer = replay.answer
        due = cues(answer.chunks, len(answer.body), pace)
        if replay.fault is not None:
            content_type = next((value for name, value in headers if name == "content-type"), "")
            streamed = answer_form(content_type, "whole") == "sse"
            due = faulted(due, answer.body, replay.fault, streamed=streamed)
        return self.answer(flow, replay.cassette.answer.status, headers, answer.body, due)

    def fail(self, flow: http.HTTPFlow, fail: Fail) -> float:
        """Answer a flow with an error on purpose; as `answer`."""
        return self.answer(flow, fail.status, fail.headers, fail.body, ((fail.fault.stall, len(fail.body)),))

    def answer(
        self, flow: http.HTTPFlow, status: int, headers: Iterable[Header], body: bytes, cues: Sequence[Cue]
    ) -> float:
        """Answer a flow by `cues`, which cut the answer where they end before it; seconds until the last.

        Where the system has no socket left the answer comes whole and at once.
        """
        traffic.answer(flow, status, headers, body)
        last, end = cues[-1]
        at_once = last <= SOON and end == len(body)
        if at_once or not body or flow.request.method == "HEAD" or flow.response is None:
            return 0.0
        try:
            delivery = self._origin.open(Script(body, cues))
        except OSError as error:
            logger.warning("rewind: an answer comes at once, not at its pace: %s", error)
            return 0.0
        request = flow.request
        target = (request.scheme, request.host, request.port)
        self._flows[flow.id] = _Paced(flow, delivery, request, flow.response, flow.server_conn, target)
        flow.response = None
        # A server of its own, so that no `via` of the flow's leads to a corporate proxy. The fields of `data`
        # are those that are dialled; what is shown, the Host header and `:authority`, stays.
        flow.server_conn = connection.Server(address=delivery.address)
        request.data.scheme, request.data.host, request.data.port = b"http", *delivery.address
        return last

    def answers(self, flow: http.HTTPFlow) -> bool:
        """Whether a flow's answer is on its way."""
        return flow.id in self._flows

    def strayed(self, flow: http.HTTPFlow) -> bool:
        """Whether a flow whose answer is on its way no longer leads to it."""
        paced = self._flows.get(flow.id)
        return paced is not None and (flow.request.host, flow.request.port) != paced.delivery.address

    def owns(self, server: connection.Server) -> bool:
        """Whether a connection leads to an answer of ours, and by no other way."""
        return server.via is None and self._origin.owns(server.address)

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Ask the origin, once it is the one that is connected, without the client's headers and body."""
        for paced in self._flows.values():
            if paced.delivery.address == data.server.address:
                host, port = paced.delivery.address
                url = f"http://{host}:{port}/{paced.delivery.token}"
                paced.flow.request = http.Request.make("GET", url, headers=[(b"connection", b"close")])
                return

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """The answer begins: it has the recorded status and headers, and its pieces go on as they come."""
        paced = self._flows.get(flow.id)
        if paced is not None:
            _restore_request(paced)
            flow.response = paced.response
            flow.response.stream = True

    def response(self, flow: http.HTTPFlow) -> None:
        """The answer is over."""
        self._over(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """The client left, or the answer was cut."""
        self._over(flow)

    def done(self) -> None:
        """End what is still on its way; it is saved with the client's request."""
        for paced in self._flows.values():
            paced.flow.request = paced.request
        self._origin.close()

    def _over(self, flow: http.HTTPFlow) -> None:
        paced = self._flows.pop(flow.id, None)
        if paced is not None:
            _restore_request(paced)
            flow.server_conn = paced.server
            self._origin.end(paced.delivery)


def _restore_request(paced: _Paced) -> None:
    paced.flow.request = request = paced.request
    scheme, request.data.host, request.data.port = paced.target
    request.data.scheme = scheme.encode()
