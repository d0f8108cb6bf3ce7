"""Faults on purpose: at the turn that was named, on replayed and on live answers, and nowhere else."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import pytest

from proxy import h2_client
from proxy.calls import (
    CHAT,
    CHAT_SSE,
    GENERATE_SSE,
    MESSAGES,
    MESSAGES_SSE,
    OPENAI,
    RESPONSES_SSE,
    Ask,
    new_prompt,
)
from proxy.conftest import Stage, Start, tell
from proxy.h2_origin import ENDLESS, EVENTS, SLOW, H2Provider
from proxy.looking import record, recorded, steps_of, until
from proxy.origins import Identity, origin
from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.store.records import StepRecord
from rewind_proxy.wire.sse import parse
from support import behaviours
from support.client import Client, Got
from support.proxies import Proxy, proxy

Way: TypeAlias = Literal["replayed", "live"]


class Faulty:
    """A proxy with faults, and a prompt that it can answer, in a session of its own."""

    def __init__(self, running: Proxy, stage: Stage, prompt: str) -> None:
        self.proxy = running
        self.prompt = prompt
        self.session = secrets.token_hex(8)
        self._stage = stage
        self._before = len(stage.heard(prompt))

    @property
    def headers(self) -> dict[str, str]:
        """Those that name the session."""
        return {"x-rewind-session": self.session}

    def ask(self, ask: Ask) -> Got:
        """Ask for the prompt."""
        return ask.once(self.proxy, self.prompt, headers=self.headers)

    def steps(self, count: int) -> list[StepRecord]:
        """The steps of the session."""
        return steps_of(self.proxy.store, self.session, count)

    @property
    def asked(self) -> int:
        """How often the provider was asked."""
        return len(self._stage.heard(self.prompt)) - self._before


class Begin(Protocol):
    """Gives one of the two proxies a fault until the test is over."""

    def __call__(self, way: Way, ask: Ask, fault: str) -> Faulty:
        """The proxy that replays what the provider said, or the one before the provider."""
        ...


@pytest.fixture
def begin(live: Proxy, offline: Proxy, stage: Stage) -> Iterator[Begin]:
    """Begins a test; at its end the proxies have no faults again, and nothing of ours failed."""
    stage.behaviour = behaviours.paced(0.02)

    def begin(way: Way, ask: Ask, fault: str) -> Faulty:
        prompt = f"{new_prompt()} Add some more words."
        if way == "replayed":
            record(live, ask, prompt)
        running = {"replayed": offline, "live": live}[way]
        assert tell(running, "set", "rewind_fault", fault).status == 200
        return Faulty(running, stage, prompt)

    yield begin
    for running in (live, offline):
        tell(running, "set", "rewind_fault", "")
        assert "/rewind_proxy/mitm/faulting" not in running.child.output


WAYS = pytest.mark.parametrize("way", ["replayed", "live"])


@WAYS
@pytest.mark.parametrize(
    ("ask", "fault", "kind"),
    [
        (CHAT_SSE, "429", ("code", "rate_limit_exceeded")),
        (MESSAGES_SSE, "529", ("type", "overloaded_error")),
        (GENERATE_SSE, "503=3", ("status", "UNAVAILABLE")),
    ],
    ids=lambda value: value.name if isinstance(value, Ask) else None,
)
def test_an_error(begin: Begin, way: Way, ask: Ask, fault: str, kind: tuple[str, str]) -> None:
    """The provider's own error comes at its turn; the provider is not asked, and the next try is answered."""
    at = begin(way, ask, f"turn=1:{fault}")
    failed = at.ask(ask)
    assert at.asked == 0
    answered = at.ask(ask)
    first, second = at.steps(2)
    assert failed.status == int(fault[:3])
    assert failed.headers.get("retry-after") == {"429": "1", "503=3": "3"}.get(fault)
    assert json.loads(failed.body)["error"][kind[0]] == kind[1]
    assert failed.headers["x-rewind-note"] == f"fault turn=1:{fault}"
    assert (answered.status, "x-rewind-note" in answered.headers) == (200, False)
    assert (first.tier, first.note, first.miss) == ("passed", f"fault turn=1:{fault}", None)
    assert second.tier == {"replayed": "exact", "live": "recorded"}[way]


