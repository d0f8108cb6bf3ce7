"""Pending requests and their candidates, in the log: what was refused, and what could answer it.

    pending       id → length of the record, record as JSON, body
    candidates    id, cassette id → candidate as JSON

Refused again, a request is counted once, under the id that it has; the newest are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from pydantic import ValidationError

from rewind_proxy.canonical.jcs import store_dumps, store_loads
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, StoreError
from rewind_proxy.store.blobs import compress, decompress
from rewind_proxy.store.checking import Damage
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.records import CandidateRecord, PendingRecord
from rewind_proxy.store.transaction import Txn

TABLES = ("pending", "candidates")
_PENDING, _CANDIDATES = TABLES

MOST = 100
"""Pending requests that are kept."""
MOST_BYTES = 64 * 2**20
"""Of all of them, as stored; the newest is kept whatever its size."""
_LENGTH = 4
_LAST = "last"
_SHORTEST_PREFIX = 4


class PendingRequests:
    """The pending requests of a log."""

    def __init__(self, place: Generations) -> None:
        self._place = place

    def put(self, record: PendingRecord, body: JsonValue, candidates: Sequence[CandidateRecord]) -> None:
        """Keep a request that was refused now, with its candidates. Raises `StoreError`.

        One that is pending already is counted; a person's no to a candidate of it holds.
        """
        with self._place.write() as txn:
            held = list(_held(txn))
            known = next((each for each, _ in held if each.normalised == record.normalised), None)
            if known is not None:
                same = {"id": known.id, "first_at": known.first_at, "count": known.count + 1}
                record = record.model_copy(update=same)
            rejected = {each.cassette for each in _candidates(txn, record.id) if each.rejected}
            name = bytes.fromhex(record.id)
            value = encode(record, body)
            txn.put(_PENDING, name, value)
            offered = {each.cassette: each for each in candidates}
            for key, _ in list(txn.scan(_CANDIDATES, name)):
                if key[len(name) :].hex() not in offered.keys() | rejected:
                    txn.delete(_CANDIDATES, key)
            for each in candidates:
                _put_candidate(
                    txn, record.id, each.model_copy(update={"rejected": each.cassette in rejected})
                )
            others = [(each, size) for each, size in held if each.id != record.id]
            _remove_oldest(txn, others, len(value))

    def all(self) -> list[PendingRecord]:
        """All that can be read (`check` names the others), the newest first."""
        with self._place.read() as txn:
            held = [record for record, _ in _held(txn)]
        return sorted(held, key=lambda each: each.last_at, reverse=True)

    def find(self, name: str) -> PendingRecord:
        """The one with an id or the start of one, of a step (`RUN.NUMBER`), or the `last`.

        One that is put away is not the last. Raises `StoreError` when there is none, or more than one.
        """
        held = self.all()
        if name == _LAST:
            found = [each for each in held if not each.put_away][:1]
        elif "." in name:
            found = [each for each in held if f"{each.run}.{each.step}" == name]
        else:
            prefix = name.lower()
            found = [
                each for each in held if each.id.startswith(prefix) or each.normalised.startswith(prefix)
            ]
            found = found if len(name) >= _SHORTEST_PREFIX else []
        if not found:
            if name == _LAST:
                raise StoreError("no pending request 'last': nothing is pending")
            raise StoreError(f"no pending request {name!r}: `rewind pending` lists them")
        if len(found) > 1:
            raise StoreError(f"more than one pending request starts with {name!r}: give more digits")
        return found[0]

    def body(self, record: PendingRecord) -> JsonValue:
        """The redacted wire body of one; None where none was kept. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            value = txn.get(_PENDING, bytes.fromhex(record.id))
        return None if value is None else decode(record.id, value)[1]

    def candidates(self, record: PendingRecord) -> list[CandidateRecord]:
        """The candidates of one, the best first. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            found = list(_candidates(txn, record.id))
        return sorted(found, key=lambda each: each.score, reverse=True)

    def check(self) -> list[Damage]:
        """What does not parse."""
        damaged: list[Damage] = []
        with self._place.read() as txn:
            for table, read in _READERS:
                for key, value in txn.scan(table, b""):
                    try:
                        read(key, value)
                    except CorruptRecordError as error:
                        damaged.append(Damage(str(error)))
        return damaged

    def reject(self, record: PendingRecord, cassette: str | None = None) -> None:
        """Note a person's no to one candidate; without one to all of them, and put the request away.

        Raises `StoreError`.
        """
        name = bytes.fromhex(record.id)
        with self._place.write() as txn:
            known = {each.cassette: each for each in _candidates(txn, record.id)}
            if cassette is not None:
                known = {cassette: known.get(cassette) or CandidateRecord(cassette=cassette, score=0)}
            for each in known.values():
                _put_candidate(txn, record.id, each.model_copy(update={"rejected": True}))
            value = txn.get(_PENDING, name)
            if value is not None and cassette is None:
                kept, body = decode(record.id, value)
                txn.put(_PENDING, name, encode(kept.model_copy(update={"put_away": True}), body))

    def remove(self, record: PendingRecord) -> None:
        """Remove one, with its candidates: it has an answer. Raises `StoreError`."""
        with self._place.write() as txn:
            _remove(txn, record.id)

    def forget(self, cassettes: Collection[str]) -> None:
        """Remove candidates that are no cassettes any more. Raises `StoreError`."""
        with self._place.write() as txn:
            for key, _ in list(txn.scan(_CANDIDATES, b"")):
                if key[-32:].hex() in cassettes:
                    txn.delete(_CANDIDATES, key)


def encode(record: PendingRecord, body: JsonValue) -> bytes:
    """The stored value of a pending request."""
    head = record.to_json()
    return len(head).to_bytes(_LENGTH, "big") + head + compress(store_dumps(body))


def decode(name: str, value: bytes) -> tuple[PendingRecord, JsonValue]:
    """Read what `encode` wrote. Raises `CorruptRecordError`."""
    record = _head(name, value)
    length = int.from_bytes(value[:_LENGTH], "big")
    try:
        return record, store_loads(decompress(value[_LENGTH + length :]))
    except (CorruptRecordError, ValueError) as error:
        raise CorruptRecordError(f"pending request {name} is damaged") from error


def decode_candidate(key: bytes, value: bytes) -> CandidateRecord:
    """Read a stored candidate. Raises `CorruptRecordError`."""
    try:
        return CandidateRecord.model_validate_json(value)
    except ValidationError as error:
        raise CorruptRecordError(f"a candidate of {key[:32].hex()} does not parse") from error


_READERS: tuple[tuple[str, Callable[[bytes, bytes], object]], ...] = (
    (_PENDING, lambda key, value: decode(key.hex(), value)),
    (_CANDIDATES, decode_candidate),
)


def _head(name: str, value: bytes) -> PendingRecord:
    length = int.from_bytes(value[:_LENGTH], "big")
    try:
        return PendingRecord.model_validate_json(value[_LENGTH : _LENGTH + length])
    except ValidationError as error:
        raise CorruptRecordError(f"pending request {name} does not parse") from error


def _held(txn: Txn) -> Iterator[tuple[PendingRecord, int]]:
    """All pending requests that parse, without their bodies, and their sizes."""
    for key, value in txn.scan(_PENDING, b""):
        with suppress(CorruptRecordError):  # a check names it, and maintenance leaves it out
            yield _head(key.hex(), value), len(value)


def _candidates(txn: Txn, name: str) -> Iterator[CandidateRecord]:
    for key, value in txn.scan(_CANDIDATES, bytes.fromhex(name)):
        with suppress(CorruptRecordError):  # as above
            yield decode_candidate(key, value)


def _put_candidate(txn: Txn, name: str, candidate: CandidateRecord) -> None:
    txn.put(_CANDIDATES, bytes.fromhex(name) + bytes.fromhex(candidate.cassette), candidate.to_json())


def _remove_oldest(txn: Txn, held: Sequence[tuple[PendingRecord, int]], size: int) -> None:
    """Remove the oldest of the others, when with one of this size they are too many or too large."""
    for kept, (record, length) in enumerate(sorted(held, key=lambda each: -each[0].last_at), start=1):
        size += length
        if kept >= MOST or size > MOST_BYTES:
            _remove(txn, record.id)


def _remove(txn: Txn, name: str) -> None:
    txn.delete(_PENDING, bytes.fromhex(name))
    for key, _ in list(txn.scan(_CANDIDATES, bytes.fromhex(name))):
        txn.delete(_CANDIDATES, key)
