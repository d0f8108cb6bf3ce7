"""Text as the deltas of a stream carry it: cut into sensible pieces, and joined again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SHORTEST, _LONGEST = 20, 40
_ZERO_WIDTH_JOINER = "\u200d"
_SURROGATE = re.compile("[\ud800-\udfff]")


def pieces(text: str) -> list[str]:
    """`text` in pieces of 20 to 40 characters, cut before white space where there is some.

    Elsewhere never within what is seen as one character, unless that is longer than a piece.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > _LONGEST:
        end = _cut(text, start)
        found.append(text[start:end])
        start = end
    if start < len(text):
        found.append(text[start:])
    return found


def _cut(text: str, start: int) -> int:
    window = range(start + _LONGEST, start + _SHORTEST - 1, -1)
    for end in window:
        if text[end].isspace() and not text[end - 1].isspace():
            return end
    return next((end for end in window if not _is_continued(text[end - 1], text[end])), start + _LONGEST)


def _is_continued(left: str, right: str) -> bool:
    """Whether two neighbours belong to one grapheme, in the cases that matter (UAX #29, GB3 to GB13)."""
    if right.isascii():
        return left == "\r" and right == "\n"
    return (
        left == _ZERO_WIDTH_JOINER
        or right == _ZERO_WIDTH_JOINER
        or unicodedata.category(right) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= right <= "\U000e007f"  # tags of flags
        or ("\U0001f1e6" <= right <= "\U0001f1ff" and "\U0001f1e6" <= left <= "\U0001f1ff")
        or ("\u1100" <= left <= "\u11ff" and "\u1160" <= right <= "\u11ff")  # Hangul in letters
    )


def joined(found: Iterable[str]) -> str:
    """The text of these pieces; a surrogate pair that was cut in two is one character again."""
    text = "".join(found)
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text
