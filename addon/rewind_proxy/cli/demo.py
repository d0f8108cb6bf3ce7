"""`rewind demo`: record, replay with the provider gone, and a miss explained, in about ten seconds.

Each act runs the real `rewind run` around a small client in a process of its own (demo_agent.py), and prints
what was measured: tiers from response headers, counts from reports, times by the client's clock. A claim that
does not hold is marked, and the exit status is 1.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from rewind_proxy.canonical.redaction.rules import MARK
from rewind_proxy.cli.demo_run import Session, run_agent
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.cli.demo_screen import Screen
from rewind_proxy.cli.output import (
    console,
    duration,
    number,
    plural,
    safe_line,
    size,
    table,
    tier_text,
)
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.run_summary import headline, miss_text
from rewind_proxy.report import REFUSED_EXIT
from rewind_proxy.settings import CONFIG_NAME

HOST = "api.openai.com"
LEFT_TO_DO = "water the plants, answer Ada, ship version 0.1\n"
QUESTION = "run `cat todo.txt`: what is left?"
OTHER_QUESTION = "run `cat todo.txt`: what is done?"
OTHER_EFFORT = f"--effort=high {QUESTION}"

# As a real provider, the fake one thinks first and then talks slowly.
_THINKING = 0.3
_TALKING = 0.06


def register(app: typer.Typer) -> None:
    """Add `demo`."""
    app.command("demo", rich_help_panel="Record and replay")(demo_command)


def demo_command() -> None:
    """See it work in ten seconds, without a key or a network: record, replay, a miss explained."""
    begun = time.monotonic()
    screen = Screen(console(), is_terminal=sys.stdout.isatty())
    with tempfile.TemporaryDirectory(prefix="rewind-demo-") as folder:
        Demo(screen, Path(folder).resolve()).play()
    what_next(screen)
    screen.gap()
    screen.show(Text(f"That took {duration((time.monotonic() - begun) * 1000)}.", style="dim"))
    if screen.failures:
        raise typer.Exit(1)


class Demo:
    """The acts, in a folder of their own."""

    def __init__(self, screen: Screen, folder: Path) -> None:
        self.screen = screen
        self.folder = folder

    def play(self) -> None:
        """All acts, the provider stopped after the first."""
        self.screen.text(
            "Rewind stands between an LLM client and its provider. Watch it record a small agent, replay it "
            "with the provider gone, and explain a miss. No key, no network; all in a temporary folder."
        )
        with FakeProvider(_at_a_human_pace) as provider:
            # A file of its own also keeps settings from above the folder out of the demo.
            upstream = f'store = "recordings"\n\n[upstream]\n"{HOST}" = "{provider.url}"\n'
            (self.folder / CONFIG_NAME).write_text(upstream, encoding="utf-8")
            recorded = self.record(provider)
        self.replay(recorded, provider)
        self.miss()
        self.keep_secrets(recorded)

    def record(self, provider: FakeProvider) -> Session:
        """Act one."""
        screen = self.screen
        screen.heading("1  Record")
        screen.text(
            f"A fake provider listens on port {provider.port} in place of {HOST}.",
            "The agent is a small Python program that knows nothing of Rewind; it talks TLS, and streams.",
        )
        session = self.run("laptop", [], [QUESTION])
        version, issuer = session.tls or ("", "")
        calls = len(provider.requests)
        screen.check(bool(version), f"{safe_line(version)}, by a certificate of {safe_line(issuer)}")
        screen.check(
            session.status == 0 and session.tiers == ["recorded"] * calls and calls > 0,
            f"the provider saw {plural(calls, 'call')} over "
            f"{plural(provider.connections, 'connection')}; {session.count('recorded')} were recorded",
        )
        return session

    def replay(self, recorded: Session, provider: FakeProvider) -> None:
        """Act two."""
        screen = self.screen
        screen.heading("2  Replay, with the provider gone")
        before = provider.connections
        screen.text(
            "The provider is stopped. The same agent runs again: in another folder, at another time, as "
            "another session, with other credentials. All of that is in its prompts."
        )
        session = self.run("ci", ["--mode", "replay"], [QUESTION])
        screen.grid(_side_by_side(recorded, session))
        notes = sorted({call["note"] for call in session.calls if call["note"]})
        for note in notes:
            screen.show(Text(f"left aside to match: {safe_line(note)}", style="dim"), indent=2)
        screen.gap()
        dialled = provider.connections - before
        screen.check(
            not _listens(provider.port) and dialled == 0,
            f"port {provider.port} is closed: {plural(dialled, 'connection')} since the recording",
        )
        hits = [tier for tier in session.tiers if tier in ("exact", "normalised")]
        screen.check(
            session.status == 0 and len(hits) == len(recorded.calls) == len(session.calls),
            f"{len(hits)} of {len(recorded.calls)} calls came from the store",
        )
        screen.check(session.output == recorded.output, "the agent printed the same, to the byte")
        screen.check(
            session.seconds < recorded.seconds,
            f"waited for the model: {_seconds(recorded.seconds)} then, {_seconds(session.seconds)} now; "
            f"{number(session.count('tokens_saved'))} tokens saved",
        )

    def miss(self) -> None:
        """Act three."""
        screen = self.screen
        screen.heading("3  A miss, explained")
        screen.text(
            "Now one question has another word, and one is asked with another parameter. Nothing goes out in "
            "replay: such a call is refused, and the report says which recording came near, and why not."
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
            f"{len(explained)} misses explained: the nearest recording, the path, both values",
        )
        screen.check(
            session.status == REFUSED_EXIT, f"`rewind run` ended with {session.status}: CI would stop here"
        )

    def keep_secrets(self, recorded: Session) -> None:
        """Act four."""
        screen = self.screen
        screen.heading("4  What is not in the store")
        key, token = recorded.secrets
        screen.text(
            f"While recording, the agent sent an API key in a header ({safe_line(key[:12])}…), and told its",
            f"model a deploy token ({safe_line(token[:8])}…).",
        )
        screen.gap()
        found = scan(self.folder, [key, token, MARK])
        screen.check(
            found.found == {MARK},
            f"neither is in the {plural(found.files, 'file')} of this demo ({size(found.bytes)}, and "
            f"{plural(found.frames, 'zstd frame')} decompressed); {MARK} is",
        )

    def run(self, place: str, flags: Sequence[str], questions: Sequence[str]) -> Session:
        """`rewind run` around the agent in the folder `place`; its output is shown as it comes."""
        work = self.folder / place
        work.mkdir(exist_ok=True)
        (work / "todo.txt").write_text(LEFT_TO_DO, encoding="utf-8")
        self.screen.command(["rewind", "run", *flags, "--", "./agent", *questions])
        gutter = self.screen.gutter()
        try:
            session = run_agent(self.folder, work, flags, questions, gutter.write)
        finally:
            gutter.end()
        self.screen.gap()
        self.screen.show(headline(session.report), indent=2)
        self.screen.gap()
        return session


def what_next(screen: Screen) -> None:
    """The commands for a session of one's own."""
    # From a checkout nothing is on PATH: scripts/rewind is the command.
    rewind = "rewind" if shutil.which("rewind") else "scripts/rewind"
    screen.heading("What next")
    rows = (
        ('run -- codex exec "…"', "record, then replay"),
        ('run --mode replay -- codex exec "…"', "nothing live: for CI"),
        ("ls", "what was recorded"),
        ("doctor", "agents found here"),
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    for words, meaning in rows:
        grid.add_row(Text(f"{rewind} {words}", style="bold"), Text(meaning, style="dim"))
    screen.grid(grid)


def _side_by_side(recorded: Session, replayed: Session) -> Table:
    """Each call of two runs of the same client."""
    grid = table(("call", "left"), ("recorded", "right"), ("replayed", "right"), ("tier", "left"))
    for first, second in zip(recorded.calls, replayed.calls, strict=False):
        grid.add_row(
            safe_line(first["name"]),
            duration(first["seconds"] * 1000),
            duration(second["seconds"] * 1000),
            tier_text(second["tier"]),
        )
    return grid


def _at_a_human_pace(exchange: Exchange) -> None:
    time.sleep(_THINKING)
    exchange.send(_TALKING)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _seconds(value: float) -> str:
    return duration(value * 1000)
