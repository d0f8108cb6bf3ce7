"""One recording in the tables: written, read and removed as a whole, inside a transaction.

Keys of the table `cassettes`:

    "r", seq → digest of the record, record as JSON     "i", cassette id, seq → nothing
    "s", seq → structure of the request, pace           "u", run, 0x00, seq → nothing

and of `exact`: fingerprint, seq → cassette id. A recording is named by its `seq`; recordings of equal content
share a cassette id and their blobs, and each keeps its place in the order.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from rewind_proxy.canonical.jcs import store_dumps, store_loads
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store import aliases, index, structure
from rewind_proxy.store.blobs import (
    add_count,
    blob_key,
    compress,
    decompress,
    drop_blob,
    keep_blob,
    read_blob,
    read_count,
)
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.store.transaction import Txn

TABLES = ("cassettes", "blobs", "exact", *index.TABLES, aliases.TABLE)
_CASSETTES, _EXACT = "cassettes", "exact"

_RECORD, _STRUCTURE, _ID, _RUN = b"r", b"s", b"i", b"u"
_RUN_END = b"\x00"
_SEQ = 8
_SEAL = 16
_LAST_SEQ = b"seq"
_TOTAL = b"cassettes"
_CLASS = b"class:"
_CACHED_RECORDS = 256
"""A request looks its recording up twice at once; later requests want others."""

Chunks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded answer: its decoded bytes, and (length, milliseconds since the request) of each chunk."""

    body: bytes
    chunks: Chunks


@dataclass(frozen=True, slots=True)
class Draft:
    """What is stored of one recording, taken apart before the write lock is taken."""

    body: structure.Plan | None
    answer: bytes
    chunks: Chunks


def seq_key(seq: int) -> bytes:
    """The bytes of a recording's number, in its order."""
    return seq.to_bytes(_SEQ, "big")


def next_seq(txn: Txn) -> int:
    """The number of the next recording; none is ever given twice."""
    return add_count(txn, _LAST_SEQ, 1)


def copy_seq(source: Txn, target: Txn) -> None:
    """Go on numbering where another generation stopped."""
    add_count(target, _LAST_SEQ, read_count(source, _LAST_SEQ) - read_count(target, _LAST_SEQ))


def count(txn: Txn, cls: str | None = None) -> int:
    """How many recordings there are, of one class or in all."""
    return read_count(txn, _TOTAL if cls is None else _CLASS + cls.encode())


def write(txn: Txn, record: CassetteRecord, draft: Draft) -> CassetteRecord:
    """Write a recording under its `seq`; the record with its checksum. The index is another matter."""
    key = seq_key(record.seq)
    answer_digest = keep_blob(txn, draft.answer)
    stored: JsonObject = {
        "body": None if draft.body is None else structure.keep(txn, draft.body),
        "chunks": [number for chunk in draft.chunks for number in chunk],
    }
    content = store_dumps(stored)
    record = record.model_copy(update={"checksum": hashlib.sha256(content + answer_digest).hexdigest()})
    text = record.to_json()
    txn.put(_CASSETTES, _RECORD + key, _seal(text) + compress(text))
    txn.put(_CASSETTES, _STRUCTURE + key, compress(content))
    for (table, entry), value in entries(record).items():
        txn.put(table, entry, value)
    add_count(txn, _TOTAL, 1)
    add_count(txn, _CLASS + record.request.cls.encode(), 1)
    return record


def remove(txn: Txn, record: CassetteRecord) -> None:
    """Remove a recording from every table, and what only it used. Raises `CorruptRecordError`."""
    key = seq_key(record.seq)
    structure_of_body = _structure(txn, record)["body"]
    if structure_of_body is not None:
        structure.drop(txn, structure_of_body)
    drop_blob(txn, bytes.fromhex(record.answer_sha256))
    for table, entry in ((_CASSETTES, _RECORD + key), (_CASSETTES, _STRUCTURE + key), *entries(record)):
        txn.delete(table, entry)
    for settings in index.all_settings(txn):
        index.remove(txn, settings, key)
    add_count(txn, _TOTAL, -1)
    add_count(txn, _CLASS + record.request.cls.encode(), -1)


