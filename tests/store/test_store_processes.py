"""Several processes use one store at once, and may be killed at any point."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from rewind_proxy.errors import StoreError
from rewind_proxy.store import Log, Redaction, Store
from store.making import make_exchange, make_step, open_store

spawn = multiprocessing.get_context("spawn")
EACH = 40


def exchange_of(writer: int, number: int, size: int = 300):  # type: ignore[no-untyped-def]
    """A distinct exchange that shares its system message with all others."""
    source = random.Random(f"{writer} {number}")
    body = {
        "messages": [
            {"role": "system", "content": "shared " * 100},
            {"role": "user", "content": f"{writer} {number} " * 50},
        ]
    }
    return make_exchange((writer, number), source.randbytes(size), body=body, run=f"run-{writer}")  # type: ignore[arg-type]


def write(place: Path, writer: int) -> None:
    """Record and log, reading one's own recordings back."""
    with open_store(place, redaction=("RW101",)) as store, Log.open(place, redaction=("RW101",)) as log:
        for number in range(EACH):
            exchange = exchange_of(writer, number)
            record = store.put(exchange)
            log.append([make_step(number, run=f"run-{writer}")])
            assert store.lookup_exact(exchange.exact) == (record,)


def write_for_ever(place: Path) -> None:
    """Record large and small answers until killed."""
    with open_store(place) as store:
        for number in range(1_000_000):
            store.put(exchange_of(0, number, 200_000 if number % 3 else 10))


def finished(processes: list[BaseProcess]) -> None:
    """Start some processes and see them end well."""
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def check_whole(store: Store) -> int:
    """Every recording can be read in every way; how many there are."""
    records = list(store.cassettes())
    for record in records:
        assert record in store.lookup_exact(record.exact)
        writer, number = map(int, str(store.request_body(record)["messages"][1]["content"]).split()[:2])  # type: ignore[index,call-overload]
        exchange = exchange_of(writer, number, record.answer_length)
        assert store.answer(record).body == exchange.answer_body
        assert store.lookup_normalised(exchange.normalised) == (record,)
    assert store.stats().cassettes == store.count() == len(records)
    assert not store.needs_index()
    return len(records)


def test_processes_that_make_and_fill_a_store_together(place: Path) -> None:
    """Three processes that start at once with no store there lose nothing, and number everything once."""
    finished([spawn.Process(target=write, args=(place, writer)) for writer in range(3)])
    with open_store(place) as store, Log.open(place) as log:
        assert check_whole(store) == 3 * EACH
        assert [record.seq for record in store.cassettes()] == list(range(1, 3 * EACH + 1))
        assert store.runs_present() == ("run-0", "run-1", "run-2")
        assert store.redaction == ("RW101",)
        assert all(len(log.steps(f"run-{writer}")) == EACH for writer in range(3))
        system_message = 1
        assert store.stats().blobs == 3 * EACH * 2 + system_message


def test_a_reader_sees_whole_recordings_while_another_process_writes(place: Path) -> None:
    """Whatever is found at any moment is complete."""
    open_store(place).close()
    writer = spawn.Process(target=write, args=(place, 0))
    writer.start()
    with open_store(place, readonly=True) as store:
        deadline = time.monotonic() + 60
        while store.count() < EACH and time.monotonic() < deadline:
            for record in store.cassettes():
                assert store.answer(record).body
                assert store.request_body(record)
        assert check_whole(store) == EACH
    writer.join(60)
    assert writer.exitcode == 0


@pytest.mark.parametrize("round_", range(3))
def test_a_killed_writer_leaves_whole_recordings(place: Path, round_: int) -> None:
    """After a kill in mid-write everything that is there is whole, and writing goes on."""
    with open_store(place) as store:
        writer = spawn.Process(target=write_for_ever, args=(place,))
        writer.start()
        deadline = time.monotonic() + 60
        while store.count() < 10 + round_ and time.monotonic() < deadline:
            time.sleep(0.001)
        writer.kill()
        writer.join(60)
        there = check_whole(store)
        assert there >= 10
        store.put(exchange_of(1, 1))
        assert check_whole(store) == there + 1
    with open_store(place, readonly=True) as store:
        assert check_whole(store) == there + 1


def write_until_refused(place: Path, ready: object) -> None:
    """Record until the redaction list has grown under this process; then what was written must be in it."""
    with open_store(place, redaction=("RW101",)) as store:
        for number in range(100_000):
            try:
                store.put(exchange_of(7, number))
            except StoreError:
                assert store.lookup_exact(exchange_of(7, number - 1).exact)
                return
            if number == 20:
                ready.set()  # type: ignore[attr-defined]
    raise AssertionError("never refused")


def test_a_rewrite_beside_a_writing_process_loses_nothing(place: Path) -> None:
    """The other process goes on until the switch, is refused from then on, and finds its last recording."""
    with open_store(place, redaction=("RW101",)) as store:
        ready = spawn.Event()
        writer = spawn.Process(target=write_until_refused, args=(place, ready))
        writer.start()
        assert ready.wait(60)
        report = store.rewrite(Redaction(lambda body: body, str), ("RW102",))
        writer.join(60)
        assert writer.exitcode == 0
        assert report.rewritten == store.count() > 20
        assert [record.seq for record in store.cassettes()] == list(range(1, store.count() + 1))
