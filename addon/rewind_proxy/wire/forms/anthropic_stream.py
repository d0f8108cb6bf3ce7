"""An Anthropic answer as events: the whole message told step by step, and put together again.

Source: API reference of Anthropic, "Streaming messages". Counts in `message_delta` are totals: they replace
those of `message_start`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms.anthropic_blocks import decoded_block, source
from rewind_proxy.wire.forms.pieces import pieces
from rewind_proxy.wire.forms.rendering import joined
from rewind_proxy.wire.forms.single import text_of, typed_event

# What a message says at its end, in the `delta` of `message_delta` and beside it.
_IN_DELTA = ("stop_reason", "stop_sequence", "stop_details", "container")
_BESIDE_DELTA = ("context_management",)

# Counts that are totals at the end; what else `usage` says stands in `message_start` alone.
_TOTALS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "server_tool_use",
)
_UNKNOWN_AT_START = ("output_tokens_details", "server_tool_use")

# The type of a delta, and the member it carries, by the member of the block that it fills.
_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


def assembled(body: bytes) -> JsonObject | None:
    """The message that a stream tells, or None when it did not reach `message_stop`.

    The `input` of its calls is their source text.
    """
    message: JsonObject = {}
    before: list[JsonObject] = []
    blocks: dict[int, _Block] = {}
    for event in answers.events(body):
        data = answers.load_object(event.data)
        if data is None:
            continue
        kind, index, delta = data.get("type", event.name), data.get("index"), data.get("delta")
        started, block = data.get("message"), data.get("content_block")
        if kind == "error":
            return None
        if kind == "message_start" and isinstance(started, dict):
            # What a container left over stands in the start already, calls included, and has no events.
            message, before = dict(started), answers.objects(started.get("content"))
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(block, dict):
            blocks[index] = _Block(block)
        elif kind == "content_block_delta" and isinstance(index, int) and isinstance(delta, dict):
            if index in blocks:
                blocks[index].add(delta)
        elif kind == "message_delta":
            _end(message, data, delta)
        elif kind == "message_stop":
            if not message:
                return None
            return message | {"content": [*before, *(blocks[index].finished() for index in sorted(blocks))]}
    return None


def _end(message: JsonObject, data: JsonObject, delta: JsonValue) -> None:
    """Take in a `message_delta`."""
    if isinstance(delta, dict):
        message |= delta
    for name, value in data.items():
        if name == "usage" and isinstance(value, dict):
            before = message.get("usage")
            counted: JsonObject = dict(before) if isinstance(before, dict) else {}
            counted |= {member: count for member, count in value.items() if count is not None}
            message["usage"] = counted
        elif name not in ("type", "delta", "usage"):
            message[name] = value


class _Block:
    """A content block, filled by its deltas."""

    def __init__(self, begun: JsonObject) -> None:
        self._block = dict(begun)
        self._pieces: dict[str, list[str]] = {}
        self._citations: list[JsonValue] = []

    def add(self, delta: JsonObject) -> None:
        """Take in one delta; what a new kind of delta carries fills the member of the same name."""
        for name, value in delta.items():
            if name == "citation":
                self._citations.append(value)
            elif name != "type" and isinstance(value, str):
                self._pieces.setdefault("input" if name == "partial_json" else name, []).append(value)
            elif name != "type" and value is not None:
                self._block[name] = value

    def finished(self) -> JsonObject:
        """The block with all that was said of it."""
        block = dict(self._block)
        for name, found in self._pieces.items():
            before = block.get(name)
            text = joined([before, *found] if isinstance(before, str) else found)
            if text or isinstance(before, str):
                block[name] = text
        if self._citations:
            before = block.get("citations")
            block["citations"] = [*(before if isinstance(before, list) else []), *self._citations]
        return block if block.get("type") == "tool_use" else decoded_block(block)


def events(message: JsonObject) -> Iterator[bytes]:
    """The stream that tells this message."""
    for event in _events(message):
        yield typed_event(event)


def _events(message: JsonObject) -> Iterator[JsonObject]:
    usage = message["usage"]
    counted = usage if isinstance(usage, dict) else {}
    at_start: JsonObject = {name: value for name, value in counted.items() if name not in _UNKNOWN_AT_START}
    at_start["output_tokens"] = min(1, answers.count(counted.get("output_tokens")))
    late = (*_IN_DELTA, *_BESIDE_DELTA)
    begun: JsonObject = {name: value for name, value in message.items() if name not in late}
    begun |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": at_start}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(answers.objects(message["content"])):
        shown, deltas = _told(block)
        yield {"type": "content_block_start", "index": index, "content_block": shown}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {name: message[name] for name in _IN_DELTA if name in message},
        "usage": {name: counted[name] for name in _TOTALS if name in counted},
        **{name: message[name] for name in _BESIDE_DELTA if name in message},
    }
    yield {"type": "message_stop"}


def _told(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """The block as `content_block_start` shows it, and the deltas that fill it."""
    shown = dict(block)
    deltas: list[JsonObject] = []
    for member, (kind, name) in _DELTAS.items():
        if isinstance(text := block.get(member), str) and block.get("type") == member:
            shown[member] = ""
            deltas.extend({"type": kind, name: piece} for piece in pieces(text))
    if block.get("type") == "thinking":
        shown["signature"] = ""
        if signature := block.get("signature"):
            deltas.append({"type": "signature_delta", "signature": signature})
    citations = block.get("citations")
    if block.get("type") == "text" and isinstance(citations, list):
        shown["citations"] = []
        deltas.extend({"type": "citations_delta", "citation": citation} for citation in citations)
    if text_of(block.get("type")).endswith("tool_use") and "input" in block:
        shown["input"] = {}
        text = source(block["input"])
        deltas.extend({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text)))
    return shown, deltas
