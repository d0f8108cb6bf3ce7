"""What a signature of a request says: how like two requests are, and where one that is like it is found.

A signature is a MinHash with one byte a slot (b-bit minwise hashing: Li and König, 2010), in three sections
of `SLOTS`: the head of a request, what was said before, and its end. The share of equal slots in a section
is about the Jaccard similarity of the tokens there. `matching.similarity` makes signatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

SLOTS = 64
WEIGHTS = (1, 1, 2)
"""What a section weighs. It is the end that is answered: a session is not like itself a turn ago."""
SIGNATURE = SLOTS * len(WEIGHTS)

BANDS = 8
_ROWS_OF_END = 2
"""Of the end more is in a band than of the rest: requests of one agent have all else in common."""


def likeness(a: bytes, b: bytes) -> float:
    """How like two requests are, by their signatures: from 0 to 1."""
    total = 0
    for section, weight in enumerate(WEIGHTS):
        part = slice(section * SLOTS, (section + 1) * SLOTS)
        total += weight * sum(map(eq, a[part], b[part]))
    return total / (SLOTS * sum(WEIGHTS))


def bands(signature: bytes) -> Iterator[bytes]:
    """The keys under which a signature is found: two that share one may be alike.

    Requests of a likeness of 0.85 share one in more than 99 of 100 cases, whichever sections differ, and
    those of one agent that end otherwise hardly ever do.
    """
    head, before, end = (signature[section * SLOTS : (section + 1) * SLOTS] for section in range(3))
    for band in range(BANDS):
        rows = end[band * _ROWS_OF_END : (band + 1) * _ROWS_OF_END]
        yield bytes((band, head[band], before[band])) + rows
