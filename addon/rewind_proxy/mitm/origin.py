"""The loopback origin: a server in our own process that sends an answer piece by piece.

mitmproxy sends a response that an add-on made at once, and has no pacing; what streams comes from a server.
So a paced flow is given one: a port of its own on 127.0.0.1, for one connection. mitmproxy opens at most five
connections of one client to one address: a port for each answer lets any number of them run side by side.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rewind_proxy.errors import traceback_of
from rewind_proxy.pace import Cue

logger = logging.getLogger(__name__)

Address: TypeAlias = tuple[str, int]

LOOPBACK = "127.0.0.1"
_CONNECTS_WITHIN = 30.0
"""Seconds until a delivery that mitmproxy never called is given up."""
_ASKS_WITHIN = 2.0
"""Seconds that a connection has to name its token: another process may have found the port."""
_LONGEST_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Script:
    """What is sent, and when."""

    body: bytes
    cues: Sequence[Cue]
    """Those of `pace.cues`; when the last one does not end the body, the answer is cut there."""


@dataclass(slots=True)
class Delivery:
    """One answer on its way, on a port of its own."""

    script: Script
    begun: float
    """When the request came, on the loop's clock."""
    listener: socket.socket
    address: Address
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What the path of the one request that is answered must be: the port is open to every process here."""


class Origin:
    """All the deliveries of one running add-on. It belongs to the event loop."""

    def __init__(self) -> None:
        self._tasks: dict[Address, asyncio.Task[None]] = {}

    def open(self, script: Script) -> Delivery:
        """A delivery that waits for its request. Raises `OSError` when the system has no socket left."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.bind((LOOPBACK, 0))
            listener.listen(1)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        loop = asyncio.get_running_loop()
        delivery = Delivery(script, loop.time(), listener, listener.getsockname())
        task = loop.create_task(_serve(delivery), name=f"rewind: paced answer on port {delivery.address[1]}")
        self._tasks[delivery.address] = task
        task.add_done_callback(lambda ended: self._ended(delivery, ended))
        return delivery

    def owns(self, address: Address | None) -> bool:
        """Whether an address is that of a delivery."""
        return address in self._tasks

    def end(self, delivery: Delivery) -> None:
        """End a delivery, whatever is still to come; one that has ended stays so."""
        task = self._tasks.get(delivery.address)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """End them all."""
        for task in self._tasks.values():
            task.cancel()

    def _ended(self, delivery: Delivery, task: asyncio.Task[None]) -> None:
        # Here and not in the task: one that is cancelled before its first step runs no `finally`.
        delivery.listener.close()
        del self._tasks[delivery.address]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("rewind: a paced answer failed\n%s", traceback_of(error))


async def _serve(delivery: Delivery) -> None:
    # The listener stays open to the end: until then the port, by which this is known, is nobody else's.
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            caller = await _caller(delivery)
    except TimeoutError:
        logger.warning("rewind: a paced answer was never fetched")
        return
    with caller:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(caller, delivery))
            await _gone(caller)
            sending.cancel()


async def _caller(delivery: Delivery) -> socket.socket:
    """The connection that names the token; others are closed."""
    loop = asyncio.get_running_loop()
    while True:
        caller, _ = await loop.sock_accept(delivery.listener)
        try:
            caller.setblocking(False)
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hmac.compare_digest(await _asked_path(caller), b"/" + delivery.token.encode()):
                return caller
        except BaseException:
            caller.close()
            raise
        caller.close()


async def _asked_path(caller: socket.socket) -> bytes:
    """The path of a request, once its head is whole; empty when that does not come."""
    loop = asyncio.get_running_loop()
    head = b""
    try:
        async with asyncio.timeout(_ASKS_WITHIN):
            while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
                received = await loop.sock_recv(caller, _LONGEST_HEAD)
                if not received:
                    return b""
                head += received
    except (TimeoutError, ConnectionError):
        return b""
    return head.split(b" ", 2)[1] if head.count(b" ") >= 2 else b""


async def _send(caller: socket.socket, delivery: Delivery) -> None:
    loop = asyncio.get_running_loop()
    script = delivery.script
    # The real status and headers are put in their place when mitmproxy has these.
    piece = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(script.body)
    place = 0
    try:
        for at, end in script.cues:
            await asyncio.sleep(max(0.0, delivery.begun + at - loop.time()))
            await loop.sock_sendall(caller, piece + script.body[place:end])
            piece, place = b"", end
        caller.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the client has left; `_gone` sees it too


async def _gone(caller: socket.socket) -> None:
    """Until mitmproxy closes its end: the answer is over, or the client left."""
    loop = asyncio.get_running_loop()
    try:
        while await loop.sock_recv(caller, _LONGEST_HEAD):
            pass
    except ConnectionError:
        return  # closed in a hurry is closed
