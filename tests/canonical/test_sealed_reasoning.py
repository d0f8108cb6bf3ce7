"""Signed and encrypted reasoning counts as it was sent (DESIGN §8: re-basing leaves it alone)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.matching.reading import RawRequest, RequestReader
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
THOUGHT = "I look at /home/ann/app/x.py, as tmp.Xk3fA9 of 2026-11-30T09:00:01Z says."
Body = Callable[[str, str, bool], JsonObject]


def _anthropic(folder: str, thought: str, sealed: bool) -> JsonObject:
    thinking: JsonObject = {"type": "thinking", "thinking": thought}
    call: JsonObject = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": f"{folder}/x.py"}}
    return {
        "model": "m",
        "max_tokens": 9,
        "system": f"Working directory: {folder}\n",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [thinking | ({"signature": "c2ln"} if sealed else {}), call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
        ],
    }


def _responses(folder: str, thought: str, sealed: bool) -> JsonObject:
    summary: list[JsonValue] = [{"type": "summary_text", "text": thought}]
    reasoning: JsonObject = {"type": "reasoning", "summary": summary}
    arguments = json.dumps({"path": f"{folder}/x.py"})
    return {
        "model": "m",
        "instructions": f"Working directory: {folder}\n",
        "input": [
            {"role": "user", "content": "go"},
            reasoning | ({"encrypted_content": "gAAA"} if sealed else {}),
            {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ],
    }


def _chat(folder: str, thought: str, sealed: bool) -> JsonObject:
    details: list[JsonValue] = [{"type": "reasoning.encrypted", "data": "gAAA"}]
    function: JsonObject = {"name": "Read", "arguments": json.dumps({"path": f"{folder}/x.py"})}
    said: JsonObject = {
        "role": "assistant",
        "reasoning": thought,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": f"Working directory: {folder}\n"},
            {"role": "user", "content": "go"},
            said | ({"reasoning_details": details} if sealed else {}),
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
    }


def _gemini(folder: str, thought: str, sealed: bool) -> JsonObject:
    thinking: JsonObject = {"text": thought, "thought": True}
    call: JsonObject = {"functionCall": {"name": "Read", "args": {"path": f"{folder}/x.py"}}}
    answer: JsonObject = {"functionResponse": {"name": "Read", "response": {"output": "ok"}}}
    return {
        "systemInstruction": {"parts": [{"text": f"Working directory: {folder}\n"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [thinking | ({"thoughtSignature": "c2ln"} if sealed else {}), call]},
            {"role": "user", "parts": [answer]},
        ],
    }


WIRES: dict[str, tuple[str, str, Body]] = {
    "anthropic": ("api.anthropic.com", "/v1/messages", _anthropic),
    "responses": ("api.openai.com", "/v1/responses", _responses),
    "chat_completions": ("openrouter.ai", "/api/v1/chat/completions", _chat),
    "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/m:generateContent", _gemini),
}
each_wire = pytest.mark.parametrize("wire", WIRES)


def fingerprint(wire: str, folder: str, thought: str, *, sealed: bool) -> str:
    """The normalised fingerprint of a session's second request, in a project's folder."""
    name, path, body = WIRES[wire]
    host = HOSTS.find(name, 443)
    assert host is not None
    data = json.dumps(body(folder, thought, sealed)).encode()
    reader = RequestReader(HOSTS, Redactor(), MatchSettings(), 2**26)
    return reader.read(RawRequest("POST", name, 443, path, (), data), host).fingerprint


@each_wire
def test_a_moved_session_sends_signed_reasoning_back_as_it_was_recorded(wire: str) -> None:
    """It still names the folder of the recording, and the request still has its fingerprint."""
    recorded = fingerprint(wire, "/home/ann/app", THOUGHT, sealed=True)
    assert fingerprint(wire, "/builds/7/app", THOUGHT, sealed=True) == recorded


@each_wire
def test_every_character_of_signed_reasoning_counts(wire: str) -> None:
    """Nothing in it is noise, as nothing in it is put back."""
    recorded = fingerprint(wire, "/home/ann/app", THOUGHT, sealed=True)
    for old, new in (("09:00:01", "09:00:02"), ("ann/app", "bob/app"), (" look", "  look")):
        assert fingerprint(wire, "/home/ann/app", THOUGHT.replace(old, new), sealed=True) != recorded


@each_wire
def test_open_reasoning_moves_with_the_session(wire: str) -> None:
    """Reasoning that nothing seals is re-based like any text, and so it is scrubbed like any."""
    recorded = fingerprint(wire, "/home/ann/app", THOUGHT, sealed=False)
    moved = THOUGHT.replace("/home/ann/app", "/builds/7/app")
    assert fingerprint(wire, "/builds/7/app", moved, sealed=False) == recorded
