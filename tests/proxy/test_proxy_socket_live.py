"""Served sockets in live modes: what the provider hears, and what goes wrong (`rewind_socket = serve`)."""

from __future__ import annotations

import json
import socket as tcp
import threading
import time
from contextlib import suppress
from pathlib import Path
from socket import create_connection

import h2.config  # type: ignore[import-untyped]  # version 4.1 has no types
import h2.connection  # type: ignore[import-untyped]
import h2.events  # type: ignore[import-untyped]
import pytest
from wsproto import events

from proxy.calls import OPENAI, RESPONSES_SSE, fake_credential, new_prompt
from proxy.conftest import Stage, Start, tell
from proxy.looking import cassettes, recorded, steps_of, until
from proxy.origins import CorporateProxy, Identity, Serve, _copy, origin
from proxy.socket_calls import connect, create, mode, record, response_id, said
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.provider.server import SocketExchange
from support.client import tunnel
from support.proxies import Proxy
from support.websocket import Closed, Socket

# -- the provider's side -----------------------------------------------------------------------------------


def test_the_provider_hears_the_clients_frames_unchanged(serving: Proxy, stage: Stage) -> None:
    """Where the provider knows what a frame goes on from, the frame goes as it is, odd spelling included."""
    prompt = new_prompt()
    with connect(serving, new_prompt()) as socket:
        text = json.dumps(create(prompt), indent=2)
        first = socket.turn(text)
        further = json.dumps(create(f"More, {prompt}", response_id(first)), indent=2)
        assert said(socket.turn(further)).startswith("You said: More,")
    assert [request.decoded.decode() for request in stage.heard(prompt)] == [text, further]


def test_a_live_turn_after_a_replayed_one_says_what_it_goes_on_from(serving: Proxy, stage: Stage) -> None:
    """The provider never gave the recorded answer: it gets the conversation, not a reference to it."""
    prompt, further = new_prompt(), new_prompt()
    record(serving, prompt)
    with connect(serving, new_prompt()) as socket:
        first = socket.turn(create(prompt))
        assert not stage.heard(further)
        got = socket.turn(create(further, response_id(first)))
    assert "3 messages" in said(got)
    [request] = stage.heard(further)
    frame = json.loads(request.decoded)
    assert frame["type"] == "response.create"
    assert "previous_response_id" not in frame
    assert prompt in json.dumps(frame["input"])


def test_hits_need_no_provider(serving: Proxy, start: Start, stopped: FakeProvider) -> None:
    """In `auto` the provider's socket is opened for the first miss, and a miss without it is an error."""
    prompt = new_prompt()
    got = record(serving, prompt)
    settings = {"socket": "serve"}
    with (
        start(provider=stopped, settings=settings, store=serving.store) as running,
        connect(running, new_prompt()) as socket,
    ):
        assert socket.turn(create(prompt)) == got
        [error] = socket.turn(create(new_prompt()))
        assert (error["type"], error["status"]) == ("error", 502)


def test_the_upgrade_reaches_the_provider(serving: Proxy, stage: Stage) -> None:
    """Path, query, key and the client's own headers; nothing of ours; its offer of compression too."""
    mode(serving, "record")
    headers = {
        "authorization": "Bearer no-key",
        "openai-beta": "responses_websockets=1",
        "x-rewind-session": "s",
    }
    with Socket(serving, "/v1/responses?a=1", headers=headers, compress=True) as socket:
        assert socket.headers["x-models-etag"] == '"fake"'
        socket.turn(create(new_prompt()))
    upgrade = next(
        r for r in reversed(stage.provider.requests) if r.method == "GET" and "/responses" in r.path
    )
    assert (upgrade.path, upgrade.query) == ("/v1/responses", "a=1")
    assert upgrade.header("authorization") == "Bearer no-key"
    assert upgrade.header("openai-beta") == "responses_websockets=1"
    assert upgrade.header("sec-websocket-extensions").startswith("permessage-deflate")
    assert not any("rewind" in name for name, _ in upgrade.headers)


