"""Which path of a provider answers what."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.provider.anthropic import ANTHROPIC
from rewind_proxy.cli.provider.chat_completions import CHAT_COMPLETIONS
from rewind_proxy.cli.provider.gemini import GEMINI
from rewind_proxy.cli.provider.responses import RESPONSES
from rewind_proxy.cli.provider.turn import Dialect, decide, fresh_id, input_tokens, now, objects

_GENERATE: tuple[tuple[re.Pattern[str], Dialect], ...] = (
    (re.compile(r"/chat/completions$"), CHAT_COMPLETIONS),
    (re.compile(r"/responses$"), RESPONSES),
    (re.compile(r"/messages$"), ANTHROPIC),
    (re.compile(r"/models/[^/]+:(?:generateContent|streamGenerateContent)$"), GEMINI),
)
_GEMINI_MODEL = re.compile(r"/models/([^/:]+):")
_COUNT_TOKENS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/messages/count_tokens$"), "input_tokens"),
    (re.compile(r"/responses/input_tokens$"), "input_tokens"),
    (re.compile(r"/models/[^/]+:countTokens$"), "totalTokens"),
)
_EMBED_OPENAI = re.compile(r"/embeddings$")
_EMBED_GEMINI = re.compile(r"/models/[^/]+:(embedContent|batchEmbedContents)$")
_MODELS = re.compile(r"^/v1(?:beta)?/models(?:/([^/:]+))?$")
_SIDE = re.compile(r"^/(?:api|backend-api)/")
_READ_CLOSELY = re.compile(r"/claude_code/(?:settings|policy_limits)$|/codex/models$")
"""Side paths whose answer the client checks and asks for again when it is made up; 404 satisfies it."""
_MODEL_NAMES = ("gpt-fake", "claude-fake", "gemini-fake")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer before it is sent: one item of `chunks` when whole, one for each event when streamed."""

    status: int
    content_type: str
    chunks: tuple[bytes, ...]
    dialect: Dialect | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def streamed(self) -> bool:
        """Whether it is a stream of events."""
        return len(self.chunks) > 1


def answer(method: str, path: str, query: str, body: bytes, count: int) -> Answer:
    """What the provider answers to a decoded body. `count`: the number of requests for that path so far."""
    if method == "POST":
        return _post(path, query, body, count)
    models = _MODELS.search(path)
    if method == "GET" and models:
        return _json(200, _model(models[1]) if models[1] else {"object": "list", "data": _models()})
    return _side(path, count)


def _post(path: str, query: str, body: bytes, count: int) -> Answer:
    dialect = next((dialect for pattern, dialect in _GENERATE if pattern.search(path)), None)
    counted = next((member for pattern, member in _COUNT_TOKENS if pattern.search(path)), None)
    embeds = _EMBED_OPENAI.search(path) or _EMBED_GEMINI.search(path)
    if not (dialect or counted or embeds):
        return _side(path, count)
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        refusal = (dialect or CHAT_COMPLETIONS).error(400, "The body is not a JSON object.")
        return _json(400, refusal, dialect)
    if dialect:
        return _generate(dialect, path, query, asked)
    if counted:
        return _json(200, {counted: input_tokens(asked)})
    return _json(200, _embeddings(path, asked))


def _generate(dialect: Dialect, path: str, query: str, body: JsonObject) -> Answer:
    in_path = _GEMINI_MODEL.search(path)
    turn = decide(dialect, body, in_path[1] if in_path else str(body.get("model")))
    streams = ":streamGenerateContent" in path or body.get("stream") is True
    if not streams:
        return _json(200, dialect.whole(turn), dialect)
    events = list(dialect.events(turn, body))
    if dialect is GEMINI and "alt=sse" not in query.split("&"):
        parts = [json.dumps(event).encode() for event in events]
        array = (b"[" + parts[0], *(b",\r\n" + part for part in parts[1:]), b"]")
        return Answer(200, "application/json; charset=UTF-8", array, dialect, _headers())
    chunks = tuple(dialect.sse(event) for event in events)
    return Answer(200, "text/event-stream; charset=utf-8", chunks, dialect, _headers())


def _side(path: str, count: int) -> Answer:
    if _SIDE.search(path) and not _READ_CLOSELY.search(path):
        return _json(200, {"path": path, "count": count})
    return _json(404, CHAT_COMPLETIONS.error(404, f"Unknown path {path}"))


def _json(status: int, value: JsonObject, dialect: Dialect | None = None) -> Answer:
    return Answer(status, "application/json", (json.dumps(value).encode(),), dialect, _headers())


def _headers() -> tuple[tuple[str, str], ...]:
    """What real providers add: ids, counters, and things that must not be kept."""
    return (
        ("x-request-id", fresh_id("req_")),
        ("request-id", fresh_id("req_")),
        ("x-ratelimit-remaining-requests", "99"),
        ("anthropic-ratelimit-requests-remaining", "99"),
        ("openai-organization", "org-of-the-fake-provider"),
        ("set-cookie", fresh_id("session=") + "; Path=/; HttpOnly"),
    )


def _models() -> list[JsonValue]:
    return [_model(name) for name in _MODEL_NAMES]


def _model(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": now(), "owned_by": "rewind"}


def _embeddings(path: str, body: JsonObject) -> JsonObject:
    batch = _EMBED_GEMINI.search(path)
    if batch and batch[1] == "embedContent":
        return {"embedding": {"values": _vector(body.get("content"))}}
    if batch:
        asked = [request.get("content") for request in objects(body.get("requests"))]
        return {"embeddings": [{"values": _vector(content)} for content in asked]}
    given = body.get("input")
    inputs: Sequence[JsonValue] = given if isinstance(given, list) else [given]
    data: list[JsonValue] = [
        {"object": "embedding", "index": index, "embedding": _encoded(_vector(text), body)}
        for index, text in enumerate(inputs)
    ]
    tokens = input_tokens(body)
    usage: JsonObject = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}


def _vector(text: JsonValue) -> list[JsonValue]:
    """Eight numbers that depend on the text, exact in 32 bits."""
    return [byte / 256 for byte in hashlib.sha256(json.dumps(text).encode()).digest()[:8]]


def _encoded(vector: list[JsonValue], body: JsonObject) -> JsonValue:
    """The SDK of OpenAI asks for base64 unless told otherwise."""
    if body.get("encoding_format") == "base64":
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    return vector
