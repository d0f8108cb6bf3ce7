"""The edits of one content part: plain text, JSON in a string, or source code (DESIGN §8, "Re-basing").

A value is looked for in what a string literal says, and written as that literal must spell it, at any depth:
JSON in a string in JSON is read twice and escaped twice.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Literal

from rewind_proxy.matching.rebasing.finder import Edit, Finder

Kind = Literal["text", "json", "code"]
"""`json`: JSON source, as in tool arguments. `code`: JavaScript or a patch, as in `custom_tool_call.input`.
`text`: anything else; one that is a JSON document (structured output) is read as `json`."""

# A backslash outside a literal takes the next character with it: no quote is looked at twice, so a hostile
# text of escaped quotes costs linear time.
_JSON_LITERAL = re.compile(r"\\.|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"", re.DOTALL)
_CODE_LITERAL = re.compile(
    r"\\.|\"[^\"\\\r\n]*+(?:\\.[^\"\\\r\n]*+)*+\"|'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'|`[^`\\]*+(?:\\.[^`\\]*+)*+`",
    re.DOTALL,
)
_JSON_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
# ECMA-262 §12.9.4: the escapes of string literals; a backslash before a line's end joins two lines.
_CODE_ESCAPE = re.compile(r"\\(?:u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_NEWLINES = frozenset(["\n", "\r", "\r\n", "\u2028", "\u2029"])
_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_CHARACTER = 0x10FFFF


class Rewriter:
    """Finds the edits of content parts; copies of one text are looked at once."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._known: dict[tuple[Kind, str], tuple[Edit, ...]] = {}

    def may_hold(self, source: str) -> bool:
        """Whether `source` is worth a closer look."""
        return self._finder.may_hold(source)

    def edits(self, text: str, kind: Kind) -> tuple[Edit, ...]:
        """The edits of `text`, in order, not overlapping; they depend on the text and its kind alone."""
        known = self._known.get((kind, text))
        if known is None:
            known = self._known[kind, text] = self._edits(text, kind)
        return known

    def _edits(self, text: str, kind: Kind) -> tuple[Edit, ...]:
        if not self._finder.may_hold(text):
            return ()
        if kind == "json" or (kind == "text" and _is_json(text)):
            return tuple(edit for _, _, edits in self._in_literals(text, _JSON_LITERAL) for edit in edits)
        plain = self._finder.edits(text)
        return self._in_code(text, plain) if kind == "code" else plain

    def _in_code(self, text: str, plain: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """What a literal says goes before what stands in it, which counts in a raw one (`String.raw`)."""
        literals = [each for each in self._in_literals(text, _CODE_LITERAL) if each[2]]
        if not literals:
            return plain
        starts = [start for start, _, _ in literals]
        kept = [edit for edit in plain if not _inside(edit, starts, literals)]
        return tuple(sorted([*kept, *(edit for _, _, edits in literals for edit in edits)]))

    def _in_literals(self, text: str, pattern: re.Pattern[str]) -> list[tuple[int, int, tuple[Edit, ...]]]:
        """(start, end, edits) of the string literals in source text."""
        found: list[tuple[int, int, tuple[Edit, ...]]] = []
        for match in pattern.finditer(text):
            start, end = match.start() + 1, match.end() - 1
            quote = text[match.start()]
            source = text[start:end]
            if quote == "\\" or not self._finder.may_hold(source):
                continue
            if pattern is _JSON_LITERAL:
                said, place = unescape_json(source)
                ascii_only = source.isascii() and "\\u" in source
            else:
                said, place = _unescape(source, _CODE_ESCAPE, _said_by_code)
                ascii_only = False
            edits: list[Edit] = []
            for edit in self._edits(said, "text"):
                new = (
                    escape_json(edit.new, ascii_only=ascii_only)
                    if pattern is _JSON_LITERAL
                    else _escape_code(edit.new, quote)
                )
                edits.append(
                    edit._replace(start=start + place(edit.start), end=start + place(edit.end), new=new)
                )
            found.append((start, end, tuple(edits)))
        return found


def _inside(edit: Edit, starts: list[int], literals: list[tuple[int, int, tuple[Edit, ...]]]) -> bool:
    index = bisect_right(starts, edit.start) - 1
    return index >= 0 and edit.start < literals[index][1]


def _is_json(text: str) -> bool:
    """Whether a text is a JSON document and not mere words (a lone string or number is words)."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):  # it only looks like one
        return False
    return True


def unescape_json(source: str) -> tuple[str, Callable[[int], int]]:
    """What the inside of a JSON string says, and where each place of that stands in the source."""
    return _unescape(source, _JSON_ESCAPE, _said_by_json)


def escape_json(text: str, *, ascii_only: bool) -> str:
    """`text` as the inside of a JSON string."""
    escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    # A lone surrogate has no UTF-8 form: it can only be escaped.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", escaped)


def _unescape(
    source: str, escape: re.Pattern[str], said_by: Callable[[str], str]
) -> tuple[str, Callable[[int], int]]:
    if "\\" not in source:
        return source, lambda place: place
    pieces: list[str] = []
    after_said, after_source = [0], [0]
    said_length = position = 0
    for match in escape.finditer(source):
        said = said_by(match.group()[1:])
        said_length += match.start() - position + len(said)
        pieces += (source[position : match.start()], said)
        position = match.end()
        after_said.append(said_length)
        after_source.append(position)
    pieces.append(source[position:])

    def place(index: int) -> int:
        nearest = bisect_right(after_said, index) - 1
        return after_source[nearest] + index - after_said[nearest]

    return "".join(pieces), place


def _said_by_json(escape: str) -> str:
    if len(escape) > 5:  # a pair of surrogates is one character
        high, low = int(escape[1:5], 16), int(escape[7:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _CONTROLS.get(escape, escape)


def _said_by_code(escape: str) -> str:
    if escape in _NEWLINES:
        return ""
    if len(escape) > 1:
        code = int(escape[1:].strip("{}"), 16)
        return chr(code) if code <= _LAST_CHARACTER else ""
    return _CONTROLS.get(escape, escape)


def _escape_code(text: str, quote: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return escaped.replace("${", "\\${") if quote == "`" else escaped
