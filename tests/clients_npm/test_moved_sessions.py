"""Real agents: recorded on one machine, replayed as on another, in another folder.

Between the two differ: project folder, HOME, user, login shell, terminal, time zone and date. Debian's
`faketime` moves the date of each but Codex; it does not reach Codex's static binary, for which two time zones
do it that never have the same date. The project (its files, its git history) is the same.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import Behaviour, Exchange, FakeProvider, Request
from rewind_proxy.cli.provider.turn import Call, decide
from support.agents import AGENTS, OPENCODE, Agent, npm_commands
from support.children import environment
from support.runs import Place, Run, rewind_run

SLOW = "sleep 6; echo done-in-the-background"
FAILING = "ls /nowhere-at-all"
SAID_BY_FAILING = "ls: cannot access '/nowhere-at-all'"
LONG = "seq -f '%0100.0f' 1 600; sleep 1"
"""More than any agent shows its model. opencode does not wait for what a command says as it ends."""
SAID_BY_LONG = 97 * "0"
"""Of each line, whichever part is shown."""
MODEL_SAID = "The tool answered:"
WRITTEN = "the-file-was-read"
NOTES, OUTPUT = "notes.txt", "long-output.txt"
KEPT = re.compile(r"(?:[Ss]aved to|full output see): ([^\s\"\\]+)")
"""Where an agent keeps what was too long; Codex keeps nothing."""
COMMANDS = (FAILING, LONG, f"tail -n 1 {OUTPUT}", SLOW, f"cat {NOTES}")
PROMPT = f"Please {', '.join(f'run `{command}`' for command in COMMANDS)} and tell me what they said."
NEVER_ASKED = "Please write a poem that nobody has recorded."
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
    (place.work / NOTES).write_text(f"{WRITTEN}\n")
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


def prompt(agent: Agent, place: Place) -> str:
    """What the agent is asked; with the project's folder, unless it asks for a title with the prompt alone.

    Nothing in such a request tells which part of a path is the project's folder.
    """
    return PROMPT if agent.titles else f"{PROMPT} They are meant for {place.work}."


def work(
    agent: Agent, place: Place, machine: Machine, words: str, mode: str, store: Path, provider: FakeProvider
) -> Run:
    """Run the agent on a prompt."""
    call = agent.invoke(npm_commands(), place, words)
    temp = place.home / "temp"
    temp.mkdir()
    front = preload() if machine.later and agent.fakes_time else ()
    return rewind_run(
        [*front, *call.argv],
        place,
        mode=mode,
        store=store,
        provider=provider,
        variables={**call.variables, **machine.variables, "TMPDIR": str(temp)},
    )


def calls_as_models_do(agent: Agent, place: Place) -> Behaviour:
    """The model has the slow command run in the background, and names files by their full paths.

    A long output too, by where the agent has told that it keeps it.
    """

    def behave(exchange: Exchange) -> None:
        planned = exchange.answer
        if planned.dialect and planned.streamed:
            body = json.loads(exchange.request.decoded)
            turn = decide(planned.dialect, body, str(body.get("model")))
            if turn.call:
                kept = KEPT.findall(exchange.request.decoded.decode())
                files = {
                    NOTES: f"{place.work}/{NOTES}",
                    OUTPUT: kept[-1] if kept and agent.tells_folders else OUTPUT,
                }
                turn = replace(turn, call=_changed(agent, files, turn.call))
                events = planned.dialect.events(turn, body)
                exchange.answer = replace(planned, chunks=tuple(map(planned.dialect.sse, events)))
        exchange.send()

    return behave


def _changed(agent: Agent, files: Mapping[str, str], call: Call) -> Call:
    said = json.dumps(call.arguments)
    for name, path in files.items():
        said = said.replace(name, path)
    arguments = json.loads(said)
    if SLOW in said:
        if isinstance(arguments, str):  # Codex: JavaScript that calls its tool
            options = json.dumps({"cmd": SLOW, "yield_time_ms": 250})
            arguments = f"const result = await tools.exec_command({options});\ntext(JSON.stringify(result));"
        else:
            arguments |= agent.in_background
    return replace(call, arguments=arguments)


@dataclass(frozen=True, slots=True)
class Session:
    """A session recorded on the laptop, and replayed as on the CI machine: provider and laptop are gone."""

    first: Path
    """The project's folder on the laptop."""
    second: Path
    recorded: Run
    replayed: Run
    provider: FakeProvider
    asked: tuple[Request, ...]
    """What the provider had seen when it was stopped."""
    store: Path


