"""Streams reach the client as they are sent, unchanged, and their pace is recorded."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Sequence
from itertools import pairwise

import pytest

from proxy.calls import CHAT, CHAT_SSE, GENERATE_ARRAY, OPENAI, STREAMED, Ask, new_prompt
from proxy.conftest import Stage, streaming
from proxy.looking import recorded
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider import Exchange
from rewind_proxy.store import Store
from support import behaviours
from support.client import Client
from support.proxies import Proxy

PAUSE = 0.03


class Gate:
    """A provider that sends an event only when the client has received the one before."""

    def __init__(self) -> None:
        self._received = threading.Semaphore(0)
        self.pieces: list[bytes] = []
        """What was sent, each as its own chunk."""

    def received(self) -> None:
        """The client has what was sent last."""
        self._received.release()

    def send(self, exchange: Exchange, pieces: Sequence[bytes], *headers: tuple[str, str]) -> None:
        """Send the pieces, each after the one before was received and a pause."""
        exchange.head(200, [("transfer-encoding", "chunked"), *headers])
        for piece in pieces:
            self.pieces.append(piece)
            exchange.chunk(piece)
            assert self._received.acquire(timeout=15), "the client did not get what was sent"
            time.sleep(PAUSE)
        exchange.end()

    def plain(self, exchange: Exchange) -> None:
        """Send the events as they are."""
        self.send(exchange, exchange.answer.chunks)

    def gzip(self, exchange: Exchange) -> None:
        """Send the events compressed, flushed after each."""
        press = zlib.compressobj(wbits=31)
        pieces = [press.compress(event) + press.flush(zlib.Z_SYNC_FLUSH) for event in exchange.answer.chunks]
        pieces[-1] += press.flush()
        self.send(exchange, pieces, ("content-encoding", "gzip"))


@pytest.mark.parametrize("ask", [*STREAMED, GENERATE_ARRAY], ids=lambda ask: ask.name)
def test_each_event_arrives_before_the_next_is_sent(
    live: Proxy, offline: Proxy, stage: Stage, ask: Ask
) -> None:
    """The tee holds nothing back; the recording has each chunk with its length and its time."""
    gate = Gate()
    stage.behaviour = gate.plain
    prompt = f"{new_prompt()} Add some more words."
    got = b""
    with streaming(live, ask, prompt) as stream:
        received = 0
        while piece := stream.read():
            got += piece
            if got == b"".join(gate.pieces):
                received += 1
                gate.received()
    assert received == len(gate.pieces) >= 6
    assert got == stage.said(prompt)
    [record] = recorded(live.store, prompt)
    with Store.open(live.store, settings_digest="0", readonly=True) as store:
        chunks = store.answer(record).chunks
    assert [length for length, _ in chunks] == [len(piece) for piece in gate.pieces]
    times = [at for _, at in chunks]
    assert all(later - earlier >= PAUSE * 1000 - 5 for earlier, later in pairwise(times))
    assert record.answer.latency_ms == times[-1]
    assert ask.once(offline, prompt).body == got


def test_a_compressed_stream_passes_compressed_and_replays_decoded(
    live: Proxy, offline: Proxy, stage: Stage
) -> None:
    """The client gets the provider's very bytes, at once; the replay has the events that they meant."""
    gate = Gate()
    stage.behaviour = gate.gzip
    prompt = new_prompt()
    got = b""
    with streaming(live, CHAT_SSE, prompt) as stream:
        assert stream.headers["content-encoding"] == "gzip"
        while piece := stream.read():
            got += piece
            if got == b"".join(gate.pieces):
                gate.received()
    assert got == b"".join(gate.pieces)
    recorded(live.store, prompt)
    replayed = CHAT_SSE.once(offline, prompt)
    assert replayed.body == zlib.decompress(got, wbits=31) == stage.said(prompt)
    assert "content-encoding" not in replayed.headers


def test_a_zstd_stream_is_recorded_decoded(live: Proxy, offline: Proxy, stage: Stage) -> None:
    """So is one in the coding that agents ask for first."""
    stage.behaviour = behaviours.encoded("zstd")
    prompt = new_prompt()
    assert CHAT_SSE.once(live, prompt).headers["content-encoding"] == "zstd"
    recorded(live.store, prompt)
    assert CHAT_SSE.once(offline, prompt).body == stage.said(prompt)


def test_streams_at_the_same_time_do_not_mix(live: Proxy, offline: Proxy, stage: Stage) -> None:
    """Eight clients at once each get, and each have recorded, their own answer."""
    stage.behaviour = behaviours.paced(0.01)
    prompts = [new_prompt() for _ in range(8)]
    got: dict[str, bytes] = {}

    def ask(prompt: str) -> None:
        got[prompt] = CHAT_SSE.once(live, prompt).body

    threads = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for prompt in prompts:
        assert got[prompt] == stage.said(prompt)
        recorded(live.store, prompt)
        assert CHAT_SSE.once(offline, prompt).body == got[prompt]


def test_a_large_body_delays_no_other_client(live: Proxy) -> None:
    """While a body of megabytes is read, other clients are answered in between."""
    text = " ".join(f"line {number} of 2026-11-30 in /home/a/app" for number in range(200_000))
    body: JsonObject = {"model": "m1", "messages": [{"role": "user", "content": text}]}
    took: list[float] = []

    def ask() -> None:
        started = time.monotonic()
        with Client(live, OPENAI) as client:
            assert client.post("/v1/chat/completions", body).status == 200
        took.append(time.monotonic() - started)

    large = threading.Thread(target=ask)
    prompt = new_prompt()
    CHAT.once(live, prompt)
    waits: list[float] = []
    with Client(live, OPENAI) as small:
        large.start()
        while large.is_alive():
            started = time.monotonic()
            assert CHAT.send(small, prompt).status == 200
            waits.append(time.monotonic() - started)
    large.join()
    assert max(waits) < took[0] / 2
