"""One conversation through any wire gives the same messages and tools (DESIGN §5)."""

from __future__ import annotations

import pytest

from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, JsonValue, Target, Wire
from rewind_proxy.wire import ADAPTERS

PATHS: dict[Wire, str] = {
    "chat_completions": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m1:generateContent",
}
PNG = "iVBORw0KGgo="
SCHEMA: JsonObject = {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}


def read(wire: Wire, body: JsonObject) -> CanonicalRequest:
    return ADAPTERS[wire].request(Target("POST", "h.example", PATHS[wire]), "generate", body)


CONVERSATION: dict[Wire, JsonObject] = {
    "chat_completions": {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Look:"},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "text", "text": "What is it?"},
                ],
            },
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "I shall look it up.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"type": "x"}'}},
                    {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "does f", "parameters": SCHEMA}},
            {"type": "function", "function": {"name": "g", "description": "does g"}},
        ],
    },
    "responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Look:"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                    {"type": "input_text", "text": "What is it?"},
                ],
            },
            {
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "I shall look it up."}],
            },
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"type":"x"}'},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "a", "output": "one"},
            {
                "type": "function_call_output",
                "call_id": "b",
                "output": [{"type": "input_text", "text": "two"}],
            },
            {"role": "user", "content": "Go on."},
            {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}],
            },
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "does f", "parameters": SCHEMA},
            {"type": "function", "name": "g", "description": "does g"},
        ],
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                    {"type": "text", "text": "What is it?"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I shall look it up."},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"type": "x"}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one", "is_error": False},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "two"}],
                    },
                    {"type": "text", "text": "Go on."},
                ],
            },
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [
            {"name": "f", "description": "does f", "input_schema": SCHEMA},
            {"type": "custom", "name": "g", "description": "does g"},
        ],
    },
    "gemini": {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look:"}]},
            {
                "role": "user",
                "parts": [
                    {"inline_data": {"mime_type": "image/png", "data": PNG}},
                    {"text": "What is it?"},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I shall look it up.", "thought": True},
                    {"functionCall": {"id": "a", "name": "f", "args": {"type": "x"}}},
                    {"functionCall": {"id": "b", "name": "f"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "a", "name": "f", "response": {"output": "one"}}},
                    {"functionResponse": {"id": "b", "name": "f", "response": {"output": "two"}}},
                    {"text": "Go on."},
                ],
            },
            {"role": "model", "parts": [{"text": "Done."}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "description": "does f",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {"type": {"type": "STRING"}},
                            "required": ["type"],
                        },
                    },
                    {"name": "g", "description": "does g"},
                ]
            }
        ],
    },
}


@pytest.mark.parametrize("wire", ["responses", "anthropic", "gemini"])
def test_one_conversation(wire: Wire) -> None:
    """Text, an image, reasoning, two calls and their results are the same on every wire."""
    reference = read("chat_completions", CONVERSATION["chat_completions"])
    found = read(wire, CONVERSATION[wire])
    assert [m.to_json() for m in found.messages] == [m.to_json() for m in reference.messages]
    assert sorted(found.tools, key=str) == sorted(reference.tools, key=str)


def test_its_canonical_form() -> None:
    """And this is what it looks like."""
    assert [m.to_json() for m in read("anthropic", CONVERSATION["anthropic"]).messages] == [
        {"role": "system", "parts": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "text": "Look:"},
                {"type": "media", "media_type": "image/png", "data": PNG},
                {"type": "text", "text": "What is it?"},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "I shall look it up."},
                {"type": "tool_call", "id": "a", "name": "f", "arguments": {"type": "x"}},
                {"type": "tool_call", "id": "b", "name": "f", "arguments": {}},
            ],
        },
        {
            "role": "tool",
            "parts": [
                {"type": "tool_result", "id": "a", "content": [{"type": "text", "text": "one"}]},
                {"type": "tool_result", "id": "b", "content": [{"type": "text", "text": "two"}]},
            ],
        },
        {"role": "user", "parts": [{"type": "text", "text": "Go on."}]},
        {"role": "assistant", "parts": [{"type": "text", "text": "Done."}]},
    ]


EMPTY_RESULT: dict[Wire, JsonObject] = {
    "chat_completions": {"messages": [{"role": "tool", "tool_call_id": "a", "content": ""}]},
    "responses": {"input": [{"type": "function_call_output", "call_id": "a", "output": ""}]},
    "anthropic": {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]},
    "gemini": {"contents": [{"parts": [{"functionResponse": {"id": "a", "response": {"output": ""}}}]}]},
}


@pytest.mark.parametrize("wire", EMPTY_RESULT)
def test_empty_result(wire: Wire) -> None:
    """An empty result has no parts, whether it is an empty string or left out."""
    (message,) = read(wire, EMPTY_RESULT[wire]).messages
    assert message.to_json() == {
        "role": "tool",
        "parts": [{"type": "tool_result", "id": "a", "content": []}],
    }


