"""Anthropic Messages as the provider speaks it (the API reference of Anthropic, "Streaming Messages")."""

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
    texts,
    typed_sse,
)


def _entries(body: JsonObject) -> Iterator[Entry]:
    for message in objects(body.get("messages")):
        for block in objects(message.get("content")):
            if block.get("type") == "tool_result":
                yield "tool", "\n".join(texts(block.get("content")))
        who = speaker(message.get("role"))
        if who:
            yield from ((who, text) for text in texts(message.get("content")))


def _offers(body: JsonObject) -> Iterator[Offer]:
    for tool in objects(body.get("tools")):
        if "input_schema" in tool:
            yield Offer(str(tool.get("name")), as_object(tool["input_schema"]))


def _thinks(body: JsonObject) -> bool:
    return as_object(body.get("thinking")).get("type") in ("enabled", "adaptive")


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if turn.call else "end_turn"


def _blocks(turn: Turn) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    if turn.thinks:
        blocks.append({"type": "thinking", "thinking": "I see what to do.", "signature": fresh_id("ZmFrZQ")})
    blocks.append({"type": "text", "text": turn.text})
    if turn.call:
        use: JsonObject = {"type": "tool_use", "id": fresh_id("toolu_"), "name": turn.call.name}
        blocks.append(use | {"input": turn.call.arguments})
    return blocks


def _message(turn: Turn, blocks: list[JsonObject], stop_reason: str | None, output_tokens: int) -> JsonObject:
    content: list[JsonValue] = list(blocks)
    return {
        "id": fresh_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": turn.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
        },
    }


def _whole(turn: Turn) -> JsonObject:
    return _message(turn, _blocks(turn), _stop_reason(turn), turn.output_tokens)


def _events(turn: Turn, _body: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "message_start", "message": _message(turn, [], None, 1)}
    for index, block in enumerate(_blocks(turn)):
        begun, deltas = _deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _stop_reason(turn), "stop_sequence": None},
        "usage": {"output_tokens": turn.output_tokens},
    }
    yield {"type": "message_stop"}


def _deltas(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """The block as `content_block_start` shows it, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            deltas: list[JsonObject] = [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(str(block["thinking"]))
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return block | {"thinking": "", "signature": ""}, deltas
        case "text":
            said = pieces(str(block["text"]))
            return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in said]
    parts = ["", *pieces(json.dumps(block["input"]))]
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _error(status: int, message: str) -> JsonObject:
    kinds = {404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": fresh_id("req_")}


ANTHROPIC = Dialect(
    entries=_entries,
    offers=_offers,
    thinks=_thinks,
    schema=lambda _body: {},
    whole=_whole,
    events=_events,
    sse=typed_sse,
    error=_error,
)
