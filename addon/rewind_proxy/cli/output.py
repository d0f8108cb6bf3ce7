"""The one place where the command writes: consoles, JSON, and how sizes, times and stored text read.

Whatever comes out of a store was written by someone else: `safe` makes its control characters visible before
it reaches a terminal, and no console here reads rich markup.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewind_proxy.canonical.model import JsonValue, Tier

TIER_STYLES: Mapping[Tier, str] = {
    "exact": "green",
    "normalised": "cyan",
    "alias": "magenta",
    "recorded": "yellow",
    "miss": "bold red",
    "passed": "dim",
    "failed": "bold red",
}

# C0 but tab and newline, DEL, C1, line separators, bidirectional controls, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LINE_BREAKS = re.compile(r"\s*[\r\n\t]\s*")
_UNLIMITED_WIDTH = 10_000


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
    text = json.dumps(value, ensure_ascii=False, indent=2)
    typer.echo(_UNSAFE.sub(_json_escape, text).encode("utf-8"))


def print_error(message: str) -> None:
    """One line on standard error, in the name of the command."""
    line = Text("rewind: ", style="bold red").append(safe_line(message), style="default")
    console(stderr=True).print(line, soft_wrap=True)


def safe(text: str) -> str:
    r"""Stored text for a terminal: control characters as `\x1b`, tabs and newlines kept."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """Stored text for one line of a terminal: breaks become a blank."""
    return safe(_LINE_BREAKS.sub(" ", text))


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
    """One line a row, in `width` characters. Plain strings are stored text and made safe here."""
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


def tier_counts(counts: Mapping[Tier, int]) -> Text:
    """`3 exact, 1 miss`: the tiers that happened, each in its colour."""
    return Text(", ").join(Text(f"{n} {tier}", style=TIER_STYLES[tier]) for tier, n in counts.items() if n)


def when(seconds: float) -> str:
    """A stored time as local time, to the minute: `2026-11-30 11:45`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def exact_time(seconds: float) -> str:
    """A stored time as local time with its offset: `2026-11-30 11:45:03 +0100`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def clock(seconds: float) -> str:
    """The local time of day of a stored time: `11:45:03`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def tokens(read: int, written: int) -> str:
    """`1.2k→56`: tokens in and out; nothing when none were counted."""
    return f"{_short_number(read)}→{_short_number(written)}" if read or written else ""


def duration(milliseconds: float) -> str:
    """`85 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """Bytes in binary units: `812 B`, `4.0 KiB`."""
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def number(count: int) -> str:
    """`12,345`."""
    return f"{count:,}"


def plural(count: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


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


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _json_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
