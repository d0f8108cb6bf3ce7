"""`rewind_socket = serve`: turns on a model socket are recorded and replayed as the POSTs they stand for."""

from __future__ import annotations

import json
import socket as tcp
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import create_connection
from typing import Any

import h2.config  # type: ignore[import-untyped]  # version 4.1 has no types
import h2.connection  # type: ignore[import-untyped]
import h2.events  # type: ignore[import-untyped]
import pytest
from wsproto import events

from proxy.calls import OPENAI, RESPONSES, RESPONSES_SSE, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import cassettes, recorded, steps_of, until
from proxy.origins import CorporateProxy, Identity, Serve, _copy, origin
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.cli.provider.server import SocketExchange
from support.client import Client, tunnel
from support.proxies import Proxy, proxy
from support.websocket import Closed, Socket

TOOL: dict[str, Any] = {"type": "function", "name": "shell", "parameters": {"required": ["command"]}}


@pytest.fixture(scope="module")
def _serving(tmp_path_factory: pytest.TempPathFactory, _the_stage: Stage, confdir: Path) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("serving")
    settings = {"socket": "serve"}
    with proxy(folder, confdir, provider=_the_stage.provider, settings=settings, options=CONTROL) as running:
        yield running


@pytest.fixture
def serving(_serving: Proxy, stage: Stage) -> Proxy:
    """A proxy before the provider of `stage`, in mode `auto` until a test changes that."""
    tell(_serving, "set", "rewind_mode", "auto")
    return _serving


def mode(running: Proxy, name: str) -> None:
    """Set the mode of a proxy."""
    assert tell(running, "set", "rewind_mode", name).status == 200


