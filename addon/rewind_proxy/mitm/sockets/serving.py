"""Model sockets that are served here (`rewind_socket = serve`): they lead to an origin in this process.

mitmproxy cannot answer an upgrade by itself. So the flow is sent to a port of ours on loopback, which speaks
WebSocket; a token that works once tells it which upgrade has come, and keeps everybody else out. The rest of
mitmproxy (its flow, its list of messages) sees a socket like any other.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import wsproto
from mitmproxy import connection, http
from wsproto import events
from wsproto.utilities import RemoteProtocolError

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.decisions import Forward, Header, Serve
from rewind_proxy.engine import SOCKET_STATUS
from rewind_proxy.errors import traceback_of
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.mitm import labels, traffic
from rewind_proxy.mitm.sockets.dial import OWN_HEADERS, Declined, Opened, Provider, dial
from rewind_proxy.mitm.sockets.live import Opening, Owner
from rewind_proxy.mitm.sockets.peer import Peer
from rewind_proxy.mitm.sockets.turns import SocketTurns
from rewind_proxy.recording import passed_step
from rewind_proxy.report import SERVED
from rewind_proxy.wire import ADAPTERS, Host

logger = logging.getLogger(__name__)

TOKEN_HEADER = "x-rewind-socket"  # noqa: S105  # its name
_LOOPBACK = "127.0.0.1"
_MAX_HEAD = 1 << 17
_ASKS_WITHIN = 10.0
"""Seconds that a connection has to ask: another process may have found the port."""
_JSON: tuple[Header, ...] = (("content-type", "application/json"),)
_NO_SOCKETS = dumps(ADAPTERS["responses"].error(SOCKET_STATUS, "rewind: the provider has no WebSockets."))


@dataclass(slots=True)
class _Led:
    """A flow that leads to our origin."""

    opening: Opening
    address: traffic.Address
    """The client's own."""


class Sockets:
    """The origin, and the hooks of the flows that lead to it."""

    name = "rewind_sockets"

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._led: dict[str, _Led] = {}
        """By flow."""
        self._awaited: dict[str, Opening] = {}
        """By token."""
        self._port = 0
        self._starting: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._open: set[SocketTurns] = set()
        self._without: set[tuple[str, int]] = set()
        """Providers that have no sockets: their clients are sent to POST at once."""

    # -- the flow ------------------------------------------------------------------------------------------

    def serve(
        self, flow: http.HTTPFlow, serve: Serve, host: Host, session: str, *, replay_only: bool
    ) -> None:
        """Send an upgrade to our origin. `replay_only`: the client asked for replay mode by a header."""
        upgrade = traffic.raw_request(flow)
        base_url = self._owner.upstreams.of(host, flow.request.host) or ""
        provider = _provider(flow, upgrade, base_url)
        opening = Opening(serve, upgrade, host, session, replay_only, provider)
        if provider.address in self._without and opening.mode(self._owner) != "replay":
            traffic.answer(flow, SOCKET_STATUS, _JSON, _NO_SOCKETS)
            self._note(opening, SOCKET_STATUS, "the provider has no WebSockets")
            return
        self._listen()
        token = secrets.token_hex(16)
        self._awaited[token] = opening
        self._led[flow.id] = _Led(opening, traffic.address_of(flow))
        labels.label_under_way(flow, "passed", "socket")
        self._owner.mask(flow)  # the origin needs no credentials
        flow.request.headers[TOKEN_HEADER] = token
        # The `.data` ones, so that the Host header stays (MITMPROXY.md).
        request = flow.request.data
        request.scheme, request.host, request.port = b"http", _LOOPBACK, self._port
        flow.server_conn = connection.Server(address=(_LOOPBACK, self._port))

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """The origin has answered: show the flow under its own address again."""
        self._restore(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """The origin was not reached, or the client left first."""
        self._restore(flow)

    def _restore(self, flow: http.HTTPFlow) -> None:
        led = self._led.pop(flow.id, None)
        if led is None:
            return
        token = flow.request.headers.pop(TOKEN_HEADER, "")
        if self._awaited.pop(token, None) is not None:
            self._note(led.opening, None, "the socket was not opened")
        request, address = flow.request.data, led.address
        request.scheme, request.host, request.port = address.scheme.encode(), address.host, address.port

    def strayed(self, flow: http.HTTPFlow) -> bool:
        """Whether a flow that is to be served here no longer leads here."""
        request = flow.request
        return flow.id in self._led and (request.host, request.port) != (_LOOPBACK, self._port)

    def owns(self, server: connection.Server) -> bool:
        """Whether a connection leads to our origin, and by no other way."""
        return self._port != 0 and server.via is None and server.address == (_LOOPBACK, self._port)

    def end(self, why: str) -> None:
        """The store is about to be closed: turns under way are not recorded."""
        for turns in self._open:
            turns.end(why)

    # -- the origin ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Open the port at the first use, at once: connections wait in its queue until they are accepted."""
        if self._port:
            return
        listener = socket.create_server((_LOOPBACK, 0), backlog=128)
        self._port = listener.getsockname()[1]
        self._starting = asyncio.get_running_loop().create_task(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._connected, sock=listener)

    def done(self) -> None:
        """Accept no more, and break off what is open: after a live reload another add-on decides."""
        if self._server is not None:
            self._server.close()
        for turns in self._open:
            turns.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, RemoteProtocolError) as error:
            logger.info("rewind: a socket broke: %s", type(error).__name__)
        except Exception as error:
            logger.error("rewind: failed on a socket\n%s", traceback_of(error))
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        async with asyncio.timeout(_ASKS_WITHIN):
            request = await _request(reader, accepted)
        headers = {name: value.decode("latin-1") for name, value in request.extra_headers}
        opening = self._awaited.pop(headers.get(TOKEN_HEADER.encode(), ""), None)
        if opening is None:
            return
        upstream: Opened | None = None
        if opening.mode(self._owner) in ("record", "passthrough"):
            # Every turn goes to the provider: its own answer to the upgrade is the client's.
            answer = await dial(opening.provider)
            if isinstance(answer, Declined):
                self._note(opening, answer.status, "the provider opened no socket")
                writer.write(_declined(accepted, answer))
                await writer.drain()
                return
            upstream = answer
        writer.write(accepted.send(_acceptance(opening, upstream)))
        await writer.drain()
        self._note(opening, 101, SERVED)
        turns = SocketTurns(
            Peer(reader, writer, accepted),
            opening,
            self._owner,
            upstream.peer if upstream else None,
            self._without,
        )
        self._open.add(turns)
        try:
            await turns.run()
        finally:
            self._open.discard(turns)

    def _note(self, opening: Opening, status: int | None, reason: str) -> None:
        serve, runtime = opening.serve, self._owner.runtime
        if runtime is not None:
            forward = Forward(serve.reading, serve.step, "socket", record=False, headers=())
            latency = round((time.time() - serve.step.started_at) * 1000)
            runtime.note(passed_step(forward, ("", "", ""), status=status, latency_ms=latency, reason=reason))


