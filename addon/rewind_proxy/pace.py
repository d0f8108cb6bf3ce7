"""When each part of a replayed answer is due (`rewind_pace`), from the times of its recording. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from rewind_proxy.faults import Fault
from rewind_proxy.wire.cut import Cut

Pace: TypeAlias = Literal["instant", "recorded"] | float
"""A number is a factor of the recorded times: 0.5 takes half as long as the recording, 2 twice as long."""
Cue: TypeAlias = tuple[float, int]
"""(seconds since the request, where the part of the body ends that is sent then)."""

LONGEST_GAP = 600.0
"""Seconds. A longer silence in a recording is a damaged time, or a client that has given up long ago."""


def cues(chunks: Iterable[tuple[int, float]], length: int, pace: Pace) -> tuple[Cue, ...]:
    """The cues of a body of `length` bytes, from (length, milliseconds) of its recorded chunks.

    They rise in time and place, and the last one ends the body. A time that is negative, not a number or
    earlier than the one before counts as that one's; what the chunks leave over comes with the last.
    """
    if pace == "instant":
        return ((0.0, length),)
    factor = 1.0 if pace == "recorded" else pace
    found: list[Cue] = []
    before = at = 0.0
    end = 0
    for size, milliseconds in chunks:
        seconds = milliseconds / 1000 if math.isfinite(milliseconds) else before
        gap = max(0.0, seconds - before)
        before = max(before, seconds)
        at += min(gap * factor, LONGEST_GAP)
        end = min(end + max(0, size), length)
        if found and at == found[-1][0]:
            found.pop()
        found.append((at, end))
    if not found:
        return ((0.0, length),)
    found[-1] = (found[-1][0], length)
    return tuple(found)


def faulted(found: Sequence[Cue], body: bytes, fault: Fault, *, streamed: bool) -> tuple[Cue, ...]:
    """The cues of a replayed answer with a fault: later, and where it is cut the last one ends there."""
    place = len(body)
    if fault.cut_after is not None:
        place = len(Cut(fault.cut_after, streamed=streamed).keep(body))
    kept: list[Cue] = []
    for at, end in found:
        kept.append((at + fault.stall, min(end, place)))
        if end >= place:
            break
    return tuple(kept)