def create(prompt: str, previous: str | None = None, **more: Any) -> dict[str, Any]:
    """A frame that asks for a response, as Codex writes it."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    frame = {"type": "response.create", "model": "m1", "stream": True, "input": [item], **more}
    return frame if previous is None else {**frame, "previous_response_id": previous}


def connect(running: Proxy, session: str, **more: Any) -> Socket:
    """A socket of a session."""
    return Socket(running, headers={"x-rewind-session": session}, **more)


def said(got: list[dict[str, Any]]) -> str:
    """The text of an answer."""
    return "".join(event["delta"] for event in got if event["type"] == "response.output_text.delta")


def response_id(got: list[dict[str, Any]]) -> str:
    """The id of an answer."""
    return str(got[-1]["response"]["id"])


def in_stream(body: bytes) -> list[Any]:
    """The events of a stream."""
    lines = body.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def record(running: Proxy, prompt: str, **more: Any) -> list[dict[str, Any]]:
    """Record one turn over a socket."""
    with connect(running, new_prompt()) as socket:
        got = socket.turn(create(prompt, **more))
    recorded(running.store, prompt)
    return got


# -- recording and replaying -------------------------------------------------------------------------------


@pytest.mark.parametrize("recording_mode", ["auto", "record"])
def test_a_turn_is_recorded_and_replayed(serving: Proxy, stage: Stage, recording_mode: str) -> None:
    """The same events in the same order, and the provider hears nothing of the replay."""
    mode(serving, recording_mode)
    prompt, session = new_prompt(), new_prompt()
    got = record(serving, prompt)
    assert said(got).startswith("You said: Tell me of")
    mode(serving, "replay")
    heard = len(stage.provider.requests)
    with connect(serving, session) as socket:
        assert socket.status == 101
        assert socket.turn(create(prompt)) == got
    upgrade, step = steps_of(serving.store, session, 2)
    assert (upgrade.cls, upgrade.status) == ("socket", 101)
    assert (step.cls, step.method, step.path, step.tier) == ("model", "POST", "/v1/responses", "exact")
    assert len(stage.provider.requests) == heard


def test_frames_are_the_providers_own(serving: Proxy, stage: Stage) -> None:
    """The client gets each frame byte for byte as the provider sent it; so does a replay."""
    prompt = new_prompt()
    sent: list[str] = []

    def oddly(exchange: Exchange) -> None:
        if isinstance(exchange, SocketExchange):
            for chunk in exchange.answer.chunks:
                event = json.loads(chunk.decode().partition("data: ")[2])
                sent.append(json.dumps({"ω": 1.50, **event}, indent=1, ensure_ascii=False))
                exchange.socket.send(sent[-1])
        else:
            exchange.send()

    stage.behaviour = oddly
    with connect(serving, new_prompt()) as socket:
        socket.send(create(prompt))
        live = [socket.receive()]
        while "response.completed" not in str(live[-1]):
            live.append(socket.receive())
    assert live == sent
    recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt()) as socket:
        socket.send(create(prompt))
        assert [socket.receive() for _ in sent] == sent


def test_frames_come_as_they_are_sent(serving: Proxy, stage: Stage) -> None:
    """A frame does not wait for the next one."""
    stage.behaviour = lambda exchange: exchange.send(0.2 if isinstance(exchange, SocketExchange) else 0)
    with connect(serving, new_prompt()) as socket:
        socket.send(create(new_prompt()))
        begun = time.monotonic()
        socket.event()
        first = time.monotonic() - begun
        socket.rest()
        assert time.monotonic() - begun > first + 1.5


def test_a_conversation_goes_on_from_its_last_response(serving: Proxy, stage: Stage) -> None:
    """The turn after a tool call replays from what it is stored as: the whole conversation."""
    prompt, session = f"Please run `echo hi` for {new_prompt()}", new_prompt()

    def talk() -> tuple[str, list[dict[str, Any]]]:
        with connect(serving, session) as socket:
            first = socket.turn(create(prompt, tools=[TOOL]))
            call = next(e["item"] for e in first if e["type"] == "response.output_item.done")
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "hi"}
            frame = create("", response_id(first), tools=[TOOL]) | {"input": [result]}
            return call["name"], socket.turn(frame)

    name, second = talk()
    assert (name, said(second)) == ("shell", "The tool answered: hi")
    _, follow_up = recorded(serving.store, prompt, 2)
    assert "previous_response_id" not in follow_up.request.params
    mode(serving, "replay")
    heard = len(stage.provider.requests)
    assert talk() == ("shell", second)
    assert len(stage.provider.requests) == heard


def test_a_socket_and_post_share_their_recordings(serving: Proxy) -> None:
    """What was recorded over one way answers over the other."""
    over_socket, over_post = new_prompt(), new_prompt()
    got = record(serving, over_socket)
    posted = RESPONSES_SSE.once(serving, over_post)
    recorded(serving.store, over_post)
    mode(serving, "replay")
    body = {name: value for name, value in create(over_socket).items() if name != "type"}
    with Client(serving, OPENAI) as client:
        replayed = client.post("/v1/responses", body)
    assert replayed.headers["content-type"] == "text/event-stream"
    assert in_stream(replayed.body) == got
    with connect(serving, new_prompt()) as socket:
        assert socket.turn({**create(over_post), "max_output_tokens": 100}) == in_stream(posted.body)


def test_a_whole_answer_is_served_as_events(serving: Proxy) -> None:
    """A recording of a POST without a stream answers on a socket, which has no other form."""
    prompt = new_prompt()
    whole = RESPONSES.once(serving, prompt).json
    recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt()) as socket:
        got = socket.turn({**create(prompt), "max_output_tokens": 100})
    assert isinstance(whole, dict)
    assert got[0]["type"] == "response.created"
    assert response_id(got) == whole["id"]


@pytest.mark.parametrize("how", ["auto", "record", "replay"])
def test_a_warm_up_is_answered_and_never_recorded(serving: Proxy, stage: Stage, how: str) -> None:
    """The provider hears of it only where every turn goes to it; the turn after it is one like any other."""
    prompt, session = new_prompt(), new_prompt()
    expected = record(serving, prompt, instructions=prompt)
    mode(serving, how)
    heard = len(stage.heard(prompt))
    with connect(serving, session) as socket:
        warm = socket.turn(create("", input=[], instructions=prompt, generate=False))
        assert [event["type"] for event in warm] == ["response.created", "response.completed"]
        assert warm[-1]["response"]["output"] == []
        assert len(stage.heard(prompt)) - heard == (1 if how == "record" else 0)
        got = socket.turn(create(prompt, response_id(warm), instructions=prompt))
        assert said(got) == said(expected)
    _, step = steps_of(serving.store, session, 2)
    assert step.tier == ("recorded" if how == "record" else "exact")


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


# -- replay ------------------------------------------------------------------------------------------------


def test_a_miss_is_refused(serving: Proxy, stage: Stage) -> None:
    """An error event with status 400, the provider's error JSON and our text; the socket stays open."""
    prompt = new_prompt()
    got = record(serving, prompt)
    mode(serving, "replay")
    heard, session = len(stage.provider.requests), new_prompt()
    with connect(serving, session) as socket:
        [error] = socket.turn(create(new_prompt()))
        assert (error["type"], error["status"]) == ("error", 400)
        assert error["error"]["message"].startswith("rewind: no recording. ")
        assert error["error"]["type"] == "invalid_request_error"
        assert socket.turn(create(prompt)) == got
    steps = steps_of(serving.store, session, 3)
    assert [step.tier for step in steps[1:]] == ["miss", "exact"]
    assert len(stage.provider.requests) == heard


