"""The one place where the command writes: consoles, JSON, tables. No console here reads rich markup.

Whatever comes out of a store was written by someone else: it is made `safe` before it reaches a terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewind_proxy.canonical.model import JsonValue, Tier
from rewind_proxy.errors import RewindError
from rewind_proxy.explain.lines import Line, Style
from rewind_proxy.explain.words import (
    UNSAFE,
    duration,
    exact_time,
    number,
    plural,
    safe,
    safe_line,
    size,
)

__all__ = [
    "STYLES",
    "TIER_STYLES",
    "Column",
    "as_text",
    "clock",
    "console",
    "duration",
    "exact_time",
    "facts",
    "json_text",
    "listing",
    "make_way",
    "number",
    "plural",
    "print_error",
    "print_json",
    "print_lines",
    "rendered",
    "safe",
    "safe_line",
    "size",
    "table",
    "tier_counts",
    "tier_text",
    "tokens",
    "tolerate_narrow_encodings",
    "when",
    "write_text",
]

TIER_STYLES: Mapping[Tier, str] = {
    "exact": "green",
    "normalised": "cyan",
    "alias": "magenta",
    "recorded": "yellow",
    "miss": "bold red",
    "passed": "dim",
    "failed": "bold red",
}
STYLES: Mapping[Style, str] = {
    **dict(TIER_STYLES.items()),  # of fewer keys, which mypy wants copied
    "plain": "",
    "strong": "bold",
    "faint": "dim",
    "thought": "dim italic",
    "media": "blue",
    "place": "cyan",
    "before": "red",
    "after": "green",
    "advice": "yellow",
    "bad": "bold red",
    "system": "bold magenta",
    "user": "bold green",
    "assistant": "bold cyan",
    "tool": "bold yellow",
}

_UNLIMITED_WIDTH = 10_000
_WIDE, _NARROW, _TIERS_IN_LINE = 120, 80, 3


def console(*, stderr: bool = False) -> Console:
    """A console for reading. Lines are not cut where nobody reads them on a screen (`rewind ls | grep`)."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _UNLIMITED_WIDTH
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character gets a substitute, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_json(value: JsonValue) -> None:
    """One JSON document in UTF-8, with every character a terminal could act on escaped."""
    typer.echo(json_text(value).encode("utf-8"))


def json_text(value: JsonValue) -> str:
    """A JSON document for people, with every character escaped that a terminal could act on."""
    return UNSAFE.sub(_json_escape, json.dumps(value, ensure_ascii=False, indent=2))


def rendered(lines: Iterable[Line]) -> Iterator[RenderableType]:
    """Lines for a console; one that is too long goes on below its start, indented as it is."""
    for each in lines:
        text = Text.assemble(*((words, STYLES[style]) for style, words in each.spans))
        yield Padding(text, (0, 0, 0, each.indent), expand=False) if each.indent else text


def print_lines(out: Console, lines: Iterable[Line]) -> None:
    """Print lines."""
    for each in rendered(lines):
        out.print(each)


def as_text(lines: Iterable[Line], indent: int = 0) -> Text:
    """Lines as one text."""
    styled = (
        ((" " * (each.indent + indent), ""), *((words, STYLES[style]) for style, words in each.spans))
        for each in lines
    )
    return Text("\n").join(Text.assemble(*spans) for spans in styled)


def write_text(file: Path, text: str, what: str) -> None:
    """Write a file that the user asked for, and its folder. Raises `RewindError`, with its path."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(file, what, error) from error


def make_way(file: Path, what: str) -> None:
    """Remove what an earlier command wrote: nobody shall take it for this one's. Raises as `write_text`.

    A link, a pipe or a device (`/dev/stdout`) stays as it is.
    """
    try:
        if file.is_symlink() or (file.exists() and not (file.is_file() or file.is_dir())):
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.touch(exist_ok=False)
        file.unlink()
    except OSError as error:
        raise _unwritable(file, what, error) from error


def _unwritable(file: Path, what: str, error: OSError) -> RewindError:
    return RewindError(f"{what} {file} cannot be written ({error.strerror}): name another place")


def print_error(message: str) -> None:
    """One line on standard error, in the name of the command."""
    line = Text("rewind: ", style="bold red").append(safe_line(message), style="default")
    console(stderr=True).print(line, soft_wrap=True)


def table(*columns: tuple[str, Literal["left", "right"]]) -> Table:
    """An empty table without frames, for rows of `Text` or `safe` text. The last column wraps."""
    grid = _frameless()
    for position, (title, justify) in enumerate(columns, 1):
        grid.add_column(title, justify=justify, no_wrap=position < len(columns), overflow="fold")
    return grid


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a listing.

    It is left out on consoles below `from_width` characters, and when all its cells are empty. `cut`: its
    cells are cut where the console is too narrow; others keep their width.
    """

    title: str
    cells: Sequence[str | Text]
    justify: Literal["left", "right"] = "left"
    from_width: int = 0
    cut: bool = False


def listing(columns: Sequence[Column], width: int) -> Table:
    """A line a row, in `width` characters. Plain strings are stored text and made safe here."""
    shown = [column for column in columns if column.from_width <= width and any(column.cells)]
    grid = _frameless()
    for column in shown:
        grid.add_column(column.title, justify=column.justify, no_wrap=not column.cut, overflow="ellipsis")
    for row in zip(*(column.cells for column in shown), strict=True):
        grid.add_row(*(_one_line(cell) for cell in row))
    return grid


def _frameless() -> Table:
    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold"
    )


def _one_line(cell: str | Text) -> Text:
    text = Text(safe_line(cell)) if isinstance(cell, str) else cell.copy()
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def tier_text(tier: Tier) -> Text:
    """A tier in its colour."""
    return Text(tier, style=TIER_STYLES[tier])


def tier_counts(counts: Mapping[Tier, int], width: int = _UNLIMITED_WIDTH) -> Text:
    """`3 exact, 1 miss`: the tiers that happened, each in its colour.

    Where the screen of a listing is narrow they go on below: a count is never cut.
    """
    told = [Text(f"{n} {tier}", style=TIER_STYLES[tier]) for tier, n in counts.items() if n]
    in_line = _TIERS_IN_LINE - (width < _NARROW) if width < _WIDE else len(told)
    lines = [Text(", ").join(told[at : at + in_line]) for at in range(0, len(told), in_line or 1)]
    return Text(",\n").join(lines)


def when(seconds: float) -> str:
    """A stored time as local time, to the minute: `2026-11-30 11:45`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def clock(seconds: float) -> str:
    """The local time of day of a stored time: `11:45:03`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def tokens(read: int, written: int) -> str:
    """`1.2k→56`: tokens in and out; nothing when none were counted."""
    return f"{_short_number(read)}→{_short_number(written)}" if read or written else ""


def _short_number(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def facts(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Names and values in two columns, those without a value left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value:
            grid.add_row(name, value)
    return grid


def _json_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
