"""Answers of Anthropic Messages: read from streams as they come, written with the whole grammar of events."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import AnswerUsage, Asked, CanonicalAnswer, Choice
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.cli.provider.anthropic import ANTHROPIC
from rewind_proxy.cli.provider.turn import Call, Turn
from rewind_proxy.wire.forms import anthropic
from wire.forms.form_answers import kinds, read, read_parts
from wire.forms.typed_answers import (
    CALL_PARTS,
    CASES,
    CITED,
    EDIT,
    LONG,
    SEALED,
    SHELL,
    TEXT,
    TEXT_PARTS,
    THOUGHTS,
    answer,
    answers_of,
    call,
    damaged,
    meaning,
)

GOLDEN = Path(__file__).parent / "golden"
WHOLE, SSE = Asked("anthropic", "whole"), Asked("anthropic", "sse")
FORMS = pytest.mark.parametrize("asked", [WHOLE, SSE], ids=lambda asked: asked.form)

MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Hi there", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}, "caller": None},
        {"type": "redacted_thinking", "data": "RW5j"},
        {"type": "container_upload", "file_id": "file_1"},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
    "usage": {
        "input_tokens": 5,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 7},
        "service_tier": "standard",
    },
}


def stream(*events: JsonObject) -> bytes:
    """A stream of these events, as the API sends it."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def events(body: bytes) -> list[JsonObject]:
    """The events of a rendered stream; each names its type twice."""
    found = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def start(**members: JsonValue) -> JsonObject:
    """The first event."""
    begun = MESSAGE | {"content": [], "stop_reason": None, "container": None} | members
    return {"type": "message_start", "message": begun}


def begin(index: int, block: JsonObject) -> JsonObject:
    """What begins a block."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **members: JsonValue) -> JsonObject:
    """What fills a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def end(reason: str, **usage: JsonValue) -> tuple[JsonObject, JsonObject]:
    """The last two events."""
    told: JsonObject = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": told, "usage": usage}, {"type": "message_stop"}


def test_a_whole_message_is_read() -> None:
    """Blocks become parts with neutral names; the three counts of the input become one."""
    found = anthropic.parse("whole", json.dumps(MESSAGE).encode())
    assert found is not None
    assert read_parts(found) == [
        {"type": "reasoning", "text": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Hi there"},
        {"type": "tool_call", "id": "toolu_1", "name": "Bash", "arguments": '{"command": "ls"}'},
        {"type": "reasoning", "encrypted_content": "RW5j"},
        {
            "type": "opaque",
            "wire": "anthropic",
            "value": {"type": "container_upload", "file_id": "file_1"},
        },
    ]
    assert (found.choices[0].finish, found.id, found.model) == ("tool_calls", "msg_1", "claude")
    assert found.usage == AnswerUsage(input=325, output=40, cached=300, cache_written=20, reasoning=7)
    assert found.own == {"container": MESSAGE["container"], "usage": {"service_tier": "standard"}}


def test_interleaved_deltas_are_put_together_by_index() -> None:
    """Deltas of several blocks in turns, an escape cut in two, pings and new kinds of delta: all are read."""
    body = stream(
        start(),
        {"type": "ping"},
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        begin(1, {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}),
        begin(2, {"type": "text", "text": ""}),
        begin(3, {"type": "compaction", "content": None}),
        begin(4, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        begin(5, {"type": "tool_use", "id": "toolu_2", "name": "Now", "input": {}}),
        delta(1, "input_json_delta", partial_json=""),
        delta(0, "thinking_delta", thinking="Let me"),
        delta(1, "input_json_delta", partial_json='{"command": '),
        delta(2, "text_delta", text="So \ud83d"),
        delta(0, "thinking_delta", thinking=" see."),
        delta(2, "text_delta", text="\ude00"),
        delta(3, "compaction_delta", content="In short: "),
        delta(4, "input_json_delta", partial_json='{"query": "x"}'),
        delta(3, "compaction_delta", content="done."),
        delta(1, "input_json_delta", partial_json='"ls"}'),
        delta(0, "signature_delta", signature="c2ln"),
        *end("tool_use", output_tokens=9),
    )
    found = anthropic.parse("sse", body)
    assert read_parts(found) == [
        {"type": "reasoning", "text": "Let me see.", "signature": "c2ln"},
        {"type": "tool_call", "id": "toolu_1", "name": "Bash", "arguments": '{"command": "ls"}'},
        {"type": "text", "text": "So 😀"},
        {
            "type": "opaque",
            "wire": "anthropic",
            "value": {"type": "compaction", "content": "In short: done."},
        },
        {
            "type": "opaque",
            "wire": "anthropic",
            "value": {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "x"},
            },
        },
        {"type": "tool_call", "id": "toolu_2", "name": "Now", "arguments": "{}"},
    ]


def test_content_of_the_start_is_content() -> None:
    """What a container left over stands in `message_start` alone, before the blocks that follow."""
    left: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"id": 7}}
    container: JsonObject = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    begun = start(content=[left], stop_reason="tool_use", container=container)
    alone = stream(begun, {"type": "message_stop"})
    assert read_parts(anthropic.parse("sse", alone)) == [call("find", '{"id": 7}', "toolu_1")]
    after = stream(
        begun, begin(0, {"type": "text", "text": ""}), delta(0, "text_delta", text="Hi"), *end("tool_use")
    )
    kinds_of = [part["type"] for part in read_parts(anthropic.parse("sse", after))]
    assert kinds_of == ["tool_call", "text"]