@pytest.mark.parametrize("status", [401, 426])
def test_in_record_mode_the_answer_to_the_upgrade_is_the_providers(
    serving: Proxy, stage: Stage, status: int
) -> None:
    """A refused key is a refused key: status, headers and body come from the provider."""
    mode(serving, "record")
    body = b'{"error": {"message": "no"}}'
    stage.behaviour = lambda exchange: exchange.whole(
        status, "application/json", body, (("retry-after", "7"),)
    )
    with connect(serving, session := new_prompt()) as socket:
        assert (socket.status, socket.body, socket.headers["retry-after"]) == (status, body, "7")
    [step] = steps_of(serving.store, session)
    assert (step.tier, step.status) == ("passed", status)


@pytest.mark.parametrize("body", [b"", b"no"], ids=["empty", "with a body"])
def test_a_refused_upgrade_is_masked_for_others_alone(start: Start, tmp_path: Path, body: bytes) -> None:
    """The client gets the provider's cookie; a saved flow does not hold it."""
    cookie, saved = fake_credential(), tmp_path / "flows"

    def refuses(exchange: Exchange) -> None:
        exchange.whole(401, "text/plain", body, (("set-cookie", f"a={cookie}"),))

    settings = {"socket": "serve", "mode": "record"}
    with (
        FakeProvider(refuses) as provider,
        start(provider=provider, settings=settings, options=["-w", str(saved)]) as running,
    ):
        with connect(running, "refused") as socket:
            assert (socket.status, socket.headers["set-cookie"]) == (401, f"a={cookie}")
        running.stop()
    assert b"401" in saved.read_bytes()
    assert cookie.encode() not in saved.read_bytes()


def test_an_upgrade_that_fails_late_is_the_error_of_its_turn(serving: Proxy, stage: Stage) -> None:
    """In `auto` the socket is open by then: the provider's status, headers and error come as an event."""
    body = b'{"error": {"message": "slow down"}}'
    stage.behaviour = lambda exchange: exchange.whole(429, "application/json", body, (("retry-after", "7"),))
    with connect(serving, session := new_prompt()) as socket:
        [error] = socket.turn(create(new_prompt()))
    assert (error["status"], error["error"]["message"]) == (429, "slow down")
    assert error["headers"]["retry-after"] == "7"
    _, step = steps_of(serving.store, session, 2)
    assert step.tier == "passed"
    assert "429" in step.reason


def test_a_provider_without_sockets_gets_posts(start: Start) -> None:
    """The client is told to ask anew, and then sent to POST at once."""

    def no_sockets(exchange: Exchange) -> None:
        if exchange.request.is_model_socket:
            exchange.whole(404, "text/plain", b"no such thing")
        else:
            exchange.send()

    settings = {"socket": "serve"}
    with FakeProvider(no_sockets) as provider, start(provider=provider, settings=settings) as running:
        with connect(running, "first") as socket:
            socket.send(create(new_prompt()))
            assert socket.receive() == Closed(1012, "rewind: the provider has no WebSockets")
        with connect(running, "second") as socket:
            assert socket.status == 426
        assert RESPONSES_SSE.once(running, new_prompt()).status == 200


def test_pings_are_answered_on_both_sides(serving: Proxy, stage: Stage) -> None:
    """The client's while a turn is awaited, the provider's before its answer."""

    def pings(exchange: Exchange) -> None:
        if isinstance(exchange, SocketExchange):
            exchange.socket.ping()
        exchange.send()

    stage.behaviour = pings
    with connect(serving, new_prompt()) as socket:
        socket.ping(b"hello")
        pong = socket.receive()
        assert isinstance(pong, events.Pong)
        assert bytes(pong.payload) == b"hello"
        assert socket.turn(create(new_prompt()))[-1]["type"] == "response.completed"