NEVER_SENT = [
    "no JSON at all",
    "[1, 2]",
    '{"type": "response.create", "model": "a", "model": "b"}',
    '{"type": "response.create", "temperature": NaN}',
    '{"type": "session.update"}',
    '{"no": "type"}',
    json.dumps(create("x", "resp_that_nobody_gave")),
    json.dumps(create("x", generate="perhaps")),
    json.dumps(create("x", previous_response_id=["x"])),
    "[" * 100_000,
]


@pytest.mark.parametrize("frame", NEVER_SENT, ids=lambda frame: frame[:40])
def test_in_replay_no_frame_goes_anywhere(serving: Proxy, stage: Stage, frame: str) -> None:
    """Whatever a frame holds, it is answered with an error here."""
    mode(serving, "replay")
    heard = len(stage.provider.requests)
    with connect(serving, new_prompt()) as socket:
        [error] = socket.turn(frame)
        assert error["status"] == 400
        assert "rewind: no recording" in error["error"]["message"]
    assert len(stage.provider.requests) == heard


def test_a_binary_frame_closes_the_socket_in_replay(serving: Proxy, stage: Stage) -> None:
    """There is no recording of one, and no event to say so."""
    mode(serving, "replay")
    heard = len(stage.provider.requests)
    with connect(serving, new_prompt()) as socket:
        socket.send(b"\x00\x01")
        assert socket.receive() == Closed(1003, "rewind: no recording of binary frames")
    assert len(stage.provider.requests) == heard


@pytest.mark.parametrize("frame", [b"\x00\x01", "no JSON", '{"type": "session.update"}'])
def test_in_live_modes_odd_frames_pass(serving: Proxy, stage: Stage, frame: str | bytes) -> None:
    """The provider judges them. Nobody can tell then which answer is whose: nothing more is recorded."""
    prompt, session = new_prompt(), new_prompt()
    with connect(serving, session) as socket:
        socket.send(frame)
        [error] = socket.rest()
        assert error["error"]["message"] == "The frame is no response.create."
        assert socket.turn(create(prompt))[-1]["type"] == "response.completed"
    _, step = steps_of(serving.store, session, 2)
    assert step.tier == "passed"
    assert "on this socket before" in step.reason
    assert cassettes(serving.store, prompt) == []


def test_an_unknown_response_is_the_providers_to_judge(serving: Proxy, stage: Stage) -> None:
    """In live modes the frame goes as it is, and the provider's error comes back."""
    with connect(serving, new_prompt()) as socket:
        [error] = socket.turn(create(new_prompt(), "resp_that_nobody_gave"))
    assert error["error"]["code"] == "previous_response_not_found"


def test_replay_mode_ends_an_open_socket(serving: Proxy, stage: Stage) -> None:
    """When the mode changes while a socket to the provider is open, nothing more goes over it."""
    with connect(serving, new_prompt()) as socket:
        socket.turn(create(new_prompt()))
        mode(serving, "replay")
        heard = len(stage.provider.requests)
        socket.send(create(new_prompt()))
        assert socket.receive() == Closed(1012, "rewind: replay mode was set")
    assert len(stage.provider.requests) == heard