def test_counts_at_the_end_are_totals() -> None:
    """The counts of `message_delta` replace those of `message_start`; one that is not there stays."""
    body = stream(start(), *end("end_turn", output_tokens=77, cache_read_input_tokens=None))
    found = anthropic.parse("sse", body)
    assert found is not None
    assert found.usage is not None
    assert (found.usage.input, found.usage.output, found.usage.cached) == (325, 77, 300)


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("whole", b""),
        ("whole", b"null"),
        ("whole", json.dumps({"type": "error", "error": {"type": "overloaded_error"}}).encode()),
        ("whole", json.dumps({"input_tokens": 7}).encode()),
        ("sse", b""),
        ("sse", stream(start(), end("end_turn")[0])),
        ("sse", stream(end("end_turn")[1])),
        ("sse", stream(start(), {"type": "error", "error": {"type": "overloaded_error"}}, *end("end_turn"))),
        ("json-array", b"[]"),
    ],
)
def test_what_is_no_complete_success_is_no_answer(form: Form, body: bytes) -> None:
    """Errors, counts of tokens and streams that were cut have no meaning to convert."""
    assert anthropic.parse(form, body) is None


def test_the_grammar_of_a_stream() -> None:
    """Each block is begun empty, filled by its own kind of delta, and stopped, one after another."""
    found = answer({"type": "reasoning", "text": LONG, "signature": "c2ln"}, CITED, EDIT)
    told = events(anthropic.render(found, SSE).body)
    kinds = []
    for event in told:
        filled = event.get("delta") if event["type"] == "content_block_delta" else None
        kinds.append((event.get("index"), str(filled["type"] if isinstance(filled, dict) else event["type"])))
    short = [kind for number, kind in enumerate(kinds) if kind != kinds[number - 1]]
    assert short == [
        (None, "message_start"),
        (0, "content_block_start"),
        (0, "thinking_delta"),
        (0, "signature_delta"),
        (0, "content_block_stop"),
        (1, "content_block_start"),
        (1, "text_delta"),
        (1, "citations_delta"),
        (1, "content_block_stop"),
        (2, "content_block_start"),
        (2, "input_json_delta"),
        (2, "content_block_stop"),
        (None, "message_delta"),
        (None, "message_stop"),
    ]
    assert [event["content_block"] for event in told if "content_block" in event] == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": "", "citations": []},
        {"type": "tool_use", "id": "call_2", "name": "edit", "input": {}},
    ]


@pytest.mark.parametrize("tool", [None, Call("shell", {"command": "ls -l"})], ids=["text", "call"])
def test_a_recorded_stream_and_ours_have_one_grammar(tool: Call | None) -> None:
    """Read from the provider's events and written again, an answer is told by the same kinds of events."""
    turn = Turn("a-model", "I will run that and see.", tool, thinks=True, input_tokens=7)
    told = list(ANTHROPIC.events(turn, {}))
    body = b"".join(ANTHROPIC.sse(event) for event in told)
    ours = events(anthropic.render(read(anthropic.parse("sse", body)), SSE).body)
    assert kinds(ours) == kinds([event for event in told if event and event["type"] != "ping"])
    again = anthropic.parse("sse", anthropic.render(read(anthropic.parse("sse", body)), SSE).body)
    assert again == anthropic.parse("sse", body)


