"""The bundled fake provider answers like the real ones, and so that wrong answers are seen."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rewind_proxy.cli.provider import HOSTS, Exchange, FakeProvider

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/gemini-fake:generateContent"
GEMINI_STREAM = "/v1beta/models/gemini-fake:streamGenerateContent"
EVENT = re.compile(rb"(?:event: (?P<type>\S+)\n)?data: (?P<data>.*?)(?:\r?\n){2}", re.DOTALL)
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running
    assert running.failures == ()


def post(
    provider: FakeProvider, path: str, body: object, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, sent, dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def whole(provider: FakeProvider, path: str, body: object) -> Any:
    status, answer = post(provider, path, body)
    assert status == 200
    return json.loads(answer)


def events(provider: FakeProvider, path: str, body: object) -> list[Any]:
    status, answer = post(provider, path, body)
    assert status == 200
    found = [match["data"] for match in EVENT.finditer(answer)]
    assert b"".join(match[0] for match in EVENT.finditer(answer)) == answer
    return [None if data == b"[DONE]" else json.loads(data) for data in found]


def user(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


# Text


def test_chat_completions_whole(provider: FakeProvider) -> None:
    """The answer echoes the user, and has usage and a finish reason."""
    answer = whole(provider, CHAT, user("Tell me of bees."))
    (choice,) = answer["choices"]
    assert "Tell me of bees." in choice["message"]["content"]
    assert (choice["finish_reason"], answer["usage"]["total_tokens"] > 2) == ("stop", True)


def test_chat_completions_streamed(provider: FakeProvider) -> None:
    """Several deltas, a finish reason, usage because it was asked for, and `[DONE]`."""
    asked = {**user("Tell me of bees."), "stream": True, "stream_options": {"include_usage": True}}
    *chunks, usage, done = events(provider, CHAT, asked)
    said = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "Tell me of bees." in "".join(said)
    assert len([piece for piece in said if piece]) > 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["prompt_tokens"] > 1, done) == ([], True, None)


def test_responses_streamed(provider: FakeProvider) -> None:
    """The whole grammar in order, with sequence numbers; the last event has the whole response."""
    asked = {"model": "m", "input": "Tell me of bees.", "stream": True}
    found = events(provider, RESPONSES, asked)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    kinds = [event["type"].removeprefix("response.") for event in found]
    deltas = kinds.count("output_text.delta")
    assert deltas > 2
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * deltas,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    said = "".join(event["delta"] for event in found if event["type"].endswith("text.delta"))
    completed = found[-1]["response"]
    assert completed["output"][0]["content"][0]["text"] == said
    assert (completed["status"], completed["usage"]["output_tokens"] > 1) == ("completed", True)


def test_responses_reason_when_the_client_keeps_reasoning(provider: FakeProvider) -> None:
    """A client that asks for encrypted reasoning, as Codex does, gets an item of it first."""
    asked = {"model": "m", "input": "Hi", "include": ["reasoning.encrypted_content"]}
    answer = whole(provider, RESPONSES, asked)
    assert [item["type"] for item in answer["output"]] == ["reasoning", "message"]


def test_anthropic_streamed(provider: FakeProvider) -> None:
    """The whole grammar in order, thinking first where it was asked for."""
    asked = {**user("Tell me of bees."), "stream": True, "thinking": {"type": "adaptive"}}
    found = events(provider, MESSAGES, asked)
    kinds = [event["type"] for event in found if event["type"] != "content_block_delta"]
    block = ["content_block_start", "content_block_stop"]
    assert kinds == ["message_start", block[0], "ping", block[1], *block, "message_delta", "message_stop"]
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert deltas[-1]["type"] == "text_delta"
    assert "Tell me of bees." in "".join(delta.get("text", "") for delta in deltas)
    assert any(delta["type"] == "signature_delta" for delta in deltas)


def test_gemini_in_its_three_forms(provider: FakeProvider) -> None:
    """Whole, as server-sent events, and as one JSON array that comes in pieces."""
    asked = {"contents": [{"role": "user", "parts": [{"text": "Tell me of bees."}]}]}
    (candidate,) = whole(provider, GEMINI, asked)["candidates"]
    sent = events(provider, f"{GEMINI_STREAM}?alt=sse", asked)
    array = whole(provider, GEMINI_STREAM, asked)
    for found in (sent, array):
        texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in found]
        assert "".join(texts) == candidate["content"]["parts"][0]["text"]
        assert found[-1]["candidates"][0]["finishReason"] == "STOP"
        assert found[0]["modelVersion"] == "gemini-fake"
    assert "Tell me of bees." in candidate["content"]["parts"][0]["text"]


def test_ids_are_fresh(provider: FakeProvider) -> None:
    """Two answers to one request differ, so that a replayed one is told from a live one."""
    first, second = (whole(provider, CHAT, user("Hi")) for _ in range(2))
    assert first["id"] != second["id"]


def test_only_the_first_words_are_echoed(provider: FakeProvider) -> None:
    """What stands further on in a prompt, a secret perhaps, is not in the answer."""
    status, answer = post(provider, CHAT, user("one two three four five six seven eight hidden"))
    assert (status, b"eight" in answer, b"hidden" in answer) == (200, True, False)


# Tools


def test_a_tool_is_called_and_its_result_quoted(provider: FakeProvider) -> None:
    """`run …` in the user's words becomes a call of the shell tool; its result stands in the answer."""
    tools = [{"type": "function", "function": {"name": name, "parameters": SHELL}} for name in ("x", "Bash")]
    messages: list[Any] = [{"role": "user", "content": "Please run `ls -a` here."}]
    first = whole(provider, CHAT, {"model": "m", "messages": messages, "tools": tools})
    call = first["choices"][0]["message"]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "Bash",
        {"command": "ls -a"},
    )
    messages += [
        first["choices"][0]["message"],
        {"role": "tool", "tool_call_id": call["id"], "content": "a b"},
    ]
    second = whole(provider, CHAT, {"model": "m", "messages": messages, "tools": tools})
    assert second["choices"][0]["message"]["content"] == "The tool answered: a b"


