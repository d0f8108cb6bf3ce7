"""Finds recorded values in plain text, and says what stands there live (DESIGN §8, "Re-basing").

One pass over the text, longest value first, on the token boundaries of the scrub rules. Its time does not
depend on how many values there are: candidates are found by their first two characters, then looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rewind_proxy.canonical.paths.edges import ends_name, starts_path
from rewind_proxy.canonical.paths.spellings import (
    ESCAPES,
    MOUNTS,
    escaped_slashes,
    is_slug,
    linked,
    mounted,
    slug_of,
)
from rewind_proxy.canonical.uuids import UUID_MIDDLE, uuid_spans
from rewind_proxy.matching.rebasing.slots import Replacements


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    counts: bool = True
    """Whether a value is put back here; not where only a separator follows the root before it."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What one spelling of a recorded value becomes."""

    new: str
    fits: Callable[[str, int, int], bool]
    separator: str | None = None
    """What the separators in the rest of the path become, when the live root is of the other system."""
    url: str | None = None
    """The live root as the path of a `file:` URL."""


_HEAD = 2
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# Boundaries as in canonical/paths/edges.py, dates/times.py and scrub.py: what was taken out of a request as
# a token is put back into an answer as a token.
_REST = re.compile(r"""[^\s"'`<>|:*?,;()\[\]{}]*""")
_SEPARATORS = re.compile(r"[\\/]+")
_BEFORE_TIME = re.compile(r"[\w.+-]")
_AFTER_TIME = re.compile(r"[\w+-]|[.,:]\d")
_IN_WORD = re.compile(r"[A-Za-z0-9_]")
_UUID_LENGTH = 36


def _path_fits(text: str, start: int, end: int) -> bool:
    if not ends_name(text, end):
        return False
    return starts_path(text, start) or _after_file_scheme(text, start)


def _after_file_scheme(text: str, start: int) -> bool:
    """Whether the path at `start` is that of a `file:` URL: `file:///home/a`, `file:///C:/Users/a`."""
    if text.endswith("file://", 0, start):
        return True
    return text.endswith("file:///", 0, start) and _DRIVE.match(text, start) is not None


def _time_fits(text: str, start: int, end: int) -> bool:
    return not (start and _BEFORE_TIME.match(text, start - 1)) and not _AFTER_TIME.match(text, end)


def _id_fits(text: str, start: int, end: int) -> bool:
    return not (start and _IN_WORD.match(text, start - 1)) and not _IN_WORD.match(text, end)


class Finder:
    """Finds the recorded values of one hit."""

    def __init__(self, replacements: Replacements) -> None:
        self._uuids = replacements.uuids
        self._literals: dict[str, _Target] = {
            old: _Target(new, _time_fits) for old, new in replacements.times.items() if len(old) >= _HEAD
        }
        self._literals |= {old: _Target(new, _id_fits) for old, new in replacements.ids.items()}
        if any(old != new for old, new in replacements.roots.items()):
            self._add_roots(replacements.roots)
        lengths: dict[str, set[int]] = {}
        for literal in self._literals:
            lengths.setdefault(literal[:_HEAD], set()).add(len(literal))
        self._lengths = {head: sorted(found, reverse=True) for head, found in lengths.items()}
        self._heads = _heads_pattern(tuple(sorted(lengths))) if lengths else None

    def _add_roots(self, roots: Mapping[str, str]) -> None:
        derived: dict[str, _Target] = {}
        for old, new in roots.items():
            for spelling, target in _spellings(old, new):
                if derived.setdefault(spelling, target).new != target.new:
                    derived[spelling] = _Target(spelling, target.fits)  # ambiguous: it stays
        self._literals |= derived
        for old, new in roots.items():
            self._literals[old] = _root_target(old, "\\" if "\\" in old else "/", new)

    def may_hold(self, source: str) -> bool:
        """Whether a value may stand in `source`, which may be escaped as JSON or code."""
        return (
            (self._heads is not None and self._heads.search(source) is not None)
            or bool(self._uuids and UUID_MIDDLE.search(source))
            or "\\u" in source
            or "\\x" in source
        )

    def edits(self, text: str) -> tuple[Edit, ...]:
        """The places in plain text where a value stands, in order, not overlapping."""
        found = [*self._literal_edits(text), *self._uuid_edits(text)]
        found.sort(key=lambda edit: (edit.start, -edit.end))
        chosen: list[Edit] = []
        position = 0
        for edit in found:
            if edit.start >= position:
                position = edit.end
                if text[edit.start : edit.end] != edit.new:
                    chosen.append(edit)
        return tuple(chosen)

    def _literal_edits(self, text: str) -> Iterator[Edit]:
        if self._heads is None:
            return
        head = self._heads.search(text)
        while head:
            start = position = head.start()
            for length in self._lengths[head.group()]:
                end = start + length
                target = self._literals.get(text[start:end])
                if target and end <= len(text) and target.fits(text, start, end):
                    yield from _at(text, start, end, target)
                    position = end - 1
                    break
            head = self._heads.search(text, position + 1)

    def _uuid_edits(self, text: str) -> Iterator[Edit]:
        if not self._uuids:
            return
        for span in uuid_spans(text):
            start = span.end - _UUID_LENGTH
            new = self._uuids.get(span.value)
            if new is not None:
                yield Edit(start, span.end, new.upper() if text[start : span.end].isupper() else new)


@lru_cache(maxsize=64)
def _heads_pattern(heads: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, heads)))


def _root_target(old: str, separator: str, new: str) -> _Target:
    """What the recorded root `old` becomes where it is spelled with `separator`."""
    if not _DRIVE.match(new):
        return _Target(new, _path_fits, None if separator == "/" else "/", new)
    slashes = new.replace("\\", "/")
    if _DRIVE.match(old):
        return _Target(slashes.replace("/", separator), _path_fits, None, "/" + slashes)
    return _Target(new, _path_fits, "\\" if "\\" in new else None, "/" + slashes)


def _spellings(old: str, new: str) -> Iterator[tuple[str, _Target]]:
    """How a recorded root may stand elsewhere: otherwise written on Windows and macOS, and as a slug."""
    if _DRIVE.match(old):
        slashes = old.replace("\\", "/")
        for separator in ("\\", "\\\\", "/"):
            written = slashes.replace("/", separator)
            target = _root_target(old, separator, new)
            yield written[0].upper() + written[1:], target
            yield written[0].lower() + written[1:], target
        for mount in MOUNTS:
            there = mounted(new, mount) if _DRIVE.match(new) else new
            yield mounted(old, mount), _Target(there, _path_fits, None, None)
    for link in linked(old):
        yield link, _root_target(link, "/", new)
    if old.startswith("/") and new.startswith("/"):
        for spelt in (*ESCAPES, escaped_slashes):
            if spelt(old) != old:
                yield spelt(old), _Target(spelt(new), _path_fits)
    yield slug_of(old), _Target(slug_of(new), is_slug)


def _at(text: str, start: int, end: int, target: _Target) -> Iterator[Edit]:
    if target.url is not None and _after_file_scheme(text, start):
        # In a URL the path starts with a slash and has no backslash, on every system.
        yield Edit(start - text.endswith("file:///", 0, start), end, target.url)
        return
    yield Edit(start, end, target.new)
    if target.separator is None:
        return
    rest = _REST.match(text, end)
    assert rest is not None
    for match in _SEPARATORS.finditer(text, end, rest.end()):
        yield Edit(match.start(), match.end(), target.separator, counts=False)
