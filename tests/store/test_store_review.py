"""The review flow in the store and its log: tokens, aliases, pending requests, their candidates."""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import StoreError
from rewind_proxy.store import (
    AliasRecord,
    CandidateRecord,
    Exchange,
    Log,
    PendingRecord,
    Recorder,
    Redaction,
    Refusal,
    Sketched,
    Store,
)
from rewind_proxy.store import pending as pendings
from rewind_proxy.store.signature import SIGNATURE, likeness
from store.making import digest, make_exchange, open_store

spawn = multiprocessing.get_context("spawn")
SECRET = "hunter2"


def signed(seed: int, changed: int = 0) -> Sketched:
    """The signature of a request, with some slots at its end changed."""
    made = bytearray(random.Random(seed).randbytes(SIGNATURE))
    for slot in range(changed):
        made[SIGNATURE - 1 - slot] ^= 0xFF
    return Sketched(lambda _: "", str, lambda: bytes(made))


def alike(asked: object, seed: int, changed: int = 0) -> Exchange:
    """An exchange with that signature."""
    made = make_exchange(asked, answer=str(asked).encode())
    return Exchange(
        **{**{name: getattr(made, name) for name in made.__slots__}, "sketched": signed(seed, changed)}
    )


def an_alias(asked: object, cassette: str, *, at: float = 1.0) -> AliasRecord:
    """An alias for a request."""
    made = make_exchange(asked)
    return AliasRecord(
        id=digest(("alias", asked)), cassette=cassette, exact=made.exact, request=made.request, approved_at=at
    )


def a_pending(asked: object, *, at: float = 1.0) -> PendingRecord:
    """A pending request."""
    made = make_exchange(asked)
    return PendingRecord(
        id=made.normalised,
        normalised=made.normalised,
        exact=made.exact,
        request=made.request,
        run="run-1",
        step=3,
        first_at=at,
        last_at=at,
        preview=str(asked),
    )


def redacting(text: str) -> str:
    """What a new rule does."""
    return text.replace(SECRET, "[REDACTED]")


def redacting_body(value: JsonValue) -> JsonValue:
    """The same in a body."""
    if isinstance(value, dict):
        return {name: redacting_body(item) for name, item in value.items()}
    if isinstance(value, list):
        return [redacting_body(item) for item in value]
    return redacting(value) if isinstance(value, str) else value


# -- tokens


def test_what_is_alike_is_found_best_first(store: Store) -> None:
    """Above the threshold; others are not, however many there are."""
    for number in range(60):
        store.put(alike(f"other {number}", 1000 + number))
    near, nearer = store.put(alike("near", 1, 12)), store.put(alike("nearer", 1, 6))
    store.put(alike("far", 1, 60))
    found = store.similar(signed(1), 0.85, 8)
    assert [each.record for each in found] == [nearer, near]
    assert [each.score for each in found] == [1 - 6 / 128, 1 - 12 / 128]
    assert store.similar(signed(1), 0.93, 8) == found[:1]
    assert store.similar(signed(1), 0.85, 1) == found[:1]


def test_what_another_search_found_is_weighed_too(store: Store) -> None:
    """It shares no band perhaps; it counts if it is as near as the others must be."""
    record = store.put(alike("near", 1, 64))
    assert store.similar(signed(1), 0.5, 8) == []
    assert [each.record for each in store.similar(signed(1), 0.5, 8, record.id)] == [record]
    assert store.similar(signed(1), 0.85, 8, record.id) == []


def test_a_request_recorded_twice_is_one_candidate(store: Store) -> None:
    """The newest of its recordings."""
    store.put(alike("near", 1, 4))
    newest = store.put(alike("near", 1, 4))
    assert [each.record for each in store.similar(signed(1), 0.85, 8)] == [newest]


def test_the_index_is_of_the_settings_in_force(place: Path, store: Store) -> None:
    """Under others it is made when they come, and a read-only store has it in memory."""
    record = store.put(alike("near", 1, 4))
    keys = make_exchange("near")
    with open_store(place, settings_digest="others") as other:
        assert other.similar(signed(1), 0.85, 8) == []
        other.index(lambda *_: (keys.normalised, keys.links, signed(1, 4)))
        assert [each.record for each in other.similar(signed(1), 0.85, 8)] == [record]
        assert not other.check()
    assert [each.record for each in store.similar(signed(1), 0.85, 8)] == [record]


