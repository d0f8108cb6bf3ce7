"""The call log: runs and their steps, beside the store (`.rewind/store.log`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, StoreError
from rewind_proxy.store import pending
from rewind_proxy.store.checking import Damage
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.open_folder import OpenFolder
from rewind_proxy.store.records import PendingRecord, Record, RunRecord, StepRecord
from rewind_proxy.store.rewrite_log import Transform, rewrite_log
from rewind_proxy.store.transaction import Txn

TABLES = ("runs", "steps", *pending.TABLES)
_RUNS, _STEPS, _PENDING, _CANDIDATES = TABLES

_RUN_END = b"\x00"
_NUMBER = 4
_BATCH = 256
_LAST = "last"

R = TypeVar("R", bound=Record)
PendingTransform = Callable[[PendingRecord, JsonValue], tuple[PendingRecord, JsonValue]]
"""A pending request and its body, redacted."""


def log_path(store: Path) -> Path:
    """The folder of the log of a store."""
    return store.with_name(f"{store.name}.log")


class Log(OpenFolder):
    """The runs through the proxies of a project. Safe to use from several threads."""

    def __init__(self, place: Generations) -> None:
        super().__init__(place)
        self.pending = pending.PendingRequests(place)

    @classmethod
    def open(
        cls,
        store: Path,
        *,
        redaction: Sequence[str] = (),
        readonly: bool = False,
        create: bool = True,
        map_size: int | None = None,
    ) -> Self:
        """Open the log of the store in a folder; make it when it is missing, unless it is to be read only.

        `redaction` as for `Store.open`. Raises `StoreError`, `StoreVersionError`.
        """
        place = Generations(
            log_path(store), TABLES, redaction=redaction, readonly=readonly, create=create, map_size=map_size
        )
        log = cls(place)
        if not readonly and not set(redaction) <= set(place.redaction) and log.is_empty():
            place.set_redaction(redaction)
        return log

    def is_empty(self) -> bool:
        """Whether it has no run and no step."""
        with self._place.read() as txn:
            return all(next(txn.scan(table, b""), None) is None for table in TABLES)

    # -- writing

    def start_run(self, run: RunRecord) -> None:
        """Write a run that begins. Raises `StoreError`."""
        with self._place.write() as txn:
            _put_run(txn, run)

    def end_run(self, run: RunRecord) -> None:
        """Write a run that has ended, in place of what was written at its start. Raises `StoreError`."""
        self.start_run(run)

    def append(self, steps: Sequence[StepRecord]) -> None:
        """Write steps in one transaction; one written again takes its own place. Raises `StoreError`."""
        with self._place.write() as txn:
            # Each key once: a value put twice in a transaction leaves pages that are never written.
            for step in {(step.run, step.number): step for step in steps}.values():
                _put_step(txn, step)

    # -- reading

    def runs(self, *, newest_first: bool = True) -> Iterator[RunRecord]:
        """All runs. Raises `CorruptRecordError`."""
        last = b""
        while True:
            with self._place.read() as txn:
                scan = txn.scan_back if newest_first else txn.scan
                page = list(islice(scan(_RUNS, b"", last), _BATCH))
            if not page:
                return
            for key, value in page:
                yield _parse(RunRecord, value, f"run {key.decode()}")
            last = page[-1][0]

    def run(self, id_or_prefix: str) -> RunRecord:
        """The run with an id, or a start of one that no other has, or `last`.

        Raises `StoreError` when there is none or more than one, `CorruptRecordError`.
        """
        with self._place.read() as txn:
            if id_or_prefix == _LAST:
                found = list(islice(txn.scan_back(_RUNS, b""), 1))
            else:
                found = list(islice(txn.scan(_RUNS, id_or_prefix.encode()), 2))
        if not found:
            if id_or_prefix == _LAST:
                raise StoreError("no run 'last': none is in the log yet")
            raise StoreError(f"no run {id_or_prefix!r}: `rewind runs` lists them")
        key, value = found[0]
        if len(found) > 1 and key.decode() != id_or_prefix:
            raise StoreError(f"more than one run starts with {id_or_prefix!r}: give more of its id")
        return _parse(RunRecord, value, f"run {key.decode()}")

    def steps(self, run_id: str) -> list[StepRecord]:
        """The steps of a run (its whole id), in order. Raises `CorruptRecordError`."""
        with self._place.read() as txn:
            page = list(txn.scan(_STEPS, run_id.encode() + _RUN_END))
        return [_parse(StepRecord, value, _step_name(key)) for key, value in page]

    def step(self, run_id: str, number: int) -> StepRecord:
        """One step of a run. Raises `StoreError` when there is none, `CorruptRecordError`."""
        key = _step_key(run_id, number)
        with self._place.read() as txn:
            value = txn.get(_STEPS, key)
        if value is None:
            raise StoreError(f"run {run_id} has no step {number}: `rewind steps {run_id}` lists them")
        return _parse(StepRecord, value, _step_name(key))

    def readable(self) -> Iterator[RunRecord | StepRecord]:
        """All runs, then all steps, without those that do not parse (`check` names them)."""
        return (record for record in self._all() if not isinstance(record, Damage))

    def check(self) -> list[Damage]:
        """What does not parse."""
        damaged = [record for record in self._all() if isinstance(record, Damage)]
        return [*damaged, *self.pending.check()]

    def _all(self) -> Iterator[RunRecord | StepRecord | Damage]:
        kinds: tuple[tuple[str, type[RunRecord | StepRecord], Callable[[bytes], str]], ...] = (
            (_RUNS, RunRecord, lambda key: f"run {key.decode()}"),
            (_STEPS, StepRecord, _step_name),
        )
        for table, kind, name in kinds:
            last = b""
            while True:
                with self._place.read() as txn:
                    page = list(islice(txn.scan(table, b"", last), _BATCH))
                if not page:
                    break
                for key, value in page:
                    try:
                        record = _parse(kind, value, name(key))
                    except CorruptRecordError as error:
                        yield Damage(str(error))
                    else:
                        yield record
                last = page[-1][0]

    # -- rewriting

    def rewrite(
        self,
        run: Callable[[RunRecord], RunRecord],
        step: Callable[[StepRecord], StepRecord],
        redaction: Iterable[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        refused: PendingTransform | None = None,
    ) -> tuple[str, ...]:
        """Write everything re-redacted into a new generation and switch to it; delete the old one.

        What does not parse cannot be redacted and is left out: that is what is returned, in words. So are
        pending requests without `refused`. Other processes may go on meanwhile. Killed, the next call for
        the same rules goes on where it stopped. Raises `StoreError`; then the old generation is in use.
        """
        tables: dict[str, Transform] = {
            _RUNS: lambda key, value: run(_parse(RunRecord, value, f"run {key.decode()}")).to_json(),
            _STEPS: lambda key, value: step(_parse(StepRecord, value, _step_name(key))).to_json(),
        }
        if refused is not None:
            tables[_PENDING] = lambda key, value: pending.encode(*refused(*pending.decode(key.hex(), value)))
            tables[_CANDIDATES] = lambda key, value: pending.decode_candidate(key, value).to_json()
        return rewrite_log(self._place, tables, redaction, progress)

    def compact(self) -> tuple[int, int]:
        """As `Store.compact`."""
        return self._place.compact()


def _put_run(txn: Txn, run: RunRecord) -> None:
    txn.put(_RUNS, run.id.encode(), run.to_json())


def _put_step(txn: Txn, step: StepRecord) -> None:
    txn.put(_STEPS, _step_key(step.run, step.number), step.to_json())


def _step_key(run_id: str, number: int) -> bytes:
    return run_id.encode() + _RUN_END + number.to_bytes(_NUMBER, "big")


def _step_name(key: bytes) -> str:
    run, number = key[: -_NUMBER - 1], int.from_bytes(key[-_NUMBER:], "big")
    return f"step {number} of run {run.decode()}"


def _parse(kind: type[R], value: bytes, name: str) -> R:
    try:
        return kind.model_validate_json(value)
    except ValidationError as error:
        raise CorruptRecordError(f"{name} does not parse ({error.error_count()} errors)") from error
