"""A store and its log in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewind_proxy.store import Log, Store
from store.making import open_store


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the store of a project is."""
    return tmp_path / ".rewind" / "store"


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    """An open store, empty."""
    with open_store(place) as opened:
        yield opened


@pytest.fixture
def log(place: Path) -> Iterator[Log]:
    """An open log, empty."""
    with Log.open(place) as opened:
        yield opened
