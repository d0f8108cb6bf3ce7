"""What each adapter makes of its own wire's peculiarities, and what no adapter ever does: raise."""

from __future__ import annotations

import itertools
import json
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Form,
    JsonObject,
    JsonValue,
    Operation,
    Target,
    Wire,
)
from rewind_proxy.wire import ADAPTERS

PATHS: dict[Wire, str] = {
    "chat_completions": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m1:generateContent",
    "generic": "/v1/other",
}


def read(wire: Wire, body: JsonObject, path: str | None = None) -> CanonicalRequest:
    return ADAPTERS[wire].request(Target("POST", "h.example", path or PATHS[wire]), "generate", body)


def parts(request: CanonicalRequest) -> list[tuple[str, JsonObject]]:
    return [(message.role, part) for message in request.messages for part in message.parts]


CODEX: JsonObject = {
    "model": "m1",
    "stream": True,
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
            ],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Base."}],
            "internal_chat_message_metadata_passthrough": {"turn_id": "t"},
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "enc"},
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "status": "completed",
            "call_id": "call_1",
            "name": "exec",
            "input": "text(1)",
        },
        {
            "type": "custom_tool_call_output",
            "id": "ctco_1",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "1"}],
        },
    ],
    "prompt_cache_key": "k",
    "client_metadata": {"turn_id": "t"},
    "text": {"verbosity": "low"},
}


def test_codex() -> None:
    """Codex's tools become tools, ids of items get their own name, linking ids stay."""
    request = read("responses", CODEX)
    assert [tool["name"] for tool in request.tools] == ["functions"]
    passthrough = {"internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    assert parts(request) == [
        ("system", {"type": "text", "text": "Base."}),
        ("system", {"type": "opaque", "value": {"item_id": "msg_1", **passthrough}, "at": "message"}),
        ("user", {"type": "text", "text": "Go."}),
        ("assistant", {"type": "reasoning", "encrypted_content": "enc", "item_id": "rs_1"}),
        (
            "assistant",
            {
                "type": "tool_call",
                "id": "call_1",
                "name": "exec",
                "arguments": "text(1)",
                "call_type": "custom",
                "item_id": "ctc_1",
            },
        ),
        (
            "tool",
            {
                "type": "tool_result",
                "id": "call_1",
                "content": [{"type": "text", "text": "1"}],
                "item_id": "ctco_1",
            },
        ),
    ]
    assert request.params == {
        "model": "m1",
        "stream": True,
        "prompt_cache_key": "k",
        "client_metadata": {"turn_id": "t"},
        "verbosity": "low",
    }
    volatile = ADAPTERS["responses"].volatile
    assert {"prompt_cache_key", "client_metadata", "metadata"} <= volatile.params
    assert {"item_id", *passthrough} <= volatile.members


def test_a_socket_frame_is_a_post() -> None:
    """The `response.create` frame of a socket means what the POST means; a warm-up does not."""
    assert read("responses", {"type": "response.create", **CODEX}) == read("responses", CODEX)
    assert read("responses", {**CODEX, "generate": False}) != read("responses", CODEX)


def test_compaction_is_no_turn() -> None:
    """The same body at `…/responses/compact` is another request."""
    assert read("responses", CODEX, "/v1/responses/compact") != read("responses", CODEX)


def test_late_tools_stay_in_place() -> None:
    """Tools that come in mid-conversation mean something where they stand."""
    late: JsonObject = {
        "input": [{"role": "user", "content": "a"}, {"type": "additional_tools", "tools": [{}]}]
    }
    request = read("responses", late)
    assert request.tools == ()
    assert parts(request)[1][1]["type"] == "opaque"


