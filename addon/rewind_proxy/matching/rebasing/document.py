"""JSON documents inside an answer's body, edited in place: every other byte stays as it was sent.

A whole body is one document, a stream holds one in each event. Strings are replaced inside their own token,
so that framing, member order, white space and the escapes around a value stay.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple, TypeAlias, cast

from rewind_proxy.canonical.model import Form, JsonValue
from rewind_proxy.matching.rebasing.finder import Edit
from rewind_proxy.matching.rebasing.text import escape_json, unescape_json

Path: TypeAlias = tuple[str | int, ...]

_MAY_BE_SPACE = frozenset(["", " ", "\t", "\r", "\n"])
_SPACE = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"
# Nearly all events look so; the others are read line by line.
_COMMON_EVENT = re.compile(
    r"(?:event: ?([^\r\n]*+)(?:\r\n|\n|\r))?+data: ?(\{[^\r\n]*+)(?:\n\n|\r\n\r\n|\r\r)"
)
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\n|\r|\Z)")
_decoder = json.JSONDecoder()


class Document(NamedTuple):
    """One JSON document of a body."""

    name: str
    """The `event` field of its event; empty when it has none."""
    value: JsonValue
    text: str
    """The text that holds it: the body itself, but for an event whose data is spread over lines."""
    start: int
    end: int
    lines: tuple[tuple[int, int], ...] = ()
    """(place in `text`, place in the body) where each such line starts; no token spans two lines."""

    def place(self, index: int) -> int:
        """Where a place in `text` stands in the body."""
        if not self.lines:
            return index
        start, place = self.lines[bisect_right(self.lines, index, key=itemgetter(0)) - 1]
        return place + index - start


def documents(form: Form, body: str) -> list[Document]:
    """The documents of a body, in order. Raises ValueError or RecursionError when one cannot be read.

    Events whose data does not start as a JSON object (`[DONE]`, pings) hold none.
    """
    start = len(_BOM) if body.startswith(_BOM) else 0
    if form == "sse":
        return list(_events(body, start))
    return [_document("", body, start, len(body))]


def _events(body: str, start: int) -> Iterator[Document]:
    """The documents of a stream, by the lines of the WHATWG standard (wire/sse.py)."""
    while start < len(body):
        common = _COMMON_EVENT.match(body, start)
        if common:
            yield _document(common[1] or "", body, *common.span(2))
            start = common.end()
            continue
        name = ""
        data: list[tuple[int, int]] = []
        for match in _LINE.finditer(body, start):
            begin, end = match.span(1)
            start = match.end()
            if begin == end:
                break
            if body.startswith("data:", begin):
                begin += len("data:")
                data.append((begin + body.startswith(" ", begin, end), end))
            elif body.startswith("event:", begin):
                name = body[begin + len("event:") : end].removeprefix(" ")
        yield from _spread(name, body, data)


def _spread(name: str, body: str, data: list[tuple[int, int]]) -> Iterator[Document]:
    """The document of an event whose data is in these lines; none when they hold no object."""
    text = "\n".join(body[begin:end] for begin, end in data)
    if not text.lstrip(" \t\r\n").startswith("{"):
        return
    lines: list[tuple[int, int]] = []
    length = 0
    for begin, end in data:
        lines.append((length, begin))
        length += end - begin + 1
    yield _document(name, text, 0, len(text))._replace(lines=tuple(lines))


def _document(name: str, text: str, start: int, end: int) -> Document:
    start = _skip(text, start)
    value, stop = _decoder.raw_decode(text, start)
    if _skip(text, stop) < end:
        raise ValueError("more than one JSON document")
    return Document(name, cast("JsonValue", value), text, start, end)


def locate(document: Document, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Where the values at `paths` stand in the text of a document; what is not there is left out.

    No path leads through another one.
    """
    wanted: _Tree = {}
    for path in paths:
        node = wanted
        for step in path:
            node = node.setdefault(step, {})
    found: dict[Path, tuple[int, int]] = {}
    _walk(document.text, document.start, wanted, (), found)
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
    """The first place from `start` on that is no white space."""
    if text[start : start + 1] not in _MAY_BE_SPACE:
        return start
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
