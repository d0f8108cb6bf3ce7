"""Chat Completions as the provider speaks it (the API reference of OpenAI, "Chat", and its SDK's types)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider.turn import (
    Dialect,
    Entry,
    Offer,
    Turn,
    as_object,
    fresh_id,
    now,
    objects,
    pieces,
    speaker,
    texts,
)


def _entries(body: JsonObject) -> Iterator[Entry]:
    for message in objects(body.get("messages")):
        who = speaker(message.get("role"))
        if who:
            yield from ((who, text) for text in texts(message.get("content")) or [""])


def _offers(body: JsonObject) -> Iterator[Offer]:
    for tool in objects(body.get("tools")):
        function = as_object(tool.get("function"))
        yield Offer(str(function.get("name")), as_object(function.get("parameters")))


def _usage(turn: Turn) -> JsonObject:
    return {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _whole(turn: Turn) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": turn.text, "refusal": None}
    if turn.call:
        function: JsonObject = {"name": turn.call.name, "arguments": turn.call.text}
        message["content"] = None
        message["tool_calls"] = [{"id": fresh_id("call_"), "type": "function", "function": function}]
    choice: JsonObject = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if turn.call else "stop",
    }
    return {
        "id": fresh_id("chatcmpl-"),
        "object": "chat.completion",
        "created": now(),
        "model": turn.model,
        "choices": [choice],
        "usage": _usage(turn),
        "system_fingerprint": "fp_fake",
    }


def _events(turn: Turn, body: JsonObject) -> Iterator[JsonObject | None]:
    with_usage = as_object(body.get("stream_options")).get("include_usage") is True
    head: JsonObject = {
        "id": fresh_id("chatcmpl-"),
        "object": "chat.completion.chunk",
        "created": now(),
        "model": turn.model,
        "system_fingerprint": "fp_fake",
    }

    def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return head | {"choices": [choice]} | ({"usage": None} if with_usage else {})

    yield chunk({"role": "assistant", "content": None if turn.call else "", "refusal": None})
    if turn.call:
        start: JsonObject = {"name": turn.call.name, "arguments": ""}
        call: JsonObject = {"index": 0, "id": fresh_id("call_"), "type": "function", "function": start}
        yield chunk({"tool_calls": [call]})
        for piece in pieces(turn.call.text):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        for piece in pieces(turn.text):
            yield chunk({"content": piece})
    yield chunk({}, "tool_calls" if turn.call else "stop")
    if with_usage:
        yield head | {"choices": [], "usage": _usage(turn)}
    yield None


def _sse(event: JsonObject | None) -> bytes:
    return b"data: [DONE]\n\n" if event is None else f"data: {json.dumps(event)}\n\n".encode()


def openai_error(status: int, message: str) -> JsonObject:
    """The error JSON of OpenAI, for both of its wires."""
    kind = {404: "invalid_request_error", 429: "rate_limit_exceeded"}.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


CHAT_COMPLETIONS = Dialect(
    entries=_entries,
    offers=_offers,
    thinks=lambda _body: False,
    schema=lambda _body: {},
    whole=_whole,
    events=_events,
    sse=_sse,
    error=openai_error,
)