def test_claude_code() -> None:
    """Claude Code's wrapper members, diagnostics and error flags are read apart."""
    request = read(
        "anthropic",
        {
            "model": "m1",
            "system": [{"type": "text", "text": "You are.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "Go."},
                {"role": "system", "content": "Env.", "output_config": {"effort": "medium"}},
            ],
            "metadata": {"user_id": "u"},
            "diagnostics": {"previous_message_id": "msg_1"},
            "output_config": {"effort": "medium"},
        },
    )
    assert parts(request) == [
        ("system", {"type": "text", "text": "You are.", "cache_control": {"type": "ephemeral"}}),
        ("user", {"type": "text", "text": "Go."}),
        ("system", {"type": "text", "text": "Env."}),
        ("system", {"type": "opaque", "value": {"output_config": {"effort": "medium"}}, "at": "message"}),
    ]
    assert request.params == {
        "model": "m1",
        "metadata": {"user_id": "u"},
        "diagnostics.previous_message_id": "msg_1",
        "output_config": {"effort": "medium"},
    }
    volatile = ADAPTERS["anthropic"].volatile
    assert {"metadata", "anthropic_version", "diagnostics.previous_message_id"} <= volatile.params
    assert volatile.members == {"cache_control"}
    assert volatile.system_prefixes == ("x-anthropic-billing-header:",)


def test_what_safeguards_are_told_of_the_machine() -> None:
    """It is apart where all are told alike; which of several was told it is meaning."""

    def told(*contexts: JsonObject) -> JsonObject:
        safeguards: list[JsonValue] = [{"type": "t", "classifier_context": context} for context in contexts]
        messages: list[JsonValue] = [{"role": "user", "content": "Go."}]
        return read("anthropic", {"messages": messages, "safeguards": safeguards}).params

    rest: JsonObject = {"type": "t", "classifier_context": {}}
    linux: JsonObject = {"platform": "linux"}
    assert told(linux) == {"safeguards": [rest], "safeguards.platform": "linux"}
    assert told(linux, linux) == {"safeguards": [rest, rest], "safeguards.platform": "linux"}
    assert told(linux, {}) != told({}, linux)
    assert told(linux, {"platform": "darwin"}).keys() == {"safeguards"}


def test_code_assist() -> None:
    """Code Assist's wrapping means what the plain request means, but for what its volatile fields say."""
    inner: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "session_id": "s"}
    outer: JsonObject = {"model": "m1", "project": "p", "user_prompt_id": "u", "request": inner}
    wrapped = read("gemini", outer, "/v1internal:streamGenerateContent")
    plain = read("gemini", inner, "/v1beta/models/m1:streamGenerateContent")
    assert wrapped.messages == plain.messages
    volatile = ADAPTERS["gemini"].volatile.params
    assert {k: v for k, v in wrapped.params.items() if k not in volatile} == {"model": "m1", "stream": True}
    assert {k: v for k, v in plain.params.items() if k not in volatile} == {"model": "m1", "stream": True}


def test_gemini_cli() -> None:
    """A signature stays on its part, a result loses the name its call has already said."""
    request = read(
        "gemini",
        {
            "contents": [
                {
                    "role": "model",
                    "parts": [
                        {"functionCall": {"id": "x", "name": "sh", "args": {}}, "thoughtSignature": "sig"}
                    ],
                },
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"id": "x", "name": "sh", "response": {"output": "ok"}}}],
                },
            ],
            "generationConfig": {"temperature": 1, "topP": 0.95, "thinkingConfig": {"includeThoughts": True}},
        },
    )
    assert parts(request) == [
        ("assistant", {"type": "tool_call", "id": "x", "name": "sh", "arguments": {}, "signature": "sig"}),
        ("tool", {"type": "tool_result", "id": "x", "content": [{"type": "text", "text": "ok"}]}),
    ]
    assert request.params == {
        "model": "m1",
        "temperature": 1,
        "top_p": 0.95,
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }


def test_model_in_the_path() -> None:
    """Azure and Vertex name the model in the path."""
    azure = read("chat_completions", {}, "/openai/deployments/d1/chat/completions")
    vertex = read("anthropic", {}, "/v1/projects/p/publishers/anthropic/models/c%401:rawPredict")
    assert (azure.params["model"], vertex.params["model"]) == ("d1", "c@1")


def test_two_names_for_one_parameter() -> None:
    """Both spellings of a limit in one body are both kept, in whatever order they stand."""
    one = read("chat_completions", {"max_tokens": 1, "max_completion_tokens": 2})
    two = read("chat_completions", {"max_completion_tokens": 2, "max_tokens": 1})
    assert one.params == two.params == {"max_tokens": 1, "max_completion_tokens": 2}


def test_generic() -> None:
    """Method, host, path, query and body count; a credential in the query does not."""
    generic = ADAPTERS["generic"]
    query = (("a", "1"), ("key", "not a real key"), ("access_token", "a1b2c3d4e5f6a7b8c9d0e1f2"))
    request = generic.request(Target("POST", "h.example", "/x", query), "generate", {"model": "m"})
    assert request.messages == ()
    assert request.params == {
        "generic_method": "POST",
        "generic_host": "h.example",
        "generic_path": "/x",
        "generic_query": [["a", "1"]],
        "generic_body": {"model": "m"},
    }


@pytest.mark.parametrize(
    ("wire", "path", "query", "body", "form"),
    [
        ("chat_completions", None, (), {"stream": True}, "sse"),
        ("chat_completions", None, (), {"stream": False}, "whole"),
        ("responses", None, (), {}, "whole"),
        ("responses", None, (), {"stream": True}, "sse"),
        ("anthropic", None, (), {"stream": True}, "sse"),
        ("anthropic", "/v1/publishers/anthropic/models/c:streamRawPredict", (), {}, "sse"),
        ("gemini", "/v1beta/models/m:generateContent", (("alt", "sse"),), {"stream": True}, "whole"),
        ("gemini", "/v1beta/models/m:streamGenerateContent", (("alt", "sse"),), {}, "sse"),
        ("gemini", "/v1beta/models/m:streamGenerateContent", (), {}, "json-array"),
        ("gemini", "/v1internal:streamGenerateContent", (("alt", "sse"),), {}, "sse"),
        ("generic", None, (), {"stream": True}, "sse"),
    ],
)
def test_form(
    wire: Wire, path: str | None, query: tuple[tuple[str, str], ...], body: JsonObject, form: Form
) -> None:
    """The form asked for stands in the body, in Gemini's case in the path."""
    assert ADAPTERS[wire].form(Target("POST", "h", path or PATHS[wire], query), body) == form


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "generic"])
def test_openai_error(wire: Wire) -> None:
    """A refusal in OpenAI's shape."""
    assert ADAPTERS[wire].error(400, "why") == {
        "error": {
            "message": "why",
            "type": "invalid_request_error",
            "param": None,
            "code": "rewind_no_recording",
        }
    }


