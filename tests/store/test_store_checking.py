"""What `check` finds damaged, and what compaction gives back."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import StoreError
from rewind_proxy.store import EMPTY, Log, Redaction, Store
from rewind_proxy.store.environment import META, Environment
from rewind_proxy.store.reindex import Key
from rewind_proxy.store.transaction import Txn
from store.making import digest, make_exchange, make_step, open_store

BODY: JsonValue = {
    "model": "m1",
    "tools": ["long " * 100],
    "messages": [{"role": "system", "content": "shared"}, {"role": "user", "content": "hello"}],
}


def filled(store: Store) -> None:
    """Recordings that share what they can: messages, answers, ids."""
    for number in (1, 2, 2, 3):
        store.put(make_exchange(number, b"answer" * (number % 2 + 1), body=BODY))
    store.put(make_exchange("side", cls="side"))
    store.put(make_exchange("gone", b"gone"))
    store.delete([store.lookup_exact(make_exchange("gone").exact)[0].id])


def test_a_sound_store_has_no_damage(store: Store) -> None:
    """Whatever was recorded, recorded again, deleted and rewritten."""
    assert store.check() == []
    filled(store)
    seen: list[tuple[int, int]] = []
    assert store.check(lambda done, total: seen.append((done, total))) == []
    assert seen[-1] == (5, 5)
    store.rewrite(Redaction(lambda body: body, str), ("RW102",))
    store.index(lambda record, _: (record.exact, (record.exact,), EMPTY))
    assert store.check() == []


def flip(value: bytes) -> bytes:
    """The value with its last byte changed."""
    return value[:-1] + bytes([value[-1] ^ 1])


@pytest.mark.parametrize(
    ("table", "prefix", "problem"),
    [
        ("cassettes", b"r", "number 1 is damaged"),
        ("cassettes", b"s", "does not"),
        ("blobs", b"b", "match its digest|decompress"),
        ("blobs", b"l", "match its digest|missing"),
        ("exact", b"", "missing from the table exact"),
    ],
)
def test_a_changed_value_is_found(store: Store, table: str, prefix: bytes, problem: str) -> None:
    """One changed byte anywhere in what was recorded is damage."""
    filled(store)
    with store._place.write() as txn:
        key, value = next(txn.scan(table, prefix))
        txn.put(table, key, flip(value))
    damaged = store.check()
    assert damaged
    assert any(re.search(problem, each.problem) for each in damaged)


def test_damage_names_its_cassette(store: Store) -> None:
    """Where the record itself can still be read."""
    filled(store)
    (record, *_) = store.cassettes()
    with store._place.write() as txn:
        txn.put("cassettes", b"s" + record.seq.to_bytes(8, "big"), b"0garbage")
    assert record.id in {each.cassette for each in store.check()}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda txn: txn.put("blobs", b"b" + b"x" * 32, b"0stray"), "nothing refers to blob"),
        (lambda txn: txn.put("blobs", b"l" + b"x" * 32, b"x" * 32), "does not match its digest"),
        (lambda txn: txn.delete("blobs", next(txn.scan("blobs", b"n"))[0]), "counted wrongly"),
        (lambda txn: txn.put("cassettes", b"i" + b"x" * 40, b""), "1 entries lead to no recording"),
        (lambda txn: txn.put(META, b"cassettes", b"\0" * 7 + b"\x09"), "counted wrongly"),
        (lambda txn: txn.put(META, b"class:side", b"\0" * 7 + b"\x09"), "counted wrongly"),
        (
            lambda txn: txn.put("normalised", next(txn.scan("normalised", b""))[0][:16] + b"f" * 40, b"x"),
            "an index",
        ),
        (lambda txn: txn.delete("normalised", next(txn.scan("normalised", b""))[0]), "an index"),
    ],
)
def test_what_leads_nowhere_is_found(store: Store, change: Callable[[Txn], object], problem: str) -> None:
    """Entries without a recording, content that nothing refers to, and wrong counts are damage."""
    filled(store)
    with store._place.write() as txn:
        change(txn)
    assert any(problem in each.problem for each in store.check())


def test_a_record_of_the_log_that_does_not_parse_is_damage(log: Log) -> None:
    """It is named; the others can be read."""
    log.append([make_step(1, run="r"), make_step(2, run="r")])
    with log._place.write() as txn:
        *_, (key, _) = txn.scan("steps", b"")
        txn.put("steps", key, b"garbage")
    assert ["step 2 of run r" in each.problem for each in log.check()] == [True]
    assert len(list(log.readable())) == 1


def test_compacting_gives_back_what_was_deleted(place: Path, store: Store) -> None:
    """The file shrinks, what was deleted is in no page of it, and everything else stays as it was."""
    for number in range(40):
        store.put(make_exchange(number, bytes(f"ANSWER-{number:03}" * 1000, "ascii") + bytes(30_000)))
    kept = store.put(make_exchange("kept"))
    store.delete([record.id for record in store.cassettes() if record.id != kept.id])
    assert store.spare() > 0
    before, after = store.compact()
    assert after < before / 2
    assert store.spare() == 0
    assert list(store.cassettes()) == [kept]
    assert store.lookup_normalised(make_exchange("kept").normalised) == (kept,)
    assert store.check() == []
    assert (place / "CURRENT").read_text() == "2\n"
    assert not (place / "1").exists()
    assert not any(b"ANSWER-001" in file.read_bytes() for file in place.rglob("*") if file.is_file())
    store.put(make_exchange("next"))
    assert store.count() == 2


def test_what_is_written_while_it_is_compacted_is_not_lost(
    place: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another proxy writes after every copy: the last copy is made with it waiting."""
    store.put(make_exchange("first"))
    copies = []
    copy = Environment.copy

    def copy_and_write(environment: Environment, folder: Path) -> int:
        number = copy(environment, folder)
        copies.append(number)
        if len(copies) < 3:
            other.put(make_exchange(len(copies)))
        return number

    monkeypatch.setattr(Environment, "copy", copy_and_write)
    with open_store(place) as other:
        store.compact()
        assert len(copies) == 3
        for asked in ("first", 1, 2):
            assert len(other.lookup_exact(make_exchange(asked).exact)) == 1
        other.put(make_exchange("after"))
    assert store.count() == 4