def test_deltas_are_sensible_pieces() -> None:
    """A long text comes in many deltas of a few words, and each event is a piece of its own."""
    rendered = anthropic.render(answer(TEXT), SSE)
    found = [event["delta"] for event in events(rendered.body) if event["type"] == "content_block_delta"]
    texts = [str(one["text"]) for one in found if isinstance(one, dict)]
    assert "".join(texts) == LONG
    assert len(texts) > 4
    assert max(map(len, texts)) <= 40
    assert len(rendered.chunks) == len(events(rendered.body))
    assert sum(rendered.chunks) == len(rendered.body)


def test_a_recording_keeps_what_only_its_wire_says() -> None:
    """From whole to stream and back on this wire nothing is lost, and nothing is noted."""
    found = anthropic.parse("whole", json.dumps(MESSAGE).encode())
    assert found is not None
    rendered = anthropic.render(found, SSE)
    assert rendered.notes == ()
    again = anthropic.parse("sse", rendered.body)
    assert again == found
    whole = json.loads(anthropic.render(again, WHOLE).body)
    present = [
        {name: value for name, value in block.items() if value is not None} for block in whole["content"]
    ]
    assert isinstance(MESSAGE["content"], list)
    assert present == [
        {name: value for name, value in block.items() if value is not None}
        for block in MESSAGE["content"]
        if isinstance(block, dict)
    ]
    assert {name: whole[name] for name in MESSAGE if name != "content"} == {
        name: value for name, value in MESSAGE.items() if name != "content"
    }


def test_arguments_are_told_as_the_model_wrote_them() -> None:
    """A stream carries the source text of a call's arguments, blanks, order and number spelling included."""
    source = '{ "b": 1.10,\n "a": "\\u00e9" }'
    rendered = anthropic.render(answer(call("f", source, "toolu_1")), SSE)
    assert read_parts(anthropic.parse("sse", rendered.body))[0]["arguments"] == source


@pytest.mark.parametrize("source", ["not json", "[1]", '"text"', '{"a": NaN}', '{"a": 1e999}', '{"a": 1'])
@FORMS
def test_arguments_that_are_no_object_are_wrapped(asked: Asked, source: str) -> None:
    """This wire's input is an object: anything else is in one, in both forms, and noted."""
    rendered = anthropic.render(answer(call("f", source, "toolu_1")), asked)
    (part,) = read_parts(anthropic.parse(asked.form, rendered.body))
    assert json.loads(str(part["arguments"])) == {"input": source}
    assert rendered.notes == ("arguments as text",)


@pytest.mark.parametrize(
    ("found", "notes"),
    [
        (replace(answer(), choices=(Choice((TEXT,)), Choice())), ["choices 2->1"]),
        (CASES["custom-call"], ["custom tool call"]),
        (answer({"type": "reasoning", "summary": ["One"]}), ["reasoning summary"]),
        (answer({"type": "reasoning", "signature": "c2ln"}), ["reasoning signature"]),
        (answer(CITED), ["citation positions"]),
        (
            answer({"type": "text", "text": "a", "citations": [{"type": "file_citation", "file_id": "f"}]}),
            ["citations"],
        ),
        (
            answer({"type": "text", "text": "No.", "refusal": True}),
            ["refusal", "finish stop->refusal"],
        ),
        (
            replace(answer(), choices=(Choice((TEXT,), "content_filter"),)),
            ["finish content_filter->refusal"],
        ),
        (answer({"type": "opaque", "wire": "responses", "value": {"type": "mcp_call"}}), ["mcp_call"]),
        (answer(TEXT | {"phase": "commentary", "item_id": "msg_1"}, wire="responses"), ["text phase"]),
        (answer(TEXT, usage=None), ["usage unknown"]),
        (answer(TEXT, own={"service_tier": "flex", "tools": []}, wire="responses"), ["service_tier"]),
    ],
)
@FORMS
def test_what_this_wire_cannot_say_is_named(asked: Asked, found: CanonicalAnswer, notes: list[str]) -> None:
    """Each loss has its note, in both forms."""
    assert sorted(anthropic.render(found, asked).notes) == sorted(notes)


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (Choice((TEXT,)), "end_turn"),
        (Choice((TEXT,), "stop"), "end_turn"),
        (Choice((TEXT,), "stop", "###"), "stop_sequence"),
        (Choice((SHELL,), "tool_calls"), "tool_use"),
        (Choice((SHELL,), "stop"), "tool_use"),
        (Choice((SHELL,), "length"), "max_tokens"),
        (Choice((TEXT,), "pause"), "pause_turn"),
        (Choice((TEXT,), "refusal"), "refusal"),
    ],
)
@FORMS
def test_how_an_answer_ended(asked: Asked, choice: Choice, reason: str) -> None:
    """Each finish has its reason; a call waits for its result even where the recording's wire says `stop`."""
    body = anthropic.render(replace(answer(), choices=(choice,)), asked).body
    message = json.loads(body) if asked is WHOLE else events(body)[-2]["delta"]
    assert isinstance(message, dict)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, choice.stop_sequence)


