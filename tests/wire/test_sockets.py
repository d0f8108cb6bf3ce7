"""Frames of a model socket, and the requests and answers of POST that they stand for (DESIGN §9).

The frames of Codex are excerpts of captured ones: structure, member names and ids as sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, JsonValue, Target
from rewind_proxy.wire import ADAPTERS
from rewind_proxy.wire.socket_answers import (
    AnswerEvents,
    Player,
    error_frame,
    event_of,
    in_lane,
    is_terminal,
    refusal_frame,
    sse_of,
    warm_up_answer,
)
from rewind_proxy.wire.sockets import Chain, Create, FullRequest, OtherFrame, UnreadableFrame, read_frame

PASSTHROUGH = "internal_chat_message_metadata_passthrough"
COMMON: JsonObject = {
    "model": "gpt-6.2-sol",
    "stream": True,
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low", "context": "all_turns"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "01a22bcf-1dc9-7940-8476-544d5e342f59",
    "text": {"verbosity": "low"},
    "client_metadata": {"x-codex-ws-stream-request-start-ms": "1796031323915", "turn_id": ""},
}
TOOLS: JsonValue = {
    "type": "additional_tools",
    "id": "at_01a22bcf-1f33-7aa0-a4ac-e9ed9f9ac4b6",
    "role": "developer",
    "tools": [{"type": "custom", "name": "exec"}],
}
DEVELOPER: JsonValue = {
    "type": "message",
    "id": "msg_01a22bcf-1f33-7aa0-a4ac-e9fc124bfb5a",
    "role": "developer",
    "content": [{"type": "input_text", "text": "Be brief."}],
    PASSTHROUGH: {"create_time": 1796031323.9554546, "content_item_kinds": ["model.base_instructions"]},
}
PROMPT: JsonValue = {
    "type": "message",
    "id": "msg_01a22bcf-1f33-7aa0-a4ac-ea3d75f7b92b",
    "role": "user",
    "content": [{"type": "input_text", "text": "TOOLCALL please"}],
}
REASONING: JsonValue = {
    "id": "rs_864fef317acf4eccbc6ee431797f562c",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAA_MOCK",
}
CALL: JsonValue = {
    "type": "custom_tool_call",
    "id": "ctc_f9184c9825464b8bbcf7c157b834931e",
    "status": "completed",
    "call_id": "call_ff1cfd9e3bd94a0dbc1d298e",
    "name": "exec",
    "input": "text('x');",
}
RESULT: JsonValue = {
    "type": "custom_tool_call_output",
    "id": "ctco_01a22bcf-206d-79d3-8b43-633a152c78f5",
    "call_id": "call_ff1cfd9e3bd94a0dbc1d298e",
    "output": [{"type": "input_text", "text": "Script completed\nWall time 0.2 seconds\nOutput:\n"}],
}
WARM = "resp_0cfe8fb5cf4a4a73bad9a2d1e050cb7d"
FIRST = "resp_263ce410df774f4aa165a3d2873fb4e6"


def frame(items: JsonValue, previous: str | None = None, **more: JsonValue) -> Create:
    """A frame of Codex."""
    said: JsonObject = {"type": "response.create", **COMMON, "input": items, **more}
    if previous is not None:
        said["previous_response_id"] = previous
    read = read_frame(json.dumps(said))
    assert isinstance(read, Create)
    return read


def answer(
    identifier: str, items: Sequence[JsonValue] = (), kind: str = "response.completed"
) -> AnswerEvents:
    """What the events of an answer say."""
    events = AnswerEvents()
    events.add({"type": "response.created", "response": {"id": identifier}})
    for item in items:
        events.add({"type": "response.output_item.done", "item": item})
    events.add({"type": kind, "response": {"id": identifier, "output": []}})
    return events


def canonical(body: JsonObject) -> CanonicalRequest:
    """What a body means."""
    target = Target("POST", "api.openai.com", "/v1/responses", ())
    return ADAPTERS["responses"].request(target, "generate", body)


class TestFrames:
    """What a client's frame is."""

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "it is not JSON"),
            ("hello", "it is not JSON"),
            ('{"type": "response.create"', "it is not JSON"),
            ("[" * 100_000, "it is not JSON"),
            ("[1]", "it is no JSON object"),
            ('"response.create"', "it is no JSON object"),
            ('{"type": "response.create", "model": "a", "model": "b"}', "a member is repeated"),
            ('{"type": "response.create", "x": {"a": 1, "a": 1}}', "a member is repeated"),
            ('{"type": "response.create", "x": NaN}', "a number is none"),
            ('{"type": "response.create", "x": -Infinity}', "a number is none"),
            ('{"type": "response.create", "x": 1E400}', "a number is out of range"),
            ('{"type": "response.create", "x": ' + "9" * 5000 + "}", "it is not JSON"),
        ],
        ids=lambda text: text[:40],
    )
    def test_unreadable(self, text: str, reason: str) -> None:
        """What is no JSON object, or one that two readers would read differently, is not read at all."""
        assert read_frame(text) == UnreadableFrame(reason)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [('{"type": "response.cancel"}', "response.cancel"), ("{}", ""), ('{"type": 1}', "")],
    )
    def test_of_another_type(self, text: str, kind: str) -> None:
        """Only `response.create` asks for a response."""
        assert read_frame(text) == OtherFrame(kind)

    @pytest.mark.parametrize(
        ("member", "warm_up"),
        [({"generate": False}, True), ({"generate": True}, False), ({"generate": 0}, False), ({}, False)],
        ids=str,
    )
    def test_warm_up(self, member: JsonObject, warm_up: bool) -> None:
        """`generate: false`, and nothing that merely looks like it."""
        assert Create({"type": "response.create", **member}).warm_up is warm_up