class RecordReader:
    """Reads records, and keeps the parsed ones that were used last: a record never changes."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[bytes, CassetteRecord] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, txn: Txn, key: bytes, cassette_id: bytes | None = None) -> CassetteRecord:
        """The record of a recording. Raises `CorruptRecordError`, naming the cassette where an index did."""
        name = cassette_id.hex() if cassette_id else f"number {int.from_bytes(key, 'big')}"
        value = txn.get(_CASSETTES, _RECORD + key)
        if value is None:
            raise CorruptRecordError(f"recording {name} is not in the store any more: run `rewind verify`")
        seal = value[:_SEAL]
        with self._lock:
            record = self._parsed.get(seal)
            if record is not None:
                self._parsed.move_to_end(seal)
        if record is None:
            record = _parse(value, name)
            with self._lock:
                self._parsed[seal] = record
                if len(self._parsed) > _CACHED_RECORDS:
                    self._parsed.popitem(last=False)
        if cassette_id and record.id != cassette_id.hex():
            raise CorruptRecordError(f"recording {name} is not where an index says: run `rewind verify`")
        return record


def _parse(value: bytes, name: str) -> CassetteRecord:
    try:
        text = decompress(value[_SEAL:])
        if value[:_SEAL] != _seal(text):
            raise CorruptRecordError("it does not match its digest")
        return CassetteRecord.model_validate_json(text)
    except CorruptRecordError as error:
        raise CorruptRecordError(f"recording {name} is damaged ({error}): run `rewind verify`") from error
    except ValidationError as error:
        raise CorruptRecordError(f"recording {name} does not parse ({error.error_count()} errors)") from error


def read_body(txn: Txn, record: CassetteRecord) -> JsonValue:
    """The redacted wire body of a recording, or None where none was kept. Raises `CorruptRecordError`."""
    stored = _structure(txn, record)["body"]
    try:
        return None if stored is None else structure.read(txn, stored)
    except (CorruptRecordError, ValueError) as error:
        raise CorruptRecordError(f"recording {record.id} is damaged: {error}") from error


def read_answer(txn: Txn, record: CassetteRecord) -> Answer:
    """The answer of a recording. Raises `CorruptRecordError`."""
    numbers = cast("list[int]", _structure(txn, record)["chunks"])
    try:
        body = read_blob(txn, bytes.fromhex(record.answer_sha256))
    except CorruptRecordError as error:
        raise CorruptRecordError(f"recording {record.id} is damaged: {error}") from error
    return Answer(body, tuple(zip(numbers[::2], numbers[1::2], strict=True)))


def _structure(txn: Txn, record: CassetteRecord) -> JsonObject:
    value = txn.get(_CASSETTES, _STRUCTURE + seq_key(record.seq))
    if value is None:
        raise CorruptRecordError(f"recording {record.id} has no structure: run `rewind verify`")
    try:
        content = decompress(value)
    except CorruptRecordError as error:
        raise CorruptRecordError(f"recording {record.id} is damaged: {error}") from error
    if hashlib.sha256(content + bytes.fromhex(record.answer_sha256)).hexdigest() != record.checksum:
        raise CorruptRecordError(f"recording {record.id} does not match its checksum: run `rewind verify`")
    return cast("JsonObject", store_loads(content))


def references(txn: Txn, record: CassetteRecord) -> Iterator[bytes]:
    """The blobs and lists that a recording refers to. Raises `CorruptRecordError`."""
    yield blob_key(bytes.fromhex(record.answer_sha256))
    body = _structure(txn, record)["body"]
    if body is not None:
        yield from structure.references(body)


def entries(record: CassetteRecord) -> dict[tuple[str, bytes], bytes]:
    """What leads to a recording in the tables, but for the normalised index."""
    key, cassette_id = seq_key(record.seq), bytes.fromhex(record.id)
    return {
        (_CASSETTES, _ID + cassette_id + key): b"",
        (_CASSETTES, _RUN + record.run.encode() + _RUN_END + key): b"",
        (_EXACT, index.fingerprint_key(record.exact) + key): cassette_id,
    }


def all_entries(txn: Txn) -> Iterator[tuple[str, bytes]]:
    """Every entry that leads to a recording, but for the normalised index."""
    for table, prefix in ((_CASSETTES, _ID), (_CASSETTES, _RUN), (_EXACT, b"")):
        for key, _ in txn.scan(table, prefix):
            yield table, key


def exists(txn: Txn, key: bytes) -> bool:
    """Whether there is a recording of this number."""
    return txn.get(_CASSETTES, _RECORD + key) is not None


def by_exact(txn: Txn, fingerprint: str) -> Iterator[tuple[bytes, bytes]]:
    """(seq, cassette id) of the recordings of an exact fingerprint, in recorded order."""
    for key, cassette_id in txn.scan(_EXACT, index.fingerprint_key(fingerprint)):
        yield key[-_SEQ:], cassette_id


def by_id(txn: Txn, prefix: str) -> Iterator[tuple[bytes, bytes]]:
    """(seq, cassette id) of the recordings whose id starts with some hex digits. Raises ValueError."""
    whole = bytes.fromhex(prefix[: len(prefix) // 2 * 2])
    for key, _ in txn.scan(_CASSETTES, _ID + whole):
        cassette_id = key[1:-_SEQ]
        if cassette_id.hex().startswith(prefix.lower()):
            yield key[-_SEQ:], cassette_id


def in_order(txn: Txn, after: bytes = b"") -> Iterator[bytes]:
    """The seq of every recording past one, ascending."""
    for key, _ in txn.scan(_CASSETTES, _RECORD, _RECORD + after if after else b""):
        yield key[1:]


def newest_first(txn: Txn, before: bytes = b"") -> Iterator[bytes]:
    """The seq of every recording before one, descending."""
    for key, _ in txn.scan_back(_CASSETTES, _RECORD, _RECORD + before if before else b""):
        yield key[1:]


def of_run(txn: Txn, run: str) -> list[bytes]:
    """The seq of every recording of a run, ascending."""
    return [key[-_SEQ:] for key, _ in txn.scan(_CASSETTES, _RUN + run.encode() + _RUN_END)]


def runs(txn: Txn) -> list[str]:
    """The runs that have recordings, in the order of their names."""
    found: list[str] = []
    entry = next(txn.scan(_CASSETTES, _RUN), None)
    while entry is not None:
        run = entry[0][1 : -_SEQ - len(_RUN_END)]
        found.append(run.decode())
        entry = next(txn.scan(_CASSETTES, _RUN, _RUN + run + _RUN_END + b"\xff" * _SEQ), None)
    return found


def _seal(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()[:_SEAL]
