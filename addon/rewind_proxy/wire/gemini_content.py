"""The contents of a Gemini request: turns, their parts, and the ids that link calls to results."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import groupby
from typing import Self

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.linking import linking_id
from rewind_proxy.canonical.model import JsonObject, JsonValue, Role
from rewind_proxy.wire.conversation import (
    Conversation,
    media_from_data,
    media_from_url,
    odd_turn,
    opaque,
    own_call,
    text_parts,
    tool_result,
    with_rest,
    wrapped,
)
from rewind_proxy.wire.gemini_names import camel
from rewind_proxy.wire.parameters import rename

_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
    "tool": "tool",
    "system": "system",  # gateways send instructions in the middle so; Google itself takes none there
}


class LinkingIds:
    """Linking ids of calls.

    Gemini pairs a result that has none with the first call of its name that is still open; such calls get one
    here, so that the pairing is the same as on the wires that always send ids.
    """

    def __init__(self) -> None:
        self._waiting: defaultdict[str, deque[str]] = defaultdict(deque)
        self._answered: set[str] = set()
        self._made = 0

    def copy(self) -> LinkingIds:
        """One that has given the same ids and goes its own way."""
        other = LinkingIds()
        other._waiting.update((name, waiting.copy()) for name, waiting in self._waiting.items())
        other._answered, other._made = {*self._answered}, self._made
        return other

    def call(self, sent: JsonValue, name: str) -> str:
        """The id of a call: the one sent, or one of our own."""
        call_id = linking_id(sent)
        if not call_id:
            self._made += 1
            call_id = f"gemini-call-{self._made}"
        self._waiting[name].append(call_id)
        return call_id

    def result(self, sent: JsonValue, name: str) -> str:
        """The id of the call that a result answers; `""` when there is none."""
        call_id = linking_id(sent)
        waiting = self._waiting[name]
        while waiting and not call_id:
            first = waiting.popleft()
            call_id = "" if first in self._answered else first
        self._answered.add(call_id)
        return call_id


class Contents(Conversation):
    """A conversation whose calls may have no ids of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = LinkingIds()

    def copy(self) -> Self:
        """See `Conversation.copy`."""
        other = super().copy()
        other.ids = self.ids.copy()
        return other


def system_parts(value: JsonValue) -> list[JsonObject]:
    """The parts of a `systemInstruction`."""
    if isinstance(value, str):
        return text_parts(value)
    if not isinstance(value, dict):
        return [opaque(value)]
    ids = LinkingIds()
    known = ["parts"]
    if value.get("role") in ("user", "system"):  # it says nothing here: clients send either
        known.append("role")
    return wrapped(_parts(value.get("parts"), ids), value, *known)


def add_content(conversation: Contents, content: JsonValue) -> None:
    """Add one content: its function results as a turn of the tool, the rest as its role's."""
    if isinstance(content, str):
        conversation.add("user", text_parts(content))
        return
    name = content.get("role", "user") if isinstance(content, dict) else None
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None or not isinstance(content, dict):
        conversation.add("user", [odd_turn(content)])
        return
    parts = wrapped(_parts(content.get("parts"), conversation.ids), content, "role", "parts")
    if role in ("assistant", "system") or not parts:
        conversation.add(role, parts)
        return
    for is_result, group in groupby(parts, key=lambda part: part["type"] == "tool_result"):
        conversation.add("tool" if is_result else "user", group)


def _parts(parts: JsonValue, ids: LinkingIds) -> Iterator[JsonObject]:
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, dict):
            yield from _part(camel(part), ids)
        elif isinstance(part, str):
            yield from text_parts(part)
        elif part is not None:
            yield opaque(part)


def _part(part: JsonObject, ids: LinkingIds) -> list[JsonObject]:
    if "thoughtSignature" in part:
        part = rename(part, {"thoughtSignature": "signature"})
    match part:
        case {"functionCall": dict(call)}:
            name = str(call.get("name") or "")
            made: JsonObject = {
                "type": "tool_call",
                "id": ids.call(call.get("id"), name),
                "name": name,
                "arguments": call.get("args", {}),
            }
            with_rest(made, call, "id", "name", "args")
            return [with_rest(made, part, "functionCall")]
        case {"functionResponse": dict(response)}:
            return [with_rest(_result(response, ids), part, "functionResponse")]
        case {"text": str(text), "thought": True}:
            return [with_rest({"type": "reasoning", "text": text}, part, "text", "thought")]
        case {"text": str(text)}:
            made = with_rest({"type": "text", "text": text}, part, "text")
            return [] if not text and len(made) == 2 else [made]
        case {"toolCall": dict(call)}:  # of a tool that runs at the provider
            made = own_call(call.get("id"), call.get("toolType"), call.get("args"), "toolCall")
            with_rest(made, call, "id", "toolType", "args")
            return [with_rest(made, part, "toolCall")]
        case {"toolResponse": dict(response)}:
            content = [opaque(response["response"])] if response.get("response") else []
            made = tool_result(response.get("id"), content) | {"result_type": "toolResponse"}
            with_rest(made, response, "id", "response")
            return [with_rest(made, part, "toolResponse")]
    if (media := _media(part)) is not None:
        return [media]
    return [opaque(part)]


def _media(part: JsonObject) -> JsonObject | None:
    match part:
        case {"inlineData": dict(inline)}:
            inline = camel(inline)
            if isinstance(data := inline.get("data"), str):
                media = with_rest(media_from_data(_mime_type(inline), data), inline, "mimeType", "data")
                return with_rest(media, part, "inlineData")
        case {"fileData": dict(file)}:
            file = camel(file)
            media_type = _mime_type(file)
            if isinstance(url := file.get("fileUri"), str):
                media = media_from_url(url, "*") | {"media_type": media_type}
                return with_rest(with_rest(media, file, "mimeType", "fileUri"), part, "fileData")
    return None


def _mime_type(data: JsonObject) -> str:
    media_type = data.get("mimeType")
    return media_type.lower() if isinstance(media_type, str) else "*/*"


def _result(response: JsonObject, ids: LinkingIds) -> JsonObject:
    """A result; `output` and `result` hold it and `error` says that it failed, as Google documents them."""
    name = str(response.get("name") or "")
    value = response.get("response")
    failed = False
    match value:
        case {"output": str(text), **rest} if not rest:
            content = text_parts(text)
        case {"result": str(text), **rest} if not rest:
            content = text_parts(text)
        case {"error": str(text), **rest} if not rest:
            content, failed = text_parts(text), True
        case {} if value:
            content = text_parts(dumps(value).decode())
        case str(text):
            content = text_parts(text)
        case _:
            content = [opaque(value)] if value else []
    inner = response.get("parts")
    if inner is not None:
        content.extend(_parts(inner, LinkingIds()))
    result = tool_result(ids.result(response.get("id"), name), content)
    if name:
        result["name"] = name
    if failed:
        result["is_error"] = True
    return with_rest(result, response, "id", "name", "response", "parts")
