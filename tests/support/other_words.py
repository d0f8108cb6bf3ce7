"""A canonical request written in any wire: messages, tools and tool choice, as a gateway translates them.

What a wire has no word for goes on as it is. The other parameters are not every wire's, so they stay behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonObject, JsonValue, Message, Wire
from rewind_proxy.wire.answers import objects

LEFT_OUT = (
    "include store reasoning reasoning_effort verbosity parallel_tool_calls "
    "thinking context_management output_config"
).split()
"""What Codex and Claude Code ask for in words of their own: a project behind such a gateway ignores it."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be written: as in a canonical request, without what is volatile."""

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    params: JsonObject


def body_of(wire: Wire, said: Said) -> JsonObject:
    """The body of the request in that wire."""
    return _WRITERS[wire](said)


def _turns(said: Said) -> list[tuple[str, list[JsonObject], JsonObject]]:
    """Role and parts of each message, and what its client said beside them, which closes a message."""
    turns: list[tuple[str, list[JsonObject], JsonObject]] = []
    for message in said.messages:
        parts: list[JsonObject] = []
        for part in message.parts:
            value = part.get("value")
            if part["type"] != "opaque" or not isinstance(value, dict):
                parts.append(part)
            elif "type" in value:
                parts.append(value)
            else:
                turns.append((message.role, parts, value))
                parts = []
        if parts:
            turns.append((message.role, parts, {}))
    return turns


def _own(part: JsonObject, *said: str) -> JsonObject:
    """What a part says besides, under its own name."""
    return {name: value for name, value in part.items() if name not in ("type", *said)}


def _tools(said: Said, write: Callable[[JsonObject], JsonValue]) -> list[JsonValue]:
    """Functions as this wire writes them; a tool that has a type of its own stays as it is."""
    return [tool if "type" in tool else write(tool) for tool in said.tools]


def _chosen(said: Said) -> JsonObject:
    return {name: value for name, value in said.params.items() if name == "tool_choice"}


def _source(arguments: JsonValue) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _chat_completions(said: Said) -> JsonObject:
    messages: list[JsonValue] = []
    for role, parts, beside in _turns(said):
        if role == "tool":
            messages += [{**_own(part, "id"), "role": "tool", "tool_call_id": part["id"]} for part in parts]
            continue
        message: JsonObject = {"role": role, **beside}
        content: list[JsonValue] = []
        calls: list[JsonValue] = []
        for part in parts:
            if part["type"] == "reasoning":
                message["reasoning_content"] = part["text"]
            elif part["type"] == "tool_call":
                calls.append(_chat_call(part))
            else:
                content.append(part)
        messages.append(message | {"content": content} | ({"tool_calls": calls} if calls else {}))
    tools = _tools(said, lambda tool: {"type": "function", "function": tool})
    return {"messages": messages, "tools": tools, **_chosen(said)}


def _chat_call(part: JsonObject) -> JsonObject:
    kind, member = ("custom", "input") if part.get("call_type") == "custom" else ("function", "arguments")
    made: JsonObject = {"name": part["name"], member: _source(part["arguments"])}
    return {**_own(part, "name", "arguments", "call_type"), "type": kind, kind: made}


def _responses(said: Said) -> JsonObject:
    items: list[JsonValue] = []
    for role, parts, beside in _turns(said):
        kind = "output_text" if role == "assistant" else "input_text"
        content: list[JsonValue] = []
        for part in parts:
            if part["type"] == "text":
                content.append({**part, "type": kind})
                continue
            if content:
                items.append({"type": "message", "role": role, "content": content})
                content = []
            items.append(_item(part))
        if content:
            items.append({"type": "message", "role": role, "content": content, **beside})
    tools = _tools(said, lambda tool: {"type": "function", **tool})
    return {"input": items, "tools": tools, **_chosen(said)}


