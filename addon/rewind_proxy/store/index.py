"""The index of one set of match settings: normalised fingerprints, and the tree of message prefixes.

Every key starts with a digest of the settings, so that indexes live side by side. In `normalised`:

    settings, fingerprint, seq → cassette id         the recordings of a fingerprint, in recorded order
    settings, seq → fingerprint, last link           what was indexed; empty: cannot be keyed (quarantined)

In `prefixes` a node is a link of the chain of message digests; the value is always the link before it:

    settings, link, "c", next link                   some recording goes on from here
    settings, link, "t", seq                         the chain of this recording ends here

A link is the digest of everything up to it, so a chain is written from its end only as far back as it is new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from rewind_proxy.store.blobs import add_count, read_count
from rewind_proxy.store.environment import META
from rewind_proxy.store.transaction import Txn

TABLES = ("normalised", "prefixes")
_NORMALISED, _PREFIXES = TABLES

_INDEXED = b"indexed:"
_QUARANTINED = b"quarantined:"
_CHILD, _TAIL = b"c", b"t"
_SETTINGS = 16
_DIGEST = 32
_LINK = 16
_SEQ = 8
_VISITED = 256


def settings_key(settings_digest: str) -> bytes:
    """The start of every key of an index."""
    return hashlib.sha256(settings_digest.encode()).digest()[:_SETTINGS]


def all_settings(txn: Txn) -> list[bytes]:
    """The settings under which anything is indexed."""
    found = {
        key.removeprefix(kind): None for kind in (_INDEXED, _QUARANTINED) for key, _ in txn.scan(META, kind)
    }
    return list(found)


def fingerprint_key(fingerprint: str) -> bytes:
    """The bytes of a fingerprint or link: 64 hex digits. Raises ValueError for anything else."""
    key = bytes.fromhex(fingerprint)
    if len(key) != _DIGEST:
        raise ValueError(f"a fingerprint has {_DIGEST} bytes, not {len(key)}")
    return key


def _chain(links: Sequence[str]) -> list[bytes]:
    # Half of each digest is enough for what only leads to the recording that a miss report shows.
    return [fingerprint_key(link)[:_LINK] for link in links]


def covered(txn: Txn, settings: bytes) -> tuple[int, int]:
    """How many recordings are indexed, and how many quarantined."""
    return read_count(txn, _INDEXED + settings), read_count(txn, _QUARANTINED + settings)


def is_indexed(txn: Txn, settings: bytes, seq: bytes) -> bool:
    """Whether a recording is indexed or quarantined."""
    return txn.get(_NORMALISED, settings + seq) is not None


def add(
    txn: Txn, settings: bytes, seq: bytes, cassette_id: bytes, normalised: str, links: Sequence[str]
) -> None:
    """Index a recording that is not indexed yet."""
    fingerprint, chain = fingerprint_key(normalised), _chain(links)
    txn.put(_NORMALISED, settings + fingerprint + seq, cassette_id)
    txn.put(_NORMALISED, settings + seq, fingerprint + (chain[-1] if chain else b""))
    add_count(txn, _INDEXED + settings, 1)
    before = [b"", *chain]
    if chain:
        txn.put(_PREFIXES, settings + chain[-1] + _TAIL + seq, before[-2])
    for at in range(len(chain) - 1, 0, -1):
        if not txn.add(_PREFIXES, settings + chain[at - 1] + _CHILD + chain[at], before[at - 1]):
            break


def quarantine(txn: Txn, settings: bytes, seq: bytes) -> None:
    """Note that a recording cannot be keyed under these settings."""
    txn.put(_NORMALISED, settings + seq, b"")
    add_count(txn, _QUARANTINED + settings, 1)


def quarantined(txn: Txn, settings: bytes) -> list[bytes]:
    """The seq of every recording that cannot be keyed under these settings."""
    if not covered(txn, settings)[1]:
        return []
    entries = txn.scan(_NORMALISED, settings)
    return [key[_SETTINGS:] for key, value in entries if not value and len(key) == _SETTINGS + _SEQ]


def entries(txn: Txn, settings: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(fingerprint, seq, cassette id) of every recording that can be found by its fingerprint."""
    for key, cassette_id in txn.scan(_NORMALISED, settings):
        if len(key) == _SETTINGS + _DIGEST + _SEQ:
            yield key[_SETTINGS:-_SEQ], key[-_SEQ:], cassette_id


def remove(txn: Txn, settings: bytes, seq: bytes) -> None:
    """Take a recording out, and the links that only it had."""
    value = txn.get(_NORMALISED, settings + seq)
    if value is None:
        return
    txn.delete(_NORMALISED, settings + seq)
    if not value:
        add_count(txn, _QUARANTINED + settings, -1)
        return
    add_count(txn, _INDEXED + settings, -1)
    txn.delete(_NORMALISED, settings + value[:_DIGEST] + seq)
    link = value[_DIGEST:]
    entry = settings + link + _TAIL + seq
    while link:
        before = txn.get(_PREFIXES, entry)
        txn.delete(_PREFIXES, entry)
        if before is None or any(True for _ in txn.scan(_PREFIXES, settings + link)):
            return
        entry, link = settings + before + _CHILD + link, before


def lookup(txn: Txn, settings: bytes, fingerprint: str) -> Iterator[tuple[bytes, bytes]]:
    """(seq, cassette id) of the recordings of a normalised fingerprint, in recorded order."""
    for key, cassette_id in txn.scan(_NORMALISED, settings + fingerprint_key(fingerprint)):
        yield key[-_SEQ:], cassette_id


def nearest(txn: Txn, settings: bytes, links: Sequence[str]) -> tuple[bytes, int] | None:
    """(seq, number of links shared) of the recording that shares the longest prefix of a chain.

    Among several it is one whose chain is about as long, the newest of these.
    """
    chain = _chain(links)
    shared, beyond = 0, len(chain) + 1
    while beyond - shared > 1:  # a link is known only if all before it are
        middle = (shared + beyond) // 2
        if any(True for _ in txn.scan(_PREFIXES, settings + chain[middle - 1])):
            shared = middle
        else:
            beyond = middle
    if not shared:
        return None
    best: tuple[int, bytes] | None = None
    level, length, visited = [chain[shared - 1]], shared, 0
    while level and (best is None or (length <= len(chain) and visited < _VISITED)):
        below: list[bytes] = []
        for node in (settings + link for link in level):
            for key, _ in txn.scan(_PREFIXES, node):
                if visited >= _VISITED and (below or best):
                    break
                visited += 1
                kind, rest = key[len(node) : len(node) + 1], key[len(node) + 1 :]
                if kind == _CHILD:
                    below.append(rest)
                else:
                    candidate = (-abs(length - len(chain)), rest)
                    best = candidate if best is None else max(best, candidate)
        level, length = below, length + 1
    return (best[1], shared) if best else None
