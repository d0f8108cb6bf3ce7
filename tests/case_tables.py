"""Tables of cases: one JSON object a line, with fake credentials written as marks and made when read.

`<<FAKE:prefix:n>>` (or `<<FAKE:prefix:n:salt>>`) becomes the prefix and n characters that a generator seeded
with the whole mark draws, so that no scanner of secrets trips over the files.
"""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path
from typing import cast

from rewind_proxy.canonical.model import JsonObject, JsonValue

CASES = Path(__file__).parent / "cases"
_MARK = re.compile(r"<<FAKE:([^:>]*):([0-9]+)(?::[^>]*)?>>")
_CAPITALS = ("AKIA", "ASIA")


def expand(text: str) -> str:
    """`text` with its marks expanded."""
    return _MARK.sub(_made, text)


def _made(mark: re.Match[str]) -> str:
    prefix, length = mark[1], int(mark[2])
    alphabet = string.ascii_uppercase if prefix in _CAPITALS else string.ascii_letters
    draw = random.Random(mark[0])
    return prefix + "".join(draw.choice(alphabet + string.digits) for _ in range(length))


def fake(prefix: str, length: int, salt: str = "") -> str:
    """A fake credential."""
    return expand(f"<<FAKE:{prefix}:{length}:{salt}>>" if salt else f"<<FAKE:{prefix}:{length}>>")


def fake_hex(prefix: str, length: int) -> str:
    """A fake credential of hexadecimal digits, some of them letters."""
    draw = random.Random(f"{prefix}{length}")
    return prefix + "".join(draw.choice("0123456789abcdef") for _ in range(length - 2)) + "a1"


def read_cases(name: str) -> list[JsonObject]:
    """The cases of a table, expanded."""
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [cast("JsonObject", json.loads(expand(line))) for line in lines if line.strip()]


def strings(value: JsonValue) -> list[str]:
    """The string leaves of a value, and those of JSON inside them."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return [value]
        return [value, *strings(inner)] if isinstance(inner, dict | list) else [value]
    if isinstance(value, dict):
        return [text for child in value.values() for text in strings(child)]
    if isinstance(value, list):
        return [text for child in value for text in strings(child)]
    return []
