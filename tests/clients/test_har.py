"""HAR that a plain mitmdump wrote of OpenAI's SDK: imported, it answers the SDK with the provider gone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clients.test_sdks import HERE, KEYS
from clients.test_sdks import interpreter as interpreter  # a fixture
from rewind_proxy.cli.provider import FakeProvider
from support.children import Child, environment, rewind, run
from support.proxies import LISTENING
from support.runs import Place, rewind_run

pytestmark = pytest.mark.once

SCRIPT = HERE / "ask_with_vcrpy.py"


def test_a_har_of_the_sdk_replays(interpreter: Path, tmp_path: Path) -> None:
    """Whole, streamed and through the Responses API: the SDK returns what it returned."""
    har, store = tmp_path / "sdk.har", tmp_path / "store"
    with FakeProvider() as provider:
        argv: list[str | Path] = [Path(sys.executable).with_name("mitmdump")]
        argv += ["--mode", f"reverse:{provider.url}", "--set", "keep_host_header=true"]
        argv += ["--listen-host", "127.0.0.1", "--listen-port", "0"]
        argv += ["--set", f"confdir={tmp_path}", "--set", f"hardump={har}"]
        child = Child(argv, environment(tmp_path), tmp_path)
        try:
            base = f"http://127.0.0.1:{child.wait_for(LISTENING)[1]}/v1"
            told = {"OPENAI_BASE_URL": base, "ASK_HOST": "api.openai.com", **KEYS}
            asked = run([interpreter, SCRIPT], env=environment(tmp_path, **told), cwd=tmp_path)
        finally:
            child.stop()
    assert asked.status == 0, asked.output
    imported = rewind("import", har, "--store", store, "--json", env=environment(tmp_path), cwd=tmp_path).json
    assert isinstance(imported, dict)
    assert (imported["recordings"], imported["left"], imported["unknown_hosts"]) == (3, {}, {})
    place = Place.make(tmp_path / "later")
    replayed = rewind_run(
        [interpreter, SCRIPT], place, mode="replay", store=store, provider=provider, variables=KEYS
    )
    assert replayed.finished.status == 0, replayed.finished.output
    assert replayed.finished.json == asked.json
    assert (replayed.report["exact"], replayed.report["steps"]) == (3, 3)
    assert not any(KEYS["OPENAI_API_KEY"].encode() in f.read_bytes() for f in store.rglob("*") if f.is_file())
