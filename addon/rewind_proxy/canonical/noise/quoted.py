"""Strings of JSON in a text, read as what they say, with where each character stands in the text.

Tools give back what a command printed as a member of JSON (`{"exit_code":0,"output":"PID TTY\\n…"}`), where
its lines are lines too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

# The value of a member. A string that is not closed is none.
_STRING = re.compile(r'":[ \n]{0,8}"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\n", "b": "\b", "f": "\f"}
_LINE_END = "\\n"


@dataclass(frozen=True, slots=True)
class Quoted:
    """What a string says, and where."""

    text: str
    _starts: tuple[int, ...]
    """Where pieces without an escape start in `text`, and beside it in the text around the string."""
    _places: tuple[int, ...]

    def place(self, at: int) -> int:
        """Where a character of `text`, or its end, stands in the text around the string."""
        piece = bisect_right(self._starts, at) - 1
        return self._places[piece] + at - self._starts[piece]


def quoted_strings(text: str) -> Iterator[Quoted]:
    """The values of members in JSON that have several lines."""
    if _LINE_END in text:
        for string in _STRING.finditer(text):
            if _LINE_END in string[1]:
                yield _read(text, *string.span(1))


def _read(text: str, start: int, end: int) -> Quoted:
    pieces: list[str] = []
    starts, places = [0], [start]
    length, position = 0, start
    for escape in _ESCAPE.finditer(text, start, end):
        said = chr(int(escape[1], 16)) if escape[1] else _MEANING.get(escape[2], escape[2])
        pieces += [text[position : escape.start()], said]
        length += escape.start() - position + 1
        position = escape.end()
        starts += [length - 1, length]
        places += [escape.start(), position]
    pieces.append(text[position:end])
    return Quoted("".join(pieces), tuple(starts), tuple(places))
