"""Reads JSON bodies with a memory of their lists: the messages and tools that were sent before.

Equal text gives the same items, whatever came in between, so a body reads the same with and without the
memory; only the time differs. What is odd about a body is left to `jcs.parse` as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_BESIDE = 200_000
"""Of that memory, for the lists beside one that goes on from the same list."""
_PROBE = 64
_LAST = 3
"""Items at the end of a list that the next request may say otherwise: Claude Code moves its cache marks."""
_ENTRY = 800
_PER_CHARACTER = 4
"""What an item takes, measured: the text, its value, messages, numbers."""

_CONTAINERS = (dict, list)
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class _Known:
    """A list of objects as it was written: `raw` is its text up to the end of its last item."""

    raw: str
    items: History
    ends: tuple[int, ...]
    """Where the last items end in `raw`: of those that `items.before` holds the last, then all after them."""

    def starts(self, text: str, start: int, more_than: int) -> tuple[int, int]:
        """With how many of the items the list at `start` starts, and how long these are in `raw`.

        Nothing less than `items.before` counts, nor what is no longer than `more_than`: an object ends where
        it ends, so what starts with the text of some items starts with these very objects.
        """
        count = len(self.items)
        for end in reversed(self.ends):
            if end <= more_than:
                break
            probe = max(0, end - _PROBE)  # quicker to compare than all of it
            if text[start + probe : start + end] == self.raw[probe:end]:
                raw = self.raw if end == len(self.raw) else self.raw[:end]
                if text.startswith(raw, start):
                    return count, end
            count -= 1
        return 0, 0

    def holds(self, items: History) -> bool:
        """Whether what was made of these items is kept."""
        return items is self.items or items is self.items.before

    def first(self, count: int) -> History:
        """The items up to one that `starts` told."""
        before = self.items.before
        if count == len(self.items):
            return self.items
        if before is not None and count == len(before):
            return before
        return History(self.items[:count], before)


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
            value = self._object(text)
        except (_Odd, OpaqueBodyError, ValueError, RecursionError):
            return Document(jcs.parse(body))
        return Document(value)

    def _object(self, text: str) -> JsonObject:
        """The object that `text` is. Raises for all that is not one, and for what is odd about it."""
        at = _past_space(text, 0)
        if text[at : at + 1] != "{":
            raise _Odd
        members: JsonObject = {}
        at = _past_space(text, at + 1)
        while True:
            name, at = jcs.scan(text, at)
            at = _past_space(text, at)
            if not isinstance(name, str) or name in members or "⟨" in name or text[at : at + 1] != ":":
                raise _Odd
            at = _past_space(text, at + 1)
            if text[at : at + 1] == "[":
                members[name], at = self._list(text, at)
            else:
                value, end = jcs.scan(text, at)
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

    def _list(self, text: str, start: int) -> tuple[JsonValue, int]:
        known, before, at = self._before(text, start)
        if before is None:
            at = _past_space(text, start + 1)
            if text[at : at + 1] == "]":
                return [], at + 1
        items: list[JsonValue] = [] if before is None else [*before]
        ends: list[int] = [] if before is None else [at]
        expected = before is None
        while True:
            if expected:
                item, at = _item(text, at)
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
        if before is not None and len(items) == len(before):
            return before, at + 1
        if at - start < _LEAD or not all(type(item) is dict for item in items):
            return items, at + 1
        raw = text[start : ends[-1]]
        return self._remember(known, before, raw, items, [end - start for end in ends]), at + 1

    def _before(self, text: str, start: int) -> tuple[_Known | None, History | None, int]:
        """What holds the longest list that the one at `start` goes on from, that list, and where it ends."""
        best: tuple[_Known | None, int, int] = (None, 0, 0)
        lead = text[start : start + _LEAD]
        for known in reversed(self._known.get(lead, ())):  # of two the newer one, which may hold it already
            count, length = known.starts(text, start, best[2])
            if length:
                best = (known, count, length)
        known_best, count, length = best
        if known_best is None:
            return None, None, start
        self._known[lead] = self._known.pop(lead, (known_best,))
        return known_best, known_best.first(count), start + length

    def _remember(
        self, known: _Known | None, before: History | None, raw: str, items: list[JsonValue], ends: list[int]
    ) -> History:
        """`ends` are where the items end in `raw`: of those that `before` holds the last, then all others."""
        done = len(before) if before is not None else 0
        kept = len(items) - _LAST
        base = before
        # What is kept with it is all that is needed of what came before, unless it was only now told apart.
        if before is not None and known is not None and known.holds(before):
            before.before = None
        if kept > done:
            base = History(items[:kept], before)
            ends = ends[kept - len(items) - 1 :]
        made = History(items, base)
        lead = raw[:_LEAD]
        # What goes on from the whole of a list, or is longer, is its next turn.
        turn = known if known and (before is known.items or len(items) > len(known.items)) else None
        alike: list[_Known] = []
        dropped: list[_Known] = []
        room = _BESIDE
        for each in reversed(self._known.get(lead, ())):
            # Another question about one history is read from there on, so large ones need not be kept.
            beside = base is not None and each.items.before is base
            room -= _size(each) if beside else 0
            (dropped if each is turn or (beside and room < 0) else alike).append(each)
        alike.reverse()
        if len(alike) >= _ALIKE:
            dropped += alike[: 1 - _ALIKE]
            alike = alike[1 - _ALIKE :]
        self._known.pop(lead, None)
        kept_now = _Known(raw, made, tuple(ends))
        self._known[lead] = (*alike, kept_now)
        self._bytes += _size(kept_now) - sum(map(_size, dropped))
        while self._bytes > self._most and len(self._known) > _AT_LEAST:
            oldest = next(iter(self._known), None)
            if oldest is None:
                self._bytes = 0
                break
            for each in self._known.pop(oldest, ()):
                self._bytes -= _size(each)
        return made


def _item(text: str, at: int) -> tuple[JsonValue, int]:
    value, end = jcs.scan(text, at)
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
