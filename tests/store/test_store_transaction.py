"""The tables in memory behave as those of LMDB do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.store.environment import open_environment
from rewind_proxy.store.transaction import MemoryTxn, Txn

KEYS = st.lists(st.sampled_from([b"a", b"b", b"\xff"]), min_size=1, max_size=4).map(b"".join)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["put", "add", "delete"]), KEYS, st.binary(max_size=3)), max_size=20
)
PREFIXES = st.lists(st.sampled_from([b"a", b"b", b"\xff"]), max_size=3).map(b"".join)


def outcome(txn: Txn, actions: list[tuple[str, bytes, bytes]], prefix: bytes, bound: bytes) -> list[object]:
    """What some actions and scans return."""
    seen: list[object] = []
    for name, key, value in actions:
        if name == "put":
            txn.put("t", key, value)
        elif name == "add":
            seen.append(txn.add("t", key, value))
        else:
            seen.append(txn.delete("t", key))
        seen.append(txn.get("t", key))
    inside = bound if bound.startswith(prefix) else b""
    return [*seen, list(txn.scan("t", prefix, inside)), list(txn.scan_back("t", prefix, inside))]


@given(ACTIONS, PREFIXES, KEYS)
@settings(max_examples=200, deadline=None)
def test_memory_does_what_lmdb_does(
    tmp_path_factory: pytest.TempPathFactory,
    actions: list[tuple[str, bytes, bytes]],
    prefix: bytes,
    bound: bytes,
) -> None:
    """Any sequence of changes and scans gives the same answers."""
    folder: Path = tmp_path_factory.getbasetemp() / "tables"
    folder.mkdir(exist_ok=True)
    environment = open_environment(folder, ("meta", "t"), map_size=1 << 20)
    try:
        with environment.write() as txn:
            for key, _ in list(txn.scan("t", b"")):
                txn.delete("t", key)
            found = outcome(txn, actions, prefix, bound)
    finally:
        environment.close()
    assert found == outcome(MemoryTxn(), actions, prefix, bound)
