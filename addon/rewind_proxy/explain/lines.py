"""Lines of styled text. Who shows them knows how a style looks; a line knows what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rewind_proxy.canonical.model import Role, Tier
from rewind_proxy.explain.words import safe

Style: TypeAlias = (
    Literal["plain", "strong", "faint", "thought", "media", "place", "before", "after", "advice", "bad"]
    | Role
    | Tier
)
Span: TypeAlias = tuple[Style, str]
STEP = 2
"""Blanks by which what belongs to a line is indented below it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line; its texts are safe for a terminal and hold no line break."""

    spans: tuple[Span, ...] = ()
    indent: int = 0

    @property
    def text(self) -> str:
        """The line without its styles."""
        return " " * self.indent + "".join(text for _, text in self.spans)

    def deeper(self, by: int = STEP) -> Line:
        """The same line, indented."""
        return Line(self.spans, self.indent + by)


BLANK = Line()


def line(*spans: Span | str) -> Line:
    """A line of texts, those without a style plain."""
    return Line(tuple(("plain", span) if isinstance(span, str) else span for span in spans))


def lines_of(text: str, style: Style = "plain") -> Iterator[Line]:
    """Stored text, line by line."""
    return (Line(((style, each),)) if each else BLANK for each in safe(text).split("\n"))


def deeper(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines that belong to the one before them."""
    return (each.deeper() if each.spans else each for each in lines)


def facts(rows: Iterable[tuple[str, str | Span]]) -> Iterator[Line]:
    """Names and values in two columns, those without a value left out."""
    shown = [(name, value if isinstance(value, tuple) else ("plain", value)) for name, value in rows]
    kept: list[tuple[str, Span]] = [(name, span) for name, span in shown if span[1]]
    width = max((len(name) for name, _ in kept), default=0) + 2
    for name, span in kept:
        yield line(("faint", name.ljust(width)), span)
