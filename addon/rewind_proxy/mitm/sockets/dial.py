"""The provider's end of a served socket: it is opened here, as mitmproxy would have opened it.

mitmproxy has connected the client's socket to our own origin, so the connection to the provider is ours to
make: through the same proxy, trusting the same certificates.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult

import certifi
import wsproto
from mitmproxy import ctx
from mitmproxy.net import server_spec
from wsproto import events
from wsproto.extensions import PerMessageDeflate
from wsproto.utilities import RemoteProtocolError

from rewind_proxy.decisions import Header
from rewind_proxy.mitm.sockets.peer import Peer

TIMEOUT = 60
"""Seconds for the connection and the answer to the upgrade."""
_READ = 1 << 16
_MAX_HEAD = 1 << 16
_MAX_REFUSAL = 1 << 20
# What is said of one connection, and what a handshake says by itself (RFC 9110 §7.6.1, RFC 6455 §4.1).
OWN_HEADERS = frozenset(
    "host connection upgrade keep-alive proxy-connection proxy-authorization te trailer transfer-encoding "
    "content-length content-encoding sec-websocket-key sec-websocket-version sec-websocket-extensions "
    "sec-websocket-protocol sec-websocket-accept".split()
)

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a socket goes, and how."""

    url: SplitResult
    """`http` or `https`, host, port, and the path with its query."""
    host_header: str
    headers: tuple[Header, ...] = field(repr=False)
    """The client's own, without those of a handshake."""
    subprotocols: tuple[str, ...]
    compress: bool
    """Whether the client offers permessage-deflate."""
    via: server_spec.ServerSpec | None
    """The proxy that mitmproxy would go through."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.url.hostname or "", self.url.port or (443 if self.url.scheme == "https" else 80)


@dataclass(frozen=True, slots=True)
class Opened:
    """The provider accepted."""

    peer: Peer
    headers: tuple[tuple[bytes, bytes], ...]
    subprotocol: str | None


@dataclass(frozen=True, slots=True)
class Declined:
    """The provider answered with something else than a socket, or not at all (status 502)."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


async def dial(provider: Provider) -> Opened | Declined:
    """Open the provider's socket. Never in replay: the caller sees to that."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await _connect(provider)
            answer = await _shake(provider, reader, writer)
    except (OSError, TimeoutError, RemoteProtocolError, EOFError, asyncio.LimitOverrunError) as error:
        text = f"rewind: no socket to {provider.address[0]} ({type(error).__name__}: {error})"
        answer = Declined(502, ((b"content-type", b"text/plain; charset=utf-8"),), text.encode())
    if isinstance(answer, Declined) and writer is not None:
        writer.close()
    return answer


async def _connect(provider: Provider) -> Streams:
    host, port = provider.address
    scheme, first = provider.via or ("tcp", (host, port))
    reader, writer = await asyncio.open_connection(*first)
    try:
        if scheme == "https":
            await writer.start_tls(_trust(), server_hostname=first[0])
        if provider.via is not None:
            await _tunnel(reader, writer, f"{host}:{port}")
        if provider.url.scheme == "https":
            await writer.start_tls(_trust(), server_hostname=host)
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
    auth = ctx.options.upstream_auth if "upstream_auth" in ctx.options else None
    head = f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n"
    if auth:
        head += f"Proxy-Authorization: Basic {base64.b64encode(auth.encode()).decode()}\r\n"
    writer.write(f"{head}\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    status = answer.split(None, 2)[1:2]
    if status != [b"200"]:
        raise ConnectionError(f"the proxy answered {b''.join(status)[:3].decode('ascii', 'replace')}")


def _trust() -> ssl.SSLContext:
    """As mitmproxy verifies: by its options, else by certifi's roots."""
    options = ctx.options
    file = options.ssl_verify_upstream_trusted_ca
    folder = options.ssl_verify_upstream_trusted_confdir
    if file is None and folder is None:
        file = certifi.where()
    context = ssl.create_default_context(
        cafile=file and str(Path(file).expanduser()), capath=folder and str(Path(folder).expanduser())
    )
    if options.ssl_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _shake(
    provider: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Opened | Declined:
    connection = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
    path = provider.url.path + (f"?{provider.url.query}" if provider.url.query else "")
    request = events.Request(
        host=provider.host_header,
        target=path,
        extensions=[PerMessageDeflate()] if provider.compress else [],
        subprotocols=list(provider.subprotocols),
        extra_headers=[
            (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
            for name, value in provider.headers
        ],
    )
    writer.write(connection.send(request))
    declined: events.RejectConnection | None = None
    body, seen = b"", 0
    while True:
        data = await reader.read(_READ)
        seen += len(data)
        if not data and declined is None:
            raise ConnectionError("the provider closed the connection")
        connection.receive_data(data or None)
        for event in connection.events():
            match event:
                case events.AcceptConnection():
                    peer = Peer(reader, writer, connection)
                    return Opened(peer, tuple(event.extra_headers), event.subprotocol)
                case events.RejectConnection():
                    declined = event
                case events.RejectData():
                    body += event.data
        if declined is not None and (
            connection.state is wsproto.connection.ConnectionState.CLOSED or not data
        ):
            return Declined(declined.status_code, tuple(declined.headers), body)
        if seen > (_MAX_HEAD if declined is None else _MAX_REFUSAL):
            raise ConnectionError("the provider's answer to the upgrade is too long")
