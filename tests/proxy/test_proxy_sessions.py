"""Sessions: in which order one gets the answers to one request, and what a client may ask for."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import NamedTuple

import pytest

from proxy.calls import CHAT, CHAT_PATH, OPENAI, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import recorded, steps_of, until
from proxy.naming import say_with_user
from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.store import Log
from support.client import Client
from support.proxies import Proxy, proxy


class Repeated(NamedTuple):
    """A prompt that was recorded three times in one run, and its answers in order."""

    prompt: str
    answers: tuple[bytes, bytes, bytes]
    store: Path


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory, _the_stage: Stage, confdir: Path) -> Repeated:
    """Mode `record` asks the provider each time, and keeps each answer."""
    prompt, store = new_prompt(), tmp_path_factory.mktemp("repeated") / "store"
    settings = {"mode": "record", "session": "recording"}
    folder = tmp_path_factory.mktemp("recording")
    with proxy(folder, confdir, provider=_the_stage.provider, settings=settings, store=store) as running:
        first, second, third = (CHAT.once(running, prompt).body for _ in range(3))
        recorded(store, prompt, 3)
    assert len({first, second, third}) == 3
    return Repeated(prompt, (first, second, third), store)


@pytest.fixture(scope="module")
def replaying(
    repeated: Repeated, stopped: FakeProvider, tmp_path_factory: pytest.TempPathFactory, confdir: Path
) -> Iterator[Proxy]:
    """A proxy that replays it, and whose settings the tests change."""
    folder, settings = tmp_path_factory.mktemp("replaying"), {"mode": "replay"}
    with proxy(
        folder, confdir, provider=stopped, settings=settings, store=repeated.store, options=CONTROL
    ) as running:
        yield running


def answers(running: Proxy, prompt: str, session: str, count: int) -> list[bytes]:
    """The next answers that a session gets."""
    return [CHAT.once(running, prompt, headers={"x-rewind-session": session}).body for _ in range(count)]


def test_a_session_gets_the_answers_in_order_then_the_last_again(
    repeated: Repeated, replaying: Proxy
) -> None:
    """Three were recorded: the fourth and fifth time the third comes again."""
    first, second, third = repeated.answers
    assert answers(replaying, repeated.prompt, "in order", 5) == [first, second, third, third, third]


def test_two_sessions_do_not_take_from_each_other(repeated: Repeated, replaying: Proxy) -> None:
    """Each session goes through the answers on its own, however their requests mix."""
    got: dict[str, list[bytes]] = {"a": [], "b": []}
    for session in "aabab":
        got[session] += answers(replaying, repeated.prompt, session, 1)
    assert got == {"a": list(repeated.answers), "b": list(repeated.answers[:2])}


def test_a_proxy_started_anew_begins_again(repeated: Repeated, start: Start, stopped: FakeProvider) -> None:
    """`rewind_session` names the calls without a name of their own; the same name after a restart is new."""
    settings = {"mode": "replay", "session": "nightly"}
    for _ in range(2):
        with start(provider=stopped, settings=settings, store=repeated.store) as running:
            got = [CHAT.once(running, repeated.prompt).body for _ in range(2)]
            CHAT.once(running, repeated.prompt, headers={"x-rewind-session": "my own"})
        assert got == list(repeated.answers[:2])
    steps_of(repeated.store, "my own", 2)
    steps_of(repeated.store, "nightly", 4)
    with Log.open(repeated.store, readonly=True) as log:
        runs = [run for run in log.runs() if run.session == "nightly"]
    assert len({run.id for run in runs}) == 2
    assert all(run.ended_at and run.ended_at >= run.started_at for run in runs)


def test_sessions_at_once_each_go_their_own_way(
    repeated: Repeated, start: Start, stopped: FakeProvider
) -> None:
    """However a session got its name, it has all answers in order, while others ask at the same time."""
    begin = Barrier(7)
    with start(
        provider=stopped, settings={"mode": "replay", "session": "at once"}, store=repeated.store
    ) as running:

        def ask(user: str, header: str) -> list[bytes]:
            begin.wait(timeout=30)
            headers = {"x-rewind-session": header} if header else {}
            return [say_with_user(running, repeated.prompt, user, headers).body for _ in range(4)]

        named = [("", "")]
        named += [(f"user {n}", "") for n in range(3)] + [("same", f"header {n}") for n in range(3)]
        with ThreadPoolExecutor(len(named)) as threads:
            got = list(threads.map(lambda names: ask(*names), named))
    assert got == [[*repeated.answers, repeated.answers[2]]] * len(named)
    for user, header in named:
        steps = steps_of(repeated.store, header or user or "at once", 4)
        assert len({step.cassette for step in steps}) == 3
        assert {step.tier for step in steps} == {"exact"}


@pytest.mark.parametrize(("repeat", "place"), [("first", 0), ("last", 2)])
def test_one_answer_can_be_enough(repeated: Repeated, replaying: Proxy, repeat: str, place: int) -> None:
    """`rewind_repeat` says which of several a session gets every time."""
    tell(replaying, "set", "rewind_repeat", repeat)
    try:
        assert answers(replaying, repeated.prompt, "one", 2) == [repeated.answers[place]] * 2
    finally:
        tell(replaying, "set", "rewind_repeat", "")


def test_a_used_up_sequence_can_miss(repeated: Repeated, replaying: Proxy) -> None:
    """With `rewind_exhausted = miss` the fourth request is refused, and told why."""
    tell(replaying, "set", "rewind_exhausted", "miss")
    try:
        assert answers(replaying, repeated.prompt, "used up", 3) == list(repeated.answers)
        [refusal] = answers(replaying, repeated.prompt, "used up", 1)
    finally:
        tell(replaying, "set", "rewind_exhausted", "")
    assert b"exhausted: it was recorded 3 times, and each was used in this session" in refusal
    assert b"Would match with: exhausted = last" in refusal


def test_the_newest_run_answers(live: Proxy, offline: Proxy) -> None:
    """Of two runs that recorded a request, the newer one's answer is replayed."""
    prompt = new_prompt()
    tell(live, "set", "rewind_mode", "record")
    try:
        recordings = answers(live, prompt, new_prompt(), 1) + answers(live, prompt, new_prompt(), 1)
        recorded(live.store, prompt, 2)
    finally:
        tell(live, "set", "rewind_mode", "")
    assert answers(offline, prompt, new_prompt(), 1) == recordings[1:]


