"""The proxy as a child process: started, waited for, ended, its report read. It imports no mitmproxy."""

from __future__ import annotations

import json
import os
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


class ProxyError(RewindError):
    """The proxy did not start, or ended without a report; the message says why, or where its log is."""


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


def wait_until_ready(process: subprocess.Popen[bytes], ready: Path) -> Listening | None:
    """Wait until a proxy tells in its file `ready` that it listens; None when it ended without a word.

    Raises `ProxyError`: why it cannot start, after it has ended.
    """
    deadline = time.monotonic() + _START_LIMIT
    ended = False
    while not ready.exists():
        if ended:
            return None
        if time.monotonic() > deadline:
            raise ProxyError(f"the proxy was not ready after {_START_LIMIT:.0f} s")
        time.sleep(_POLL)
        ended = process.poll() is not None  # looked at before its file: that may be the last it wrote
    told = json.loads(ready.read_text(encoding="utf-8"))
    if "error" in told:
        process.wait()
        raise ProxyError(told["error"])
    return Listening(told["port"], told["url"])


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
        try:
            listening = wait_until_ready(self._process, self._ready)
        except ProxyError as error:
            if "\nTraceback " in self.log.read_text(encoding="utf-8", errors="replace"):  # a fault of ours
                raise ProxyError(f"{error} (the proxy's log is {self.log})") from None
            self.forget()
            raise
        if listening is None:
            raise ProxyError(f"the proxy ended while it started{self._log_end()}")
        return listening

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
            raise ProxyError(f"the proxy ended without a report{self._log_end()}")
        return cast("JsonObject", json.loads(self._report.read_text(encoding="utf-8")))

    def steps(self) -> list[JournalStep]:
        """Every model step of a proxy that has ended, in the order in which they ended."""
        return [JournalStep.from_json(each) for each in json.loads(self._steps.read_text(encoding="utf-8"))]

    def _log_end(self) -> str:
        """The last thing the proxy wrote, and where the rest is."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "nothing")
        status = self._process.returncode
        by = f", killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else ""
        return f"{by}; its last words: {last.strip()} (its log is {self.log})"

    def forget(self) -> None:
        """Remove the log and the rest: nobody needs them any more."""
        for file in self._folder.iterdir():
            file.unlink()
        self._folder.rmdir()
