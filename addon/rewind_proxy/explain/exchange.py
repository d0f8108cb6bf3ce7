"""A request and its answer for reading, live or stored."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.explain.conversation import Conversation
from rewind_proxy.explain.lines import BLANK, Line, line
from rewind_proxy.explain.words import safe_line, size
from rewind_proxy.matching.reading import Reading
from rewind_proxy.wire.conversation import tool_call
from rewind_proxy.wire.forms import parsed


def answer_parts(wire: Wire, form: Form, answer: bytes) -> list[JsonObject] | None:
    """The parts of an answer, of all its choices; None where it has none, or cannot be read as such."""
    found = parsed(answer, wire, form)
    choices = found.choices if found else ()
    return [_spoken(part) for choice in choices for part in choice.parts] or None


def _spoken(part: JsonObject) -> JsonObject:
    """A part as a request holds it: arguments are the JSON they are, but for free text."""
    if part["type"] != "tool_call" or "call_type" in part:
        return part
    return {**part, **tool_call(part["id"], part["name"], part["arguments"])}


def request_lines(view: Conversation, reading: Reading, body: JsonValue) -> Iterator[Line]:
    """Tools and messages of a request; `body` is shown of one that holds no conversation."""
    record = reading.record
    if reading.canonical is not None:
        yield from view.tools(reading.canonical.tools)
        yield from view.messages(reading.canonical.messages)
    elif record.opaque:
        kind = safe_line(record.content_type or "no content type")
        yield line(("faint", f"The request is kept as a digest only: {size(record.body_length)}, {kind},"))
        yield line(("faint", f"sha256 {record.body_sha256}"))
        yield BLANK
    elif body is not None:
        yield line(("user", "request"))
        yield from view.text(json.dumps(body, ensure_ascii=False, indent=2))
        yield BLANK


def answer_lines(
    view: Conversation, parts: list[JsonObject] | None, answer: bytes, content_type: str
) -> Iterator[Line]:
    """What was answered: its parts where it has any, else its text or its size."""
    yield line(("assistant", "answer"))
    text = decoded(answer)
    if parts is not None:
        yield from view.parts(parts)
    elif text is None:
        kind = safe_line(content_type or "no content type")
        yield line(("media", f"[{kind}, {size(len(answer))}]")).deeper()
    else:
        yield from view.text(_pretty(text))


def decoded(content: bytes) -> str | None:
    """An answer as text, or None where it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _pretty(text: str) -> str:
    """JSON with indentation; what is none as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