@pytest.fixture(scope="module", params=AGENTS, ids=lambda agent: agent.name)
def agent(request: pytest.FixtureRequest) -> Agent:
    chosen = request.param
    assert isinstance(chosen, Agent)
    return chosen


@pytest.fixture(scope="module")
def session(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp(agent.name)
    first, second = Place.make(folder / "alice" / "src" / "app"), Place.make(folder / "ci" / "builds" / "7")
    make_project(first, LAPTOP)
    make_project(second, CI_MACHINE)
    store = folder / "store"
    with FakeProvider(calls_as_models_do(agent, first)) as provider:
        recorded = work(agent, first, LAPTOP, prompt(agent, first), "record", store, provider)
    asked = provider.requests
    for gone in (first.work, first.home):
        shutil.rmtree(gone)
    replayed = work(agent, second, CI_MACHINE, prompt(agent, second), "replay", store, provider)
    assert provider.failures == ()
    return Session(first.work, second.work, recorded, replayed, provider, asked, store)


def test_a_session_is_recorded(session: Session) -> None:
    """The agent runs each command, sends back what it said, and prints the model's last words."""
    recorded = session.recorded
    assert recorded.finished.status == 0, recorded.finished.output
    assert recorded.report["recorded"] == recorded.report["steps"] > len(COMMANDS)
    told = "".join(request.decoded.decode() for request in session.asked)
    assert [said in told for said in (SAID_BY_FAILING, SAID_BY_LONG, WRITTEN)] == [True] * 3


def test_every_step_of_a_moved_session_hits(session: Session) -> None:
    """A background task, a command that fails, a long output: no step is refused."""
    recorded, replayed = session.recorded.report, session.replayed.report
    assert replayed["refused"] == 0, session.replayed.finished.output
    assert replayed["steps"] == recorded["steps"]
    assert replayed["exact"] + replayed["normalised"] == replayed["steps"]


def test_the_move_shows_in_the_requests(agent: Agent, session: Session) -> None:
    """No request but one for a title is the recorded one byte for byte: without rules all would miss."""
    assert session.replayed.report["exact"] == agent.titles


def test_a_moved_session_ends_as_recorded(session: Session) -> None:
    """The agent prints the same last words, and ends well."""
    assert session.replayed.finished.status == 0, session.replayed.finished.output
    replayed, recorded = (
        run.finished.stdout.rpartition(MODEL_SAID)[2] for run in (session.replayed, session.recorded)
    )
    assert replayed.replace(str(session.second), str(session.first)) == recorded
    assert WRITTEN in session.recorded.finished.stdout


def test_nothing_is_dialled_in_replay(session: Session) -> None:
    """The proxy makes no connection but loopback's and no look-up, where recording made some."""
    assert session.recorded.sockets.outward(session.provider.port)
    assert session.replayed.sockets.outward(session.provider.port) == []
    assert session.provider.requests == session.asked


def test_a_refused_prompt_stops_the_agent(agent: Agent, session: Session, tmp_path: Path) -> None:
    """Our text is on the screen, and `run` exits 4.

    opencode alone may ask again: it does so when the text of an error holds a 429 or 500, as an id may.
    """
    run = work(agent, Place.make(tmp_path), LAPTOP, NEVER_ASKED, "replay", session.store, session.provider)
    assert "rewind: no recording" in run.finished.output
    assert run.finished.status == 4, run.finished.output
    assert run.report["child_exit"] == 1
    assert run.report["refused"] == run.report["steps"]
    assert run.report["steps"] == agent.asks or (agent is OPENCODE and run.report["steps"] > agent.asks)
    assert run.finished.seconds < 30 or agent is OPENCODE
    assert run.sockets.outward(session.provider.port) == []
