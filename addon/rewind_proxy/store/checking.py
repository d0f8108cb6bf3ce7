"""Whether everything in a store is as it was written, and everything in it leads where it should."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store import aliases, blobs, index, recordings, tokens
from rewind_proxy.store.recordings import RecordReader
from rewind_proxy.store.transaction import Txn


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as it was written."""

    problem: str
    cassette: str | None = None
    """The id of the cassette, where it is that of one and can still be read."""


def check(txn: Txn, progress: Callable[[int, int], None] | None = None) -> Iterator[Damage]:
    """What is damaged in one view of a store: every digest, checksum, count and entry is looked at."""
    reader = RecordReader()
    known: dict[bytes, bytes] = {}
    """The id of each recording that can be read, by its number."""
    references: Counter[bytes] = Counter()
    classes: Counter[str] = Counter()
    entries: set[tuple[str, bytes]] = set()
    total = recordings.count(txn)
    keys = list(recordings.in_order(txn))
    for done, key in enumerate(keys, start=1):
        try:
            record = reader.read(txn, key)
        except CorruptRecordError as error:
            yield Damage(str(error))
            continue
        known[key] = bytes.fromhex(record.id)
        classes[record.request.cls] += 1
        try:
            references.update(recordings.references(txn, record))
            recordings.read_body(txn, record)
            recordings.read_answer(txn, record)
        except CorruptRecordError as error:
            yield Damage(str(error), record.id)
        for (table, entry), value in recordings.entries(record).items():
            entries.add((table, entry))
            if txn.get(table, entry) != value:
                yield Damage(f"recording {record.id} is missing from the table {table}", record.id)
        if progress is not None:
            progress(done, total)
    cassettes = {cassette_id.hex() for cassette_id in known.values()}
    for alias_id in aliases.ids(txn):
        try:
            alias, _ = aliases.read(txn, alias_id)
            references.update(aliases.references(txn, alias_id))
        except CorruptRecordError as error:
            yield Damage(str(error))
        else:
            if alias.cassette not in cassettes:
                yield Damage(f"alias {alias_id} leads to no recording that can be read")
    yield from (Damage(problem) for problem in aliases.problems(txn))
    if len(known) < len(keys):
        return  # what leads to a recording that cannot be read cannot be told from what leads nowhere
    yield from (Damage(problem) for problem in blobs.problems(txn, references))
    stray = sum(1 for entry in recordings.all_entries(txn) if entry not in entries)
    if stray:
        yield Damage(f"{stray} entries lead to no recording")
    if len(keys) != total or any(recordings.count(txn, cls) != count for cls, count in classes.items()):
        yield Damage("the recordings are counted wrongly")
    for settings in index.all_settings(txn):
        yield from _check_index(txn, settings, known)


def _check_index(txn: Txn, settings: bytes, known: dict[bytes, bytes]) -> Iterator[Damage]:
    found = {seq: cassette_id for _, seq, cassette_id in index.entries(txn, settings)}
    for seq, cassette_id in found.items():
        if known.get(seq) != cassette_id:
            yield Damage(f"an index leads to number {int.from_bytes(seq, 'big')}, which is another or none")
        if not index.is_indexed(txn, settings, seq):
            yield Damage(f"an index holds number {int.from_bytes(seq, 'big')} by half")
    yield from (Damage(problem) for problem in tokens.problems(txn, settings, set(found)))
    quarantined = index.quarantined(txn, settings)
    if (len(found), len(quarantined)) != index.covered(txn, settings):
        yield Damage("an index is counted wrongly")
