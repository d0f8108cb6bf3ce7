"""What is no model call: side requests are kept in order, telemetry and logins never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from proxy.calls import ANTHROPIC, OPENAI, error_message, new_prompt
from proxy.conftest import CONTROL, Stage, tell
from proxy.looking import steps_of
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider import Exchange, FakeProvider
from support.client import Client, Got
from support.proxies import Proxy, proxy

CHATGPT = "chatgpt.com"


@pytest.fixture
def counting(stage: Stage) -> Stage:
    """A provider that answers 200 to everything, with the number of the request."""

    def behave(exchange: Exchange) -> None:
        exchange.whole(200, "application/json", b'{"number": %d}' % exchange.request.number)

    stage.behaviour = behave
    return stage


def ask(running: Proxy, method: str, host: str, path: str, session: str, body: bytes | None = None) -> Got:
    """One request in a session."""
    with Client(running, host) as client:
        return client.request(method, path, body, {"x-rewind-session": session})


def side_path() -> str:
    """A path that no other test asks for."""
    return f"/backend-api/flags/{new_prompt()[11:27]}"


def test_side_answers_replay_in_order_then_the_last_again(
    live: Proxy, offline: Proxy, counting: Stage
) -> None:
    """Live modes forward each time and keep all; replay gives them back in their order."""
    path, session = side_path(), new_prompt()
    recorded = [ask(live, "GET", CHATGPT, path, session) for _ in range(3)]
    assert len({got.body for got in recorded}) == 3
    assert {got.headers["x-rewind"] for got in recorded} == {"recording"}
    steps_of(live.store, session, 3)
    replayed = [ask(offline, "GET", CHATGPT, path, session) for _ in range(4)]
    assert [got.body for got in replayed] == [*(got.body for got in recorded), recorded[-1].body]
    assert {got.headers["x-rewind"] for got in replayed} == {"replayed"}


def test_only_the_newest_run_of_a_side_request_is_kept(live: Proxy, offline: Proxy, counting: Stage) -> None:
    """A setting that changed since is not given back from an older run."""
    path, sessions = side_path(), (new_prompt(), new_prompt())
    recorded = [[ask(live, "GET", CHATGPT, path, session) for _ in range(2)] for session in sessions]
    for session in sessions:
        steps_of(live.store, session, 2)
    replayed = [ask(offline, "GET", CHATGPT, path, sessions[0]) for _ in range(2)]
    assert [got.body for got in replayed] == [got.body for got in recorded[1]]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "{path}?a=2", None),
        ("GET", "{path}x?a=1", None),
        ("PUT", "{path}?a=1", None),
        ("POST", "/backend-api/wham/x?a=1", b'{"b":2}'),
    ],
)
def test_side_requests_match_by_method_path_query_and_body(
    live: Proxy, offline: Proxy, counting: Stage, method: str, path: str, body: bytes | None
) -> None:
    """Whatever differs is another request, which was never recorded."""
    known, session = side_path(), new_prompt()
    ask(live, "GET", CHATGPT, f"{known}?a=1", session)
    ask(live, "POST", CHATGPT, "/backend-api/wham/x?a=1", session, b'{"b":1}')
    steps_of(live.store, session, 2)
    assert ask(offline, "GET", CHATGPT, f"{known}?a=1", session).status == 200
    assert ask(offline, "POST", CHATGPT, "/backend-api/wham/x?a=1", session, b'{"b": 1}').status == 200
    assert ask(offline, method, CHATGPT, path.format(path=known), session, body).status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_an_unknown_side_request_is_not_found(offline: Proxy, method: str) -> None:
    """404 with a small JSON body, at once: what clients get over without waiting."""
    session = new_prompt()
    got = ask(offline, method, CHATGPT, side_path(), session)
    assert (got.status, got.headers["content-type"], got.headers["x-rewind"]) == (
        404,
        "application/json",
        "refused",
    )
    if method != "HEAD":
        assert error_message(got) == "rewind: no recording. This side request was never recorded."
    [step] = steps_of(offline.store, session)
    assert (step.cls, step.tier, step.status) == ("side", "miss", 404)


def test_a_side_error_is_not_kept(live: Proxy, offline: Proxy, stage: Stage) -> None:
    """The provider's 404 is forwarded; replay says 404 of its own."""
    stage.behaviour = lambda exchange: exchange.whole(404, "text/plain", b"not here")
    path, session = side_path(), new_prompt()
    assert ask(live, "GET", CHATGPT, path, session).body == b"not here"
    [step] = steps_of(live.store, session)
    assert (step.tier, step.cassette) == ("passed", None)
    assert b"rewind" in ask(offline, "GET", CHATGPT, path, session).body


