"""A provider that breaks, refuses or hangs, and a client that leaves (DESIGN §14)."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Literal

import pytest

from proxy import h2_client
from proxy.calls import (
    ASKS,
    CHAT,
    CHAT_SSE,
    GENERATE,
    GENERATE_ARRAY,
    MESSAGES,
    MESSAGES_SSE,
    OPENAI,
    RESPONSES,
    RESPONSES_SSE,
    STREAMED,
    Ask,
    new_prompt,
)
from proxy.conftest import Stage, Start, streaming
from proxy.looking import cassettes, recorded, steps_of, until
from rewind_proxy.cli.provider import Behaviour, Exchange, FakeProvider
from support import behaviours
from support.proxies import Proxy

by_name = pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.name)
WHOLE = (CHAT, RESPONSES, MESSAGES, GENERATE, GENERATE_ARRAY)
streamed = pytest.mark.parametrize("ask", STREAMED, ids=lambda ask: ask.name)


def short_body(exchange: Exchange) -> None:
    """Announce a length, send less, close."""
    body = b"".join(exchange.answer.chunks)
    exchange.head(200, [("content-length", str(len(body)))])
    exchange.raw(body[:-1])
    exchange.close()


def unframed(exchange: Exchange) -> None:
    """Send everything, and let the end of the connection be the end of the body."""
    exchange.head(200, [("connection", "close")])
    exchange.raw(b"".join(exchange.answer.chunks))
    exchange.close()


def not_stored(proxy: Proxy, prompt: str, session: str, reason: str) -> None:
    """The step passed, for that reason, and there is no cassette."""
    [step] = steps_of(proxy.store, session)
    assert (step.tier, step.cassette) == ("passed", None)
    assert reason in step.reason
    assert cassettes(proxy.store, prompt) == []


@streamed
def test_a_stream_cut_in_a_chunk_is_cut_for_the_client(live: Proxy, stage: Stage, ask: Ask) -> None:
    """What came before the break arrives, then the connection breaks; nothing is stored."""
    stage.behaviour = behaviours.cut_in_chunk(2)
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.cut) == (200, True)
    assert got.body
    assert stage.said(prompt).startswith(got.body)
    not_stored(live, prompt, session, "broke off")


@streamed
def test_a_stream_cut_without_a_sign_is_not_stored(live: Proxy, stage: Stage, ask: Ask) -> None:
    """A body that ends with the connection looks whole on the wire: only the missing event tells."""
    stage.behaviour = behaviours.cut_in_event(3)
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.body.endswith(b'data: {"par')) == (200, True)
    not_stored(live, prompt, session, "before its terminal event")


@streamed
def test_a_stream_is_whole_once_its_terminal_event_came(
    live: Proxy, offline: Proxy, stage: Stage, ask: Ask
) -> None:
    """The socket dies before the last chunk: the client sees that, and the recording is whole."""
    stage.behaviour = behaviours.no_last_chunk()
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.cut, got.body) == (True, stage.said(prompt))
    [step] = steps_of(live.store, session)
    assert step.tier == "recorded"
    replayed = ask.once(offline, prompt)
    assert (replayed.status, replayed.cut, replayed.body) == (200, False, got.body)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_compressed_stream_is_whole_once_its_terminal_event_came(
    live: Proxy, offline: Proxy, stage: Stage, coding: Literal["gzip", "zstd"]
) -> None:
    """Its coding need not have ended, either; but for that event it is as cut as any other."""
    stage.behaviour = behaviours.encoded(coding, whole=False)
    streamed, unstreamed = (new_prompt(), new_prompt()), (new_prompt(), new_prompt())
    for ask, (prompt, session) in ((CHAT_SSE, streamed), (CHAT, unstreamed)):
        assert ask.once(live, prompt, headers={"x-rewind-session": session}).cut
    [step] = steps_of(live.store, streamed[1])
    assert step.tier == "recorded"
    assert CHAT_SSE.once(offline, streamed[0]).body == stage.said(streamed[0])
    not_stored(live, *unstreamed, "broke off")


@pytest.mark.parametrize("ask", WHOLE, ids=lambda ask: ask.name)
@pytest.mark.parametrize("behaviour", [short_body, behaviours.no_last_chunk()], ids=["short", "endless"])
def test_a_cut_whole_answer_is_not_stored(live: Proxy, stage: Stage, ask: Ask, behaviour: Behaviour) -> None:
    """What is no stream has no terminal event: when its end is missing, it is not complete."""
    stage.behaviour = behaviour
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert got.cut
    not_stored(live, prompt, session, "broke off")


@by_name
def test_a_body_that_ends_with_the_connection_is_stored_when_it_is_whole(
    live: Proxy, offline: Proxy, stage: Stage, ask: Ask
) -> None:
    """Without length and chunks, the answer itself says whether it is complete."""
    stage.behaviour = unframed
    prompt = new_prompt()
    got = ask.once(live, prompt)
    recorded(live.store, prompt)
    assert (got.body, ask.once(offline, prompt).body) == (stage.said(prompt), got.body)


@pytest.mark.parametrize("behaviour", [behaviours.cut_in_chunk(2), behaviours.no_last_chunk()])
def test_over_http2_a_cut_is_a_reset(live: Proxy, stage: Stage, behaviour: Behaviour) -> None:
    """A client that speaks HTTP/2 sees the break of an HTTP/1.1 provider too."""
    stage.behaviour = behaviour
    got = h2_client.post(live, OPENAI, CHAT_SSE.path, CHAT_SSE.body(new_prompt(), "m1", 100))
    assert (got.status, got.cut, got.body[:6]) == (200, True, b"data: ")


def test_a_provider_that_refuses_is_a_bad_gateway(start: Start, stopped: FakeProvider) -> None:
    """Nobody listens: mitmproxy answers 502, and nothing is stored."""
    prompt = new_prompt()
    with start(provider=stopped, settings={"session": "refused"}) as running:
        got = CHAT.once(running, prompt)
        assert got.status == 502
        not_stored(running, prompt, "refused", "broke off")


# A client that leaves


def leaving(gone: threading.Event, events: int | None) -> Behaviour:
    """Send some events (all, but no last chunk, for None), and notice when the connection is closed."""

    def behave(exchange: Exchange) -> None:
        if events != 0:
            exchange.head(200, [("transfer-encoding", "chunked")])
            for event in exchange.answer.chunks[:events]:
                exchange.chunk(event)
        exchange.stall()
        gone.set()

    return behave


@pytest.mark.parametrize("events", [0, 2])
def test_a_client_that_leaves_ends_the_call(live: Proxy, stage: Stage, events: int) -> None:
    """Before the answer or in the middle of it: the provider's connection ends, nothing is stored."""
    gone = threading.Event()
    stage.behaviour = leaving(gone, events)
    prompt, session = new_prompt(), new_prompt()
    with streaming(live, CHAT_SSE, prompt, {"x-rewind-session": session}) as stream:
        if events:
            stream.read_to(b"\n\n")
        until(lambda: stage.heard(prompt))
    assert gone.wait(15)
    not_stored(live, prompt, session, "broke off")


