"""Writing a whole log anew, as `rewrite` does with a store; but a log may change while it is copied.

So each value that was copied is noted by its digest, and at the end, with all writers waiting, what has
another digest by then is copied once more. The notes stand in `meta` of the new generation until then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store.environment import META, Environment
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.origin import read_origin, write_origin
from rewind_proxy.store.transaction import Txn

_BATCH = 256
_KIND = "redaction"
_COPIED = b"copied:"
_DIGEST = 16

Transform = Callable[[bytes, bytes], bytes]
"""The value of a key, redacted. Raises `CorruptRecordError` for what does not parse."""


class _Copy:
    """Copies tables from one generation to the next, from where the copy had come to."""

    def __init__(
        self,
        place: Generations,
        tables: Mapping[str, Transform],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._place = place
        self._tables = tables
        self._progress = progress
        self._done = 0

    def fill(self, target: Environment) -> None:
        """Copy in small transactions, until each table was gone through once."""
        with self._place.read() as source:
            total = sum(1 for table in self._tables for _ in source.scan(table, b""))
        for number, table in enumerate(self._tables):
            more = True
            while more:
                with self._place.read() as source, target.write() as txn:
                    more = self._next(source, txn, number, table)
                if self._progress is not None and self._done:
                    self._progress(min(self._done, total), total)

    def _next(self, source: Txn, target: Txn, number: int, table: str) -> bool:
        """Copy what comes next in a table; whether there was any."""
        origin = read_origin(target)
        assert origin is not None
        before, last = _position(origin.last)
        if before > number:
            return False
        after = last if before == number else b""
        page = list(islice(source.scan(table, b"", after), _BATCH))
        if not page:
            return False
        dropped = [*origin.dropped, *self._copied(target, table, page)]
        position = bytes([number]) + page[-1][0]
        write_origin(target, replace(origin, last=position.hex(), dropped=tuple(dropped)))
        return True

    def _copied(self, target: Txn, table: str, page: Iterable[tuple[bytes, bytes]]) -> Iterable[str]:
        for key, value in page:
            self._done += 1
            target.put(META, _note(table, key), _digest(value))
            try:
                target.put(table, key, self._tables[table](key, value))
            except CorruptRecordError as error:
                yield str(error)

    def finish(self, source: Txn, target: Txn) -> None:
        """Bring the copy up to date; nobody can write to the source any more."""
        origin = read_origin(target)
        assert origin is not None
        dropped = [*origin.dropped]
        for table in self._tables:
            changed = [
                (key, value)
                for key, value in source.scan(table, b"")
                if target.get(META, _note(table, key)) != _digest(value)
            ]
            dropped += self._copied(target, table, changed)
            for key, _ in list(target.scan(table, b"")):
                if source.get(table, key) is None:
                    target.delete(table, key)
        for note, _ in list(target.scan(META, _COPIED)):
            target.delete(META, note)
        if len(dropped) > len(origin.dropped):
            # Once each: killed just before the switch, all of this is done again.
            write_origin(target, replace(origin, dropped=tuple(dict.fromkeys(dropped))))


def _position(last: str) -> tuple[int, bytes]:
    """The number of the table and the key that were copied last."""
    position = bytes.fromhex(last)
    return (position[0], position[1:]) if position else (0, b"")


def _note(table: str, key: bytes) -> bytes:
    return _COPIED + table.encode() + b":" + key


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()[:_DIGEST]


def rewrite_log(
    place: Generations,
    tables: Mapping[str, Transform],
    rules: Iterable[str],
    progress: Callable[[int, int], None] | None,
) -> tuple[str, ...]:
    """See `Log.rewrite`."""
    copy = _Copy(place, tables, progress)
    return place.replace(rules, copy.finish, copy.fill, _KIND).dropped
