"""How like two requests are: the signature of a request's tokens, by place, so that near is near in meaning.

Tokens are the words and signs of the normalised request (redacted, without noise), told apart by where they
stand. They come in three sections (`store.signature`): the head (system prompt, tools, parameters), the
messages before the last, and the last message. Each has slots of its own, so that a long system prompt does
not make all requests of an agent alike.

MinHash with one permutation (Li, Owen and Zhang, 2012): each token is hashed once, and a slot keeps the
smallest of the hashes that fall into it; a slot that none fell into takes that of another, found in an order
of its own (optimal densification: Shrivastava, 2017). The slots of a section are the least of those of its
messages, so a session's next turn costs its new messages only. It is written out here because signatures are
stored: a library may hash otherwise in its next version, and then nothing stored is like anything live.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import partial

from rewind_proxy.canonical.fingerprint import Normalised
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.matching.sketching import text_of
from rewind_proxy.store.signature import SLOTS, likeness

__all__ = ["likeness", "signature"]

_MOST = 32_768
"""Characters of one message that are looked at, half from its start and half from its end."""
_READ = 1_000_000
"""Characters that it is cut out of."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
# Scripts that are written without blanks: each character is a token.
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")

_BITS = 26
_VALUE = 2**_BITS - 1
"""A hash has 32 bits: those above choose the slot."""
_EMPTY = 2**32 - 1
_NONE = array("I", [_EMPTY] * SLOTS)
_NAME = "tokens"


def _turn(slot: int, other: int) -> bytes:
    return b"" if slot == other else hashlib.sha256(b"%d %d" % (slot, other)).digest()


# Where a slot takes its value from: itself, then all others in an order that never changes.
_ORDERS = tuple(tuple(sorted(range(SLOTS), key=partial(_turn, slot))) for slot in range(SLOTS))


def signature(normalised: Normalised, kind: str = "") -> bytes:
    """The signature of a request; requests of another operation or `kind` are like it in nothing.

    The end of a request without messages is its parameters.
    """
    kept = normalised.shown.kept()
    tools, *messages = normalised.shown.each(_NAME, _slots_of)
    head, before, end = [tools], messages[:-1], messages[-1:]
    if kept.messages and kept.messages[0].role == "system":
        head += messages[:1]
        before, end = messages[1:-1], messages[1:][-1:]
    params = text_of(normalised.shown.params_view(), names=True)
    (head if messages else end).append(_slots(_tokens(params)))
    seal = hashlib.sha256(f"{normalised.operation}\0{kind}".encode("utf-8", "surrogatepass")).digest()
    return b"".join(_section(parts, seal) for parts in (head, before, end))


def _section(parts: Iterable[Sequence[int]], seal: bytes) -> bytes:
    """One byte for each slot of a section: equal ones in equal places mean equal tokens, but by chance."""
    least: Sequence[int] = _NONE
    for part in parts:
        least = list(map(min, least, part))
    filled = [value != _EMPTY for value in least]
    made = bytearray()
    for order in _ORDERS:
        value = next((least[slot] for slot in order if filled[slot]), _EMPTY)
        # Requests of different kinds get different bytes for one token.
        made += hashlib.blake2b(value.to_bytes(4), key=seal, digest_size=1).digest()
    return bytes(made)


def _slots_of(value: JsonValue) -> Sequence[int]:
    return _slots(_tokens(text_of(value, enough=_READ)))


def _tokens(text: str) -> set[str]:
    if len(text) > _MOST:
        text = f"{text[: _MOST // 2]} {text[-_MOST // 2 :]}"
    text = text.lower()
    if not text.isascii():
        text = _UNSPACED.sub(r" \1 ", text)
    return set(_TOKEN.findall(text))


def _slots(tokens: Iterable[str]) -> Sequence[int]:
    slots = array("I", _NONE)
    # From the greatest on: what is written last to a slot is its least.
    for value in sorted(map(_hash, tokens), reverse=True):
        slots[value >> _BITS] = value & _VALUE
    return slots


def _hash(token: str) -> int:
    # A CRC of words that are alike differs in a pattern; the product breaks it (Knuth, TAOCP 6.4).
    return zlib.crc32(token.encode("utf-8", "surrogatepass")) * 2_654_435_761 & 0xFFFFFFFF
