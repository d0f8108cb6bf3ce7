"""How a provider fails: behaviours for `FakeProvider`, to be told apart by what the client sees."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from typing import Literal

import zstandard

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider import Behaviour, Exchange


def on(number: int, special: Behaviour, otherwise: Behaviour = Exchange.send) -> Behaviour:
    """Behave specially for one generation of its path, counted from 1, or for all when it is 0."""

    def behave(exchange: Exchange) -> None:
        chosen = exchange.answer.dialect and number in (0, exchange.request.nth)
        (special if chosen else otherwise)(exchange)

    return behave


def paced(delay: float) -> Behaviour:
    """Send each event `delay` seconds after the one before."""
    return lambda exchange: exchange.send(delay)


def late(delay: float) -> Behaviour:
    """Say nothing for a while, then answer."""

    def behave(exchange: Exchange) -> None:
        time.sleep(delay)
        exchange.send()

    return behave


def error(status: int, retry_after: int | None = None) -> Behaviour:
    """Refuse with the provider's own error JSON."""

    def behave(exchange: Exchange) -> None:
        assert exchange.answer.dialect
        body = json.dumps(
            exchange.answer.dialect.error(status, "The fake provider is out of order.")
        ).encode()
        extra = () if retry_after is None else (("retry-after", str(retry_after)),)
        exchange.whole(status, "application/json", body, (*exchange.answer.headers, *extra))

    return behave


def html_error(status: int = 500) -> Behaviour:
    """Refuse as a load balancer does, in HTML."""
    page = b"<html><body><h1>Bad Gateway</h1></body></html>"
    return lambda exchange: exchange.whole(status, "text/html", page)


def cut_in_chunk(after: int) -> Behaviour:
    """Close in the middle of a chunk, after some events: the client sees a broken connection."""

    def behave(exchange: Exchange) -> None:
        _begin(exchange, after)
        broken = exchange.answer.chunks[after]
        exchange.raw(b"%x\r\n" % len(broken) + broken[: len(broken) // 2])
        exchange.close()

    return behave


def cut_in_event(after: int) -> Behaviour:
    """Close a body without length in the middle of an event: on the wire this looks like a good end."""

    def behave(exchange: Exchange) -> None:
        exchange.head(200, [("connection", "close")])
        for event in exchange.answer.chunks[:after]:
            exchange.raw(event)
        exchange.raw(b'data: {"par')
        exchange.close()

    return behave


def no_last_chunk() -> Behaviour:
    """Send every event, the terminal one too, and close without the last chunk."""

    def behave(exchange: Exchange) -> None:
        _begin(exchange, len(exchange.answer.chunks))
        exchange.close()

    return behave


def stall(after: int) -> Behaviour:
    """Fall silent after some events, until the client leaves."""

    def behave(exchange: Exchange) -> None:
        _begin(exchange, after)
        exchange.stall()

    return behave


def error_in_band(after: int) -> Behaviour:
    """Send an error as an event after some others, and end the stream properly."""

    def behave(exchange: Exchange) -> None:
        dialect = exchange.answer.dialect
        assert dialect
        _begin(exchange, after)
        problem = dialect.error(529, "Overloaded")
        exchange.chunk(dialect.sse(_in_band(problem)))
        exchange.end()

    return behave


def encoded(coding: Literal["gzip", "zstd"], *, whole: bool = True) -> Behaviour:
    """Compress the answer, event by event when it streams; or send every event, and close without an end."""

    def behave(exchange: Exchange) -> None:
        compress, finish = _compressor(coding)
        exchange.head(
            exchange.answer.status, [("content-encoding", coding), ("transfer-encoding", "chunked")]
        )
        for chunk in exchange.answer.chunks:
            exchange.chunk(compress(chunk))
        if not whole:
            exchange.close()
            return
        exchange.chunk(finish())
        exchange.end()

    return behave


def _begin(exchange: Exchange, events: int) -> None:
    exchange.head(200, [("transfer-encoding", "chunked")])
    for event in exchange.answer.chunks[:events]:
        exchange.chunk(event)


def _in_band(problem: JsonObject) -> JsonObject:
    """Anthropic's error has a type, Responses' is flat and has one; the others are sent as they are."""
    inner = problem["error"]
    if "type" in problem or not isinstance(inner, dict) or "param" not in inner:
        return problem
    return {**inner, **problem, "type": "error"}


def _compressor(coding: Literal["gzip", "zstd"]) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    if coding == "gzip":
        deflate = zlib.compressobj(wbits=31)
        return (lambda data: deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)), deflate.flush
    press = zstandard.ZstdCompressor().compressobj()
    flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
    return (lambda data: press.compress(data) + press.flush(flush)), press.flush
