"""Request bodies that are odd, compressed, damaged or hostile: recorded and replayed, never changed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping

import brotli  # type: ignore[import-untyped]  # it has no stubs
import pytest
import zstandard

from proxy.calls import CHAT, CHAT_PATH, OPENAI, error_message, new_prompt
from proxy.conftest import Stage
from proxy.looking import steps_of
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.cli.provider import Exchange
from support.client import Client, Got
from support.proxies import Proxy

COMPLETION = (
    b'{"id":"c%d","object":"chat.completion","model":"m1","choices":'
    b'[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Yes."}}]}'
)


@pytest.fixture
def counting(stage: Stage) -> Stage:
    """A provider that answers whatever it is sent, each time with another completion."""

    def behave(exchange: Exchange) -> None:
        exchange.whole(200, "application/json", COMPLETION % exchange.request.number)

    stage.behaviour = behave
    return stage


def post(proxy: Proxy, body: bytes, headers: Mapping[str, str] | None = None) -> Got:
    """Send a body to Chat Completions."""
    with Client(proxy, OPENAI) as client:
        return client.post(CHAT_PATH, body, headers)


def record(live: Proxy, body: bytes, headers: Mapping[str, str] | None = None) -> Got:
    """Send a body to a live proxy, and wait until its answer is recorded."""
    session = new_prompt()
    got = post(live, body, {"x-rewind-session": session, **(headers or {})})
    assert got.status == 200
    [step] = steps_of(live.store, session)
    assert (step.tier, bool(step.cassette)) == ("recorded", True)
    return got


ODD = {
    "not JSON": b"%s, just words",
    "not JSON and not text": b"\xff\xfe%s\x00",
    "cut JSON": b'{"messages":[{"role":"user","content":"%s"',
    "a duplicate member": b'{"model":"m1","messages":[{"role":"user","content":"%s"}],"model":"m1"}',
    "invalid UTF-8": b'{"messages":[{"role":"user","content":"%s \xff"}]}',
    "a lone surrogate": rb'{"messages":[{"role":"user","content":"%s \ud83d"}]}',
    "a number past all floats": b'{"messages":[{"role":"user","content":"%s"}],"temperature":1E400}',
    "NaN": b'{"messages":[{"role":"user","content":"%s"}],"temperature":NaN}',
    "an array": b'["%s"]',
    "a byte order mark": b'\xef\xbb\xbf{"messages":[{"role":"user","content":"%s"}]}',
    "nested past any parser": b'{"messages":"%s","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_body_is_recorded_and_replayed(
    live: Proxy, offline: Proxy, counting: Stage, kind: str
) -> None:
    """The provider gets the bytes as they were sent; the same bytes hit, others of the same kind do not."""
    body, other = (ODD[kind].replace(b"%s", new_prompt().encode()) for _ in range(2))
    recorded = record(live, body)
    assert [request.body for request in counting.provider.requests if request.body == body] == [body]
    replayed = post(offline, body)
    assert (replayed.headers["x-rewind-tier"], replayed.body) == ("exact", recorded.body)
    assert post(offline, other).status == 400


def test_two_lone_surrogates_are_two_requests(live: Proxy, offline: Proxy, counting: Stage) -> None:
    r"""`\ud83d` and `\ud83e` are different texts, though no valid UTF-8 can say either."""
    prompt = new_prompt().encode()
    body = rb'{"messages":[{"role":"user","content":"%s \ud83d"}]}' % prompt
    record(live, body)
    assert post(offline, body).status == 200
    assert post(offline, body.replace(b"d83d", b"d83e")).status == 400


def test_half_a_character_keeps_nothing_from_being_told(live: Proxy, offline: Proxy, counting: Stage) -> None:
    """Step, recording and refusal are valid UTF-8, wherever a client sends a lone surrogate."""
    prompt = new_prompt()
    body = rb'{"model":"m\udc00","user":"u\udc00","messages":[{"role":"user","content":"%s \ud83d"}]}'
    record(live, body % prompt.encode())
    refused = post(offline, body.replace(b"d83d", b"d83e") % prompt.encode())
    assert f"{prompt} ?" in error_message(refused)
    note = post(offline, (body % prompt.encode()).replace(b"u\\udc00", b"u")).headers["x-rewind-note"]
    assert note == "user u?->u"


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=19).compress(data)


def _zstd_stream(data: bytes) -> bytes:
    """A frame without its size, as streaming writers make it."""
    writer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return writer.compress(data[:9]) + writer.compress(data[9:]) + writer.flush()


def _raw_deflate(data: bytes) -> bytes:
    writer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return writer.compress(data) + writer.flush()


CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "zstd": ("zstd", _zstd),
    "zstd without a size": ("zstd", _zstd_stream),
    "zstd in two frames": ("zstd", lambda data: _zstd(data[:7]) + _zstd(data[7:])),
    "gzip": ("gzip", gzip.compress),
    "br": ("br", brotli.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", _raw_deflate),
    "gzip, then zstd": ("gzip, zstd", lambda data: _zstd(gzip.compress(data))),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_body_is_the_body(live: Proxy, offline: Proxy, counting: Stage, coding: str) -> None:
    """Recorded compressed, it replays plain and compressed; the provider got bytes and header as sent."""
    name, encode = CODINGS[coding]
    plain = dumps(CHAT.body(new_prompt(), "m1", 100))
    headers = {"content-encoding": name}
    sent = encode(plain)
    recorded = record(live, sent, headers)
    [request] = [request for request in counting.provider.requests if request.body == sent]
    assert request.header("content-encoding") == name
    for body, coded in ((plain, {}), (sent, headers), (gzip.compress(plain), {"content-encoding": "gzip"})):
        replayed = post(offline, body, coded)
        assert (replayed.headers["x-rewind-tier"], replayed.body) == ("exact", recorded.body)


DAMAGED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut zstd": ("zstd", lambda data: _zstd_stream(data)[:-3]),
    "cut gzip": ("gzip", lambda data: gzip.compress(data)[:-9]),
    "bytes after the end": ("gzip", lambda data: gzip.compress(data) + b"more"),
    "a bomb": ("zstd", lambda data: _zstd(data + b" " * (80 << 20))),
    "an unknown coding": ("foo", bytes),
    "not what it says": ("gzip", bytes),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_body_that_does_not_decode_is_opaque(
    live: Proxy, offline: Proxy, counting: Stage, kind: str
) -> None:
    """It goes on as it is, hits only itself, and is never taken for what its first part decodes to."""
    name, encode = DAMAGED[kind]
    plain = dumps(CHAT.body(new_prompt(), "m1", 100))
    sent, headers = encode(plain), {"content-encoding": name}
    recorded = record(live, sent, headers)
    assert any(request.body == sent for request in counting.provider.requests)
    replayed = post(offline, sent, headers)
    assert (replayed.headers["x-rewind-tier"], replayed.body) == ("exact", recorded.body)
    assert post(offline, plain).status == 400
    assert post(offline, sent[:-1], headers).status == 400


def test_of_an_opaque_body_nothing_is_stored(live: Proxy, counting: Stage) -> None:
    """Hash, length and content type are all that is kept of what cannot be read, and so not be redacted."""
    body = new_prompt().encode()
    record(live, body)
    assert all(body not in file.read_bytes() for file in live.store.parent.rglob("*.mdb"))


def test_multipart_matches_by_its_parts(live: Proxy, offline: Proxy, counting: Stage) -> None:
    """The boundary of a multipart body is noise; what is in the parts is not."""

    def form(boundary: str, text: str) -> tuple[bytes, dict[str, str]]:
        body = f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n{text}\r\n--{boundary}--\r\n'
        return body.encode(), {"content-type": f"multipart/form-data; boundary={boundary}"}

    prompt = new_prompt()
    recorded = record(live, *form("one", prompt))
    assert post(offline, *form("two", prompt)).body == recorded.body
    assert post(offline, *form("two", new_prompt())).status == 400
