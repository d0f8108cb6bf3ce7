"""Re-basing: on a normalised hit, the slots of the recording become the live ones in the answer (DESIGN §8).

A session recorded in `/home/a/app` replays in `/builds/7/app` with tool calls that name `/builds/7/app`.
Roots, UUIDs and full times only; one simultaneous pass over the joined deltas of each content part, and the
same edit in every copy. Ids, models, usage, log probabilities, citations of documents, and reasoning that is
signed or encrypted stay as they were recorded; so does every byte outside the edited strings.

A value that is spread over deltas is put whole into the one that held its first character; the others lose
their piece of it and may become empty, so that the count and order of events stay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol, TypeAlias

from rewind_proxy.canonical.model import Form, JsonValue, Wire
from rewind_proxy.matching.rebasing.anthropic import AnthropicParts
from rewind_proxy.matching.rebasing.chat import ChatParts
from rewind_proxy.matching.rebasing.document import Document, Path, documents, locate, string_edits
from rewind_proxy.matching.rebasing.finder import Edit, Finder
from rewind_proxy.matching.rebasing.gemini import GeminiParts
from rewind_proxy.matching.rebasing.parts import UNCOUNTED, Offset, Part, Parts, Piece, Reader
from rewind_proxy.matching.rebasing.responses import ResponsesParts
from rewind_proxy.matching.rebasing.running import running
from rewind_proxy.matching.rebasing.slots import Replacements, replacements
from rewind_proxy.matching.rebasing.text import Kind, Rewriter

__all__ = ["Rebased", "Replacements", "applied", "edited", "rebase", "replacements"]

_READERS: Mapping[Wire, type[Reader]] = {
    "chat_completions": ChatParts,
    "responses": ResponsesParts,
    "anthropic": AnthropicParts,
    "gemini": GeminiParts,
}


@dataclass(frozen=True, slots=True)
class Rebased:
    """An answer with live values in it."""

    body: bytes
    count: int = 0
    """Values put back, each once however many copies of it there are."""
    _moves: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """(place in the recorded body after an edit, how far what follows it has moved)."""

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the edited places end in the recorded body."""
        return tuple(end for end, _ in self._moves)

    def moved(self, place: int) -> int:
        """Where a place in the recorded body, such as the end of a chunk, is in this one."""
        index = bisect_right(self._moves, place, key=lambda move: move[0]) - 1
        return place + self._moves[index][1] if index >= 0 else place


class PartRewriter(Protocol):
    """Says what becomes of the text of a content part."""

    def may_hold(self, source: str) -> bool:
        """Whether `source`, which may be escaped, is worth a closer look."""
        ...

    def edits(self, text: str, kind: Kind) -> tuple[Edit, ...]:
        """The edits of `text`, in order, not overlapping; each replaces something."""
        ...


def rebase(body: bytes, wire: Wire, form: Form, values: Replacements) -> Rebased:
    """The recorded answer `body` for a live request. Never raises: what cannot be read stays as it is."""
    return edited(body, wire, form, Rewriter(Finder(values))) if values else Rebased(body)


Leaves: TypeAlias = Callable[[JsonValue], Iterable[tuple[Path, Sequence[Edit]]]]
"""The edits of strings in a document, by their path."""


def edited(
    body: bytes, wire: Wire, form: Form, rewriter: PartRewriter, leaves: Leaves | None = None
) -> Rebased:
    """The answer `body` with each content part as `rewriter` would have it. Never raises, as `rebase`.

    With `leaves` every other string is edited too, also one that goes on in the next event, and reasoning
    where it is signed.
    """
    try:
        text = body.decode("utf-8")
        found = documents(form, text)
    except (ValueError, RecursionError):  # not what the wire says: the client gets what was recorded
        return Rebased(body)
    parts = _parts(found, wire, form)
    if leaves is not None:
        parts.sealed.clear()
    answer = _Answer(rewriter, parts, ascii_body=body.isascii())
    if leaves is not None:
        answer.add_leaves(found, leaves)
        answer.add_running(running(found, form))
    edits = [
        edit
        for number, wanted in sorted(answer.wanted.items())
        for edit in answer.edits(number, found[number], wanted)
    ]
    return applied(body, text, edits, answer.count) if edits else Rebased(body)