def _provider(flow: http.HTTPFlow, upgrade: RawRequest, base_url: str) -> Provider:
    request = flow.request
    own = f"{request.scheme}://{_bracketed(request.host)}:{request.port}"
    url = urlsplit((base_url or own).rstrip("/") + upgrade.path)
    headers: list[Header] = []
    for name, value in upgrade.headers:
        lower = name.lower()
        if lower not in OWN_HEADERS and lower != TOKEN_HEADER:
            headers.append((name, value))
    return Provider(
        url=url,
        host_header=(url.netloc if base_url else "") or upgrade.header("host") or request.pretty_host,
        headers=tuple(headers),
        subprotocols=tuple(
            filter(None, (p.strip() for p in upgrade.header("sec-websocket-protocol").split(",")))
        ),
        compress="permessage-deflate" in upgrade.header("sec-websocket-extensions"),
        via=flow.server_conn.via,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _request(reader: asyncio.StreamReader, accepted: wsproto.WSConnection) -> events.Request:
    seen = 0
    while True:
        data = await reader.read(1 << 16)
        seen += len(data)
        if not data or seen > _MAX_HEAD:
            raise ConnectionError("no upgrade came")
        accepted.receive_data(data)
        for event in accepted.events():
            if isinstance(event, events.Request):
                return event


def _acceptance(opening: Opening, upstream: Opened | None) -> events.AcceptConnection:
    headers: list[tuple[bytes, bytes]] = [(b"x-rewind-step", opening.serve.step.id.encode())]
    subprotocol = upstream.subprotocol if upstream else next(iter(opening.provider.subprotocols), None)
    if subprotocol is not None:
        # As a header: wsproto would look for it among those that came here, which are masked.
        headers.append((b"sec-websocket-protocol", subprotocol.encode("utf-8", "surrogateescape")))
    if upstream is not None:
        headers += [pair for pair in upstream.headers if pair[0].decode("latin-1").lower() not in OWN_HEADERS]
    # No compression on the way through this machine: the client may offer it, and need not get it.
    return events.AcceptConnection(extra_headers=headers)


def _declined(accepted: wsproto.WSConnection, answer: Declined) -> bytes:
    own = OWN_HEADERS - {"content-encoding"}
    headers = [pair for pair in answer.headers if pair[0].decode("latin-1").lower() not in own]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    rejection = events.RejectConnection(status_code=answer.status, headers=headers, has_body=True)
    return accepted.send(rejection) + accepted.send(events.RejectData(answer.body))
