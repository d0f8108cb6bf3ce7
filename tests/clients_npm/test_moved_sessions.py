"""Real Codex and real Claude Code: recorded on one machine, replayed as on another, in another folder.

Between the two differ: project folder, HOME, user, login shell, terminal, time zone and date. Debian's
`faketime` moves the date of Claude Code; it does not reach Codex's static binary, for which two time zones do
it that never have the same date. The project (its files, its git history) is the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.provider.turn import Call, decide
from support.agents import CLAUDE, CODEX, Agent, npm_commands
from support.children import environment
from support.runs import Place, Run, rewind_run

SLOW = "sleep 6; echo done-in-the-background"
FAILING = "ls /nowhere-at-all"
SAID_BY_FAILING = "ls: cannot access '/nowhere-at-all'"
WRITTEN = "the-file-was-read"
LATER = "+40d"


@dataclass(frozen=True, slots=True)
class Machine:
    """What an agent tells of where it runs, besides its folders."""

    variables: Mapping[str, str]
    git_user: str
    later: bool = False
    """Whether its date is another one."""


LAPTOP = Machine(
    {"USER": "alice", "LOGNAME": "alice", "SHELL": "/bin/bash", "TERM": "xterm", "TZ": "Pacific/Kiritimati"},
    git_user="Alice",
)
CI_MACHINE = Machine(
    {"USER": "ci", "LOGNAME": "ci", "SHELL": "/bin/sh", "TERM": "dumb", "TZ": "Etc/GMT+12"},
    git_user="ci",
    later=True,
)


def make_project(place: Place, machine: Machine) -> None:
    """A small project under git, with the same files and the same commit everywhere."""
    (place.work / "notes.txt").write_text(f"{WRITTEN}\n")
    for name in ("AGENTS.md", "CLAUDE.md"):
        (place.work / name).write_text("Be brief.\n")
    when = "2026-01-01T00:00:00Z"
    author = {f"GIT_{who}_{what}": "author" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    fixed = author | {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    for arguments in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("config", "user.name", machine.git_user),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "First"),
    ):
        subprocess.run(["git", *arguments], cwd=place.work, env=environment(place.home, **fixed), check=True)


@cache
def preload() -> tuple[str, ...]:
    """The front of a command line that moves the date of a program, and of no other.

    `faketime` itself shares memory among all descendants, which breaks when several start at once.
    """
    asked = subprocess.run(
        ["faketime", "-f", LATER, "printenv", "LD_PRELOAD"], check=True, capture_output=True, text=True
    )
    own_clock = ("FAKETIME_DISABLE_SHM=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
    return ("env", f"LD_PRELOAD={asked.stdout.strip()}", f"FAKETIME={LATER}", *own_clock)


def work(
    agent: Agent, place: Place, machine: Machine, prompt: str, mode: str, store: Path, provider: FakeProvider
) -> Run:
    """Run the agent on a prompt, in which `{work}` stands for the project's folder."""
    call = agent.invoke(npm_commands(), place, prompt.replace("{work}", str(place.work)))
    front = preload() if machine.later and agent is CLAUDE else ()
    return rewind_run(
        [*front, *call.argv],
        place,
        mode=mode,
        store=store,
        provider=provider,
        variables={**call.variables, **machine.variables},
    )


def in_background(exchange: Exchange) -> None:
    """The model asks for the slow command to run in the background, as each agent's tool has it."""
    planned = exchange.answer
    if planned.dialect and planned.streamed:
        body = json.loads(exchange.request.decoded)
        turn = decide(planned.dialect, body, str(body.get("model")))
        if turn.call and SLOW in turn.call.text:
            turn = replace(turn, call=_background_call(turn.call))
            events = planned.dialect.events(turn, body)
            exchange.answer = replace(planned, chunks=tuple(map(planned.dialect.sse, events)))
    exchange.send()


def _background_call(call: Call) -> Call:
    if isinstance(call.arguments, str):  # Codex: JavaScript that calls its tool
        options = json.dumps({"cmd": SLOW, "yield_time_ms": 250})
        code = f"const result = await tools.exec_command({options});\ntext(JSON.stringify(result));"
        return replace(call, arguments=code)
    return replace(call, arguments={**call.arguments, "run_in_background": True})


@dataclass(frozen=True, slots=True)
class Session:
    """A session recorded on the laptop, and replayed as on the CI machine: provider and laptop are gone."""

    recorded: Run
    replayed: Run


def moved(agent: Agent, folder: Path, prompt: str) -> Session:
    """Record and replay a session of the agent."""
    first, second = Place.make(folder / "alice" / "src" / "app"), Place.make(folder / "ci" / "builds" / "7")
    make_project(first, LAPTOP)
    make_project(second, CI_MACHINE)
    store = folder / "store"
    with FakeProvider(in_background) as provider:
        recorded = work(agent, first, LAPTOP, prompt, "record", store, provider)
    assert provider.failures == ()
    assert recorded.finished.status == 0, recorded.finished.output
    shutil.rmtree(folder / "alice")
    replayed = work(agent, second, CI_MACHINE, prompt, "replay", store, provider)
    return Session(recorded, replayed)


@pytest.fixture(scope="module", params=[CODEX, CLAUDE], ids=lambda agent: agent.name)
def agent(request: pytest.FixtureRequest) -> Agent:
    chosen = request.param
    assert isinstance(chosen, Agent)
    return chosen


@pytest.fixture(scope="module")
def session(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp(agent.name)
    shared = folder / "shared.txt"
    shared.write_text(f"{WRITTEN}\n")
    return moved(agent, folder, f"Please run `cat {shared}`, run `{SLOW}` and run `{FAILING}`.")


def test_every_step_of_a_moved_session_hits(session: Session) -> None:
    """A file read by its full path, a background task, a command that fails: no step is refused."""
    recorded, replayed = session.recorded.report, session.replayed.report
    assert recorded["recorded"] == recorded["steps"] >= 4
    assert replayed["refused"] == 0, session.replayed.finished.output
    assert replayed["steps"] == recorded["steps"]
    assert replayed["exact"] + replayed["normalised"] == replayed["steps"]


def test_the_move_shows_in_the_requests(session: Session) -> None:
    """Not one request is the recorded one byte for byte: without rules all would miss."""
    assert session.replayed.report["exact"] == 0


def test_a_moved_session_ends_as_recorded(session: Session) -> None:
    """The agent prints the same last words, and ends well."""
    assert session.replayed.finished.status == 0, session.replayed.finished.output
    assert SAID_BY_FAILING in session.replayed.finished.stdout
    assert session.replayed.finished.stdout == session.recorded.finished.stdout


def test_replayed_tool_calls_name_the_new_folder(agent: Agent, tmp_path: Path) -> None:
    """A file of the project read by its full path is read where the project is now."""
    session = moved(agent, tmp_path, "Please run `cat {work}/notes.txt`.")
    assert session.replayed.report["refused"] == 0, session.replayed.finished.output
    assert session.replayed.report["normalised"] == session.replayed.report["steps"] >= 2
    assert WRITTEN in session.replayed.finished.stdout
