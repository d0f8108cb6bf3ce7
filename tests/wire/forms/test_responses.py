"""Answers of OpenAI Responses: read from streams as they come, written with the whole grammar of events."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Choice
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.cli.provider.responses import RESPONSES
from rewind_proxy.cli.provider.turn import Call, Turn
from rewind_proxy.wire.forms import responses
from wire.forms.form_answers import kinds, read, read_parts
from wire.forms.typed_answers import (
    CALL_PARTS,
    CASES,
    CITED,
    CUSTOM_CALLS,
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
WHOLE, SSE = Asked("responses", "whole"), Asked("responses", "sse")
FORMS = pytest.mark.parametrize("asked", [WHOLE, SSE], ids=lambda asked: asked.form)

USAGE: JsonObject = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 12,
}
MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hi there", "annotations": [], "logprobs": []}],
}
FUNCTION: JsonObject = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "shell",
    "namespace": "functions",
    "arguments": '{"command": "ls"}',
}
RESPONSE: JsonObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": "Be brief.",
    "model": "gpt-5",
    "parallel_tool_calls": False,
    "tool_choice": "required",
    "tools": [],
    "output": [MESSAGE, FUNCTION],
    "service_tier": "default",
    "usage": USAGE,
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


def delta(kind: str, piece: str, index: int, **members: JsonValue) -> JsonObject:
    """A delta event."""
    return {"type": f"response.{kind}.delta", "delta": piece, "output_index": index, **members}


def added(index: int, item: JsonObject) -> JsonObject:
    """What begins an item."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: JsonObject) -> JsonObject:
    """What ends an item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def test_a_whole_answer_is_read() -> None:
    """Items become parts with neutral names; what has none keeps its own."""
    found = responses.parse("whole", json.dumps(RESPONSE).encode())
    assert found is not None
    assert read_parts(found) == [
        {"type": "text", "text": "Hi there", "item_id": "msg_1"},
        {
            "type": "tool_call",
            "id": "call_1",
            "name": "shell",
            "arguments": '{"command": "ls"}',
            "item_id": "fc_1",
            "namespace": "functions",
        },
    ]
    assert found.choices[0].finish == "tool_calls"
    assert (found.id, found.model, found.created) == ("resp_1", "gpt-5", 1_700_000_000)
    assert found.usage is not None
    assert (found.usage.input, found.usage.output, found.usage.cached, found.usage.reasoning) == (9, 3, 4, 1)
    assert {name: found.own[name] for name in ("instructions", "service_tier")} == {
        "instructions": "Be brief.",
        "service_tier": "default",
    }


def test_the_items_of_a_stream_count_where_its_last_event_has_none() -> None:
    """ChatGPT's backend ends with an empty `output`: the items are those that were done, by their index."""
    body = stream(
        {"type": "response.created", "response": RESPONSE | {"status": "in_progress", "output": []}},
        done(1, FUNCTION),
        done(0, MESSAGE),
        {"type": "response.completed", "response": {"id": "resp_1", "output": []}},
    )
    assert responses.parse("sse", body) == responses.parse("whole", json.dumps(RESPONSE).encode())


@pytest.mark.parametrize("begins", [True, False])
def test_items_without_an_index_follow_one_another(begins: bool) -> None:
    """A small server may send each item as it is done, and say of none where it stands."""
    told: list[JsonObject] = []
    for item in (MESSAGE, FUNCTION):
        if begins:
            told.append({"type": "response.output_item.added", "item": item})
        told.append({"type": "response.output_item.done", "item": item})
    body = stream(*told, {"type": "response.completed", "response": RESPONSE | {"output": []}})
    assert responses.parse("sse", body) == responses.parse("whole", json.dumps(RESPONSE).encode())


