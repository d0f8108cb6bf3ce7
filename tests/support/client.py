"""A plain HTTP client behind a proxy: it sees bytes, lengths and times of arrival."""

from __future__ import annotations

import http.client
import json
import socket
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rewind_proxy.canonical.model import JsonObject, JsonValue
from support.proxies import Proxy


@dataclass(frozen=True, slots=True)
class Got:
    """An answer as it arrived."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """Still compressed if it was."""
    arrivals: tuple[tuple[float, int], ...]
    """Seconds since the request was sent, and the bytes that arrived then."""
    cut: bool
    """Whether the connection broke before the announced end."""

    @property
    def json(self) -> JsonValue:
        """The body as JSON."""
        value: JsonValue = json.loads(self.body)
        return value


class Client:
    """One kept connection through a proxy to one host."""

    def __init__(
        self,
        proxy: Proxy,
        host: str,
        *,
        tls: bool = True,
        port: int | None = None,
        tunnel_headers: Mapping[str, str] | None = None,
    ) -> None:
        self._prefix = ""
        self._connection: http.client.HTTPConnection
        if tls:
            self._connection = http.client.HTTPSConnection(
                "127.0.0.1", proxy.port, context=proxy.trust(), timeout=30
            )
            self._connection.set_tunnel(host, port or 443, tunnel_headers)
        else:
            self._connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
            self._prefix = f"http://{host}" + (f":{port}" if port else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def post(self, path: str, body: JsonObject | bytes, headers: Mapping[str, str] | None = None) -> Got:
        """Send a body, JSON unless it is bytes."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, sent, {"content-type": "application/json", **(headers or {})})

    def begin(self, path: str, body: JsonObject, headers: Mapping[str, str] | None = None) -> None:
        """Send a JSON body, and wait for nothing."""
        self._connection.request("POST", self._prefix + path, json.dumps(body).encode(), dict(headers or {}))

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Got:
        """Ask for something."""
        return self.request("GET", path, None, headers or {})

    def request(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Got:
        """Send a request, and read what comes until its end or a cut."""
        begun = time.monotonic()
        self._connection.request(method, self._prefix + path, body, dict(headers))
        return self.answer(begun)

    def answer(self, begun: float | None = None) -> Got:
        """Read what comes for the request that was sent, at `begun` or just now, until its end or a cut."""
        begun = time.monotonic() if begun is None else begun
        response = self._connection.getresponse()
        parts: list[bytes] = []
        arrivals: list[tuple[float, int]] = []
        cut = False
        try:
            while part := response.read1(1 << 20):
                parts.append(part)
                arrivals.append((time.monotonic() - begun, len(part)))
        except (http.client.IncompleteRead, ConnectionError):
            cut = True
        cut = cut or bool(response.length)
        response.close()  # read1 leaves a body with a length open at its end
        names = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, names, b"".join(parts), tuple(arrivals), cut)


def tunnel(proxy: Proxy, host: str, port: int, user: str = "") -> tuple[int, socket.socket]:
    """Raw TCP through CONNECT: the status, and the socket to speak on, which the caller closes."""
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
    credentials = b64encode(f"{user}:x".encode()).decode()
    auth = f"Proxy-Authorization: Basic {credentials}\r\n" if user else ""
    connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{auth}\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        received = connection.recv(1)
        assert received, f"the proxy closed the connection after {head!r}"
        head += received
    return int(head.split()[1]), connection
