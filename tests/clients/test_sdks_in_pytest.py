"""The pytest plugin where users have it: beside current SDKs, with Rewind in an environment of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import FakeProvider
from support.children import PYTHON_PATH, Finished, environment, run
from support.sockets import SocketLog

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
CLIENT_ENV = HERE.parent.parent / "scripts" / "client-env"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key-at-all")
LENT = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""pytest and what it needs: pure Python, and not in the environment of the SDKs."""


@pytest.fixture
def interpreter() -> Path:
    """The Python that has the SDKs."""
    env = {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run([CLIENT_ENV], env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return Path(made.stdout.strip())


@pytest.fixture
def lent(tmp_path: Path) -> Path:
    """A folder with our pytest, for the path of another interpreter."""
    folder = tmp_path / "lent"
    folder.mkdir()
    for name in LENT:
        spec = importlib.util.find_spec(name)
        assert spec
        assert spec.origin
        origin = Path(spec.origin)
        held = origin.parent if spec.submodule_search_locations else origin
        (folder / held.name).symlink_to(held)
    return folder


def test_tests_of_sdks_record_and_replay(interpreter: Path, lent: Path, tmp_path: Path) -> None:
    """Every SDK and `requests` replay with the provider gone; a refused call that the SDK raised is shown."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(HERE / "asking_with_sdks.py", work / "test_sdks.py")
    sockets = SocketLog(tmp_path / "sockets.jsonl")
    env = environment(tmp_path / "home", REWIND_UNKNOWN="refuse", **KEYS)
    env |= sockets.environment(os.pathsep.join((str(lent), PYTHON_PATH)))

    def tested(mode: str) -> Finished:
        options = ("--rewind-mode", mode, "--rewind-python", sys.executable)
        words = (
            interpreter,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "rewind_proxy.pytest_plugin",
        )
        return run([*words, *options], env, work, 180.0)

    with FakeProvider() as provider:
        env["REWIND_UPSTREAM"] = provider.upstream
        recorded = tested("record")
    assert "8 passed" in recorded.stdout, recorded.output
    asked = len(provider.requests)
    sockets.clear()
    replayed = tested("replay")
    assert "1 failed, 7 passed" in replayed.stdout, replayed.output
    assert "+ live      swallowed then" in replayed.stdout
    assert asked == 9
    assert sockets.outward(provider.port) == []
