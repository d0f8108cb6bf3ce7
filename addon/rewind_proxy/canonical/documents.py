"""Reads JSON bodies with a memory of their lists: the messages and tools that were sent before.

Equal text gives the same items, whatever came in between, so a body reads the same with and without the
memory; only the time differs. What is odd about a body is left to `jcs.parse` as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.document import Document
from rewind_proxy.canonical.history import History
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError

_BYTES = 12_000_000
"""Of memory, about, that is taken by lists and what is kept with them."""
_AT_LEAST = 8
"""Lists that are kept however large: a session of megabytes is the one that must not be read anew."""
_LEAD = 200
_ALIKE = 64
"""Lists with one lead: sessions of one agent in one folder start alike."""
_PROBE = 64
_LAST = 3
"""Items at the end of a list that the next request may say otherwise: Claude Code moves its cache marks."""
_ENTRY = 800
_PER_CHARACTER = 4
"""What an item takes, measured: the text, its value, messages, numbers."""

_CONTAINERS = (dict, list)
_SPACE = re.compile(r"[ \t\n\r]*")
_Scan: TypeAlias = Callable[[str, int], tuple[JsonValue, int]]


@dataclass(frozen=True, slots=True)
class _Known:
    """A list of objects as it was written: `raw` is its text up to the end of its last item."""

    raw: str
    items: History
    cut: int
    """Where the items end in `raw` that `items.before` holds; 0 when that is none."""

    def probe(self) -> str:
        """The last of those items' text, which is quicker to compare than all of it."""
        return self.raw[max(0, self.cut - _PROBE) : self.cut]


class _Odd(Exception):  # noqa: N818  # no error: it says that the plain way is to be taken
    """The body is to be read as a whole."""


class Documents:
    """Reads bodies, and remembers their lists of objects until they add up to a bound.

    The oldest go first. Each operation is one of `dict`, which is atomic, so threads may share it.
    """

    def __init__(self, most: int = _BYTES) -> None:
        self._known: dict[str, tuple[_Known, ...]] = {}
        self._bytes = 0
        self._most = most

    def __len__(self) -> int:
        """How many lists are remembered."""
        return sum(map(len, self._known.values()))

    def read(self, body: bytes) -> Document:
        """Read one JSON document strictly. Raises `OpaqueBodyError` as `jcs.parse` does."""
        try:
            text = body.decode("utf-8")
            value = self._object(text, jcs.scanner(text))
        except (_Odd, OpaqueBodyError, ValueError, RecursionError):
            return Document(jcs.parse(body))
        return Document(value)

    def _object(self, text: str, scan: _Scan) -> JsonObject:
        """The object that `text` is. Raises for all that is not one, and for what is odd about it."""
        at = _past_space(text, 0)
        if text[at : at + 1] != "{":
            raise _Odd
        members: JsonObject = {}
        at = _past_space(text, at + 1)
        while True:
            name, at = scan(text, at)
            at = _past_space(text, at)
            if not isinstance(name, str) or name in members or "⟨" in name or text[at : at + 1] != ":":
                raise _Odd
            at = _past_space(text, at + 1)
            if text[at : at + 1] == "[":
                members[name], at = self._list(text, at, scan)
            else:
                value, end = scan(text, at)
                if isinstance(value, dict):
                    jcs.check_depth(value, text, at, end, above=1)
                members[name], at = value, end
            at = _past_space(text, at)
            mark = text[at : at + 1]
            at = _past_space(text, at + 1)
            if mark == "}" and at == len(text):
                return members
            if mark != ",":
                raise _Odd

    def _list(self, text: str, start: int, scan: _Scan) -> tuple[JsonValue, int]:
        known, before, at = self._before(text, start)
        if before is None:
            at = _past_space(text, start + 1)
            if text[at : at + 1] == "]":
                return [], at + 1
        items: list[JsonValue] = [] if before is None else [*before]
        ends: list[int] = []
        expected = before is None
        while True:
            if expected:
                item, at = _item(text, at, scan)
                items.append(item)
                ends.append(at)
            expected = True
            at = _past_space(text, at)
            mark = text[at : at + 1]
            if mark == "]":
                break
            if mark != ",":
                raise _Odd
            at = _past_space(text, at + 1)
        if before is not None and not ends:
            return before, at + 1
        if at - start < _LEAD or not all(type(item) is dict for item in items):
            return items, at + 1
        raw = text[start : ends[-1]]
        return self._remember(known, before, raw, items, [end - start for end in ends]), at + 1

    def _before(self, text: str, start: int) -> tuple[_Known | None, History | None, int]:
        """The longest list that the one at `start` goes on from, and where its items end."""
        best: tuple[_Known | None, History | None, int] = (None, None, start)
        lead = text[start : start + _LEAD]
        for known in self._known.get(lead, ()):
            end = start + len(known.raw)
            # An object ends where it ends: what starts with the text of some starts with these very objects.
            if end > best[2] and text.startswith(known.raw, start):
                best = (known, known.items, end)
                continue
            base, end = known.items.before, start + known.cut
            if base is None or end <= best[2] or text[end - _PROBE : end] != known.probe():
                continue
            if text.startswith(known.raw[: known.cut], start):
                best = (known, base, end)
        if best[1] is not None and best[0] is not None:
            self._known[lead] = self._known.pop(lead, (best[0],))
        return best

    def _remember(
        self, known: _Known | None, before: History | None, raw: str, items: list[JsonValue], ends: list[int]
    ) -> History:
        done = len(before) if before is not None else 0
        kept = len(items) - _LAST
        cut = 0
        base = before
        if before is not None:
            before.before = None  # what is kept with it is all that is needed of what came before
        if kept > done:
            base = History(items[:kept], before)
            cut = ends[kept - done - 1]
        elif known is not None:
            cut = len(known.raw) if before is known.items else known.cut
        made = History(items, base)
        lead = raw[:_LEAD]
        # What goes on from the whole of a list, or is longer, is its next turn.
        replaced = known if known and (before is known.items or len(items) > len(known.items)) else None
        alike = [each for each in self._known.pop(lead, ()) if each is not replaced]
        kept_alike = (*alike[1 - _ALIKE :], _Known(raw, made, cut))
        self._known[lead] = kept_alike
        dropped = alike[: 1 - _ALIKE] if len(alike) >= _ALIKE else []
        self._bytes += _size(kept_alike[-1]) - sum(map(_size, dropped)) - (_size(replaced) if replaced else 0)
        while self._bytes > self._most and len(self._known) > _AT_LEAST:
            oldest = next(iter(self._known), None)
            if oldest is None:
                self._bytes = 0
                break
            for each in self._known.pop(oldest, ()):
                self._bytes -= _size(each)
        return made


def _item(text: str, at: int, scan: _Scan) -> tuple[JsonValue, int]:
    value, end = scan(text, at)
    if isinstance(value, _CONTAINERS):
        jcs.check_depth(value, text, at, end, above=2)
    return value, end


def _size(known: _Known) -> int:
    return _PER_CHARACTER * len(known.raw) + _ENTRY * len(known.items)


def _past_space(text: str, at: int) -> int:
    if text[at : at + 1] not in (" ", "\t", "\n", "\r"):
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at