@WAYS
def test_a_cut_stream(begin: Begin, way: Way) -> None:
    """The stream breaks off after its events; what is asked again comes whole, from the same recording."""
    at = begin(way, CHAT_SSE, "turn=1:cut-after=3")
    cut, whole = at.ask(CHAT_SSE), at.ask(CHAT_SSE)
    first, second = at.steps(2)
    assert cut.cut
    assert len(parse(cut.body).events) == 3
    assert whole.body.startswith(cut.body) or way == "live"
    assert (whole.cut, whole.body.endswith(b"data: [DONE]\n\n")) == (False, True)
    assert cut.headers["x-rewind-note"] == first.note == "fault turn=1:cut-after=3"
    assert (first.tier, second.tier) == {
        "replayed": ("exact", "exact"),
        "live": ("passed", "recorded"),
    }[way]


@WAYS
def test_a_cutover_http2(begin: Begin, way: Way) -> None:
    """Over HTTP/2 the stream is reset, and the connection stays for the others."""
    at = begin(way, CHAT_SSE, "turn=1:cut-after=3")
    body = CHAT_SSE.body(at.prompt, "m1", 100)
    cut, whole = h2_client.posts(at.proxy, OPENAI, CHAT_SSE.path, [body, body], at.headers)
    assert (cut.cut, len(parse(cut.body).events)) == (True, 3)
    assert (whole.cut, whole.body.endswith(b"data: [DONE]\n\n")) == (False, True)


