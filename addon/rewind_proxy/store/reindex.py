"""Indexing what a store holds under match settings that it was not recorded under."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, traceback_of
from rewind_proxy.store import index, recordings
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.recordings import RecordReader
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.store.sketch import Sketched
from rewind_proxy.store.transaction import MemoryTxn, Txn

_logger = logging.getLogger(__name__)

_BATCH = 32

Key = tuple[str, tuple[str, ...], Sketched]
"""A normalised fingerprint, the chain of links that leads to it, and what these stand for."""
Compute = Callable[[CassetteRecord, JsonValue | None], Key | None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What the index of the settings in force covers."""

    indexed: int
    quarantined: int


def reindex(
    place: Generations,
    reader: RecordReader,
    settings: bytes,
    compute: Compute,
    progress: Progress | None = None,
    memory: MemoryTxn | None = None,
) -> None:
    """Index every recording that is not indexed under `settings`, into the store or into `memory`.

    Done in small transactions, with nothing locked while `compute` works.
    """
    with place.read() as txn:
        missing = [
            key for key in recordings.in_order(txn) if not index.is_indexed(memory or txn, settings, key)
        ]
    for start in range(0, len(missing), _BATCH):
        keyed = [_keyed(place, reader, key, compute) for key in missing[start : start + _BATCH]]
        with place.read() if memory is not None else place.write() as txn:
            for key, record, computed in keyed:
                _enter(txn, txn if memory is None else memory, settings, key, record, computed)
        if progress is not None:
            progress(min(start + _BATCH, len(missing)), len(missing))


def _keyed(
    place: Generations, reader: RecordReader, key: bytes, compute: Compute
) -> tuple[bytes, CassetteRecord | None, Key | None]:
    try:
        with place.read() as txn:
            record = reader.read(txn, key)
            if record.request.cls != "model":
                return key, record, None
            body = recordings.read_body(txn, record)
    except CorruptRecordError:
        return key, None, None  # quarantined, and so counted
    try:
        return key, record, compute(record, body)
    except Exception as error:  # a fault of ours with this one request must not cost all the others
        why = traceback_of(error)
        _logger.error("rewind: recording %s cannot be keyed; it will not be matched\n%s", record.id, why)
        return key, record, None


def _enter(
    txn: Txn, target: Txn, settings: bytes, key: bytes, record: CassetteRecord | None, computed: Key | None
) -> None:
    # Another process may have deleted or indexed it meanwhile.
    if not recordings.exists(txn, key) or index.is_indexed(target, settings, key):
        return
    if record is None:
        index.quarantine(target, settings, key)
    elif record.request.cls == "model":
        if computed is None:
            index.quarantine(target, settings, key)
        else:
            index.add(target, settings, key, bytes.fromhex(record.id), *computed)
