"""What a password field of a page holds: `<input type="password" value="…">`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redaction.judge import is_label, is_reference
from rewind_proxy.canonical.redaction.rules import QUOTE, Span

_TYPE = re.compile(rf"type\s{{0,4}}=\s{{0,4}}{QUOTE}?password(?![\w-])")
_VALUE = re.compile(rf"(?:\s|\\[nrt])value\s{{0,4}}=\s{{0,4}}{QUOTE}(?P<value>[^\"'`<>\\\n]+){QUOTE}")
_TAG = 600


def field_values(text: str, lowered: str) -> Iterator[Span]:
    """The value that stands in a tag with the type of a password."""
    for found in _TYPE.finditer(lowered):
        start = text.rfind("<", max(0, found.start() - _TAG), found.start())
        end = text.find(">", found.end(), found.end() + _TAG)
        if start < 0 or end < 0 or ">" in text[start : found.start()]:
            continue
        value = _VALUE.search(text, start, end)
        if value is not None and not is_reference(value["value"]) and not is_label(value["value"]):
            yield value.span("value")