class TestRequests:
    """The full request of a frame."""

    def test_the_first_frame_is_a_request_by_itself(self) -> None:
        """It is the body of a POST, less what only frames have."""
        full = Chain().full(frame([TOOLS, PROMPT]))
        assert full == FullRequest({**COMMON, "input": [TOOLS, PROMPT]}, known=True, previous=None)

    def test_codex_from_its_warm_up_to_the_turn_after_a_tool_call(self) -> None:
        """Warm-up, first turn and increment give the conversation that Codex sends by POST."""
        chain = Chain()
        warm = chain.full(frame([], generate=False))
        chain.remember(warm, answer(WARM))
        first = chain.full(frame([TOOLS, DEVELOPER, PROMPT], WARM))
        chain.remember(first, answer(FIRST, [REASONING, CALL]))
        second = chain.full(frame([RESULT], FIRST))
        assert second.known
        assert second.body["input"] == [TOOLS, DEVELOPER, PROMPT, REASONING, CALL, RESULT]
        assert "previous_response_id" not in second.body
        assert "generate" not in second.body
        # As Codex echoes the items of an answer in a POST.
        by_post: list[JsonValue] = [
            TOOLS,
            DEVELOPER,
            PROMPT,
            {**REASONING, "content": None, PASSTHROUGH: {"turn_id": "t"}},  # type: ignore[dict-item]
            {**CALL, PASSTHROUGH: {"turn_id": "t"}},  # type: ignore[dict-item]
            RESULT,
        ]
        posted = canonical({**COMMON, "input": by_post})
        rebuilt = canonical(second.body)
        assert rebuilt.tools == posted.tools
        assert rebuilt.params == posted.params
        volatile = ADAPTERS["responses"].volatile.members
        assert _without(rebuilt, volatile) == _without(posted, volatile)

    def test_a_warm_up_may_hold_the_beginning(self) -> None:
        """Other models of Codex send instructions and tools ahead; the first turn holds the rest."""
        chain = Chain()
        chain.remember(chain.full(frame([DEVELOPER], generate=False)), answer(WARM))
        assert chain.full(frame([PROMPT], WARM)).body["input"] == [DEVELOPER, PROMPT]

    def test_what_is_not_the_input_is_not_carried_over(self) -> None:
        """Instructions, tools and parameters are those of the frame itself, as the API has it."""
        chain = Chain()
        chain.remember(chain.full(frame([PROMPT], instructions="Shout.", tools=[])), answer(FIRST))
        full = chain.full(frame([RESULT], FIRST))
        assert "instructions" not in full.body
        assert "tools" not in full.body

    def test_a_text_is_a_message_of_the_user(self) -> None:
        """An `input` that is a string goes on, and is gone on from, as an item."""
        chain = Chain()
        chain.remember(chain.full(frame("Hello")), answer(FIRST, [CALL]))
        assert chain.full(frame("Go on", FIRST)).body["input"] == [
            {"type": "message", "role": "user", "content": "Hello"},
            CALL,
            {"type": "message", "role": "user", "content": "Go on"},
        ]

    def test_an_unknown_response_stays_a_reference(self) -> None:
        """Nothing is made up: the reference is part of the request, as in a POST."""
        full = Chain().full(frame([RESULT], FIRST))
        assert not full.known
        assert full.body["previous_response_id"] == FIRST
        assert full.body["input"] == [RESULT]

    def test_nothing_is_known_of_what_follows_an_unknown_response(self) -> None:
        """Its answer has an id, but what led to it is not here."""
        chain = Chain()
        full = chain.full(frame([RESULT], FIRST))
        assert chain.remember(full, answer(WARM)) == WARM
        assert not chain.full(frame([PROMPT], WARM)).known

    @pytest.mark.parametrize("kind", ["response.failed", "error"])
    def test_nobody_goes_on_from_a_failed_answer(self, kind: str) -> None:
        """A failed response is no place to go on from."""
        chain = Chain()
        assert chain.remember(chain.full(frame([PROMPT])), answer(FIRST, [CALL], kind)) is None
        assert not chain.full(frame([RESULT], FIRST)).known

    def test_branches(self) -> None:
        """Two frames may go on from one response, and neither holds what the other said."""
        chain = Chain()
        chain.remember(chain.full(frame([PROMPT])), answer(FIRST, [CALL]))
        chain.remember(chain.full(frame([RESULT], FIRST)), answer(WARM, [REASONING]))
        assert chain.full(frame([DEVELOPER], FIRST)).body["input"] == [PROMPT, CALL, DEVELOPER]

    def test_old_responses_are_forgotten(self) -> None:
        """What a socket keeps is bounded."""
        chain = Chain()
        for number in range(100):
            chain.remember(chain.full(frame([PROMPT])), answer(f"resp_{number}"))
        assert not chain.full(frame([RESULT], "resp_0")).known
        assert chain.full(frame([RESULT], "resp_99")).known

    def test_the_form_is_always_a_stream(self) -> None:
        """A socket has no other form, whatever the frame says."""
        assert Chain().full(frame([PROMPT], stream=False)).body["stream"] is True

    def test_an_odd_generate_stays(self) -> None:
        """What is not understood is part of the request, as everywhere."""
        assert Chain().full(frame([PROMPT], generate="perhaps")).body["generate"] == "perhaps"

    def test_the_same_as_a_frame(self) -> None:
        """A provider that knows nothing of what came before can answer it."""
        chain = Chain()
        chain.remember(chain.full(frame([PROMPT])), answer(FIRST, [CALL]))
        full = chain.full(frame([RESULT], FIRST))
        again = read_frame(full.frame())
        assert isinstance(again, Create)
        assert again.previous is None
        assert Chain().full(again).body == full.body

    def test_letters_survive(self) -> None:
        """A lone surrogate and an astral character are in the body as they were in the frame."""
        text = '{"type":"response.create","input":"\\ud83d \\ud83d\\ude00 \\u2028"}'
        read = read_frame(text)
        assert isinstance(read, Create)
        assert json.loads(Chain().full(read).encoded())["input"] == json.loads(text)["input"]


