"""The Gemini API as the provider speaks it (Google's reference of `generateContent`, and its SDK's types)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.provider.turn import (
    Dialect,
    Entry,
    Offer,
    Turn,
    as_object,
    fresh_id,
    objects,
    pieces,
    speaker,
)

_SCHEMA_NAMES = ("parametersJsonSchema", "parameters_json_schema", "parameters")
"""Google's SDK for Python sends this one in snake case, which the API reads as well."""
_ANSWER_SCHEMA_NAMES = ("responseJsonSchema", "responseSchema")


def _entries(body: JsonObject) -> Iterator[Entry]:
    for content in objects(body.get("contents")):
        who = speaker(content.get("role", "user"))
        for part in objects(content.get("parts")):
            if "functionResponse" in part:
                response = as_object(as_object(part["functionResponse"]).get("response"))
                output = response.get("output", response.get("result", response))
                yield "tool", output if isinstance(output, str) else json.dumps(output)
            elif who and isinstance(part.get("text"), str):
                yield who, str(part["text"])


def _offers(body: JsonObject) -> Iterator[Offer]:
    for tool in objects(body.get("tools")):
        for function in objects(tool.get("functionDeclarations")):
            schema = next((function[name] for name in _SCHEMA_NAMES if name in function), None)
            yield Offer(str(function.get("name")), as_object(schema))


def _schema(body: JsonObject) -> JsonObject:
    asked = as_object(body.get("generationConfig"))
    return next((as_object(asked[name]) for name in _ANSWER_SCHEMA_NAMES if name in asked), {})


def _answer(turn: Turn, identifier: str, parts: list[JsonObject], finish: str | None) -> JsonObject:
    said: list[JsonValue] = list(parts)
    candidate: JsonObject = {"content": {"parts": said, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    output = turn.output_tokens if finish else 1
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": turn.input_tokens,
            "candidatesTokenCount": output,
            "totalTokenCount": turn.input_tokens + output,
        },
        "modelVersion": turn.model,
        "responseId": identifier,
    }


def _call(turn: Turn) -> list[JsonObject]:
    if not turn.call:
        return []
    call: JsonObject = {"name": turn.call.name, "args": turn.call.arguments}
    return [{"functionCall": call, "thoughtSignature": "ZmFrZQ=="}]


def _whole(turn: Turn) -> JsonObject:
    return _answer(turn, fresh_id(""), _call(turn) or [{"text": turn.text}], "STOP")


def _events(turn: Turn, _body: JsonObject) -> Iterator[JsonObject]:
    identifier = fresh_id("")
    for part in _call(turn) or [{"text": piece} for piece in pieces(turn.text)]:
        yield _answer(turn, identifier, [part], None)
    yield _answer(turn, identifier, [{"text": ""}], "STOP")


def _sse(event: JsonObject | None) -> bytes:
    return f"data: {json.dumps(event)}\r\n\r\n".encode()


def _error(status: int, message: str) -> JsonObject:
    kinds = {404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    return {"error": {"code": status, "message": message, "status": kinds.get(status, "UNAVAILABLE")}}


GEMINI = Dialect(
    entries=_entries,
    offers=_offers,
    thinks=lambda _body: False,
    schema=_schema,
    whole=_whole,
    events=_events,
    sse=_sse,
    error=_error,
)
