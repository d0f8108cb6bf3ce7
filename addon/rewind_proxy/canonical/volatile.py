"""Step 1 of the normalised fingerprint: what changes on every request and means nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, JsonValue, Message, Volatile


def without_volatile(request: CanonicalRequest, volatile: Volatile) -> Iterator[Message]:
    """Step 1: messages without what means nothing, emptied parts included; nulls go too (step 6)."""
    for index, message in enumerate(request.messages):
        parts = _kept_parts(message.parts, volatile)
        if index == 0 and message.role == "system":
            parts = [kept for part in parts if (kept := _without_prefixed_line(part, volatile)) is not None]
        if parts:
            yield Message(message.role, tuple(parts))


def _kept_parts(parts: Iterable[JsonValue], volatile: Volatile) -> list[JsonObject]:
    kept_parts: list[JsonObject] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        kept = kept_members(part, volatile)
        if kept.get("type") == "opaque" and isinstance(inner := kept.get("value"), dict):
            kept["value"] = kept_members(inner, volatile)
            if not kept["value"]:
                continue
        elif kept.get("type") == "tool_result" and isinstance(content := kept.get("content"), list):
            kept["content"] = [*_kept_parts(content, volatile)]
        kept_parts.append(kept)
    return kept_parts


def kept_members(value: JsonObject, volatile: Volatile) -> JsonObject:
    return {name: item for name, item in value.items() if item is not None and name not in volatile.members}


def _without_prefixed_line(part: JsonObject, volatile: Volatile) -> JsonObject | None:
    """A block of the system prompt less the line that changes on every request; None when it was no more."""
    text = part.get("text")
    if not isinstance(text, str) or not text.startswith(volatile.system_prefixes):
        return part
    _, _, rest = text.partition("\n")
    return {**part, "text": rest} if rest.strip() else None