def test_compressed_frames_are_recorded_as_text(serving: Proxy) -> None:
    """The provider compresses; what is stored is what the events say."""
    prompt = new_prompt()
    with connect(serving, new_prompt(), compress=True) as socket:
        got = socket.turn(create(prompt))
    recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt(), compress=True) as socket:
        assert socket.turn(create(prompt)) == got


# -- what goes wrong ---------------------------------------------------------------------------------------


def cut(exchange: Exchange) -> None:
    """Send three events of a turn, then close the socket."""
    if isinstance(exchange, SocketExchange):
        for chunk in exchange.answer.chunks[:3]:
            exchange.chunk(chunk)
        exchange.socket.close(1011, "broken")
    else:
        exchange.send()


def failing(exchange: Exchange) -> None:
    """Answer a turn with an error."""
    if isinstance(exchange, SocketExchange):
        error = {"type": "error", "status": 400, "error": {"message": "no", "code": "bad"}}
        exchange.socket.send(json.dumps(error))
    else:
        exchange.send()


def test_a_turn_that_breaks_off_is_not_stored(serving: Proxy, stage: Stage) -> None:
    """The client gets what came, and the provider's close with its code and reason."""
    stage.behaviour = cut
    prompt, session = new_prompt(), new_prompt()
    with connect(serving, session) as socket:
        socket.send(create(prompt))
        got = [socket.receive() for _ in range(4)]
    assert got[-1] == Closed(1011, "broken")
    _, step = steps_of(serving.store, session, 2)
    assert step.tier == "passed"
    assert "the provider closed the socket (1011)" in step.reason
    assert cassettes(serving.store, prompt) == []


def test_a_client_that_leaves_ends_its_turn(serving: Proxy, stage: Stage) -> None:
    """Nothing is stored, and the provider's socket is closed too."""
    left: list[str] = []

    def slowly(exchange: Exchange) -> None:
        if isinstance(exchange, SocketExchange):
            exchange.chunk(exchange.answer.chunks[0])
            left.extend(str(frame) for frame in exchange.socket.frames())
            left.append("closed")
        else:
            exchange.send()

    stage.behaviour = slowly
    prompt, session = new_prompt(), new_prompt()
    with connect(serving, session) as socket:
        socket.send(create(prompt))
        socket.event()
        socket.close(1001)
    assert until(lambda: left) == ["closed"]
    _, step = steps_of(serving.store, session, 2)
    assert (step.tier, step.reason) == ("passed", "the client closed the socket (1001)")
    assert cassettes(serving.store, prompt) == []


def test_a_client_that_leaves_a_stall_is_not_waited_for(start: Start) -> None:
    """However much the provider has said by then, its socket is closed long before the stall is over."""
    asked, left = threading.Event(), threading.Event()

    def much(exchange: Exchange) -> None:
        if isinstance(exchange, SocketExchange):
            for _ in range(200):
                exchange.chunk(exchange.answer.chunks[0])
            asked.set()
            for _ in exchange.socket.frames():
                pass
            left.set()
        else:
            exchange.send()

    settings = {"socket": "serve", "fault": "turn=1:stall=120"}
    with FakeProvider(much) as provider, start(provider=provider, settings=settings) as running:
        with connect(running, "stalled") as socket:
            socket.send(create(new_prompt()))
            assert asked.wait(15)
        assert left.wait(15)
        _, step = steps_of(running.store, "stalled", 2)
        assert step.tier == "passed"


def test_an_error_is_relayed_and_not_stored(serving: Proxy, stage: Stage) -> None:
    """The socket stays open, and the next turn is recorded."""
    stage.behaviour = failing
    bad, good, session = new_prompt(), new_prompt(), new_prompt()
    with connect(serving, session) as socket:
        [error] = socket.turn(create(bad))
        assert error["error"]["code"] == "bad"
        stage.behaviour = Exchange.send
        socket.turn(create(good))
    recorded(serving.store, good)
    assert cassettes(serving.store, bad) == []
    assert [step.tier for step in steps_of(serving.store, session, 3)] == ["passed", "passed", "recorded"]


