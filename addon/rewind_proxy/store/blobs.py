"""Content stored once, addressed by its sha256 and counted: blobs, and lists of blobs.

Keys of the table `blobs`: `b` + digest is a blob, `l` + digest the last link of a list, `n` + the key of one
of these its references past the first. A list is a chain of (link before it, blob), so a request that repeats
the messages of the one before it shares all its links, and costs what is new in it and nothing for the rest.

A stored value is a mark (`0` plain, `1` a zstd frame) and the bytes.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

import zstandard

from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store.environment import META
from rewind_proxy.store.transaction import Txn

TABLE = "blobs"
BLOB_COUNT = b"blobs"
BYTE_COUNT = b"bytes"

_BLOB, _LINK, _COUNT = b"b", b"l", b"n"
_LINK_DOMAIN = b"rewind-list/1\x00"
_PLAIN, _ZSTD = b"0", b"1"
_WORTH_COMPRESSING = 64
_START = b""


class _Codecs(threading.local):
    """zstd contexts may not be used by two threads at once."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=3)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


def compress(data: bytes) -> bytes:
    """The stored value of some bytes: whichever is shorter, plain or compressed."""
    if len(data) >= _WORTH_COMPRESSING:
        frame = _codecs.compressor.compress(data)
        if len(frame) < len(data):
            return _ZSTD + frame
    return _PLAIN + data


def decompress(value: bytes) -> bytes:
    """The bytes of a stored value. Raises `CorruptRecordError`."""
    mark = value[:1]
    if mark == _PLAIN:
        return value[1:]
    if mark == _ZSTD:
        try:
            return _codecs.decompressor.decompress(value[1:])
        except (zstandard.ZstdError, MemoryError) as error:
            raise CorruptRecordError(f"a stored value does not decompress ({error})") from error
    raise CorruptRecordError("a stored value has no mark of Rewind's")


def read_count(txn: Txn, key: bytes, table: str = META) -> int:
    """A counter; one that was never written is 0."""
    return int.from_bytes(txn.get(table, key) or b"", "big")


def add_count(txn: Txn, key: bytes, change: int, table: str = META) -> int:
    """Change a counter; its new value. At 0 it is removed."""
    value = read_count(txn, key, table) + change
    if value:
        txn.put(table, key, value.to_bytes(8, "big"))
    else:
        txn.delete(table, key)
    return value


def keep_blob(txn: Txn, content: bytes) -> bytes:
    """Store a blob, or count one reference more to it; its digest."""
    digest = hashlib.sha256(content).digest()
    if not _referenced(txn, _BLOB + digest):
        txn.put(TABLE, _BLOB + digest, compress(content))
        add_count(txn, BLOB_COUNT, 1)
        add_count(txn, BYTE_COUNT, len(content))
    return digest


def read_blob(txn: Txn, digest: bytes) -> bytes:
    """The content of a blob. Raises `CorruptRecordError` when it is missing or not what its digest says."""
    value = txn.get(TABLE, _BLOB + digest)
    if value is None:
        raise CorruptRecordError(f"blob {digest.hex()} is missing")
    content = decompress(value)
    if hashlib.sha256(content).digest() != digest:
        raise CorruptRecordError(f"blob {digest.hex()} does not match its digest")
    return content


def drop_blob(txn: Txn, digest: bytes) -> None:
    """Give back a reference to a blob; the last one removes it."""
    if _released(txn, _BLOB + digest):
        value = txn.get(TABLE, _BLOB + digest)
        if value is not None:
            add_count(txn, BLOB_COUNT, -1)
            add_count(txn, BYTE_COUNT, -len(decompress(value)))
            txn.delete(TABLE, _BLOB + digest)


def blob_key(digest: bytes) -> bytes:
    """Where a blob stands in the table; a reference to it for `problems`."""
    return _BLOB + digest


def list_key(last: bytes) -> bytes:
    """Where the last link of a list stands in the table; a reference to it for `problems`."""
    return _LINK + last


def problems(txn: Txn, references: Counter[bytes]) -> Iterator[str]:
    """What is wrong with the table, given how often recordings refer to each blob and list.

    Everything is decompressed and its digest computed.
    """
    expected = Counter(references)
    for key, _ in txn.scan(TABLE, _LINK):
        try:
            item, before = _read_link(txn, key[1:])
        except CorruptRecordError as error:
            yield str(error)
            continue
        expected[_BLOB + item] += 1
        if before:
            expected[_LINK + before] += 1
    total = size = 0
    for key, value in txn.scan(TABLE, _BLOB):
        total += 1
        try:
            size += len(read_blob(txn, key[1:]))
        except CorruptRecordError as error:
            yield str(error)
        if not expected[key]:
            yield f"nothing refers to blob {key[1:].hex()} ({len(value)} bytes)"
    for key, _ in txn.scan(TABLE, _LINK):
        if not expected[key]:
            yield f"nothing refers to list {key[1:].hex()}"
    for key, wanted in expected.items():
        if txn.get(TABLE, key) is None:
            yield f"{'blob' if key[:1] == _BLOB else 'list'} {key[1:].hex()} is missing"
        elif read_count(txn, _COUNT + key, TABLE) != wanted - 1:
            yield f"the references to {key[1:].hex()} are counted wrongly"
    if (total, size) != (read_count(txn, BLOB_COUNT), read_count(txn, BYTE_COUNT)):
        yield "the blobs are counted wrongly"


def keep_list(txn: Txn, contents: Sequence[bytes]) -> bytes:
    """Store a list of blobs, or count one reference more to it; the digest of its last link."""
    digests = [hashlib.sha256(content).digest() for content in contents]
    links = [_START]
    for digest in digests:
        links.append(_link(links[-1], digest))
    known = next(
        (at for at in range(len(digests), 0, -1) if txn.get(TABLE, _LINK + links[at]) is not None), 0
    )
    if known:
        _referenced(txn, _LINK + links[known])
    for at in range(known, len(digests)):
        txn.put(TABLE, _LINK + links[at + 1], keep_blob(txn, contents[at]) + links[at])
    return links[-1]


def read_list(txn: Txn, last: bytes) -> list[bytes]:
    """The contents of a list. Raises `CorruptRecordError`."""
    contents = []
    while last:
        item, before = _read_link(txn, last)
        contents.append(read_blob(txn, item))
        last = before
    contents.reverse()
    return contents


def drop_list(txn: Txn, last: bytes) -> None:
    """Give back a reference to a list; what nothing else shares is removed."""
    while last and _released(txn, _LINK + last):
        item, before = _read_link(txn, last)
        txn.delete(TABLE, _LINK + last)
        drop_blob(txn, item)
        last = before


def _link(before: bytes, item: bytes) -> bytes:
    return hashlib.sha256(_LINK_DOMAIN + item + before).digest()


def _read_link(txn: Txn, link: bytes) -> tuple[bytes, bytes]:
    value = txn.get(TABLE, _LINK + link)
    if value is None:
        raise CorruptRecordError(f"list {link.hex()} is missing")
    item, before = value[:32], value[32:]
    if _link(before, item) != link:
        raise CorruptRecordError(f"list {link.hex()} does not match its digest")
    return item, before


def _referenced(txn: Txn, key: bytes) -> bool:
    """Count one reference more to what is there; False when there is nothing."""
    if txn.get(TABLE, key) is None:
        return False
    add_count(txn, _COUNT + key, 1, TABLE)
    return True


def _released(txn: Txn, key: bytes) -> bool:
    """Give back one reference; whether it was the last."""
    if read_count(txn, _COUNT + key, TABLE):
        add_count(txn, _COUNT + key, -1, TABLE)
        return False
    return True
