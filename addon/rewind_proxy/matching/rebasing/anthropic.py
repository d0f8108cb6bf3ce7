"""The parts of an Anthropic Messages answer.

Citations are left alone: their offsets count in the cited document, not in the answer.
"""

from __future__ import annotations

from collections.abc import Hashable

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.matching.rebasing.document import Path
from rewind_proxy.matching.rebasing.parts import Parts, label, members

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class AnthropicParts:
    """Reads whole messages and events."""

    def __init__(self, parts: Parts, *, streamed: bool) -> None:
        self._parts = parts
        self._streamed = streamed

    def read(self, value: JsonObject, base: Path, name: str) -> None:  # noqa: ARG002  # the members tell
        """See `Reader.read`."""
        if not self._streamed:
            self._message(value, base)
            return
        message, block, delta = value.get("message"), value.get("content_block"), value.get("delta")
        index = label(value.get("index"))
        if isinstance(message, dict):
            self._message(message, (*base, "message"))
        elif isinstance(block, dict):
            self._block(block, (*base, "content_block"), index)
        elif isinstance(delta, dict):
            self._said(delta, (*base, "delta"), index)
            partial = delta.get("partial_json")
            self._parts.add(("block", index), "json", (*base, "delta", "partial_json"), partial, joined=True)

    def _message(self, message: JsonObject, path: Path) -> None:
        for place, block in members(message.get("content")):
            self._block(block, (*path, "content", place), place)

    def _block(self, block: JsonObject, path: Path, index: Hashable) -> None:
        if block.get("type") in _CALLS:
            self._parts.add_json(("block", index), (*path, "input"), block.get("input"))
        elif block.get("type") in ("text", "thinking"):
            self._said(block, path, index)

    def _said(self, said: JsonObject, path: Path, index: Hashable) -> None:
        self._parts.add(("block", index), "text", (*path, "text"), said.get("text"), joined=True)
        thinking = ("thinking", index)
        self._parts.add((thinking,), "text", (*path, "thinking"), said.get("thinking"), joined=True)
        if said.get("signature"):
            self._parts.sealed.add(thinking)