def _without(request: CanonicalRequest, volatile: frozenset[str]) -> list[tuple[str, list[JsonObject]]]:
    return [
        (message.role, [{n: v for n, v in part.items() if n not in volatile} for part in message.parts])
        for message in request.messages
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3).map(lambda rest: {"type": "x.y", **rest})


class TestAnswers:
    """A provider's frames, and the stream that POST would have had."""

    def test_one_event_a_frame(self) -> None:
        """The name of an event is its type."""
        text = '{"type":"response.output_text.delta","delta":"Hé"}'
        expected = f"event: response.output_text.delta\ndata: {text}\n\n"
        assert sse_of(text) == expected.encode()

    @pytest.mark.parametrize("kind", ["a\nb", "a b", "", "é"])
    def test_odd_types_name_no_event(self, kind: str) -> None:
        """No frame writes lines of its own into the stream."""
        body = sse_of(json.dumps({"type": kind}))
        assert body.startswith(b"data: ")
        assert body.count(b"\n") == 2

    @given(st.lists(EVENTS, max_size=5), st.sampled_from([None, 1]), st.integers(1, 50))
    def test_frames_survive_the_stream(self, events: list[JsonObject], indent: int | None, size: int) -> None:
        """Stored as a stream and cut anywhere, frames come out as they went in."""
        frames = [json.dumps(event, indent=indent, ensure_ascii=indent is None) for event in events]
        body = b"".join(map(sse_of, frames))
        player = Player()
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        got = [frame for piece in pieces for frame in player.frames(piece, last=False)]
        assert [json.loads(frame) for frame in got + player.frames(b"", last=True)] == events
        if indent is None:
            assert got == frames

    @pytest.mark.parametrize(
        ("body", "frames"),
        [
            (b"", []),
            (b'data: {"type":"a"}\r\n\r\ndata: {"type":"b"}\r\n\r\n', ['{"type":"a"}', '{"type":"b"}']),
            (b': ping\n\nevent: a\ndata: {"x": 1}\n\n', ['{"type":"a","x":1}']),
            (b'data: {"type":"a"}\n\ndata: [DONE]\n\n', ['{"type":"a"}']),
            (b'data: {"type":"a"}', ['{"type":"a"}']),
            (b'data: {"x": 1}\n\n', ['{"x": 1}']),
            (b'data: {"type":\ndata: "a"}\n\n', ['{"type":\n"a"}']),
        ],
    )
    def test_streams_of_post_as_frames(self, body: bytes, frames: list[str]) -> None:
        """What a gateway's stream has beside events is no frame; a name is the type of its frame."""
        assert Player().frames(body, last=True) == frames

    @pytest.mark.parametrize(
        "kind", ["response.completed", "response.incomplete", "response.failed", "error"]
    )
    def test_terminal_events(self, kind: str) -> None:
        """These four end a turn."""
        assert is_terminal({"type": kind})

    @pytest.mark.parametrize("text", ["", "[]", '{"type":"response.created"}', '"response.completed"'])
    def test_other_frames_end_nothing(self, text: str) -> None:
        """The end is parsed, not looked for."""
        assert not is_terminal(event_of(text))

    def test_the_output_is_what_was_done(self) -> None:
        """A last event without items, as some send it, does not empty the answer."""
        assert answer(FIRST, [REASONING, CALL]).output == [REASONING, CALL]

    def test_the_output_of_a_last_event_alone(self) -> None:
        """A stream without items of its own has them in its last event."""
        events = AnswerEvents()
        events.add({"type": "response.completed", "response": {"id": FIRST, "output": [CALL]}})
        assert (events.identifier, events.output) == (FIRST, [CALL])

    def test_a_warm_up_has_an_answer_of_its_own(self) -> None:
        """Complete, without output, under an id that no other has."""
        ending = ADAPTERS["responses"].ending("sse", "generate", warm_up_answer())
        assert ending.kind == "complete"
        ids = set()
        for _ in range(2):
            events = AnswerEvents()
            for text in Player().frames(warm_up_answer(), last=True):
                events.add(event_of(text))
            assert events.output == []
            ids.add(events.identifier)
        assert len(ids) == 2


