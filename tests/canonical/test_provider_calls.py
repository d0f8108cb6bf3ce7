"""Ids of calls, of tools that run at the provider too: which result answers which call counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from canonical.readings import CHAT, GEMINI, MESSAGES, RESPONSES, read, same
from rewind_proxy.canonical.model import JsonObject, JsonValue


def turns(*blocks: JsonValue) -> JsonObject:
    """A conversation of Anthropic's whose second turn is the blocks."""
    return {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [*blocks]}]}


def items(*blocks: JsonValue) -> JsonObject:
    """A conversation of Responses that goes on with the items."""
    return {"input": [{"role": "user", "content": "q"}, *blocks]}


Made = Callable[[str, int], JsonObject]
"""A call or a result: its id, and a number that tells it from others."""


def anthropic(call: Made, result: Made) -> Callable[..., JsonObject]:
    return lambda one, two, first, second: turns(
        call(one, 1), call(two, 2), result(first, 1), result(second, 2)
    )


def responses(call: Made, result: Made) -> Callable[..., JsonObject]:
    return lambda one, two, first, second: items(
        call(one, 1), call(two, 2), result(first, 1), result(second, 2)
    )


def gemini(call: Made, result: Made) -> Callable[..., JsonObject]:
    return lambda one, two, first, second: {
        "contents": [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [call(one, 1), call(two, 2)]},
            {"role": "user", "parts": [result(first, 1), result(second, 2)]},
        ]
    }


def item(kind: str, **more: Callable[[int], JsonValue]) -> Made:
    """An item of Responses: `more` says what stands in it by the number."""
    return lambda call_id, n: {
        "type": kind,
        "id": f"item_{call_id}_{n}",
        "call_id": call_id,
        "status": "completed",
        **{name: value(n) for name, value in more.items()},
    }


