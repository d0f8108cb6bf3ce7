"""The normalised index lives under its settings; the prefix tree leads to the nearest recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.store import EMPTY, CassetteRecord, IndexReport, Store, index
from rewind_proxy.store.recordings import seq_key
from rewind_proxy.store.reindex import Key
from rewind_proxy.store.transaction import MemoryTxn
from store.making import chain, digest, make_exchange, open_store, spelled

OTHER = "settings-b"


def keyed(record: CassetteRecord, body: JsonValue | None) -> Key | None:
    """Another way of keying: by the body."""
    return digest(body), chain([body]), EMPTY


def test_a_store_is_indexed_under_other_settings_once(place: Path) -> None:
    """Other settings find everything once they have indexed the store; the first ones still do."""
    with open_store(place) as first:
        records = [first.put(make_exchange(number)) for number in range(70)]
    seen: list[tuple[int, int]] = []
    with open_store(place, settings_digest=OTHER) as store:
        assert store.needs_index()
        assert store.index(keyed, lambda done, total: seen.append((done, total))) == IndexReport(70, 0)
        assert seen[-1] == (70, 70)
        assert not store.needs_index()
        assert store.lookup_normalised(digest(store.request_body(records[3]))) == (records[3],)
        nearest = store.nearest(chain([store.request_body(records[3])]))
        assert nearest == (records[3], 1, 1.0)
    with open_store(place, settings_digest=OTHER) as store:
        assert not store.needs_index()
    with open_store(place) as first:
        assert first.lookup_normalised(make_exchange(3).normalised) == (records[3],)


def test_what_others_record_meanwhile_is_found_missing(place: Path) -> None:
    """A recording made under other settings is indexed at the next open, and nothing twice."""
    with open_store(place) as first, open_store(place, settings_digest=OTHER) as second:
        first.put(make_exchange("a"))
        second.index(keyed)
        first.put(make_exchange("b"))
        second.put(make_exchange("c"))
        assert first.needs_index()
        assert second.needs_index()
    asked: list[int] = []

    def noted(record: CassetteRecord, body: JsonValue | None) -> Key | None:
        asked.append(record.seq)
        return keyed(record, body)

    with open_store(place, settings_digest=OTHER) as second:
        assert second.index(noted) == IndexReport(3, 0)
    assert asked == [2]


def test_what_cannot_be_keyed_is_quarantined_and_counted(place: Path) -> None:
    """A recording that `compute` cannot key, or that is damaged, is counted, and not tried at every open."""
    with open_store(place) as first:
        unkeyed, damaged, sound = (first.put(make_exchange(name)) for name in "abc")
        with first._place.write() as txn:
            txn.put("cassettes", b"s" + seq_key(damaged.seq), b"garbage")
    with open_store(place, settings_digest=OTHER) as store:
        report = store.index(lambda record, body: None if record.seq == unkeyed.seq else keyed(record, body))
        assert report == IndexReport(indexed=1, quarantined=2)
        assert not store.needs_index()
        assert store.delete([unkeyed.id]) == 1
        assert store.index_report() == IndexReport(1, 1)
        assert store.lookup_exact(sound.exact) == (sound,)


def test_a_read_only_store_is_indexed_in_memory(place: Path) -> None:
    """Under other settings a store that may not be written answers all the same."""
    with open_store(place) as first:
        record = first.put(make_exchange())
    with open_store(place, settings_digest=OTHER, readonly=True) as store:
        assert store.needs_index()
        assert store.index(keyed) == IndexReport(1, 0)
        assert not store.needs_index()
        fingerprint = digest(store.request_body(record))
        assert store.lookup_normalised(fingerprint) == (record,)
        assert store.nearest(chain([store.request_body(record), "more"])) == (record, 1, 0.0)
    with open_store(place, settings_digest=OTHER) as store:
        assert store.needs_index()


def nearest(store: Store, *parts: str, params: str = "") -> tuple[str, int] | None:
    """The exact fingerprint of the recording nearest to a chain, and how many links they share."""
    found = store.nearest(chain(parts), spelled(parts, params))
    return None if found is None else (found.record.exact, found.shared)


def named(*parts: str) -> str:
    """The exact fingerprint of the recording of a chain."""
    return digest(("exact", list(parts)))


def test_nearest_is_the_recording_with_the_longest_common_prefix(store: Store) -> None:
    """The chain that shares most links is found, with their number; None in an empty store."""
    assert nearest(store, "sys") is None
    for text in ("sys m1 p", "sys m1 m2 m3 p", "sys other p", "sys2 m1 p"):
        store.put(make_exchange(text.split(), links=text.split()))
    assert nearest(store, "sys", "m1", "m2", "changed", "p") == (named("sys", "m1", "m2", "m3", "p"), 3)
    assert nearest(store, "sys", "other", "p2") == (named("sys", "other", "p"), 2)
    assert nearest(store, "sys2") == (named("sys2", "m1", "p"), 1)
    assert nearest(store) is None


def test_a_changed_head_leads_to_the_same_messages(store: Store) -> None:
    """One word of a system prompt, or the whole of it, hides no recording whose messages are the same."""
    for head in ("you code in python", "you paint", "you sing"):
        for text in ("fix the parser", "draw a tree"):
            store.put(make_exchange([head, text], links=[head, text, "done"]))
    found = nearest(store, "you code in rust", "draw a tree", "done")
    assert found == (named("you code in python", "draw a tree"), 0)
    whole = store.nearest(chain(["none", "draw a tree"]), spelled(["none", "draw a tree"]))
    assert whole is not None
    assert (whole.shared, whole.likeness) == (0, 0.5)
    store.put(make_exchange(["none", "what else"], links=["none", "what else"]))
    assert nearest(store, "none", "draw a tree", "done") == (named("you sing", "draw a tree"), 0)


@pytest.mark.parametrize("count", [50, 3000])
def test_of_many_siblings_the_one_that_is_alike_is_found(store: Store, count: int) -> None:
    """Among thousands of conversations that start alike the one is found that differs in a word."""
    txn, key = MemoryTxn(), b"s" * 16
    for number in range(1, count):
        parts = ["sys", f"why does line {number} of module {number * 7} fail", "answer"]
        index.add(txn, key, seq_key(number), b"i" * 32, digest(number), chain(parts), spelled(parts))
    asked = ["sys", "why does line 33 of module 231 hang", "answer"]
    found = index.nearest(txn, key, chain(asked), spelled(asked))
    assert found is not None
    assert found[:2] == (seq_key(33), 1)
    assert found.likeness > 0.6


def test_of_one_conversation_the_parameters_decide(store: Store) -> None:
    """Recordings that differ in their parameters alone are told apart by them."""
    for value in ("low", "high", "none"):
        store.put(make_exchange(["sys", "m", value], links=["sys", "m"], params=f"effort {value}"))
    assert nearest(store, "sys", "m", params="effort high x") == (named("sys", "m", "high"), 2)


def test_nearest_prefers_a_recording_of_the_same_length(store: Store) -> None:
    """Of all turns of a session the one that got as far is compared, not the first."""
    session = ["sys", "m1", "m2", "m3", "m4", "m5"]
    for length in (2, 4, 6):
        parts = [*session[:length], "params"]
        store.put(make_exchange(parts, links=parts))
    found = nearest(store, "sys", "changed", "m2", "m3", "params")
    assert found == (named("sys", "m1", "m2", "m3", "params"), 1)


def test_one_long_recording_is_found_from_its_start(store: Store) -> None:
    """A chain of a thousand links with no shorter turn beside it is found by its first link."""
    record = store.put(make_exchange(links=range(1000)))
    found = store.nearest(chain([0, "changed"]), spelled([0, "changed"]))
    assert found is not None
    assert found[:2] == (record, 1)


def test_a_wide_tree_is_not_walked_as_a_whole() -> None:
    """However many sessions start alike, so many entries are looked at and no more, and one is found."""
    txn = MemoryTxn()
    for number in range(12_000):
        seq = seq_key(number + 1)
        index.add(txn, b"s" * 16, seq, b"i" * 32, digest(number), chain(["sys", number, "params"]))
    steps = 0
    scan = txn.scan

    class Counting(MemoryTxn):
        def scan(self, table: str, prefix: bytes, after: bytes = b""):  # type: ignore[no-untyped-def]
            nonlocal steps
            for entry in scan(table, prefix, after):
                steps += 1
                yield entry

    found = index.nearest(Counting(), b"s" * 16, chain(["sys", "new", "params"]))
    assert found is not None
    assert found.shared == 1
    assert steps < 10_500


CHAINS = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5), min_size=1, max_size=8)


@given(CHAINS, st.randoms(use_true_random=False), st.lists(st.sampled_from("ab"), max_size=6))
@settings(max_examples=200, deadline=None)
def test_the_tree_is_right_whatever_is_removed(chains: list[list[str]], random, asked: list[str]) -> None:  # type: ignore[no-untyped-def]
    """After removals a prefix of two links or more is that of what is left, and an empty tree is empty."""
    txn, key = MemoryTxn(), b"s" * 16
    left = dict(enumerate(chains, 1))
    for seq, parts in left.items():
        index.add(txn, key, seq_key(seq), b"i" * 32, digest(parts), chain(parts), spelled(parts))
    for seq in random.sample(sorted(left), random.randint(0, len(left))):
        index.remove(txn, key, seq_key(seq))
        del left[seq]

    def shared(parts: list[str]) -> int:
        return max(at for at in range(len(asked) + 1) if parts[:at] == asked[:at])

    best = max(map(shared, left.values()), default=0)
    found = index.nearest(txn, key, chain(asked), spelled(asked))
    assert bool(found) == bool(left and asked)
    if found:
        assert shared(left[int.from_bytes(found.seq, "big")]) == found.shared
        assert found.shared == best or best < 2
    for seq in left:
        index.remove(txn, key, seq_key(seq))
    assert not list(txn.scan("prefixes", b""))
    assert not list(txn.scan("normalised", b""))
    assert index.all_settings(txn) == []


@pytest.mark.parametrize("links", [[], ["only"]])
def test_short_chains_are_indexed_too(store: Store, links: list[str]) -> None:
    """A request with no message at all still has its normalised fingerprint."""
    record = store.put(make_exchange(links=links))
    assert store.lookup_normalised(make_exchange().normalised) == (record,)
    assert store.delete([record.id]) == 1
    assert store.nearest(chain(links)) is None
