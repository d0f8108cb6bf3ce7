"""A WebSocket client behind a proxy: it sees messages, closes and the answer to its upgrade."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import wsproto
from wsproto import events
from wsproto.extensions import PerMessageDeflate
from wsproto.frame_protocol import CloseReason

from support.client import tunnel
from support.proxies import Proxy


@dataclass(frozen=True, slots=True)
class Closed:
    """The other side closed."""

    code: int
    reason: str


def _named(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in headers}


class Socket:
    """A WebSocket to a known host, or what the upgrade was answered with instead (`status`, `body`)."""

    def __init__(
        self,
        proxy: Proxy,
        path: str = "/v1/responses",
        *,
        host: str = "api.openai.com",
        headers: Mapping[str, str] | None = None,
        subprotocols: Sequence[str] = (),
        compress: bool = False,
        user: str = "",
    ) -> None:
        _, raw = tunnel(proxy, host, 443, user)
        self._connection = proxy.trust().wrap_socket(raw, server_hostname=host)
        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self._arrived: deque[str | bytes | Closed | events.Pong] = deque()
        self.headers: dict[str, str] = {}
        """Of the answer to the upgrade, names in lower case."""
        self.subprotocol: str | None = None
        self.status = 101
        self.body = b""
        extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        extensions = [PerMessageDeflate()] if compress else []
        request = events.Request(
            host=host,
            target=path,
            extra_headers=extra,
            extensions=extensions,
            subprotocols=list(subprotocols),
        )
        self._connection.sendall(self._ws.send(request))
        self._shake()

    def _shake(self) -> None:
        answered = False
        while not answered:
            self._ws.receive_data(self._connection.recv(1 << 16) or None)
            for event in self._ws.events():
                match event:
                    case events.AcceptConnection():
                        self.headers, answered = _named(event.extra_headers), True
                        self.subprotocol = event.subprotocol
                    case events.RejectConnection():
                        self.status, self.headers = event.status_code, _named(event.headers)
                    case events.RejectData():
                        self.body += event.data
                        answered = event.body_finished

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def send(self, message: str | bytes | Mapping[str, Any]) -> None:
        """Send a message; an object as JSON."""
        if isinstance(message, Mapping):
            message = json.dumps(message)
        event = events.TextMessage(message) if isinstance(message, str) else events.BytesMessage(message)
        self._connection.sendall(self._ws.send(event))

    def ping(self, payload: bytes) -> None:
        """Ask whether anybody is there."""
        self._connection.sendall(self._ws.send(events.Ping(payload)))

    def close(self, code: int = 1000) -> None:
        """Close the socket, and wait for the other side to do so."""
        self._connection.sendall(self._ws.send(events.CloseConnection(code)))
        while self._connection.recv(1 << 16):
            pass

    def receive(self) -> str | bytes | Closed | events.Pong:
        """The next message, pong or end."""
        pieces: list[Any] = []
        while not self._arrived:
            data = self._connection.recv(1 << 16)
            if not data:
                return Closed(int(CloseReason.ABNORMAL_CLOSURE), "")
            self._ws.receive_data(data)
            for event in self._ws.events():
                match event:
                    case events.TextMessage() | events.BytesMessage():
                        pieces.append(event.data)
                        if event.message_finished:
                            self._arrived.append(type(event.data)().join(pieces))
                            pieces = []
                    case events.Ping():
                        self._connection.sendall(self._ws.send(event.response()))
                    case events.Pong():
                        self._arrived.append(event)
                    case events.CloseConnection():
                        self._arrived.append(Closed(int(event.code), event.reason or ""))
        return self._arrived.popleft()

    def event(self) -> dict[str, Any]:
        """The next message, which is an event."""
        message = self.receive()
        assert isinstance(message, str), message
        event: dict[str, Any] = json.loads(message)
        return event

    def turn(self, frame: str | Mapping[str, Any]) -> list[dict[str, Any]]:
        """Send a frame; all events to the last one of its answer."""
        self.send(frame)
        return self.rest()

    def rest(self) -> list[dict[str, Any]]:
        """All events to the last one of an answer."""
        got: list[dict[str, Any]] = []
        while not got or got[-1]["type"] not in (
            "response.completed", "response.incomplete", "response.failed", "error",
        ):  # fmt: skip
            got.append(self.event())
        return got