class TestMixedAnswers:
    """Whether the frames of a turn are those of one answer."""

    def test_one_answer(self) -> None:
        """It begins and ends under one id."""
        assert answer(FIRST, [CALL]).mixed(strict=True) == ""

    def test_an_error_is_not_recorded_anyway(self) -> None:
        """So it need not show whose it is."""
        events = AnswerEvents()
        events.add({"type": "error", "error": {}})
        assert events.failed
        assert events.mixed(strict=True) == ""

    def test_the_end_of_another_answer(self) -> None:
        """After an error, what is left of the failed turn may come first."""
        events = AnswerEvents()
        events.add({"type": "response.output_item.done", "item": CALL})
        events.add({"type": "response.completed", "response": {"id": FIRST}})
        assert events.mixed(strict=True)
        assert not events.mixed(strict=False)

    def test_two_ids(self) -> None:
        """Two answers run into each other."""
        events = AnswerEvents()
        events.add({"type": "response.created", "response": {"id": WARM}})
        events.add({"type": "response.completed", "response": {"id": FIRST}})
        assert events.mixed(strict=False)

    def test_items_before_the_beginning(self) -> None:
        """They are of another answer."""
        events = AnswerEvents()
        events.add({"type": "response.output_item.done", "item": CALL})
        events.add({"type": "response.created", "response": {"id": FIRST}})
        events.add({"type": "response.completed", "response": {"id": FIRST}})
        assert events.mixed(strict=False)

    def test_two_beginnings(self) -> None:
        """Another answer has begun in between, whichever of them ended."""
        events = AnswerEvents()
        events.add({"type": "response.created", "response": {"id": WARM}})
        events.add({"type": "response.created", "response": {"id": FIRST}})
        events.add({"type": "response.completed", "response": {"id": FIRST}})
        assert events.mixed(strict=False)


