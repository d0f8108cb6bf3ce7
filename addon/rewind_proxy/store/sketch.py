"""Sketches: a few bytes that tell how much two texts have in common, without either of them.

A sketch is a set of bits, one for each word; of a long text the words with the smallest hashes stand for all
(a bottom-k sketch: Broder, "On the resemblance and containment of documents", 1997). Two sketches have as
many bits in common as their texts have words, about, so a changed word in a message is told from another
message. It only chooses which recording a miss report shows.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache

SKETCH = 64
"""Bytes of a sketch."""
_WORDS = 48
"""Words that stand for a text, at most."""
_MOST = 8192
"""Characters that are looked at of a text: half from its start, half from its end."""

_WORD = re.compile(r"\w+")


def sketch(text: str) -> bytes:
    """The sketch of a text."""
    if len(text) > _MOST:
        text = f"{text[: _MOST // 2]} {text[-_MOST // 2 :]}"
    words = {zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(text)}
    bits = 0
    for word in sorted(words)[:_WORDS]:
        bits |= 1 << (word % (8 * SKETCH))
    return bits.to_bytes(SKETCH)


class Likeness:
    """How much others are like one: from 0, nothing in common, to 1; texts without a word are alike."""

    __slots__ = ("_bits",)

    def __init__(self, sketched: bytes) -> None:
        self._bits = int.from_bytes(sketched)

    def __call__(self, value: bytes) -> float:
        """The likeness of the sketch that a value starts with."""
        other = int.from_bytes(value[:SKETCH])
        union = (self._bits | other).bit_count()
        return (self._bits & other).bit_count() / union if union else 1.0


class Sketched:
    """The sketches of a request, each made when it is asked for: most of a session's are stored already."""

    def __init__(
        self,
        link: Callable[[int], str],
        params: Callable[[], str],
        signature: Callable[[], bytes] = bytes,
    ) -> None:
        """`link` gives the text of what the link of that index stands for, `params` that of the rest.

        `signature` is that of the request as a whole (`store.signature`), empty where it has none.
        """
        self.link = cache(lambda at: sketch(link(at)))
        self.params = cache(lambda: sketch(params()))
        self.signature = cache(signature)


EMPTY = Sketched(lambda _: "", str)
"""Of a request of which nothing is known but its chain."""
