"""A bounded cache for results that depend on text alone."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_CHARACTERS = 2_000_000


class TextCache(Generic[K, V]):
    """Keeps results until their texts add up to `max_characters`; the oldest go first.

    Bounded by characters, not entries: one pasted file may be a megabyte, and a proxy must stay small. Each
    operation is one of `dict`, which is atomic, so that the loop and a writer thread may share it.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._entries: dict[K, tuple[V, int]] = {}
        self._characters = 0
        self._max = max_characters

    def get(self, key: K) -> V | None:
        """The result kept for `key`, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, characters: int) -> None:
        """Keep `value`; `characters` is the length of the text it came from."""
        if characters > self._max:
            return
        size = characters + 200  # the entry itself
        self._entries[key] = (value, size)
        self._characters += size
        if self._characters > self._max:
            self._drop()

    def _drop(self) -> None:
        """Drop the oldest, some at a time: its first key stands behind the places of all dropped ones."""
        for key in list(self._entries)[:-1]:
            if self._characters <= self._max * 7 // 8:
                return
            dropped = self._entries.pop(key, None)
            if dropped is not None:
                self._characters -= dropped[1]
        # What two threads put under one key was counted twice.
        self._characters = sum(size for _, size in list(self._entries.values()))
