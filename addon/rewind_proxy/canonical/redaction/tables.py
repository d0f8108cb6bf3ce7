"""Credentials in a column that its header names: CSV and TSV, Markdown, what `psql` and `mysql` print.

A header is a line of short names, two at least, one of which says password, secret, token or key; its rows
are the lines below it with as many cells. A value is judged as elsewhere: a table about passwords stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redaction.judge import (
    has_digit_or_capital,
    is_given_word,
    is_reference,
    looks_password,
    looks_secret,
)
from rewind_proxy.canonical.redaction.places import NameKind, name_kind
from rewind_proxy.canonical.redaction.rules import MARK, Span
from rewind_proxy.canonical.text import places

_STEMS = ("passw", "passphrase", "pwd", "kennwort", "secret", "token", "key")
_NAMES = (
    *"password passwd passphrase passwort kennwort pwd secret token".split(),
    *(f"{what}{joint}key" for what in ("api", "access", "private") for joint in ("", "_", "-", " ")),
)
_ENDS = (",", ";", "\t", "|", " |", "│", " │", "  ", "\n", "\r", " \n", '",', '";', '"\t', '"\n', '"\r')
COLUMN_WORDS = tuple(name + end for name in _NAMES for end in _ENDS)
"""One of these stands in every such table, in lower case."""
_NAMED = re.compile(rf"(?:{'|'.join(stem + '[a-z]{0,3}' for stem in _STEMS)})[\"' ]?(?=[|│\t;,\r\n ])")
_DELIMITERS = "|│\t;,"
_LONGEST_LINE = 1000
_MOST_COLUMNS = 64
_NAME = re.compile(r"""["']?[A-Za-z_][\w.-]{0,40}(?: [\w.-]{1,20})?["']?""")
_CELL = {
    mark: re.compile(rf'"(?:[^"\n]|"")*+"(?=[ ]{{0,8}}(?:{re.escape(mark)}|\Z))|[^{re.escape(mark)}]*+')
    for mark in _DELIMITERS
}
_RULER = re.compile(r"[-=+|:─├┼┤│ \t]{3,}")
_KINDS = frozenset({"password", "pass", "key", "token"})

_Columns = dict[int, NameKind]


def column_secrets(text: str, lowered: str) -> Iterator[Span]:
    """The values below `password`, `api_key`, `token` … in a table."""
    lines = {
        text.rfind("\n", max(0, at - _LONGEST_LINE), at) + 1
        for stem in _STEMS
        for at in places(lowered, stem)
        if _NAMED.match(lowered, at)
    }
    done = 0
    for start in sorted(lines):
        if start < done:
            continue
        end = _line_end(text, start)
        if end < 0:
            continue
        mark, columns, count = _header(text[start:end])
        if columns:
            done = end + 1
            for first, last in _rows(text, end + 1):
                line = text[first:last]
                done = last + 1
                if _RULER.fullmatch(line):
                    continue
                cells = _cells(line, mark)
                if len(cells) != count:
                    break
                for index, kind in columns.items():
                    cell = _trimmed(line, cells[index])
                    if _is_credential(line[slice(*cell)], kind, written=mark in "|│"):
                        yield first + cell[0], first + cell[1]


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _LONGEST_LINE)
    return end if end >= 0 or len(text) - start >= _LONGEST_LINE else len(text)


def _rows(text: str, start: int) -> Iterator[Span]:
    while start < len(text):
        end = _line_end(text, start)
        if end <= start:
            return
        yield start, end
        start = end + 1


def _header(line: str) -> tuple[str, _Columns, int]:
    mark = next((mark for mark in _DELIMITERS if mark in line), "")
    if not mark:
        return "", {}, 0
    cells = _cells(line, mark)
    names = [line[slice(*_trimmed(line, cell))] for cell in cells]
    framed = mark in "|│" and not names[0] and not names[-1]
    inner = names[1:-1] if framed else names
    if not 2 <= len(inner) <= _MOST_COLUMNS or not all(map(_NAME.fullmatch, inner)):
        return "", {}, 0
    if mark in ",;" and (line[0] == " " or f"{mark} " in line):
        return "", {}, 0  # a list in a program or in a sentence
    kinds = {index: name_kind(name) for index, name in enumerate(names)}
    return mark, {index: kind for index, kind in kinds.items() if kind in _KINDS}, len(cells)


def _cells(line: str, mark: str) -> list[Span]:
    cells: list[Span] = []
    at = 0
    while len(cells) <= _MOST_COLUMNS:
        quote = at
        while line[quote : quote + 1] == " ":
            quote += 1
        found = _CELL[mark].match(line, quote)
        end = found.end() if found else quote
        while line[end : end + 1] not in ("", mark):
            end += 1
        cells.append((at, end))
        if end >= len(line):
            break
        at = end + 1
    return cells


def _trimmed(line: str, cell: Span) -> Span:
    """A cell without the blanks, quotes and backticks around it."""
    start, end = cell
    while start < end and line[start] in " \t\r\"'`":
        start += 1
    while end > start and line[end - 1] in " \t\r\"'`":
        end -= 1
    return start, end


def _is_credential(value: str, kind: NameKind, *, written: bool) -> bool:
    """`written`: the table may be a person's, about the thing that its header names."""
    if MARK in value:
        return value != MARK
    if not value or is_reference(value):
        return False
    if kind in ("password", "pass"):
        return looks_password(value, quoted=True) or (not written and is_given_word(value))
    return looks_secret(value, quoted=True) or (
        kind == "key" and not written and len(value) >= 8 and " " not in value and has_digit_or_capital(value)
    )
