"""The log keeps runs and their steps in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewind_proxy.errors import CorruptRecordError, StoreError
from rewind_proxy.store import Log, RunRecord, log_path
from store.making import content_of, make_step


def make_run(name: str) -> RunRecord:
    """A run that has begun."""
    return RunRecord(id=name, mode="auto", started_at=1_700_000_000.0)


def test_the_log_is_named_after_its_store() -> None:
    """`.rewind/store` has its log in `.rewind/store.log`, whatever dots the name has."""
    assert log_path(Path("p/.rewind/store")) == Path("p/.rewind/store.log")
    assert log_path(Path("p/my.store")) == Path("p/my.store.log")


def test_runs_are_listed_in_either_order(log: Log) -> None:
    """Ids sort by start, however many there are."""
    names = [f"20250101-{number:06}" for number in range(300)]
    for name in names:
        log.start_run(make_run(name))
    assert [run.id for run in log.runs()] == names[::-1]
    assert [run.id for run in log.runs(newest_first=False)] == names


def test_a_run_is_found_by_id_start_or_last(log: Log) -> None:
    """A start that no other run has will do; `last` is the newest."""
    for name in ("a-1", "a-12", "b-1"):
        log.start_run(make_run(name))
    assert log.run("b").id == log.run("last").id == "b-1"
    assert log.run("a-1").id == "a-1"
    with pytest.raises(StoreError, match="more than one run"):
        log.run("a")
    with pytest.raises(StoreError, match="rewind runs"):
        log.run("c")


def test_an_empty_log_has_no_last_run(log: Log) -> None:
    """Asking for it says so."""
    with pytest.raises(StoreError, match="no run 'last'"):
        log.run("last")


def test_the_end_of_a_run_takes_the_place_of_its_start(log: Log) -> None:
    """One run is one record."""
    log.start_run(make_run("r"))
    log.end_run(make_run("r").model_copy(update={"ended_at": 5.0}))
    assert [run.ended_at for run in log.runs()] == [5.0]


def test_steps_belong_to_their_run_and_keep_their_order(log: Log) -> None:
    """Steps come in the order of their numbers; one written again takes its own place."""
    log.append([make_step(number, run="r") for number in (300, 2, 1)])
    log.append(
        [make_step(1, run="r2"), make_step(2, run="r", preview="old"), make_step(2, run="r", preview="new")]
    )
    assert [step.number for step in log.steps("r")] == [1, 2, 300]
    assert log.step("r", 2).preview == "new"
    assert log.steps("r-none") == []
    with pytest.raises(StoreError, match="no step 9"):
        log.step("r", 9)


def test_a_step_that_does_not_parse_is_named(log: Log) -> None:
    """Garbage is an error that names the step."""
    log.append([make_step(7, run="r")])
    with log._place.write() as txn:
        [(key, _)] = txn.scan("steps", b"")
        txn.put("steps", key, b"garbage")
    with pytest.raises(CorruptRecordError, match="step 7 of run r"):
        log.steps("r")


def test_reading_the_log_changes_nothing(place: Path) -> None:
    """Opened for reading, every file stays as it was."""
    with Log.open(place) as log:
        log.start_run(make_run("r"))
        log.append([make_step(1, run="r")])
    before = content_of(place.parent)
    with Log.open(place, readonly=True) as log:
        assert [run.id for run in log.runs()] == [log.run("last").id] == ["r"]
        assert len(log.steps("r")) == 1
    assert content_of(place.parent) == before


def test_a_rewrite_goes_through_every_run_and_step(place: Path) -> None:
    """What is rewritten has lost the secret in every file; what does not parse is left out and named."""
    with Log.open(place) as log:
        log.start_run(make_run("r").model_copy(update={"session": "hunter2"}))
        log.append([make_step(1, run="r", preview="hunter2"), make_step(2, run="r")])
        with log._place.write() as txn:
            *_, (key, _) = txn.scan("steps", b"")
            txn.put("steps", key, b"garbage hunter2")
        dropped = log.rewrite(
            lambda run: run.model_copy(update={"session": "[REDACTED]"}),
            lambda step: step.model_copy(update={"preview": "[REDACTED]"}),
            ("RW101",),
        )
        assert log.redaction == ("RW101",)
        assert log.run("last").session == "[REDACTED]"
        assert [step.preview for step in log.steps("r")] == ["[REDACTED]"]
        assert len(dropped) == 1
        assert "step 2 of run r" in dropped[0]
    assert not any(b"hunter2" in file.read_bytes() for file in log_path(place).rglob("*") if file.is_file())


def test_an_empty_log_takes_the_rules_it_is_opened_with(place: Path) -> None:
    """Once it has steps, its list changes by a rewrite only."""
    with Log.open(place, redaction=("RW101",)) as log:
        assert log.redaction == ("RW101",)
        log.append([make_step()])
    with Log.open(place, redaction=("RW102",)) as log:
        assert log.redaction == ("RW101",)
