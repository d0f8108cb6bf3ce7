"""When an answer is complete: by parsed terminal events, never by a look at the text (CASES 41, 42)."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import Ending, Form, JsonObject, JsonValue, Operation, Usage, Wire
from rewind_proxy.wire import ADAPTERS

Kind = Literal["complete", "length", "error", "cut"]


def sse(*events: JsonValue, named: bool = False) -> bytes:
    body = ""
    for event in events:
        if named and isinstance(event, dict):
            body += f"event: {event['type']}\n"
        body += f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
    return body.encode()


def ending(
    wire: Wire,
    form: Form,
    body: bytes | JsonValue,
    operation: Operation = "generate",
    choices: int = 1,
) -> Ending:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ADAPTERS[wire].ending(form, operation, data, choices)


def chunk(reason: str | None = None, index: int = 0, **more: JsonValue) -> JsonObject:
    return {
        "model": "m1",
        "choices": [{"index": index, "delta": {"content": "x"}, "finish_reason": reason}],
        **more,
    }


USAGE: JsonObject = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 1},
}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([chunk(), chunk("stop"), "[DONE]"], "complete"),
        ([chunk(), chunk("stop")], "complete"),
        ([chunk(), chunk("length"), "[DONE]"], "length"),
        ([chunk(), "[DONE]"], "complete"),
        ([chunk()], "cut"),
        ([], "cut"),
        (["[DONE]"], "cut"),
        ([chunk("stop"), chunk(None, 1)], "cut"),
        ([chunk("stop"), chunk("stop", 1)], "complete"),
        ([chunk(None, usage=None), chunk("stop", usage=None)], "cut"),
        ([chunk(None, usage=None), chunk("stop", usage=None), {"choices": [], "usage": USAGE}], "complete"),
        ([chunk(), {"error": {"message": "x"}}, "[DONE]"], "error"),
        ([chunk("error"), "[DONE]"], "error"),
    ],
)
def test_chat_stream(events: list[JsonValue], kind: Kind) -> None:
    """Chat Completions ends at `[DONE]`, or when each choice has its reason and announced usage has come."""
    assert ending("chat_completions", "sse", sse(*events)).kind == kind


def test_a_stream_of_several_choices() -> None:
    """Where two were asked for, one that has ended is no complete stream, unless the wire says it is."""
    first = chunk("stop")
    assert ending("chat_completions", "sse", sse(first), choices=2).kind == "cut"
    assert ending("chat_completions", "sse", sse(first, chunk(None, 1)), choices=2).kind == "cut"
    assert ending("chat_completions", "sse", sse(first, chunk("stop", 1)), choices=2).kind == "complete"
    assert ending("chat_completions", "sse", sse(first, "[DONE]"), choices=2).kind == "complete"
    one = candidate("STOP")
    two: JsonObject = {"candidates": [{"index": 1, "finishReason": "STOP"}]}
    assert ending("gemini", "sse", sse(one), choices=2).kind == "cut"
    assert ending("gemini", "sse", sse(one, two), choices=2).kind == "complete"
    blocked: JsonObject = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert ending("gemini", "sse", sse(blocked), choices=2).kind == "complete"
    assert ending("gemini", "json-array", [one], choices=2).kind == "complete"


def test_chat_usage() -> None:
    """The usage chunk and the model are read."""
    body = sse(chunk("stop"), {"choices": [], "usage": USAGE}, "[DONE]")
    assert ending("chat_completions", "sse", body) == Ending("complete", "m1", Usage(7, 3, 2, 1))


def responses(kind: str, **more: JsonValue) -> JsonObject:
    return {"type": f"response.{kind}", "response": {"id": "resp_1", "model": "m1", **more}}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([responses("created"), responses("completed")], "complete"),
        ([responses("created"), responses("incomplete")], "length"),
        ([responses("created"), responses("failed")], "error"),
        ([responses("created"), {"type": "error", "message": "x"}], "error"),
        (
            [responses("created"), {"type": "response.output_text.delta", "delta": "response.completed"}],
            "cut",
        ),
        ([responses("created"), {"type": "x_new"}, responses("completed")], "complete"),
        ([], "cut"),
    ],
)
def test_responses_stream(events: list[JsonValue], kind: Kind) -> None:
    """Responses ends at its own terminal event, whatever a text quotes."""
    assert ending("responses", "sse", sse(*events)).kind == kind


def test_spaces_do_not_matter() -> None:
    """A terminal event counts in any spelling."""
    body = b'event: response.incomplete\r\ndata:{ "type" : "response.incomplete" }\r\n\r\n'
    assert ending("responses", "sse", body).kind == "length"


START: JsonObject = {
    "type": "message_start",
    "message": {
        "model": "m1",
        "usage": {
            "input_tokens": 5,
            "output_tokens": 1,
            "cache_read_input_tokens": 4,
            "cache_creation_input_tokens": 2,
        },
    },
}


def delta(reason: str) -> JsonObject:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([START, delta("end_turn"), {"type": "message_stop"}], "complete"),
        ([START, {"type": "ping"}, delta("tool_use"), {"type": "message_stop"}], "complete"),
        ([START, delta("max_tokens"), {"type": "message_stop"}], "length"),
        ([START, delta("end_turn")], "cut"),
        ([START, {"type": "error", "error": {"type": "overloaded_error"}}], "error"),
    ],
)
def test_anthropic_stream(events: list[JsonValue], kind: Kind) -> None:
    """Anthropic ends at `message_stop`, never before."""
    assert ending("anthropic", "sse", sse(*events, named=True)).kind == kind


def test_anthropic_usage() -> None:
    """The counts of the start and of the end are put together; what a cache held went in too."""
    body = sse(START, delta("end_turn"), {"type": "message_stop"}, named=True)
    assert ending("anthropic", "sse", body) == Ending("complete", "m1", Usage(11, 9, 4, 2))


def candidate(reason: str | None = None, **more: JsonValue) -> JsonObject:
    found: JsonObject = {"content": {"parts": [{"text": "x"}]}}
    return {
        "candidates": [found | ({"finishReason": reason} if reason else {})],
        "modelVersion": "m1",
        **more,
    }


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([candidate(), candidate("STOP")], "complete"),
        ([candidate("STOP"), candidate("STOP")], "complete"),
        ([candidate("STOP"), candidate()], "cut"),
        ([candidate("STOP"), {"usageMetadata": {"promptTokenCount": 1}}], "complete"),
        ([candidate("MAX_TOKENS")], "length"),
        ([candidate()], "cut"),
        ([candidate("FINISH_REASON_UNSPECIFIED")], "cut"),
        ([{"promptFeedback": {"blockReason": "SAFETY"}}], "complete"),
        ([{"error": {"code": 500}}], "error"),
        ([{"response": candidate("STOP"), "traceId": "t"}], "complete"),
        ([], "cut"),
    ],
)
def test_gemini_streams(chunks: list[JsonValue], kind: Kind) -> None:
    """Gemini ends when the last word on each candidate has a reason, in either form of a stream."""
    assert ending("gemini", "sse", sse(*chunks)).kind == kind
    assert ending("gemini", "json-array", chunks).kind == kind


def test_gemini_array_must_be_closed() -> None:
    """An array without its bracket was cut."""
    body = json.dumps([candidate("STOP")]).encode()
    assert ending("gemini", "json-array", body[:-1]).kind == "cut"


def test_gemini_usage() -> None:
    """Thoughts are written tokens too."""
    usage: JsonObject = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}
    assert ending("gemini", "whole", candidate("STOP", usageMetadata=usage)) == Ending(
        "complete", "m1", Usage(5, 5, 0)
    )


@pytest.mark.parametrize(
    ("wire", "body", "kind"),
    [
        ("chat_completions", {"choices": [{"finish_reason": "stop"}]}, "complete"),
        ("chat_completions", {"choices": [{"finish_reason": "length"}]}, "length"),
        ("chat_completions", {"error": {"message": "x"}}, "error"),
        ("chat_completions", {"choices": []}, "cut"),
        ("responses", {"status": "completed", "error": None}, "complete"),
        ("responses", {"status": "incomplete"}, "length"),
        ("responses", {"status": "failed"}, "error"),
        ("responses", {"status": "queued"}, "cut"),
        ("responses", {"object": "response.compaction", "output": []}, "complete"),
        ("responses", {"error": {"message": "x"}}, "error"),
        ("anthropic", {"type": "message", "content": [], "stop_reason": "end_turn"}, "complete"),
        ("anthropic", {"type": "message", "content": [], "stop_reason": "max_tokens"}, "length"),
        ("anthropic", {"type": "error", "error": {}}, "error"),
        ("gemini", candidate("STOP"), "complete"),
        ("gemini", candidate(), "cut"),
        ("gemini", {"error": {"code": 1}}, "error"),
        ("generic", {"data": []}, "complete"),
        ("generic", {"error": "x"}, "error"),
        ("generic", b"\x00\xff audio", "complete"),
        ("generic", b"", "complete"),
        ("chat_completions", b'{"choices":[{"finish_reason":"stop"}', "cut"),
        ("responses", b"", "cut"),
        ("anthropic", b"[]", "cut"),
        ("gemini", b"<html>", "cut"),
    ],
)
def test_whole(wire: Wire, body: bytes | JsonValue, kind: Kind) -> None:
    """A whole body is complete when it parses and is a success of its wire."""
    assert ending(wire, "whole", body).kind == kind


@pytest.mark.parametrize("wire", ["responses", "anthropic", "gemini"])
@pytest.mark.parametrize("operation", ["count_tokens", "embed"])
def test_counts(wire: Wire, operation: Operation) -> None:
    """A count or a list of vectors is complete when it is whole JSON."""
    assert ending(wire, "whole", {"input_tokens": 5}, operation).kind == "complete"
    assert ending(wire, "whole", b'{"input_tokens":', operation).kind == "cut"
    assert ending(wire, "whole", {"error": {}}, operation).kind == "error"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"data: x\n\n", "complete"),
        (b"data: x\n", "cut"),
        (b"", "cut"),
        (b"event: error\ndata: x\n\n", "error"),
    ],
)
def test_generic_stream(body: bytes, kind: Kind) -> None:
    """Of an unknown stream only its last event's end is known."""
    assert ending("generic", "sse", body).kind == kind