def test_readers_go_on_while_a_store_is_compacted(place: Path, store: Store) -> None:
    """They find everything at any moment."""
    records = [store.put(make_exchange(number)) for number in range(20)]
    done = threading.Event()
    failures: list[object] = []

    def look() -> None:
        with open_store(place) as other:
            while not done.is_set():
                failures.extend(each for each in records if other.lookup_exact(each.exact) != (each,))

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(5):
        store.compact()
    done.set()
    thread.join(30)
    assert not failures


def test_a_failed_compaction_changes_nothing(
    place: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generation stays in use and nothing of the copy is left."""
    record = store.put(make_exchange())

    def fail(environment: Environment, folder: Path) -> int:
        raise StoreError("no room")

    monkeypatch.setattr(Environment, "copy", fail)
    with pytest.raises(StoreError, match="no room"):
        store.compact()
    assert sorted(entry.name for entry in place.iterdir()) == ["1", "CURRENT", "LOCK"]
    assert store.lookup_exact(record.exact) == (record,)


def test_one_recording_that_cannot_be_keyed_costs_no_other(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """It is quarantined and counted, and tried again when asked to."""
    for number in range(3):
        store.put(make_exchange(number))
    store.rewrite(Redaction(lambda body: body, str), ("RW102",))

    def compute(record: object, body: JsonValue) -> Key:
        if "1" in str(body["input"]):  # type: ignore[index,call-overload]
            raise RuntimeError("odd")
        return digest(str(body)), (digest("a"),), EMPTY

    report = store.index(compute)
    assert (report.indexed, report.quarantined) == (2, 1)
    assert "cannot be keyed" in caplog.text
    assert not store.needs_index()
    assert store.release_quarantined() == 1
    report = store.index(lambda _, body: (digest(str(body)), (digest("a"),), EMPTY))
    assert (report.indexed, report.quarantined) == (3, 0)
    assert store.check() == []
