"""A span: a piece of one text leaf that scrubbing takes out."""

from __future__ import annotations

from dataclasses import dataclass

SEPARATOR = "separator"
"""Kind of a span that is only folded: a backslash in a path below a root reads as `/`."""


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` is noise of `kind`, found by `rule`; equal `value`s are the same thing."""

    start: int
    end: int
    rule: str
    kind: str
    value: str
    numbered: bool = True
    """Whether equal values are told from others: not for durations, which are equal by chance."""
