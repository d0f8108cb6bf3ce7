"""The recorder writes in its own thread, in order, and no failure of it reaches the caller."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewind_proxy.errors import StoreError, StoreFullError
from rewind_proxy.store import Exchange, Log, Recorder, Store
from rewind_proxy.store.records import CassetteRecord, StepRecord
from store.making import make_exchange, make_step, open_store


def test_a_recording_can_be_looked_up_once_its_future_is_done(store: Store, log: Log) -> None:
    """It is there for the next request of the same client at once."""
    with Recorder(store, log) as recorder:
        record = recorder.record(make_exchange(), make_step()).result(30)
        assert store.lookup_exact(record.exact) == (record,)


def test_steps_are_logged_within_half_a_second(store: Store, log: Log) -> None:
    """A step is in the log soon, without anything else happening, and the recording's has its cassette."""
    with Recorder(store, log) as recorder:
        recorder.log_step(make_step(1))
        record = recorder.record(make_exchange(), make_step(2)).result(30)
        deadline = time.monotonic() + 30
        while len(log.steps("run-1")) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [step.cassette for step in log.steps("run-1")] == [None, record.id]


def test_flushing_waits_for_what_was_given(store: Store, log: Log) -> None:
    """Steps need not wait for their batch when somebody asks; after the end there is nothing to do."""
    with Recorder(store, log) as recorder:
        for number in range(5):
            recorder.log_step(make_step(number))
        recorder.flush()
        assert len(log.steps("run-1")) == 5
    recorder.flush()


def test_steps_are_written_in_batches(store: Store, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand steps take few transactions."""
    sizes: list[int] = []
    append = log.append

    def noted(steps: Sequence[StepRecord]) -> None:
        sizes.append(len(steps))
        append(steps)

    monkeypatch.setattr(log, "append", noted)
    with Recorder(store, log) as recorder:
        for number in range(1000):
            recorder.log_step(make_step(number))
    assert len(log.steps("run-1")) == sum(sizes) == 1000
    assert len(sizes) < 50


def test_closing_writes_everything_that_was_given(store: Store, log: Log) -> None:
    """Nothing that was handed over before `close` is lost; after it nothing is taken, and that is counted."""
    recorder = Recorder(store, log)
    futures = [recorder.record(make_exchange(number), make_step(number)) for number in range(50)]
    recorder.close()
    recorder.close()
    assert [future.result(0).seq for future in futures] == list(range(1, 51))
    assert len(log.steps("run-1")) == 50
    late = recorder.record(make_exchange("late"), make_step(99))
    assert isinstance(late.exception(0), StoreError)
    assert recorder.failed == 2


def test_a_full_store_costs_the_recording_and_a_warning(place: Path, log: Log) -> None:
    """The caller gets no exception; the failure is counted, told and logged, and recording goes on."""
    told: list[str] = []
    with open_store(place, map_size=1 << 20) as store:
        with Recorder(store, log, on_failure=told.append) as recorder:
            lost = recorder.record(make_exchange("large", os.urandom(2 << 20)))
            kept = recorder.record(make_exchange("small"), make_step(2))
        assert isinstance(lost.exception(0), StoreFullError)
        assert kept.result(0).seq == 1
    assert recorder.failed == 1
    assert recorder.failures == told == [str(lost.exception(0))]


def test_any_other_failure_costs_no_more(store: Store, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in a write, the step says so, without the value that went wrong."""

    def fail(exchange: Exchange) -> CassetteRecord:
        raise ValueError("hunter2")

    monkeypatch.setattr(store, "put", fail)
    with Recorder(store, log) as recorder:
        recorder.record(make_exchange(), make_step(1))
        recorder.log_step(make_step(2))
    first, second = log.steps("run-1")
    assert (first.tier, first.reason, first.cassette) == ("failed", "ValueError in the recorder", None)
    assert second.tier == "recorded"
    assert "hunter2" not in "".join(recorder.failures)


def test_a_log_that_fails_is_counted(store: Store, log: Log) -> None:
    """Steps that cannot be written are one failure, and recordings go on."""
    log.close()
    with Recorder(store, log) as recorder:
        recorder.log_step(make_step(1))
        assert recorder.record(make_exchange()).result(30).seq == 1
    assert recorder.failed == 1


def test_a_slow_disk_never_blocks_the_caller(store: Store, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the queue is full, by number or by bytes, what comes is dropped at once, and counted."""
    go = threading.Event()
    put = store.put
    monkeypatch.setattr(store, "put", lambda exchange: (go.wait(30), put(exchange))[1])
    recorder = Recorder(store, log, max_queued=2, max_queued_bytes=1000)
    futures = [recorder.record(make_exchange(number, b"x" * 400)) for number in range(8)]
    assert any(future.done() for future in futures)
    go.set()
    recorder.close()
    lost = [future for future in futures if future.exception(0)]
    assert len(lost) == recorder.failed == 8 - store.count()
    assert 0 < store.count() < 8


def test_cancelling_the_future_does_not_take_the_recording_back(store: Store, log: Log) -> None:
    """A handler that is cancelled while it waits has recorded all the same."""
    recorder = Recorder(store, log)
    recorder.record(make_exchange()).cancel()
    recorder.close()
    assert store.count() == 1
    assert recorder.failed == 0
