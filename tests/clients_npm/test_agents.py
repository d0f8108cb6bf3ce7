"""Real Codex and real Claude Code: recorded with a tool call, replayed with the provider gone, elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import FakeProvider
from support.agents import CLAUDE, CODEX, Agent, npm_commands
from support.runs import Place, Run, rewind_run

PROMPT = "Please run `echo the-tool-ran` and tell me what it printed."
TOOL_SAID = "the-tool-ran"
MODEL_SAID = "The tool answered:"
NEVER_ASKED = "Please write a poem that nobody has recorded."


@dataclass(frozen=True)
class Session:
    """One agent's session, recorded and then replayed with the provider stopped."""

    recorded: Run
    replayed: Run
    provider: FakeProvider
    asked: int
    """Requests that the provider had seen when it was stopped."""
    store: Path


def work(agent: Agent, place: Place, prompt: str, mode: str, store: Path, provider: FakeProvider) -> Run:
    """Run the agent on a prompt."""
    call = agent.invoke(npm_commands(), place, prompt)
    return rewind_run(call.argv, place, mode=mode, store=store, provider=provider, variables=call.variables)


@pytest.fixture(scope="module", params=[CODEX, CLAUDE], ids=lambda agent: agent.name)
def agent(request: pytest.FixtureRequest) -> Agent:
    chosen = request.param
    assert isinstance(chosen, Agent)
    return chosen


@pytest.fixture(scope="module")
def session(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp(agent.name)
    store = folder / "store"
    with FakeProvider() as provider:
        recorded = work(agent, Place.make(folder / "first"), PROMPT, "record", store, provider)
    asked = len(provider.requests)
    replayed = work(agent, Place.make(folder / "second"), PROMPT, "replay", store, provider)
    assert provider.failures == ()
    return Session(recorded, replayed, provider, asked, store)


def test_a_session_with_a_tool_call_is_recorded(session: Session) -> None:
    """The agent runs the tool, sends its result back, and prints the model's last words."""
    recorded = session.recorded
    assert recorded.finished.status == 0, recorded.finished.output
    assert MODEL_SAID in recorded.finished.stdout
    assert TOOL_SAID in recorded.finished.stdout
    assert recorded.report["recorded"] == recorded.report["steps"] >= 2


def test_the_session_is_replayed_elsewhere(session: Session) -> None:
    """With the provider gone, in another folder and another HOME, the agent prints the same."""
    recorded, replayed = session.recorded, session.replayed
    assert replayed.finished.status == 0, replayed.finished.output
    assert replayed.finished.stdout == recorded.finished.stdout
    assert replayed.report["steps"] == recorded.report["steps"]
    assert replayed.report["exact"] + replayed.report["normalised"] == replayed.report["steps"]
    assert replayed.report["refused"] == 0


def test_nothing_is_dialled_in_replay(session: Session) -> None:
    """The proxy makes no connection but loopback's and no look-up, where recording made some."""
    assert session.recorded.sockets.outward(session.provider.port)
    assert session.replayed.sockets.outward(session.provider.port) == []
    assert len(session.provider.requests) == session.asked


def test_a_refused_prompt_stops_the_agent(agent: Agent, session: Session, tmp_path: Path) -> None:
    """Our text is on the screen within seconds, `run` exits 4, and the report has the child's own status."""
    run = work(agent, Place.make(tmp_path), NEVER_ASKED, "replay", session.store, session.provider)
    assert "rewind: no recording" in run.finished.output
    assert run.finished.status == 4, run.finished.output
    assert run.report["child_exit"] == 1
    assert run.report["refused"] == 1
    assert run.finished.seconds < 30
    assert run.sockets.outward(session.provider.port) == []
