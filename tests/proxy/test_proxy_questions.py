"""A proxy that is led by lines: what the pytest plugin says to it, and hears."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rewind_proxy.handover import QUESTIONS_FLAG
from support.children import environment


def test_each_line_is_a_question_and_gets_one_line(tmp_path: Path, confdir: Path) -> None:
    """Its port first, then an answer for each question, and a last report; what others print is elsewhere."""
    argv = [sys.executable, "-m", "rewind_proxy.mitm", "proxy", QUESTIONS_FLAG]
    argv += ["--listen-host", "127.0.0.1", "--listen-port", "0", "--set", f"confdir={confdir}"]
    argv += ["--set", f"rewind_store={tmp_path / 'store'}"]
    process = subprocess.Popen(
        argv,
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    port = json.loads(process.stdout.readline())
    out, err = process.communicate("report\nhow are you\n", timeout=60)
    report, puzzled, last = map(json.loads, out.splitlines())
    assert process.returncode == 0, err
    assert port["port"] > 0
    assert (report["steps"], report["misses"], report["failures"]) == (0, [], [])
    assert puzzled == {"error": "'how are you' is no question: ask for report"}
    assert last == report
    assert "listening at" in err
