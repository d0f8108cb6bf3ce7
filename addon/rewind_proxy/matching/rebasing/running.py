"""Strings of an answer that no reader knows, and that may be pieces of one text all the same.

Providers stream more than the four wires say: thoughts in details of their own, the transcript of a voice,
the tokens of log probabilities. What stands at the same place in one event after the other is one text here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.matching.rebasing.document import Document, Path
from rewind_proxy.matching.rebasing.parts import Piece

_Place: TypeAlias = tuple[Hashable, ...]
_TOKENS = "logprobs"
"""The one member whose list spells a text in pieces in a whole answer too."""


def running(found: Sequence[Document], form: Form) -> Iterator[list[Piece]]:
    """The strings at each place, in the order in which they came: two or more that are not all the same.

    In a list every entry stands at the same place, but for those that say an index.
    """
    places: dict[_Place, list[Piece]] = {}
    for number, document in enumerate(found):
        for place, path, text in _strings(document):
            if form != "whole" or _TOKENS in path:
                places.setdefault(place, []).append(Piece(place, "text", number, path, text, joined=True))
    for pieces in places.values():
        if any(piece.text != pieces[0].text for piece in pieces):
            yield pieces


def _strings(document: Document) -> Iterator[tuple[_Place, Path, str]]:
    """(place, path, text) of each string in a document, in its order."""
    stack: list[tuple[_Place, Path, JsonValue]] = [((document.name,), (), document.value)]
    while stack:
        place, path, value = stack.pop()
        if isinstance(value, str):
            if value:
                yield place, path, value
        elif isinstance(value, dict):
            kind = value.get("type")
            said = (*place, *_indexes(value), kind if not path and isinstance(kind, str) else "")
            stack.extend(((*said, name), (*path, name), child) for name, child in reversed(value.items()))
        elif isinstance(value, list):
            entries = reversed(list(enumerate(value)))
            stack.extend((place, (*path, index), child) for index, child in entries)


def _indexes(value: JsonObject) -> Iterator[tuple[str, int]]:
    """What an object says of its own place: `index`, `output_index` …"""
    for name, index in value.items():
        if name.endswith("index") and isinstance(index, int):
            yield name, index