SCREEN = "data:image/png;base64,iVBORw0KGgo="
LINKS: dict[str, tuple[str, Callable[..., JsonObject]]] = {
    "server tool": (
        MESSAGES,
        anthropic(
            lambda i, n: {"type": "server_tool_use", "id": i, "name": "web_search", "input": {"query": n}},
            lambda i, n: {
                "type": "web_search_tool_result",
                "tool_use_id": i,
                "content": [{"type": "web_search_result", "url": f"https://a.example/{n}"}],
            },
        ),
    ),
    "code execution": (
        MESSAGES,
        anthropic(
            lambda i, n: {"type": "server_tool_use", "id": i, "name": "code_execution", "input": {"code": n}},
            lambda i, n: {
                "type": "code_execution_tool_result",
                "tool_use_id": i,
                "content": {"type": "code_execution_result", "stdout": str(n), "return_code": 0},
            },
        ),
    ),
    "mcp tool": (
        MESSAGES,
        anthropic(
            lambda i, n: {
                "type": "mcp_tool_use",
                "id": i,
                "name": "f",
                "server_name": "s",
                "input": {"n": n},
            },
            lambda i, n: {
                "type": "mcp_tool_result",
                "tool_use_id": i,
                "content": [{"type": "text", "text": str(n)}],
            },
        ),
    ),
    "a tool of tomorrow": (
        MESSAGES,
        anthropic(
            lambda i, n: {"type": "quantum_tool_use", "id": i, "name": "f", "input": {"n": n}},
            lambda i, n: {"type": "quantum_tool_result", "tool_use_id": i, "content": str(n)},
        ),
    ),
    "called by a program": (
        MESSAGES,
        anthropic(
            lambda i, n: {"type": "server_tool_use", "id": i, "name": "code_execution", "input": {"code": n}},
            lambda i, n: {
                "type": "tool_use",
                "id": f"toolu_{n}",
                "name": "f",
                "input": {"n": n},
                "caller": {"type": "code_execution_20260120", "tool_id": i},
            },
        ),
    ),
    "computer": (
        RESPONSES,
        responses(
            item("computer_call", action=lambda n: {"type": "click", "x": n}),
            item(
                "computer_call_output",
                output=lambda n: {"type": "computer_screenshot", "image_url": SCREEN, "detail": str(n)},
            ),
        ),
    ),
    "shell": (
        RESPONSES,
        responses(
            item("shell_call", action=lambda n: {"commands": [f"ls {n}"]}),
            item("shell_call_output", output=lambda n: [{"stdout": str(n), "stderr": ""}]),
        ),
    ),
    "local shell": (
        RESPONSES,
        responses(
            item("local_shell_call", action=lambda n: {"type": "exec", "command": [str(n)]}),
            item("local_shell_call_output", output=str),
        ),
    ),
    "patch": (
        RESPONSES,
        responses(
            item("apply_patch_call", operation=lambda n: {"type": "delete_file", "path": str(n)}),
            item("apply_patch_call_output", output=str),
        ),
    ),
    "custom tool": (
        RESPONSES,
        responses(
            item("custom_tool_call", name=lambda _: "f", input=str),
            item("custom_tool_call_output", output=str),
        ),
    ),
    "tool search": (
        RESPONSES,
        responses(
            item("tool_search_call", execution=lambda _: "client", arguments=lambda n: {"q": n}),
            item("tool_search_output", tools=lambda n: [{"type": "function", "name": str(n)}]),
        ),
    ),
    "an item of tomorrow": (
        RESPONSES,
        responses(item("quantum_call", state=str), item("quantum_call_output", output=str)),
    ),
    "approval": (
        RESPONSES,
        responses(
            lambda i, n: {
                "type": "mcp_approval_request",
                "id": i,
                "server_label": "s",
                "name": "f",
                "arguments": f"[{n}]",
            },
            lambda i, n: {"type": "mcp_approval_response", "approval_request_id": i, "approve": n == 1},
        ),
    ),
    "approved call": (
        RESPONSES,
        responses(
            lambda i, n: {
                "type": "mcp_approval_request",
                "id": i,
                "server_label": "s",
                "name": "f",
                "arguments": f"[{n}]",
            },
            lambda i, n: {
                "type": "mcp_call",
                "id": f"mcp_{i}",
                "approval_request_id": i,
                "name": "f",
                "output": str(n),
            },
        ),
    ),
    "gemini function": (
        GEMINI,
        gemini(
            lambda i, n: {"functionCall": {"id": i, "name": "f", "args": {"n": n}}},
            lambda i, n: {"functionResponse": {"id": i, "name": "f", "response": {"output": str(n)}}},
        ),
    ),
    "gemini server tool": (
        GEMINI,
        gemini(
            lambda i, n: {"toolCall": {"id": i, "toolType": "GOOGLE_SEARCH_WEB", "args": {"n": n}}},
            lambda i, n: {"tool_response": {"id": i, "tool_type": "X", "response": {"n": n}}},
        ),
    ),
}


@pytest.mark.parametrize("kind", LINKS)
def test_which_result_answers_which_call(kind: str) -> None:
    """Other ids are the same conversation; results that changed places, or answer one call, are another."""
    url, body = LINKS[kind]
    here = body("a1", "b1", "a1", "b1")
    assert same(url, here, body("a2", "b2", "a2", "b2"))
    assert not same(url, here, body("a1", "b1", "b1", "a1"))
    assert not same(url, here, body("a1", "b1", "a1", "a1"))


U1, U2 = (f"3f2504e0-4f89-41d3-9a0c-0305e82c330{n}" for n in (1, 2))


@pytest.mark.parametrize("kind", LINKS)
def test_ids_that_are_uuids(kind: str) -> None:
    """An id that is a UUID is a linking id and nothing else."""
    url, body = LINKS[kind]
    here, there = read(url, body(U1, U2, U1, U2)), read(url, body("a", "b", "a", "b"))
    assert here.fingerprint == there.fingerprint
    assert here.normalised is not None
    assert {slot.rule for slot in here.normalised.slots} == {"RS102"}


