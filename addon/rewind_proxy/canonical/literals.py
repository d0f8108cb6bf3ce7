"""Which of many literals stand in a text, told in one pass over it (Aho and Corasick, 1975)."""

from __future__ import annotations

from collections.abc import Iterable

from ahocorasick_rs import AhoCorasick, Implementation

from rewind_proxy.canonical.text import whole_characters

_PIECE = 50_000
"""Characters that are looked at at once: what is found comes as a list, in hostile text one of many items."""
_NOTHING: frozenset[str] = frozenset()


class Literals:
    """A fixed set of literals, none of them empty, ready to be looked for all at once."""

    __slots__ = ("_automaton", "_literals", "_overlap")

    def __init__(self, literals: Iterable[str]) -> None:
        self._literals = tuple(dict.fromkeys(literals))
        # A full DFA is a seventh quicker, and takes 4 MB for the literals of redaction instead of 0.2.
        self._automaton = AhoCorasick(self._literals, implementation=Implementation.ContiguousNFA)
        self._overlap = max(map(len, self._literals), default=1) - 1

    def within(self, text: str) -> frozenset[str]:
        """Those that stand in `text`, letter by letter."""
        if len(text) <= _PIECE:
            return self._within(text)
        return _NOTHING.union(
            *(
                self._within(text[start : start + _PIECE + self._overlap])
                for start in range(0, len(text), _PIECE)
            )
        )

    def _within(self, text: str) -> frozenset[str]:
        try:
            found = self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:  # half a character, which no literal has
            found = self._automaton.find_matches_as_indexes(whole_characters(text), overlapping=True)
        return frozenset([self._literals[index] for index, _, _ in found]) if found else _NOTHING
