"""The provider-neutral meaning of a request, and the words shared by all layers.

Canonical parts are JSON objects with a `type`:

    {"type": "text", "text": str}
    {"type": "media", "media_type": str, "data": base64 str} or {"type": "media", …, "url": str}
                                          or {"type": "media", …, "text": str} for media that are text
    {"type": "tool_call", "id": str, "name": str, "arguments": JsonValue}   arguments are decoded JSON,
                                          or the string itself where it is no JSON (custom tools);
                                          "call_type" where it is no call of a function
    {"type": "tool_result", "id": str, "content": [part, …]}   plus "name", "is_error" where sent, and
                                          "result_type" for those of calls that have a type of their own
    {"type": "reasoning", …}              text, summary, signature, encrypted_content as sent
    {"type": "opaque", "value": JsonValue}  anything the adapter does not know: kept, never dropped; "at"
                                          says where it stood, if not in place of a part

Members of a wire's item that have no neutral name stay on the part under their own name, so an unknown
field is part of the key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject: TypeAlias = dict[str, JsonValue]

Wire = Literal["chat_completions", "responses", "anthropic", "gemini", "generic"]
Form = Literal["whole", "sse", "json-array"]
Operation = Literal["generate", "count_tokens", "embed"]
Role = Literal["system", "user", "assistant", "tool"]
EndpointClass = Literal["model", "side", "telemetry", "auth", "socket"]
Tier = Literal["exact", "normalised", "alias", "recorded", "miss", "passed", "failed"]
HIT_TIERS: frozenset[Tier] = frozenset({"exact", "normalised", "alias"})
"""The tiers of what was answered from the store."""
Mode = Literal["auto", "replay", "record", "passthrough"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, as the client wrote it (before `rewind_upstream` changes the address).

    `host` is lower case and carries `:port` when the table of hosts lists it with a port; `path` is the raw
    path without the query; `query` holds the decoded pairs in order, credentials included.
    """

    method: str
    host: str
    path: str
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message: neighbours of one role are already one message."""

    role: Role
    parts: tuple[JsonObject, ...]

    def to_json(self) -> JsonObject:
        """`{"role": …, "parts": […]}`."""
        return {"role": self.role, "parts": list(self.parts)}


SEALS = frozenset(
    {"signature", "encrypted_content", "reasoning_details", "thinking_blocks", "reasoning_opaque"}
)
"""Members beside which reasoning is what the provider checks or decrypts when it comes back: no word of it
may change."""


@dataclass(frozen=True, slots=True)
class CanonicalRequest:
    """The provider-neutral meaning of a request: messages, tools, parameters (DESIGN §5).

    `tools` are in the order sent; each is `{"name", "description", "parameters", …}` without the wire's
    wrapping, or the wire's own object for a built-in tool. `params` holds every other field of the body
    under its neutral name (`model`, `max_tokens`, `stop`, `stream`, `response_format`, `tool_choice`,
    `temperature`, `top_p`, `top_k` …), else under its own.
    """

    wire: Wire
    operation: Operation
    messages: tuple[Message, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    params: JsonObject = field(default_factory=dict)
    settled: int = field(default=0, compare=False)
    """Messages at the start that the next request of its session is likely to start with too."""

    def to_json(self) -> JsonObject:
        """`{"operation", "messages", "tools", "params"}`."""
        return {
            "operation": self.operation,
            "messages": [message.to_json() for message in self.messages],
            "tools": list(self.tools),
            "params": self.params,
        }


@dataclass(frozen=True, slots=True)
class Volatile:
    """What a wire or an agent changes on every request without meaning anything by it (DESIGN §5, step 1).

    `params`: names of canonical parameters. `members`: names of members of a part (and of an `opaque` part's
    value). `system_prefixes`: a block of the leading system message that starts so loses its first line (the
    billing line of Claude Code, CLIENTS.md) and blank lines after it; a block emptied by this goes too.
    """

    params: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    system_prefixes: tuple[str, ...] = ()

    def __or__(self, other: Volatile) -> Volatile:
        return Volatile(
            self.params | other.params,
            self.members | other.members,
            self.system_prefixes + other.system_prefixes,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them, in the same terms for all of them."""

    input_tokens: int = 0
    """All that went in: what was read from and written to a cache is part of it."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Read from a cache."""
    cache_written_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ended, read from its parsed body.

    `complete`: the wire's own terminal event, or a whole body that is a success. `length`: complete, but cut
    at the token limit. `error`: an error, whole or in band. `cut`: no terminal event was parsed.
    """

    kind: Literal["complete", "length", "error", "cut"]
    model: str | None = None
    usage: Usage | None = None


DEFAULT_IGNORE = ("model", "temperature", "top_p", "max_tokens", "stream", "user", "seed", "host", "wire")


class ScrubRule(BaseModel):
    """A project's own rule: what `pattern` matches at `where` is noise (DESIGN §5)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pattern: str
    where: Literal["any", "system", "user", "assistant", "tool_result", "tools"] = "any"


class MatchSettings(BaseModel):
    """The settings that decide the normalised fingerprint; their digest prefixes the normalised index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ignore: tuple[str, ...] = DEFAULT_IGNORE
    tail_n: int = 0
    scrub: tuple[ScrubRule, ...] = ()
    scrub_off: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    paths: Literal["roots", "all", "off"] = "roots"
    preset: str = "none"
    """`auto`, `none`, or the id of the agent preset that every request gets."""
    presets: tuple[str, ...] = ()
    """The presets that requests may get by that, as `id@version`: another version is another index."""
