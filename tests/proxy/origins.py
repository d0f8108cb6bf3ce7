"""Servers on loopback that are no provider: origins with a CA of their own, a corporate proxy."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from mitmproxy.certs import CertStore

from support.client import tunnel
from support.proxies import Proxy

Serve = Callable[[socket.socket], None]
_CONNECT = re.compile(rb"CONNECT (\S+) HTTP/1\.1\r\n")
_PEM = (
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate that no proxy has made, and the CA that vouches for it."""

    ca: Path
    context: ssl.SSLContext

    @classmethod
    def make(cls, folder: Path, *names: str) -> Identity:
        """A new CA with one certificate for these names."""
        folder.mkdir()
        entry = CertStore.from_store(folder, "mitmproxy", 2048).get_cert(
            names[0], [x509.DNSName(name) for name in names]
        )
        chain = folder / "chain.pem"
        chain.write_bytes(entry.privatekey.private_bytes(*_PEM) + entry.cert.to_pem())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return cls(folder / "mitmproxy-ca-cert.pem", context)

    def trust(self) -> ssl.SSLContext:
        """What a client needs that trusts this CA and no other."""
        return ssl.create_default_context(cafile=str(self.ca))


@contextmanager
def origin(serve: Serve, identity: Identity | None = None) -> Iterator[int]:
    """A server on loopback that hands each connection to `serve`, after TLS if it has an identity."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, serve, identity), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, serve: Serve, identity: Identity | None) -> None:
    with suppress(OSError):  # the listener was closed
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, serve, identity), daemon=True).start()


def _serve(connection: socket.socket, serve: Serve, identity: Identity | None) -> None:
    with connection, suppress(OSError):  # the other side left, or did not like our certificate
        if identity is None:
            serve(connection)
            return
        with identity.context.wrap_socket(connection, server_side=True) as secured:
            serve(secured)


def echo(connection: socket.socket) -> None:
    """Send back whatever comes."""
    while data := connection.recv(1 << 16):
        connection.sendall(data)


def through_tls(proxy: Proxy, host: str, port: int, trust: ssl.SSLContext, sent: bytes) -> bytes:
    """What the TLS server at the other end of a tunnel answers first."""
    status, raw = tunnel(proxy, host, port)
    assert status == 200
    with raw, trust.wrap_socket(raw, server_hostname=host) as connection:
        connection.sendall(sent)
        return connection.recv(1 << 16)


@dataclass(slots=True)
class CorporateProxy:
    """A proxy that connects every name to one port on loopback, and keeps what it was asked for."""

    to: Mapping[str, int]
    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    """The heads of the requests it got."""

    @contextmanager
    def running(self) -> Iterator[CorporateProxy]:
        """Listen."""
        with origin(self._serve) as self.port:
            yield self

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        self.asked.append(head)
        found = _CONNECT.match(head)
        name = found[1].decode().rpartition(":")[0] if found else ""
        if name not in self.to:
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self.to[name])) as onward:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(onward, connection), daemon=True)
            back.start()
            _copy(connection, onward)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # one side is gone
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
