"""A text leaf as scrubbing sees it, and the spans of it that are taken out."""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = "separator"
"""Kind of a span that is only folded: a backslash in a path below a root reads as `/`."""


class Span(NamedTuple):
    """`text[start:end]` is noise of `kind`, found by `rule`; equal `value`s are the same thing."""

    start: int
    end: int
    rule: str
    kind: str
    value: str
    numbered: bool = True
    """Whether equal values are told from others: not for durations, which are equal by chance."""


class Leaf(NamedTuple):
    """A text leaf after steps 3 and 5: its normalised text and the spans to take out, in order."""

    text: str
    spans: tuple[Span, ...]