SAME_PARAMETERS: dict[str, dict[Wire, JsonObject]] = {
    "limits": {
        "chat_completions": {"max_completion_tokens": 9, "stop": "x", "temperature": 1, "top_p": 0.5},
        "responses": {"max_output_tokens": 9, "stop": ["x"], "temperature": 1, "top_p": 0.5},
        "anthropic": {"max_tokens": 9, "stop_sequences": ["x"], "temperature": 1, "top_p": 0.5},
        "gemini": {
            "generationConfig": {"maxOutputTokens": 9, "stopSequences": ["x"], "temperature": 1, "top_p": 0.5}
        },
    },
    "format": {
        "chat_completions": {
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        },
        "responses": {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "gemini": {
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
        },
    },
    "any tool": {
        "chat_completions": {"tool_choice": "required"},
        "responses": {"tool_choice": "required"},
        "anthropic": {"tool_choice": {"type": "any"}},
        "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    },
    "this tool": {
        "chat_completions": {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        "responses": {"tool_choice": {"type": "function", "name": "f"}},
        "anthropic": {"tool_choice": {"type": "tool", "name": "f"}},
        "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}},
    },
    "one at a time": {
        "chat_completions": {"tool_choice": "auto", "parallel_tool_calls": False},
        "responses": {"tool_choice": "auto", "parallel_tool_calls": False},
        "anthropic": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    },
    "effort": {
        "chat_completions": {"reasoning_effort": "low", "verbosity": "low"},
        "responses": {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}},
    },
}


@pytest.mark.parametrize("case", SAME_PARAMETERS)
def test_parameters(case: str) -> None:
    """What several wires have stands under one name, with one spelling of its value."""
    bodies = SAME_PARAMETERS[case]
    found = {wire: read(wire, {"model": "m1", **body}).params for wire, body in bodies.items()}
    reference = found["chat_completions"]
    assert all(params == reference for params in found.values()), found


def test_instructions_in_the_middle() -> None:
    """A system message among the others stays in its place; a gateway sends it to Gemini's wire so, too."""
    talk = [("user", "Hi."), ("system", "Be brief."), ("user", "Go on.")]
    said: list[JsonValue] = [{"role": role, "content": text} for role, text in talk]
    contents: list[JsonValue] = [{"role": role, "parts": [{"text": text}]} for role, text in talk]
    bodies: dict[Wire, JsonObject] = {
        "chat_completions": {"messages": said},
        "responses": {"input": said},
        "anthropic": {"messages": said},
        "gemini": {"contents": contents},
    }
    for wire, body in bodies.items():
        messages = read(wire, body).messages
        assert [(message.role, message.parts[0]["text"]) for message in messages] == talk


def test_gemini_without_ids() -> None:
    """Calls and results without ids are paired by name and order, as if they had them."""

    def body(first: str, second: str) -> JsonObject:
        return {
            "contents": [
                {
                    "role": "model",
                    "parts": [
                        {"functionCall": {"name": "f", "args": {"n": 1}}},
                        {"functionCall": {"name": "g"}},
                        {"functionCall": {"name": "f", "args": {"n": 2}}},
                    ],
                },
                {
                    "role": "function",
                    "parts": [
                        {"functionResponse": {"name": name, "response": {"output": name}}}
                        for name in (first, second, "f")
                    ],
                },
            ]
        }

    def links(request: CanonicalRequest) -> list[JsonValue]:
        return [part["id"] for message in request.messages for part in message.parts]

    one, two, three, *results = links(read("gemini", body("g", "f")))
    assert results == [two, one, three]
    assert len({one, two, three, ""}) == 4


MUST_DIFFER: list[tuple[Wire, JsonObject, JsonObject]] = [
    # What is not on the wire's list of volatile fields never goes.
    ("responses", {"x_new_field": 1}, {"x_new_field": 2}),
    ("responses", {"previous_response_id": "r1"}, {"previous_response_id": "r2"}),
    ("responses", {"stop": []}, {}),
    ("responses", {"tools": []}, {}),
    ("responses", {"text": {}}, {}),
    ("responses", {"input": [{"type": "item_reference", "id": "a"}]}, {"input": [{"id": "b"}]}),
    (
        "responses",
        {"input": [{"type": "image_generation_call", "id": "ig_1"}]},
        {"input": [{"type": "image_generation_call", "id": "ig_2"}]},
    ),
    (
        "responses",
        {"input": [{"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "{}"}]},
        {"input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]},
    ),
    (
        "chat_completions",
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '"x"'}}]}
            ]
        },
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]}]},
    ),
    (
        "chat_completions",
        {"messages": [{"role": "user", "content": "a", "name": "x"}]},
        {"messages": [{"role": "user", "content": "a", "name": "y"}]},
    ),
    (
        "chat_completions",
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        {"messages": [{"role": "assistant", "content": "b"}, {"role": "user", "content": "a"}]},
    ),
    (
        "anthropic",
        {
            "messages": [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": True}]}
            ]
        },
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]},
    ),
    (
        "anthropic",
        {"messages": [{"role": "system", "content": "a", "output_config": {"effort": "low"}}]},
        {"messages": [{"role": "system", "content": "a", "output_config": {"effort": "high"}}]},
    ),
    ("anthropic", {"thinking": {"budget_tokens": 1}}, {"thinking": {"budget_tokens": 2}}),
    ("gemini", {"safetySettings": [1]}, {"safetySettings": [2]}),
    ("gemini", {"generationConfig": {"thinkingConfig": 1}}, {"generationConfig": {"thinkingConfig": 2}}),
    ("gemini", {"cachedContent": "a"}, {"cachedContent": "b"}),
    (
        "gemini",
        {"contents": [{"parts": [{"text": "a", "videoMetadata": 1}]}]},
        {"contents": [{"parts": [{"text": "a", "videoMetadata": 2}]}]},
    ),
]


@pytest.mark.parametrize(("wire", "one", "two"), MUST_DIFFER)
def test_meaning_stays(wire: Wire, one: JsonObject, two: JsonObject) -> None:
    """Requests that mean different things have different canonical forms."""
    assert read(wire, one).to_json() != read(wire, two).to_json()
