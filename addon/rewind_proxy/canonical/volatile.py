"""Step 1 of the normalised fingerprint: what changes on every request and means nothing is dropped."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Message, Volatile

# Where a wire puts parts into a part: results of tools, results of a search, documents made of blocks. What
# else stands in a part is not looked into: a tool may have a parameter of any name.
_HOLDERS: dict[str, tuple[str, ...]] = {
    "tool_result": ("content",),
    "opaque": ("value",),
}
_WIRE_S_OWN = ("content", "source")


class Meaning:
    """Drops what is volatile under one wire and preset."""

    def __init__(self, volatile: Volatile) -> None:
        self.volatile = volatile

    def messages(self, messages: Sequence[Message], start: int = 0) -> Iterator[Message]:
        """Those from `start` on, without what means nothing, emptied parts included; nulls go (step 6)."""
        for index in range(start, len(messages)):
            message = messages[index]
            parts = [kept for part in message.parts if (kept := _kept_part(part, self.volatile)) is not None]
            if index == 0 and message.role == "system":
                parts = [kept for part in parts if (kept := _without_system_line(part, self.volatile))]
            if parts:
                yield message if _same(parts, message.parts) else Message(message.role, tuple(parts))

    def tools(self, tools: Iterable[JsonObject]) -> list[JsonObject]:
        """The tools, as far as they mean anything, in no other order; those of a name space are sorted."""
        return [self._kept_tool(tool) for tool in tools]

    def _kept_tool(self, tool: JsonObject) -> JsonObject:
        kept = kept_members(tool, self.volatile)
        if tools := inner_tools(kept):
            inner = [kept_members(each, self.volatile) if isinstance(each, dict) else each for each in tools]
            kept = {**kept, "tools": sorted(inner, key=_inner_order)}
        return kept


def _same(parts: Sequence[JsonValue], before: Sequence[JsonValue]) -> bool:
    return len(parts) == len(before) and all(map(operator.is_, parts, before))


def inner_tools(tool: JsonObject) -> list[JsonValue]:
    """The tools of a name space (Responses), which stand for their order as little as the others do."""
    tools = tool.get("tools") if tool.get("type") == "namespace" else None
    return tools if isinstance(tools, list) else []


def nested(part: JsonObject) -> Iterator[tuple[str, JsonObject | list[JsonValue]]]:
    """The members of a part, or of what it wraps, that hold more of a wire's objects: name and value."""
    kind = part.get("type")
    if isinstance(kind, str):  # all of a wire's have one, what tools return need not
        for name in _HOLDERS.get(kind, _WIRE_S_OWN):
            if isinstance(value := part.get(name), dict | list):
                yield name, value


def kept_members(value: JsonObject, volatile: Volatile) -> JsonObject:
    """The members of an object that mean something; the object itself when all of them do."""
    if volatile.members.isdisjoint(value) and not any(item is None for item in value.values()):
        return value
    return {name: item for name, item in value.items() if item is not None and name not in volatile.members}


def system_line(text: str, volatile: Volatile) -> str:
    """The first line of a block of the system prompt that changes on every request, blank lines after it too.

    Empty for any other text.
    """
    if not text.startswith(volatile.system_prefixes):
        return ""
    rest = text.partition("\n")[2].lstrip("\r\n")
    return text[: len(text) - len(rest)]


def _kept_part(part: JsonValue, volatile: Volatile) -> JsonObject | None:
    if not isinstance(part, dict):
        return None
    kept = _kept_object(part, volatile)
    if kept is not part and kept.get("type") == "opaque" and kept.get("value") == {} != part.get("value"):
        return None
    return kept


def _kept_object(value: JsonObject, volatile: Volatile) -> JsonObject:
    """The same of an object and of the wire's objects in it; nulls in lists stay."""
    kept = kept_members(value, volatile)
    changes: JsonObject = {}
    for name, inner in nested(kept):
        left: JsonValue
        left = _kept_object(inner, volatile) if isinstance(inner, dict) else _kept_list(inner, volatile)
        if left is not inner:
            changes[name] = left
    return {**kept, **changes} if changes else kept


def _kept_list(items: list[JsonValue], volatile: Volatile) -> list[JsonValue]:
    kept: list[JsonValue] = []
    same = True
    for item in items:
        left = _kept_object(item, volatile) if isinstance(item, dict) else item
        if left is not item:
            same = False
            if not left or left == {"type": "opaque", "value": {}}:
                continue
        kept.append(left)
    return items if same else kept


def _inner_order(tool: JsonValue) -> tuple[str, bytes]:
    name = tool.get("name") if isinstance(tool, dict) else None
    return (name if isinstance(name, str) else "", dumps(tool))


def _without_system_line(part: JsonObject, volatile: Volatile) -> JsonObject | None:
    """A block of the system prompt less the line that changes on every request; None when it was no more."""
    text = part.get("text")
    if not isinstance(text, str) or not (line := system_line(text, volatile)):
        return part
    rest = text[len(line) :]
    return {**part, "text": rest} if rest.strip() else None
