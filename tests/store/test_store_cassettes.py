"""What is put into a store is found again, whole, in order, and nothing else is."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError, GoneError, StoreError
from rewind_proxy.store import EMPTY, Store
from rewind_proxy.store.transaction import LmdbTxn
from store.making import content_of, digest, make_exchange, open_store


def test_a_recording_comes_back_whole(store: Store) -> None:
    """Record, answer with its pace and request body are what was put."""
    exchange = make_exchange("q", b"data: 1\n\ndata: 2\n\n", body={"input": [{"a": 1}], "tools": []})
    record = store.put(exchange)
    assert store.lookup_exact(exchange.exact) == (record,)
    assert store.lookup_normalised(exchange.normalised) == (record,)
    assert (record.request, record.answer, record.run) == (exchange.request, exchange.answer, "run-1")
    answer = store.answer(record)
    assert (answer.body, answer.chunks) == (exchange.answer_body, exchange.chunks)
    assert store.request_body(record) == exchange.body


def test_the_id_is_the_digest_of_fingerprint_and_answer(store: Store) -> None:
    """`sha256(exact fingerprint ‖ answer)`, as DESIGN §7 says."""
    exchange = make_exchange(answer=b"answer")
    wanted = hashlib.sha256(bytes.fromhex(exchange.exact) + b"answer").hexdigest()
    assert store.put(exchange).id == wanted


def test_an_unknown_fingerprint_has_no_recordings(store: Store) -> None:
    """A look-up that finds nothing says so with an empty tuple."""
    store.put(make_exchange("known"))
    assert store.lookup_exact(digest("unknown")) == ()
    assert store.lookup_normalised(digest("unknown")) == ()


def test_a_fingerprint_that_is_none_is_refused(store: Store) -> None:
    """Anything but 64 hex digits is a mistake of the caller's, never a miss."""
    with pytest.raises(ValueError, match="32 bytes"):
        store.lookup_exact("abcd")


def test_answers_to_one_request_keep_their_order(store: Store) -> None:
    """Three replies, two of them equal, are three recordings in recorded order, stored as two contents."""
    for answer in (b"first reply", b"second reply", b"first reply"):
        store.put(make_exchange("retry", answer))
    found = store.lookup_exact(make_exchange("retry").exact)
    assert [store.answer(record).body for record in found] == [
        b"first reply",
        b"second reply",
        b"first reply",
    ]
    assert [record.seq for record in found] == sorted({record.seq for record in found})
    first, second, _ = found
    assert [store.count_of(ids) for ids in ([first.id], [second.id], [digest("other")])] == [2, 1, 0]
    assert found[0].id == found[2].id
    request_message = 1
    assert store.stats().blobs == 2 + request_message


def test_an_opaque_exchange_has_no_body(store: Store) -> None:
    """Nothing of an opaque request is kept, and reading it says None."""
    record = store.put(replace(make_exchange(), body=None))
    assert store.request_body(record) is None


@pytest.mark.parametrize("length", [4, 5, 12, 64])
def test_a_cassette_is_found_by_the_start_of_its_id(store: Store, length: int) -> None:
    """Four hex digits or more name a cassette, an odd number of them too, in either case."""
    record = store.put(make_exchange())
    assert store.cassette(record.id[:length]) == record
    assert store.cassette(record.id[:length].upper()) == record


@pytest.mark.parametrize(
    ("prefix", "message"),
    [("abc", "too short"), ("wxyz", "hex digits"), ("0000", "no recording"), ("é000", "hex digits")],
)
def test_an_id_that_names_nothing_says_why(store: Store, prefix: str, message: str) -> None:
    """Too short, no hex, or unknown: each has its sentence."""
    store.put(make_exchange())
    with pytest.raises(StoreError, match=message):
        store.cassette(prefix)


def test_an_ambiguous_start_of_an_id_is_refused(store: Store) -> None:
    """A start that two cassettes share names neither."""
    seen: dict[str, str] = {}
    for number in range(5000):
        exchange = make_exchange("same", b"%d" % number)
        start = hashlib.sha256(bytes.fromhex(exchange.exact) + exchange.answer_body).hexdigest()[:4]
        if start in seen:
            store.put(make_exchange("same", seen[start].encode()))
            store.put(exchange)
            with pytest.raises(StoreError, match="more than one"):
                store.cassette(start)
            return
        seen[start] = str(number)
    pytest.fail("no two ids start alike")


