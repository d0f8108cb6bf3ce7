"""Real Codex and real Claude Code, replayed from recordings that were made through another wire or form.

The recordings come from behind a translating gateway (`support.gateway`), as a team has them that points its
agents at one: the agent speaks its own wire to it, and what was recorded is what the gateway asked another
provider, and was told. In replay there is no gateway: the agent's own request finds the answer, converted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rewind_proxy.canonical.model import DEFAULT_IGNORE, Form, JsonValue, Wire
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.provider.turn import Call, decide
from support.agents import CLAUDE, CODEX, CODEX_WITH_FUNCTIONS, Agent, npm_commands
from support.children import environment, rewind
from support.gateway import Gateway
from support.other_words import LEFT_OUT
from support.proxies import proxy
from support.runs import Place, Run, rewind_run

COMMAND = "echo the-tool-ran"
PROMPT = f"Please run `{COMMAND}` and tell me what it printed."
TOOL_SAID = "the-tool-ran"
MODEL_SAID = "The tool answered:"
IGNORE = (*DEFAULT_IGNORE, *LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Case:
    """An agent, what it speaks, and what was recorded."""

    agent: Agent
    own: Wire
    wire: Wire
    form: Form

    def __str__(self) -> str:
        return f"{self.agent.name}-{self.wire}-{self.form}"


CASES = [
    Case(CODEX, "responses", "responses", "whole"),
    Case(CODEX, "responses", "chat_completions", "sse"),
    Case(CODEX_WITH_FUNCTIONS, "responses", "anthropic", "sse"),
    Case(CODEX_WITH_FUNCTIONS, "responses", "gemini", "json-array"),
    Case(CLAUDE, "anthropic", "anthropic", "whole"),
    Case(CLAUDE, "anthropic", "responses", "sse"),
    Case(CLAUDE, "anthropic", "chat_completions", "sse"),
    Case(CLAUDE, "anthropic", "gemini", "whole"),
]


def calls_codes_tool(exchange: Exchange) -> None:
    """The model calls Codex's tool of free text as one that knows only functions does: `{"input": …}`."""
    planned = exchange.answer
    assert planned.dialect
    body = json.loads(exchange.request.decoded)
    turn = decide(planned.dialect, body, "m1")
    if '"name": "exec"' in json.dumps(body["tools"]) and MODEL_SAID not in turn.text:
        code = f"text((await tools.exec_command({json.dumps({'cmd': COMMAND})})).output);"
        turn = replace(turn, text="I will run that.", call=Call("exec", {"input": code}))
        events = planned.dialect.events(turn, body)
        exchange.answer = replace(planned, chunks=tuple(map(planned.dialect.sse, events)))
    exchange.send()


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's session behind the gateway, and its replay without."""

    case: Case
    first: Run
    replayed: Run
    notes: list[str]
    """As in `x-rewind-note`, one for each model call of the replay."""
    asked: tuple[int, int]
    """How many requests the gateway saw in the session, and at the end."""
    gateway_port: int


def work(case: Case, place: Place, mode: str, store: Path, gateway: FakeProvider) -> Run:
    """Run the agent on the prompt."""
    call = case.agent.invoke(npm_commands(), place, PROMPT)
    variables = {**call.variables, "REWIND_IGNORE": ",".join(IGNORE)}
    return rewind_run(call.argv, place, mode=mode, store=store, provider=gateway, variables=variables)


@pytest.fixture(scope="module", params=CASES, ids=str)
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, confdir: Path
) -> Session:
    case = request.param
    assert isinstance(case, Case)
    folder = tmp_path_factory.mktemp("other-wire")
    store = folder / "store"
    (folder / "proxy").mkdir()
    settings = {"mode": "record", "ignore": IGNORE}
    behaviour = calls_codes_tool if case.own != case.wire else Exchange.send
    with (
        FakeProvider(behaviour) as provider,
        proxy(folder / "proxy", confdir, provider=provider, settings=settings, store=store) as recorder,
        FakeProvider(Gateway(recorder, case.own, case.wire, case.form).behave) as gateway,
    ):
        first = work(case, Place.make(folder / "first"), "passthrough", folder / "none", gateway)
    assert provider.failures == gateway.failures == ()
    assert first.finished.status == 0, first.finished.output
    asked = len(gateway.requests)
    place = Place.make(folder / "second")
    replayed = work(case, place, "replay", store, gateway)
    steps = rewind("steps", "last", "--store", store, "--json", env=environment(place.home), cwd=place.work)
    return Session(case, first, replayed, notes_of(steps.json), (asked, len(gateway.requests)), gateway.port)


def notes_of(steps: JsonValue) -> list[str]:
    assert isinstance(steps, list)
    return [str(step["note"]) for step in steps if isinstance(step, dict) and step["cls"] == "model"]


def test_the_agent_ends_as_behind_the_gateway(session: Session) -> None:
    """The tool is run, its result goes back, and the same last words are printed.

    The model quotes the result, in which Codex's chunk id is that of this run.
    """
    finished = session.replayed.finished
    assert finished.status == 0, finished.output
    assert finished.stdout.startswith(MODEL_SAID)
    assert finished.stdout.splitlines()[-1] == session.first.finished.stdout.splitlines()[-1]
    assert finished.stdout.rstrip().endswith(TOOL_SAID)


def test_both_turns_are_hits(session: Session) -> None:
    """Neither is the recorded request byte for byte; the rules that make them one are named."""
    report = session.replayed.report
    assert report["normalised"] == report["steps"] == session.first.report["steps"] == 2
    assert report["child_exit"] == report["refused"] == 0


def test_each_hit_says_that_it_was_converted(session: Session) -> None:
    """From the wire and form of the recording to those of the agent."""
    case = session.case
    said = f"converted {case.wire} {case.form}->{case.own} sse"
    assert [said in note for note in session.notes] == [True, True], session.notes


def test_nothing_is_dialled_in_replay(session: Session) -> None:
    """The gateway is not asked again, nor anyone else."""
    assert session.replayed.sockets.outward(session.gateway_port) == []
    assert session.asked[0] == session.asked[1]
