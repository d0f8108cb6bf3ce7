"""What several wires can say is the same on each that can (DESIGN §5): one kind of conversation a row."""

from __future__ import annotations

import json

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
WAV = "UklGRg=="
URL = "https://cdn.example/a.png"


def read(wire: Wire, body: JsonObject) -> CanonicalRequest:
    """The canonical request of a body."""
    return ADAPTERS[wire].request(Target("POST", "h.example", PATHS[wire]), "generate", body)


def chat(*messages: JsonObject) -> JsonObject:
    """The body of Chat Completions and of Anthropic."""
    return {"messages": [*messages]}


def items(*blocks: JsonValue) -> JsonObject:
    """The body of Responses."""
    return {"input": [*blocks]}


def contents(*turns: JsonValue) -> JsonObject:
    """The body of Gemini."""
    return {"contents": [*turns]}


def turn(role: str, *parts: JsonValue) -> JsonObject:
    """A turn of Gemini."""
    return {"role": role, "parts": [*parts]}


def message(role: str, content: JsonValue, **more: JsonValue) -> JsonObject:
    """A message of the others."""
    return {"role": role, "content": content, **more}


def said(*parts: JsonValue) -> JsonObject:
    """What the model has said, in Responses."""
    return {"type": "message", "role": "assistant", "status": "completed", "content": [*parts]}


