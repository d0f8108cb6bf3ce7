"""Server-sent events, in every spelling the WHATWG standard allows (CASES 52)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.wire.sse import Event, Parser, parse

ONE = (Event("message", "x"),)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: x\n\n", ONE),
        (b"data: x\r\n\r\n", ONE),
        (b"data: x\r\r", ONE),
        (b"data:x\n\n", ONE),
        (b"\xef\xbb\xbfdata: x\n\n", ONE),
        (b": ping\n\ndata: x\n\n", ONE),
        (b"id: 7\nretry: 10\ndata: x\nunknown: y\n\n", ONE),
        (b"data:  x\n\n", (Event("message", " x"),)),
        (b"data: a\ndata: b\n\n", (Event("message", "a\nb"),)),
        (b"data\n\n", (Event("message", ""),)),
        (b"event: ping\ndata: {}\n\ndata: x\n\n", (Event("ping", "{}"), Event("message", "x"))),
        (b"event: ping\n\ndata: x\n\n", ONE),
        (b"data: a: b\n\n", (Event("message", "a: b"),)),
        (b"data:[DONE]\n\n", (Event("message", "[DONE]"),)),
        (b"", ()),
        (b"\n\n\n", ()),
    ],
)
def test_spellings(body: bytes, events: tuple[Event, ...]) -> None:
    """Every spelling of one stream gives the same events."""
    assert parse(body).events == events
    assert parse(body).pending is None


@pytest.mark.parametrize("body", [b"data: x", b"data: x\n", b"data: x\r\n"])
def test_an_unfinished_event_is_not_dispatched(body: bytes) -> None:
    """An event that no blank line ended is no event, but it can be seen."""
    stream = parse(body)
    assert stream.events == ()
    assert stream.pending == Event("message", "x")


def test_a_later_byte_order_mark_is_text() -> None:
    """Only a mark at the very start of the stream goes."""
    assert parse(b"data: a\n\n\xef\xbb\xbfdata: b\n\n").events == (Event("message", "a"),)


LINES = st.sampled_from([b"data: a", b"data:b", b"event: e", b": c", b"", b"id: 1", "data: é😀".encode()])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.lists(st.integers(0, 120), max_size=6))
def test_cut_anywhere(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    """Where the bytes were cut changes nothing, between CR and LF least of all."""
    body = b"".join(line + end for line, end in lines)
    parser = Parser()
    found: list[Event] = []
    start = 0
    for cut in [*sorted(cuts), len(body)]:
        found.extend(parser.feed(body[start:cut]))
        start = max(start, min(cut, len(body)))
    assert tuple(found) == parse(body).events
    assert parser.pending() == parse(body).pending


def test_linear_time() -> None:
    """One line fed byte by byte, and very many lines, cost time in proportion."""
    parser = Parser()
    started = time.thread_time()
    for _ in range(200_000):
        parser.feed(b"x")
    parser.feed(b"\n\n")
    assert len(parse(b"data: x\n\n" * 100_000).events) == 100_000
    assert time.thread_time() - started < 10
