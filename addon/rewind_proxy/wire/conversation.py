"""From a wire's turns to canonical messages: what all adapters share (the parts are in canonical/model.py).

Two spellings of one thing become one here: a string is a list of one text, an empty text is no part (no two
wires agree on whether it may be sent at all), and a result's tool name goes when its call says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Self, TypeVar
from urllib.parse import unquote

from rewind_proxy.canonical.history import History, fold
from rewind_proxy.canonical.jcs import dumps, parse
from rewind_proxy.canonical.linking import linking_id
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    JsonObject,
    JsonValue,
    Message,
    Operation,
    Role,
    Wire,
)
from rewind_proxy.canonical.redaction.places import data_uri, is_textual, plain_bytes
from rewind_proxy.errors import OpaqueBodyError

C = TypeVar("C", bound="Conversation")

BILLING_LINE = ("x-anthropic-billing-header:",)
"""How the line starts that Claude Code writes into its system prompt, through whatever wire it is sent on."""
_PREFIX = "wire."
_OURS = frozenset({"call_index", "call_type", "result_type", "refusal"})


class Conversation:
    """Collects turns in order; neighbours of one role become one message."""

    def __init__(self) -> None:
        self.tools: list[JsonObject] = []
        """Those that came in between the turns (Responses)."""
        self.done: list[Message] = []
        """All but the last message, while that is still being written; then `role` is its role."""
        self.role: Role | None = None
        self.parts: list[JsonObject] = []
        self.names: dict[str, JsonValue] = {}
        """The name of the tool that each call is of, by the call's id."""
        self._open = 0
        """Messages at the end that the next request may say otherwise."""

    def copy(self) -> Self:
        """One that holds the same and goes its own way."""
        other = type(self)()
        other.tools, other.done = [*self.tools], [*self.done]
        other.role, other.parts, other.names = self.role, [*self.parts], {**self.names}
        return other

    def add(self, role: Role, parts: Iterable[JsonObject]) -> None:
        """One turn, which may be empty."""
        if role != self.role:
            self.close()
            if self.done and self.done[-1].role == role:
                self.parts = [*self.done.pop().parts]
            self.role = role
        self.parts += map(self._named, parts)

    def take(self, items: list[JsonValue], read: Callable[[Self, JsonValue], None]) -> None:
        """Add the turns that `read` makes of the items of the wire; it depends on them alone."""

        key, step = (type(self), read), partial(_taken, read)
        taken = fold(items, key, type(self), step)
        messages = taken.messages()
        before = items.before if isinstance(items, History) else None
        if messages:
            # The last of those before may still be added to.
            closed = len(before.fold(key, type(self), step).done) - 1 if before is not None else 0
            self._open = len(messages) - max(0, closed)
        if not self.done and self.role is None and not self.tools:
            self.done = [*messages]
        elif messages:
            self.add(messages[0].role, messages[0].parts)
            if len(messages) > 1:
                self.close()
                self.done += messages[1:]
        self.tools += taken.tools
        self.names |= taken.names

    @property
    def spoken(self) -> bool:
        """Whether anything but the system has spoken yet."""
        return self.role not in (None, "system") or any(each.role != "system" for each in self.done)

    def messages(self) -> tuple[Message, ...]:
        """The canonical messages."""
        self.close()
        return tuple(self.done)

    def request(
        self, wire: Wire, operation: Operation, tools: tuple[JsonObject, ...], params: JsonObject
    ) -> CanonicalRequest:
        """The canonical request that asks for what follows."""
        messages = self.messages()
        return CanonicalRequest(wire, operation, messages, tools, params, max(0, len(messages) - self._open))

    def close(self) -> None:
        """The last turn is over, for now."""
        if self.role is not None:
            self.done.append(Message(self.role, tuple(self.parts)))
            self.role, self.parts = None, []

    def _named(self, part: JsonObject) -> JsonObject:
        """The part, less a result's tool name when its call says the same."""
        kind = part["type"]
        if kind == "tool_call":
            self.names[part_id(part)] = part.get("name")
        elif kind == "tool_result" and "name" in part:
            call = part_id(part)
            if call in self.names and dumps(self.names[call]) == dumps(part["name"]):
                return {name: value for name, value in part.items() if name != "name"}
        return part


def _taken(read: Callable[[C, JsonValue], None], state: C, items: list[JsonValue], first: int) -> C:
    conversation = state.copy()
    for item in items[first:]:
        read(conversation, item)
    conversation.close()
    return conversation