def test_a_fault_of_ours_lets_the_turn_pass(serving: Proxy, stage: Stage) -> None:
    """In live modes the client has its answer all the same; in replay it is refused."""
    prompt, session = new_prompt(), new_prompt()
    with connect(serving, session) as socket:
        tell(serving, "breaks", "engine._model", "1")
        assert socket.turn(create(prompt))[-1]["type"] == "response.completed"
        _, step = steps_of(serving.store, session, 2)
        assert step.tier == "failed"
        assert cassettes(serving.store, prompt) == []
    mode(serving, "replay")
    heard = len(stage.provider.requests)
    with connect(serving, new_prompt()) as socket:
        tell(serving, "breaks", "engine._model", "1")
        [error] = socket.turn(create(prompt))
    assert "rewind: no recording. Rewind failed" in error["error"]["message"]
    assert len(stage.provider.requests) == heard


# -- other ways --------------------------------------------------------------------------------------------


def onward(provider: FakeProvider) -> Serve:
    """Hands connections on to a provider."""

    def serve(connection: tcp.socket) -> None:
        with create_connection(("127.0.0.1", provider.port)) as plain:
            back = threading.Thread(target=_copy, args=(plain, connection), daemon=True)
            back.start()
            _copy(connection, plain)
            back.join()

    return serve


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
def test_the_provider_is_asked_through_a_corporate_proxy(start: Start, tmp_path: Path, trusted: bool) -> None:
    """With TLS, and only if its certificate is trusted, as mitmproxy's options say."""
    identity = Identity.make(tmp_path / "company", OPENAI)
    other = Identity.make(tmp_path / "other", OPENAI)
    with (
        FakeProvider() as provider,
        origin(onward(provider), identity) as secured,
        CorporateProxy({OPENAI: secured}).running() as corporate,
    ):
        ca = (identity if trusted else other).ca
        options = ["--mode", f"upstream:http://127.0.0.1:{corporate.port}"]
        options += ["--set", f"ssl_verify_upstream_trusted_ca={ca}", "--set", "upstream_auth=me:secret"]
        with start(settings={"socket": "serve"}, options=options) as running:
            with connect(running, new_prompt()) as socket:
                got = socket.turn(create(new_prompt()))
            assert running.sockets.outward() == []
    [asked] = corporate.asked
    assert asked.startswith(b"CONNECT api.openai.com:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in asked
    assert got[-1].get("status") == (None if trusted else 502)
    assert len(provider.requests) == (2 if trusted else 0)


def test_sockets_over_http2_end_at_once(serving: Proxy) -> None:
    """mitmproxy does not offer them (RFC 8441), and a client that asks all the same does not hang."""
    _, raw = tunnel(serving, OPENAI, 443)
    context = serving.trust()
    context.set_alpn_protocols(["h2"])
    with raw, context.wrap_socket(raw, server_hostname=OPENAI) as connection:
        client = h2.connection.H2Connection(h2.config.H2Configuration(validate_outbound_headers=False))
        client.initiate_connection()
        pseudo = {"method": "CONNECT", "protocol": "websocket", "scheme": "https", "authority": OPENAI}
        fields = [(f":{name}", value) for name, value in pseudo.items()]
        client.send_headers(1, [*fields, (":path", "/v1/responses")])
        connection.sendall(client.data_to_send())
        begun = time.monotonic()
        seen: list[object] = []
        with suppress(ConnectionError):
            while received := connection.recv(1 << 16):
                seen += client.receive_data(received)
    assert time.monotonic() - begun < 1
    assert any(isinstance(event, h2.events.ConnectionTerminated) for event in seen)
