"""One end of a WebSocket over asyncio streams: whole messages in and out (RFC 6455, by wsproto)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

import wsproto
from wsproto import events
from wsproto.connection import ConnectionState
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

_READ = 1 << 16
ABNORMAL = int(CloseReason.ABNORMAL_CLOSURE)
"""The connection ended without a closing frame; no frame can say so."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The other side has closed the socket, or is gone."""

    code: int
    reason: str


Message: TypeAlias = str | bytes | Closed
"""A text message, a binary message, or the end."""


class Peer:
    """The other side of an open WebSocket. Pings are answered here; compression is undone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: wsproto.WSConnection
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = connection
        self._arrived: deque[Message] = deque()
        self._pieces: list[str] | list[bytes] = []

    async def receive(self) -> Message:
        """The next message. After `Closed` there is none."""
        while not self._arrived:
            self._take()
            if self._arrived:
                break
            data = b""
            with contextlib.suppress(OSError):  # a reset is an end as well
                data = await self._reader.read(_READ)
            if not data:
                return Closed(ABNORMAL, "")
            try:
                self._connection.receive_data(data)
            except RemoteProtocolError:
                return Closed(ABNORMAL, "")
        return self._arrived.popleft()

    def _take(self) -> None:
        try:
            for event in self._connection.events():
                match event:
                    case events.TextMessage() | events.BytesMessage():
                        self._pieces.append(event.data)  # type: ignore[arg-type]  # one kind to a message
                        if event.message_finished:
                            empty = "" if isinstance(event, events.TextMessage) else b""
                            self._arrived.append(empty.join(self._pieces))  # type: ignore[arg-type]
                            self._pieces = []
                    case events.Ping():
                        self._write(event.response())
                    case events.CloseConnection():
                        self._arrived.append(Closed(int(event.code), event.reason or ""))
                        if self._connection.state is ConnectionState.REMOTE_CLOSING:
                            self._write(event.response())
        except RemoteProtocolError:
            self._arrived.append(Closed(ABNORMAL, ""))

    async def send(self, message: str | bytes) -> None:
        """Send a whole message. Nothing is sent to a side that is closing: its end will be received."""
        if isinstance(message, str):
            self._write(events.TextMessage(message))
        else:
            self._write(events.BytesMessage(message))
        with contextlib.suppress(OSError):  # it is gone, and `receive` says so
            await self._writer.drain()

    async def close(self, code: int, reason: str = "") -> None:
        """Close the socket, as a side does that was closed with this code; an abnormal end is repeated."""
        if code == CloseReason.NO_STATUS_RCVD:
            self._write(events.CloseConnection(CloseReason.NO_STATUS_RCVD))
        elif code != ABNORMAL:
            self._write(events.CloseConnection(code, reason or None))
        with contextlib.suppress(OSError):
            await self._writer.drain()
        self.abort()

    def abort(self) -> None:
        """Close the connection without a word."""
        self._writer.close()

    def _write(self, event: events.Event) -> None:
        if self._writer.is_closing():
            return
        with contextlib.suppress(LocalProtocolError):  # the socket is closing
            self._writer.write(self._connection.send(event))
