"""The content blocks of an Anthropic answer as canonical parts, and back.

Between here and the two forms the `input` of a tool call is a string, its source text: a stream carries it
so, and a whole message is `decoded` last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rewind_proxy.canonical.answer import Choice
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.conversation import with_rest
from rewind_proxy.wire.forms.rendering import Notes
from rewind_proxy.wire.forms.single import Ids, function_arguments, text_of

_WEB = "web_search_result_location"
_LOCATIONS = frozenset(
    {"char_location", "page_location", "content_block_location", "search_result_location", _WEB}
)


def part(block: JsonObject) -> JsonObject:
    """The canonical part of one content block; what is not known is opaque."""
    block = {name: value for name, value in block.items() if value is not None}
    match block:
        case {"type": "text", "text": str(text)}:
            said: JsonObject = {"type": "text", "text": text}
            if found := answers.objects(block.get("citations")):
                said["citations"] = [_citation(one) for one in found]
            return with_rest(said, block, "type", "text", "citations")
        case {"type": "tool_use", "name": str(name)}:
            call: JsonObject = {
                "type": "tool_call",
                "id": text_of(block.get("id")),
                "name": name,
                "arguments": source(block.get("input")),
            }
            return with_rest(call, block, "type", "id", "name", "input")
        case {"type": "thinking", "thinking": str(text)}:
            thought: JsonObject = {"type": "reasoning", "text": text}
            known = ["signature"] if not block.get("signature") else []
            return with_rest(thought, block, "type", "thinking", *known)
        case {"type": "redacted_thinking", "data": str(data)}:
            return with_rest({"type": "reasoning", "encrypted_content": data}, block, "type", "data")
    return {"type": "opaque", "wire": "anthropic", "value": decoded_block(block)}


def source(arguments: JsonValue) -> str:
    """The source text of a call's `input`: in a whole message it is decoded."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False)


def _citation(citation: JsonObject) -> JsonObject:
    """One of the web has an address, as those of other wires have; the others are this wire's own."""
    if citation.get("type") == _WEB and isinstance(citation.get("url"), str):
        return {name: value for name, value in citation.items() if name != "type" and value is not None}
    return citation


def decoded(message: JsonObject) -> JsonObject:
    """The message with the `input` of its calls decoded."""
    return {**message, "content": [decoded_block(block) for block in answers.objects(message["content"])]}


def decoded_block(block: JsonObject) -> JsonObject:
    """The block with its `input` decoded, if it has one that is an object."""
    found = block.get("input")
    if not isinstance(found, str):
        return block
    value = answers.load_object(found or "{}")
    return block if value is None else {**block, "input": value}


def blocks(choice: Choice, same_wire: bool, notes: Notes, ids: Ids) -> Iterator[JsonObject]:
    """The content blocks for these parts, `input` as source text."""
    for found in choice.parts:
        match found["type"]:
            case "text":
                yield from _text(found, same_wire, notes)
            case "tool_call":
                call: JsonObject = {
                    "type": "tool_use",
                    "id": ids.take(found.get("id"), "toolu_"),
                    "name": text_of(found.get("name")),
                    "input": function_arguments(found, notes),
                }
                known = ("id", "name", "arguments", "call_type", "item_id")
                yield call | _own(found, same_wire, notes, *known)
            case "reasoning":
                yield from _reasoning(found, same_wire, notes)
            case "opaque" if found.get("wire") == "anthropic":
                yield from answers.objects([found.get("value")])
            case "opaque":
                notes.opaque(found)
            case kind:
                notes.add(text_of(kind))


def _text(found: JsonObject, same_wire: bool, notes: Notes) -> Iterator[JsonObject]:
    text = text_of(found.get("text"))
    if not text and not same_wire:
        return  # this wire takes no empty block back
    if found.get("refusal"):
        notes.add("refusal")
    block: JsonObject = {"type": "text", "text": text}
    if citations := list(_citations(found, text, same_wire, notes)):
        block["citations"] = citations
    yield block | _own(found, same_wire, notes, "text", "refusal", "citations", "item_id")


def _citations(found: JsonObject, text: str, same_wire: bool, notes: Notes) -> Iterator[JsonValue]:
    for citation in answers.objects(found.get("citations")):
        kind, url = citation.get("type"), citation.get("url")
        if kind is None and isinstance(url, str):
            if "start" in citation or "end" in citation:
                notes.add("citation positions")
            known = ("url", "title", "cited_text", "encrypted_index")
            yield {
                "type": _WEB,
                "url": url,
                "title": citation.get("title"),
                "cited_text": citation.get("cited_text", _cited(text, citation)),
                "encrypted_index": citation.get("encrypted_index", ""),
                **_own(citation, same_wire, notes, *known, "start", "end"),
            }
        elif same_wire or (isinstance(kind, str) and kind in _LOCATIONS):
            yield citation
        else:
            notes.add("citations")


def _cited(text: str, citation: JsonObject) -> str:
    """What the positions of the other wires mark."""
    start, end = citation.get("start"), citation.get("end")
    return text[start:end] if isinstance(start, int) and isinstance(end, int) and 0 <= start < end else text


def _reasoning(found: JsonObject, same_wire: bool, notes: Notes) -> Iterator[JsonObject]:
    own = _own(found, same_wire, notes, "text", "summary", "signature", "encrypted_content", "item_id")
    text, summary = found.get("text"), found.get("summary")
    if isinstance(summary, list) and summary:
        notes.add("reasoning summary")
        if not isinstance(text, str):
            text = "\n\n".join(text_of(one) for one in summary)
    sealed = found.get("encrypted_content")
    signature = text_of(found.get("signature"))
    if isinstance(text, str) and (text or signature or same_wire):
        yield {"type": "thinking", "thinking": text, "signature": signature, **own}
    elif signature:
        notes.add("reasoning signature")
    if isinstance(sealed, str) and sealed:
        yield {"type": "redacted_thinking", "data": sealed, **({} if isinstance(text, str) else own)}


def _own(found: JsonObject, same_wire: bool, notes: Notes, *neutral: str) -> JsonObject:
    """The members that only the part's own wire can say, under the names they have there."""
    if not same_wire:
        notes.members(text_of(found.get("type", "citation")), found, *neutral)
        return {}
    known = (*neutral, "type")
    return {name.removeprefix("wire."): value for name, value in found.items() if name not in known}