@FORMS
def test_a_reason_without_a_neutral_name_stays(asked: Asked) -> None:
    """What this wire alone tells apart (a full context from a token limit) is the same in its other form."""
    found = anthropic.parse(
        "whole", json.dumps(MESSAGE | {"stop_reason": "model_context_window_exceeded"}).encode()
    )
    assert found is not None
    assert found.choices[0].finish == "length"
    again = anthropic.parse(asked.form, anthropic.render(found, asked).body)
    assert again == found
    assert again.choices[0].own == {"stop_reason": "model_context_window_exceeded"}


@FORMS
def test_the_same_answer_gives_the_same_bytes(asked: Asked) -> None:
    """Nothing in a rendered answer is random or from the clock, ids that were missing included."""
    assert anthropic.render(CASES["no-ids"], asked) == anthropic.render(replace(CASES["no-ids"]), asked)


def test_a_rendered_stream_is_as_the_golden_file_shows() -> None:
    """The bytes of one small stream, to be read by people."""
    found = answer({"type": "reasoning", "text": "Looking.", "signature": "c2ln"}, CITED, EDIT)
    assert anthropic.render(found, SSE).body == (GOLDEN / "anthropic.sse").read_bytes()


@FORMS
@given(found=answers_of(TEXT_PARTS, CALL_PARTS, THOUGHTS, SEALED))
@settings(max_examples=60, deadline=None)
def test_any_answer_comes_back(asked: Asked, found: CanonicalAnswer) -> None:
    """What is rendered is read back as it was, and a second time byte for byte; both forms mean the same."""
    rendered = anthropic.render(found, asked)
    again = anthropic.parse(asked.form, rendered.body)
    assert again is not None
    assert meaning(again) == meaning(found)
    assert rendered.notes == (() if found.usage else ("usage unknown",))
    assert anthropic.render(again, asked).body == rendered.body
    other = anthropic.render(again, SSE if asked is WHOLE else WHOLE)
    assert meaning(anthropic.parse("sse" if asked is WHOLE else "whole", other.body)) == meaning(again)


@given(found=damaged(MESSAGE))
@settings(max_examples=300, deadline=None)
def test_a_damaged_message_is_read_as_far_as_it_goes(found: JsonValue) -> None:
    """Whatever stands where it should not, reading never raises, and what was read can be written."""
    read = anthropic.parse("whole", json.dumps(found).encode())
    if read is not None:
        body = anthropic.render(read, SSE).body
        assert anthropic.parse("sse", body) is not None


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_stream_is_read_as_far_as_it_goes(data: st.DataObject) -> None:
    """The same for each event of a stream."""
    told = events(anthropic.render(CASES["calls"], SSE).body)
    index = data.draw(st.integers(0, len(told) - 1))
    hurt = data.draw(damaged(told[index]))
    lines = [json.dumps(hurt if number == index else event) for number, event in enumerate(told)]
    anthropic.parse("sse", "".join(f"data: {line}\n\n" for line in lines).encode())
