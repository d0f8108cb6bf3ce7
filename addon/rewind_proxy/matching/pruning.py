"""Which recordings are no longer needed, by what the runs in the log did with them. Pure but for reading.

What is used is a cassette: recordings of equal content are deleted together or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rewind_proxy.canonical.model import HIT_TIERS
from rewind_proxy.errors import StoreError
from rewind_proxy.store import AliasRecord, CassetteRecord, Log, RunRecord, StepRecord


@dataclass(frozen=True, slots=True)
class Uses:
    """What is known of the use of cassettes. Runs sort by their start."""

    runs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The cassettes that each run recorded or replayed."""
    last: dict[str, float] = field(default_factory=dict)
    """When each cassette was recorded or replayed last, seconds since the epoch."""
    replayed: set[str] = field(default_factory=set)
    logged: set[str] = field(default_factory=set)
    """The runs that the log knows."""

    def newest(self, count: int) -> list[str]:
        """The newest runs that had to do with any cassette."""
        return sorted(self.runs, reverse=True)[:count]


def uses(records: Iterable[CassetteRecord], aliases: Iterable[AliasRecord], log: Log) -> Uses:
    """What recordings, aliases and log tell. Raises `CorruptRecordError`.

    What a person approved or answered by hand is meant to be replayed, and counts as that.
    """
    found = Uses()
    for record in records:
        found.runs[record.run].add(record.id)
        found.last[record.id] = max(record.recorded_at, found.last.get(record.id, 0))
        if record.answer.by_hand:
            found.replayed.add(record.id)
    for alias in aliases:
        found.last[alias.cassette] = max(alias.approved_at, found.last.get(alias.cassette, 0))
        found.replayed.add(alias.cassette)
    for run in log.runs():
        found.logged.add(run.id)
        for step in log.steps(run.id):
            if step.cassette is not None:
                found.runs[run.id].add(step.cassette)
                found.last[step.cassette] = max(step.started_at, found.last.get(step.cassette, 0))
                if step.tier in HIT_TIERS:
                    found.replayed.add(step.cassette)
    return found


def outside_newest_runs(found: Uses, count: int) -> set[str]:
    """The cassettes that none of the newest runs recorded or replayed."""
    kept = {cassette for run in found.newest(count) for cassette in found.runs[run]}
    return set(found.last) - kept


def unused_since(found: Uses, moment: float) -> set[str]:
    """The cassettes last recorded or replayed before a moment. Raises `StoreError` without a log."""
    _need_log(found)
    return {cassette for cassette, last in found.last.items() if last < moment}


def never_replayed(found: Uses) -> set[str]:
    """The cassettes that no run replayed, but for those of the newest run: nobody had the occasion yet.

    Raises `StoreError` without a log.
    """
    _need_log(found)
    newest = {cassette for run in found.newest(1) for cassette in found.runs[run]}
    return set(found.last) - found.replayed - newest


def untouched_by(
    run: RunRecord, steps: Iterable[StepRecord], records: Iterable[CassetteRecord]
) -> Iterator[CassetteRecord]:
    """The recordings of model calls that a run neither replayed nor made, though it could have used them."""
    touched = {step.cassette for step in steps}
    for record in records:
        there = run.ended_at is None or record.recorded_at <= run.ended_at
        if record.request.cls == "model" and there and record.id not in touched:
            yield record


def _need_log(found: Uses) -> None:
    if not found.logged:
        raise StoreError(
            "the log has no runs, so nothing tells which recordings are used: run something in replay first, "
            "or prune with --keep-runs"
        )
