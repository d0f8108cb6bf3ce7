"""`rewind demo`: record, replay with the provider gone, and a miss explained, in about ten seconds.

Each act runs the real `rewind run` around a small client in a process of its own (demo_agent.py), and prints
what was measured: tiers from response headers, counts from reports, times by the client's clock. A claim that
does not hold is marked, and the exit status is 1.
"""

from __future__ import annotations

import codecs
import json
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.cli.demo_screen import Screen
from rewind_proxy.cli.output import (
    Column,
    console,
    duration,
    facts,
    listing,
    number,
    plural,
    safe_line,
    size,
    tier_text,
)
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.proxy_child import child_variables
from rewind_proxy.cli.run_summary import headline, miss_text
from rewind_proxy.report import REFUSED_EXIT
from rewind_proxy.settings import CONFIG_NAME

HOST = "api.openai.com"
AGENT = Path(__file__).with_name("demo_agent.py")
TODO = "- water the plants\n- answer Ada\n- ship version 0.1\n"
QUESTION = "Please run `cat TODO.md` and tell me what is left to do."
OTHER_QUESTION = "Please run `cat TODO.md` and tell me what is done."
OTHER_EFFORT = f"--effort=high {QUESTION}"

_ENTRY_POINT = "from rewind_proxy.cli.app import main; main()"
_PROXY_VARIABLES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))
# As a real provider, the fake one thinks first and then talks slowly.
_THINKING = 0.4
_TALKING = 0.08


def register(app: typer.Typer) -> None:
    """Add `demo`."""
    app.command("demo", rich_help_panel="Record and replay")(demo_command)


def demo_command() -> None:
    """See it work in ten seconds, without a key or a network: record, replay, a miss explained."""
    screen = Screen(console(), is_terminal=sys.stdout.isatty())
    with tempfile.TemporaryDirectory(prefix="rewind-demo-") as folder:
        Demo(screen, Path(folder).resolve()).play()
    what_next(screen)
    if screen.failures:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Session:
    """One `rewind run` that has ended. `secrets` are the credentials that it was given."""

    status: int
    output: str
    """What the client printed."""
    errors: str
    report: JsonObject
    calls: list[dict[str, Any]]
    """As the client noted them: `name`, `tier`, `note`, `seconds`."""
    tls: list[str]
    """Version, and issuer of the certificate that the client accepted."""
    secrets: tuple[str, str]

    @property
    def seconds(self) -> float:
        """What the client waited for its model."""
        return sum(call["seconds"] for call in self.calls)

    @property
    def tiers(self) -> list[str]:
        """The tier of each call."""
        return [call["tier"] for call in self.calls]


