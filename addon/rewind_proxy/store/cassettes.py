"""The store of cassettes: open, put, index, delete. Safe to use from several threads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from rewind_proxy.errors import StoreError
from rewind_proxy.store import aliases, index, recordings, structure
from rewind_proxy.store.current import Current
from rewind_proxy.store.exchange import Exchange
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.lookup import Lookup
from rewind_proxy.store.recordings import Draft
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.store.reindex import Compute, IndexReport, Progress, reindex
from rewind_proxy.store.rewrite import Redaction, RewriteReport, rewrite
from rewind_proxy.store.transaction import MemoryTxn

_WHOLE_ID = 64


class Store(Lookup):
    """The cassettes of a project, seen under one set of match settings."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        settings_digest: str,
        redaction: Sequence[str] = (),
        readonly: bool = False,
        create: bool = True,
        map_size: int | None = None,
    ) -> Self:
        """Open the store in a folder; make it when it is missing, unless it is to be read only (then empty).

        `redaction` names the rules by which the caller redacts: an empty store takes them as its list, one
        with cassettes keeps its own (`redaction`, `rewrite`). Raises `StoreError`, `StoreVersionError`.
        """
        place = Generations(
            path, recordings.TABLES, redaction=redaction, readonly=readonly, create=create, map_size=map_size
        )
        store = cls(place, settings_digest)
        if not readonly and not set(redaction) <= set(place.redaction) and not store._total():
            place.set_redaction(redaction)
        return store

    def extend_redaction(self, rules: Iterable[str]) -> None:
        """Add rules to the list of an empty store. Raises `StoreError` when it has cassettes."""
        if self._total():
            raise StoreError(
                f"{self.path} has recordings that did not go through these rules: run `rewind maintain`"
            )
        self._place.set_redaction(rules)

    def put(self, exchange: Exchange) -> CassetteRecord:
        """Store an exchange in one transaction.

        What was recorded before is recorded again: a new place in the order, under the same id and with the
        same content when the answer is the same. Of class `side` only the answers of one run are kept for a
        fingerprint, the last run that recorded one. Raises `StoreError` (`StoreFullError`), and then nothing
        is stored.
        """
        body = None if exchange.body is None else structure.plan(exchange.body)
        draft = Draft(body, exchange.answer_body, exchange.chunks)
        exact = index.fingerprint_key(exchange.exact)
        with self._place.write() as txn:
            if exchange.request.cls == "side":
                for found in list(recordings.by_exact(txn, exchange.exact)):
                    older = self._reader.read(txn, *found)
                    if older.run != exchange.run:
                        recordings.remove(txn, older)
            record = recordings.write(
                txn,
                CassetteRecord(
                    id=hashlib.sha256(exact + exchange.answer_body).hexdigest(),
                    seq=recordings.next_seq(txn),
                    run=exchange.run,
                    recorded_at=exchange.recorded_at,
                    hash_version=exchange.hash_version,
                    exact=exchange.exact,
                    told=exchange.told,
                    request=exchange.request,
                    answer=exchange.answer,
                    answer_sha256=hashlib.sha256(exchange.answer_body).hexdigest(),
                    answer_length=len(exchange.answer_body),
                    checksum="",
                ),
                draft,
            )
            if exchange.request.cls == "model":
                key, cassette_id = recordings.seq_key(record.seq), bytes.fromhex(record.id)
                keys = exchange.normalised, exchange.links, exchange.sketched
                index.add(txn, self._settings, key, cassette_id, *keys)
        return record

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this lasts, no other process is in such a block: for looking first and then putting.

        Recording goes on meanwhile.
        """
        with Current(self.path).locked():
            yield

    def delete(self, ids: Iterable[str]) -> int:
        """Delete every recording of some cassettes (whole ids), and what only they used; how many there were.

        Aliases that lead to them go too. Raises `StoreError`, and then nothing is deleted.
        """
        deleted, gone = 0, set(ids)
        with self._place.write() as txn:
            for cassette_id in gone:
                if len(cassette_id) != _WHOLE_ID:
                    raise StoreError(
                        f"{cassette_id!r} is not the whole id of a recording: nothing is deleted"
                    )
                for found in list(recordings.by_id(txn, cassette_id)):
                    recordings.remove(txn, self._reader.read(txn, *found))
                    deleted += 1
            aliases.remove_of(txn, gone)
        return deleted

    def rewrite(
        self, redaction: Redaction, rules: Sequence[str], progress: Progress | None = None
    ) -> RewriteReport:
        """Write everything redacted again into a new generation and switch to it; delete the old one.

        `rules` are added to the list of the store. Ids, exact fingerprints and numbers stay. The normalised
        index must be made anew (`needs_index`). Other processes may go on meanwhile. Killed, the next call
        for the same rules goes on where it stopped, unless the store was opened for others between. Raises
        `StoreError`; then the old generation stays in use.
        """
        return rewrite(self._place, redaction, rules, progress)

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk, and leave no trace of it; bytes before, after.

        Other processes may go on meanwhile. Raises `StoreError`; then the store is as it was.
        """
        return self._place.compact()

    # -- the index of the settings in force

    def needs_index(self) -> bool:
        """Whether recordings are not indexed under the settings in force: made under others, or rewritten."""
        with self._place.read() as txn:
            return sum(index.covered(self._memory or txn, self._settings)) < recordings.count(txn, "model")

    def index_report(self) -> IndexReport:
        """What the index of the settings in force covers."""
        with self._place.read() as txn:
            return IndexReport(*index.covered(self._memory or txn, self._settings))

    def index(self, compute: Compute, progress: Progress | None = None) -> IndexReport:
        """Index what is not indexed under the settings in force; what the index covers then.

        `compute` gives the normalised fingerprint and chain of a record and its body, or None for what cannot
        be keyed: that, and what is damaged, is quarantined. A read-only store is indexed in memory.
        """
        if self.needs_index():
            memory = MemoryTxn() if self.readonly else None
            reindex(self._place, self._reader, self._settings, compute, progress, memory)
            self._memory = memory
        return self.index_report()

    def release_quarantined(self) -> int:
        """Have `index` try again what could not be keyed under the settings in force; how many there are."""
        with self._place.write() as txn:
            found = index.quarantined(txn, self._settings)
            for seq in found:
                index.remove(txn, self._settings, seq)
        return len(found)
