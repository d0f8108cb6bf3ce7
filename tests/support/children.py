"""Child processes of the tests: started, waited for by what they print, and always ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rewind_proxy
from rewind_proxy.canonical.model import JsonValue

PYTHON_PATH = str(Path(rewind_proxy.__file__).parent.parent)
"""Where the package under test is: a checkout or an environment."""
ENTRY_POINT = "from rewind_proxy.cli.app import main; main()"


@dataclass(frozen=True, slots=True)
class Finished:
    """A child that has ended. A negative status is a signal."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def output(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr

    @property
    def json(self) -> JsonValue:
        """What it printed, as JSON. Fails with all that it printed when that is none."""
        try:
            value: JsonValue = json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"status {self.status}, not JSON:\n{self.output}") from None
        return value


def environment(home: Path, **more: str) -> dict[str, str]:
    """The variables of a child that knows nothing of the caller's proxies, CAs, keys and settings.

    Only PATH and the place of the package come from here; `home` keeps user folders out of the real ones.
    """
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": PYTHON_PATH,
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def run(argv: Sequence[str | Path], env: Mapping[str, str], cwd: Path, seconds: float = 60.0) -> Finished:
    """Run a command to its end. Fails, and ends the command and its children, after `seconds`."""
    begun = time.monotonic()
    with subprocess.Popen(
        [str(part) for part in argv],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"{argv} ran for more than {seconds} s:\n{stdout}\n{stderr}") from None
    return Finished(process.returncode, stdout, stderr, time.monotonic() - begun)


def rewind(*argv: str | Path, env: Mapping[str, str], cwd: Path, seconds: float = 60.0) -> Finished:
    """Run the `rewind` command as its entry point does, installed or not."""
    return run([sys.executable, "-c", ENTRY_POINT, *argv], env, cwd, seconds)


class Child:
    """A child that runs while the test talks to it. Its two outputs are read together as they come."""

    def __init__(self, argv: Sequence[str | Path], env: Mapping[str, str], cwd: Path) -> None:
        self._begun = time.monotonic()
        self._output = ""
        self._ended = False
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [str(part) for part in argv],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """What it has printed so far."""
        with self._changed:
            return self._output

    def wait_for(self, pattern: re.Pattern[str], seconds: float = 30.0) -> re.Match[str]:
        """Wait until it has printed something that matches. Fails when it ends, or is silent for too long."""
        with self._changed:
            self._changed.wait_for(lambda: pattern.search(self._output) or self._ended, seconds)
            found = pattern.search(self._output)
            assert found, f"never printed {pattern.pattern!r}:\n{self._output}"
            return found

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 20.0) -> Finished:
        """Send a signal, and wait for the end."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self.wait(seconds)

    def wait(self, seconds: float = 20.0) -> Finished:
        """Wait for the end. Fails, and kills the child and its children, after `seconds`."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise AssertionError(f"did not end within {seconds} s:\n{self.output}") from None
        self._reader.join()
        return Finished(status, self.output, "", time.monotonic() - self._begun)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as stream:
            for line in stream:
                with self._changed:
                    self._output += line
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
