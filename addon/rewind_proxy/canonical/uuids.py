"""UUIDs in a text, with dashes, of any version and case, `urn:uuid:` or not (RFC 9562)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.spans import Span

# `-8f3a-` finds the second group of a UUID cheaply; the whole is then looked at around it.
_UUID_MIDDLE = re.compile(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-")
_UUID = re.compile(
    r"(?:(?i:urn:uuid:))?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)
_URN = "urn:uuid:"


def uuid_spans(text: str) -> Iterator[Span]:
    """The UUIDs of a text; near misses are none."""
    for middle in _UUID_MIDDLE.finditer(text):
        start = middle.start() - 8
        match = _UUID.match(text, start) if start >= 0 else None
        if match is None:
            continue
        if text[max(0, start - len(_URN)) : start].lower() == _URN:
            start -= len(_URN)
        before, after = text[start - 1 : start], text[match.end() : match.end() + 1]
        if before.isalnum() or before == "-" or after.isalnum() or after == "-":
            continue
        yield Span(start, match.end(), "RS101", "uuid", match.group().lower())