def test_interleaved_deltas_are_put_together_by_index() -> None:
    """Two calls whose arguments come in turns, and a text, are whole even when no event repeats them."""
    body = stream(
        {"type": "response.created", "response": RESPONSE | {"status": "in_progress", "output": []}},
        added(0, MESSAGE | {"content": []}),
        added(1, FUNCTION | {"arguments": ""}),
        added(2, FUNCTION | {"arguments": "", "id": "fc_2", "call_id": "call_2"}),
        delta("function_call_arguments", '{"a"', 1),
        delta("function_call_arguments", '{"b"', 2),
        delta("output_text", "Hi ", 0, content_index=0),
        delta("output_text", "\ud83d", 0, content_index=0),
        delta("function_call_arguments", ": 1}", 1),
        delta("function_call_arguments", ": 2}", 2),
        delta("output_text", "\ude00", 0, content_index=0),
        delta("refusal", "No.", 0, content_index=1),
        {"type": "response.completed", "response": {"id": "resp_1"}},
    )
    text, refusal, first, second = read_parts(responses.parse("sse", body))
    assert text["text"] == "Hi 😀"
    assert (refusal["text"], refusal["refusal"]) == ("No.", True)
    assert [(one["id"], one["arguments"]) for one in (first, second)] == [
        ("call_1", '{"a": 1}'),
        ("call_2", '{"b": 2}'),
    ]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("whole", b""),
        ("whole", b"[]"),
        ("whole", json.dumps({"error": {"message": "no"}}).encode()),
        ("whole", json.dumps(RESPONSE | {"status": "failed"}).encode()),
        ("whole", json.dumps(RESPONSE | {"status": "queued", "output": []}).encode()),
        ("whole", json.dumps(RESPONSE | {"output": None}).encode()),
        ("sse", b""),
        ("sse", stream({"type": "response.created", "response": RESPONSE}, done(0, MESSAGE))),
        ("sse", stream(done(0, MESSAGE), {"type": "error", "message": "overloaded"})),
        ("sse", stream({"type": "response.failed", "response": RESPONSE | {"status": "failed"}})),
        ("json-array", b"[]"),
    ],
)
def test_what_is_no_complete_success_is_no_answer(form: Form, body: bytes) -> None:
    """Errors, answers still to come and streams that were cut have no meaning to convert."""
    assert responses.parse(form, body) is None


def test_the_grammar_of_a_stream() -> None:
    """Every item is begun, told in deltas, repeated and done; events are numbered and name their item."""
    found = events(responses.render(CASES["calls"], SSE).body)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    kinds = [str(event["type"]).removeprefix("response.") for event in found]
    short = [kind for number, kind in enumerate(kinds) if kind != kinds[number - 1]]
    call_kinds = ["function_call_arguments.delta", "function_call_arguments.done"]
    text_kinds = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    assert short == [
        "created",
        "in_progress",
        *["output_item.added", *text_kinds, "output_item.done"],
        *["output_item.added", *call_kinds, "output_item.done"] * 2,
        "completed",
    ]
    begun: dict[JsonValue, JsonValue] = {}
    for event in found:
        if event["type"] == "response.output_item.added":
            item = event["item"]
            assert isinstance(item, dict)
            begun[event["output_index"]] = item["id"]
        elif "item_id" in event:
            assert event["item_id"] == begun[event["output_index"]]


@pytest.mark.parametrize("tool", [None, Call("shell", {"command": "ls -l"})], ids=["text", "call"])
def test_a_recorded_stream_and_ours_have_one_grammar(tool: Call | None) -> None:
    """Read from the provider's events and written again, an answer is told by the same kinds of events."""
    turn = Turn("a-model", "I will run that and see.", tool, thinks=True, input_tokens=7)
    told = list(RESPONSES.events(turn, {}))
    body = b"".join(RESPONSES.sse(event) for event in told)
    ours = events(responses.render(read(responses.parse("sse", body)), SSE).body)
    assert kinds(ours) == kinds([event for event in told if event and event["type"] != "ping"])
    again = responses.parse("sse", responses.render(read(responses.parse("sse", body)), SSE).body)
    assert again == responses.parse("sse", body)


def test_deltas_are_sensible_pieces() -> None:
    """A long text comes in many deltas of a few words, and each event is a piece of its own."""
    rendered = responses.render(answer(TEXT), SSE)
    deltas = [str(event["delta"]) for event in events(rendered.body) if "delta" in event]
    assert "".join(deltas) == LONG
    assert len(deltas) > 4
    assert max(map(len, deltas)) <= 40
    assert len(rendered.chunks) == len(events(rendered.body))
    assert sum(rendered.chunks) == len(rendered.body)


