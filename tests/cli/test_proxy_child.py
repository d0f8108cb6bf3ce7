"""A proxy that does not get as far as listening: what is said of it, and what is left."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewind_proxy.cli import proxy_child
from rewind_proxy.cli.proxy_child import ProxyChild, ProxyError

TELL = """
import os, sys
print("a line of the log", flush=True)
with open("part", "w") as file:
    file.write('{"error": "no"}')
os.replace("part", sys.argv[2])
"""


TRACED = TELL.replace("with open", 'print("Traceback (most recent call last):", flush=True)\nwith open')


def ended(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> tuple[str, Path]:
    """What is said of a child that runs some code in the proxy's place, and where its log was."""

    def command(_tool: str, _confdir: Path, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", code, *arguments]

    monkeypatch.setattr(proxy_child, "command", command)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(folder)
    with ProxyChild("proxy", Path(), [], None) as child:
        with pytest.raises(ProxyError) as raised:
            child.wait_until_ready()
        return str(raised.value), child.log


def test_a_reason_that_it_gives_is_all_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log says no more, and goes."""
    said, log = ended(tmp_path, monkeypatch, TELL)
    assert (said, log.parent.exists()) == ("no", False)


def test_a_fault_of_ours_keeps_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback is there for whoever mends it."""
    said, log = ended(tmp_path, monkeypatch, TRACED)
    assert (said, log.is_file()) == (f"no (the proxy's log is {log})", True)


def test_a_proxy_that_dies_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How it died, the last line of its log, and where the rest is."""
    said, log = ended(tmp_path, monkeypatch, "import os; print('begun', flush=True); os.kill(os.getpid(), 9)")
    killed = f"killed by signal 9 ({signal.strsignal(9)})"
    wanted = f"the proxy ended while it started, {killed}; its last words: begun"
    assert (said, log.is_file()) == (f"{wanted} (its log is {log})", True)