def test_cassettes_are_listed_in_either_order_and_by_run(store: Store) -> None:
    """Listing goes through all recordings, however many batches that takes."""
    for number in range(70):
        store.put(make_exchange(number, run=f"run-{number % 2}"))
    assert [record.seq for record in store.cassettes()] == list(range(1, 71))
    assert [record.seq for record in store.cassettes(newest_first=True)] == list(range(70, 0, -1))
    assert [record.seq for record in store.cassettes(run="run-1")] == list(range(2, 71, 2))
    assert [record.seq for record in store.cassettes(run="run-1", newest_first=True)][:2] == [70, 68]
    assert list(store.cassettes(run="run")) == []
    assert store.runs_present() == ("run-0", "run-1")


def test_counts_are_by_class(store: Store) -> None:
    """`count` counts model calls unless another class is named."""
    store.put(make_exchange("a"))
    store.put(make_exchange("b", cls="side"))
    assert (store.count(), store.count("side"), store.count("telemetry")) == (1, 1, 0)
    assert store.stats().cassettes == 2


def test_side_answers_are_those_of_the_newest_run(store: Store) -> None:
    """The first side answer of a new run takes away the older run's; more of the same run are added."""
    for run, answer in (("run-1", b"old 1"), ("run-1", b"old 2"), ("run-2", b"new 1"), ("run-2", b"new 2")):
        store.put(make_exchange("models", answer, run=run, cls="side"))
    other = store.put(make_exchange("flags", b"kept", run="run-1", cls="side"))
    found = store.lookup_exact(make_exchange("models").exact)
    assert [store.answer(record).body for record in found] == [b"new 1", b"new 2"]
    assert store.lookup_exact(other.exact) == (other,)
    assert store.stats().cassettes == 3


def test_side_calls_are_not_in_the_normalised_tier(store: Store) -> None:
    """Only model calls have a normalised fingerprint."""
    exchange = make_exchange(cls="side")
    store.put(exchange)
    assert store.lookup_normalised(exchange.normalised) == ()
    assert not store.needs_index()


def test_deleting_removes_what_nothing_else_uses(store: Store) -> None:
    """Blobs that a remaining cassette shares stay, all others go; deleting all leaves nothing behind."""
    shared: JsonValue = {"role": "system", "content": "shared " * 50}
    kept = store.put(make_exchange("a", b"one", body={"messages": [shared, {"content": "a"}]}))
    gone = store.put(make_exchange("b", b"two", body={"messages": [shared, {"content": "b"}]}))
    assert store.delete([gone.id]) == 1
    assert store.lookup_exact(gone.exact) == store.lookup_normalised(digest(("normalised", "b"))) == ()
    assert store.request_body(kept) == {"messages": [shared, {"content": "a"}]}
    assert store.delete([kept.id]) == 1
    stats = store.stats()
    assert (stats.cassettes, stats.blobs, stats.bytes_uncompressed) == (0, 0, 0)
    with store._place.read() as txn:
        left = {table: list(txn.scan(table, b"")) for table in ("cassettes", "blobs", "exact", "normalised")}
        left["prefixes"] = list(txn.scan("prefixes", b""))
    assert not any(left.values()), left


def test_what_is_deleted_while_it_is_listed_is_gone_and_not_damaged(store: Store) -> None:
    """The rest of the list goes on; who still holds the record is told that it was deleted."""
    records = [store.put(make_exchange(prompt)) for prompt in ("a", "b", "c")]
    listed, of_run = store.cassettes(), store.cassettes(run="run-1")
    assert next(listed) == next(of_run) == records[0]
    store.delete([records[1].id])
    assert list(of_run) == [records[2]]
    for record in listed:
        if record == records[1]:
            for read in (store.request_body, store.answer):
                with pytest.raises(GoneError, match="was deleted meanwhile"):
                    read(record)
        else:
            store.answer(record)


@pytest.mark.parametrize("start", ["", "ab", "whole"])
def test_deleting_takes_whole_ids_only(store: Store, start: str) -> None:
    """The start of an id deletes nothing, not even what was named beside it; an unknown id is none."""
    record = store.put(make_exchange())
    with pytest.raises(StoreError, match="whole"):
        store.delete([record.id, record.id[:60] if start == "whole" else start])
    assert store.count() == 1
    assert store.delete([digest("unknown")]) == 0


