"""Step 3 of the normalised fingerprint: what two spellings of one text have in common (DESIGN §5)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# A run that starts after a non-blank: indentation and blank lines are out of its reach, and so it is linear.
# It is led by a blank that is a tab or has another after it, which is quicker to search for.
_INNER_RUN = re.compile(r"(?:\t| (?=[ \t]))(?<=\S.)[ \t]*(?=\S)")
# CommonMark §4.5: a fence may stand in quotes and behind the marks of lists. What follows one of backticks
# has none, or it is code within a line; nothing follows the one that closes, which is as long at least.
_OPENING = re.compile(
    r"[ \t]*+(?:(?P<quote>>)[ \t]*+|(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*+(?P<fence>`{3,}+(?=[^`]*$)|~{3,}+)"
)
_CLOSING = re.compile(r"[ \t]*+(?:>[ \t]*+)*+(?P<fence>`{3,}+|~{3,}+)[ \t]*$")
_QUOTED = re.compile(r"[ \t]*+>")


def composed(text: str) -> str:
    """`text` in NFC, and nothing else: for the arguments of tools.

    Those are code, commands and the content of files, where a blank more is another program. What a model
    wrote there is sent back as it was, so there is no other spelling of it to fold.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def normalise_text(text: str) -> str:
    """NFC, LF line ends; outside code fences no trailing blanks and one space for an inner run of blanks.

    A fence is of ``` or of ~~~, in a quote or a list too, and one in a quote ends with the quote. Indentation
    stays, text is never re-wrapped, an unclosed fence runs to the end.
    """
    text = composed(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "```" not in text and "~~~" not in text:
        return _tidy(text)
    pieces: list[str] = []
    block: list[str] = []
    fence: re.Match[str] | None = None
    for line in text.split("\n"):
        if fence and fence["quote"] and not _QUOTED.match(line):
            pieces += block
            block, fence = [], None
        mark = _mark(line, fence)
        if mark is None:
            block.append(line)
            continue
        if block:
            pieces.append("\n".join(block) if fence else _tidy("\n".join(block)))
        pieces.append(line.rstrip(" \t"))
        block = []
        fence = None if fence else mark
    if block:
        pieces.append("\n".join(block) if fence else _tidy("\n".join(block)))
    return "\n".join(pieces)


def _mark(line: str, fence: re.Match[str] | None) -> re.Match[str] | None:
    """The fence that a line is: one that closes `fence`, else one that opens."""
    if "```" not in line and "~~~" not in line:
        return None
    if fence is None:
        return _OPENING.match(line)
    found = _CLOSING.match(line)
    return found if found and found["fence"].startswith(fence["fence"]) else None


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
