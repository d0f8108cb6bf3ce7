"""Content codings: the whole body, or an error; never a prefix of it (CASES 11)."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # it has no stubs
import pytest
import zstandard

from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.wire.body import canonical_multipart, decode

LIMIT = 1 << 20
BODY = random.Random(7).randbytes(3000) + b'{"model":"m1"}' * 500


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return coder.compress(data) + coder.flush()


def zstd(data: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(data)


def zstd_stream(data: bytes) -> bytes:
    coder = zstandard.ZstdCompressor().compressobj()
    return coder.compress(data) + coder.flush()


CODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-Gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd),
    "zstd 19": ("zstd", lambda data: zstd(data, 19)),
    "zstd of unknown size": ("zstd", zstd_stream),
}


@pytest.mark.parametrize("coder", CODERS)
def test_round_trip(coder: str) -> None:
    """Each coding gives the body back."""
    encoding, encode = CODERS[coder]
    assert decode(encode(BODY), encoding, LIMIT) == BODY


@pytest.mark.parametrize("coder", CODERS)
def test_what_came_of_a_cut_body(coder: str) -> None:
    """Where a body is known to be cut, its prefix can be asked for; damage is still damage."""
    encoding, encode = CODERS[coder]
    coded = encode(BODY)
    came = decode(coded[: len(coded) // 2], encoding, LIMIT, cut=True)
    assert BODY.startswith(came)
    assert len(came) < len(BODY)
    with pytest.raises(OpaqueBodyError):
        decode(b"\x06damaged" + coded, encoding, LIMIT, cut=True)


@pytest.mark.parametrize("encoding", ["", "identity", " Identity , "])
def test_no_coding(encoding: str) -> None:
    """No coding and `identity` leave the body alone."""
    assert decode(BODY, encoding, LIMIT) == BODY


def test_a_list_of_codings() -> None:
    """Codings are undone from the last to the first."""
    assert decode(zstd(gzip.compress(BODY)), "gzip, zstd", LIMIT) == BODY


@pytest.mark.parametrize(("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_concatenated(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    """Members of gzip and frames of zstd may follow one another."""
    assert decode(encode(b"a") + encode(b"b"), encoding, LIMIT) == b"ab"


@pytest.mark.parametrize("cut", [1, 3, 40, 2000])
@pytest.mark.parametrize("coder", CODERS)
def test_cut(coder: str, cut: int) -> None:
    """A cut stream is an error, not its prefix."""
    encoding, encode = CODERS[coder]
    with pytest.raises(OpaqueBodyError):
        decode(encode(BODY)[:-cut], encoding, LIMIT)


@pytest.mark.parametrize("rest", [b"x", b"\0", b"0123456789abcdefghij"])
@pytest.mark.parametrize("coder", CODERS)
def test_other_bytes_follow(coder: str, rest: bytes) -> None:
    """Bytes after the end of a stream are an error."""
    encoding, encode = CODERS[coder]
    with pytest.raises(OpaqueBodyError):
        decode(encode(BODY) + rest, encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["foo", "gzip, foo", "gzip" + ", gzip" * 9])
def test_unknown_coding(encoding: str) -> None:
    """An unknown coding, or too many of them, is an error."""
    with pytest.raises(OpaqueBodyError):
        decode(gzip.compress(BODY), encoding, LIMIT)


def test_not_that_coding() -> None:
    """A plain body under a coding it does not have is an error."""
    for encoding in ("gzip", "deflate", "br", "zstd"):
        with pytest.raises(OpaqueBodyError):
            decode(b'{"model":"m1"}', encoding, LIMIT)


@pytest.mark.parametrize("coder", CODERS)
def test_limit(coder: str) -> None:
    """A body of the limit's size passes, one byte more does not."""
    encoding, encode = CODERS[coder]
    assert len(decode(encode(BODY), encoding, len(BODY))) == len(BODY)
    with pytest.raises(OpaqueBodyError):
        decode(encode(BODY), encoding, len(BODY) - 1)
    with pytest.raises(OpaqueBodyError):
        decode(BODY, "", len(BODY) - 1)


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstd), ("deflate", zlib.compress)]
)
def test_a_bomb_stays_small(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    """A small body that would expand to 64 MB stops near the limit."""
    bomb = encode(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(OpaqueBodyError):
            decode(bomb, encoding, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def multipart(boundary: str, content: bytes = b"\x00\xff") -> bytes:
    return (
        (
            f'--{boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'
            f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        ).encode()
        + content
        + f"\r\n--{boundary}--\r\n".encode()
    )


def test_multipart_without_its_boundary() -> None:
    """The boundary says nothing, the parts all."""
    one = canonical_multipart(multipart("aaa"), "multipart/form-data; boundary=aaa")
    assert one is not None
    assert [part.get("text") for part in one] == ["whisper-1", None]
    assert one == canonical_multipart(multipart("b:b"), 'Multipart/Form-Data; charset=x; boundary="b:b"')
    assert one != canonical_multipart(multipart("aaa", b"\x00\xfe"), "multipart/form-data; boundary=aaa")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (multipart("a"), "application/json"),
        (multipart("a"), "multipart/form-data"),
        (multipart("a"), "multipart/form-data; boundary=b"),
        (multipart("a")[:-6], "multipart/form-data; boundary=a"),
        (b"preamble\r\n" + multipart("a"), "multipart/form-data; boundary=a"),
        (multipart("a") + b"epilogue", "multipart/form-data; boundary=a"),
        (b"--a\r\nx: 1\r\nX: 2\r\n\r\n\r\n--a--", "multipart/form-data; boundary=a"),
        (b"--a\r\nno colon\r\n\r\n\r\n--a--", "multipart/form-data; boundary=a"),
        (b"", "multipart/form-data; boundary=a"),
    ],
)
def test_not_multipart(body: bytes, content_type: str) -> None:
    """What is not wholly a multipart body is none."""
    assert canonical_multipart(body, content_type) is None
