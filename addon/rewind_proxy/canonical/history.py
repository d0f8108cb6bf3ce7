"""A list of a body that goes on from the list that was sent before.

An agent sends its whole history again on every turn, and a little more. What a step of the pipeline makes of
the items so far is kept with them, and the next request goes on from there: it costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar, cast

from rewind_proxy.canonical.model import JsonValue

S = TypeVar("S")

_MOST = 8
"""Results per list; with more, settings or secrets keep changing, and the old ones are of no use."""


class History(list["JsonValue"]):
    """The items of a list, never changed once it is made. `before` is one that it starts with."""

    __slots__ = ("_made", "before")

    def __init__(self, items: Iterable[JsonValue], before: History | None = None) -> None:
        super().__init__(items)
        self.before = before
        self._made: dict[Hashable, object] = {}

    def fold(self, key: Hashable, start: Callable[[], S], step: Callable[[S, History, int], S]) -> S:
        """What `step` makes of the items, beginning with `start()`.

        `step(state, items, first)` takes in the items from `first` on and returns another state; it must not
        change the one it got. The results are kept under `key`, which tells all else that they depend on.
        """
        if key in self._made:
            return cast("S", self._made[key])
        before = self.before
        if before is None:
            made = step(start(), self, 0)
        else:
            made = step(before.fold(key, start, step), self, len(before))
        if len(self._made) >= _MOST:
            self._made.clear()
        self._made[key] = made
        return made


def fold(
    items: list[JsonValue], key: Hashable, start: Callable[[], S], step: Callable[[S, History, int], S]
) -> S:
    """`History.fold` of any list; of a plain one nothing is kept."""
    return (items if isinstance(items, History) else History(items)).fold(key, start, step)
