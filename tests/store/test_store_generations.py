"""Where a store is, what is made there, and how it is replaced as a whole when redaction rules are added."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import StoreError
from rewind_proxy.store import Log, Redaction, Store
from store.making import content_of, digest, make_exchange, open_store

SECRET = "hunter2-hunter2"


def redact(value: JsonValue) -> JsonValue:
    """A body without the secret."""
    body: JsonValue = json.loads(json.dumps(value).replace(SECRET, "[REDACTED]"))
    return body


def redact_text(text: str) -> str:
    """A text without the secret."""
    return text.replace(SECRET, "[REDACTED]")


def test_all_files_are_there_once_a_store_is_open(place: Path) -> None:
    """Nothing appears in the project later on: agents list the folder in their prompts."""
    with open_store(place) as store, Log.open(place):
        before = content_of(place.parent).keys()
        store.put(make_exchange())
        store.lookup_exact(digest("unknown"))
    assert content_of(place.parent).keys() == before
    assert {".gitignore", "store/CURRENT", "store/1/data.mdb", "store.log/1/data.mdb"} <= set(before)
    assert (place.parent / ".gitignore").read_text() == "*\n"
    assert (place / "CURRENT").read_text() == "1\n"


@pytest.mark.parametrize("parent", [".rewind", "cassettes"])
def test_git_ignores_only_what_rewind_made_for_itself(tmp_path: Path, parent: str) -> None:
    """A folder that was there, or has another name, gets no `.gitignore`."""
    if parent == ".rewind":
        (tmp_path / parent).mkdir()
    open_store(tmp_path / parent / "store").close()
    assert not (tmp_path / parent / ".gitignore").exists()


def test_a_missing_store_is_an_empty_one_to_readers(place: Path) -> None:
    """Reading where nothing was recorded finds nothing and makes nothing."""
    with open_store(place, readonly=True) as store, Log.open(place, readonly=True) as log:
        assert store.lookup_exact(digest("a")) == store.lookup_normalised(digest("a")) == ()
        assert store.nearest([digest("a")]) is None
        assert (list(store.cassettes()), store.count(), store.redaction) == ([], 0, ())
        assert not store.needs_index()
        assert store.stats().generation == 0
        assert list(log.runs()) == []
        with pytest.raises(StoreError, match="reading only"):
            store.put(make_exchange())
    assert not place.parent.exists()


def test_a_reader_sees_a_store_that_is_made_later(place: Path) -> None:
    """A store that was missing when it was opened for reading is found once it is there."""
    with open_store(place, readonly=True) as reader:
        record = make_exchange()
        child = multiprocessing.get_context("spawn").Process(target=put_one, args=(place,))
        child.start()
        child.join(60)
        assert len(reader.lookup_exact(record.exact)) == 1


def put_one(place: Path) -> None:
    """Record something, in a process of its own."""
    with open_store(place) as store:
        store.put(make_exchange())


def test_a_missing_store_is_not_made_unasked(place: Path) -> None:
    """With `create=False` a missing store is an error that names the place."""
    with pytest.raises(StoreError, match=f"no store at {place}"):
        open_store(place, create=False)
    assert not place.exists()


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "../1", "7"])
def test_a_bad_current_is_an_error(place: Path, text: str) -> None:
    """A CURRENT that names no generation there is refused, naming the file."""
    open_store(place).close()
    (place / "CURRENT").write_text(text)
    for readonly in (True, False):
        with pytest.raises(StoreError, match=str(place)):
            open_store(place, readonly=readonly)


@pytest.mark.parametrize("readonly", [False, True])
def test_a_file_in_the_way_is_an_error(place: Path, readonly: bool) -> None:
    """A path that is a file cannot be a store, and is no empty one."""
    place.parent.mkdir()
    place.write_text("file")
    with pytest.raises(StoreError, match=f"{place} is not a folder"):
        open_store(place, readonly=readonly)


def test_an_empty_store_takes_the_rules_it_is_opened_with(place: Path) -> None:
    """The list of redaction rules is written with the first open, and only grows."""
    with open_store(place, redaction=("RW101", "RW102")) as store:
        assert store.redaction == ("RW101", "RW102")
    with open_store(place, redaction=("RW103",)) as store:
        assert store.redaction == ("RW101", "RW102", "RW103")
        store.extend_redaction(("RW102",))
        store.put(make_exchange())
        assert len(store.redaction) == 3
        with pytest.raises(StoreError, match="rewind maintain"):
            store.extend_redaction(("RW105",))
    with open_store(place, redaction=("RW106",)) as store:
        assert "RW106" not in store.redaction


def test_a_rewrite_redacts_everything_and_keeps_what_names_it(place: Path) -> None:
    """Bodies and paths lose the secret in every file; ids, fingerprints, order and answers stay."""
    with open_store(place, redaction=("RW101",)) as store:
        body: JsonValue = {
            "messages": [{"role": "user", "content": f"it is {SECRET} {number}"} for number in (1, 2)]
        }
        before = [
            store.put(make_exchange(number, b"answer %d" % number, body=body, path=f"/v1/{SECRET}"))
            for number in range(40)
        ]
        seen: list[tuple[int, int]] = []
        report = store.rewrite(
            Redaction(redact, redact_text), ("RW102",), lambda done, total: seen.append((done, total))
        )
        after = list(store.cassettes())
        assert (report.rewritten, report.dropped) == (40, ())
        assert seen[-1] == (40, 40)
        assert store.redaction == ("RW101", "RW102")
        assert [(r.id, r.seq, r.exact, r.run) for r in after] == [
            (r.id, r.seq, r.exact, r.run) for r in before
        ]
        assert {record.request.path for record in after} == {"/v1/[REDACTED]"}
        assert store.request_body(before[3]) == redact(body)
        assert store.answer(before[3]).body == b"answer 3"
        assert store.lookup_exact(before[3].exact) == (after[3],)
        assert store.needs_index()
        assert store.put(make_exchange("next")).seq == 41
        assert store.stats().generation == 2
    assert (place / "CURRENT").read_text() == "2\n"
    assert not (place / "1").exists()
    assert not any(SECRET.encode() in file.read_bytes() for file in place.rglob("*") if file.is_file())


def test_a_rewrite_leaves_out_what_cannot_be_read(store: Store) -> None:
    """A damaged recording cannot be redacted: it is not carried over, and the report names it."""
    damaged, sound = store.put(make_exchange("a")), store.put(make_exchange("b"))
    with store._place.write() as txn:
        txn.put("cassettes", b"s" + damaged.seq.to_bytes(8, "big"), b"garbage")
    report = store.rewrite(Redaction(redact, redact_text), ("RW102",))
    assert report.rewritten == 1
    assert damaged.id in report.dropped[0]
    assert [record.id for record in store.cassettes()] == [sound.id]


def test_a_rewrite_that_fails_changes_nothing(place: Path, store: Store) -> None:
    """An error in the middle leaves the old generation in use and nothing of the new one."""
    record = store.put(make_exchange())

    def fail(value: JsonValue) -> JsonValue:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="middle"):
        store.rewrite(Redaction(fail, redact_text), ("RW102",))
    assert store.redaction == ()
    assert store.lookup_exact(record.exact) == (record,)
    assert sorted(entry.name for entry in place.iterdir()) == ["1", "CURRENT", "LOCK"]


def test_what_is_recorded_and_deleted_during_a_rewrite_is_not_lost(store: Store) -> None:
    """Other threads go on recording and deleting; the new generation has all of it."""
    records = [store.put(make_exchange(number)) for number in range(40)]
    done = threading.Event()

    def change() -> None:
        store.put(make_exchange("late"))
        store.delete([records[0].id])
        done.set()

    def transform(value: JsonValue) -> JsonValue:
        if not done.is_set() and "39" in json.dumps(value):
            threading.Thread(target=change).start()
            assert done.wait(30)
        return value

    store.rewrite(Redaction(transform, redact_text), ("RW102",))
    assert store.lookup_exact(records[0].exact) == ()
    assert len(store.lookup_exact(make_exchange("late").exact)) == 1
    assert store.count() == 40


def test_readers_never_notice_a_rewrite(place: Path, store: Store) -> None:
    """Threads that look up, through this store or another, find everything whole across every switch."""
    records = [store.put(make_exchange(number)) for number in range(20)]
    stop = threading.Event()

    def read(reader: Store) -> int:
        rounds = 0
        while not stop.is_set():
            for record in records:
                assert [found.id for found in reader.lookup_exact(record.exact)] == [record.id]
                assert reader.answer(record).body == b"hi"
                assert reader.request_body(record) is not None
            rounds += 1
        return rounds

    with open_store(place, readonly=True) as other, ThreadPoolExecutor(4) as pool:
        readings = [pool.submit(read, reader) for reader in (store, other, store, other)]
        for number in range(4):
            store.rewrite(Redaction(redact, redact_text), (f"RW{number}",))
        stop.set()
        assert all(reading.result(30) for reading in readings)


def test_a_writer_with_fewer_rules_stops_writing(place: Path) -> None:
    """Once rules were added elsewhere, a process that does not know them may not write what it redacted."""
    with open_store(place, redaction=("RW101",)) as old, open_store(place, redaction=("RW101",)) as new:
        record = old.put(make_exchange())
        new.rewrite(Redaction(redact, redact_text), ("RW101", "RW102"))
        assert old.lookup_exact(record.exact)[0].id == record.id
        with pytest.raises(StoreError, match="restart"):
            old.put(make_exchange("b"))
        new.put(make_exchange("b"))


def rewrite_and_die(place: Path) -> None:
    """Be killed in the middle of a rewrite."""

    def die(value: JsonValue) -> JsonValue:
        if "30" in json.dumps(value):
            os.kill(os.getpid(), 9)
        return value

    open_store(place).rewrite(Redaction(die, redact_text), ("RW102",))


def test_a_killed_rewrite_leaves_the_old_generation(place: Path) -> None:
    """It stays in use, and the next open removes what there is of the new one."""
    with open_store(place) as store:
        for number in range(60):
            store.put(make_exchange(number))
    child = multiprocessing.get_context("spawn").Process(target=rewrite_and_die, args=(place,))
    child.start()
    child.join(60)
    assert child.exitcode == -9
    assert (place / "2").exists()
    with open_store(place, readonly=True) as store:
        assert (store.count(), store.redaction) == (60, ())
    assert (place / "2").exists()
    with open_store(place) as store:
        assert store.count() == 60
    assert not (place / "2").exists()
