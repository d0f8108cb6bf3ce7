"""Step 3 of the normalised fingerprint: what two spellings of one text have in common (DESIGN §5)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# A run that starts after a non-blank: indentation and blank lines are out of its reach, and so it is linear.
# It is led by a blank that is a tab or has another after it, which is quicker to search for.
_INNER_RUN = re.compile(r"(?:\t| (?=[ \t]))(?<=\S.)[ \t]*(?=\S)")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


def normalise_text(text: str) -> str:
    """NFC, LF line ends; outside code fences no trailing blanks and one space for an inner run of blanks.

    A fence is of ``` or of ~~~ (CommonMark §4.5). Indentation stays, text is never re-wrapped, an unclosed
    fence runs to the end.
    """
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "```" not in text and "~~~" not in text:
        return _tidy(text)
    pieces: list[str] = []
    fence = ""
    block: list[str] = []
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):  # one kind of fence does not end another
            if block:
                pieces.append("\n".join(block) if fence else _tidy("\n".join(block)))
            pieces.append(line.rstrip(" \t"))
            block = []
            fence = "" if fence else mark[1]
        else:
            block.append(line)
    if block:
        pieces.append("\n".join(block) if fence else _tidy("\n".join(block)))
    return "\n".join(pieces)


def whole_characters(text: str) -> str:
    """`text` with each half of a character (a lone surrogate, from a cut emoji) as `?`: valid UTF-8."""
    return text.encode("utf-8", "replace").decode()


def folded(text: str) -> str:
    """`text` in lower case, each character in its place: `İ`, which becomes two, leaves the text as it is."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def places(text: str, word: str) -> Iterator[int]:
    """Where `word` starts in `text`."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _tidy(text: str) -> str:
    if "  " in text or "\t" in text:
        text = _INNER_RUN.sub(" ", text)
    if " \n" in text or "\t\n" in text or text.endswith((" ", "\t")):
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return text
