"""Step 1 of the normalised fingerprint: what changes on every request and means nothing is dropped."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence

from rewind_proxy.canonical.model import JsonObject, JsonValue, Message, Volatile


class Meaning:
    """Drops what is volatile under one wire and preset."""

    def __init__(self, volatile: Volatile) -> None:
        self.volatile = volatile

    def messages(self, messages: Sequence[Message], start: int = 0) -> Iterator[Message]:
        """Those from `start` on, without what means nothing, emptied parts included; nulls go (step 6)."""
        for index in range(start, len(messages)):
            message = messages[index]
            parts = _kept_parts(message.parts, self.volatile)
            if index == 0 and message.role == "system":
                parts = [kept for part in parts if (kept := _without_prefixed_line(part, self.volatile))]
            if parts:
                yield message if _same(parts, message.parts) else Message(message.role, tuple(parts))

    def tools(self, tools: Iterable[JsonObject]) -> list[JsonObject]:
        """The tools, as far as they mean anything, in no other order."""
        return [kept_members(tool, self.volatile) for tool in tools]


def _kept_parts(parts: Iterable[JsonValue], volatile: Volatile) -> list[JsonObject]:
    return [kept for part in parts if (kept := _kept_part(part, volatile)) is not None]


def _same(parts: Sequence[JsonValue], before: Sequence[JsonValue]) -> bool:
    return len(parts) == len(before) and all(map(operator.is_, parts, before))


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
        if not _same(parts, content):
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
