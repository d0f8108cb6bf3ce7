"""Step 1 of the normalised fingerprint: what changes on every request and means nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewind_proxy.canonical.item import as_item, of_item
from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, JsonValue, Message, Volatile


class Meaning:
    """Drops what is volatile under one wire and preset. An `Item` keeps what is left of it, as another."""

    def __init__(self, volatile: Volatile) -> None:
        self.volatile = volatile
        self._first = object()

    def messages(self, request: CanonicalRequest) -> Iterator[Message]:
        """Messages without what means nothing, emptied parts included; nulls go too (step 6)."""
        for index, message in enumerate(request.messages):
            first = index == 0 and message.role == "system"
            make = self._kept_first if first else self._kept
            key = self._first if first else self
            parts = [kept for part in message.parts if (kept := of_item(part, key, make)) is not None]
            if parts:
                yield Message(message.role, tuple(parts))

    def tools(self, request: CanonicalRequest) -> list[JsonObject]:
        """The tools, as far as they mean anything, in no other order."""
        return [of_item(tool, self, self._kept_tool) for tool in request.tools]

    def _kept(self, part: JsonValue) -> JsonObject | None:
        kept = _kept_part(part, self.volatile)
        return None if kept is None else as_item(kept)

    def _kept_first(self, part: JsonValue) -> JsonObject | None:
        kept = _kept_part(part, self.volatile)
        shorter = None if kept is None else _without_prefixed_line(kept, self.volatile)
        return None if shorter is None else as_item(shorter)

    def _kept_tool(self, tool: JsonValue) -> JsonObject:
        assert isinstance(tool, dict)
        return as_item(kept_members(tool, self.volatile))


def _kept_parts(parts: Iterable[JsonValue], volatile: Volatile) -> list[JsonObject]:
    return [kept for part in parts if (kept := _kept_part(part, volatile)) is not None]


def _kept_part(part: JsonValue, volatile: Volatile) -> JsonObject | None:
    if not isinstance(part, dict):
        return None
    kept = kept_members(part, volatile)
    kind = kept.get("type")
    if kind == "opaque" and isinstance(inner := kept.get("value"), dict):
        value = kept_members(inner, volatile)
        if not value:
            return None
        return kept if value is inner else {**kept, "value": value}
    if kind == "tool_result" and isinstance(content := kept.get("content"), list):
        parts = _kept_parts(content, volatile)
        if len(parts) < len(content) or any(new is not old for new, old in zip(parts, content, strict=True)):
            return {**kept, "content": [*parts]}
    return kept


def kept_members(value: JsonObject, volatile: Volatile) -> JsonObject:
    """The members of an object that mean something; the object itself when all of them do."""
    if volatile.members.isdisjoint(value) and not any(item is None for item in value.values()):
        return value
    return {name: item for name, item in value.items() if item is not None and name not in volatile.members}


def _without_prefixed_line(part: JsonObject, volatile: Volatile) -> JsonObject | None:
    """A block of the system prompt less the line that changes on every request; None when it was no more."""
    text = part.get("text")
    if not isinstance(text, str) or not text.startswith(volatile.system_prefixes):
        return part
    _, _, rest = text.partition("\n")
    return {**part, "text": rest} if rest.strip() else None
