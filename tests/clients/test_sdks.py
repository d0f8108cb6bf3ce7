"""The official SDKs, unchanged: recorded once, replayed with the provider gone, in another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rewind_proxy.cli.provider import FakeProvider
from support.runs import Place, Run, rewind_run

HERE = Path(__file__).parent
CLIENT_ENV = HERE.parent.parent / "scripts" / "client-env"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key-at-all")
CASES = {
    "openai": (
        "chat_whole chat_stream chat_stream_helper chat_tool chat_tool_stream responses_whole "
        "responses_stream responses_stream_helper responses_tool embeddings asynchronous"
    ).split(),
    "anthropic": "whole stream stream_helper tool tool_stream thinking count_tokens asynchronous".split(),
    "gemini": "whole stream tool count_tokens embedding asynchronous".split(),
}
BAD_REQUEST = {"openai": "BadRequestError", "anthropic": "BadRequestError", "gemini": "ClientError"}


@dataclass(frozen=True)
class Session:
    """One SDK's cases, recorded and then replayed with the provider stopped."""

    recorded: Run
    replayed: Run
    provider: FakeProvider
    asked: int
    """Requests that the provider had seen when it was stopped."""
    store: Path


@pytest.fixture(scope="module")
def interpreter() -> Path:
    """The Python that has the SDKs."""
    env = {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run([CLIENT_ENV], env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def sessions(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Session]:
    """The session of an SDK, made when it is first asked for."""

    @cache
    def session_of(sdk: str) -> Session:
        folder = tmp_path_factory.mktemp(sdk)
        store = folder / "store"
        argv = [interpreter, HERE / f"ask_{sdk}.py"]
        first, second = Place.make(folder / "first"), Place.make(folder / "second")
        with FakeProvider() as provider:
            recorded = rewind_run(argv, first, mode="record", store=store, provider=provider, variables=KEYS)
        asked = len(provider.requests)
        replayed = rewind_run(argv, second, mode="replay", store=store, provider=provider, variables=KEYS)
        assert provider.failures == ()
        return Session(recorded, replayed, provider, asked, store)

    return session_of


@pytest.fixture(params=CASES)
def sdk(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session(sdk: str, sessions: Callable[[str], Session]) -> Session:
    return sessions(sdk)


def test_every_call_is_recorded(session: Session) -> None:
    """While recording, each call reaches the provider once, and each is stored."""
    assert session.recorded.finished.status == 0, session.recorded.finished.output
    report = session.recorded.report
    assert report["recorded"] == report["steps"] == session.asked
    assert session.asked > 5


@pytest.mark.parametrize(
    ("sdk", "case"), [(sdk, case) for sdk, cases in CASES.items() for case in cases], indirect=["sdk"]
)
def test_the_sdk_returns_what_it_returned(session: Session, case: str) -> None:
    """The SDK's typed values are equal in every member: text, calls, usage, ids, each event of a stream."""
    first, second = session.recorded.finished.json, session.replayed.finished.json
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first[case]
    assert second[case] == first[case]


def test_every_call_is_replayed(session: Session) -> None:
    """In replay every step is a hit, and the client ends as it did."""
    assert session.replayed.finished.status == 0, session.replayed.finished.output
    report = session.replayed.report
    assert report["steps"] == session.recorded.report["steps"]
    assert report["exact"] + report["normalised"] == report["steps"]
    assert (report["refused"], report["recorded"], report["misses"]) == (0, 0, [])


def test_nothing_is_dialled_in_replay(session: Session) -> None:
    """No connection but loopback's and no look-up is made in replay, where recording made some."""
    assert session.recorded.sockets.outward(session.provider.port)
    assert session.replayed.sockets.outward(session.provider.port) == []
    assert len(session.provider.requests) == session.asked


def test_a_refused_prompt_raises_once(session: Session, sdk: str, interpreter: Path, tmp_path: Path) -> None:
    """What nobody recorded raises the SDK's error for a bad request, with our text, after one try."""
    run = rewind_run(
        [interpreter, HERE / f"ask_{sdk}.py", "refused"],
        Place.make(tmp_path),
        mode="replay",
        store=session.store,
        provider=session.provider,
        variables=KEYS,
    )
    raised = json.loads(run.finished.stdout)["refused"]
    assert (raised["error"], raised["status"]) == (BAD_REQUEST[sdk], 400)
    assert "rewind: no recording" in raised["message"]
    assert run.finished.status == 4
    assert (run.report["steps"], run.report["refused"], run.report["child_exit"]) == (1, 1, 0)