def test_a_tool_of_the_providers_own_reports_its_progress() -> None:
    """A search of the provider's is begun, reported and done; a cut answer does not cut it."""
    search: JsonObject = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    part: JsonObject = {"type": "opaque", "wire": "responses", "value": search}
    found = CanonicalAnswer((Choice((part,), "length"),), wire="responses")
    told = events(responses.render(found, SSE).body)
    assert [str(event["type"]).removeprefix("response.") for event in told][2:] == [
        "output_item.added",
        "web_search_call.in_progress",
        "web_search_call.searching",
        "web_search_call.completed",
        "output_item.done",
        "incomplete",
    ]
    assert told[2]["item"] == search | {"status": "in_progress"}
    assert told[6]["item"] == search


def test_a_recording_keeps_what_only_its_wire_says() -> None:
    """From whole to stream and back on this wire nothing is lost, and nothing is noted."""
    body = json.dumps(RESPONSE | {"output": [{"type": "x_new", "id": "x_1", "x": [1]}, MESSAGE, FUNCTION]})
    found = responses.parse("whole", body.encode())
    assert found is not None
    rendered = responses.render(found, SSE)
    assert rendered.notes == ()
    again = responses.parse("sse", rendered.body)
    assert again == found
    last = events(rendered.body)[-1]["response"]
    assert isinstance(last, dict)
    sent = json.loads(body)
    assert {name: last[name] for name in sent if name != "usage"} == {
        name: sent[name] for name in sent if name != "usage"
    }


@pytest.mark.parametrize(
    ("found", "notes"),
    [
        (replace(answer(), choices=(Choice((TEXT,)), Choice(), Choice())), ["choices 3->1"]),
        (
            answer({"type": "reasoning", "text": "Hm.", "signature": "c2ln"}),
            ["reasoning signature"],
        ),
        (answer({"type": "opaque", "wire": "anthropic", "value": {"type": "compaction"}}), ["compaction"]),
        (answer({"type": "media", "media_type": "image/png", "data": "AA=="}), ["media"]),
        (
            answer(
                {"type": "text", "text": "a", "citations": [{"type": "char_location", "cited_text": "b"}]}
            ),
            ["citations"],
        ),
        (replace(answer(), choices=(Choice((TEXT,), "stop", "###"),)), ["stop_sequence"]),
        (replace(answer(), choices=(Choice((TEXT,), "refusal"),)), ["finish refusal->content_filter"]),
        (replace(answer(), choices=(Choice((TEXT,), "pause"),)), ["finish pause->completed"]),
        (answer(TEXT, own={"container": {"id": "c"}}, wire="anthropic"), ["container"]),
        (answer(TEXT, own={"tools": []}, wire="responses"), []),
        (answer(CITED), []),
    ],
)
@FORMS
def test_what_this_wire_cannot_say_is_named(asked: Asked, found: CanonicalAnswer, notes: list[str]) -> None:
    """Each loss has its note, in both forms."""
    assert list(responses.render(found, asked).notes) == notes


@pytest.mark.parametrize(
    ("choice", "status", "details"),
    [
        (Choice((TEXT,), "stop"), "completed", None),
        (Choice((SHELL,), "tool_calls"), "completed", None),
        (Choice((TEXT,), "length"), "incomplete", {"reason": "max_output_tokens"}),
        (Choice((TEXT,), "content_filter"), "incomplete", {"reason": "content_filter"}),
        (Choice((TEXT | {"refusal": True},), "refusal"), "completed", None),
    ],
)
def test_how_an_answer_ended(choice: Choice, status: str, details: JsonValue) -> None:
    """The status, the reason and the last event say how it ended; a message that was cut says so too."""
    found = replace(answer(), choices=(choice,))
    whole = json.loads(responses.render(found, WHOLE).body)
    assert (whole["status"], whole["incomplete_details"]) == (status, details)
    assert whole["output"][-1]["status"] == status
    assert events(responses.render(found, SSE).body)[-1]["type"] == f"response.{status}"


