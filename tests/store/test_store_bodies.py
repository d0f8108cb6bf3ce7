"""A request body is stored in parts, each once, and comes back equal."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.store import structure
from rewind_proxy.store.blobs import BLOB_COUNT, BYTE_COUNT, compress, decompress, read_count
from rewind_proxy.store.transaction import MemoryTxn
from store.making import make_exchange, open_store

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=300)
)
NAMES = st.sampled_from(["messages", "input", "contents", "system", "tools", "request", "blob"]) | st.text()
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
@settings(max_examples=200)
def test_any_body_comes_back_equal(body: JsonValue) -> None:
    """What goes in comes out, members in their order, lone surrogates and all; dropping it leaves nothing."""
    txn = MemoryTxn()
    kept = structure.keep(txn, structure.plan(body))
    assert json.dumps(structure.read(txn, json.loads(json.dumps(kept)))) == json.dumps(body)
    structure.drop(txn, kept)
    assert not list(txn.scan("blobs", b""))
    assert read_count(txn, BLOB_COUNT) == read_count(txn, BYTE_COUNT) == 0


@given(st.lists(VALUES, min_size=2, max_size=4))
@settings(max_examples=100)
def test_dropping_one_body_leaves_the_others(bodies: list[JsonValue]) -> None:
    """Whatever bodies share, each is whole until it is dropped itself."""
    txn = MemoryTxn()
    kept = [structure.keep(txn, structure.plan(body)) for body in bodies]
    while kept:
        structure.drop(txn, kept.pop(0))
        bodies = bodies[1:]
        assert [json.dumps(structure.read(txn, one)) for one in kept] == [json.dumps(body) for body in bodies]
    assert not list(txn.scan("blobs", b""))


@pytest.mark.parametrize(
    "body",
    [
        ["blob", "00" * 32],
        {"messages": ["list", "00" * 32]},
        {"messages": [{"blob": "00" * 32}]},
        ["members", [["messages", ["value", 1]]]],
    ],
)
def test_a_body_that_looks_like_a_reference_is_a_body(body: JsonValue) -> None:
    """Nothing a client sends is ever taken for a reference."""
    txn = MemoryTxn()
    assert structure.read(txn, structure.keep(txn, structure.plan(body))) == body


@given(st.binary(max_size=2000))
def test_stored_bytes_come_back(data: bytes) -> None:
    """Compressed or plain, bytes are what they were, and never grow by more than the mark."""
    value = compress(data)
    assert decompress(value) == data
    assert len(value) <= len(data) + 1


def words(source: random.Random, count: int) -> str:
    """Text that does not compress to nothing."""
    return " ".join(source.randbytes(4).hex() for _ in range(count))


@pytest.mark.parametrize("moving_mark", [False, True], ids=["plain", "cache_control moves"])
@pytest.mark.parametrize("size", [40, 1600])
def test_a_long_session_costs_what_is_new_in_it(tmp_path: Path, size: int, moving_mark: bool) -> None:
    """200 turns take at most 3 × the last request and the answers, uncompressed (DESIGN §11).

    The whole file is smaller than that too, once messages are as long as an agent's. Both hold when the
    client marks the last message of each request for caching, as Claude Code does.
    """
    source = random.Random(1)
    tools: JsonValue = [{"name": f"tool {number}", "description": words(source, 40)} for number in range(10)]
    system: JsonValue = [{"type": "text", "text": words(source, 200)}]
    messages: list[JsonValue] = []
    answers = last = 0
    with open_store(tmp_path / "store") as store:
        for turn in range(200):
            messages.append({"role": "user", "content": [{"type": "text", "text": words(source, size // 4)}]})
            sent = list(messages)
            if moving_mark:
                sent[-1] = {**sent[-1], "cache_control": {"type": "ephemeral"}}  # type: ignore[dict-item]
            body: JsonValue = {
                "model": "m1",
                "system": system,
                "tools": tools,
                "messages": sent,
                "stream": True,
            }
            answer = words(source, size // 4)
            store.put(
                make_exchange(turn, answer.encode(), body=body, links=[*range(2 * turn), "params", turn])
            )
            messages.append({"role": "assistant", "content": answer})
            answers += len(answer)
            last = len(json.dumps(body))
        stats = store.stats()
    budget = 3 * last + answers
    assert stats.bytes_uncompressed <= budget
    if size == 1600:
        assert stats.bytes_on_disk <= budget
