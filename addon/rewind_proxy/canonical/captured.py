"""What a rule has captured as random is that slot wherever else it stands as a whole token (DESIGN §5).

`agentId: a1f…` in a tool's result is `to: 'a1f…'` in a later call; a folder of `mktemp`'s is quoted alone.
Only what comes with or after the part that captured it is looked at, so a chain of digests can go on from
what stood before.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rewind_proxy.canonical.scrub import Leaf
from rewind_proxy.canonical.spans import Span

CAPTURING = frozenset({"RS106", "RS203"})
"""The rules whose values are random by themselves: others take out what may be equal by chance."""
_SHORTEST = 6
_LONGEST = 64
"""Characters. A shorter value may be a word, no client makes a longer one."""

_WORD = re.compile(r"[A-Za-z0-9_]+")
# In canonical JSON an escape is no letter of the word that follows it.
_WRITTEN_WORD = re.compile(rb"\\u[0-9a-f]{4}|\\.|([A-Za-z0-9_]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Value:
    """A captured value, and the rule and kind that it was captured under."""

    text: str
    rule: str
    kind: str


class Captured:
    """Captured values, and where they stand in texts. Time does not depend on how many there are."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._by_word: dict[str, dict[str, Value]] = {}
        self._lengths: dict[str, set[int]] = {}
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._by_word)

    def __iter__(self) -> Iterator[Value]:
        for values in self._by_word.values():
            yield from values.values()

    def fork(self) -> Captured:
        """One that holds the same and goes its own way."""
        return Captured(self)

    def add(self, value: Value) -> Value:
        """Follow a value from here on, if it can be told from words and numbers.

        Returns what it counts as: one value is one thing, whatever rule finds it later.
        """
        first = _WORD.match(value.text)
        if first is None or value.rule not in CAPTURING or not is_followed(value.text):
            return value
        self._lengths.setdefault(first.group(), set()).add(len(value.text))
        return self._by_word.setdefault(first.group(), {}).setdefault(value.text, value)

    def among(self, words: Iterable[str]) -> Captured:
        """Those that may stand in a text of these words (`words_of`)."""
        found = Captured()
        for word in self._by_word.keys() & words:
            found._by_word[word], found._lengths[word] = self._by_word[word].copy(), self._lengths[word]
        return found

    def key(self) -> tuple[Value, ...]:
        """Tells two sets of values apart."""
        return tuple(sorted(self, key=lambda value: value.text))

    def follow(self, leaf: Leaf) -> Leaf:
        """A scrubbed leaf with the values taken out too where nothing was found yet."""
        found = [self._counted(span) for span in leaf.spans]
        added = [span for span in self._spans(leaf.text) if not _overlaps(span, leaf.spans)]
        if not added and all(map(operator.is_, found, leaf.spans)):
            return leaf
        return Leaf(leaf.text, tuple(sorted([*found, *added], key=_start)))

    def _counted(self, span: Span) -> Span:
        first = _WORD.match(span.value) if span.rule in CAPTURING else None
        value = self._by_word.get(first.group(), {}).get(span.value) if first else None
        if value is None or value.kind == span.kind:
            return span
        return replace(span, rule=value.rule, kind=value.kind)

    def _spans(self, text: str) -> Iterator[Span]:
        end = 0
        for word in _WORD.finditer(text):
            start = word.start()
            lengths = self._lengths.get(word.group())
            if lengths is None or start < end:
                continue
            values = self._by_word[word.group()]
            for length in sorted(lengths, reverse=True):
                value = values.get(text[start : start + length])
                if value is not None and not _WORD.match(text, start + length):
                    end = start + length
                    yield Span(start, end, value.rule, value.kind, value.text)
                    break


def is_followed(value: str) -> bool:
    """Whether a captured value can be told from words and numbers where it stands alone."""
    return _SHORTEST <= len(value) <= _LONGEST and not value.isdigit() and value[0].isascii()


def words_of(pieces: Iterable[bytes]) -> frozenset[str]:
    """The words in pieces of canonical JSON."""
    return frozenset(word.decode() for piece in pieces for word in _WRITTEN_WORD.findall(piece))


def _start(span: Span) -> int:
    return span.start


def _overlaps(span: Span, spans: tuple[Span, ...]) -> bool:
    """Whether a span touches one of `spans`, which are in order and do not overlap."""
    at = bisect_left(spans, span.end, key=_start)
    return at > 0 and spans[at - 1].end > span.start