def test_a_client_that_leaves_after_the_terminal_event_has_had_it_all(
    live: Proxy, offline: Proxy, stage: Stage
) -> None:
    """Agents close once they have seen the end; the recording is whole."""
    gone = threading.Event()
    stage.behaviour = leaving(gone, None)
    prompt, session = new_prompt(), new_prompt()
    with streaming(live, CHAT_SSE, prompt, {"x-rewind-session": session}) as stream:
        got = stream.read_to(b"data: [DONE]\n\n")
    assert gone.wait(15)
    [step] = steps_of(live.store, session)
    assert step.tier == "recorded"
    assert CHAT_SSE.once(offline, prompt).body == got


# Errors

ERRORS: Mapping[str, tuple[Behaviour, int, str]] = {
    "429": (behaviours.error(429, retry_after=7), 429, "application/json"),
    "500 in HTML": (behaviours.html_error(500), 500, "text/html"),
    "529": (behaviours.error(529), 529, "application/json"),
    "404": (behaviours.error(404), 404, "application/json"),
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("ask", [CHAT, MESSAGES_SSE], ids=lambda ask: ask.name)
def test_an_error_passes_and_is_not_stored(live: Proxy, stage: Stage, kind: str, ask: Ask) -> None:
    """The client gets the provider's status, words and `retry-after`; no later request gets them."""
    stage.behaviour, status, content_type = ERRORS[kind]
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.headers["content-type"]) == (status, content_type)
    assert got.headers.get("retry-after") == ("7" if kind == "429" else None)
    not_stored(live, prompt, session, f"status {status}")
    stage.behaviour = Exchange.send
    assert ask.once(live, prompt).status == 200


@streamed
def test_an_error_in_band_is_not_stored(live: Proxy, stage: Stage, ask: Ask) -> None:
    """A stream with an error in it is no answer, though its status is 200 and its end is proper."""
    stage.behaviour = behaviours.error_in_band(2)
    prompt, session = new_prompt(), new_prompt()
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.cut) == (200, False)
    not_stored(live, prompt, session, "holds an error")


@pytest.mark.parametrize("ask", [CHAT_SSE, RESPONSES_SSE, MESSAGES_SSE], ids=lambda ask: ask.name)
def test_what_is_no_stream_is_no_answer_to_a_streamed_request(live: Proxy, stage: Stage, ask: Ask) -> None:
    """A login page with status 200 is passed on, and not stored as the answer."""
    stage.behaviour = behaviours.html_error(200)
    prompt, session = new_prompt(), new_prompt()
    assert ask.once(live, prompt, headers={"x-rewind-session": session}).status == 200
    not_stored(live, prompt, session, "error")


def test_errors_can_be_recorded(start: Start, stage: Stage) -> None:
    """With `record_errors` a whole error is kept, and replays with status, words and `retry-after`."""
    settings = {"record_errors": "true"}
    prompts = {kind: new_prompt() for kind in ERRORS}
    answers = {}
    with start(provider=stage.provider, settings=settings) as running:
        for kind, prompt in prompts.items():
            stage.behaviour = ERRORS[kind][0]
            answers[kind] = CHAT.once(running, prompt)
            [record] = recorded(running.store, prompt)
            assert record.answer.status == ERRORS[kind][1]
        stage.behaviour = short_error
        cut = new_prompt()
        assert CHAT.once(running, cut, headers={"x-rewind-session": "cut"}).cut
        not_stored(running, cut, "cut", "broke off")
        stage.behaviour = Exchange.send
        for kind, prompt in prompts.items():
            got, before = CHAT.once(running, prompt), answers[kind]
            assert (got.status, got.body) == (before.status, before.body)
            assert got.headers.get("retry-after") == before.headers.get("retry-after")
            assert got.headers["x-rewind"] == "replayed"


def short_error(exchange: Exchange) -> None:
    """An error that announces more than it sends."""
    body = json.dumps({"error": {"message": "out of order"}}).encode()
    exchange.head(500, [("content-length", str(len(body) + 5))])
    exchange.raw(body)
    exchange.close()
