"""How `rewind demo` runs its client: the real `rewind run`, in a clean environment, watched."""

from __future__ import annotations

import codecs
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.proxy_child import child_variables
from rewind_proxy.errors import RewindError

AGENT = Path(__file__).with_name("demo_agent.py")
_ENTRY_POINT = "from rewind_proxy.cli.app import main; main()"
_PROXY_VARIABLES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))


class DemoError(RewindError):
    """`rewind run` left no report, so there is nothing to show; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Session:
    """One `rewind run` that has ended. `secrets` are the credentials that it was given."""

    status: int
    output: str
    """What the client printed."""
    report: JsonObject
    calls: list[dict[str, Any]]
    """As the client noted them: `name`, `tier`, `note`, `seconds`."""
    tls: list[str]
    """Version, and issuer of the certificate that the client accepted."""
    secrets: tuple[str, str]

    @property
    def seconds(self) -> float:
        """What the client waited for its model."""
        return sum(float(call["seconds"]) for call in self.calls)

    @property
    def tiers(self) -> list[str]:
        """The tier of each call."""
        return [call["tier"] for call in self.calls]

    def count(self, name: str) -> int:
        """A count of the report."""
        value = self.report[name]
        return value if isinstance(value, int) else 0


def run_agent(
    folder: Path, work: Path, flags: Sequence[str], questions: Sequence[str], on_output: Callable[[str], None]
) -> Session:
    """Run `rewind run FLAGS -- agent QUESTIONS` in `work`; its notes and report are left in `folder`.

    `on_output` gets what the client prints, as it comes. Raises `DemoError` when the run left no report.
    """
    notes, report = folder / "notes.json", folder / "report.json"
    for file in (notes, report):
        file.unlink(missing_ok=True)
    # New ones each time: the replay shows that a rotated credential still matches.
    key, token = f"sk-proj-{secrets.token_hex(24)}", f"ghp_{secrets.token_hex(18)}"
    rewind = [sys.executable, "-c", _ENTRY_POINT, "run", *flags, "--report", str(report), "--"]
    with (folder / "errors.txt").open("w+b") as errors:
        process = subprocess.Popen(  # noqa: S603  # our own command and client
            [*rewind, sys.executable, str(AGENT), str(notes), *questions],
            env=_variables() | {"OPENAI_API_KEY": key, "DEPLOY_TOKEN": token},
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        with process:
            assert process.stdout
            output = _follow(process.stdout.fileno(), on_output)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if not (notes.exists() and report.exists()):
        raise DemoError(f"`rewind run` ended with {process.returncode}: {said}")
    noted = json.loads(notes.read_text(encoding="utf-8"))
    counted = json.loads(report.read_text(encoding="utf-8"))
    return Session(process.returncode, output, counted, noted["calls"], noted["tls"], (key, token))


def _follow(output: int, on_output: Callable[[str], None]) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    shown = ""
    while part := os.read(output, 1 << 16):
        text = decoder.decode(part)
        shown += text
        on_output(text)
    return shown


def _variables() -> dict[str, str]:
    """The environment without what would change the demo: settings, CI, a corporate proxy."""
    return {
        name: value
        for name, value in child_variables(None).items()
        if not name.startswith("REWIND_") and name != "CI" and name.lower() not in _PROXY_VARIABLES
    } | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
