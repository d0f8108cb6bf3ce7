"""`rewind_socket = serve`: turns on a model socket are recorded and replayed as the POSTs they stand for."""

from __future__ import annotations

import json
import time
from socket import create_connection
from typing import Any

import pytest

from proxy.calls import OPENAI, RESPONSES, RESPONSES_SSE, new_prompt
from proxy.conftest import Stage, Start
from proxy.looking import cassettes, recorded, steps_of
from proxy.socket_calls import TOOL, connect, create, in_stream, mode, record, response_id, said
from rewind_proxy.cli.provider import Behaviour, Exchange, FakeProvider
from rewind_proxy.cli.provider.server import SocketExchange
from rewind_proxy.cli.provider.sockets import data_of
from support.client import Client
from support.proxies import Proxy
from support.websocket import Closed, Socket

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


def test_a_subprotocol_is_agreed_on(serving: Proxy) -> None:
    """The client hears the first that it offers, though one of that length is masked as a key would be."""
    offered = ["a-subprotocol-of-many-words", "token"]
    with connect(serving, new_prompt(), subprotocols=offered) as socket:
        assert (socket.status, socket.subprotocol) == (101, offered[0])
        assert socket.turn(create(new_prompt()))[-1]["type"] == "response.completed"


def lanes_side_by_side(count: int) -> Behaviour:
    """Answer no frame before so many have come; then all at once, event by event, each in its lane."""
    asked: list[SocketExchange] = []

    def behave(exchange: Exchange) -> None:
        if not isinstance(exchange, SocketExchange):
            exchange.send()
            return
        asked.append(exchange)
        if len(asked) == count:
            for events in zip(*(each.answer.chunks for each in asked), strict=True):
                for each, event in zip(asked, events, strict=True):
                    lane = json.loads(each.request.decoded)["stream_id"]
                    each.socket.send(json.dumps({**json.loads(data_of(event)), "stream_id": lane}))

    return behave


def by_lane(socket: Socket, count: int) -> dict[str, list[dict[str, Any]]]:
    """What is said in so many lanes until each has ended, without the lane's name."""
    heard: dict[str, list[dict[str, Any]]] = {}
    ended = 0
    while ended < count:
        event = socket.event()
        ended += event["type"] in ("response.completed", "error")
        heard.setdefault(event.pop("stream_id", ""), []).append(event)
    return heard


def test_lanes_go_side_by_side(serving: Proxy, stage: Stage) -> None:
    """`stream_id`: turns of several lanes do not wait for each other, and replay under other names."""
    stage.behaviour = lanes_side_by_side(2)
    one, other, missing = new_prompt(), new_prompt(), new_prompt()
    with connect(serving, new_prompt()) as socket:
        socket.send(create(one, stream_id="a"))
        socket.send(create(other, stream_id="b"))
        live = by_lane(socket, 2)
    for prompt in (one, other):
        recorded(serving.store, prompt)
    mode(serving, "replay")
    with connect(serving, new_prompt()) as socket:
        assert socket.turn(create(one)) == live["a"]
        for lane, prompt in (("x", other), ("y", missing)):
            socket.send(create(prompt, stream_id=lane))
        replayed = by_lane(socket, 2)
    assert replayed["x"] == live["b"]
    assert [event["type"] for event in replayed["y"]] == ["error"]


def test_a_provider_that_does_not_say_whose_an_answer_is(serving: Proxy, stage: Stage) -> None:
    """Nothing of it is recorded, and nothing waits for what has no name."""
    stage.behaviour = lambda exchange: exchange.send(0.01 if isinstance(exchange, SocketExchange) else 0)
    prompts = [new_prompt() for _ in range(3)]
    with connect(serving, session := new_prompt()) as socket:
        for prompt, lane in zip(prompts, "aba", strict=True):
            socket.send(create(prompt, stream_id=lane))
        for _ in prompts:
            assert socket.rest()[-1]["type"] == "response.completed"
    assert [step.tier for step in steps_of(serving.store, session, 4)[1:]] == ["passed"] * 3
    assert [cassettes(serving.store, prompt) for prompt in prompts] == [[], [], []]


@pytest.mark.parametrize("asked", [{}, {"stream_id": "a"}], ids=["none asked", "one asked"])
def test_a_provider_with_other_lanes(serving: Proxy, stage: Stage, asked: dict[str, str]) -> None:
    """With one turn under way it is clear whose an event is, unless two names say otherwise."""

    def behave(exchange: Exchange) -> None:
        if isinstance(exchange, SocketExchange):
            for chunk in exchange.answer.chunks:
                named = {} if asked else {"stream_id": "the gateway's"}
                exchange.socket.send(json.dumps({**json.loads(data_of(chunk)), **named}))
        else:
            exchange.send()

    stage.behaviour = behave
    prompt = new_prompt()
    with connect(serving, new_prompt()) as socket:
        assert socket.turn(create(prompt, **asked))[-1]["type"] == "response.completed"
    recorded(serving.store, prompt)


def test_the_proxy_user_names_the_session(serving: Proxy) -> None:
    """Turns of a socket belong to the session of its upgrade."""
    session = new_prompt().replace(" ", "-")
    with Socket(serving, user=session) as socket:
        socket.turn(create(new_prompt()))
    assert [step.cls for step in steps_of(serving.store, session, 2)] == ["socket", "model"]


def test_a_paced_answer_takes_its_time(
    serving: Proxy, stage: Stage, start: Start, stopped: FakeProvider
) -> None:
    """`rewind_pace = recorded`: each frame comes when it came. The socket itself is no call of its own."""
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
        ended = running.stop()
    assert "1 call: 1 exact" in ended.output
    assert "passed on" not in ended.output


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
