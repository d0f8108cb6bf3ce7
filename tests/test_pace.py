"""When the parts of a replayed answer are due."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.faults import Fault
from rewind_proxy.pace import LONGEST_GAP, Cue, Pace, cues, faulted

CHUNKS = ((2, 500), (3, 700), (5, 1700))
STREAM = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"


@pytest.mark.parametrize(
    ("pace", "due"),
    [
        ("instant", [(0.0, 10)]),
        ("recorded", [(0.5, 2), (0.7, 5), (1.7, 10)]),
        (1.0, [(0.5, 2), (0.7, 5), (1.7, 10)]),
        (0.5, [(0.25, 2), (0.35, 5), (0.85, 10)]),
        (2.0, [(1.0, 2), (1.4, 5), (3.4, 10)]),
    ],
)
def test_a_pace_is_a_factor_of_the_recorded_times(pace: Pace, due: list[Cue]) -> None:
    """Each part has its time, the first one's wait included."""
    found = cues(CHUNKS, 10, pace)
    assert [end for _, end in found] == [end for _, end in due]
    assert [at for at, _ in found] == pytest.approx([at for at, _ in due])


@pytest.mark.parametrize(
    ("chunks", "due"),
    [
        (((2, -5), (2, 100)), [(0.0, 2), (0.1, 4)]),
        (((2, math.nan), (2, 100)), [(0.0, 2), (0.1, 4)]),
        (((1, 100), (1, 40), (2, 200)), [(0.1, 2), (0.2, 4)]),
        (((1, 100), (3, math.inf)), [(0.1, 4)]),
        (((4, 10**15),), [(LONGEST_GAP, 4)]),
        (((9, 100),), [(0.1, 4)]),
        (((1, 100),), [(0.1, 4)]),
        (((-3, 100), (2, 200)), [(0.1, 0), (0.2, 4)]),
        ((), [(0.0, 4)]),
    ],
)
def test_odd_times_and_lengths(chunks: tuple[tuple[int, float], ...], due: list[Cue]) -> None:
    """What cannot be is taken as the time before, and the last part has what is left of the body."""
    assert list(cues(chunks, 4, "recorded")) == due


@given(
    st.lists(st.tuples(st.integers(-5, 50), st.floats() | st.integers(-(10**6), 10**18))),
    st.integers(0, 100),
    st.sampled_from(["instant", "recorded"]) | st.floats(1e-300, 1e300),
)
def test_whatever_was_stored(chunks: list[tuple[int, float]], length: int, pace: Pace) -> None:
    """Cues are finite, rise in time and place, and the last one ends the body."""
    found = cues(chunks, length, pace)
    times, ends = [at for at, _ in found], [end for _, end in found]
    assert times == sorted(times)
    assert all(0 <= at < math.inf for at in times)
    assert ends == sorted(ends)
    assert ends[-1] == length


def test_a_stall_comes_before_everything() -> None:
    """A stalled answer has its own pace after the stall."""
    stalled = faulted([(0.0, 5), (0.5, len(STREAM))], STREAM, Fault("", stall=10), streamed=True)
    assert stalled == ((10.0, 5), (10.5, len(STREAM)))


@pytest.mark.parametrize(("after", "end"), [(0, 0), (1, 9), (2, 18), (3, 27), (9, 27)])
def test_a_cut_ends_the_cues(after: int, end: int) -> None:
    """The last cue stands where the cut is; a stream of fewer events comes whole."""
    found = [(0.1, 4), (0.2, 12), (0.3, len(STREAM))]
    cut = faulted(found, STREAM, Fault("", cut_after=after), streamed=True)
    assert cut[-1][1] == end
    assert list(cut[:-1]) == [cue for cue in found if cue[1] < end]