def test_a_client_can_ask_for_replay_mode(serving: Proxy, stage: Stage) -> None:
    """`x-rewind-mode: replay` on the upgrade holds for the whole socket."""
    heard = len(stage.provider.requests)
    with Socket(serving, headers={"x-rewind-mode": "replay"}) as socket:
        [error] = socket.turn(create(new_prompt()))
        assert error["status"] == 400
    assert len(stage.provider.requests) == heard


def test_two_sockets_do_not_mix(serving: Proxy, stage: Stage) -> None:
    """Turns under way at once on two sockets are recorded each under its own request."""
    stage.behaviour = lambda exchange: exchange.send(0.02 if isinstance(exchange, SocketExchange) else 0)
    prompts = [new_prompt(), new_prompt()]
    with connect(serving, new_prompt()) as one, connect(serving, new_prompt()) as other:
        one.send(create(prompts[0]))
        other.send(create(prompts[1]))
        live = [one.rest(), other.rest()]
    for prompt in prompts:
        recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt()) as socket:
        assert [socket.turn(create(prompt)) for prompt in prompts] == live


def test_turns_sent_at_once_are_taken_one_by_one(serving: Proxy, stage: Stage) -> None:
    """A frame that comes while a turn is under way waits for its end, as with the provider."""
    prompts = [new_prompt() for _ in range(3)]
    with connect(serving, new_prompt()) as socket:
        for prompt in prompts:
            socket.send(create(prompt))
        live = [socket.rest() for _ in prompts]
    for prompt in prompts:
        recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt()) as socket:
        assert [socket.turn(create(prompt)) for prompt in prompts] == live


def test_the_proxy_user_names_the_session(serving: Proxy) -> None:
    """Turns of a socket belong to the session of its upgrade."""
    session = new_prompt().replace(" ", "-")
    with Socket(serving, user=session) as socket:
        socket.turn(create(new_prompt()))
    assert [step.cls for step in steps_of(serving.store, session, 2)] == ["socket", "model"]


def test_a_paced_answer_takes_its_time(
    serving: Proxy, stage: Stage, start: Start, stopped: FakeProvider
) -> None:
    """`rewind_pace = recorded`: each frame comes when it came."""
    prompt = new_prompt()
    stage.behaviour = lambda exchange: exchange.send(0.1 if isinstance(exchange, SocketExchange) else 0)
    got = record(serving, prompt)
    settings = {"socket": "serve", "mode": "replay", "pace": "recorded"}
    with start(provider=stopped, settings=settings, store=serving.store) as running:
        begun = time.monotonic()
        with connect(running, new_prompt()) as socket:
            assert socket.turn(create(prompt)) == got
        took = time.monotonic() - begun
        assert took >= 0.1 * (len(got) - 1)


def test_faults_on_purpose_happen_on_sockets_too(start: Start) -> None:
    """A turn of a socket is a turn: it fails, and it is cut, as asked."""
    settings = {"socket": "serve", "fault": "turn=1:429=3; turn=2:cut-after=4"}
    with FakeProvider() as provider, start(provider=provider, settings=settings) as running:
        with connect(running, "faults") as socket:
            [error] = socket.turn(create(new_prompt()))
            assert (error["status"], error["headers"]["retry-after"]) == (429, "3")
            socket.send(create(new_prompt()))
            got = [socket.receive() for _ in range(5)]
        assert [isinstance(each, Closed) for each in got] == [False] * 4 + [True]


def test_credentials_of_a_socket_are_not_stored(serving: Proxy) -> None:
    """The key of the upgrade is redacted wherever it stands in a frame."""
    prompt, key = new_prompt(), f"key-{new_prompt().split()[-1]}"
    with Socket(serving, headers={"authorization": f"Bearer {key}"}) as socket:
        socket.turn(create(f"{prompt} {key}"))
    recorded(serving.store, prompt)
    files = [path for path in serving.store.parent.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if key.encode() in path.read_bytes()]


def test_strangers_get_nothing_at_our_origin(serving: Proxy) -> None:
    """Another process that finds the loopback port has no token, and is cut off."""
    with connect(serving, new_prompt()) as socket:
        port = int(serving.child.output.rpartition("server connect 127.0.0.1:")[2].split()[0].split("]")[0])
        socket.turn(create(new_prompt()))
    with create_connection(("127.0.0.1", port), timeout=5) as stranger:
        stranger.sendall(
            b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert stranger.recv(100) == b""


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