def test_two_commands_are_two_calls(provider: FakeProvider) -> None:
    """After the first result the second command is called, so longer sessions can be had."""
    tools = [{"name": "Bash", "input_schema": SHELL}]
    use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "one"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "1"}]}
    reminder = {"type": "text", "text": "<system-reminder>Be good.</system-reminder>"}
    messages: list[Any] = [
        {"role": "user", "content": "First run `one`, then run `two`."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, reminder]},
    ]
    answer = whole(provider, MESSAGES, {"model": "m", "messages": messages, "tools": tools})
    assert answer["content"][-1]["input"] == {"command": "two"}
    assert answer["stop_reason"] == "tool_use"


def test_no_tool_is_called_that_was_not_offered(provider: FakeProvider) -> None:
    """Without tools the words are only echoed."""
    answer = whole(provider, CHAT, user("Please run `ls` here."))
    assert "tool_calls" not in answer["choices"][0]["message"]


def test_codex_gets_javascript_for_its_custom_tool(provider: FakeProvider) -> None:
    """Codex offers `exec` in the first item of the input, in a namespace, and takes JavaScript."""
    namespace = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    asked = {
        "model": "m",
        "stream": True,
        "input": [
            {"type": "additional_tools", "tools": [namespace]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "run `pwd`"}]},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "<environment_context>"}],
            },
        ],
    }
    found = events(provider, RESPONSES, asked)
    (item,) = found[-1]["response"]["output"]
    assert (item["type"], item["name"], item["namespace"]) == ("custom_tool_call", "exec", "functions")
    assert 'tools.exec_command({"cmd": "pwd"})' in item["input"]
    deltas = [event["delta"] for event in found if event["type"].endswith("_input.delta")]
    assert "".join(deltas) == item["input"]


def test_gemini_calls_a_function(provider: FakeProvider) -> None:
    """Gemini CLI's shell tool is called with its arguments as an object."""
    declared = [{"name": "run_shell_command", "parametersJsonSchema": SHELL}]
    contents = [{"role": "user", "parts": [{"text": "context"}, {"text": "run `pwd`"}]}]
    answer = whole(provider, GEMINI, {"contents": contents, "tools": [{"functionDeclarations": declared}]})
    (part,) = answer["candidates"][0]["content"]["parts"]
    assert part["functionCall"] == {"name": "run_shell_command", "args": {"command": "pwd"}}


# Everything else


def test_gemini_answers_by_a_schema(provider: FakeProvider) -> None:
    """As its client's choice of a model asks for: an object with what is required."""
    schema = {
        "type": "OBJECT",
        "properties": {"reason": {"type": "STRING"}, "score": {"type": "INTEGER"}},
        "required": ["reason", "score"],
    }
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "Tell me of bees."}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema},
    }
    answer = whole(provider, GEMINI, asked)
    said = json.loads(answer["candidates"][0]["content"]["parts"][0]["text"])
    assert said["score"] == 1
    assert "Tell me of bees." in said["reason"]