def test_numbers_are_never_given_twice(store: Store) -> None:
    """A recording made after the newest was deleted does not take its number."""
    first = store.put(make_exchange("a"))
    store.delete([first.id])
    assert store.put(make_exchange("b")).seq > first.seq


def test_a_record_that_does_not_parse_is_named(store: Store) -> None:
    """Garbage in the place of a record is an error that names the cassette, never a miss."""
    record = store.put(make_exchange())
    with store._place.write() as txn:
        txn.put("cassettes", b"r" + record.seq.to_bytes(8, "big"), b"garbage")
    with (
        open_store(store.path, settings_digest="other") as fresh,
        pytest.raises(CorruptRecordError, match=record.id),
    ):
        fresh.lookup_exact(record.exact)


def test_an_index_that_points_nowhere_is_named(store: Store) -> None:
    """A record that is gone while an index has it is an error that names the cassette."""
    record = store.put(make_exchange())
    with store._place.write() as txn:
        txn.delete("cassettes", b"r" + record.seq.to_bytes(8, "big"))
    with pytest.raises(CorruptRecordError, match=record.id):
        store.lookup_exact(record.exact)


@pytest.mark.parametrize("damage", [b"", b"garbage", b"0short", b"1not zstd", b"1(\xb5/\xfd\xff\xff"])
@pytest.mark.parametrize("what", ["answer", "structure", "message", "list"])
def test_damaged_bytes_are_never_an_answer(store: Store, what: str, damage: bytes) -> None:
    """Whatever stands in the place of stored bytes, reading them is an error that names the cassette."""
    message: JsonValue = {"role": "user", "content": "text " * 100}
    record = store.put(make_exchange(answer=b"answer", body={"messages": [message]}))
    with store._place.write() as txn:
        places = {
            "structure": ("cassettes", b"s" + record.seq.to_bytes(8, "big")),
            "answer": ("blobs", b"b" + bytes.fromhex(record.answer_sha256)),
            "list": ("blobs", next(key for key, _ in txn.scan("blobs", b"l"))),
        }
        places["message"] = (
            "blobs",
            next(key for key, _ in txn.scan("blobs", b"b") if key != places["answer"][1]),
        )
        txn.put(*places[what], damage)
    read = store.answer if what == "answer" else store.request_body
    with pytest.raises(CorruptRecordError, match=record.id):
        read(record)


def test_reading_changes_nothing(place: Path) -> None:
    """Every reading call on a store opened for reading leaves every file as it was (CASES 47)."""
    with open_store(place) as store:
        record = store.put(make_exchange())
    before = content_of(place.parent)
    with open_store(place, readonly=True, settings_digest="other") as store:
        assert store.lookup_exact(record.exact) == (record,)
        assert store.answer(record).body == b"hi"
        assert store.request_body(record) is not None
        assert store.needs_index()
        store.index(lambda found, _body: (found.exact, (found.exact,), EMPTY))
        assert store.lookup_normalised(record.exact) == (record,)
        assert store.stats().cassettes == len(list(store.cassettes())) == store.count() == 1
        with pytest.raises(StoreError, match="reading only"):
            store.put(make_exchange("b"))
    assert content_of(place.parent) == before


def test_a_look_up_costs_the_same_in_any_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of LMDB operations of a look-up and its answer does not grow with the store."""
    operations = 0
    get, scan = LmdbTxn.get, LmdbTxn.scan

    def counted_get(self: LmdbTxn, table: str, key: bytes) -> bytes | None:
        nonlocal operations
        operations += 1
        return get(self, table, key)

    def counted_scan(self: LmdbTxn, table: str, prefix: bytes, after: bytes = b""):  # type: ignore[no-untyped-def]
        nonlocal operations
        for entry in scan(self, table, prefix, after):
            operations += 1
            yield entry

    def cost() -> int:
        nonlocal operations
        operations = 0
        [record] = store.lookup_normalised(make_exchange(0).normalised)
        store.answer(record)
        assert store.lookup_exact(digest("unknown")) == ()
        return operations

    store.put(make_exchange(0))
    monkeypatch.setattr(LmdbTxn, "get", counted_get)
    monkeypatch.setattr(LmdbTxn, "scan", counted_scan)
    small = cost()
    for number in range(1, 300):
        store.put(make_exchange(number))
    assert 0 < cost() == small
