"""What `rewind demo` looks like: acts with headings, a client's output as it comes, and checks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewind_proxy.cli.output import safe

_WIDEST = 96
_UNKNOWN_WIDTH = 80
_GUTTER = "  │ "
_PROMPT = "  $ "
_BREAK = " \\"
_LABEL = 8
_LABEL_STYLES = {"you": "bold", "title": "dim", "model": "cyan", "runs": "magenta", "error": "bold red"}
_PIECE = re.compile(r"\n| +|[^ \n]+")


class Screen:
    """Prints the demo, and keeps what did not go as it should."""

    def __init__(self, console: Console, *, is_terminal: bool) -> None:
        # Lines are unlimited on a pipe; here they are prose.
        self.width = min(console.width, _WIDEST if is_terminal else _UNKNOWN_WIDTH)
        self._console = console
        self.failures: list[str] = []

    def heading(self, title: str) -> None:
        """The start of an act."""
        rule = "━" * max(0, self.width - len(title) - 4)
        self._console.print()
        self._console.print(
            Text("━━ ", style="blue").append(title, style="bold").append(f" {rule}", style="blue"),
            soft_wrap=True,
        )

    def text(self, *sentences: str) -> None:
        """A paragraph of prose."""
        self.show(Text(" ".join(sentences)))

    def show(self, text: Text, indent: int = 0) -> None:
        """A text, wrapped within the width."""
        for line in text.wrap(self._console, self.width - indent):
            line.rstrip()
            self._console.print(" " * indent, line, sep="", soft_wrap=True)

    def grid(self, table: Table) -> None:
        """A table."""
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False), width=self.width)

    def command(self, words: Sequence[str]) -> None:
        """The command that is being run, broken as a shell takes it."""
        lines = [shlex.quote(words[0])]
        for word in map(shlex.quote, words[1:]):
            if len(_PROMPT) + len(lines[-1]) + len(word) + len(_BREAK) < self.width:
                lines[-1] += f" {word}"
            else:
                lines[-1] += _BREAK
                lines.append(f"    {word}")
        self.gap()
        for position, line in enumerate(lines):
            mark = " " * len(_PROMPT) if position else _PROMPT
            self._console.print(Text(mark, style="green").append(line, style="bold"), soft_wrap=True)

    def gap(self) -> None:
        """An empty line."""
        self._console.print()

    def check(self, holds: bool, claim: str) -> None:
        """Something that has just been measured; what does not hold makes the demo fail."""
        mark = Text("  ✓ ", style="bold green") if holds else Text("  ✗ ", style="bold red")
        if not holds:
            self.failures.append(claim)
        for position, line in enumerate(Text(claim).wrap(self._console, self.width - 4)):
            line.rstrip()
            self._console.print(Text("    ") if position else mark, line, sep="", soft_wrap=True)

    def gutter(self) -> Gutter:
        """A place for the output of a client."""
        return Gutter(self._console, self.width)


class Gutter:
    """Prints text as it comes behind a bar, wrapped at blanks; each paragraph starts with a label."""

    def __init__(self, console: Console, width: int) -> None:
        self._console = console
        self._width = width
        self._column = 0
        self._waiting = ""
        self._in_label = False

    def write(self, text: str) -> None:
        """More text, cut anywhere. The last word is held back until it is known to be whole."""
        pieces = _PIECE.findall(self._waiting + text)
        whole = pieces[-1:] == ["\n"]
        self._waiting = "" if whole or not pieces else pieces.pop()
        for piece in pieces:
            self._put(piece)

    def end(self) -> None:
        """The last word, and the end of the line."""
        self._put(self._waiting)
        self._waiting = ""
        self._console.print()

    def _put(self, piece: str) -> None:
        if piece == "\n":
            if self._column:
                self._console.print()
            self._new_line("")
            self._in_label = True
            return
        if self._in_label and not piece.isspace():
            self._in_label = False
            self._console.print(Text(piece, style=_LABEL_STYLES.get(piece, "")), end="")
        elif piece.isspace() and self._column + len(piece) >= self._width:
            return  # a blank at the edge becomes the break
        else:
            if self._column + len(piece) > self._width:
                self._console.print()
                self._new_line(" " * _LABEL)
            self._console.print(safe(piece), end="", soft_wrap=True)
        self._column += len(piece)

    def _new_line(self, indent: str) -> None:
        self._console.print(Text(_GUTTER, style="dim"), end="")
        self._console.print(indent, end="")
        self._column = len(_GUTTER) + len(indent)