@pytest.mark.parametrize(
    "text", ["<now>12:00</now>\n\nTell me of bees.", "<a>\n<b>x</b>\n</a>\n<c>y</c> Tell me of bees."]
)
def test_what_an_agent_adds_in_tags_is_not_asked(provider: FakeProvider, text: str) -> None:
    """Nor before the user's words, nor in a text of its own after them."""
    messages = [*user(text)["messages"], *user("<reminder>Be brief.</reminder>")["messages"]]
    answer = whole(provider, CHAT, {"model": "m", "messages": messages})
    assert "You said: Tell me of bees. (" in answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/v1/responses/input_tokens", "input_tokens"),
        ("/v1beta/models/g:countTokens", "totalTokens"),
    ],
)
def test_tokens_are_counted(provider: FakeProvider, path: str, member: str) -> None:
    """A token count depends on the request."""
    short, long = (whole(provider, path, user(text))[member] for text in ("Hi", "Hi " * 100))
    assert 0 < short < long


def test_embeddings(provider: FakeProvider) -> None:
    """A vector for each input, that depends on it."""
    answer = whole(provider, "/v1/embeddings", {"model": "e", "input": ["a", "b"]})
    first, second = (item["embedding"] for item in answer["data"])
    assert first != second


def test_side_endpoints_count(provider: FakeProvider) -> None:
    """A side endpoint's answer says how often it was asked, so order can be checked in replay."""
    for expected in (1, 2):
        assert whole(provider, "/api/eval/flags", {})["count"] == expected


@pytest.mark.parametrize(
    "path", ["/v1/unknown", "/api/claude_code/policy_limits", "/backend-api/codex/models"]
)
def test_the_rest_is_not_found(provider: FakeProvider, path: str) -> None:
    """Unknown paths, and those whose made-up answer a client would reject, get 404."""
    status, _ = post(provider, path, {})
    assert status == 404


def test_what_is_no_json_is_refused(provider: FakeProvider) -> None:
    """A body that is not a JSON object gets the provider's own 400."""
    status, answer = post(provider, MESSAGES, b"[1]")
    assert (status, json.loads(answer)["type"]) == (400, "error")


def test_compressed_and_chunked_requests_are_read(provider: FakeProvider) -> None:
    """A body may be compressed, and sent in chunks."""
    packed = gzip.compress(json.dumps(user("squeezed")).encode())
    status, answer = post(provider, CHAT, packed, {"content-encoding": "gzip"})
    assert (status, b"squeezed" in answer) == (200, True)
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    body = json.dumps(user("in chunks")).encode()
    connection.request("POST", CHAT, iter([body[:9], body[9:]]), encode_chunked=True)
    assert b"in chunks" in connection.getresponse().read()
    connection.close()


def test_connections_and_requests_are_counted(provider: FakeProvider) -> None:
    """Two requests on one kept connection are one connection; what was asked can be read."""
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    for text in ("one", "two"):
        connection.request("POST", CHAT, json.dumps(user(text)), {"X-Mark": text})
        connection.getresponse().read()
    connection.close()
    assert provider.connections == 1
    assert [request.header("x-mark") for request in provider.asked("/completions")] == ["one", "two"]
    assert [request.nth for request in provider.requests] == [1, 2]


def test_stopping_closes_the_port_and_kept_connections() -> None:
    """After `stop` nothing is answered any more, on no connection."""
    provider = FakeProvider().start()
    kept = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    kept.request("GET", "/v1/models")
    assert kept.getresponse().read()
    provider.stop()
    kept.auto_open = False
    with pytest.raises((http.client.HTTPException, OSError)):
        _ask_again(kept)
    kept.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", provider.port), timeout=5)


def _ask_again(kept: http.client.HTTPConnection) -> None:
    kept.request("GET", "/v1/models")
    kept.getresponse()


def test_the_upstream_setting_names_every_host(provider: FakeProvider) -> None:
    """`upstream` sends the hosts of all four wires to it."""
    assert provider.upstream.split(",") == [f"{host}=http://127.0.0.1:{provider.port}" for host in HOSTS]


def test_a_client_that_resets_the_connection_has_left() -> None:
    """A provider that stalls takes a reset, as a proxy with something unread sends one, for an end."""
    asked, left = threading.Event(), threading.Event()

    def stall(exchange: Exchange) -> None:
        asked.set()
        exchange.stall()
        left.set()

    with FakeProvider(stall) as running:
        client = socket.create_connection(("127.0.0.1", running.port))
        client.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        assert asked.wait(10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert left.wait(10)
    assert running.failures == ()
