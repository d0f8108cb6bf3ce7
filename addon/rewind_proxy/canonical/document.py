"""A JSON body read with a memory of its longer pieces: the messages and tools that were sent before.

Equal text gives the same `Item`, whatever came in between, so a body reads the same with and without the
memory; only the time differs. What is odd about a body is left to `jcs.parse` as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.item import Item, of_item
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction, Redactor
from rewind_proxy.errors import OpaqueBodyError

_BYTES = 12_000_000
"""Of memory, about, that is taken by objects and what is kept with them."""
_SHORTEST = 48
_LEAD = 160
_ALIKE = 64
"""Objects with one lead: calls of one tool in one folder start alike for long."""
_ENTRY = 2_500
_PER_CHARACTER = 5
"""What an object takes, measured: the text, its value, canonical bytes, parts and templates."""

_CONTAINERS = (dict, list)
_READ = (str, dict, list)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE = re.compile(r"[ \t\n\r]*")
_Scan: TypeAlias = Callable[[str, int], tuple[JsonValue, int]]


class Document:
    """A body as it was read: its value, and its canonical bytes, put together from those of its pieces."""

    __slots__ = ("value",)

    def __init__(self, value: JsonValue) -> None:
        self.value = value

    def canonical(self) -> bytes:
        """The canonical bytes (RFC 8785), as `jcs.dumps` gives them."""
        value = self.value
        if not isinstance(value, dict) or not all(map(str.isascii, value)):
            return jcs.dumps(value)
        members = [b"%b:%b" % (_name(name), _canonical(value[name])) for name in sorted(value)]
        return b"{" + b",".join(members) + b"}"

    def redacted(self, redactor: Redactor, found: list[Redaction]) -> JsonValue:
        """The value without credentials, as `Redactor.value` gives it, piece by piece."""
        body = self.value
        if not isinstance(body, dict) or redactor.concerns(body):
            return redactor.value(body, found)
        flat: JsonObject = {n: value for n, value in body.items() if not isinstance(value, _CONTAINERS)}
        clean = redactor.value(flat, found)
        assert isinstance(clean, dict)
        changes: JsonObject = {} if clean is flat else clean
        for name, value in body.items():
            if isinstance(value, list) and name != "input_audio" and _NAME.fullmatch(name):
                kept = _redacted_list(value, name, redactor, found)
                if kept is not value:
                    changes[name] = kept
            elif isinstance(value, _CONTAINERS):
                one: JsonObject = {name: value}
                cleaned = redactor.value(one, found)
                if cleaned is not one and isinstance(cleaned, dict):
                    changes[name] = cleaned[name]
        return {**body, **changes} if changes else body


def _redacted_list(
    items: list[JsonValue], name: str, redactor: Redactor, found: list[Redaction]
) -> list[JsonValue]:
    kept: list[JsonValue] = []
    changed = False

    def redact(item: JsonValue) -> tuple[JsonValue, tuple[Redaction, ...]]:
        below: list[Redaction] = []
        alone: list[JsonValue] = [item]
        clean = redactor.value(alone, below)
        if clean is alone or not isinstance(clean, list):
            return item, ()
        first = clean[0]
        return (Item(first) if isinstance(first, dict) else first), tuple(below)

    for index, item in enumerate(items):
        clean, below = of_item(item, redactor, redact) if isinstance(item, _READ) else (item, ())
        kept.append(clean)
        if below:
            changed = True
            at = f"$.{name}[{index}]"
            found.extend(Redaction(each.rule, at + each.path.removeprefix("$[0]")) for each in below)
    return kept if changed else items


def _name(name: str) -> bytes:
    return b'"%b"' % name.encode() if _NAME.fullmatch(name) else jcs.dumps(name)


def _canonical(value: JsonValue) -> bytes:
    if isinstance(value, list) and any(isinstance(item, Item) for item in value):
        return b"[" + b",".join([canonical_item(item) for item in value]) + b"]"
    return jcs.dumps(value)


def canonical_item(value: JsonValue) -> bytes:
    """The canonical bytes of a piece of a body."""
    return of_item(value, "canonical", jcs.dumps)


@dataclass(frozen=True, slots=True)
class _Known:
    raw: str
    item: Item


class _Odd(Exception):  # noqa: N818  # no error: it says that the plain way is to be taken
    """The body is to be read as a whole."""


class Documents:
    """Reads bodies, and remembers the objects in their lists until they add up to a bound.

    The oldest go first. Each operation is one of `dict`, which is atomic, so threads may share it.
    """

    def __init__(self, most: int = _BYTES) -> None:
        self._known: dict[str, tuple[_Known, ...]] = {}
        self._bytes = 0
        self._most = most

    def __len__(self) -> int:
        """How many objects are remembered."""
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

    def _list(self, text: str, at: int, scan: _Scan) -> tuple[JsonValue, int]:
        items: list[JsonValue] = []
        at = _past_space(text, at + 1)
        if text[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self._item(text, at, scan)
            items.append(item)
            at = _past_space(text, at)
            mark = text[at : at + 1]
            if mark == "]":
                return items, at + 1
            if mark != ",":
                raise _Odd
            at = _past_space(text, at + 1)

    def _item(self, text: str, at: int, scan: _Scan) -> tuple[JsonValue, int]:
        for lead in (text[at : at + _LEAD], text[at : at + _SHORTEST]):
            for known in self._known.get(lead, ()):
                # An object ends where it ends: what starts with its text at its place is this very object.
                if text.startswith(known.raw, at):
                    return known.item, at + len(known.raw)
        value, end = scan(text, at)
        if not isinstance(value, dict):
            if isinstance(value, list):
                jcs.check_depth(value, text, at, end, above=2)
            return value, end
        jcs.check_depth(value, text, at, end, above=2)
        if end - at < _SHORTEST:
            return value, end
        item = Item(value)
        self._remember(_Known(text[at:end], item))
        return item, end

    def _remember(self, known: _Known) -> None:
        lead = known.raw[: _LEAD if len(known.raw) >= _LEAD else _SHORTEST]
        alike = self._known.pop(lead, ())
        self._known[lead] = (*alike[1 - _ALIKE :], known)
        self._bytes += _size(known) - sum(map(_size, alike[: 1 - _ALIKE]))
        while self._bytes > self._most:
            oldest = next(iter(self._known), None)
            if oldest is None:
                self._bytes = 0
                return
            for each in self._known.pop(oldest, ()):
                self._bytes -= _size(each)


def _size(known: _Known) -> int:
    return _PER_CHARACTER * len(known.raw) + _ENTRY


def _past_space(text: str, at: int) -> int:
    if text[at : at + 1] not in (" ", "\t", "\n", "\r"):
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at
