"""In replay nothing is dialled and no name is looked up, whatever a client does: counted by an audit hook."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy import h2_client
from proxy.calls import CHAT, CHAT_SSE, OPENAI, new_prompt
from proxy.conftest import Stage, Start
from proxy.looking import record
from rewind_proxy.cli.provider import FakeProvider
from support.client import Client, tunnel
from support.proxies import Proxy, proxy

WAYS = {
    "eager": ("--set", "connection_strategy=eager"),
    "lazy": ("--set", "connection_strategy=lazy"),
    "upstream-eager": ("--mode", "upstream:http://127.0.0.1:{dead}", "--set", "connection_strategy=eager"),
    "upstream-lazy": ("--mode", "upstream:http://127.0.0.1:{dead}", "--set", "connection_strategy=lazy"),
}

REQUEST = b"POST /v1/responses HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}"


class Replaying(NamedTuple):
    """A replaying proxy, and the closed port where the provider, or a corporate proxy, would be."""

    proxy: Proxy
    dead: int

    @property
    def dialled(self) -> list[str]:
        """What was dialled or looked up since the last test."""
        return self.proxy.sockets.outward(self.dead)


@pytest.fixture(scope="module", params=WAYS)
def _replaying(
    request: pytest.FixtureRequest,
    offline: Proxy,
    stopped: FakeProvider,
    tmp_path_factory: pytest.TempPathFactory,
    confdir: Path,
) -> Iterator[Replaying]:
    options = [word.format(dead=stopped.port) for word in WAYS[request.param]]
    folder = tmp_path_factory.mktemp(request.param)
    replay = {"mode": "replay"}
    with proxy(
        folder, confdir, provider=stopped, settings=replay, options=options, store=offline.store
    ) as running:
        yield Replaying(running, stopped.port)
    assert "Traceback" not in running.child.output


@pytest.fixture
def replaying(_replaying: Replaying) -> Iterator[Replaying]:
    """The proxy; whatever the test did, nothing was dialled."""
    _replaying.proxy.sockets.clear()
    yield _replaying
    assert _replaying.dialled == []


def test_a_hit(live: Proxy, replaying: Replaying) -> None:
    """A recorded request is answered without the provider."""
    prompt = new_prompt()
    recorded = record(live, CHAT_SSE, prompt)
    got = CHAT_SSE.once(replaying.proxy, prompt)
    assert (got.headers["x-rewind"], got.body) == ("replayed", recorded.body)


def test_a_miss(replaying: Replaying) -> None:
    """An unknown request is refused without the provider."""
    assert CHAT.once(replaying.proxy, new_prompt()).status == 400


def test_a_tunnel_and_nothing_in_it(replaying: Replaying) -> None:
    """CONNECT alone opens nothing."""
    status, connection = tunnel(replaying.proxy, OPENAI, 443)
    connection.close()
    assert status == 200


def test_tls_and_no_request(replaying: Replaying) -> None:
    """A TLS handshake is answered with a certificate of our CA, without asking for the provider's."""
    _, raw = tunnel(replaying.proxy, OPENAI, 443)
    with raw, replaying.proxy.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
        assert connection.version()


def test_a_client_that_names_no_host(replaying: Replaying) -> None:
    """Without SNI the address of CONNECT decides: the request is seen and refused."""
    _, raw = tunnel(replaying.proxy, OPENAI, 443)
    context = replaying.proxy.trust()
    context.check_hostname = False
    with raw, context.wrap_socket(raw) as connection:
        connection.sendall(REQUEST % OPENAI.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")


def test_a_client_that_names_another_host(replaying: Replaying) -> None:
    """The address of CONNECT counts where the name in TLS and the Host header are others."""
    _, raw = tunnel(replaying.proxy, OPENAI, 443)
    context = replaying.proxy.trust()
    with raw, context.wrap_socket(raw, server_hostname="front.invalid") as connection:
        connection.sendall(REQUEST % b"front.invalid")
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")


def test_plain_http_to_a_known_host(replaying: Replaying) -> None:
    """A known host is decided by its name, before the scheme."""
    with Client(replaying.proxy, OPENAI, tls=False) as client:
        got = client.post("/v1/chat/completions", CHAT.body(new_prompt(), "m1", 9))
    assert (got.status, got.headers["x-rewind"]) == (400, "refused")


@pytest.mark.parametrize("sent", [b"\x00\x01\x02 raw bytes\n\n", b"SSH-2.0-client\r\n", b"\n"])
def test_raw_tcp(replaying: Replaying, sent: bytes) -> None:
    """Bytes that are neither TLS nor HTTP close the tunnel."""
    status, connection = tunnel(replaying.proxy, OPENAI, 443)
    assert status == 200
    with connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_broken_tls(replaying: Replaying) -> None:
    """What starts like TLS and is none closes the tunnel."""
    _, connection = tunnel(replaying.proxy, OPENAI, 443)
    with connection:
        connection.sendall(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff")
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"HTTP" not in received


def test_http_in_a_tunnel_without_tls(replaying: Replaying) -> None:
    """A request in the clear inside CONNECT is seen and refused."""
    _, connection = tunnel(replaying.proxy, OPENAI, 443)
    with connection:
        connection.sendall(REQUEST % OPENAI.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")


def test_an_untrusting_client(replaying: Replaying) -> None:
    """A client that does not trust our CA makes the log name it, the host and what to set."""
    _, raw = tunnel(replaying.proxy, OPENAI, 443)
    with raw, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(raw, server_hostname=OPENAI)
    advice = r"refused the certificate for api\.openai\.com\. .*SSL_CERT_FILE"
    replaying.proxy.child.wait_for(re.compile(advice))


def test_http2(live: Proxy, replaying: Replaying) -> None:
    """Over HTTP/2 a hit is a hit, with the same bytes, and a miss a refusal."""
    prompt = new_prompt()
    body = CHAT_SSE.body(prompt, "m1", 100)
    recorded = record(live, CHAT_SSE, prompt)
    hit = h2_client.post(replaying.proxy, OPENAI, CHAT_SSE.path, body)
    miss = h2_client.post(replaying.proxy, OPENAI, CHAT.path, CHAT.body(new_prompt(), "m1", 9))
    assert (hit.status, hit.body, hit.headers["x-rewind"]) == (200, recorded.body, "replayed")
    assert hit.body.endswith(b"data: [DONE]\n\n")
    assert (miss.status, miss.headers["x-rewind"]) == (400, "refused")


def test_a_reverse_proxy(live: Proxy, start: Start, stopped: FakeProvider) -> None:
    """In front of a known host, with the lazy strategy, a proxy replays as any other."""
    prompt = new_prompt()
    recorded = record(live, CHAT, prompt)
    options = ["--mode", f"reverse:https://{OPENAI}", "--set", "connection_strategy=lazy"]
    with start(provider=stopped, settings={"mode": "replay"}, options=options, store=live.store) as running:
        for host in (OPENAI, "127.0.0.1"):
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
            body = json.dumps(CHAT.body(prompt, "m1", 100))
            connection.request("POST", CHAT.path, body, {"host": host})
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, recorded.body)
            connection.request("POST", CHAT.path, b"{}")
            assert connection.getresponse().status == 400
            connection.close()
        assert running.sockets.outward(stopped.port) == []


def test_the_count_sees_a_live_call(live: Proxy, stage: Stage) -> None:
    """A proxy that may go live is seen to dial: so the tests above can fail."""
    live.sockets.clear()
    CHAT.once(live, new_prompt())
    assert live.sockets.outward(stage.port) == [f"socket.connect ['127.0.0.1', {stage.port}]"]