TELEMETRY = [
    (ANTHROPIC, "/api/event_logging/v2/batch"),
    (CHATGPT, "/ces/v1/t"),
    (OPENAI, "/v1/traces/ingest"),
]


@pytest.mark.parametrize(("host", "path"), TELEMETRY)
def test_telemetry_is_never_recorded(
    live: Proxy, offline: Proxy, counting: Stage, host: str, path: str
) -> None:
    """Live modes forward it, replay answers 404, nothing of it is in the store."""
    session, body = new_prompt(), new_prompt().encode()
    assert ask(live, "POST", host, path, session, body).headers["x-rewind"] == "passed"
    assert counting.heard(body.decode())
    [step] = steps_of(live.store, session)
    assert (step.cls, step.tier, step.cassette) == ("telemetry", "passed", None)
    assert ask(offline, "POST", host, path, session, body).status == 404


AUTH = [
    (ANTHROPIC, "POST", "/v1/oauth/token"),
    (OPENAI, "POST", "/v1/realtime/client_secrets"),
    (CHATGPT, "GET", "/api/auth/session"),
]


@pytest.mark.parametrize(("host", "method", "path"), AUTH)
def test_logins_are_never_recorded(
    live: Proxy, offline: Proxy, counting: Stage, host: str, method: str, path: str
) -> None:
    """Live modes forward them; replay refuses, and names what it refuses."""
    session = new_prompt()
    body = None if method == "GET" else new_prompt().encode()
    assert ask(live, method, host, path, session, body).headers["x-rewind"] == "passed"
    [step] = steps_of(live.store, session)
    assert (step.cls, step.tier, step.cassette) == ("auth", "passed", None)
    got = ask(offline, method, host, path, session, body)
    assert got.status == 400
    assert f"{method} {host}{path} is refused in replay mode" in error_message(got)


def test_passthrough_keeps_nothing(counting: Stage, tmp_path: Path, confdir: Path) -> None:
    """Model and side calls pass and are logged; the store stays empty."""
    settings = {"mode": "passthrough", "session": "through"}
    with proxy(tmp_path, confdir, provider=counting.provider, settings=settings, options=CONTROL) as running:
        with Client(running, OPENAI) as client:
            body: JsonObject = {"model": "m1", "input": new_prompt()}
            for _ in range(2):
                assert client.post("/v1/responses", body).headers["x-rewind"] == "passed"
        ask(running, "GET", OPENAI, "/v1/models", "through")
        steps = steps_of(running.store, "through", 3)
        assert [(step.cls, step.tier) for step in steps] == [("model", "passed")] * 2 + [("side", "passed")]
        tell(running, "set", "rewind_mode", "replay")
        assert ask(running, "GET", OPENAI, "/v1/models", "through").status == 404
        with Client(running, OPENAI) as client:
            assert client.post("/v1/responses", body).status == 400


@pytest.fixture
def quiet(offline: Proxy, stopped: FakeProvider) -> Iterator[Proxy]:
    """The replaying proxy, of which nothing may have been dialled after the test."""
    offline.sockets.clear()
    yield offline
    assert offline.sockets.outward(stopped.port) == []


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "side": ("GET", OPENAI, "/v1/models"),
    "telemetry": ("POST", ANTHROPIC, "/api/event_logging/v2/batch"),
    "login": ("POST", ANTHROPIC, "/v1/oauth/token"),
    "an unlisted POST": ("POST", OPENAI, "/v1/images/generations"),
    "a host of nothing but telemetry": ("POST", "play.googleapis.com", "/log"),
    "a host below a wildcard": ("POST", "eu.api.openai.com", "/v1/responses"),
    "an embedding": ("POST", OPENAI, "/v1/embeddings"),
    "a token count": ("POST", ANTHROPIC, "/v1/messages/count_tokens"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_no_class_goes_live_in_replay(quiet: Proxy, kind: str) -> None:
    """Every class of request has an answer of ours in replay."""
    method, host, path = REFUSED[kind]
    assert ask(quiet, method, host, path, new_prompt(), b"{}").headers["x-rewind"] == "refused"