# Replay asked for by the client


def test_a_client_can_ask_for_replay(live: Proxy, stage: Stage) -> None:
    """`x-rewind-mode: replay` refuses a miss and answers a hit, in a proxy that may go live."""
    prompt, other = new_prompt(), new_prompt()
    replay = {"x-rewind-mode": "replay"}
    assert CHAT.once(live, prompt, headers=replay).headers["x-rewind"] == "refused"
    assert not stage.heard(prompt)
    recording = CHAT.once(live, prompt)
    recorded(live.store, prompt)
    hit = CHAT.once(live, prompt, headers=replay)
    assert (hit.headers["x-rewind"], hit.body) == ("replayed", recording.body)
    with Client(live, OPENAI) as client:
        for path in ("/v1/models", "/v1/responses"):
            assert client.get(path, replay).headers["x-rewind"] == "refused"
        assert CHAT.send(client, other, headers=replay).status == 400
    assert len(stage.heard(prompt)) == 1
    assert not stage.heard(other)


@pytest.mark.parametrize("mode", ["auto", "record", "passthrough", "REPLAY?"])
def test_a_client_cannot_ask_for_less(offline: Proxy, stopped: FakeProvider, mode: str) -> None:
    """No other word in `x-rewind-mode` makes a replaying proxy go live."""
    offline.sockets.clear()
    assert CHAT.once(offline, new_prompt(), headers={"x-rewind-mode": mode}).status == 400
    assert offline.sockets.outward(stopped.port) == []


def test_a_live_turn_after_replayed_ones_is_told(live: Proxy) -> None:
    """It carries ids that the provider has never seen: warning and step say so."""
    prompt, session = new_prompt(), new_prompt()
    headers = {"x-rewind-session": session}
    CHAT.once(live, prompt)
    recorded(live.store, prompt)
    for text in (prompt, new_prompt()):
        CHAT.once(live, text, headers=headers)
    steps = steps_of(live.store, session, 2)
    assert [step.tier for step in steps] == ["exact", "recorded"]
    assert steps[1].note == "live after replayed steps"
    until(lambda: f"{steps[1].run}.2 goes live after replayed steps" in live.child.output)


def test_a_client_may_speak_tls_to_the_proxy(live: Proxy, stage: Stage) -> None:
    """`HTTPS_PROXY=https://…`: the proxy's own TLS is no connection to a host that nobody knows."""
    prompt = new_prompt()
    context = live.trust()
    context.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", live.port, context=context, timeout=30)
    try:
        body = json.dumps(CHAT.body(prompt, "m1", 100))
        connection.request("POST", f"http://{OPENAI}{CHAT_PATH}", body)
        response = connection.getresponse()
        assert (response.status, response.getheader("x-rewind")) == (200, "recording")
        assert response.read()
    finally:
        connection.close()
    assert stage.heard(prompt)
