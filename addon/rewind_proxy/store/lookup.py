"""Looking things up in a store of cassettes, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, GoneError, StoreError
from rewind_proxy.store import index, recordings, tokens
from rewind_proxy.store.aliases import Aliases
from rewind_proxy.store.blobs import BLOB_COUNT, BYTE_COUNT, read_count
from rewind_proxy.store.checking import Damage, check
from rewind_proxy.store.exchange import Nearest, Similar, StoreStats
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.open_folder import OpenFolder
from rewind_proxy.store.recordings import Answer, RecordReader
from rewind_proxy.store.records import FORMAT_VERSION, CassetteRecord
from rewind_proxy.store.reindex import Progress
from rewind_proxy.store.sketch import EMPTY, Sketched
from rewind_proxy.store.transaction import MemoryTxn, Txn

_BATCH = 32
_SHORTEST_PREFIX = 4


class Lookup(OpenFolder):
    """What only reads: the part of a `Store` that changes nothing."""

    def __init__(self, place: Generations, settings_digest: str) -> None:
        super().__init__(place)
        self._settings = index.settings_key(settings_digest)
        self._memory: MemoryTxn | None = None
        self._reader = RecordReader()
        self.aliases = Aliases(place, self._settings)

    def lookup_exact(self, fingerprint: str) -> tuple[CassetteRecord, ...]:
        """The recordings of an exact fingerprint, in recorded order. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            return tuple(self._reader.read(txn, *found) for found in recordings.by_exact(txn, fingerprint))

    def lookup_normalised(self, fingerprint: str) -> tuple[CassetteRecord, ...]:
        """The recordings of a normalised fingerprint under the settings in force, in recorded order.

        Raises `CorruptRecordError`.
        """
        with self._place.read() as txn:
            found = index.lookup(self._memory or txn, self._settings, fingerprint)
            return tuple(self._reader.read(txn, seq, cassette_id) for seq, cassette_id in found)

    def recordings_of(self, cassette_id: str) -> tuple[CassetteRecord, ...]:
        """The recordings of a cassette (its whole id), in recorded order. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            return tuple(self._reader.read(txn, *found) for found in recordings.by_id(txn, cassette_id))

    def nearest(self, links: Sequence[str], sketched: Sketched = EMPTY) -> Nearest | None:
        """The recording that is most like a request (`index.nearest`); None when nothing has a chain.

        Raises `CorruptRecordError`.
        """
        with self._place.read() as txn:
            found = index.nearest(self._memory or txn, self._settings, links, sketched)
            return found and Nearest(self._reader.read(txn, found.seq), found.shared, found.likeness)

    def similar(
        self, sketched: Sketched, threshold: float, most: int, near: str | None = None
    ) -> list[Similar]:
        """The recordings whose tokens are much like those of a request, best first; one for a fingerprint.

        `near` is a cassette that another search has found. Raises `CorruptRecordError`.
        """
        found: dict[bytes, Similar] = {}
        with self._place.read() as txn:
            source = self._memory or txn
            known = [seq for seq, _ in recordings.by_id(txn, near)] if near else []
            signature = sketched.signature()
            for score, seq in tokens.alike(source, self._settings, signature, threshold, known):
                fingerprint = index.fingerprint_of(source, self._settings, seq)
                if fingerprint not in found:
                    found[fingerprint] = Similar(self._reader.read(txn, seq), score)
                if len(found) == most:
                    break
        return list(found.values())

    def cassette(self, id_or_prefix: str) -> CassetteRecord:
        """The cassette with an id, or the start of one (4 hex digits or more); the first of equal recordings.

        Raises `StoreError` when there is none or more than one, `CorruptRecordError`.
        """
        if len(id_or_prefix) < _SHORTEST_PREFIX:
            raise StoreError(
                f"{id_or_prefix!r} is too short for a recording: give {_SHORTEST_PREFIX} digits or more "
                "(`rewind ls` lists them)"
            )
        with self._place.read() as txn:
            found: dict[bytes, bytes] = {}
            try:
                for seq, cassette_id in recordings.by_id(txn, id_or_prefix):
                    found.setdefault(cassette_id, seq)
                    if len(found) > 1:
                        raise StoreError(
                            f"more than one recording starts with {id_or_prefix}: give more digits"
                        )
            except ValueError:
                raise StoreError(
                    f"{id_or_prefix!r} is no id of a recording: these have hex digits only "
                    "(`rewind ls` lists them)"
                ) from None
            if not found:
                raise StoreError(f"no recording starts with {id_or_prefix}: `rewind ls` lists them")
            [(cassette_id, seq)] = found.items()
            return self._reader.read(txn, seq, cassette_id)

    def answer(self, record: CassetteRecord) -> Answer:
        """The answer of a recording, its checksum verified. Raises `CorruptRecordError`, `GoneError`."""
        with self._place.read() as txn:
            return recordings.read_answer(txn, self._current(txn, record))

    def request_body(self, record: CassetteRecord) -> JsonValue | None:
        """The redacted wire body of a recording, its checksum verified; None where none was kept.

        Raises `CorruptRecordError`, `GoneError`.
        """
        with self._place.read() as txn:
            return recordings.read_body(txn, self._current(txn, record))

    def cassettes(self, *, newest_first: bool = False, run: str | None = None) -> Iterator[CassetteRecord]:
        """All recordings, or those of one run, in recorded order or from the newest.

        No transaction stays open between two of them: what is deleted meanwhile may be among them, and raises
        `GoneError` when more of it is read. Raises `CorruptRecordError`.
        """
        if run is not None:
            with self._place.read() as txn:
                keys = recordings.of_run(txn, run)
            for key in reversed(keys) if newest_first else keys:
                with self._place.read() as txn:
                    record = self._reader.read(txn, key) if recordings.exists(txn, key) else None
                if record is not None:
                    yield record
            return
        page = recordings.newest_first if newest_first else recordings.in_order
        last = b""
        while True:
            with self._place.read() as txn:
                keys = list(islice(page(txn, last), _BATCH))
                records = [self._reader.read(txn, key) for key in keys]
            if not keys:
                return
            yield from records
            last = keys[-1]

    def readable(self) -> Iterator[CassetteRecord]:
        """All recordings in recorded order, without those that are damaged (`check` names them)."""
        with self._place.read() as txn:
            keys = list(recordings.in_order(txn))
        for key in keys:
            try:
                with self._place.read() as txn:
                    record = self._reader.read(txn, key)
            except CorruptRecordError:
                continue
            yield record

    def check(self, progress: Progress | None = None) -> list[Damage]:
        """What is damaged: all digests, checksums, counts and entries are looked at."""
        with self._place.read() as txn:
            return list(check(txn, progress))

    def count(self, cls: str = "model") -> int:
        """How many recordings of a class there are."""
        with self._place.read() as txn:
            return recordings.count(txn, cls)

    def count_of(self, ids: Iterable[str]) -> int:
        """How many recordings cassettes have: an answer that came again is one more of the same id."""
        with self._place.read() as txn:
            return sum(1 for each in ids for _ in recordings.by_id(txn, each))

    def runs_present(self) -> tuple[str, ...]:
        """The runs that have recordings, in the order of their names (which sort by start)."""
        with self._place.read() as txn:
            return tuple(recordings.runs(txn))

    def stats(self) -> StoreStats:
        """The size of the store."""
        with self._place.read() as txn:
            return StoreStats(
                cassettes=recordings.count(txn),
                blobs=read_count(txn, BLOB_COUNT),
                bytes_on_disk=self._place.size(),
                bytes_uncompressed=read_count(txn, BYTE_COUNT),
                generation=self._place.number,
                format=FORMAT_VERSION,
            )

    def _total(self) -> int:
        with self._place.read() as txn:
            return recordings.count(txn)

    def _current(self, txn: Txn, record: CassetteRecord) -> CassetteRecord:
        # The caller's may be from the generation before, where the same recording was stored otherwise.
        if not recordings.exists(txn, recordings.seq_key(record.seq)):
            raise GoneError(f"recording {record.id[:12]} was deleted meanwhile: `rewind ls` lists the others")
        return self._reader.read(txn, recordings.seq_key(record.seq), bytes.fromhex(record.id))
