"""From a wire's turns to canonical messages: what all adapters share (the parts are in canonical/model.py).

Two spellings of one thing become one here: a string is a list of one text, an empty text is no part (no two
wires agree on whether it may be sent at all), and a result's tool name goes when its call says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rewind_proxy.canonical.item import Item, as_item, of_item
from rewind_proxy.canonical.jcs import parse
from rewind_proxy.canonical.linking import linking_id
from rewind_proxy.canonical.model import JsonObject, JsonValue, Message, Role
from rewind_proxy.errors import OpaqueBodyError


class Conversation:
    """Collects turns in order; neighbours of one role become one message."""

    def __init__(self) -> None:
        self.turns: list[tuple[Role, list[JsonObject]]] = []
        """Those so far."""

    def add(self, role: Role, parts: Iterable[JsonObject]) -> None:
        """One turn, which may be empty."""
        if self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].extend(parts)
        else:
            self.turns.append((role, list(parts)))

    def take(self, item: JsonValue, read: Callable[[Conversation, JsonValue], None]) -> None:
        """Add the turns that `read` makes of one item of the wire. They depend on the item alone."""
        for role, parts in of_item(item, read, lambda _: _turns_of(item, read)):
            self.add(role, parts)

    @property
    def spoken(self) -> bool:
        """Whether anything but the system has spoken yet."""
        return any(role != "system" for role, _ in self.turns)

    def messages(self) -> tuple[Message, ...]:
        """The canonical messages."""
        if any("name" in part and part["type"] == "tool_result" for _, parts in self.turns for part in parts):
            self._drop_known_names()
        return tuple([Message(role, tuple(parts)) for role, parts in self.turns])

    def _drop_known_names(self) -> None:
        names: dict[str, JsonValue] = {}
        for _, parts in self.turns:
            for index, part in enumerate(parts):
                if part["type"] == "tool_call":
                    names[part_id(part)] = part.get("name")
                elif part["type"] == "tool_result" and (
                    "name" in part and part["name"] == names.get(part_id(part))
                ):
                    parts[index] = {name: value for name, value in part.items() if name != "name"}


def _turns_of(
    item: JsonValue, read: Callable[[Conversation, JsonValue], None]
) -> tuple[tuple[Role, tuple[JsonObject, ...]], ...]:
    alone = Conversation()
    read(alone, item)
    kept = isinstance(item, Item)
    return tuple((role, tuple(map(as_item, parts) if kept else parts)) for role, parts in alone.turns)


def part_id(part: JsonObject) -> str:
    """The linking id of a call or result."""
    return linking_id(part.get("id"))


def opaque(value: JsonValue) -> JsonObject:
    """A part for what the adapter does not know."""
    return {"type": "opaque", "value": value}


def text_parts(text: str) -> list[JsonObject]:
    """A text as parts: none when it is empty."""
    return [{"type": "text", "text": text}] if text else []


def with_rest(part: JsonObject, source: JsonObject, *known: str) -> JsonObject:
    """`part` with the members of `source` that are not `known`, under their own names.

    One whose name `part` uses for something else is told apart by a prefix.
    """
    for name, value in source.items():
        if name not in known:
            own = name
            while own in part:
                own = f"wire.{own}"
            part[own] = value
    return part


def wrapped(parts: Iterable[JsonObject], source: JsonObject, *known: str) -> list[JsonObject]:
    """The parts of a message, and what its own object says beside `known`, as an opaque part after them.

    Neighbours of one role become one message, so `of` says how many parts that speaks of, unless it is one.
    Nulls say nothing.
    """
    all_parts = list(parts)
    rest: JsonObject = {
        name: value for name, value in source.items() if name not in known and value is not None
    }
    if not rest:
        return all_parts
    about = opaque(rest)
    if len(all_parts) != 1:
        about["of"] = len(all_parts)
    return [*all_parts, about]


def sent(value: JsonValue) -> JsonValue:
    """An id or a name as it was sent, whatever its type; a missing one is an empty text."""
    return "" if value is None else value


def tool_call(call_id: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonObject:
    """A call; arguments in a string are read as the JSON they are.

    A string that is no JSON stays, and so does one that spells a JSON string, or the two could be confused.
    """
    if isinstance(arguments, str):
        try:
            decoded = parse(arguments)
        except OpaqueBodyError:
            decoded = arguments
        if not isinstance(decoded, str):
            arguments = decoded
    return {"type": "tool_call", "id": sent(call_id), "name": sent(name), "arguments": arguments}


def custom_call(call_id: JsonValue, name: JsonValue, source: JsonValue) -> JsonObject:
    """A call of a custom tool, whose input is free text even when it looks like JSON."""
    return {
        "type": "tool_call",
        "id": sent(call_id),
        "name": sent(name),
        "arguments": source,
        "call_type": "custom",
    }


def tool_result(call_id: JsonValue, content: list[JsonObject]) -> JsonObject:
    """A result and its parts."""
    return {"type": "tool_result", "id": sent(call_id), "content": list(content)}


def media_from_url(url: str, kind: str) -> JsonObject:
    """A media part from a URL: the bytes of a base64 `data:` URL, else the URL itself.

    `kind` (`image`, `audio`, `application`) gives the media type where nothing tells it.
    """
    if url[:5].lower() == "data:":
        head, comma, data = url[5:].partition(",")
        media_type, _, coding = head.rpartition(";")
        if comma and coding.strip().lower() == "base64":
            return {"type": "media", "media_type": media_type.lower() or "text/plain", "data": data}
    return {"type": "media", "media_type": f"{kind}/*", "url": url}
