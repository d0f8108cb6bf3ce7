"""A text cut into the pieces in which a model's answer arrives."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_LEAST = 20
_MOST = 40
_LONGEST_MARKS = 64
"""So many characters are kept together for a grapheme's sake; a longer pile of marks is cut."""
_JOINER = "\u200d"
_MARKS = frozenset({"Mn", "Mc", "Me"})


def pieces(text: str) -> Iterator[str]:
    """`text` in pieces of 20 to 40 characters, cut before blanks where there are any; none when it is empty.

    A cut falls inside a grapheme (a letter and its marks, joined emoji, a flag) only where one is absurdly
    long. Joined, the pieces are `text`. Takes linear time.
    """
    start = 0
    while start < len(text):
        end = _end(text, start)
        yield text[start:end]
        start = end


def _end(text: str, start: int) -> int:
    most = start + _MOST
    if most >= len(text):
        return len(text)
    for at in range(most, start + _LEAST - 1, -1):
        if text[at].isspace() and not text[at - 1].isspace():
            return at
    end = most
    while end < len(text) and end < most + _LONGEST_MARKS and _continues(text[end - 1], text[end]):
        end += 1
    return end


def _continues(before: str, character: str) -> bool:
    """Whether both belong to one grapheme: the rules of UAX #29 that matter, on the safe side."""
    return (
        unicodedata.category(character) in _MARKS
        or _JOINER in (before, character)
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # tones of skin
        or "\U000e0020" <= character <= "\U000e007f"  # tags, as in the flags of regions
        or ("\U0001f1e6" <= character <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
        or ("\udc00" <= character <= "\udfff" and "\ud800" <= before <= "\udbff")
        or (before == "\r" and character == "\n")
    )
