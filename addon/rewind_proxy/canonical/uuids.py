"""UUIDs in a text, with dashes, of any version and case, `urn:uuid:` or not (RFC 9562)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.spans import Span

UUID_MIDDLE = re.compile(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-")
"""`-8f3a-1b2c-` finds a UUID cheaply; the whole is then looked at around it."""
_UUID = re.compile(
    r"(?:(?i:urn:uuid:))?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)
_URN = "urn:uuid:"
_HEX = "0123456789abcdefABCDEF"
_GROUP_BEFORE = re.compile(r"(?<![A-Za-z0-9])[0-9a-fA-F]{4,}-\Z")
_MORE_AFTER = re.compile(r"[0-9a-fA-F]|-[0-9a-fA-F]{4,}(?![A-Za-z0-9])")
_NEAR = 24
"""Characters before it that are looked at."""


def uuid_spans(text: str) -> Iterator[Span]:
    """The UUIDs of a text; near misses are none."""
    for middle in UUID_MIDDLE.finditer(text):
        start = middle.start() - 8
        match = _UUID.match(text, start) if start >= 0 else None
        if match is None:
            continue
        if text[max(0, start - len(_URN)) : start].lower() == _URN:
            start -= len(_URN)
        if _MORE_AFTER.match(text, match.end()) or _more_before(text[max(0, start - _NEAR) : start]):
            continue
        yield Span(start, match.end(), "RS101", "uuid", match.group().lower())


def _more_before(before: str) -> bool:
    """Whether a digit or a group too many stands before it, of which it is a piece only.

    The end of an escape (`%2F`) or of a word (`id`, `file-`) does not.
    """
    rest = before.rstrip(_HEX)
    run = before[len(rest) :]
    if not run:
        return _GROUP_BEFORE.search(before) is not None
    if before[-3:-2] == "%":
        return False
    word = rest[-1:].isascii() and rest[-1:].isalpha() and run.isalpha()
    return not word
