"""Content codings: a body as its sender meant it, whole or not at all.

A coded body is decoded by every coding in its `Content-Encoding`, last applied first (RFC 9110 §8.4). What is
unknown, cut, followed by other bytes or larger than the limit raises: a prefix is never taken for the body,
unless it is known to be one and asked for.
Memory stays near the limit even for a body made to explode.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import brotli  # type: ignore[import-untyped]  # it has no stubs
import zstandard

from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.wire.multipart import canonical_multipart

__all__ = ["canonical_multipart", "decode"]

_MAX_CODINGS = 4
# Each member or frame costs a copy of what follows it in its slice; real bodies have a handful.
_MAX_MEMBERS = 1024
_SLICE = 64 * 1024
# A zstd block of 4 bytes can be 128 KiB, and the binding has no limit on what one call returns.
_ZSTD_SLICE = 256
# RFC 9659: a sender may use a window of 8 MB; a larger one is honoured up to the limit of the body.
_ZSTD_WINDOW = 8 * 1024 * 1024
_ZSTD_MAX_WINDOW = 128 * 1024 * 1024
# A brotli meta-block of some 13 bytes can be 16 MiB (RFC 7932 §9.2), and brotli 1.1 has no limit either.
_BROTLI_SLICE = 16


class _Output:
    """Decoded pieces, counted as they come."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def room(self) -> int:
        """How much more may come, and one byte to notice that it was too much."""
        return self._limit - self._size + 1

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise OpaqueBodyError(f"larger than {self._limit} bytes when decoded")
        if piece:
            self._pieces.append(piece)

    def join(self) -> bytes:
        return b"".join(self._pieces)


class _CutShortError(OpaqueBodyError):
    """The body ended before its coding did; the output has what came."""


def _slices(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _inflate(data: bytes, output: _Output, wbits: int, members: int, coding: str) -> None:
    """Decode `members` zlib streams at most, one after the other, to the last byte of `data`."""
    decoder = zlib.decompressobj(wbits)
    count = 1
    for piece in _slices(data, _SLICE):
        rest = piece
        while rest:
            if decoder.eof:
                count += 1
                if count > members:
                    raise OpaqueBodyError(f"{coding}: other bytes follow")
                decoder = zlib.decompressobj(wbits)
            try:
                output.add(decoder.decompress(rest, output.room))
            except zlib.error:
                raise OpaqueBodyError(f"{coding}: damaged") from None
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        raise _CutShortError(f"{coding}: cut short")


def _gzip(data: bytes, output: _Output) -> None:
    _inflate(data, output, 16 + zlib.MAX_WBITS, _MAX_MEMBERS, "gzip")


def _deflate(data: bytes, output: _Output) -> None:
    # RFC 9110 §8.4.1.2: the zlib format, but some senders leave its two-byte header out.
    zlib_header = len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    _inflate(data, output, zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS, 1, "deflate")


def _zstd(data: bytes, output: _Output) -> None:
    window = min(max(output.room, _ZSTD_WINDOW), _ZSTD_MAX_WINDOW)
    context = zstandard.ZstdDecompressor(max_window_size=window)
    decoder = context.decompressobj()
    frames = 1
    for piece in _slices(data, _ZSTD_SLICE):
        rest = piece
        while rest:
            if decoder.eof:
                frames += 1
                if frames > _MAX_MEMBERS:
                    raise OpaqueBodyError("zstd: too many frames")
                decoder = context.decompressobj()
            try:
                output.add(decoder.decompress(rest))
            except zstandard.ZstdError:
                raise OpaqueBodyError("zstd: damaged") from None
            rest = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        raise _CutShortError("zstd: cut short")


def _brotli(data: bytes, output: _Output) -> None:
    # The decoder ignores what follows the stream within one call: the last slice goes in byte by byte, so
    # that the stream must end with the body and not before.
    decoder = brotli.Decompressor()
    head, tail = data[:-_BROTLI_SLICE], data[-_BROTLI_SLICE:]
    for size, part in ((_BROTLI_SLICE, head), (1, tail)):
        for piece in _slices(part, size):
            if decoder.is_finished():
                raise OpaqueBodyError("br: other bytes follow")
            try:
                output.add(decoder.process(piece))
            except brotli.error:
                raise OpaqueBodyError("br: damaged") from None
    if not decoder.is_finished():
        raise _CutShortError("br: cut short")


_DECODERS: dict[str, Callable[[bytes, _Output], None]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}


def decode(body: bytes, encoding: str, limit: int, *, cut: bool = False) -> bytes:
    """`body` without the codings of a `Content-Encoding` header (`""` and `identity` are none).

    Raises `OpaqueBodyError` for an unknown coding, a cut or damaged stream, bytes after its end, and more
    than `limit` bytes at any stage. With `cut` a stream may end early: what came of it is given. An empty
    body has nothing to decode.
    """
    codings = [name for item in encoding.split(",") if (name := item.strip().lower()) not in ("", "identity")]
    if len(codings) > _MAX_CODINGS:
        raise OpaqueBodyError("too many content codings")
    for coding in codings:
        if coding not in _DECODERS:
            raise OpaqueBodyError("unknown content coding")
    if len(body) > limit:
        raise OpaqueBodyError(f"larger than {limit} bytes")
    if not body:
        return body
    for coding in reversed(codings):
        output = _Output(limit)
        try:
            _DECODERS[coding](body, output)
        except _CutShortError:
            if not cut:
                raise
        body = output.join()
    return body
