"""Credentials that are written so that a plain look misses them: what token rules read beside the text.

A copy out of a web page or a word processor has zero-width characters, soft hyphens and hyphens that do not
break; an input method writes fullwidth letters; a URL, an HTML page or JSON that is cut may escape any
character. All that is undone here, character by character, so that a span of the reading has a span in the
text. Look-alikes of other scripts and other letter case are left: what they spell is no working key.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from rewind_proxy.canonical.redaction.rules import Span

# Hexadecimal of what a token is made of: a hyphen, a dot, digits, letters, an underscore.
_SPELLED = "(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|5[0-9AaFf]|7[0-9Aa])"
# `%252D` is `%2D` in a URL within a URL.
_PERCENT = rf"%(?:25){{0,3}}(?P<percent>{_SPELLED})"
_ENTITY = r"&#(?:0{0,4}(?P<decimal>4[56]|95)|[xX]0{0,4}(?P<entity>2[DdEe]|5[Ff]));"
_UNICODE = rf"\\u00(?P<unicode>{_SPELLED})"
_NOTHING = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_HYPHEN = "\u2010\u2011\u2212"
_WIDE = "\uff0d\uff0e\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff"
_CONCEALED = re.compile(
    rf"{_PERCENT}|{_ENTITY}|\\{{0,14}}{_UNICODE}|(?P<character>[{_NOTHING}{_HYPHEN}{_WIDE}])"
)

# Whether there is any, led by a literal each: `re` is slow to search for one of many.
_ANY_PERCENT, _ANY_ENTITY, _ANY_UNICODE = map(re.compile, (_PERCENT, _ENTITY, _UNICODE))
# In UTF-8, in the order of the three classes above.
_CHARACTERS = (
    (b"\xc2\xad", re.compile(rb"\xc2\xad")),
    (b"\xe2", re.compile(rb"\xe2(?:\x80[\x8b-\x91\xaa-\xae]|\x81[\xa0-\xa4]|\x88\x92)")),
    (b"\xef", re.compile(rb"\xef(?:\xbb\xbf|\xbc[\x8d\x8e\x90-\x99\xa1-\xba\xbf]|\xbd[\x81-\x9a])")),
    (b"\xf0\x9d", re.compile(rb"\xf0\x9d[\x90-\x9f]")),
)


@dataclass(frozen=True, slots=True)
class Revealed:
    """A text with what conceals undone, and where each of its characters came from."""

    text: str
    _ends: tuple[int, ...]
    """Where each undone piece ends here, in order, after a 0."""
    _origins: tuple[int, ...]
    """And where it ended in the text."""

    def origin(self, span: Span) -> Span:
        """The span of the text that reads as `span` here, with what is not seen right after it."""
        start, stop = span
        before = bisect_right(self._ends, start) - 1
        at = bisect_left(self._ends, stop)
        if at < len(self._ends) and self._ends[at] == stop:
            end = self._origins[at]
        else:
            end = self._origins[at - 1] + stop - self._ends[at - 1]
        return self._origins[before] + start - self._ends[before], end


def revealed(text: str) -> Revealed | None:
    """How `text` reads with what conceals undone; None when nothing does."""
    if not _conceals(text):
        return None
    pieces: list[str] = []
    ends, origins = [0], [0]
    length = end = 0
    for match in _CONCEALED.finditer(text):
        plain = text[end : match.start()]
        shown = _shown(match)
        end = match.end()
        pieces += [plain, shown]
        length += len(plain) + len(shown)
        ends.append(length)
        origins.append(end)
    return Revealed("".join([*pieces, text[end:]]), tuple(ends), tuple(origins))


def _conceals(text: str) -> bool:
    if (
        ("%" in text and _ANY_PERCENT.search(text))
        or ("&" in text and _ANY_ENTITY.search(text))
        or ("\\" in text and _ANY_UNICODE.search(text))
    ):
        return True
    if text.isascii():
        return False
    data = text.encode("utf-8", "surrogatepass")
    return any(lead in data and found.search(data) for lead, found in _CHARACTERS)


def _shown(match: re.Match[str]) -> str:
    character = match["character"]
    if character is None:
        code = match["percent"] or match["entity"] or match["unicode"]
        return chr(int(code, 16) if code else int(match["decimal"]))
    if character in _HYPHEN:
        return "-"
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 and plain.isascii() else ""
