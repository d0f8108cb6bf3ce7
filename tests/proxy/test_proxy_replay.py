"""Record with a provider, stop it, replay: every wire in every form, through both kinds of proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest

from proxy.calls import ASKS, Ask, error_message, new_prompt
from rewind_proxy.cli.provider import FakeProvider
from support.client import Got
from support.proxies import Proxy, proxy

KEPT = ("x-request-id", "request-id", "x-ratelimit-remaining-requests")
DROPPED = ("set-cookie", "openai-organization")


@dataclass(frozen=True)
class Recording:
    """All asks recorded by one proxy, and a second one that replays them. The provider is gone."""

    prompts: Mapping[Ask, str]
    answers: Mapping[Ask, Got]
    provider: FakeProvider
    asked: int
    """Requests that the provider had seen when it was stopped."""
    replaying: Proxy


@pytest.fixture(scope="module", params=["script", "proxy"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, confdir: Path
) -> Iterator[Recording]:
    """Record every ask, stop the provider and the proxy, start another that replays."""
    tool = cast("Literal['script', 'proxy']", request.param)
    store = tmp_path_factory.mktemp(tool) / "store"
    prompts = {ask: new_prompt() for ask in ASKS}
    folder = tmp_path_factory.mktemp("recording")
    with FakeProvider() as provider:
        with proxy(folder, confdir, provider=provider, store=store, tool=tool) as live:
            answers = {ask: ask.once(live, prompt) for ask, prompt in prompts.items()}
        asked = len(provider.requests)
    folder = tmp_path_factory.mktemp("replaying")
    replay = {"mode": "replay"}
    with proxy(folder, confdir, provider=provider, store=store, tool=tool, settings=replay) as replaying:
        yield Recording(prompts, answers, provider, asked, replaying)
    assert len(provider.requests) == asked
    assert replaying.sockets.outward(provider.port) == []


each = pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.name)


@each
def test_while_recording_the_answer_passes(recording: Recording, ask: Ask) -> None:
    """The client gets the provider's answer with all its headers, and ours say that it is recorded."""
    got = recording.answers[ask]
    assert (got.status, got.cut) == (200, False)
    assert got.headers["content-type"].startswith(ask.content_type)
    assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("recording", "recorded")
    assert "x-rewind-cassette" not in got.headers
    assert set(DROPPED) < set(got.headers)


@each
def test_the_same_request_gets_the_same_bytes(recording: Recording, ask: Ask) -> None:
    """An exact hit has status, bytes and content type of the recording, and says which one it is."""
    recorded = recording.answers[ask]
    got = ask.once(recording.replaying, recording.prompts[ask])
    assert (got.status, got.body, got.cut) == (200, recorded.body, False)
    assert got.headers["content-type"] == recorded.headers["content-type"]
    assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("replayed", "exact")
    assert len(got.headers["x-rewind-cassette"]) == 64
    assert got.headers["x-rewind-fingerprint"] == recorded.headers["x-rewind-fingerprint"]
    assert len(got.headers["x-rewind-fingerprint"]) == 12
    assert got.headers["x-rewind-step"] != recorded.headers["x-rewind-step"]
    assert "x-rewind-note" not in got.headers


@each
def test_ids_that_clients_echo_are_replayed_and_accounts_are_not(recording: Recording, ask: Ask) -> None:
    """Request ids and counters are kept; cookies and organisation ids are not."""
    recorded = recording.answers[ask]
    got = ask.once(recording.replaying, recording.prompts[ask])
    assert {name: got.headers[name] for name in KEPT} == {name: recorded.headers[name] for name in KEPT}
    assert set(got.headers).isdisjoint(DROPPED)


@each
def test_another_model_and_limit_hit_in_the_normalised_tier(recording: Recording, ask: Ask) -> None:
    """What the ignore list holds does not keep a recording from answering; the note names both values."""
    got = ask.once(recording.replaying, recording.prompts[ask], model="m2", limit=200)
    assert (got.status, got.body) == (200, recording.answers[ask].body)
    assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("replayed", "normalised")
    assert got.headers["x-rewind-fingerprint"] == recording.answers[ask].headers["x-rewind-fingerprint"]
    note = got.headers["x-rewind-note"].split("; ")
    assert {"model m1->m2", "max_tokens 100->200"} <= set(note)


@each
def test_another_prompt_is_refused(recording: Recording, ask: Ask) -> None:
    """A request that was never recorded gets 400 in the provider's error JSON, and no retry."""
    got = ask.once(recording.replaying, new_prompt())
    assert got.status == 400
    assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("refused", "miss")
    assert got.headers["x-should-retry"] == "false"
    assert got.headers["content-type"] == "application/json"
    message = error_message(got)
    assert message.startswith("rewind: no recording")
    assert "First difference: $.messages[0]" in message


def test_the_provider_was_asked_once_for_each(recording: Recording) -> None:
    """Recording asks the provider for nothing but what the client asked for."""
    assert recording.asked == len(ASKS)