def _item(part: JsonObject) -> JsonObject:
    match part["type"]:
        case "tool_call":
            call: JsonObject = {"type": "function_call", "call_id": part["id"], "name": part["name"]}
            custom = part.get("call_type") == "custom"
            if custom:
                call["type"] = "custom_tool_call"
            call["input" if custom else "arguments"] = _source(part["arguments"])
            return {**_own(part, "id", "name", "arguments", "call_type"), **call}
        case "tool_result":
            output: list[JsonValue] = [{**each, "type": "input_text"} for each in objects(part["content"])]
            result: JsonObject = {"type": "function_call_output", "call_id": part["id"], "output": output}
            return {**_own(part, "id", "content"), **result}
        case "reasoning" if "text" in part:
            said: JsonObject = {"content": [{"type": "reasoning_text", "text": part["text"]}]}
            return {**_own(part, "text"), "type": "reasoning", "summary": [], **said}
    return part


def _anthropic(said: Said) -> JsonObject:
    turns = _turns(said)
    system: list[JsonValue] = [*turns.pop(0)[1]] if turns[0][0] == "system" else []
    messages: list[JsonValue] = [
        {"role": "user" if role == "tool" else role, "content": list(map(_block, parts)), **beside}
        for role, parts, beside in turns
    ]
    tools = _tools(said, lambda tool: {**_own(tool, "parameters"), "input_schema": tool["parameters"]})
    choice: JsonObject = {"tool_choice": {"type": "auto"}} if _chosen(said) else {}
    thinking: JsonObject = {"max_tokens": 32_000, "thinking": {"type": "adaptive"}}
    return {"system": system, "messages": messages, "tools": tools, **choice, **thinking}


def _block(part: JsonObject) -> JsonObject:
    match part["type"]:
        case "tool_call":
            use: JsonObject = {"type": "tool_use", "input": part["arguments"]}
            return {**_own(part, "arguments"), **use}
        case "tool_result":
            return {**_own(part, "id"), "type": "tool_result", "tool_use_id": part["id"]}
        case "reasoning" if "text" in part:
            return {**_own(part, "text"), "type": "thinking", "thinking": part["text"]}
    return part


def _gemini(said: Said) -> JsonObject:
    turns = _turns(said)
    body: JsonObject = {}
    if turns[0][0] == "system":
        body["systemInstruction"] = {"parts": list(map(_part, turns.pop(0)[1]))}
    names = {part["id"]: part["name"] for part in _calls(said)}
    roles = {"assistant": "model", "tool": "user"}
    body["contents"] = [
        {"role": roles.get(role, role), "parts": [_part(part, names) for part in parts], **beside}
        for role, parts, beside in turns
    ]
    declared: list[JsonValue] = [
        {**_own(tool, "parameters"), "parametersJsonSchema": tool["parameters"]}
        for tool in said.tools
        if "type" not in tool
    ]
    functions: list[JsonValue] = [{"functionDeclarations": declared}] if declared else []
    body["tools"] = [*functions, *(tool for tool in said.tools if "type" in tool)]
    if _chosen(said):
        body["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO"}}
    return body


def _calls(said: Said) -> Iterator[JsonObject]:
    for message in said.messages:
        yield from (part for part in message.parts if part["type"] == "tool_call")


def _part(part: JsonObject, names: Mapping[JsonValue, JsonValue] | None = None) -> JsonObject:
    match part["type"]:
        case "text":
            return _own(part)
        case "reasoning":
            return {**_own(part), "thought": True}
        case "tool_call":
            call: JsonObject = {"id": part["id"], "name": part["name"], "args": part["arguments"]}
            return {**_own(part, "id", "name", "arguments"), "functionCall": call}
        case "tool_result":
            result: JsonObject = {"id": part["id"], "name": (names or {})[part["id"]]}
            match objects(part["content"]):
                case [{"type": "text", "text": text, **rest}] if not rest:
                    result["response"] = {"error" if part.get("is_error") else "output": text}
                case several:
                    result |= {"response": {}, "parts": list(map(_part, several))}
            return {**_own(part, "id", "content", "is_error"), "functionResponse": result}
    return part


_WRITERS: Mapping[Wire, Callable[[Said], JsonObject]] = {
    "chat_completions": _chat_completions,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
