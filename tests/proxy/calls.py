"""What the clients of these tests ask: every wire in every form, on a prompt of their own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from rewind_proxy.canonical.model import JsonObject, JsonValue
from support.client import Client, Got
from support.proxies import Proxy

OPENAI = "api.openai.com"
ANTHROPIC = "api.anthropic.com"
GEMINI = "generativelanguage.googleapis.com"
CHAT_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Ask:
    """One way to ask a provider: where, in which form, and how prompt, model and limit are said."""

    name: str
    host: str
    path: str
    """With `{model}` where the wire has the model in its path."""
    content_type: str
    """Of the answer, without parameters."""
    body: Callable[[str, str, int], JsonObject]
    """From prompt, model and token limit."""

    def send(
        self,
        client: Client,
        prompt: str,
        *,
        model: str = "m1",
        limit: int = 100,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Ask over a connection to `host`."""
        return client.post(self.path.format(model=model), self.body(prompt, model, limit), headers)

    def once(
        self,
        proxy: Proxy,
        prompt: str,
        *,
        model: str = "m1",
        limit: int = 100,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Ask over a connection of its own."""
        with Client(proxy, self.host) as client:
            return self.send(client, prompt, model=model, limit=limit, headers=headers)


def _chat(stream: bool) -> Callable[[str, str, int], JsonObject]:
    def body(prompt: str, model: str, limit: int) -> JsonObject:
        messages: list[JsonValue] = [{"role": "user", "content": prompt}]
        return {"model": model, "messages": messages, "max_tokens": limit, "stream": stream}

    return body


def _responses(stream: bool) -> Callable[[str, str, int], JsonObject]:
    def body(prompt: str, model: str, limit: int) -> JsonObject:
        return {"model": model, "input": prompt, "max_output_tokens": limit, "stream": stream}

    return body


def _gemini(prompt: str, _model: str, limit: int) -> JsonObject:
    contents: list[JsonValue] = [{"role": "user", "parts": [{"text": prompt}]}]
    return {"contents": contents, "generationConfig": {"maxOutputTokens": limit}}


JSON, SSE = "application/json", "text/event-stream"
_STREAM = "/v1beta/models/{model}:streamGenerateContent"

CHAT = Ask("chat-whole", OPENAI, CHAT_PATH, JSON, _chat(False))
CHAT_SSE = Ask("chat-sse", OPENAI, CHAT_PATH, SSE, _chat(True))
RESPONSES = Ask("responses-whole", OPENAI, "/v1/responses", JSON, _responses(False))
RESPONSES_SSE = Ask("responses-sse", OPENAI, "/v1/responses", SSE, _responses(True))
MESSAGES = Ask("anthropic-whole", ANTHROPIC, "/v1/messages", JSON, _chat(False))
MESSAGES_SSE = Ask("anthropic-sse", ANTHROPIC, "/v1/messages?beta=true", SSE, _chat(True))
GENERATE = Ask("gemini-whole", GEMINI, "/v1beta/models/{model}:generateContent", JSON, _gemini)
GENERATE_SSE = Ask("gemini-sse", GEMINI, f"{_STREAM}?alt=sse", SSE, _gemini)
GENERATE_ARRAY = Ask("gemini-array", GEMINI, _STREAM, JSON, _gemini)

ASKS = (
    CHAT,
    CHAT_SSE,
    RESPONSES,
    RESPONSES_SSE,
    MESSAGES,
    MESSAGES_SSE,
    GENERATE,
    GENERATE_SSE,
    GENERATE_ARRAY,
)
STREAMED = tuple(ask for ask in ASKS if ask.content_type == SSE)


def new_prompt() -> str:
    """A prompt that no other test has."""
    return f"Tell me of {secrets.token_hex(8)}."


def error_message(got: Got) -> str:
    """The message of an error in the JSON of any provider."""
    match got.json:
        case {"error": {"message": str(message)}}:
            return message
    raise AssertionError(f"no error: {got}")


Prefix = Literal["sk-proj-", "sk-ant-api03-", "AIza"]


def fake_credential(prefix: Prefix = "sk-proj-") -> str:
    """A text in the shape of a key that was never one."""
    length = {"sk-proj-": 40, "sk-ant-api03-": 93, "AIza": 35}[prefix]
    return prefix + secrets.token_hex(length)[:length]
