"""JSON documents inside an answer's body, edited in place: every other byte stays as it was sent.

A whole body is one document, a stream holds one in each event. Strings are replaced inside their own token,
so that framing, member order, white space and the escapes around a value stay.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias, cast

from rewind_proxy.canonical.model import Form, JsonValue
from rewind_proxy.matching.rebase_finder import Edit
from rewind_proxy.matching.rebase_text import escape_json, unescape_json

Path: TypeAlias = tuple[str | int, ...]

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_SPACE = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document of a body."""

    name: str
    """The `event` field of its event; empty when it has none."""
    text: str
    value: JsonValue
    lines: tuple[tuple[int, int], ...]
    """(place in `text`, place in the body) where each of its lines starts; a token never spans two lines."""

    def place(self, index: int) -> int:
        """Where a place in `text` stands in the body."""
        if len(self.lines) == 1:
            return self.lines[0][1] + index
        start, place = self.lines[bisect_right(self.lines, index, key=itemgetter(0)) - 1]
        return place + index - start


def documents(form: Form, body: str) -> list[Document]:
    """The documents of a body, in order. Raises ValueError or RecursionError when one cannot be read.

    Events whose data does not start as a JSON object (`[DONE]`, pings) hold none.
    """
    if form == "sse":
        return list(_events(body))
    start = len(_BOM) if body.startswith(_BOM) else 0
    text = body[start:]
    return [Document("", text, cast("JsonValue", json.loads(text)), ((0, start),))]


def _events(body: str) -> Iterator[Document]:
    """The documents of a stream, by the lines of the WHATWG standard (wire/sse.py)."""
    name = ""
    data: list[tuple[int, int]] = []
    for match in _LINE.finditer(body):
        start, end = match.span(1)
        if start == 0 and body.startswith(_BOM):
            start = len(_BOM)
        if start == end:
            yield from _event(body, name, data)
            name, data = "", []
        elif body.startswith("data:", start):
            start += len("data:")
            data.append((start + body.startswith(" ", start, end), end))
        elif body.startswith("event:", start):
            name = body[start + len("event:") : end].removeprefix(" ")
    yield from _event(body, name, data)


def _event(body: str, name: str, data: list[tuple[int, int]]) -> Iterator[Document]:
    if not data:
        return
    lines: list[tuple[int, int]] = []
    length = 0
    for start, end in data:
        lines.append((length, start))
        length += end - start + 1
    text = "\n".join(body[start:end] for start, end in data)
    if text.lstrip(" \t\r\n").startswith("{"):
        yield Document(name, text, cast("JsonValue", json.loads(text)), tuple(lines))


def locate(text: str, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Where the values at `paths` stand in the source of a document; what is not there is left out.

    No path leads through another one.
    """
    wanted: _Tree = {}
    for path in paths:
        node = wanted
        for step in path:
            node = node.setdefault(step, {})
    found: dict[Path, tuple[int, int]] = {}
    _walk(text, _skip(text, 0), wanted, (), found)
    return found


_Tree: TypeAlias = dict[str | int, "_Tree"]


def _walk(text: str, start: int, wanted: _Tree, path: Path, found: dict[Path, tuple[int, int]]) -> int:
    """Note where the wanted values below `start` stand; the end of the value there.

    Only what leads to a wanted value is walked, the rest is skipped by the decoder of the standard library.
    """
    opening = text[start]
    if not wanted or opening not in "{[":
        end = _decoder.raw_decode(text, start)[1]
    elif opening == "{":
        end = _skip(text, start + 1)
        while text[end] != "}":
            name, end = _decoder.raw_decode(text, end)
            end = _skip(text, _skip(text, end) + 1)  # past the colon
            end = _member(text, end, wanted, path, name, found)
        end += 1
    else:
        end = _skip(text, start + 1)
        index = 0
        while text[end] != "]":
            end = _member(text, end, wanted, path, index, found)
            index += 1
        end += 1
    if not wanted:
        found[path] = start, end
    return end


def _member(
    text: str, start: int, wanted: _Tree, path: Path, step: str | int, found: dict[Path, tuple[int, int]]
) -> int:
    """Walk or skip one member; the start of the next one, or of the closing bracket."""
    below = wanted.get(step)
    if below is None:
        end = _decoder.raw_decode(text, start)[1]
    else:
        end = _walk(text, start, below, (*path, step), found)
    end = _skip(text, end)
    return _skip(text, end + 1) if text[end] == "," else end


def _skip(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    assert space is not None
    return space.end()


def string_edits(source: str, edits: Iterable[Edit], *, ascii_body: bool) -> Iterator[Edit]:
    """Edits of what a JSON string says, as edits of its token `source`, quotes included.

    What is put in is escaped as the string is: `\\u` escapes where it has some, or where nothing in the body
    tells otherwise.
    """
    inside = source[1:-1]
    ascii_only = inside.isascii() and (ascii_body or "\\u" in inside)
    _, place = unescape_json(inside)
    for edit in edits:
        new = escape_json(edit.new, ascii_only=ascii_only)
        yield Edit(1 + place(edit.start), 1 + place(edit.end), new)