def test_a_read_only_store_is_searched_in_memory(place: Path) -> None:
    """Nothing is written to it."""
    with open_store(place) as store:
        record = store.put(alike("near", 1, 4))
    keys = make_exchange("near")
    with open_store(place, settings_digest="others", readonly=True) as other:
        other.index(lambda *_: (keys.normalised, keys.links, signed(1, 4)))
        assert [each.record for each in other.similar(signed(1), 0.85, 8)] == [record]


def test_what_is_deleted_is_not_found(store: Store) -> None:
    """Not one entry of it is left."""
    record = store.put(alike("near", 1, 4))
    store.delete([record.id])
    assert store.similar(signed(1), 0.85, 8) == []
    with store._place.read() as txn:
        assert list(txn.scan("tokens", b"")) == []


def test_entries_that_lead_nowhere_are_damage(store: Store) -> None:
    """And so is one that is missing, and a signature without a recording."""
    store.put(alike("near", 1, 4))
    assert store.check() == []
    with store._place.write() as txn:
        key = next(key for key, value in txn.scan("tokens", b"") if not value)
        txn.delete("tokens", key)
    assert [each.problem for each in store.check()] == ["1 entries of tokens are missing"]
    with store._place.write() as txn:
        txn.put("tokens", key[:-1] + b"\xff", b"")
        [signed_at] = [key for key, value in txn.scan("tokens", b"") if value]
        txn.put("tokens", signed_at[:-1] + b"\x07", bytes(SIGNATURE))
    problems = " ".join(each.problem for each in store.check())
    assert "1 entries of tokens lead nowhere" in problems
    assert "number 7 are of no recording" in problems


# -- aliases


def test_an_alias_is_found_by_the_fingerprint_of_its_request(place: Path, store: Store) -> None:
    """Under other settings by the fingerprint there, once it is computed; the newest of two wins."""
    record = store.put(make_exchange("recorded"))
    first, second = an_alias("asked", record.id), an_alias("asked too", record.id, at=2.0)
    store.aliases.put(first, {"q": "asked"}, digest("a"))
    assert store.aliases.lookup(digest("a")) == first
    assert store.aliases.lookup(digest("b")) is None
    store.aliases.put(second, None, digest("a"))
    assert store.aliases.lookup(digest("a")) == second
    assert store.aliases.all() == [second, first]
    with open_store(place, settings_digest="others") as other:
        assert other.aliases.lookup(digest("a")) is None
        other.aliases.index(lambda alias, body: digest((alias.id, body)))
        assert other.aliases.lookup(digest((first.id, {"q": "asked"}))) == first
    assert store.check() == []


def test_an_alias_in_place_of_one_of_the_same_id(store: Store) -> None:
    """Approved again it leads elsewhere, and nothing of the older one is left."""
    one, two = store.put(make_exchange("one")), store.put(make_exchange("two"))
    for record, fingerprint in ((one, "a"), (two, "b")):
        store.aliases.put(an_alias("asked", record.id), {"q": "x" * 500}, digest(fingerprint))
    assert store.aliases.lookup(digest("a")) is None
    found = store.aliases.lookup(digest("b"))
    assert found is not None
    assert found.cassette == two.id
    assert store.check() == []
    assert store.aliases.remove(found.id)
    assert not store.aliases.remove(found.id)
    assert store.aliases.all() == []
    assert store.check() == []


def test_its_request_shares_what_is_stored_already(store: Store) -> None:
    """A long session costs an alias nothing that a recording of it has paid for."""
    body: JsonValue = {"messages": [{"role": "user", "content": f"{at} " * 500} for at in range(20)]}
    record = store.put(make_exchange("recorded", body=body))
    before = store.stats()
    store.aliases.put(an_alias("asked", record.id), body, digest("a"))
    assert store.stats().blobs == before.blobs
    assert store.aliases.body(store.aliases.all()[0]) == body
    store.delete([record.id])
    assert store.stats().blobs == 0
    assert store.aliases.all() == []
    assert store.check() == []


def test_an_alias_is_named_by_the_start_of_its_id(store: Store) -> None:
    """None, too short a start and one that several have are errors that say so."""
    record = store.put(make_exchange("recorded"))
    alias = an_alias("asked", record.id)
    store.aliases.put(alias, None, digest("a"))
    assert store.aliases.find(alias.id[:12]) == alias
    for name in ("0" * 12, alias.id[:2]):
        with pytest.raises(StoreError, match="rewind aliases"):
            store.aliases.find(name)