def test_other_errors() -> None:
    """A refusal in Anthropic's and in Google's shape."""
    assert ADAPTERS["anthropic"].error(400, "why") == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "why"},
    }
    assert ADAPTERS["gemini"].error(404, "why") == {
        "error": {"code": 404, "message": "why", "status": "NOT_FOUND"}
    }


# Every member name the adapters look for, so that odd values land where they are looked at.
NAMES = st.sampled_from(
    """messages input contents content parts system instructions systemInstruction tools tool_choice type
    role text tool_calls function function_call arguments name id call_id tool_use_id tool_call_id
    image_url url source data functionCall functionResponse response output result args inlineData
    mimeType thought thoughtSignature generationConfig responseMimeType responseSchema toolConfig
    functionCallingConfig mode stop model reasoning summary encrypted_content effort format
    json_schema output_config diagnostics previous_message_id refusal reasoning_content usage
    choices finish_reason error candidates finishReason status request index delta message
    functionDeclarations parameters input_schema custom file file_data input_audio
    allowedFunctionNames cache_control item_id is_error stop_reason usageMetadata promptTokenCount
    properties""".split()
)
STRINGS = st.sampled_from(
    """system developer user assistant tool function model text tool_use tool_result thinking image
    document message function_call function_call_output custom_tool_call reasoning item_reference
    additional_tools input_text input_image output_text refusal image_url input_audio file custom
    allowed_tools auto any none required ANY AUTO json_schema application/json base64
    data:image/png;base64,AA== data: error completed response.completed message_stop message_start
    message_delta {} {"a":1} [DONE] x""".split()
)
ODD_JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | STRINGS
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=2), inner, max_size=5)
    ),
    max_leaves=30,
)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(NAMES, ODD_JSON, max_size=6)
OPERATIONS: tuple[Operation, ...] = ("generate", "count_tokens", "embed")


@given(OBJECTS, st.sampled_from(sorted(PATHS)), st.sampled_from(OPERATIONS))
@settings(max_examples=600, deadline=None)
def test_no_shape_raises(body: JsonObject, wire: Wire, operation: Operation) -> None:
    """Whatever JSON comes, a request is read, its parts have a type, and the body is left as it was."""
    before = repr(body)
    adapter = ADAPTERS[wire]
    for path in (PATHS[wire], "/v1internal:streamGenerateContent", "/openai/deployments/x/y"):
        target = Target("POST", "h", path)
        request = adapter.request(target, operation, body)
        adapter.form(target, body)
        roles = [message.role for message in request.messages]
        assert all(one != two for one, two in itertools.pairwise(roles))
        assert all(isinstance(part["type"], str) for _, part in parts(request))
        assert request == adapter.request(target, operation, dict(reversed(body.items())))
    assert repr(body) == before


@pytest.mark.parametrize("odd", [[], {}, ["text"], {"type": "text"}, 5, True, ""])
@pytest.mark.parametrize("wire", sorted(PATHS))
def test_no_type_raises(wire: Wire, odd: JsonValue) -> None:
    """Whatever JSON stands where the type or role of a turn, a part or a tool is looked for, it is read."""
    one: JsonObject = {
        "type": odd,
        "role": odd,
        "toolCall": {"toolType": odd, "id": odd},
        "source": {"type": odd},
    }
    turn: JsonObject = {"role": "user", "content": [one], "parts": [one]}
    turns: JsonValue = [one, turn]
    choices: JsonObject = {"tools": [one], "tool_choice": one, "response_format": one}
    everything: JsonObject = {"messages": turns, "input": turns, "contents": turns, **choices}
    assert read(wire, everything).to_json() != read(wire, choices).to_json()


@given(ODD_JSON, st.sampled_from(sorted(PATHS)), st.sampled_from(OPERATIONS))
@settings(max_examples=300, deadline=None)
def test_no_answer_raises(value: JsonValue, wire: Wire, operation: Operation) -> None:
    """Whatever JSON an answer holds, its ending is told."""
    text = json.dumps(value).encode()
    for form, body in (
        ("whole", text),
        ("json-array", b"[" + text + b"]"),
        ("sse", b"data: " + text + b"\n\n"),
    ):
        assert ADAPTERS[wire].ending(cast("Form", form), operation, body).kind
