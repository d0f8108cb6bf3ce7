"""The provider-neutral meaning of an answer (DESIGN §10): what a conversion goes through.

Parts are JSON objects with a `type`, as those of requests (`canonical.model`):

    {"type": "text", "text": str}            plus "refusal": true,
                                             "citations": [{"url", "title", "start", "end", …}]
    {"type": "tool_call", "id": str, "name": str, "arguments": str, "call_type"?: "custom"}
                                             `arguments` is the source text as the model wrote it
    {"type": "reasoning", "text"?: str, "summary"?: [str, …], "signature"?: str, "encrypted_content"?: str}
    {"type": "opaque", "wire": str, "value": JsonValue}   what only its own wire can say

Members without a neutral name stay on the part under their own name; only the answer's `wire` can say them.
Responses' items have ids beside those of their calls: `item_id`, which other wires pass over in silence.
A citation that has a `type` is one that only its own wire can say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rewind_proxy.canonical.model import Form, JsonObject, Wire

Finish = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause"]


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Tokens of one answer. `input` is all that was read, cached or not; `output` includes reasoning."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers to a request (most wires give one)."""

    parts: tuple[JsonObject, ...] = ()
    finish: Finish | None = None
    stop_sequence: str | None = None
    own: JsonObject = field(default_factory=dict)
    """What only the wire of the recording says of this choice (`logprobs`, `safetyRatings` …)."""


@dataclass(frozen=True, slots=True)
class CanonicalAnswer:
    """An answer that is complete, or was cut at its token limit."""

    choices: tuple[Choice, ...] = ()
    usage: AnswerUsage | None = None
    model: str = ""
    id: str = ""
    created: int = 0
    """Seconds since the epoch; 0 where the wire does not say."""
    own: JsonObject = field(default_factory=dict)
    """What only the wire of the recording says of the whole (`system_fingerprint`, `promptFeedback` …)."""
    wire: Wire | None = None
    """The wire of the recording: only there are `own` and members without a neutral name understood."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rendered answer has to fit: from the live request."""

    wire: Wire
    form: Form
    model: str = ""
    """As asked; used where the recording names none."""
    include_usage: bool = True
    """Chat Completions streams carry usage only when `stream_options.include_usage` asks for it."""
    wrapped: bool = False
    """Gemini's Code Assist (`/v1internal:…`) puts each answer into a `response`."""
    custom_tools: frozenset[str] = frozenset()
    """Names of the tools offered that take free text (Responses): a function call of one, as a wire without
    them has it (`{"input": …}`), becomes a custom call again."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer in the form that was asked for.

    `chunks` are lengths of the pieces a provider would send (one event each); `notes` name what the target
    could not express, each a short phrase for `x-rewind-note`.
    """

    body: bytes
    content_type: str
    chunks: tuple[int, ...]
    notes: tuple[str, ...] = ()
