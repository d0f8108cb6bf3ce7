"""The content parts of an answer, and where each piece and copy of them stands in the body."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple, Protocol, TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.rebasing.document import Path
from rewind_proxy.matching.rebasing.text import Kind

Part: TypeAlias = tuple[Hashable, ...]
"""Which content part of the answer: its deltas and all its copies have the same. It starts with its owner."""
UNCOUNTED: Part = ("copy",)
"""The part of what only repeats something: the request's instructions, a piece of a text quoted elsewhere."""


class Piece(NamedTuple):
    """A string, or JSON, that belongs to a part."""

    part: Part
    kind: Kind
    document: int
    path: Path
    text: str | None
    """None: the piece is the JSON value at `path`, of which each string is looked at."""
    joined: bool
    """Whether it goes on where the piece before it stopped; otherwise it is a whole copy."""


class Offset(NamedTuple):
    """A place in the text of a part, told by a number."""

    part: Part
    document: int
    path: Path
    value: int
    unit: Literal["characters", "bytes"]


class Parts:
    """Collects the pieces of an answer in the order in which they come."""

    def __init__(self) -> None:
        self.document = 0
        """The document that is being read."""
        self.pieces: list[Piece] = []
        self.offsets: list[Offset] = []
        self.sealed: set[Hashable] = set()
        """Owners whose parts are signed or encrypted: nothing in them is touched."""

    def add(self, part: Part, kind: Kind, path: Path, value: JsonValue, *, joined: bool = False) -> None:
        """A string of a part; anything else is none."""
        if isinstance(value, str) and value:
            self.pieces.append(Piece(part, kind, self.document, path, value, joined))

    def add_json(self, part: Part, path: Path, value: JsonValue) -> None:
        """A JSON value of a part, such as tool arguments that are no string."""
        if isinstance(value, dict | list) and value:
            self.pieces.append(Piece(part, "json", self.document, path, None, joined=False))

    def offset(
        self, part: Part, path: Path, value: JsonValue, unit: Literal["characters", "bytes"] = "characters"
    ) -> None:
        """A number that tells a place in the part's text; anything else is none."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            self.offsets.append(Offset(part, self.document, path, value, unit))


class Reader(Protocol):
    """Finds the parts in the documents of one wire's answers, fed in order. Never raises on odd shapes."""

    def __init__(self, parts: Parts, *, streamed: bool) -> None: ...

    def read(self, value: JsonObject, base: Path, name: str) -> None:
        """Note the pieces of one answer or event; `base` is where it stands in the current document."""
        ...


def members(value: JsonValue) -> list[tuple[int, JsonObject]]:
    """The objects in a list, with their places; none when it is no list."""
    if not isinstance(value, list):
        return []
    return [(place, item) for place, item in enumerate(value) if isinstance(item, dict)]


def label(value: JsonValue) -> Hashable:
    """An index or id as it came, as something to look up by."""
    return repr(value) if isinstance(value, dict | list) else value
