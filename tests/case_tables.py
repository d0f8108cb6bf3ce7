"""The handed tables of cases, read as `rewind test-match --cases` reads them, and fakes as they make them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.case_table import expand, read_table

CASES = Path(__file__).parent / "cases"


def fake(prefix: str, length: int, salt: str = "") -> str:
    """A fake credential."""
    return expand(f"<<FAKE:{prefix}:{length}:{salt}>>" if salt else f"<<FAKE:{prefix}:{length}>>")


def fake_hex(prefix: str, length: int) -> str:
    """A fake credential of hexadecimal digits, some of them letters."""
    draw = random.Random(f"{prefix}{length}")
    return prefix + "".join(draw.choice("0123456789abcdef") for _ in range(length - 2)) + "a1"


def read_cases(name: str) -> list[JsonObject]:
    """The cases of a table, expanded."""
    return [case for _, case in read_table(CASES / name)]


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