def _parts(found: Sequence[Document], wire: Wire, form: Form) -> Parts:
    parts = Parts()
    reader = _READERS.get(wire)
    if reader is None:
        return parts
    read = reader(parts, streamed=form != "whole").read
    for parts.document, document in enumerate(found):
        value = document.value
        if isinstance(value, dict):
            read(value, (), document.name)
        elif isinstance(value, list) and form == "json-array":
            for place, item in enumerate(value):
                if isinstance(item, dict):
                    read(item, (place,), document.name)
    return parts


class _Answer:
    """What is edited where, found part by part."""

    def __init__(self, rewriter: PartRewriter, parts: Parts, *, ascii_body: bool) -> None:
        self._rewriter = rewriter
        self._ascii_body = ascii_body
        self._counts: dict[Part, int] = {}
        self._texts: dict[Part, tuple[str, tuple[Edit, ...]]] = {}
        self._strings: dict[tuple[int, Path], list[Edit]] = {}
        self._sources: dict[tuple[int, Path], Part] = {}
        self._numbers: dict[tuple[int, Path], int] = {}
        self._pieces = {(piece.document, piece.path) for piece in parts.pieces}
        joined: dict[Part, list[Piece]] = {}
        for piece in parts.pieces:
            if piece.part[0] in parts.sealed:
                continue
            if piece.text is None:
                self._sources[piece.document, piece.path] = piece.part
            elif piece.joined:
                joined.setdefault(piece.part, []).append(piece)
            else:
                self._string(piece.part, [piece])
        for part, pieces in joined.items():
            self._string(part, pieces)
        for offset in parts.offsets:
            self._offset(offset)
        self.wanted: dict[int, list[Path]] = {}
        for number, path in (*self._strings, *self._sources, *self._numbers):
            self.wanted.setdefault(number, []).append(path)

    def add_leaves(self, found: Sequence[Document], leaves: Leaves) -> None:
        """Edit the strings that are no piece of a part, and not in one."""
        for number, document in enumerate(found):
            for path, edits in leaves(document.value):
                if not any((number, path[:end]) in self._pieces for end in range(len(path) + 1)):
                    self._strings[number, path] = list(edits)
                    self.wanted.setdefault(number, []).append(path)

    def add_running(self, texts: Iterable[list[Piece]]) -> None:
        """Make the edits that begin in one string and end in another; what one holds alone is a leaf's."""
        for pieces in texts:
            if any((piece.document, piece.path) in self._pieces for piece in pieces):
                continue
            ends = list(accumulate(len(piece.text or "") for piece in pieces))
            whole = self._rewriter.edits("".join(piece.text or "" for piece in pieces), "text")
            spread = [edit for edit in whole if edit.end > ends[bisect_right(ends, edit.start)]]
            for piece, edit in _distributed(pieces, spread):
                key = piece.document, piece.path
                self._strings[key] = _merged(self._strings.get(key, []), edit)
                self.wanted.setdefault(piece.document, []).append(piece.path)

    @property
    def count(self) -> int:
        """Values put back so far."""
        return sum(count for part, count in self._counts.items() if part is not UNCOUNTED)

    def edits(self, number: int, document: Document, paths: list[Path]) -> Iterator[Edit]:
        """The edits of one document, as edits of the body."""
        if not self._rewriter.may_hold(document.text[document.start : document.end]):
            paths = [path for path in paths if (number, path) not in self._sources]
        for path, (start, end) in locate(document, paths).items() if paths else ():
            source = document.text[start:end]
            key = number, path
            if key in self._strings:
                edits: Sequence[Edit] = tuple(
                    string_edits(source, self._strings[key], ascii_body=self._ascii_body)
                )
            elif key in self._sources:
                edits = self._rewriter.edits(source, "json")
                self._counted(self._sources[key], edits)
            else:
                edits = (Edit(0, end - start, str(self._numbers[key])),)
            place = document.place(start)
            for edit in edits:
                yield edit._replace(start=place + edit.start, end=place + edit.end)

    def _string(self, part: Part, pieces: Sequence[Piece]) -> None:
        text = "".join(piece.text or "" for piece in pieces)
        edits = self._rewriter.edits(text, pieces[0].kind)
        if not edits:
            return
        self._counted(part, edits)
        self._texts[part] = text, edits
        for piece, edit in _distributed(pieces, edits):
            self._strings.setdefault((piece.document, piece.path), []).append(edit)

    def _counted(self, part: Part, edits: Sequence[Edit]) -> None:
        count = sum(edit.counts for edit in edits)
        self._counts[part] = max(count, self._counts.get(part, 0))

    def _offset(self, offset: Offset) -> None:
        text, edits = self._texts.get(offset.part, ("", ()))
        if offset.unit == "bytes":
            edits = tuple(_in_bytes(text, edits))
        value = _shifted(offset.value, edits)
        if value != offset.value:
            self._numbers[offset.document, offset.path] = value


