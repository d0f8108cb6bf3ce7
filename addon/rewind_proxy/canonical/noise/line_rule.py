"""What a rule for a whole line of a tool result is, and the pieces that patterns of lines share."""

from __future__ import annotations

import re
from dataclasses import dataclass

PID = "([0-9]{1,8})"
CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
_ZONE = r"(?:Z| ?[+-][0-9]{2}:?[0-9]{2}| [A-Z]{3,4})?"
# What logs write before the number of a process: a date of some form with a clock at its end, and a zone.
WHEN = rf"[^\n]{{0,40}}?{CLOCK}{_ZONE}"
DATED = rf"20[0-9]{{2}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{CLOCK}{_ZONE}"
SYSLOG = rf"(?:{DATED}|[A-Z][a-z]{{2}} {{1,2}}[0-9]{{1,2}} {CLOCK})"
NUMBER = "[0-9]{1,12}(?:[.,][0-9]{1,9})*"
_SIZE = "(?:[kKMGT]i?)?"
RATE = rf"{NUMBER} ?(?:{_SIZE}B|{_SIZE}bytes)/s(?:ec)?"
GAP = r"[ \t]{1,40}"


@dataclass(frozen=True, slots=True)
class LineRule:
    """Noise of one form of line. One of `literals` stands in it; one with a line's end leads it."""

    rule: str
    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    numbered: bool = False
    """Whether equal values are told from others."""


def line_rule(
    rule: str, kind: str, literals: tuple[str, ...], pattern: str, *, numbered: bool = False
) -> LineRule:
    """A rule, and its pattern compiled."""
    return LineRule(rule, kind, literals, re.compile(pattern, re.ASCII), numbered)
