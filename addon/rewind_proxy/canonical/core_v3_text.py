"""Text as `rewind-core` 0.1.1 normalises it (DESIGN §13): JavaScript's white space, base64 by its bytes.

Not the text rules of Rewind's own tiers, which are in text.py: these have weak spots that DESIGN §13 names.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata

# JavaScript's `\s`: WhiteSpace and LineTerminator of ECMA-262 §12.2 and §12.3. Python's own lacks U+FEFF, and
# has U+0085 and U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
BASE64_LENGTH = 1024
"""From this length on, text of nothing but base64 counts as base64."""

_FENCE = "```"
_RUN = re.compile(f"[{WHITE_SPACE}]+")
# Node's decoder ends at the first `=`, so one that stands before the end is no base64: what follows it would
# not count.
_PADDING = f"(?:=[{WHITE_SPACE}]*){{0,2}}"
# RFC 4648 §4, "The Base 64 Alphabet". Text that does not say it is base64 is never taken for the URL-safe
# alphabet of §5: that would take snake_case and hyphenated prose in as well.
_BASE64 = re.compile(f"[A-Za-z0-9+/{WHITE_SPACE}]*{_PADDING}")
# Text that does say so may use either alphabet, as Node's Buffer.from(…, "base64") decodes both.
_DATA_URL = re.compile(f"data:[^,]*;base64,(?P<data>[A-Za-z0-9+/_{WHITE_SPACE}-]*{_PADDING})")
_STANDARD = str.maketrans("-_", "+/")


def normalize_text(text: str) -> str:
    """`sha256:` and hex for text that is base64, else NFC, LF line ends and tidy white space outside fences.

    Base64 is a whole-string `data:…;base64,…` or `BASE64_LENGTH` UTF-16 units and more of the alphabet, white
    space and padding. A fence opens and closes with a line that starts with three backticks, after white
    space or none; its lines, the first and last too, stay as they are. An unclosed one runs to the end.
    Blank lines at the start and the end of the whole text go, in a fence too.
    """
    data = _base64_of(text)
    if data is not None:
        return "sha256:" + hashlib.sha256(_decoded(data)).hexdigest()
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.lstrip(WHITE_SPACE).startswith(_FENCE):
            fenced = not fenced
            lines.append(line)
        else:
            lines.append(line if fenced else _RUN.sub(" ", line).rstrip(" "))
    shown = [number for number, line in enumerate(lines) if line.strip(WHITE_SPACE)]
    return "\n".join(lines[shown[0] : shown[-1] + 1]) if shown else ""


def _base64_of(text: str) -> str | None:
    if found := _DATA_URL.fullmatch(text):
        return found["data"]
    # Every character of the pattern is one UTF-16 unit, so Python's length is JavaScript's.
    return text if len(text) >= BASE64_LENGTH and _BASE64.fullmatch(text) else None


def _decoded(data: str) -> bytes:
    """The bytes as Node decodes them: white space ignored, padding optional, a lone last letter dropped."""
    digits = _RUN.sub("", data).rstrip("=").translate(_STANDARD)
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return base64.b64decode(digits + "=" * (-len(digits) % 4))
