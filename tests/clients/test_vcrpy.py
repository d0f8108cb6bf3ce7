"""Cassettes that vcrpy wrote for OpenAI's SDK: imported, then answering the SDK without vcrpy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.test_sdks import HERE, KEYS
from clients.test_sdks import interpreter as interpreter  # a fixture
from rewind_proxy.cli.provider import FakeProvider
from support.children import environment, rewind
from support.runs import Place, rewind_run

pytestmark = pytest.mark.once

SCRIPT = HERE / "ask_with_vcrpy.py"


@pytest.mark.parametrize("name", ["cassette.yaml", "cassette.json"])
def test_a_cassette_of_vcrpy_replays(name: str, interpreter: Path, tmp_path: Path) -> None:
    """Whole, streamed and through the Responses API: the SDK returns what it returned, the provider gone.

    The key that vcrpy wrote into the cassette is in no file of the store.
    """
    cassette, store = tmp_path / name, tmp_path / "store"
    first, second = Place.make(tmp_path / "first"), Place.make(tmp_path / "second")
    with FakeProvider() as provider:
        recorded = rewind_run(
            [interpreter, SCRIPT, cassette],
            first,
            mode="passthrough",
            store=tmp_path / "unused",
            provider=provider,
            variables=KEYS,
        )
    assert recorded.finished.status == 0, recorded.finished.output
    imported = rewind("import", cassette, "--store", store, "--json", env=environment(tmp_path), cwd=tmp_path)
    told = imported.json
    assert isinstance(told, dict)
    assert (told["recordings"], told["left"], told["unknown_hosts"]) == (3, {}, {})
    replayed = rewind_run(
        [interpreter, SCRIPT], second, mode="replay", store=store, provider=provider, variables=KEYS
    )
    assert replayed.finished.status == 0, replayed.finished.output
    assert replayed.finished.json == recorded.finished.json
    assert (replayed.report["exact"], replayed.report["steps"]) == (3, 3)
    assert KEYS["OPENAI_API_KEY"].encode() in cassette.read_bytes()
    assert not any(
        KEYS["OPENAI_API_KEY"].encode() in file.read_bytes() for file in store.rglob("*") if file.is_file()
    )
    assert json.loads(recorded.finished.stdout)["stream"]
