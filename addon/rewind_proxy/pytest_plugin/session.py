"""A test's session, and the proxy that it goes through: started, asked for reports, ended."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn, cast
from urllib.parse import quote

import pytest

from rewind_proxy.handover import PLUGIN_PROXY, PROXY_URL, REPORT_QUESTION

_END_LIMIT = 60.0
_LOG_LINES = 20
_MISSING = re.compile(r"No module named '?([\w.]+)")

Report = dict[str, Any]
"""JSON: counts, `misses` and `failures` of `journal.report_of`."""


class RewindWarning(UserWarning):
    """Something about a test's model calls that is no failure, but should be known."""


class Rewind:
    """What the fixture `rewind` gives: one test's session."""

    def __init__(self, session: str, proxy: Proxy, *, allow_empty: bool) -> None:
        self.session = session
        """The name of the session, made of the test's id."""
        self.url = f"http://{quote(session, safe='')}:x@127.0.0.1:{proxy.port}"
        """The URL of the proxy; its user name is the session."""
        self.changes = {
            name: self.url if value == PROXY_URL else value for name, value in proxy.environment.items()
        }
        self._proxy = proxy
        self._allow_empty = allow_empty
        self._total: Report = {}
        self._told = 0

    @property
    def mode(self) -> str:
        """The mode of its proxy."""
        return self._proxy.mode

    @property
    def total(self) -> Report:
        """What `report` said last, without asking again."""
        return self._total

    @property
    def env(self) -> dict[str, str]:
        """The environment for a subprocess: that of the test, which has all of it already."""
        changed = {**os.environ, **self.changes}
        return {name: value for name, value in changed.items() if value is not None}

    def report(self) -> Report:
        """What the test has called so far: `steps`, `exact`, `normalised`, `recorded`, `refused`, `misses` …

        Waits until calls that are over for the client are recorded and counted, too.
        """
        added = self._proxy.report()
        self._total = {name: _sum(self._total.get(name), value) for name, value in added.items()}
        return dict(self._total)

    def new_misses(self) -> str:
        """The refused calls that were not told of yet, as text; empty when there are none."""
        misses = self.report()["misses"][self._told :]
        self._told += len(misses)
        return wrong_in({"misses": misses})

    def finish(self) -> str:
        """What is wrong at the very end: late refused calls, and lost recordings, as text."""
        parts = [self.new_misses(), wrong_in({"failures": self._total["failures"]})]
        if self._proxy.mode == "replay" and not self._total["steps"] and not self._allow_empty:
            warnings.warn(
                RewindWarning(
                    "no model call of this test arrived: was its client made before the test, or does it not "
                    "use HTTPS_PROXY? (allow_empty=True on the marker says that it is meant to be so)"
                ),
                stacklevel=2,
            )
        return "\n".join(filter(None, parts))


def _sum(before: Any, added: Any) -> Any:
    return added if before is None or isinstance(added, str) else before + added


def wrong_in(report: Report) -> str:
    """The refused calls and lost recordings of a report, as a person reads them; empty without any."""
    lost = (
        f"rewind: a call could not be recorded ({failure['step']}): {failure['reason']}"
        for failure in report.get("failures", ())
    )
    return "\n".join((*(miss["text"] for miss in report.get("misses", ())), *lost))


class Proxy:
    """The proxy of some settings, and what it tells."""

    def __init__(self, python: str, settings: Mapping[str, Any], folder: Path) -> None:
        """Start it, and wait until it listens. Fails the test when it does not."""
        self._python = python
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the proxy runs
        variables = dict(os.environ)
        if python == sys.executable:  # where the plugin is, the rest is
            home = str(Path(__file__).resolve().parents[2])
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (home, variables.get("PYTHONPATH"))))
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module, no shell
                [python, "-P", "-m", PLUGIN_PROXY, json.dumps(settings)],
                cwd=folder,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            pytest.fail(f"rewind: {python} cannot be started ({error.strerror})", pytrace=False)
        told = self._hear()
        if "error" in told:
            pytest.fail(f"rewind: {told['error']}", pytrace=False)
        self.environment: dict[str, str | None] = told["environment"]
        self.mode: str = told["mode"]
        self.warnings: list[str] = told["warnings"]
        listening = self._hear()
        if "error" in listening:
            pytest.fail(f"rewind: {listening['error']}", pytrace=False)
        if "port" not in listening:  # it ends, and reports that nothing was called
            self._gone()
        self.port: int = listening["port"]

    def report(self) -> Report:
        """What was called since this was asked last."""
        questions = cast("IO[bytes]", self._process.stdin)
        try:
            questions.write(f"{REPORT_QUESTION}\n".encode())
            questions.flush()
        except OSError:
            self._gone()
        return self._hear()

    def end(self) -> Report | None:
        """End it: what was called since it was asked last; None when it does not say."""
        if self._process.poll() is None and sys.platform != "win32":
            self._process.terminate()  # a forked child of a test may hold our end of the pipe
        try:
            rest, _ = self._process.communicate(timeout=_END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            rest = b""
        self._log.close()
        lines = rest.splitlines()
        return cast("Report", json.loads(lines[-1])) if lines else None

    def _hear(self) -> Report:
        line = cast("IO[bytes]", self._process.stdout).readline()
        if not line:
            self._gone()
        return cast("Report", json.loads(line))

    def _gone(self) -> NoReturn:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        if lines and (missing := _MISSING.search(lines[-1])):
            pytest.fail(
                f"rewind: {self._python} has no module {missing[1]}, which the proxy needs: install "
                "rewind-proxy there, or name an interpreter that has it with --rewind-python=PATH",
                pytrace=False,
            )
        log = "\n".join(lines[-_LOG_LINES:])
        pytest.fail(f"rewind: the proxy has ended (status {self._process.returncode}):\n{log}", pytrace=False)