def call(call_id: str, **arguments: JsonValue) -> JsonObject:
    """A call of Chat Completions."""
    function: JsonObject = {"name": "f", "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def result(call_id: str, content: JsonValue) -> JsonObject:
    """A result of Anthropic's."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def answered(call_id: str, output: str, **more: JsonValue) -> JsonObject:
    """A result of Gemini's."""
    return {"functionResponse": {"id": call_id, "name": "f", "response": {"output": output}, **more}}


IMAGE_URL: JsonObject = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
INPUT_IMAGE: JsonObject = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
IMAGE: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
INLINE: JsonObject = {"inlineData": {"mimeType": "image/png", "data": PNG}}

SAME: dict[str, dict[Wire, JsonObject]] = {
    "a string or a list": {
        "chat_completions": chat(message("user", "q")),
        "responses": {"input": "q"},
        "anthropic": chat(message("user", [{"type": "text", "text": "q"}])),
        "gemini": contents(turn("user", {"text": "q"})),
    },
    "a picture by its URL": {
        "chat_completions": chat(message("user", [{"type": "image_url", "image_url": {"url": URL}}])),
        "responses": items(message("user", [{"type": "input_image", "image_url": URL}])),
        "anthropic": chat(message("user", [{"type": "image", "source": {"type": "url", "url": URL}}])),
    },
    "two pictures among words": {
        "chat_completions": chat(message("user", [IMAGE_URL, {"type": "text", "text": "or"}, IMAGE_URL])),
        "responses": items(message("user", [INPUT_IMAGE, {"type": "input_text", "text": "or"}, INPUT_IMAGE])),
        "anthropic": chat(message("user", [IMAGE, {"type": "text", "text": "or"}, IMAGE])),
        "gemini": contents(turn("user", INLINE, {"text": "or"}), turn("user", INLINE)),
    },
    "audio": {
        "chat_completions": chat(
            message("user", [{"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}])
        ),
        "responses": items(
            message("user", [{"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}])
        ),
        "gemini": contents(turn("user", {"inlineData": {"mimeType": "audio/x-wav", "data": WAV}})),
    },
    "a text file": {
        "anthropic": chat(
            message(
                "user",
                [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}],
            )
        ),
        "gemini": contents(turn("user", {"inlineData": {"mimeType": "text/plain", "data": "aGk="}})),
        "responses": items(
            message("user", [{"type": "input_file", "file_data": "data:text/plain;base64,aGk="}])
        ),
    },
    "a picture as result": {
        "chat_completions": chat(
            message("assistant", None, tool_calls=[call("a")]),
            message("tool", [{"type": "text", "text": "see"}, IMAGE_URL], tool_call_id="a"),
        ),
        "responses": items(
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "a",
                "output": [{"type": "input_text", "text": "see"}, INPUT_IMAGE],
            },
        ),
        "anthropic": chat(
            message("assistant", [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
            message(
                "user",
                [result("a", [{"type": "text", "text": "see"}, IMAGE])],
            ),
        ),
        "gemini": contents(
            turn("model", {"functionCall": {"id": "a", "name": "f", "args": {}}}),
            turn(
                "user",
                answered("a", "see", parts=[INLINE]),
            ),
        ),
    },
    "parallel results in another order": {
        "chat_completions": chat(
            message("assistant", "two at once", tool_calls=[call("a", x=1), call("b", x=2)]),
            message("tool", "B", tool_call_id="b"),
            message("tool", "A", tool_call_id="a"),
        ),
        "responses": items(
            said({"type": "output_text", "text": "two at once", "annotations": []}),
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": '{"x":2}', "status": None},
            {"type": "function_call_output", "call_id": "b", "output": "B"},
            {"type": "function_call_output", "call_id": "a", "output": "A"},
        ),
        "anthropic": chat(
            message(
                "assistant",
                [
                    {"type": "text", "text": "two at once"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {"x": 2}},
                ],
            ),
            message("user", [result("b", "B")]),
            message("user", [result("a", "A")]),
        ),
        "gemini": contents(
            turn(
                "model",
                {"text": "two at once"},
                {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
                {"functionCall": {"id": "b", "name": "f", "args": {"x": 2}}},
            ),
            turn("function", {"functionResponse": {"id": "b", "name": "f", "response": {"result": "B"}}}),
            turn("function", answered("a", "A")),
        ),
    },
    "a word after the results": {
        "chat_completions": chat(
            message("assistant", None, tool_calls=[call("a")]),
            message("tool", "A", tool_call_id="a"),
            message("user", "thanks"),
        ),
        "responses": items(
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "A"},
            message("user", [{"type": "input_text", "text": "thanks"}]),
        ),
        "anthropic": chat(
            message("assistant", [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
            message(
                "user",
                [
                    result("a", "A"),
                    {"type": "text", "text": "thanks"},
                ],
            ),
        ),
        "gemini": contents(
            turn("model", {"functionCall": {"id": "a", "name": "f"}}),
            turn(
                "user",
                answered("a", "A"),
                {"text": "thanks"},
            ),
        ),
    },
    "the system in the middle": {
        "chat_completions": chat(
            message("system", "s"), message("user", "q"), message("developer", "t"), message("user", "r")
        ),
        "responses": {
            "instructions": "s",
            **items(message("user", "q"), message("system", "t"), message("user", "r")),
        },
        "anthropic": {
            "system": "s",
            **chat(
                message("user", "q"), message("system", [{"type": "text", "text": "t"}]), message("user", "r")
            ),
        },
    },
    "two system blocks": {
        "chat_completions": chat(message("system", "s"), message("developer", "t"), message("user", "q")),
        "responses": {"instructions": "s", **items(message("developer", "t"), message("user", "q"))},
        "anthropic": {
            "system": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}],
            **chat(message("user", "q")),
        },
        "gemini": {
            "system_instruction": {"parts": [{"text": "s"}, {"text": "t"}]},
            **contents(turn("user", {"text": "q"})),
        },
    },
    "reasoning before words and calls": {
        "chat_completions": chat(
            message("user", "q"),
            message("assistant", "so", reasoning_content="hm", tool_calls=[call("a", x=1)]),
        ),
        "responses": items(
            message("user", "q"),
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            said({"type": "output_text", "text": "so"}),
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
        ),
        "anthropic": chat(
            message("user", "q"),
            message(
                "assistant",
                [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                ],
            ),
        ),
        "gemini": contents(
            turn("user", {"text": "q"}),
            turn(
                "model",
                {"text": "hm", "thought": True},
                {"text": "so"},
                {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
            ),
        ),
    },
    "a refusal": {
        "chat_completions": chat(message("assistant", None, refusal="no")),
        "responses": items(said({"type": "refusal", "refusal": "no"})),
    },
    "a custom tool": {
        "chat_completions": chat(
            message(
                "assistant",
                None,
                tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "p", "input": "x  y"}}],
            )
        ),
        "responses": items({"type": "custom_tool_call", "call_id": "a", "name": "p", "input": "x  y"}),
    },
    "a result that failed": {
        "anthropic": chat(
            message("user", [{"type": "tool_result", "tool_use_id": "a", "content": "E", "is_error": True}])
        ),
        "gemini": contents(turn("user", {"functionResponse": {"id": "a", "response": {"error": "E"}}})),
    },
}


@pytest.mark.parametrize("kind", SAME)
def test_one_conversation(kind: str) -> None:
    """The messages are the same on all the wires of the row."""
    found = {wire: read(wire, body).to_json()["messages"] for wire, body in SAME[kind].items()}
    first, *others = found.values()
    assert first
    assert all(each == first for each in others), found


@pytest.mark.parametrize("wire", PATHS)
def test_all_kinds_differ(wire: Wire) -> None:
    """No row is another row."""
    found = [str(read(wire, bodies[wire]).to_json()) for bodies in SAME.values() if wire in bodies]
    assert len({*found}) == len(found)


SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}}
CHOICES: dict[str, dict[Wire, JsonObject]] = {
    "auto": {
        "chat_completions": {"tool_choice": "auto"},
        "responses": {"tool_choice": "auto"},
        "anthropic": {"tool_choice": {"type": "auto"}},
        "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
    },
    "none": {
        "chat_completions": {"tool_choice": "none"},
        "responses": {"tool_choice": "none"},
        "anthropic": {"tool_choice": {"type": "none"}},
        "gemini": {"tool_config": {"function_calling_config": {"mode": "NONE"}}},
    },
    "one of two": {
        "chat_completions": {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": name}} for name in "fg"],
                },
            }
        },
        "responses": {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": name} for name in "fg"],
            }
        },
        "gemini": {
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}}
        },
    },
    "this one alone": {
        "chat_completions": {
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "parallel_tool_calls": False,
        },
        "responses": {"tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": False},
        "anthropic": {"tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
    },
    "any JSON": {
        "chat_completions": {"response_format": {"type": "json_object"}},
        "responses": {"text": {"format": {"type": "json_object"}}},
        "gemini": {"generationConfig": {"responseMimeType": "application/json"}},
    },
    "named JSON": {
        "chat_completions": {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
            }
        },
        "responses": {
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
        },
    },
    "stop words": {
        "chat_completions": {"stop": ["a", "b"]},
        "anthropic": {"stop_sequences": ["a", "b"]},
        "gemini": {"generationConfig": {"stop_sequences": ["a", "b"]}},
    },
    "penalties": {
        "chat_completions": {"presence_penalty": 1, "frequency_penalty": 2, "n": 2, "seed": 3},
        "gemini": {
            "generationConfig": {"presencePenalty": 1, "frequencyPenalty": 2, "candidateCount": 2, "seed": 3}
        },
    },
    "how many to choose from": {
        "anthropic": {"top_k": 4},
        "gemini": {"generationConfig": {"topK": 4}},
        "chat_completions": {"top_k": 4},
    },
}


@pytest.mark.parametrize("kind", CHOICES)
def test_one_parameter(kind: str) -> None:
    """A choice, a format or a limit has one name and one spelling on all the wires of the row."""
    found = {wire: read(wire, {"model": "m1", **body}).params for wire, body in CHOICES[kind].items()}
    first, *others = found.values()
    assert len(first) > 1
    assert all(each == first for each in others), found
