"""The index of one set of match settings: normalised fingerprints, and the tree of message prefixes.

Every key starts with a digest of the settings, so that indexes live side by side. In `normalised`:

    settings, fingerprint, seq → cassette id         the recordings of a fingerprint, in recorded order
    settings, seq → fingerprint, last link           what was indexed; empty: cannot be keyed (quarantined)

In `prefixes` a node is a link of the chain of message digests, and all chains start at one root. A value is
the sketch of what the entry adds (`sketch.py`), then the link before the node:

    settings, link, "c", next link                   some recording goes on from here; sketch of the message
    settings, link, "t", seq                         this recording ends here; sketch of its parameters

A link is the digest of everything up to it, so a chain is written from its end only as far back as it is new.
Going down from where a chain leaves the tree, `nearest` follows what looks alike by the sketches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from rewind_proxy.store import tokens
from rewind_proxy.store.blobs import add_count, read_count
from rewind_proxy.store.environment import META
from rewind_proxy.store.sketch import EMPTY, SKETCH, Likeness, Sketched
from rewind_proxy.store.transaction import Txn

TABLES = ("normalised", "prefixes", tokens.TABLE)
_NORMALISED, _PREFIXES, _ = TABLES

_INDEXED = b"indexed:"
_QUARANTINED = b"quarantined:"
_CHILD, _TAIL = b"c", b"t"
_SETTINGS = 16
_DIGEST = 32
_LINK = 16
_SEQ = 8
_ROOT = bytes(_LINK)
_VISITED = 10_000
"""Entries that one search looks at: some 30 ms."""
_BEAM = 16
"""Nodes of one depth that are followed further."""
_HEADS = 256
"""The same of first links: one agent may be known under many system prompts."""
_OTHER_HEADS = 2_000
"""The same where the first link is known itself."""
_HEAD = 0.5
"""What the first link weighs beside all messages."""
_ALMOST = 0.99
"""The most that a first link counts that is another one."""
_PARAMS = 0.01
"""What the parameters weigh: they decide among recordings of one conversation."""


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
    txn: Txn,
    settings: bytes,
    seq: bytes,
    cassette_id: bytes,
    normalised: str,
    links: Sequence[str],
    sketched: Sketched = EMPTY,
) -> None:
    """Index a recording that is not indexed yet; `sketched` tells what its links stand for."""
    fingerprint, chain = fingerprint_key(normalised), _chain(links)
    txn.put(_NORMALISED, settings + fingerprint + seq, cassette_id)
    txn.put(_NORMALISED, settings + seq, fingerprint + (chain[-1] if chain else b""))
    add_count(txn, _INDEXED + settings, 1)
    tokens.add(txn, settings, seq, sketched.signature())
    before = [b"", _ROOT, *chain]
    if chain:
        txn.put(_PREFIXES, settings + chain[-1] + _TAIL + seq, sketched.params() + before[-2])
    for at in range(len(chain) - 1, -1, -1):
        entry = settings + before[at + 1] + _CHILD + chain[at]
        if txn.get(_PREFIXES, entry) is not None:
            break
        txn.put(_PREFIXES, entry, sketched.link(at) + before[at])


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
    tokens.remove(txn, settings, seq)
    txn.delete(_NORMALISED, settings + value[:_DIGEST] + seq)
    link = value[_DIGEST:]
    entry = settings + link + _TAIL + seq
    while link:
        value = txn.get(_PREFIXES, entry)
        txn.delete(_PREFIXES, entry)
        if value is None or any(True for _ in txn.scan(_PREFIXES, settings + link)):
            return
        before = value[SKETCH:]
        entry, link = settings + before + _CHILD + link, before


def lookup(txn: Txn, settings: bytes, fingerprint: str) -> Iterator[tuple[bytes, bytes]]:
    """(seq, cassette id) of the recordings of a normalised fingerprint, in recorded order."""
    for key, cassette_id in txn.scan(_NORMALISED, settings + fingerprint_key(fingerprint)):
        yield key[-_SEQ:], cassette_id


def fingerprint_of(txn: Txn, settings: bytes, seq: bytes) -> bytes:
    """The normalised fingerprint of a recording; empty where it has none under these settings."""
    return (txn.get(_NORMALISED, settings + seq) or b"")[:_DIGEST]


class Near(NamedTuple):
    """A recording that is like a request."""

    seq: bytes
    shared: int
    """How many links of their chains are the same."""
    likeness: float
    """Of all that follows the first link (messages; parameters where neither has any), from 0 to 1."""


def nearest(txn: Txn, settings: bytes, links: Sequence[str], sketched: Sketched = EMPTY) -> Near | None:
    """The recording that is most like a request, by its chain; None when there is none at all.

    Two links or more that a recording shares are gone down first; from there it is the one that is most
    alike, so about as long too, and the newest of several. About `_VISITED` entries are looked at, however
    many there are.
    """
    chain = _chain(links)
    if not chain:
        return None
    return _Search(txn, settings, chain, sketched).best(_longest_prefix(txn, settings, chain))


def _longest_prefix(txn: Txn, settings: bytes, chain: Sequence[bytes]) -> int:
    shared, beyond = 0, len(chain) + 1
    while beyond - shared > 1:  # a link is known only if all before it are
        middle = (shared + beyond) // 2
        if any(True for _ in txn.scan(_PREFIXES, settings + chain[middle - 1])):
            shared = middle
        else:
            beyond = middle
    return shared


class _Node(NamedTuple):
    score: float
    """The likeness of the messages so far, each from 0 to 1."""
    head: float
    """The likeness of the first link."""
    shared: int
    """Links that are the same, from the start."""
    link: bytes


class _Search:
    """Goes down level by level along what is most alike.

    A prefix of messages that is known is gone down at once. The first link alone is not enough for that: the
    same messages may have been recorded under another system prompt.
    """

    def __init__(self, txn: Txn, settings: bytes, chain: Sequence[bytes], sketched: Sketched) -> None:
        self._txn, self._settings = txn, settings
        self._chain, self._sketched = chain, sketched
        self._left = _VISITED
        self._best: tuple[float, bytes, int, float] | None = None

    def best(self, shared: int) -> Near | None:
        """What was found; `shared` links of the chain are known."""
        if shared > 1:
            level, depth = [_Node(shared - 1, 1.0, shared, self._chain[shared - 1])], shared
        else:
            level, depth = self._heads(known=bool(shared)), 1
        while level and (self._best is None or (self._left > 0 and depth <= len(self._chain) + _BEAM)):
            level, depth = self._below(level, depth), depth + 1
        return Near(*self._best[1:]) if self._best else None

    def _heads(self, *, known: bool) -> list[_Node]:
        first = self._chain[0]
        heads = [_Node(0.0, 1.0, 1, first)] if known else []
        most = _OTHER_HEADS if known else self._left
        found = self._entries(_ROOT + _CHILD, self._sketched.link(0), most)
        heads += [_Node(0.0, _ALMOST * alike, 0, link) for alike, link in found if link != first]
        return nlargest(_HEADS, heads)

    def _below(self, level: Sequence[_Node], depth: int) -> list[_Node]:
        more = depth < len(self._chain)
        asked = self._sketched.link(depth) if more else None
        below: list[_Node] = []
        for node in level:
            self._end(node, depth)
            # At least one way is followed to its end, however many there were.
            most = max(self._left, 0 if below or self._best else 1)
            found = self._entries(node.link + _CHILD, asked, most)
            for alike, link in nlargest(_BEAM, found):
                same = more and node.shared == depth and link == self._chain[depth]
                below.append(_Node(node.score + alike, node.head, node.shared + same, link))
        return nlargest(_BEAM, below, key=_promise)

    def _end(self, node: _Node, depth: int) -> None:
        """Take the recordings that end at a node into account."""
        most = max(self._left, 0 if self._best else 1)
        found = self._entries(node.link + _TAIL, self._sketched.params(), most)
        if not found:
            return
        params, seq = max(found)
        messages = max(depth, len(self._chain)) - 1
        alike = node.score / messages if messages else params
        rank = _HEAD * node.head + alike + (_PARAMS * params if messages else 0.0)
        if self._best is None or (rank, seq) > self._best[:2]:
            self._best = (rank, seq, node.shared, alike)

    def _entries(self, prefix: bytes, asked: bytes | None, most: int) -> list[tuple[float, bytes]]:
        """(likeness, rest of the key) of entries below a prefix, `most` of them; 0 if nothing is asked."""
        start = len(self._settings) + len(prefix)
        scan = islice(self._txn.scan(_PREFIXES, self._settings + prefix), most)
        if asked is None:
            found = [(0.0, key[start:]) for key, _ in scan]
        else:
            alike = Likeness(asked)
            found = [(alike(value), key[start:]) for key, value in scan]
        self._left -= len(found)
        return found


def _promise(node: _Node) -> tuple[float, bytes]:
    return node.score + _HEAD * node.head, node.link
