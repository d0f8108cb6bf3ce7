"""The official SDKs take a fault on purpose for their provider's own error, and retry as they do then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import FakeProvider
from support.runs import Place, rewind_run

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
CLIENT_ENV = HERE.parent.parent / "scripts" / "client-env"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key-at-all")


@pytest.fixture(scope="module")
def interpreter() -> Path:
    """The Python that has the SDKs."""
    env = {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run([CLIENT_ENV], env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return Path(made.stdout.strip())


@pytest.mark.parametrize(
    ("sdk", "status", "error"),
    [
        ("openai", 429, "RateLimitError"),
        ("openai", 503, "InternalServerError"),
        ("anthropic", 429, "RateLimitError"),
        ("anthropic", 529, "OverloadedError"),
        ("gemini", 429, "ClientError"),
        ("gemini", 503, "ServerError"),
    ],
)
def test_an_sdk_raises_and_retries(
    interpreter: Path, tmp_path: Path, sdk: str, status: int, error: str
) -> None:
    """Without retries it raises its error for the status; with them it gets the recorded answer."""
    argv: list[str | Path] = [interpreter, HERE / "ask_at_fault.py", sdk]
    first, second = Place.make(tmp_path / "first"), Place.make(tmp_path / "second")
    store = tmp_path / "store"
    with FakeProvider() as provider:
        recorded = rewind_run(argv, first, mode="record", store=store, provider=provider, variables=KEYS)
    replayed = rewind_run(
        argv,
        second,
        mode="replay",
        store=store,
        provider=provider,
        variables=KEYS,
        options=("--fault", f"turn=1:{status}; turn=2:{status}"),
    )
    before, after = json.loads(recorded.finished.stdout), json.loads(replayed.finished.stdout)
    assert (before["raised"], before["retried"]) == (None, after["retried"])
    assert (after["raised"]["error"], after["raised"]["status"]) == (error, status)
    assert "made on purpose" in after["raised"]["message"]
    assert replayed.finished.status == 0
    counts = {name: replayed.report[name] for name in ("steps", "exact", "passed", "refused", "recorded")}
    assert counts == {"steps": 3, "exact": 1, "passed": 2, "refused": 0, "recorded": 0}