STORED: dict[str, JsonObject] = {
    "web_search_call": {"action": {"type": "search", "query": "x"}, "status": "completed"},
    "file_search_call": {"queries": ["x"], "results": [{"file_id": "file_1", "text": "t"}]},
    "code_interpreter_call": {"code": "1+1", "container_id": "c", "outputs": []},
    "image_generation_call": {"result": "iVBORw0KGgo=", "output_format": "png"},
    "mcp_call": {"server_label": "s", "name": "f", "arguments": "{}", "output": "o"},
    "mcp_list_tools": {"server_label": "s", "tools": [{"name": "f", "input_schema": {}}]},
    "reasoning": {"encrypted_content": "e", "summary": []},
    "quantum": {"state": "x"},
}


@pytest.mark.parametrize("kind", STORED)
def test_an_item_s_own_id_is_noise(kind: str) -> None:
    """Where an item says what it is, its id is noise; what it says counts, and so does an id alone."""
    said = STORED[kind]
    here = items({"type": kind, "id": "x_1", **said})
    assert same(RESPONSES, here, items({"type": kind, "id": "x_2", **said}))
    first = next(iter(said))
    assert not same(RESPONSES, here, items({"type": kind, "id": "x_1", **said, first: "other"}))
    assert not same(RESPONSES, items({"type": kind, "id": "x_1"}), items({"type": kind, "id": "x_2"}))


DISTINCT: dict[str, tuple[str, JsonObject, JsonObject]] = {
    "whose tool": (
        MESSAGES,
        turns({"type": "server_tool_use", "id": "a", "name": "f", "input": {}}),
        turns({"type": "tool_use", "id": "a", "name": "f", "input": {}}),
    ),
    "server of a tool": (
        MESSAGES,
        turns({"type": "mcp_tool_use", "id": "a", "name": "f", "server_name": "s", "input": {}}),
        turns({"type": "mcp_tool_use", "id": "a", "name": "f", "server_name": "t", "input": {}}),
    ),
    "type of a result": (
        MESSAGES,
        turns({"type": "web_search_tool_result", "tool_use_id": "a", "content": []}),
        turns({"type": "web_fetch_tool_result", "tool_use_id": "a", "content": []}),
    ),
    "type of a call": (
        RESPONSES,
        items({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}),
        items({"type": "local_shell_call", "call_id": "c", "action": {"commands": ["ls"]}}),
    ),
    "a type of ours": (
        RESPONSES,
        items({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}),
        items(
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "x", "call_type": "custom"}
        ),
    ),
    "approved or not": (
        RESPONSES,
        items({"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}),
        items({"type": "mcp_approval_response", "approval_request_id": "a", "approve": False}),
    ),
    "failed or not": (
        RESPONSES,
        items({"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "x"}),
        items({"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "x"}),
    ),
    "ids in what a tool returns": (
        RESPONSES,
        items({"type": "function_call_output", "call_id": "c", "output": {"call_id": "a"}}),
        items({"type": "function_call_output", "call_id": "c", "output": {"call_id": "b"}}),
    ),
    "ids in what a tool is given": (
        MESSAGES,
        turns({"type": "tool_use", "id": "a", "name": "f", "input": {"type": "t", "tool_use_id": "a"}}),
        turns({"type": "tool_use", "id": "a", "name": "f", "input": {"type": "t", "tool_use_id": "b"}}),
    ),
    "an unknown parameter": (CHAT, {"messages": [], "call_id": "a"}, {"messages": [], "call_id": "b"}),
    "a member of a message": (
        CHAT,
        {"messages": [{"role": "user", "content": "q", "call_id": "a"}]},
        {"messages": [{"role": "user", "content": "q", "call_id": "b"}]},
    ),
    "a member called item_id": (
        RESPONSES,
        items({"type": "quantum", "id": "x", "state": 1, "item_id": "a"}),
        items({"type": "quantum", "id": "x", "state": 1, "item_id": "b"}),
    ),
}


@pytest.mark.parametrize("kind", DISTINCT)
def test_what_is_no_linking_id_counts(kind: str) -> None:
    """Whose call it is, what came of it, and ids that only look like linking ids are meaning."""
    url, a, b = DISTINCT[kind]
    assert not same(url, a, b)