class Demo:
    """The acts, in a folder of their own."""

    def __init__(self, screen: Screen, folder: Path) -> None:
        self.screen = screen
        self.folder = folder
        self.provider = FakeProvider(_at_a_human_pace)

    def play(self) -> None:
        """All acts, the provider stopped after the first."""
        self.screen.text(
            "Rewind stands between an LLM client and its provider. Watch it record a small agent, replay it "
            "with the provider gone, and explain a miss. No key, no network; all in a temporary folder."
        )
        with self.provider:
            # A file of its own also keeps settings from above the folder out of the demo.
            upstream = f'store = "recordings"\n\n[upstream]\n"{HOST}" = "{self.provider.url}"\n'
            (self.folder / CONFIG_NAME).write_text(upstream, encoding="utf-8")
            recorded = self.record()
        self.replay(recorded)
        self.miss()
        self.keep_secrets(recorded)

    def record(self) -> Session:
        """Act one."""
        screen = self.screen
        screen.heading("1  Record")
        screen.text(
            f"A fake provider listens on port {self.provider.port} in place of {HOST}. The agent is 200 lines "
            "of Python that know nothing of Rewind: it speaks TLS to its proxy, and streams."
        )
        session = self.run("laptop", [], [QUESTION])
        version, issuer = session.tls or ("", "")
        calls = len(self.provider.requests)
        screen.check(bool(version), f"{safe_line(version)}, by a certificate of {safe_line(issuer)}")
        screen.check(
            session.status == 0 and session.tiers == ["recorded"] * calls and calls > 0,
            f"{plural(calls, 'call')} reached the provider over {plural(self.provider.connections, 'connection')}"
            f", and {session.report['recorded']} were recorded",
        )
        return session

    def replay(self, recorded: Session) -> None:
        """Act two."""
        screen = self.screen
        screen.heading("2  Replay, with the provider gone")
        before = self.provider.connections
        screen.text(
            "The provider is stopped. The same agent runs again in another folder, at another time, as another "
            "session and with other credentials. All of that is in its prompts."
        )
        session = self.run("ci", ["--mode", "replay"], [QUESTION])
        screen.gap()
        screen.show(_side_by_side(recorded, session), indent=2)
        notes = sorted({call["note"] for call in session.calls if call["note"]})
        for note in notes:
            screen.show(Text(f"ignored: {safe_line(note)}", style="dim"), indent=2)
        screen.gap()
        dialled = self.provider.connections - before
        screen.check(
            not _listens(self.provider.port) and dialled == 0,
            f"port {self.provider.port} is closed: {plural(dialled, 'connection')} since the recording",
        )
        hits = [tier for tier in session.tiers if tier in ("exact", "normalised")]
        screen.check(
            session.status == 0 and len(hits) == len(recorded.calls) == len(session.calls),
            f"{len(hits)} of {len(recorded.calls)} calls came from the store",
        )
        screen.check(session.output == recorded.output, "the agent printed the same, to the byte")
        screen.check(
            session.seconds < recorded.seconds,
            f"the model's time: {_time(recorded.seconds)} recorded, {_time(session.seconds)} replayed, "
            f"{_time(recorded.seconds - session.seconds)} and {number(_count(session, 'tokens_saved'))} tokens saved",
        )

    def miss(self) -> None:
        """Act three."""
        screen = self.screen
        screen.heading("3  A miss, explained")
        screen.text(
            "Now one question has two other words, and one is asked with another setting. In replay nothing "
            "goes out: the call is refused, the agent's own screen says why, and so does the report."
        )
        session = self.run("ci", ["--mode", "replay"], [OTHER_QUESTION, OTHER_EFFORT])
        misses = session.report["misses"]
        assert isinstance(misses, list)
        for found in misses:
            assert isinstance(found, dict)
            screen.show(miss_text(found))
        screen.gap()
        explained = [found for found in misses if isinstance(found, dict) and found["difference"]]
        screen.check(
            session.report["refused"] == len(explained) == 2,
            f"{plural(len(explained), 'miss', 'misses')} explained: the nearest recording, the path, both values",
        )
        screen.check(session.status == REFUSED_EXIT, f"`rewind run` ended with {session.status}: CI would stop here")

    def keep_secrets(self, recorded: Session) -> None:
        """Act four."""
        screen = self.screen
        screen.heading("4  What is not in the store")
        found = scan(self.folder, [*recorded.secrets, "[REDACTED]"])
        screen.text(
            "The agent sent an API key in a header, and a deploy token in its prompt "
            f"({safe_line(recorded.secrets[1][:8])}…)."
        )
        screen.check(
            found.found == {"[REDACTED]"},
            f"neither is in any of the {plural(found.files, 'file')} ({size(found.bytes)}, "
            f"{found.frames} zstd frames decompressed): the prompt has [REDACTED] there",
        )

    def run(self, place: str, flags: Sequence[str], questions: Sequence[str]) -> Session:
        """`rewind run` around the agent in the folder `place`; its output is shown as it comes."""
        work = self.folder / place
        work.mkdir(exist_ok=True)
        (work / "TODO.md").write_text(TODO, encoding="utf-8")
        notes, report = self.folder / "notes.json", self.folder / "report.json"
        key = f"sk-proj-{secrets.token_hex(24)}"
        token = f"ghp_{secrets.token_hex(18)}"
        self.screen.command(shlex.join(["rewind", "run", *flags, "--", "./agent", *questions]))
        process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-c", _ENTRY_POINT, "run", *flags, "--report", report, "--"]
            + [sys.executable, AGENT, notes, *questions],
            env=_variables() | {"OPENAI_API_KEY": key, "DEPLOY_TOKEN": token},
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with process:
            assert process.stdout
            assert process.stderr
            output = self._show(process.stdout.fileno())
            errors = process.stderr.read().decode(errors="replace")
        if not (notes.exists() and report.exists()):
            raise DemoError(f"`rewind run` ended with {process.returncode}: {errors.strip()}")
        noted = json.loads(notes.read_text(encoding="utf-8"))
        session = Session(
            process.returncode,
            output,
            errors,
            json.loads(report.read_text(encoding="utf-8")),
            noted["calls"],
            noted["tls"],
            (key, token),
        )
        self.screen.show(headline(session.report), indent=2)
        return session

    def _show(self, output: int) -> str:
        gutter = self.screen.gutter()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        shown = ""
        while part := os.read(output, 1 << 16):
            text = decoder.decode(part)
            shown += text
            gutter.write(text)
        gutter.end()
        return shown