@pytest.mark.parametrize(
    ("arguments", "name", "kind"),
    [
        ('{"input": "text(1)"}', "exec", "custom_tool_call"),
        ('{"input": "text(1)"}', "other", "function_call"),
        ('{"input": "text(1)", "more": 1}', "exec", "function_call"),
        ('{"input": 1}', "exec", "function_call"),
        ("text(1)", "exec", "function_call"),
    ],
)
def test_a_wrapped_custom_call_is_custom_again(arguments: str, name: str, kind: str) -> None:
    """A function call of a tool that the client offers as custom, from a wire without them, is unwrapped."""
    found = answer(call(name, arguments, "call_1"))
    asked = replace(WHOLE, custom_tools=frozenset({"exec"}))
    (item,) = json.loads(responses.render(found, asked).body)["output"]
    assert item["type"] == kind
    assert item.get("input") == ("text(1)" if kind == "custom_tool_call" else None)


def test_an_id_that_two_items_share_is_replaced() -> None:
    """The SDK refuses two items of one identity; the first keeps the id."""
    found = answer(call("a", "{}", "call_0"), call("b", "{}", "call_0"))
    rendered = responses.render(found, WHOLE)
    first, second = json.loads(rendered.body)["output"]
    assert rendered.notes == ("repeated id",)
    assert first["call_id"] == "call_0"
    assert second["call_id"].startswith("call_")
    assert second["call_id"] != "call_0"


def test_half_a_character_is_escaped() -> None:
    """A lone surrogate, which UTF-8 cannot say, comes out as the JSON escape that it was."""
    rendered = responses.render(answer({"type": "text", "text": "\ud83d"}), SSE)
    assert b"\\ud83d" in rendered.body
    assert read_parts(responses.parse("sse", rendered.body))[0]["text"] == "\ud83d"


@FORMS
def test_the_same_answer_gives_the_same_bytes(asked: Asked) -> None:
    """Nothing in a rendered answer is random or from the clock, ids that were missing included."""
    found = replace(CASES["no-ids"], created=0)
    assert responses.render(found, asked) == responses.render(replace(found), asked)


def test_a_rendered_stream_is_as_the_golden_file_shows() -> None:
    """The bytes of one small stream, to be read by people."""
    found = answer(
        {"type": "reasoning", "summary": ["**Looking**"], "encrypted_content": "Z0FBQUFB"}, CITED, EDIT
    )
    assert responses.render(found, SSE).body == (GOLDEN / "responses.sse").read_bytes()


@FORMS
@given(found=answers_of(TEXT_PARTS, CALL_PARTS, CUSTOM_CALLS, THOUGHTS, SEALED))
@settings(max_examples=60, deadline=None)
def test_any_answer_comes_back(asked: Asked, found: CanonicalAnswer) -> None:
    """What is rendered is read back as it was, and a second time byte for byte, without a note."""
    rendered = responses.render(found, asked)
    again = responses.parse(asked.form, rendered.body)
    assert again is not None
    assert meaning(again) == meaning(found)
    assert rendered.notes == ()
    assert responses.render(again, asked) == rendered
    other = responses.render(again, SSE if asked is WHOLE else WHOLE)
    assert responses.parse("sse" if asked is WHOLE else "whole", other.body) == again


@given(found=damaged(RESPONSE))
@settings(max_examples=300, deadline=None)
def test_a_damaged_answer_is_read_as_far_as_it_goes(found: JsonValue) -> None:
    """Whatever stands where it should not, reading never raises, and what was read can be written."""
    read = responses.parse("whole", json.dumps(found).encode())
    if read is not None:
        body = responses.render(read, SSE).body
        assert responses.parse("sse", body) is not None


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_stream_is_read_as_far_as_it_goes(data: st.DataObject) -> None:
    """The same for each event of a stream."""
    told = events(responses.render(CASES["calls"], SSE).body)
    index = data.draw(st.integers(0, len(told) - 1))
    hurt = data.draw(damaged(told[index]))
    lines = [json.dumps(hurt if number == index else event) for number, event in enumerate(told)]
    responses.parse("sse", "".join(f"data: {line}\n\n" for line in lines).encode())
