"""Text that someone else wrote, made fit for a terminal: of a client, a provider, or out of a store."""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, line separators, bidirectional controls, lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LINE_BREAKS = re.compile(r"\s*[\r\n\t]\s*")


def safe(text: str) -> str:
    r"""Stored text for a terminal: control characters as `\x1b`, tabs and newlines kept."""
    return UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """Stored text for one line of a terminal: breaks become a blank."""
    return safe(_LINE_BREAKS.sub(" ", text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
