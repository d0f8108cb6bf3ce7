"""An answer read back as the turn its client would send: for reading, by the adapters' own rules."""

from __future__ import annotations

import json

import pytest

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Target, Wire
from rewind_proxy.wire.adapter import Adapter
from rewind_proxy.wire.anthropic import Anthropic
from rewind_proxy.wire.chat_completions import ChatCompletions
from rewind_proxy.wire.echo import echo
from rewind_proxy.wire.responses import Responses

ADAPTERS: dict[Wire, Adapter] = {
    "chat_completions": ChatCompletions(),
    "responses": Responses(),
    "anthropic": Anthropic(),
}
CALL: JsonObject = {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "/x"}}


def sse(*events: JsonValue) -> bytes:
    return (
        b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    )


def read(wire: Wire, form: Form, body: bytes) -> list[JsonObject]:
    """The canonical parts of an answer."""
    turn = echo(wire, form, body)
    assert turn is not None
    (message,) = ADAPTERS[wire].request(Target("POST", "h", "/v1"), "generate", turn).messages
    assert message.role == "assistant"
    parts = [part for part in message.parts if part["type"] != "opaque"]  # an item's id, which is noise
    return [{k: v for k, v in part.items() if k in ("type", "text", *CALL)} for part in parts]


def chat_delta(**delta: JsonValue) -> JsonObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


ODD: tuple[JsonValue, ...] = (None, 3, [3], [{}], {"a": 1})
CHAT_STREAM = sse(
    chat_delta(role="assistant", content=""),
    chat_delta(content="Hel"),
    chat_delta(content="lo"),
    chat_delta(
        tool_calls=[
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}
        ]
    ),
    chat_delta(tool_calls=[{"index": 0, "function": {"arguments": '{"path"'}}]),
    chat_delta(tool_calls=[{"index": 0, "function": {"arguments": ': "/x"}'}}]),
    {"choices": [], "usage": {"prompt_tokens": 1}},
)
CHAT_WHOLE = json.dumps(
    {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "Hello",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path": "/x"}'},
                        }
                    ],
                }
            }
        ]
    }
).encode()
RESPONSES_ITEMS: list[JsonValue] = [
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello"}],
    },
    {"type": "function_call", "id": "f", "call_id": "c1", "name": "read", "arguments": '{"path": "/x"}'},
]
RESPONSES_STREAM = sse(
    {"type": "response.created", "response": {}},
    {"type": "response.output_text.delta", "delta": "Hello"},
    *({"type": "response.output_item.done", "item": item} for item in RESPONSES_ITEMS),
    {"type": "response.completed", "response": {"output": RESPONSES_ITEMS}},
)
RESPONSES_WHOLE = json.dumps({"status": "completed", "output": RESPONSES_ITEMS}).encode()
ANTHROPIC_STREAM = sse(
    {"type": "message_start", "message": {"content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"path"'},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": ':"/x"}'},
    },
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)
ANTHROPIC_WHOLE = json.dumps(
    {
        "type": "message",
        "content": [
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "/x"}},
        ],
    }
).encode()


@pytest.mark.parametrize(
    ("wire", "form", "body"),
    [
        ("chat_completions", "sse", CHAT_STREAM),
        ("chat_completions", "whole", CHAT_WHOLE),
        ("responses", "sse", RESPONSES_STREAM),
        ("responses", "whole", RESPONSES_WHOLE),
        ("anthropic", "sse", ANTHROPIC_STREAM),
        ("anthropic", "whole", ANTHROPIC_WHOLE),
    ],
)
def test_text_and_call_are_joined(wire: Wire, form: Form, body: bytes) -> None:
    """Every wire and form of one answer reads as the same text and tool call."""
    assert read(wire, form, body) == [{"type": "text", "text": "Hello"}, CALL]


def test_several_calls_and_choices_keep_their_pieces_apart() -> None:
    """Deltas of calls that interleave go to their own call, those of a second choice to a second message."""
    turn = echo(
        "chat_completions",
        "sse",
        sse(
            chat_delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "x", "arguments": "1"}}]),
            chat_delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "y", "arguments": "2"}}]),
            chat_delta(tool_calls=[{"index": 0, "function": {"arguments": "3"}}]),
            {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        ),
    )
    assert turn is not None
    assert turn["messages"] == [
        {
            "role": "assistant",
            "tool_calls": [
                {"type": "function", "id": "a", "function": {"name": "x", "arguments": "13"}},
                {"type": "function", "id": "b", "function": {"name": "y", "arguments": "2"}},
            ],
        },
        {"role": "assistant", "content": "other"},
    ]


def test_thinking_is_joined_with_its_signature() -> None:
    """A thinking block keeps text and signature."""
    body = sse(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    )
    turn = echo("anthropic", "sse", body)
    assert turn == {
        "messages": [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hmm.", "signature": "sig"}]}
        ]
    }


@pytest.mark.parametrize("form", ["sse", "json-array", "whole"])
def test_gemini(form: Form) -> None:
    """Pieces of text are one part, a function call is one of its own, a thought is not the answer."""

    def piece(*parts: JsonValue) -> JsonObject:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}

    call: JsonObject = {"functionCall": {"name": "read", "args": {"path": "/x"}}}
    pieces: list[JsonValue] = [
        piece({"text": "Hm", "thought": True}),
        piece({"text": "Hel"}),
        piece({"text": "lo"}),
        piece(call),
        {"usageMetadata": {}},
    ]
    bodies = {
        "sse": sse(*pieces),
        "json-array": json.dumps(pieces).encode(),
        "whole": json.dumps(piece({"text": "Hm", "thought": True}, {"text": "Hello"}, call)).encode(),
    }
    assert echo("gemini", form, bodies[form]) == {
        "contents": [{"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Hello"}, call]}]
    }


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic", "gemini", "generic"])
@pytest.mark.parametrize("form", ["sse", "whole", "json-array"])
@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[]", b"null", b"data: [1]\n\n", b'{"error": {"message": "no"}}', b"[" * 100_000]
    + [
        json.dumps({name: odd}).encode()
        for name in ("choices", "output", "content", "candidates")
        for odd in ODD
    ]
    + [
        sse(
            {"choices": [{"index": [], "delta": {}}]}, {"choices": [{"delta": 3}]}, {"delta": {}, "index": {}}
        ),
        sse(
            {"type": "content_block_delta", "index": 0, "delta": {"text": "lost"}},
            {"candidates": [{"content": 3}]},
        ),
    ],
)
def test_odd_answers_are_never_an_error(wire: Wire, form: Form, body: bytes) -> None:
    """What cannot be read is None or less, never an exception."""
    turn = echo(wire, form, body)
    assert turn is None or isinstance(turn, dict)
