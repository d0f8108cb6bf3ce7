"""A scrubbed part with the numbers left open: what numbering needs of it, and the canonical bytes around it.

Which spans are noise depends on the part, its place and the roots of the request; the numbers depend on all
that stood before. So the first is done once and kept, and a request only fills in the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.canonical.pointer import ROOT, Pointer
from rewind_proxy.canonical.scrub import Numbering, Slot

# A private-use character marks where a number goes. A part that holds it itself is not made a template.
_OPEN = "\ue000"
_GAP = re.compile(f"{_OPEN}([0-9]+){_OPEN}".encode())
_KIND = re.compile(r"[\w.: -]*")


@dataclass(frozen=True, slots=True)
class Gap:
    """A value that was taken out; `at` is its place below the part."""

    rule: str
    kind: str
    value: str
    numbered: bool
    at: Pointer
    key: tuple[str, str, str]
    """What tells it from others, but for its place."""


@dataclass(frozen=True, slots=True)
class Template:
    """`pieces` are canonical bytes; between them stand the `gaps`, in the `order` of the bytes.

    The gaps themselves are in canonical order, in which they are numbered.
    """

    pieces: tuple[bytes, ...]
    gaps: tuple[Gap, ...] = ()
    order: tuple[int, ...] = ()

    def fill(self, numbering: Numbering) -> bytes:
        """The canonical bytes with the placeholders of a request."""
        if not self.gaps:
            return self.pieces[0]
        filled = [numbering.written(gap.kind, gap.value, numbered=gap.numbered) for gap in self.gaps]
        pieces = [self.pieces[0]]
        for index, piece in zip(self.order, self.pieces[1:], strict=True):
            pieces.append(filled[index])
            pieces.append(piece)
        return b"".join(pieces)

    def slots(self, numbering: Numbering, base: Pointer) -> list[Slot]:
        """The slots of the gaps, for a part at `base`."""
        return [
            Slot(
                gap.rule,
                gap.kind,
                gap.value,
                numbering.placeholder(gap.kind, gap.value, numbered=gap.numbered),
                gap.at.below(base),
            )
            for gap in self.gaps
        ]


class _Gaps(Numbering):
    """Takes down what is taken out, and leaves a mark in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[Gap] = []

    def take(self, rule: str, kind: str, value: str, at: Pointer, *, numbered: bool = True) -> str:
        self.gaps.append(Gap(rule, kind, value, numbered, at, (rule, kind, value)))
        return f"{_OPEN}{len(self.gaps) - 1}{_OPEN}"


def make_template(scrub: Callable[[Numbering, Pointer], JsonValue]) -> Template | None:
    """The template of what `scrub` makes with a numbering, at a place; None when it cannot be one."""
    gaps = _Gaps()
    data = dumps(scrub(gaps, ROOT))
    if not gaps.gaps and _OPEN.encode() not in data:
        return Template((data,))
    if data.count(_OPEN.encode()) != 2 * len(gaps.gaps):
        return None
    if not all(_KIND.fullmatch(gap.kind) for gap in gaps.gaps):
        return None  # a project's rule may be called anything, and JSON would escape some of it
    found = _GAP.split(data)
    return Template(tuple(found[::2]), tuple(gaps.gaps), tuple(map(int, found[1::2])))