class TestLanes:
    """`stream_id`: a name for one socket, which each event of an answer repeats."""

    def test_a_lane_is_no_part_of_the_request(self) -> None:
        """It is said again where the frame is written anew; what is no name stays."""
        named = Chain().full(frame([PROMPT], stream_id="a"))
        assert named.body == Chain().full(frame([PROMPT])).body
        assert json.loads(named.frame())["stream_id"] == "a"
        assert Chain().full(frame([PROMPT], stream_id=1)).body["stream_id"] == 1

    @pytest.mark.parametrize(
        ("frame", "lane", "said"),
        [
            ('{"type":"a", "n":1.50}', None, '{"type":"a", "n":1.50}'),
            ('{"type":"a","stream_id":"x"}', None, '{"type":"a"}'),
            ('{"type":"a","stream_id":"x"}', "y", '{"type":"a","stream_id":"y"}'),
            ('{"type":"a"}', "y", '{"type":"a","stream_id":"y"}'),
            ('{"type":"a", "stream_id":"y"}', "y", '{"type":"a", "stream_id":"y"}'),
            ("no JSON", "y", "no JSON"),
        ],
    )
    def test_an_answer_is_heard_in_the_lane_that_asked(self, frame: str, lane: str | None, said: str) -> None:
        """Whatever lane it was recorded in; a frame that says so already stays as it is."""
        assert in_lane(frame, lane) == said


class TestErrors:
    """An error as the socket has it."""

    def test_status_error_and_headers(self) -> None:
        """What the HTTP answer would have had stands in one event."""
        body = b'{"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}'
        assert json.loads(error_frame(429, body, [("retry-after", "7")])) == {
            "type": "error",
            "status": 429,
            "error": {"message": "Slow down.", "code": "rate_limit_exceeded"},
            "headers": {"retry-after": "7"},
        }

    @pytest.mark.parametrize("body", [b"<html>", b'{"error": 1}', b"[]", b"\xff"])
    def test_a_body_that_is_no_error(self, body: bytes) -> None:
        """It becomes the message."""
        event = json.loads(error_frame(502, body))
        assert event["error"]["message"] == body.decode("utf-8", "replace")

    def test_a_refusal(self) -> None:
        """Status 400, which stops a client, and OpenAI's error."""
        event = json.loads(refusal_frame("rewind: no recording. Why."))
        assert (event["type"], event["status"]) == ("error", 400)
        assert event["error"]["message"] == "rewind: no recording. Why."
        assert event["error"]["type"] == "invalid_request_error"
