"""An object that arrives in deltas, as the chunks of Chat Completions carry one."""

from __future__ import annotations

from operator import itemgetter
from typing import TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.forms.rendering import joined

_REPLACED = frozenset({"id", "type", "role", "object", "format", "signature"})
"""Strings that are said once, or again in full, and never in pieces."""


class Growth:
    """Strings go on where they stopped, lists get more entries, objects grow, all else is replaced.

    Lenient where providers differ: a null says nothing, and a name that comes again in full is that name.
    """

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}

    def add(self, delta: JsonObject) -> None:
        """The next delta."""
        for name, value in delta.items():
            known = self._members.get(name)
            if isinstance(value, str) and name not in _REPLACED:
                self._say(name, value, known)
            elif isinstance(value, dict):
                grown = known if isinstance(known, Growth) else Growth()
                grown.add(value)
                self._members[name] = grown
            elif isinstance(value, list):
                entries = known if isinstance(known, Entries) else Entries()
                entries.add(value)
                self._members[name] = entries
            elif value is not None and (value != "" or known is None):
                self._members[name] = _Fixed(value)

    def _say(self, name: str, piece: str, known: _Member | None) -> None:
        if not isinstance(known, _Text):
            self._members[name] = _Text(piece)
        elif not (name == "name" and known.pieces == [piece]):
            known.pieces.append(piece)

    def value(self) -> JsonObject:
        """The object so far."""
        return {name: member.value() for name, member in self._members.items()}

    def identifier(self) -> JsonValue:
        """The member `id`, where it is known."""
        known = self._members.get("id")
        return known.value() if known is not None else None


class Entries:
    """A list that arrives in deltas: an entry with an `index` goes on, others are new.

    Gateways leave the index out of a chunk that holds one call, or give all calls the same: an id other than
    the one at that place starts a new entry. Entries stand in the order of their indexes, where each has one
    of its own; parallel calls need not begin in that order.
    """

    def __init__(self) -> None:
        self._entries: list[_Fixed | Growth] = []
        self._places: dict[int, Growth] = {}
        self._indexes: list[int] = []
        """That the entries said themselves, in the order in which they began."""

    def add(self, values: list[JsonValue]) -> None:
        """The entries of one delta."""
        for position, value in enumerate(values):
            call = isinstance(value, dict) and ("function" in value or "custom" in value)
            place = value.get("index", position if call else None) if isinstance(value, dict) else None
            if not isinstance(value, dict) or not isinstance(place, int):
                self._entries.append(_Fixed(value))
                continue
            known = self._places.get(place)
            if known is None or _another(known.identifier(), value.get("id")):
                known = self._places[place] = Growth()
                self._entries.append(known)
                if "index" in value:
                    self._indexes.append(place)
            known.add(value)

    def value(self) -> list[JsonValue]:
        """The list so far."""
        found = [entry.value() for entry in self._entries]
        if len(set(self._indexes)) < len(found):
            return found
        return [entry for _, entry in sorted(zip(self._indexes, found, strict=True), key=itemgetter(0))]


def _another(known: JsonValue, said: JsonValue) -> bool:
    return bool(known) and bool(said) and known != said


class _Text:
    def __init__(self, piece: str) -> None:
        self.pieces = [piece]

    def value(self) -> JsonValue:
        return joined(self.pieces)


class _Fixed:
    def __init__(self, value: JsonValue) -> None:
        self._value = value

    def value(self) -> JsonValue:
        return self._value


_Member: TypeAlias = _Text | _Fixed | Growth | Entries
