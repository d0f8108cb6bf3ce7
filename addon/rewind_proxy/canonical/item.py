"""An object of a request that keeps what was made of it, for as long as it lives.

An agent sends its whole history again on every turn. `Documents` gives equal text the same objects, and each
step of the pipeline leaves its result with the object it depends on: what is dropped from that one memory is
gone everywhere. A step may be kept so only if it depends on nothing but the object and the key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from rewind_proxy.canonical.model import JsonObject, JsonValue

R = TypeVar("R")

_MOST = 8
"""Results per object; with more, settings or secrets keep changing, and the old ones are of no use."""


class Item(dict[str, "JsonValue"]):
    """A JSON object, never changed once it is made, with what was made of it."""

    __slots__ = ("_made",)

    def __init__(self, members: JsonObject) -> None:
        super().__init__(members)
        self._made: dict[Hashable, object] | None = None

    def recall(self, key: Hashable, make: Callable[[], R]) -> R:
        """What `make` gave the first time it was asked for under `key`."""
        made = self._made
        if made is None:
            made = self._made = {}
        elif key in made:
            return cast("R", made[key])
        result = make()
        if len(made) >= _MOST:
            made.clear()
        made[key] = result
        return result


def as_item(value: JsonObject) -> Item:
    """The object as one that keeps what is made of it."""
    return value if isinstance(value, Item) else Item(value)


def of_item(value: JsonValue, key: Hashable, make: Callable[[JsonValue], R]) -> R:
    """`make(value)`, kept with the value if it is an `Item`."""
    return value.recall(key, lambda: make(value)) if isinstance(value, Item) else make(value)
