"""Real Codex over its WebSocket (`rewind_socket = serve`): recorded with a tool call, replayed offline.

What is recorded over the socket replays over POST as well, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import Exchange, FakeProvider, Request
from support.agents import CODEX, npm_commands
from support.runs import Place, Run, rewind_run

PROMPT = "Please run `echo the-tool-ran` and tell me what it printed."
TOOL_SAID = "the-tool-ran"
NEVER_ASKED = "Please write a poem that nobody has recorded."
FELL_BACK = "Falling back from WebSockets"


@dataclass(frozen=True)
class Recording:
    """A session recorded one way, and the provider, which is gone."""

    run: Run
    provider: FakeProvider
    asked: tuple[Request, ...]
    store: Path

    @property
    def turns(self) -> list[str]:
        """How the model was asked: a turn on a socket that generates, or a POST."""
        return [r.method for r in self.asked if r.method == "POST" or _generates(r)]


def _generates(request: Request) -> bool:
    return request.method == "SOCKET" and b'"generate":false' not in request.decoded


def work(place: Place, prompt: str, mode: str, socket: str, store: Path, provider: FakeProvider) -> Run:
    """Run Codex on a prompt."""
    call = CODEX.invoke(npm_commands(), place, prompt)
    variables = {**call.variables, "REWIND_SOCKET": socket}
    return rewind_run(call.argv, place, mode=mode, store=store, provider=provider, variables=variables)


@pytest.fixture(
    scope="module",
    params=[("record", "serve"), ("auto", "serve"), ("record", "fallback")],
    ids="-".join,
)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    mode, socket = request.param
    folder = tmp_path_factory.mktemp("codex-socket")
    with FakeProvider() as provider:
        run = work(Place.make(folder / "first"), PROMPT, mode, socket, folder / "store", provider)
    assert provider.failures == ()
    assert run.finished.status == 0, run.finished.output
    expected = "SOCKET" if socket == "serve" else "POST"
    recording = Recording(run, provider, provider.requests, folder / "store")
    assert recording.turns == [expected] * run.report["steps"]
    return recording


def test_a_session_with_a_tool_call_is_recorded(recording: Recording) -> None:
    """Every turn is recorded, over the way that was asked for, and Codex never falls back by itself."""
    run = recording.run
    assert TOOL_SAID in run.finished.stdout
    assert run.report["recorded"] == run.report["steps"] >= 2
    assert FELL_BACK not in run.finished.output


@pytest.mark.parametrize("socket", ["serve", "fallback"])
def test_it_replays_over_both_ways(recording: Recording, socket: str, tmp_path: Path) -> None:
    """With the provider gone, elsewhere: the same words after as many turns; nothing is dialled."""
    place = Place.make(tmp_path)
    run = work(place, PROMPT, "replay", socket, recording.store, recording.provider)
    assert run.finished.status == 0, run.finished.output
    assert run.finished.stdout == recording.run.finished.stdout
    assert run.report["steps"] == recording.run.report["steps"]
    assert run.report["exact"] + run.report["normalised"] == run.report["steps"]
    assert FELL_BACK not in run.finished.output
    assert run.sockets.outward(recording.provider.port) == []
    assert recording.provider.requests == recording.asked


def test_a_refused_prompt_stops_codex(recording: Recording, tmp_path: Path) -> None:
    """A miss on the socket is shown at once, after one try."""
    place = Place.make(tmp_path)
    run = work(place, NEVER_ASKED, "replay", "serve", recording.store, recording.provider)
    assert "rewind: no recording" in run.finished.output
    assert (run.finished.status, run.report["child_exit"], run.report["refused"]) == (4, 1, 1)
    assert run.finished.seconds < 30
    assert recording.provider.requests == recording.asked


def test_a_provider_without_sockets_is_asked_by_post(tmp_path: Path) -> None:
    """In `auto` Codex is sent on to POST within its turn."""

    def no_sockets(exchange: Exchange) -> None:
        if exchange.request.is_model_socket:
            exchange.whole(404, "application/json", b'{"error": {"message": "no sockets here"}}')
        else:
            exchange.send()

    with FakeProvider(no_sockets) as provider:
        run = work(Place.make(tmp_path), PROMPT, "auto", "serve", tmp_path / "store", provider)
    assert run.finished.status == 0, run.finished.output
    assert TOOL_SAID in run.finished.stdout
    assert run.report["recorded"] == 2
    assert len([request for request in provider.requests if request.is_model_socket]) == 1
