"""What a session's next request costs: its new messages alone, on every wire."""

from __future__ import annotations

import json

import pytest

from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.canonical.redaction.engine import RuleEngine
from rewind_proxy.canonical.scrub import Scrubber
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
TURNS = 40
TOOL: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "A file. " * 30}},
}


def _chat(turns: int) -> JsonObject:
    messages: list[JsonValue] = [
        {"role": "system", "content": "You are an agent. " * 20},
        {"role": "user", "content": "go"},
    ]
    for turn in range(turns):
        function: JsonObject = {"name": "read", "arguments": json.dumps({"path": f"/home/ann/app/{turn}"})}
        call: JsonObject = {"id": f"c{turn}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"Turn {turn}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"found {turn}"})
    tools: list[JsonValue] = [{"type": "function", "function": {"name": "read", "parameters": TOOL}}]
    return {"model": "m", "messages": messages, "tools": tools}


def _responses(turns: int) -> JsonObject:
    items: list[JsonValue] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go " * 60}]},
    ]
    for turn in range(turns):
        arguments = json.dumps({"path": f"/home/ann/app/{turn}"})
        items.append({"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": f"c{turn}", "output": f"found {turn}"})
    tools: list[JsonValue] = [{"type": "function", "name": "read", "parameters": TOOL}]
    return {"model": "m", "instructions": "You are an agent.", "input": items, "tools": tools}


def _anthropic(turns: int) -> JsonObject:
    mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
    messages: list[JsonValue] = [{"role": "user", "content": "go " * 80}]
    for turn in range(turns):
        call: JsonObject = {
            "type": "tool_use",
            "id": f"t{turn}",
            "name": "read",
            "input": {"path": f"/home/ann/{turn}"},
        }
        result: JsonObject = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"found {turn}"}
        last = mark if turn == turns - 1 else {}  # as Claude Code does, the mark moves on
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Turn {turn}."}, call]})
        messages.append({"role": "user", "content": [result | last]})
    system: list[JsonValue] = [{"type": "text", "text": "You are an agent. " * 20, **mark}]
    tools: list[JsonValue] = [{"name": "read", "input_schema": TOOL}]
    return {"model": "m", "max_tokens": 9, "system": system, "messages": messages, "tools": tools}


def _gemini(turns: int) -> JsonObject:
    contents: list[JsonValue] = [{"role": "user", "parts": [{"text": "go " * 80}]}]
    for turn in range(turns):
        call: JsonObject = {"functionCall": {"name": "read", "args": {"path": f"/home/ann/{turn}"}}}
        answer: JsonObject = {"functionResponse": {"name": "read", "response": {"output": f"found {turn}"}}}
        contents.append({"role": "model", "parts": [{"text": f"Turn {turn}."}, call]})
        contents.append({"role": "user", "parts": [answer]})
    tools: list[JsonValue] = [{"functionDeclarations": [{"name": "read", "parameters": TOOL}]}]
    system: JsonObject = {"parts": [{"text": "You are an agent."}]}
    return {"systemInstruction": system, "contents": contents, "tools": tools}


WIRES = {
    "chat_completions": ("api.openai.com", "/v1/chat/completions", _chat),
    "responses": ("api.openai.com", "/v1/responses", _responses),
    "anthropic": ("api.anthropic.com", "/v1/messages", _anthropic),
    "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/m:generateContent", _gemini),
}


def read(reader: RequestReader, wire: str, turns: int) -> Reading:
    """The request of a session after some turns."""
    name, path, body = WIRES[wire]
    host = HOSTS.find(name, 443)
    assert host is not None
    data = json.dumps(body(turns)).encode()
    return reader.read(RawRequest("POST", name, 443, path, (), data), host)


@pytest.mark.parametrize("wire", WIRES)
def test_the_next_turn_costs_its_new_messages(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a session that goes on, no text that was sent before is scrubbed or redacted again."""
    scrubbed: list[str] = []
    redacted: list[str] = []
    leaf, settle = Scrubber.leaf, RuleEngine.settle

    def counting_leaf(self: Scrubber, text: str, *arguments: object, **more: object) -> object:
        scrubbed.append(text)
        return leaf(self, text, *arguments, **more)  # type: ignore[arg-type]

    def counting_settle(self: RuleEngine, text: str, kind: object) -> object:
        redacted.append(text)
        return settle(self, text, kind)  # type: ignore[arg-type]

    monkeypatch.setattr(Scrubber, "leaf", counting_leaf)
    monkeypatch.setattr(RuleEngine, "settle", counting_settle)
    reader = RequestReader(HOSTS, Redactor(), MatchSettings(), 2**26)
    read(reader, wire, TURNS)
    first = len(scrubbed), len(redacted)
    assert min(first) > TURNS
    scrubbed.clear()
    redacted.clear()
    again = read(reader, wire, TURNS + 1)
    assert len(scrubbed) < first[0] / 4
    assert len(redacted) < first[1] / 4
    fresh = read(RequestReader(HOSTS, Redactor(), MatchSettings(), 2**26), wire, TURNS + 1)
    assert (again.exact, again.fingerprint, again.links) == (fresh.exact, fresh.fingerprint, fresh.links)


def test_other_questions_after_one_history_cost_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a session is asked something else at its end, its history is not scrubbed again."""
    scrubbed: list[str] = []
    leaf = Scrubber.leaf

    def counting_leaf(self: Scrubber, text: str, *arguments: object, **more: object) -> object:
        scrubbed.append(text)
        return leaf(self, text, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Scrubber, "leaf", counting_leaf)
    reader = RequestReader(HOSTS, Redactor(), MatchSettings(), 2**26)
    host = HOSTS.find("api.openai.com", 443)
    assert host is not None
    counts: list[int] = []
    for question in range(4):
        body = _responses(TURNS)
        items = body["input"]
        assert isinstance(items, list)
        items.append({"type": "message", "role": "user", "content": f"Question {question}?"})
        before = len(scrubbed)
        data = json.dumps(body).encode()
        reader.read(RawRequest("POST", host.name, 443, "/v1/responses", (), data), host)
        counts.append(len(scrubbed) - before)
    assert max(counts[1:]) < counts[0] / 4, counts
