"""What a transaction offers: named tables of ordered byte keys.

`MemoryTxn` is the same over dictionaries: a missing store opened read-only, and the index of a read-only
store, run through the code that LMDB runs through.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import lmdb


class Txn(Protocol):
    """One consistent view; what is written is seen by others all at once, or never."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        ...

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Write a value, in place of an older one."""
        ...

    def add(self, table: str, key: bytes, value: bytes) -> bool:
        """Write a value unless the key has one; whether it was written."""
        ...

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a key; whether it was there."""
        ...

    def scan(self, table: str, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys start with `prefix` and are greater than `after`, ascending.

        A caller that changes the table meanwhile takes a list first.
        """
        ...

    def scan_back(self, table: str, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys start with `prefix` (and are less than `before`, if given), descending."""
        ...


def past(prefix: bytes) -> bytes:
    """The smallest key greater than every key that starts with `prefix`, or empty when there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b""


class LmdbTxn:
    """A transaction of an LMDB environment with its open tables."""

    __slots__ = ("_raw", "_tables")

    def __init__(self, raw: lmdb.Transaction[bytes], tables: dict[str, lmdb._Database]) -> None:
        self._raw = raw
        self._tables = tables

    @property
    def number(self) -> int:
        """One more than the last that was committed, when it is for writing."""
        return self._raw.id()

    def end(self) -> None:
        """Drop it, with what it wrote."""
        self._raw.abort()

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._raw.get(key, db=self._tables[table])

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._raw.put(key, value, db=self._tables[table])

    def add(self, table: str, key: bytes, value: bytes) -> bool:
        return self._raw.put(key, value, overwrite=False, db=self._tables[table])

    def delete(self, table: str, key: bytes) -> bool:
        return self._raw.delete(key, db=self._tables[table])

    def scan(self, table: str, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        cursor = self._raw.cursor(self._tables[table])
        found = cursor.set_range(max(prefix, after)) if prefix or after else cursor.first()
        if found and after and cursor.key() == after:
            found = cursor.next()
        while found:
            key, value = cursor.item()
            if not key.startswith(prefix):
                return
            yield key, value
            found = cursor.next()

    def scan_back(self, table: str, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        cursor = self._raw.cursor(self._tables[table])
        end = before or past(prefix)
        found = cursor.prev() if end and cursor.set_range(end) else cursor.last()
        while found:
            key, value = cursor.item()
            if not key.startswith(prefix):
                return
            yield key, value
            found = cursor.prev()


class MemoryTxn:
    """The same over dictionaries. Keys are sorted once before the first scan after a change."""

    __slots__ = ("_keys", "_tables")

    def __init__(self) -> None:
        self._tables: dict[str, dict[bytes, bytes]] = {}
        self._keys: dict[str, list[bytes]] = {}

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._tables.get(table, {}).get(key)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._keys.pop(table, None)
        self._tables.setdefault(table, {})[key] = value

    def add(self, table: str, key: bytes, value: bytes) -> bool:
        if key in self._tables.get(table, {}):
            return False
        self.put(table, key, value)
        return True

    def delete(self, table: str, key: bytes) -> bool:
        self._keys.pop(table, None)
        return self._tables.get(table, {}).pop(key, None) is not None

    def scan(self, table: str, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        keys = self._sorted(table)
        start = bisect_left(keys, max(prefix, after))
        for key in keys[start : self._end(keys, prefix)]:
            if key != after:
                yield key, self._tables[table][key]

    def scan_back(self, table: str, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        keys = self._sorted(table)
        end = bisect_left(keys, before) if before else self._end(keys, prefix)
        for key in reversed(keys[bisect_left(keys, prefix) : end]):
            yield key, self._tables[table][key]

    def _sorted(self, table: str) -> list[bytes]:
        keys = self._keys.get(table)
        if keys is None:
            keys = self._keys[table] = sorted(self._tables.get(table, {}))
        return keys

    @staticmethod
    def _end(keys: list[bytes], prefix: bytes) -> int:
        end = past(prefix)
        return bisect_left(keys, end) if end else len(keys)
