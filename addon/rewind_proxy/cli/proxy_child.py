"""The proxy as a child process: started, waited for, ended, its report read. It imports no mitmproxy."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.errors import RewindError
from rewind_proxy.handover import READY_FLAG, REPORT_FLAG, STEPS_FLAG, UPSTREAM_AUTH_VARIABLE
from rewind_proxy.journal import JournalStep

_POLL = 0.02
_START_LIMIT = 600.0
"""Seconds until the proxy listens: a large store that is indexed for new settings takes its time."""
_END_LIMIT = 60.0
_LOG_LINES = 20
_OWN_WORDS = re.compile(r"^\[[\d:.]+\] rewind: (.+)$", re.MULTILINE)


class ProxyError(RewindError):
    """The proxy did not start, or ended without a report; the message holds the end of its log."""


def command(tool: str, confdir: Path, arguments: Sequence[str]) -> list[str]:
    """The command line of the child."""
    # Without -P, modules of the working directory come before ours and all others.
    start = [sys.executable, "-P", "-m", "rewind_proxy.mitm", tool, "--set", f"confdir={confdir}"]
    return [*start, "--listen-host", "127.0.0.1", *arguments]


def child_variables(upstream_auth: str | None) -> dict[str, str]:
    """The environment of the child: ours, and where this package is."""
    package_home = str(Path(__file__).resolve().parents[2])
    paths = [package_home, *filter(None, [os.environ.get("PYTHONPATH")])]
    # Its log goes to a file that is read as UTF-8, whatever the terminal's encoding.
    added = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
    if upstream_auth:
        added[UPSTREAM_AUTH_VARIABLE] = upstream_auth
    return os.environ | added


@dataclass(frozen=True, slots=True)
class Listening:
    """A proxy that is up."""

    port: int
    url: str | None


class ProxyChild:
    """A proxy in the background for the length of a `with` block. Its output goes to a file.

    It is in a process group of its own: a Ctrl-C at the terminal is the agent's to handle, the proxy ends
    after it. Nothing is written into the working directory.
    """

    def __init__(
        self,
        tool: str,
        confdir: Path,
        arguments: Sequence[str],
        upstream_auth: str | None,
        *,
        keep_steps: bool = False,
    ) -> None:
        """Start it. `keep_steps`: every model step is wanted at the end (`steps`)."""
        self._folder = Path(tempfile.mkdtemp(prefix="rewind-"))
        self._ready = self._folder / "ready.json"
        self._report = self._folder / "report.json"
        self._steps = self._folder / "steps.json"
        self.log = self._folder / "proxy.log"
        own = [READY_FLAG, str(self._ready), REPORT_FLAG, str(self._report)]
        if keep_steps:
            own += [STEPS_FLAG, str(self._steps)]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603  # our own module, no shell
                command(tool, confdir, [*own, *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=child_variables(upstream_auth),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def wait_until_ready(self) -> Listening:
        """Wait until the proxy listens. Raises `ProxyError` when it ends instead."""
        deadline = time.monotonic() + _START_LIMIT
        while not self._ready.exists():
            if self._process.poll() is not None:
                raise ProxyError(f"the proxy did not start:\n{self._own_words() or self.log_end()}")
            if time.monotonic() > deadline:
                raise ProxyError(f"the proxy was not ready after {_START_LIMIT:.0f} s:\n{self.log_end()}")
            time.sleep(_POLL)
        ready = json.loads(self._ready.read_text(encoding="utf-8"))
        return Listening(ready["port"], ready["url"])

    def end(self) -> JsonObject:
        """End the proxy and read its report. Raises `ProxyError` when it left none."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not self._report.exists():
            raise ProxyError(f"the proxy ended without a report:\n{self.log_end()}")
        return cast("JsonObject", json.loads(self._report.read_text(encoding="utf-8")))

    def steps(self) -> list[JournalStep]:
        """Every model step of a proxy that has ended, in the order in which they ended."""
        return [JournalStep.from_json(each) for each in json.loads(self._steps.read_text(encoding="utf-8"))]

    def log_end(self) -> str:
        """The last lines the proxy wrote."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES:])

    def _own_words(self) -> str:
        """What the addon itself logged, without times and without what mitmproxy says around it."""
        log = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(_OWN_WORDS.findall(log))

    def forget(self) -> None:
        """Remove the log and the rest: nobody needs them any more."""
        for file in self._folder.iterdir():
            file.unlink()
        self._folder.rmdir()
