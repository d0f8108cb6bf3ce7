"""What a rule has captured as random is that slot wherever else it stands as a whole token (DESIGN §5).

`agentId: a1f…` in a tool's result is `to: 'a1f…'` in a later call; a folder of `mktemp`'s is quoted alone.
Only the text that captured it and what comes after is looked at, so a chain of digests can go on from what
stood before.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.spans import Leaf, Span

CAPTURING = frozenset({"RS106", "RS203"})
"""The rules whose values are random by themselves: others take out what may be equal by chance."""
_SHORTEST = 6
_LONGEST = 96
"""Characters. A shorter value may be a word, no client makes a longer one."""

_WORD = re.compile(r"[A-Za-z0-9_]+")
_FEW = 16
"""Values whose first words are looked for one by one."""


@dataclass(frozen=True, slots=True)
class Value:
    """A captured value, and the rule and kind that it was captured under."""

    text: str
    rule: str
    kind: str


class Captured:
    """Captured values, and where they stand in texts. Time does not depend on how many there are."""

    def __init__(self) -> None:
        self.by_word: dict[str, dict[str, Value]] = {}
        """By the first word, then by the whole."""
        self._lengths: dict[str, tuple[int, ...]] = {}

    def fork(self) -> Captured:
        """One that holds the same and goes its own way."""
        other = Captured()
        other.by_word = {word: values.copy() for word, values in self.by_word.items()}
        other._lengths = self._lengths.copy()
        return other

    def add(self, value: str, rule: str, kind: str) -> None:
        """Follow a value from here on, if it can be told from words and numbers."""
        first = _WORD.match(value)
        if first is None or not is_followed(value):
            return
        word = first.group()
        values = self.by_word.setdefault(word, {})
        if value not in values:
            values[value] = Value(value, rule, kind)
            self._lengths[word] = tuple(sorted({len(value), *self._lengths.get(word, ())}, reverse=True))

    def follow(self, leaf: Leaf) -> Leaf:
        """A scrubbed leaf with the values taken out too where nothing was found yet.

        What a rule found there counts as what it was captured as: one value is one thing.
        """
        text = leaf.text
        if len(self.by_word) <= _FEW and not any(word in text for word in self.by_word):
            return leaf
        found = [self._counted(span) for span in leaf.spans]
        added = [span for span in self._spans(text) if not _overlaps(span, leaf.spans)]
        if not added and all(map(operator.is_, found, leaf.spans)):
            return leaf
        return Leaf(text, tuple(sorted([*found, *added], key=_start)))

    def _counted(self, span: Span) -> Span:
        first = _WORD.match(span.value) if span.rule in CAPTURING else None
        value = self.by_word.get(first.group(), {}).get(span.value) if first else None
        if value is None or value.kind == span.kind:
            return span
        return span._replace(rule=value.rule, kind=value.kind)

    def _spans(self, text: str) -> Iterator[Span]:
        end = 0
        for word in _WORD.finditer(text):
            start = word.start()
            lengths = self._lengths.get(word.group())
            if lengths is None or start < end:
                continue
            values = self.by_word[word.group()]
            for length in lengths:
                value = values.get(text[start : start + length])
                if value is not None and not _WORD.match(text, start + length):
                    end = start + length
                    yield Span(start, end, value.rule, value.kind, value.text)
                    break


def is_followed(value: str) -> bool:
    """Whether a captured value can be told from words and numbers where it stands alone."""
    return _SHORTEST <= len(value) <= _LONGEST and not value.isdigit() and value[0].isascii()


def _start(span: Span) -> int:
    return span.start


def _overlaps(span: Span, spans: tuple[Span, ...]) -> bool:
    """Whether a span touches one of `spans`, which are in order and do not overlap."""
    at = bisect_left(spans, span.end, key=_start)
    return at > 0 and spans[at - 1].end > span.start
