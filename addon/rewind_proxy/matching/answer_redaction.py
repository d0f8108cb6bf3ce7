"""Credentials in recorded answers: masked where `redact_answers` is on, named by `verify` where it is not.

A credential may be split over the deltas of a stream: each content part is looked at as the one text that
its deltas make, and a mark is put where the credential began. Every other string is looked at alone. The
count and order of events stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.model import Form, JsonValue, Wire
from rewind_proxy.canonical.redact import MARK, Redaction, Redactor
from rewind_proxy.matching.difference import common_length
from rewind_proxy.matching.rebase import Rebased, applied, edited
from rewind_proxy.matching.rebasing.document import Path, documents
from rewind_proxy.matching.rebasing.finder import Edit
from rewind_proxy.matching.rebasing.text import Kind

Chunks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class AnswerCredential:
    """A credential that an answer repeats: by which rule, and where. Never the credential."""

    rule: str
    where: str
    """A JSON path in a whole answer; elsewhere `byte n`, where the first one ends."""


def answer_form(content_type: str, asked: Form) -> Form:
    """The form that an answer came in: what came counts, not what was asked for."""
    if "text/event-stream" in content_type.lower():
        return "sse"
    return "whole" if asked == "sse" else asked


def redact_answer(body: bytes, wire: Wire, form: Form, redactor: Redactor) -> Rebased:
    """A recorded answer without credentials. Never raises: what is no text stays as it is."""
    return _redacted(body, wire, form, _Rewriter(redactor))


def answer_credentials(body: bytes, wire: Wire, form: Form, redactor: Redactor) -> list[AnswerCredential]:
    """The credentials in a recorded answer."""
    rewriter = _Rewriter(redactor)
    redacted = _redacted(body, wire, form, rewriter)
    if redacted.body == body:
        return []
    if form == "whole" and (value := _json(body)) is not None:
        found: list[Redaction] = []
        redactor.value(value, found)
        if found:
            return [AnswerCredential(each.rule, each.path) for each in found]
    return [AnswerCredential(rule, f"byte {redacted.ends[0]}") for rule in rewriter.rules]


def moved_chunks(chunks: Chunks, edited_body: Rebased) -> Chunks:
    """The chunks of an answer after its edits, each with what it had of the body."""
    moved: list[tuple[int, int]] = []
    end = before = 0
    for length, milliseconds in chunks:
        end += length
        place = min(max(before, edited_body.moved(end)), len(edited_body.body))
        moved.append((place - before, milliseconds))
        before = place
    return tuple(moved)


def _redacted(body: bytes, wire: Wire, form: Form, rewriter: _Rewriter) -> Rebased:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return Rebased(body)  # audio, an image
    try:
        documents(form, text)
    except (ValueError, RecursionError):
        # Not what it should be: looked at as text, line by line where a line's end frames an event.
        edits: list[Edit] = []
        place = 0
        for line in text.splitlines(keepends=True) if form == "sse" else [text]:
            edits += (
                edit._replace(start=edit.start + place, end=edit.end + place)
                for edit in rewriter.edits(line, "text")
            )
            place += len(line)
        return applied(body, text, edits, len(edits)) if edits else Rebased(body)
    return edited(body, wire, form, rewriter, rewriter.leaves)


class _Rewriter:
    """Says which pieces of a text are credentials, and by which rules."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.rules: dict[str, None] = {}

    def may_hold(self, source: str) -> bool:
        return bool(source)

    def edits(self, text: str, kind: Kind) -> tuple[Edit, ...]:  # noqa: ARG002  # JSON shows by itself
        """The edits of a text."""
        found: list[Redaction] = []
        redacted = self._redactor.value(text, found)
        assert isinstance(redacted, str)
        self.rules |= dict.fromkeys(each.rule for each in found)
        return _edits(text, redacted)

    def leaves(self, value: JsonValue) -> Iterator[tuple[Path, Sequence[Edit]]]:
        """The strings of a document that hold a credential, also by the name of their member."""
        found: list[Redaction] = []
        redacted = self._redactor.value(value, found)
        self.rules |= dict.fromkeys(each.rule for each in found)
        for path, before, after in _changed(value, redacted):
            yield path, _edits(before, after)


def _changed(before: JsonValue, after: JsonValue) -> Iterator[tuple[Path, str, str]]:
    """The strings that differ, with their paths; what has not changed is the same object.

    A member whose name was redacted stands where it stood; an answer keeps its names.
    """
    stack: list[tuple[Path, JsonValue, JsonValue]] = [((), before, after)]
    while stack:
        path, old, new = stack.pop()
        if old is new:
            continue
        if isinstance(old, str) and isinstance(new, str):
            if old != new:
                yield path, old, new
        elif isinstance(old, dict) and isinstance(new, dict):
            members = zip(old.items(), new.values(), strict=True)
            stack.extend(((*path, name), child, other) for (name, child), other in members)
        elif isinstance(old, list) and isinstance(new, list):
            stack.extend(((*path, index), *pair) for index, pair in enumerate(zip(old, new, strict=True)))


def _edits(before: str, after: str) -> tuple[Edit, ...]:
    """What makes one text of the other: marks put in, and nothing else changed where that can be."""
    if before == after:
        return ()
    first, *kept = after.split(MARK)
    if not kept or not before.startswith(first):
        return (_one_edit(before, after),)
    edits: list[Edit] = []
    place = len(first)
    for piece in kept[:-1]:
        # Wherever it is found, the whole comes out as `after`. A mark stands for a character or more.
        end = before.find(piece, place + 1)
        edits.append(Edit(place, end, MARK))
        place = end + len(piece) if end >= 0 else len(before)
    end = len(before) - len(kept[-1])
    if end <= place or not before.endswith(kept[-1]):
        return (_one_edit(before, after),)
    edits.append(Edit(place, end, MARK))
    return tuple(edit for edit in edits if before[edit.start : edit.end] != MARK)


def _one_edit(before: str, after: str) -> Edit:
    """One edit that makes one text of the other: JSON in the text was spelled anew around the mark."""
    start = common_length(before, after)
    same = common_length(before[start:][::-1], after[start:][::-1])
    end = len(before) - same
    if start == end:  # an edit replaces something
        start, same = (start - 1, same) if start else (start, same - 1)
        end = len(before) - same
    return Edit(start, end, after[start : len(after) - same])


def _json(body: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value
