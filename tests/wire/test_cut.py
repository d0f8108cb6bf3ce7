"""Where an answer is cut off on purpose."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.wire.cut import Cut
from rewind_proxy.wire.sse import parse

STREAM = b': hello\n\ndata: 1\n\nevent: x\r\ndata: 2\r\ndata: 2\r\n\r\n: ping\n\ndata: 3\r\r"data: 4\n\n'


@pytest.mark.parametrize(("after", "data"), [(1, ["1"]), (2, ["1", "2\n2"]), (3, ["1", "2\n2", "3"])])
def test_a_stream_is_cut_after_an_event(after: int, data: list[str]) -> None:
    """The events before the cut are whole; comments are none, and line ends of every kind end one."""
    cut = Cut(after, streamed=True)
    kept = cut.keep(STREAM)
    assert [event.data for event in parse(kept).events] == data
    assert STREAM.startswith(kept)
    assert cut.over
    assert cut.keep(STREAM) == b""


def test_after_no_event() -> None:
    """Nothing passes where the cut is after none."""
    cut = Cut(0, streamed=True)
    assert (cut.over, cut.keep(STREAM)) == (True, b"")


def test_a_shorter_stream() -> None:
    """A stream of fewer events comes whole."""
    cut = Cut(100, streamed=True)
    assert (cut.keep(STREAM), cut.over) == (STREAM, False)


def test_what_is_no_stream() -> None:
    """A whole answer is cut in the middle of what comes first, whatever the number of events."""
    cut = Cut(5, streamed=False)
    assert [cut.keep(b""), cut.keep(b"{12345}!"), cut.keep(b"more")] == [b"", b"{123", b""]
    assert cut.over


@given(st.lists(st.integers(0, len(STREAM))), st.integers(0, 4))
def test_chunks_do_not_matter(places: list[int], after: int) -> None:
    """However the bytes arrive, the same events pass."""
    whole, pieces = Cut(after, streamed=True), Cut(after, streamed=True)
    kept = whole.keep(STREAM)
    ends = [0, *sorted(places), len(STREAM)]
    joined = b"".join(pieces.keep(STREAM[a:b]) for a, b in pairwise(ends))
    assert parse(joined).events == parse(kept).events
    assert pieces.over == whole.over
