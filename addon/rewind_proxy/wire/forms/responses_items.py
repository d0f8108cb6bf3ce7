"""The items of a Responses answer as canonical parts, and back.

A message's texts are parts of their own: those with the same `item_id`, `phase` and `message` (the members of
the message that have no other place) stood in one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Choice
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.conversation import with_rest
from rewind_proxy.wire.forms.rendering import Notes, custom_input, source_text
from rewind_proxy.wire.forms.single import Ids, text_of

# A complete answer says how its items ended; see `responses.render`.
_ITEM = ("type", "id", "status")
_MESSAGE = (*_ITEM, "role", "content", "phase")
_WRAPPER = ("item_id", "phase", "message")
_ANNOTATIONS = frozenset({"file_citation", "container_file_citation", "file_path"})


def parts(item: JsonObject) -> Iterator[JsonObject]:
    """The canonical parts of one item of `output`; what is not known is opaque, whole."""
    match item:
        case {"type": "message", "role": "assistant", "content": [dict(), *_] as content}:
            wrapper = _wrapper(item)
            yield from (_content(part) | wrapper for part in answers.objects(content))
        case {"type": "function_call", "name": str(), "arguments": str()}:
            yield _call(item, "arguments", {})
        case {"type": "custom_tool_call", "name": str(), "input": str()}:
            yield _call(item, "input", {"call_type": "custom"})
        case {"type": "reasoning"}:
            yield _reasoning(item)
        case _:
            yield _opaque(item)


def _opaque(value: JsonValue) -> JsonObject:
    return {"type": "opaque", "wire": "responses", "value": value}


def _item_id(item: JsonObject) -> JsonObject:
    return {"item_id": item["id"]} if answers.string(item.get("id")) else {}


def _wrapper(message: JsonObject) -> JsonObject:
    found = _item_id(message)
    if message.get("phase") is not None:
        found["phase"] = message["phase"]
    rest: JsonObject = {name: value for name, value in message.items() if name not in _MESSAGE}
    return found | {"message": rest} if rest else found


def _content(part: JsonObject) -> JsonObject:
    match part:
        case {"type": "output_text", "text": str(text)}:
            made: JsonObject = {"type": "text", "text": text}
            known = ["type", "text", *(name for name in ("annotations", "logprobs") if not part.get(name))]
            found = part.get("annotations")
            if isinstance(found, list) and found:
                made["citations"] = [_citation(one) for one in answers.objects(found)]
                known.append("annotations")
            return with_rest(made, part, *known)
        case {"type": "refusal", "refusal": str(text)}:
            return with_rest({"type": "text", "text": text, "refusal": True}, part, "type", "refusal")
    return _opaque(part) | {"within": "message"}


def _citation(annotation: JsonObject) -> JsonObject:
    match annotation:
        case {"type": "url_citation", "url": str(url), "start_index": int(start), "end_index": int(end)}:
            made: JsonObject = {"url": url, "start": start, "end": end}
            known = ("type", "url", "start_index", "end_index")
            return made | {name: value for name, value in annotation.items() if name not in known}
    return annotation


def _call(item: JsonObject, source: str, kind: JsonObject) -> JsonObject:
    part: JsonObject = {
        "type": "tool_call",
        "id": text_of(item.get("call_id")),
        "name": item["name"],
        "arguments": item[source],
        **kind,
        **_item_id(item),
    }
    return with_rest(part, item, *_ITEM, "call_id", "name", source)


def _reasoning(item: JsonObject) -> JsonObject:
    summary = _texts(item.get("summary"), "summary_text")
    content = _texts(item.get("content"), "reasoning_text")
    if summary is None or content is None:
        return _opaque(item)
    part: JsonObject = {"type": "reasoning", **_item_id(item)}
    known = [*_ITEM, "summary"]
    if summary:
        part["summary"] = list(summary)
    if content:
        part["text"] = "\n\n".join(content)
    if len(content) < 2:
        known.append("content")
    if item.get("encrypted_content") is None:
        known.append("encrypted_content")
    return with_rest(part, item, *known)


def _texts(value: JsonValue, kind: str) -> list[str] | None:
    """The texts of a list of such parts; None when it holds anything else."""
    found: list[str] = []
    for part in value if isinstance(value, list) else []:
        match part:
            case {"type": part_kind, "text": str(text), **rest} if part_kind == kind and not rest:
                found.append(text)
            case _:
                return None
    return found


def items(answer: CanonicalAnswer, choice: Choice, asked: Asked, notes: Notes, ids: Ids) -> list[JsonObject]:
    """The items of `output` for these parts, each with an id."""
    writer = _Writer(answer.wire == "responses", asked, notes, ids)
    for part in choice.parts:
        writer.add(part)
    return writer.items


class _Writer:
    """Writes items in the order of the parts."""

    def __init__(self, same_wire: bool, asked: Asked, notes: Notes, ids: Ids) -> None:
        self.items: list[JsonObject] = []
        self._same_wire = same_wire
        self._asked = asked
        self._notes = notes
        self._ids = ids
        self._content: list[JsonValue] = []
        self._kind = ""
        """Of the part under way: for notes."""
        self._open: JsonObject | None = None
        """What marks the message under way; None when the last item is no message."""

    def add(self, part: JsonObject) -> None:
        """Write one part."""
        self._kind = kind = text_of(part["type"])
        if kind == "text":
            self._say(part, self._text(part))
            return
        if kind == "opaque" and part.get("wire") == "responses":
            value = part.get("value")
            if part.get("within") == "message":
                self._say(part, value)
            elif isinstance(value, dict):
                self._append(value)
        elif kind == "tool_call":
            self._append(self._call(part))
        elif kind == "reasoning":
            if (item := self._reasoning(part)) is not None:
                self._append(item)
        elif kind == "opaque":
            self._notes.opaque(part)
        else:
            self._notes.add(kind)

    def _append(self, item: JsonObject) -> None:
        self.items.append(item)
        self._open = None

    def _say(self, part: JsonObject, content: JsonValue) -> None:
        wrapper: JsonObject = {name: part[name] for name in _WRAPPER if name in part}
        if not self._same_wire:
            wrapper = {}
        if self._open != wrapper:
            self._content = []
            rest = wrapper.get("message")
            message: JsonObject = {
                "id": self._ids.take(wrapper.get("item_id"), "msg_"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": self._content,
                **({"phase": wrapper["phase"]} if "phase" in wrapper else {}),
                **(rest if isinstance(rest, dict) else {}),
            }
            self._append(message)
            self._open = wrapper
        self._content.append(content)

    def _text(self, part: JsonObject) -> JsonObject:
        text = text_of(part.get("text"))
        own = self._own(part, "text", "refusal", "citations", *_WRAPPER)
        if part.get("refusal"):
            if part.get("citations"):
                self._notes.add("citations")
            return {"type": "refusal", "refusal": text, **own}
        annotations = list(self._annotations(text, part.get("citations")))
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": [], **own}

    def _annotations(self, text: str, citations: JsonValue) -> Iterator[JsonValue]:
        for citation in answers.objects(citations):
            kind, url = citation.get("type"), citation.get("url")
            if kind is None and isinstance(url, str):
                yield {
                    "type": "url_citation",
                    "start_index": citation.get("start", 0),
                    "end_index": citation.get("end", len(text)),
                    "url": url,
                    "title": text_of(citation.get("title")),
                    **self._own(citation, "url", "title", "start", "end", kind="citation"),
                }
            elif self._same_wire or (isinstance(kind, str) and kind in _ANNOTATIONS):
                yield citation
            else:
                self._notes.add("citations")

    def _call(self, part: JsonObject) -> JsonObject:
        arguments, name = source_text(part.get("arguments")), text_of(part.get("name"))
        custom = part.get("call_type") == "custom"
        if not custom and (source := custom_input(part, self._asked)) is not None:
            custom, arguments = True, source
        item: JsonObject = {
            "id": self._ids.take(part.get("item_id"), "ctc_" if custom else "fc_"),
            "type": "custom_tool_call" if custom else "function_call",
            "status": "completed",
            "call_id": self._ids.take(part.get("id"), "call_"),
            "name": name,
            "input" if custom else "arguments": arguments,
        }
        return item | self._own(part, "id", "name", "arguments", "call_type", "item_id")

    def _reasoning(self, part: JsonObject) -> JsonObject | None:
        """The item, or None when this wire can say nothing of it."""
        if part.get("signature"):
            self._notes.add("reasoning signature")
        item: JsonObject = {"id": self._ids.take(part.get("item_id"), "rs_"), "type": "reasoning"}
        found = part.get("summary")
        item["summary"] = _typed("summary_text", found if isinstance(found, list) else [])
        if text := part.get("text"):
            item["content"] = _typed("reasoning_text", [text])
        if sealed := part.get("encrypted_content"):
            item["encrypted_content"] = sealed
        item |= self._own(part, "text", "summary", "signature", "encrypted_content", "item_id")
        empty = not item["summary"] and item.keys() <= {"id", "type", "summary"}
        return None if empty and not self._same_wire else item

    def _own(self, part: JsonObject, *neutral: str, kind: str = "") -> JsonObject:
        """The members that only the part's own wire can say, under the names they have there."""
        if not self._same_wire:
            self._notes.members(kind or self._kind, part, *neutral)
            return {}
        known = (*neutral, "type")
        return {name.removeprefix("wire."): value for name, value in part.items() if name not in known}


def _typed(kind: str, texts: Iterable[JsonValue]) -> JsonValue:
    return [{"type": kind, "text": text_of(text)} for text in texts]