@pytest.fixture(scope="module")
def over_http2(tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Iterator[tuple[Proxy, H2Provider]]:
    folder = tmp_path_factory.mktemp("http2")
    (folder / "proxy").mkdir()
    identity = Identity.make(folder / "ca", "localhost")
    identity.context.set_alpn_protocols(["h2"])
    provider = H2Provider()
    with origin(provider.serve, identity) as port:
        settings = {"upstream": f"{OPENAI}=https://localhost:{port}", "fault": "turn=1:cut-after=2"}
        trust = ("--set", f"ssl_verify_upstream_trusted_ca={identity.ca}")
        with proxy(folder / "proxy", confdir, settings=settings, options=trust) as running:
            yield running, provider


def test_a_cut_of_a_provider_over_http2(over_http2: tuple[Proxy, H2Provider]) -> None:
    """It breaks off at once, not when the provider ends it."""
    running, provider = over_http2
    bodies = [CHAT_SSE.body(f"{new_prompt()} {ENDLESS}", "m1", 100)]
    begun, before = time.monotonic(), provider.connections
    [cut] = h2_client.posts(running, OPENAI, CHAT_SSE.path, bodies, {"x-rewind-session": new_prompt()})
    assert (cut.cut, cut.body) == (True, b"".join(EVENTS[:2]))
    assert time.monotonic() - begun < 5
    assert provider.connections == before + 1


def test_a_cut_leaves_the_others_of_its_connection(over_http2: tuple[Proxy, H2Provider]) -> None:
    """Where the provider's connection carries another answer, the cut waits for its end, and not longer."""
    running, provider = over_http2
    bodies = [CHAT_SSE.body(f"{new_prompt()} {words}", "m1", 100) for words in (ENDLESS, SLOW)]
    begun, before = time.monotonic(), provider.connections
    cut, other = h2_client.posts(running, OPENAI, CHAT_SSE.path, bodies, {"x-rewind-session": new_prompt()})
    assert (cut.cut, cut.body) == (True, b"".join(EVENTS[:2]))
    assert (other.cut, other.body) == (False, b"".join(EVENTS))
    assert time.monotonic() - begun < 10
    assert provider.connections == before + 1


@WAYS
def test_a_cut_answer_that_is_no_stream(begin: Begin, way: Way) -> None:
    """A whole answer breaks off in its middle."""
    at = begin(way, CHAT, "turn=1:cut-after=3")
    cut, whole = at.ask(CHAT), at.ask(CHAT)
    assert cut.cut
    assert 0 < len(cut.body) < len(whole.body)


@WAYS
def test_a_stall(begin: Begin, way: Way) -> None:
    """Nothing comes for the seconds named, then the whole answer."""
    at = begin(way, CHAT_SSE, "turn=2:stall=1.5")
    quick, slow = at.ask(CHAT_SSE), at.ask(CHAT_SSE)
    assert slow.arrivals[0][0] >= 1.5 > quick.arrivals[0][0]
    assert slow.body.endswith(b"data: [DONE]\n\n")
    assert slow.headers["x-rewind-note"].startswith("fault turn=2:stall=1.5")


def test_a_stalled_error(begin: Begin) -> None:
    """An error waits for a stall of its turn."""
    at = begin("replayed", CHAT, "turn=1:500; turn=1:stall=1")
    got = at.ask(CHAT)
    assert got.status == 500
    assert got.arrivals[0][0] >= 1


@WAYS
def test_a_client_that_leaves_a_stall(begin: Begin, way: Way) -> None:
    """A stalled client that leaves is waited for no more, live or not."""
    at = begin(way, CHAT, "turn=1:stall=100")
    with Client(at.proxy, OPENAI) as client:
        client.begin(CHAT.path, CHAT.body(at.prompt, "m1", 100), at.headers)
        until(lambda: at.asked or way == "replayed")
        until(lambda: tell(at.proxy, "idle", "what", "all").status == 409)
    until(lambda: tell(at.proxy, "idle", "what", "all").status == 200)


@pytest.mark.parametrize("fault", ["turn=1:cut-after=2", "turn=1:stall=0.2", "turn=1:500"])
def test_nothing_of_it_is_recorded(begin: Begin, fault: str) -> None:
    """A step with a fault leaves no recording, and is noted in the log of the run."""
    at = begin("live", RESPONSES_SSE, fault)
    at.ask(RESPONSES_SSE)
    at.ask(RESPONSES_SSE)
    first, second = at.steps(2)
    assert (first.tier, first.note, second.tier) == ("passed", f"fault {fault}", "recorded")
    assert [cassette.id for cassette in recorded(at.proxy.store, at.prompt)] == [second.cassette]


def test_turns_are_generations_of_a_session(begin: Begin) -> None:
    """Token counts are no turns, and each session counts its own."""
    at = begin("live", MESSAGES, "turn=2:529")
    statuses: dict[str, list[int]] = {"one": [], "two": []}
    for session in ("one", "two", "one"):
        headers = {"x-rewind-session": at.session + session}
        with Client(at.proxy, MESSAGES.host) as client:
            client.post("/v1/messages/count_tokens", MESSAGES.body(new_prompt(), "m1", 1), headers)
            statuses[session].append(MESSAGES.send(client, new_prompt(), headers=headers).status)
    assert statuses == {"one": [200, 529], "two": [200]}


def test_no_fault_counts_as_a_refusal(start: Start) -> None:
    """In replay, a run whose only errors were made on purpose ends well, and its report says what passed."""
    prompt = new_prompt()
    with FakeProvider() as provider, start(provider=provider) as live:
        record(live, CHAT, prompt)
    settings = {"mode": "replay", "fault": "turn=1:429; turn=2:500"}
    with start(provider=provider, settings=settings) as running:
        statuses = [CHAT.once(running, prompt).status for _ in range(3)]
        finished = running.stop()
    assert statuses == [429, 500, 200]
    assert finished.status == 0
    assert "rewind · replay · 3 calls: 1 exact, 2 passed" in finished.output


def test_it_is_loud(begin: Begin) -> None:
    """The log warns at the start, and at each fault."""
    at = begin("live", CHAT, "turn=1:429")
    at.proxy.child.wait_for(re.compile(r"faults on purpose are on: turn=1:429"))
    at.ask(CHAT)
    at.proxy.child.wait_for(re.compile(r"fault on purpose at \S+\.1: turn=1:429"))


def test_a_miss_stays_a_miss(begin: Begin) -> None:
    """A stall or a cut makes no answer where there is none: what nobody recorded is refused."""
    at = begin("replayed", CHAT, "turn=1:cut-after=1")
    got = CHAT.once(at.proxy, new_prompt())
    assert (got.status, got.headers["x-rewind"], got.cut) == (400, "refused", False)


def test_a_bad_fault_is_not_taken(live: Proxy) -> None:
    """What is written badly is refused with the forms that there are."""
    got = tell(live, "set", "rewind_fault", "turn=3:sleep")
    assert got.status == 409
    assert b"write turn=3:429" in got.body
