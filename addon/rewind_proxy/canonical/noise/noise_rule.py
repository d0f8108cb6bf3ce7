"""What a rule for noise behind a word of a tool result is, and the pieces that their patterns share."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """Noise that only means nothing in a tool result; group 1 is what goes."""

    rule: str
    kind: str
    words: tuple[str, ...]
    """What every match starts with, in any case."""
    pattern: re.Pattern[str]
    numbered: bool = True


def noise_rule(
    rule: str, kind: str, words: tuple[str, ...], pattern: str, *, numbered: bool = True
) -> NoiseRule:
    """A rule, and its pattern compiled."""
    return NoiseRule(rule, kind, words, re.compile(pattern, re.ASCII), numbered)


IS = r"[\"'\\]{0,4}+[ \t]{0,4}+[:=>][ \t]{0,4}+[\"'\\]{0,4}+"
QUOTED = r"\\{0,3}\":[ ]?\\{0,3}\""
