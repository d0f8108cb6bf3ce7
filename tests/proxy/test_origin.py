"""The loopback origin by itself: what it sends to whom, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress

import pytest

from rewind_proxy.mitm.origin import Delivery, Origin, Script

SCRIPT = Script(b"one two three", ((0.0, 4), (0.1, 8), (0.2, 13)))
LONG = Script(b"one two", ((0.0, 4), (60.0, 7)))


def in_a_loop(test: Callable[[Origin], Coroutine[None, None, None]]) -> None:
    """Run a test with an origin, after which no task and no socket is left."""

    async def run() -> None:
        origin = Origin()
        await asyncio.wait_for(test(origin), 20)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, still_there = await asyncio.wait(others, timeout=5)
            assert not still_there

    before = open_sockets()
    asyncio.run(run())
    assert open_sockets() <= before


def open_sockets() -> set[int]:
    """The open sockets of this process."""
    found = (each for each in gc.get_objects() if type(each) is socket.socket)
    return {each.fileno() for each in found} - {-1}


async def ask(
    delivery: Delivery, token: str | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a delivery, and send its request or another's."""
    reader, writer = await asyncio.open_connection(*delivery.address)
    writer.write(f"GET /{delivery.token if token is None else token} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return reader, writer


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait until it is."""
    writer.close()
    with suppress(ConnectionResetError):  # it was closed there before all that was sent had been read
        await writer.wait_closed()


def test_an_answer_comes_once_in_its_time() -> None:
    """Body and length are those of the script, the last piece comes at its time, and then the end."""

    async def test(origin: Origin) -> None:
        delivery = origin.open(SCRIPT)
        reader, writer = await ask(delivery)
        received = await reader.read()
        took = asyncio.get_running_loop().time() - delivery.begun
        head, _, body = received.partition(b"\r\n\r\n")
        assert body == SCRIPT.body
        assert b"content-length: 13" in head
        assert took >= 0.19
        await close(writer)

    in_a_loop(test)


def test_a_cut() -> None:
    """Where the cues end before the body, the connection ends there."""

    async def test(origin: Origin) -> None:
        reader, writer = await ask(origin.open(Script(b"one two", ((0.0, 4),))))
        assert (await reader.read()).endswith(b"content-length: 7\r\n\r\none ")
        await close(writer)

    in_a_loop(test)


@pytest.mark.parametrize("token", ["", "guess", "x" * 5000])
def test_another_process_gets_nothing(token: str) -> None:
    """A connection that does not know the token is closed, and the one that does is still answered."""

    async def test(origin: Origin) -> None:
        delivery = origin.open(SCRIPT)
        stranger, strangers_end = await ask(delivery, token)
        with suppress(ConnectionResetError):
            assert await stranger.read() == b""
        reader, writer = await ask(delivery)
        assert (await reader.read()).endswith(SCRIPT.body)
        for end in (strangers_end, writer):
            await close(end)

    in_a_loop(test)


def test_one_that_says_nothing_does_not_hold_the_lane() -> None:
    """A connection that never asks is given up after a moment."""

    async def test(origin: Origin) -> None:
        delivery = origin.open(SCRIPT)
        _, silent = await asyncio.open_connection(*delivery.address)
        reader, writer = await ask(delivery)
        assert (await reader.read()).endswith(SCRIPT.body)
        for end in (silent, writer):
            await close(end)

    in_a_loop(test)


def test_who_leaves_ends_it() -> None:
    """When the other end closes, nothing waits for the next piece."""

    async def test(origin: Origin) -> None:
        reader, writer = await ask(origin.open(LONG))
        await reader.readuntil(b"one ")
        await close(writer)

    in_a_loop(test)


@pytest.mark.parametrize("moment", ["at once", "before it is asked", "while it sends"])
def test_it_can_be_ended(moment: str) -> None:
    """A delivery ends when it is told to, whatever it is about."""

    async def test(origin: Origin) -> None:
        delivery = origin.open(LONG)
        assert origin.owns(delivery.address)
        if moment == "before it is asked":
            await asyncio.sleep(0.05)
        if moment == "while it sends":
            reader, writer = await ask(delivery)
            await reader.readuntil(b"one ")
        origin.end(delivery)
        for _ in range(3):  # the loop's turns until a cancelled task is over
            await asyncio.sleep(0)
        assert not origin.owns(delivery.address) or moment == "while it sends"
        origin.end(delivery)
        if moment == "while it sends":
            assert await reader.read() == b""
            await close(writer)

    in_a_loop(test)


def test_all_can_be_ended() -> None:
    """Closing the origin ends every delivery."""

    async def test(origin: Origin) -> None:
        deliveries = [origin.open(LONG) for _ in range(5)]
        assert len({delivery.address for delivery in deliveries}) == 5
        origin.close()

    in_a_loop(test)
