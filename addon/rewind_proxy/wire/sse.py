"""Server-sent events, parsed as the WHATWG HTML standard says (section 9.2.6), in linear time.

Lines end in CR, LF or CRLF, wherever the bytes were cut; one leading byte order mark goes; comments, `id`,
`retry` and unknown fields say nothing here. An event that no blank line has ended is not dispatched, as in a
browser, but `pending` shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its `event` field (`message` when it has none) and its data lines joined by LF."""

    name: str
    data: str


@dataclass(frozen=True, slots=True)
class EventStream:
    """A whole body: the events it dispatched, and the last one where no blank line ended it."""

    events: tuple[Event, ...]
    pending: Event | None


class Parser:
    """An incremental parser: feed it bytes cut anywhere, get the events they complete."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes, in order."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = _LINE_END.split(chunk)
        rest = lines.pop()
        events: list[Event] = []
        if lines and self._partial:
            lines[0] = b"".join([*self._partial, lines[0]])
            self._partial.clear()
        for line in lines:
            event = self._line(line)
            if event is not None:
                events.append(event)
        if rest:
            self._partial.append(rest)
        return events

    def pending(self) -> Event | None:
        """The event under way, its unfinished last line included; None when it holds no data."""
        data, name = self._data, self._name
        if self._partial:
            field, value = _field(self._strip_bom(b"".join(self._partial)))
            if field == "data":
                data = [*data, value]
            elif field == "event":
                name = value
        return Event(name or "message", "\n".join(data)) if data else None

    def _strip_bom(self, line: bytes) -> bytes:
        return line.removeprefix(_BOM) if self._first_line else line

    def _line(self, line: bytes) -> Event | None:
        line = self._strip_bom(line)
        self._first_line = False
        if not line:
            event = Event(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name = ""
            self._data = []
            return event
        field, value = _field(line)
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None


def _field(line: bytes) -> tuple[str, str]:
    """Name and value of a line; a comment has the name `""`."""
    name, _, value = line.decode("utf-8", "replace").partition(":")
    return name, value.removeprefix(" ")


def parse(body: bytes) -> EventStream:
    """All events of a whole body."""
    parser = Parser()
    events = parser.feed(body)
    return EventStream(tuple(events), parser.pending())
