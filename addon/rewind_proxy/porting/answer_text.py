"""An answer as text, and back: every byte, the length of each chunk and its time.

    {"events": [[milliseconds, text, [offset, milliseconds], …], …]}   a stream, one event a line
    {"json": value, "style": …}                                        where writing it gives the bytes
    {"lines": [text, …]}                                               other text
    {"base64": [text, …]}                                              what is no text

In `events`, milliseconds are those of the chunk that begins with the event, null where none does; further
chunks that begin inside it follow with their offset in bytes. Elsewhere `"chunks": [[length, milliseconds],
…]` stands beside.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError, PortingError
from rewind_proxy.porting import text as texts

Chunks: TypeAlias = tuple[tuple[int, int], ...]

_EVENT_END = re.compile(rb"(?>\r\n|\n|\r){2,}")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BASE64_LINE = 76
_LONGEST = 2**40
"""Milliseconds, more than any answer took."""
_STYLES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "compact": {"separators": (",", ":")},
        "spaced": {},
        "indented": {"indent": 2},
        "indented 4": {"indent": 4},
    }
)
"""How providers lay JSON out: what `json.dumps` is told."""
_ESCAPED = " ascii"
"""Ends the name of a style in which every other character is escaped."""


def written(body: bytes, chunks: Chunks, content_type: str) -> JsonObject:
    """The members that say an answer. `read` gives the same bytes and chunks back."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        coded = base64.b64encode(body).decode("ascii")
        lines: list[JsonValue] = [coded[at : at + _BASE64_LINE] for at in range(0, len(coded), _BASE64_LINE)]
        return {"chunks": _pairs(chunks), "base64": lines}
    if "text/event-stream" in content_type.lower():
        events: JsonObject = {"events": _events(body, chunks)}
        if read(events, "") == (body, chunks):
            return events
    return {"chunks": _pairs(chunks), **(_as_json(text) or {"lines": [*_LINE.findall(text)]})}


def read(members: Mapping[str, JsonValue], place: str) -> tuple[bytes, Chunks]:
    """Body and chunks of an answer. Raises `PortingError`, which names the place."""
    try:
        match members:
            case {"events": [*rows]}:
                return _joined(rows)
            case {"base64": [*lines]}:
                body = base64.b64decode("".join(map(_text, lines)), validate=True)
            case {"lines": [*lines]}:
                body = "".join(map(_text, lines)).encode()
            case {"json": value, "style": str(style)}:
                body = (_laid_out(value, style) + _text(members.get("end", ""))).encode()
            case _:
                raise PortingError(
                    f'{place}: the answer has neither "events", "json" with "style", "lines" nor "base64"'
                )
    except (_BadRowError, ValueError):
        raise PortingError(f"{place}: the answer is not as `rewind export` writes it") from None
    chunks = _chunks(members.get("chunks"), len(body), place)
    return body, chunks


def _events(body: bytes, chunks: Chunks) -> list[JsonValue]:
    starts: list[tuple[int, int]] = []
    offset = 0
    for length, milliseconds in chunks:
        starts.append((offset, milliseconds))
        offset += length
    rows: list[JsonValue] = []
    at = begin = 0
    for end in [*(found.end() for found in _EVENT_END.finditer(body)), len(body)]:
        if begin == end:
            continue
        row: list[JsonValue] = [None, body[begin:end].decode("utf-8")]
        if at < len(starts) and starts[at][0] == begin:
            row[0] = starts[at][1]
            at += 1
        while at < len(starts) and starts[at][0] < end:
            row.append([starts[at][0] - begin, starts[at][1]])
            at += 1
        rows.append(row)
        begin = end
    return rows


def _joined(rows: list[JsonValue]) -> tuple[bytes, Chunks]:
    pieces: list[bytes] = []
    starts: list[tuple[int, int]] = []
    offset = 0
    for row in rows:
        match row:
            case [(None | int()) as milliseconds, str(text), *cuts] if 0 <= (milliseconds or 0) <= _LONGEST:
                piece = text.encode()
                if milliseconds is not None:
                    starts.append((offset, milliseconds))
                for cut in cuts:
                    match cut:
                        case [int(inside), int(later)] if 0 <= inside < len(piece) and 0 <= later <= _LONGEST:
                            starts.append((offset + inside, later))
                        case _:
                            raise _BadRowError
                pieces.append(piece)
                offset += len(piece)
            case _:
                raise _BadRowError
    ends = [start for start, _ in starts[1:]] + [offset]
    if (starts and starts[0][0] != 0) or ends != sorted(ends):
        raise _BadRowError
    chunks = tuple((end - start, ms) for (start, ms), end in zip(starts, ends, strict=False))
    return b"".join(pieces), chunks


class _BadRowError(Exception):
    """Something that no writer of ours wrote."""


def _as_json(text: str) -> JsonObject | None:
    """Value and style of a JSON text, if writing the value in that style gives the text."""
    head = text.rstrip(" \t\r\n")
    try:
        value = texts.load(head, "")
        jcs.check_depth(value, head, 0, len(head))
    except (PortingError, OpaqueBodyError):
        return None
    for style in _STYLES:
        if ("indent" in _STYLES[style]) != ("\n" in head):
            continue
        for name in (style, style + _ESCAPED):
            if _laid_out(value, name) == head:
                tail: JsonObject = {} if head == text else {"end": text[len(head) :]}
                return {"style": name, **tail, "json": value}
    return None


def _laid_out(value: JsonValue, style: str) -> str:
    layout = _STYLES.get(style.removesuffix(_ESCAPED))
    if layout is None:
        raise _BadRowError
    return json.dumps(value, ensure_ascii=style.endswith(_ESCAPED), **layout)


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise _BadRowError
    return value


def _pairs(chunks: Chunks) -> list[JsonValue]:
    return [[length, milliseconds] for length, milliseconds in chunks]


def _chunks(value: JsonValue, length: int, place: str) -> Chunks:
    pairs: list[tuple[int, int]] = []
    for pair in value if isinstance(value, list) else [[length, 0]]:
        match pair:
            case [int(size), int(milliseconds)] if size >= 0 and 0 <= milliseconds <= _LONGEST:
                pairs.append((size, milliseconds))
            case _:
                raise PortingError(f'{place}: "chunks" is a list of [length, milliseconds]')
    if sum(size for size, _ in pairs) == length:
        return tuple(pairs)
    # Whoever edits an answer by hand leaves its chunks as they were.
    return ((length, pairs[-1][1] if pairs else 0),) if length else ()