def test_an_alias_of_a_read_only_store_is_indexed_in_memory(place: Path) -> None:
    """Nothing is written to it."""
    with open_store(place) as store:
        record = store.put(make_exchange("recorded"))
        store.aliases.put(an_alias("asked", record.id), None, digest("a"))
    with open_store(place, settings_digest="others", readonly=True) as other:
        other.aliases.index(lambda *_: digest("b"))
        assert other.aliases.lookup(digest("b")) is not None


def test_an_alias_that_cannot_be_keyed_costs_no_other(place: Path, store: Store) -> None:
    """It answers nothing; a proxy starts all the same."""
    record = store.put(make_exchange("recorded"))
    good, bad = an_alias("good", record.id), an_alias("bad", record.id)
    for alias in (good, bad):
        store.aliases.put(alias, None, digest(alias.id))

    def compute(alias: AliasRecord, _: JsonValue) -> str:
        if alias == bad:
            raise ValueError("no such request")
        return digest("a")

    with open_store(place, settings_digest="others") as other:
        other.aliases.index(compute)
        assert other.aliases.lookup(digest("a")) == good


def test_aliases_go_through_new_rules(place: Path, store: Store) -> None:
    """Everything in them; their fingerprints are computed anew, and a dangling or damaged one is left out."""
    record = store.put(make_exchange("recorded"))
    alias = an_alias("asked", record.id)
    request = alias.request.model_copy(update={"path": f"/{SECRET}", "params": {"x": SECRET}})
    store.aliases.put(alias.model_copy(update={"request": request}), {"q": SECRET * 100}, digest("a"))
    broken = an_alias("broken", record.id)
    store.aliases.put(broken, None, digest("b"))
    with store._place.write() as txn:
        txn.put("aliases", b"r" + bytes.fromhex(broken.id), b"0[]")
    assert any(broken.id in each.problem for each in store.check())
    report = store.rewrite(Redaction(redacting_body, redacting), ("RW102",))
    assert broken.id in report.dropped[0]
    [kept] = store.aliases.all()
    assert (kept.request.path, kept.request.params) == ("/[REDACTED]", {"x": "[REDACTED]"})
    assert store.aliases.body(kept) == {"q": "[REDACTED]" * 100}
    assert store.aliases.lookup(digest("a")) is None
    store.aliases.index(lambda _, body: digest(body))
    assert store.aliases.lookup(digest({"q": "[REDACTED]" * 100})) == kept
    keys = make_exchange("recorded")
    store.index(lambda *_: (keys.normalised, keys.links, keys.sketched))
    assert store.check() == []
    files = [file for file in place.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


# -- pending requests


def test_a_refused_request_is_pending_once(log: Log) -> None:
    """Refused again it is counted, and told of as it was last; it can be named in several ways."""
    body: JsonValue = {"q": "asked"}
    log.pending.put(a_pending("asked"), body, [])
    log.pending.put(a_pending("other", at=2.0), None, [])
    log.pending.put(a_pending("asked", at=3.0).model_copy(update={"run": "run-2", "step": 7}), body, [])
    first, second = log.pending.all()
    assert (first.count, first.first_at, first.last_at, first.run) == (2, 1.0, 3.0, "run-2")
    assert (second.count, second.preview) == (1, "other")
    assert log.pending.body(first) == body
    for name in (first.id, first.id[:12].upper(), "run-2.7", "last"):
        assert log.pending.find(name) == first
    for name in ("0" * 12, first.id[:2], "run-2.8"):
        with pytest.raises(StoreError, match="rewind pending"):
            log.pending.find(name)


def test_the_newest_are_kept(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many of them, and so much."""
    monkeypatch.setattr(pendings, "MOST", 3)
    for at in range(5):
        log.pending.put(a_pending(at, at=at), {"q": "x"}, [CandidateRecord(cassette=digest(at), score=0.9)])
    assert [each.last_at for each in log.pending.all()] == [4.0, 3.0, 2.0]
    with log._place.read() as txn:
        assert len(list(txn.scan("candidates", b""))) == 3
    monkeypatch.setattr(pendings, "MOST_BYTES", 1000)
    noise = random.Random(1).randbytes(4000).hex()
    log.pending.put(a_pending("large", at=9.0), {"q": noise}, [])
    assert [each.preview for each in log.pending.all()] == ["large"]


def test_a_no_to_a_candidate_holds(log: Log) -> None:
    """Also when the request is refused again; a no to all of them puts it away until then."""
    near = [CandidateRecord(cassette=digest(name), score=score) for name, score in (("a", 0.9), ("b", 0.95))]
    log.pending.put(a_pending("asked"), None, near)
    record = log.pending.find("last")
    assert [each.score for each in log.pending.candidates(record)] == [0.95, 0.9]
    log.pending.reject(record, digest("b"))
    assert [each.rejected for each in log.pending.candidates(record)] == [True, False]
    assert not log.pending.find("last").put_away
    log.pending.reject(record)
    assert log.pending.find(record.id).put_away
    with pytest.raises(StoreError, match="no pending request 'last'"):
        log.pending.find("last")
    log.pending.put(
        a_pending("asked", at=2.0), None, [*near, CandidateRecord(cassette=digest("c"), score=0.86)]
    )
    again = log.pending.find("last")
    assert not again.put_away
    assert [each.rejected for each in log.pending.candidates(again)] == [True, True, False]


def test_what_has_an_answer_is_not_pending(log: Log) -> None:
    """Neither it nor its candidates are left; a candidate that was deleted is none."""
    log.pending.put(a_pending("asked"), None, [CandidateRecord(cassette=digest("a"), score=0.9)])
    record = log.pending.find("last")
    log.pending.forget([digest("a")])
    assert log.pending.candidates(record) == []
    log.pending.remove(record)
    assert log.pending.all() == []
    assert log.is_empty()


def test_pending_requests_go_through_new_rules(place: Path) -> None:
    """Body and record; one that is damaged is named, left out, and stands in nobody's way."""
    with Log.open(place) as log:
        log.pending.put(
            a_pending(SECRET), {"q": SECRET * 100}, [CandidateRecord(cassette=digest("a"), score=1)]
        )
        log.pending.put(a_pending("broken"), None, [])
        broken = a_pending("broken").id
        with log._place.write() as txn:
            txn.put("pending", bytes.fromhex(broken), b"\0\0\0\2{}0null")
        assert [each.preview for each in log.pending.all()] == [SECRET]
        assert broken in log.check()[0].problem

        def redact(record: PendingRecord, body: JsonValue) -> tuple[PendingRecord, JsonValue]:
            return record.model_copy(update={"preview": redacting(record.preview)}), redacting_body(body)

        dropped = log.rewrite(lambda run: run, lambda step: step, ("RW102",), refused=redact)
        assert broken in dropped[0]
        [record] = log.pending.all()
        assert (record.preview, log.pending.body(record)) == ("[REDACTED]", {"q": "[REDACTED]" * 100})
        assert len(log.pending.candidates(record)) == 1
        assert log.check() == []
    files = [file for file in place.parent.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def refuse_some(place: Path, worker: int) -> None:
    """Refuse requests, of which half are those of every other worker."""
    with open_store(place) as store, Log.open(place) as log, Recorder(store, log) as recorder:
        for number in range(20):
            asked = f"shared {number}" if number % 2 else f"{worker} {number}"
            recorder.keep(Refusal(a_pending(asked, at=number), {"q": asked}, signed(1), 0.85))


def test_several_processes_keep_what_they_refused(place: Path, store: Store, log: Log) -> None:
    """What two of them refused is one pending request, with the candidates that the store has."""
    record = store.put(alike("near", 1, 6))
    workers = [spawn.Process(target=refuse_some, args=(place, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    found = log.pending.all()
    assert sorted(each.count for each in found) == [1] * 30 + [3] * 10
    for each in found:
        [candidate] = log.pending.candidates(each)
        assert (candidate.cassette, round(candidate.score, 3)) == (record.id, round(1 - 6 / 128, 3))
    assert log.check() == []


def test_likeness_is_a_share_of_slots() -> None:
    """The end of a request weighs as much as all the rest."""
    one = signed(1).signature()
    assert likeness(one, one) == 1.0
    assert likeness(one, bytes(SIGNATURE - 64) + one[-64:]) == pytest.approx(0.5, abs=0.02)