def part_id(part: JsonObject) -> str:
    """The linking id of a call or result."""
    return linking_id(part.get("id"))


def opaque(value: JsonValue, at: str = "") -> JsonObject:
    """A part for what the adapter does not know; `at` tells where it stood, unless in place of a part."""
    part: JsonObject = {"type": "opaque", "value": value}
    if at:
        part["at"] = at
    return part


def odd_turn(value: JsonValue) -> JsonObject:
    """A part for a whole turn that the adapter does not know: a part that looks so is another thing."""
    return opaque(value, "turn")


def text_parts(text: str) -> list[JsonObject]:
    """A text as parts: none when it is empty."""
    return [{"type": "text", "text": text}] if text else []


def parts_of(content: JsonValue, read: Callable[[JsonValue], Iterable[JsonObject]]) -> Iterator[JsonObject]:
    """The parts of a message's content: a text, or a list of which `read` makes parts one by one."""
    if isinstance(content, str):
        yield from text_parts(content)
    elif isinstance(content, list):
        for part in content:
            yield from read(part)
    elif content is not None:
        yield opaque(content)


def refusal(part: JsonObject) -> list[JsonObject]:
    """The text in which a model refuses, of an OpenAI wire's part; none when it says nothing."""
    text = part.get("refusal")
    if part.get("type") != "refusal" or not isinstance(text, str) or not text:
        return []
    return [with_rest({"type": "text", "text": text, "refusal": True}, part, "type", "refusal")]


def sent_text(part: JsonObject, text: str, *known: str) -> list[JsonObject]:
    """A text that was sent in an object, with all that is not `known` of it; none when nothing is said."""
    if len(part) == 2 and part.get("type") == "text":
        return [part] if text else []
    made = with_rest({"type": "text", "text": text}, part, "type", "text", *known)
    return [made] if text or len(made) > 2 else []


def with_rest(part: JsonObject, source: JsonObject, *known: str) -> JsonObject:
    """`part` with the members of `source` that are not `known`, under their own names.

    One whose name `part` uses for something else is told apart by a prefix, and so is one that has it. Words
    of ours are not taken from a wire.
    """
    for name, value in source.items():
        if name not in known:
            own = f"{_PREFIX}{name}" if name in _OURS or name.startswith(_PREFIX) else name
            while own in part:
                own = f"{_PREFIX}{own}"
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
    about = opaque(rest, "message")
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


def own_call(call_id: JsonValue, name: JsonValue, arguments: JsonValue, call_type: JsonValue) -> JsonObject:
    """A call of a tool that is no function of the client's: what type of call it is counts."""
    return {**tool_call(call_id, name, arguments), "call_type": call_type}


def tool_result(call_id: JsonValue, content: Iterable[JsonObject]) -> JsonObject:
    """A result and its parts."""
    return {"type": "tool_result", "id": sent(call_id), "content": list(content)}


_SAME_TYPES = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav"}
"""Names that clients give to a type beside the registered one, or the usual one."""


def media_from_data(media_type: str, data: str) -> JsonObject:
    """A media part from base64; of media that are text, the text (DESIGN §5, step 0).

    The text is read as redaction reads it, which has been over it before.
    """
    kind = media_type.lower()
    kind = _SAME_TYPES.get(kind, kind)
    if is_textual(kind) and (raw := plain_bytes(data)) is not None:
        try:
            return {"type": "media", "media_type": kind, "text": raw.decode("utf-8")}
        except UnicodeDecodeError:
            pass  # no text after all: the digest of its bytes says what it is
    return {"type": "media", "media_type": kind, "data": data}


def media_from_url(url: str, kind: str) -> JsonObject:
    """A media part from a URL: the bytes of a base64 `data:` URL, else the URL itself.

    `kind` (`image`, `audio`, `application`) gives the media type where nothing tells it. Parameters of the
    media type name a file or a character set, and are no part of it. Text is read where redaction reads it.
    """
    if url[:5].lower() == "data:":
        head, comma, data = url[5:].partition(",")
        parameters, _, coding = head.rpartition(";")
        if comma and coding.strip().lower() == "base64":
            media_type = parameters.partition(";")[0].strip() or "text/plain"
            if not is_textual(media_type):
                return media_from_data(media_type, unquote(data))  # RFC 2397: its `+` or `=` may be escaped
            if data_uri(url):
                return media_from_data(media_type, data)
    return {"type": "media", "media_type": f"{kind}/*", "url": url}