COMPLETE: dict[Wire, bytes] = {
    "chat_completions": sse(chunk(), chunk("stop", usage=None), {"choices": [], "usage": USAGE}, "[DONE]"),
    "responses": sse(responses("created"), responses("completed")),
    "anthropic": sse(START, delta("end_turn"), {"type": "message_stop"}, named=True),
    "gemini": sse(candidate(), candidate("STOP")),
}


@pytest.mark.parametrize("wire", COMPLETE)
def test_cut_at_every_byte(wire: Wire) -> None:
    """A stream cut anywhere before the end of its last event's data is cut, and complete from there on."""
    body = COMPLETE[wire]
    whole = len(body) - 2
    if wire == "chat_completions":  # the usage chunk before `[DONE]` was the last word
        whole = body.index(b"data: [DONE]") - 2
    for cut in range(len(body) + 1):
        kind = ending(wire, "sse", body[:cut]).kind
        assert (kind == "complete") == (cut >= whole), body[:cut]


@given(
    st.sampled_from(sorted(ADAPTERS)),
    st.sampled_from(["whole", "sse", "json-array"]),
    st.binary(max_size=60)
    | st.sampled_from([b"[" * 100_000, b"data: " + b"[" * 100_000 + b"\n\n", b"nul\n", b"\xff"]),
)
def test_no_bytes_raise(wire: Wire, form: Form, body: bytes) -> None:
    """Whatever bytes an answer has, its ending is told."""
    assert ADAPTERS[wire].ending(form, "generate", body).kind in ("complete", "length", "error", "cut")
