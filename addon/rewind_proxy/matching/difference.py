"""Where two requests part: the first difference in canonical order, by JSON path (DESIGN §8, "Reports")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.pointer import ROOT, Pointer
from rewind_proxy.canonical.text import whole_characters
from rewind_proxy.canonical.walk import in_order

EXCERPT = 120
ABSENT = "(absent)"
_SECTIONS = ("operation", "messages", "tools", "params")
_OUTER_SECTIONS = ("class", "method", "host", "path", "query", "body")


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where `a` (recorded) and `b` (live) differ: short texts, redacted as their sources."""

    path: str
    a: str
    b: str

    def to_json(self) -> JsonObject:
        """`{"path", "a", "b"}`."""
        return {"path": self.path, "a": self.a, "b": self.b}


def differences(a: JsonObject, b: JsonObject) -> Iterator[Difference]:
    """All differences of two normalised views (`Normalised.view`), messages first."""
    for section in _SECTIONS:
        yield from _walk(a.get(section), b.get(section), ROOT.member(section))


def outer_differences(a: JsonObject, b: JsonObject) -> Iterator[Difference]:
    """All differences of two requests as sent: `{"class", "method", "host", "path", "query", "body"}`."""
    for section in _OUTER_SECTIONS:
        yield from _walk(a.get(section), b.get(section), ROOT.member(section))


class _Absent:
    pass


_ABSENT = _Absent()


def _walk(a: JsonValue | _Absent, b: JsonValue | _Absent, at: Pointer) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in in_order(cast("JsonObject", {**a, **b})):
            yield from _walk(a.get(name, _ABSENT), b.get(name, _ABSENT), at.member(name))
    elif isinstance(a, list) and isinstance(b, list):
        for index in range(max(len(a), len(b))):
            left = a[index] if index < len(a) else _ABSENT
            right = b[index] if index < len(b) else _ABSENT
            yield from _walk(left, right, at.item(index))
    elif isinstance(a, str) and isinstance(b, str):
        if a != b:
            yield Difference(str(at), *_excerpts(a, b))
    elif type(a) is not type(b) or a != b:  # True == 1 in Python, not in JSON
        yield Difference(str(at), _short(a), _short(b))


def common_length(a: str, b: str) -> int:
    """How many characters two texts have in common at their start."""
    # Halving instead of stepping: a megabyte with one changed character costs a few comparisons.
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _excerpts(a: str, b: str) -> tuple[str, str]:
    """The two texts around the first place where they part."""
    start = max(0, common_length(a, b) - EXCERPT // 3)
    return _cut(a, start), _cut(b, start)


def _cut(text: str, start: int) -> str:
    end = start + EXCERPT
    return ("…" if start else "") + whole_characters(text[start:end]) + ("…" if end < len(text) else "")


def _short(value: JsonValue | _Absent) -> str:
    if isinstance(value, _Absent):
        return ABSENT
    return _cut(value if isinstance(value, str) else dumps(value).decode("utf-8", "replace"), 0)