def _distributed(pieces: Sequence[Piece], edits: Sequence[Edit]) -> Iterator[tuple[Piece, Edit]]:
    """The edits of the joined text, as edits of its pieces."""
    ends = list(accumulate(len(piece.text or "") for piece in pieces))
    for edit in edits:
        index = bisect_right(ends, edit.start)
        new = edit.new
        while index < len(ends):
            start = ends[index - 1] if index else 0
            if start >= edit.end:
                break
            yield (
                pieces[index],
                Edit(max(edit.start - start, 0), min(edit.end, ends[index]) - start, new),
            )
            new = ""
            index += 1


def _merged(edits: Sequence[Edit], more: Edit) -> list[Edit]:
    """The edits with one more; those that overlap it are one with it, and as long as all of them together."""
    apart: list[Edit] = []
    for edit in edits:
        if edit.end <= more.start or edit.start >= more.end:
            apart.append(edit)
        else:
            start, end = min(edit.start, more.start), max(edit.end, more.end)
            more = more._replace(start=start, end=end, new=more.new or edit.new)
    return [*apart, more]


def _shifted(place: int, edits: Sequence[Edit]) -> int:
    """Where a place in a text is after its edits; inside an edited value it stays inside."""
    shift = 0
    for edit in edits:
        if edit.start >= place:
            break
        if edit.end > place:
            return edit.start + shift + min(place - edit.start, len(edit.new))
        shift += len(edit.new) - (edit.end - edit.start)
    return place + shift


def _in_bytes(text: str, edits: Sequence[Edit]) -> Iterator[Edit]:
    """The edits with places that count UTF-8 bytes; what is put in stands for its bytes."""
    place = length = 0
    for edit in edits:
        length += _byte_length(text[place : edit.start])
        end = length + _byte_length(text[edit.start : edit.end])
        yield Edit(length, end, " " * _byte_length(edit.new))
        place, length = edit.end, end


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def applied(body: bytes, text: str, edits: list[Edit], count: int) -> Rebased:
    """`body`, which says `text`, with edits of that text made in it; they do not overlap."""
    edits.sort()
    pieces: list[bytes] = []
    moves: list[tuple[int, int]] = []
    position = recorded = made = 0
    for edit in edits:
        before, old, new = (
            piece.encode() for piece in (text[position : edit.start], text[edit.start : edit.end], edit.new)
        )
        pieces += (before, new)
        position = edit.end
        recorded += len(before) + len(old)
        made += len(before) + len(new)
        moves.append((recorded, made - recorded))
    pieces.append(text[position:].encode())
    assert len(body) == recorded + len(pieces[-1])
    return Rebased(b"".join(pieces), count, tuple(moves))
