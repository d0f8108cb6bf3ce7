"""Aliases: approved pairings of a request with a cassette, and how they are found by a fingerprint.

Keys of the table `aliases`:

    "r", id → record and structure of the request       "k", settings, fingerprint, id → nothing
    "i", settings, id → fingerprint

What is found by a fingerprint is found under the settings that it was computed for, as in `index`; the
request itself is kept too, so that it can be computed for others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import cast

from pydantic import ValidationError

from rewind_proxy.canonical.jcs import store_dumps, store_loads
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, StoreError, traceback_of
from rewind_proxy.store import structure
from rewind_proxy.store.blobs import compress, decompress
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.records import AliasRecord
from rewind_proxy.store.transaction import MemoryTxn, Txn

_logger = logging.getLogger(__name__)

TABLE = "aliases"
_RECORD, _KEYED, _INDEXED = b"r", b"k", b"i"
_ID = 32
_SHORTEST_PREFIX = 4

Fingerprint = Callable[[AliasRecord, JsonValue], str]
"""The normalised fingerprint of an alias's request, given its body, under the settings in force."""


class Aliases:
    """The aliases of a store, seen under one set of match settings."""

    def __init__(self, place: Generations, settings: bytes) -> None:
        self._place = place
        self._settings = settings
        self._memory: MemoryTxn | None = None

    def all(self) -> list[AliasRecord]:
        """All that can be read (`Store.check` names the others), the newest first."""
        with self._place.read() as txn:
            return sorted(_readable(txn), key=lambda each: each.approved_at, reverse=True)

    def find(self, id_or_prefix: str) -> AliasRecord:
        """The alias with an id, or the start of one. Raises `StoreError` without one, or with several."""
        found = [each for each in self.all() if each.id.startswith(id_or_prefix.lower())]
        if not found or len(id_or_prefix) < _SHORTEST_PREFIX:
            raise StoreError(f"no alias {id_or_prefix!r}: `rewind aliases` lists them")
        if len(found) > 1:
            raise StoreError(f"more than one alias starts with {id_or_prefix!r}: give more digits")
        return found[0]

    def body(self, alias: AliasRecord) -> JsonValue:
        """The redacted wire body of its request; None where none was kept. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            return read(txn, alias.id)[1]

    def put(self, alias: AliasRecord, body: JsonValue, normalised: str) -> None:
        """Write an alias, in place of one of the same id; `normalised` is the fingerprint of its request.

        Raises `StoreError`.
        """
        with self._place.write() as txn:
            remove(txn, alias.id)
            write(txn, alias, body)
            _enter(txn, self._settings, alias.id, normalised)

    def lead(self, cassettes: Collection[str], to: str) -> None:
        """Have the aliases of some cassettes lead to the one in their place. Raises `StoreError`."""
        with self._place.write() as txn:
            for alias in [each for each in _readable(txn) if each.cassette in cassettes]:
                name = bytes.fromhex(alias.id)
                moved = alias.model_copy(update={"cassette": to})
                txn.put(TABLE, _RECORD + name, _encoded(moved, _stored(txn, alias.id)[1]))

    def remove(self, alias_id: str) -> bool:
        """Remove an alias (by its whole id); whether it was there. Raises `StoreError`."""
        with self._place.write() as txn:
            return remove(txn, alias_id)

    def lookup(self, fingerprint: str) -> AliasRecord | None:
        """The alias of a normalised fingerprint, the newest where there are several; None without one.

        Raises `CorruptRecordError`.
        """
        prefix = _KEYED + self._settings + bytes.fromhex(fingerprint)
        with self._place.read() as txn:
            names = [key[-_ID:] for key, _ in (self._memory or txn).scan(TABLE, prefix)]
            found = [_parse(name, value)[0] for name in names if (value := txn.get(TABLE, _RECORD + name))]
        return max(found, key=lambda each: each.approved_at, default=None)

    def index(self, compute: Fingerprint) -> None:
        """Index what is not indexed under the settings in force; in memory where the store is read-only.

        One that is damaged or cannot be keyed answers nothing, and costs no other.
        """
        with self._place.read() as txn:
            missing = self._missing(txn)
        keyed = [
            (record.id, fingerprint)
            for record in missing
            if (fingerprint := self._keyed(record, compute)) is not None
        ]
        if not keyed:
            return
        if self._place.readonly:
            self._memory = MemoryTxn()
            for alias_id, fingerprint in keyed:
                _enter(self._memory, self._settings, alias_id, fingerprint)
            return
        with self._place.write() as txn:
            for alias_id, fingerprint in keyed:
                if txn.get(TABLE, _RECORD + bytes.fromhex(alias_id)) is not None:
                    _enter(txn, self._settings, alias_id, fingerprint)

    def _keyed(self, record: AliasRecord, compute: Fingerprint) -> str | None:
        try:
            return compute(record, self.body(record))
        except CorruptRecordError:
            return None  # a check names it
        except Exception as error:  # a fault of ours with this one request must not cost all the others
            why = traceback_of(error)
            _logger.error("rewind: alias %s cannot be keyed; it will not answer\n%s", record.id, why)
            return None

    def _missing(self, txn: Txn) -> list[AliasRecord]:
        indexed = {
            key[-_ID:].hex() for key, _ in (self._memory or txn).scan(TABLE, _INDEXED + self._settings)
        }
        return [record for record in _readable(txn) if record.id not in indexed]


def ids(txn: Txn) -> list[str]:
    """The ids of all aliases."""
    return [key[1:].hex() for key, _ in txn.scan(TABLE, _RECORD)]


def read(txn: Txn, alias_id: str) -> tuple[AliasRecord, JsonValue]:
    """An alias and the body of its request. Raises `CorruptRecordError`."""
    record, stored = _stored(txn, alias_id)
    try:
        return record, None if stored is None else structure.read(txn, stored)
    except (CorruptRecordError, ValueError) as error:
        raise CorruptRecordError(f"alias {alias_id} is damaged: {error}") from error


def references(txn: Txn, alias_id: str) -> Iterator[bytes]:
    """The blobs and lists that an alias refers to. Raises `CorruptRecordError`."""
    stored = _stored(txn, alias_id)[1]
    if stored is not None:
        yield from structure.references(stored)


def write(txn: Txn, alias: AliasRecord, body: JsonValue) -> None:
    """Write an alias that is not there, without indexing it."""
    stored = None if body is None else structure.keep(txn, structure.plan(body))
    txn.put(TABLE, _RECORD + bytes.fromhex(alias.id), _encoded(alias, stored))


def remove(txn: Txn, alias_id: str) -> bool:
    """Remove an alias under all settings, and what only it used; whether it was there."""
    name = bytes.fromhex(alias_id)
    value = txn.get(TABLE, _RECORD + name)
    if value is None:
        return False
    stored = _parse(name, value)[1]
    if stored is not None:
        structure.drop(txn, stored)
    txn.delete(TABLE, _RECORD + name)
    for key in [key for kind in (_KEYED, _INDEXED) for key, _ in txn.scan(TABLE, kind) if key[-_ID:] == name]:
        txn.delete(TABLE, key)
    return True


def remove_of(txn: Txn, cassettes: Collection[str]) -> None:
    """Remove the aliases that lead to cassettes which are gone."""
    for alias in [each for each in _readable(txn) if each.cassette in cassettes]:
        remove(txn, alias.id)


def problems(txn: Txn) -> Iterator[str]:
    """What is wrong with the index of the aliases; their records and bodies are read by whoever asks."""
    names = {key[1:] for key, _ in txn.scan(TABLE, _RECORD)}
    keyed = {(key[1:-_ID], key[-_ID:]) for key, _ in txn.scan(TABLE, _KEYED)}
    indexed = {(key[1:-_ID] + value, key[-_ID:]) for key, value in txn.scan(TABLE, _INDEXED)}
    if keyed != indexed or not {name for _, name in keyed} <= names:
        yield "the aliases are indexed wrongly"


def _enter(txn: Txn, settings: bytes, alias_id: str, fingerprint: str) -> None:
    name, key = bytes.fromhex(alias_id), bytes.fromhex(fingerprint)
    txn.put(TABLE, _KEYED + settings + key + name, b"")
    txn.put(TABLE, _INDEXED + settings + name, key)


def _encoded(alias: AliasRecord, stored: JsonValue) -> bytes:
    return compress(store_dumps([json.loads(alias.to_json()), stored]))


def _readable(txn: Txn) -> Iterator[AliasRecord]:
    for alias_id in ids(txn):
        with suppress(CorruptRecordError):  # a check names it, and maintenance leaves it out
            yield _stored(txn, alias_id)[0]


def _stored(txn: Txn, alias_id: str) -> tuple[AliasRecord, JsonValue]:
    name = bytes.fromhex(alias_id)
    value = txn.get(TABLE, _RECORD + name)
    if value is None:
        raise CorruptRecordError(f"alias {alias_id} is not in the store any more")
    return _parse(name, value)


def _parse(name: bytes, value: bytes) -> tuple[AliasRecord, JsonValue]:
    try:
        record, stored = cast("list[JsonValue]", store_loads(decompress(value)))
        return AliasRecord.model_validate(record), stored
    except (CorruptRecordError, ValidationError, ValueError, TypeError) as error:
        raise CorruptRecordError(f"alias {name.hex()} does not parse: run `rewind verify`") from error
