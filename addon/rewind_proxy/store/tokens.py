"""Finding requests by their tokens: the table `tokens`, an index by locality-sensitive hashing.

Every key starts with half of the digest that starts those of `index`:

    settings, "b", band, seq → nothing          a recording whose signature has this band
    settings, "s", seq → signature              what was indexed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from rewind_proxy.store.signature import BANDS, bands, likeness
from rewind_proxy.store.transaction import Txn

TABLE = "tokens"

_BAND, _SIGNATURE = b"b", b"s"
_SEQ = 8
_SETTINGS = 8
_OF_A_BAND = 2_000
"""Recordings of one band that are looked at, the newest: more than these are of one and the same request."""
_WEIGHED = 256
"""Recordings that are compared, those that share most bands."""


class Alike(NamedTuple):
    """A recording that is like a request."""

    score: float
    seq: bytes


def add(txn: Txn, settings: bytes, seq: bytes, signature: bytes) -> None:
    """Index a recording; one without a signature cannot be found by likeness."""
    if not signature:
        return
    txn.put(TABLE, _signature_key(settings, seq), signature)
    for band in bands(signature):
        txn.put(TABLE, _band_key(settings, band) + seq, b"")


def remove(txn: Txn, settings: bytes, seq: bytes) -> None:
    """Take a recording out."""
    signature = txn.get(TABLE, _signature_key(settings, seq))
    if signature is None:
        return
    txn.delete(TABLE, _signature_key(settings, seq))
    for band in bands(signature):
        txn.delete(TABLE, _band_key(settings, band) + seq)


def alike(
    txn: Txn, settings: bytes, signature: bytes, threshold: float, known: Iterable[bytes] = ()
) -> list[Alike]:
    """The recordings whose likeness to a signature is `threshold` or more, best first, newer before older.

    Some thousand entries are looked at, however many recordings there are; those that are `known` to be near
    are among them.
    """
    if not signature:
        return []
    shared: Counter[bytes] = Counter()
    for band in bands(signature):
        entries = txn.scan_back(TABLE, _band_key(settings, band))
        shared.update(key[-_SEQ:] for key, _ in islice(entries, _OF_A_BAND))
    found: list[Alike] = []
    for seq in dict.fromkeys((*known, *(seq for seq, _ in shared.most_common(_WEIGHED)))):
        other = txn.get(TABLE, _signature_key(settings, seq))
        if other is not None and (score := likeness(signature, other)) >= threshold:
            found.append(Alike(score, seq))
    found.sort(reverse=True)
    return found


def problems(txn: Txn, settings: bytes, indexed: set[bytes]) -> Iterator[str]:
    """What is wrong in the table, given the recordings that are indexed under some settings."""
    expected = entries = stray = 0
    for key, _ in txn.scan(TABLE, _signature_key(settings)):
        expected += BANDS
        if key[-_SEQ:] not in indexed:
            number = int.from_bytes(key[-_SEQ:], "big")
            yield f"the tokens of number {number} are of no recording that is indexed"
    start = len(_band_key(settings))
    for key, _ in txn.scan(TABLE, _band_key(settings)):
        entries += 1
        signature = txn.get(TABLE, _signature_key(settings, key[-_SEQ:]))
        stray += signature is None or key[start:-_SEQ] not in bands(signature)
    if missing := expected - (entries - stray):
        yield f"{missing} entries of tokens are missing"
    if stray:
        yield f"{stray} entries of tokens lead nowhere"


def _signature_key(settings: bytes, seq: bytes = b"") -> bytes:
    return settings[:_SETTINGS] + _SIGNATURE + seq


def _band_key(settings: bytes, band: bytes = b"") -> bytes:
    return settings[:_SETTINGS] + _BAND + band
