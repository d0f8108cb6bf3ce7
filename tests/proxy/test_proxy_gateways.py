"""Traffic that does not go to a provider's own address: `rewind_upstream` and `rewind_hosts`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy import h2_client
from proxy.calls import CHAT, CHAT_PATH, CHAT_SSE, GEMINI, GENERATE_SSE, OPENAI, new_prompt
from proxy.conftest import Stage
from proxy.looking import record, recorded, steps_of, until
from rewind_proxy.cli.provider import FakeProvider
from support.client import Client
from support.proxies import Proxy, proxy

CORPORATE = "llm.corp.example"


class Behind(NamedTuple):
    """A proxy whose hosts are all somewhere else, and the gateways."""

    proxy: Proxy
    url: str
    local: FakeProvider
    """Known as `localhost:PORT`, plain HTTP."""


@pytest.fixture(scope="module")
def _behind(
    offline: Proxy, _the_stage: Stage, tmp_path_factory: pytest.TempPathFactory, confdir: Path
) -> Iterator[Behind]:
    with FakeProvider() as local:
        settings = {
            "hosts": [f"localhost:{local.port}=chat_completions", f"{CORPORATE}=chat_completions"],
            "upstream": [
                f"{GEMINI}={_the_stage.url}/gateway/v9/",
                f"{OPENAI}={_the_stage.url}/gateway",
                f"{CORPORATE}={_the_stage.url}",
            ],
        }
        folder = tmp_path_factory.mktemp("behind")
        with proxy(folder, confdir, settings=settings, store=offline.store) as running:
            yield Behind(running, _the_stage.url, local)


@pytest.fixture
def behind(_behind: Behind, stage: Stage) -> Behind:
    """The proxy; the gateways answer as `stage` does."""
    return _behind


def test_a_base_url_may_have_a_path(behind: Behind, offline: Proxy, stage: Stage) -> None:
    """The client's path and query come after it; what is recorded belongs to the original host."""
    prompt = new_prompt()
    got = GENERATE_SSE.once(behind.proxy, prompt)
    [cassette] = recorded(offline.store, prompt)
    [request] = stage.heard(prompt)
    assert request.path == "/gateway/v9/v1beta/models/m1:streamGenerateContent"
    assert request.query == "alt=sse"
    assert request.header("host") == f"127.0.0.1:{stage.port}"
    path = "/v1beta/models/m1:streamGenerateContent"
    assert (cassette.request.host, cassette.request.path) == (GEMINI, path)
    until(lambda: "POST https://generativelanguage.googleapis.com/v1" in behind.proxy.child.output)
    assert GENERATE_SSE.once(offline, prompt).body == got.body


def test_what_was_recorded_without_a_gateway_answers_behind_one(live: Proxy, behind: Behind) -> None:
    """Fingerprints keep the original host, wherever its traffic goes."""
    prompt = new_prompt()
    recording = record(live, CHAT, prompt)
    got = CHAT.once(behind.proxy, prompt)
    assert (got.headers["x-rewind-tier"], got.body) == ("exact", recording.body)


def test_a_gateway_may_stand_for_a_host_of_ones_own(behind: Behind, offline: Proxy, stage: Stage) -> None:
    """`rewind_hosts` and `rewind_upstream` together: a company's name, decrypted and sent elsewhere."""
    prompt = new_prompt()
    with Client(behind.proxy, CORPORATE) as client:
        assert CHAT.send(client, prompt).headers["x-rewind"] == "recording"
        recorded(offline.store, prompt)
        assert CHAT.send(client, prompt).headers["x-rewind"] == "replayed"
    assert len(stage.heard(prompt)) == 1


def test_a_gateway_on_localhost_is_recorded_and_replayed(behind: Behind, stage: Stage) -> None:
    """A plain-HTTP gateway is known by host and port; other ports of the host are not."""
    prompt, session, port = new_prompt(), new_prompt(), behind.local.port
    with Client(behind.proxy, "localhost", tls=False, port=port) as client:
        recording = CHAT_SSE.send(client, prompt, headers={"x-rewind-session": session})
        [step] = steps_of(behind.proxy.store, session)
    assert (step.host, step.wire, step.tier) == (f"localhost:{port}", "chat_completions", "recorded")
    with Client(behind.proxy, "localhost", tls=False, port=stage.port) as client:
        assert "x-rewind" not in CHAT_SSE.send(client, prompt).headers
    behind.local.stop()
    behind.proxy.sockets.clear()
    with Client(behind.proxy, "localhost", tls=False, port=port) as client:
        got = CHAT_SSE.send(client, prompt)
        assert CHAT_SSE.send(client, new_prompt(), headers={"x-rewind-mode": "replay"}).status == 400
    assert (got.headers["x-rewind"], got.body) == ("replayed", recording.body)
    assert behind.proxy.sockets.outward(port) == []


def test_a_body_that_only_http2_framed_gets_a_length(live: Proxy, stage: Stage) -> None:
    """A client may leave `content-length` out over HTTP/2; the gateway gets the body all the same."""
    prompt = new_prompt()
    assert h2_client.post(live, OPENAI, CHAT_PATH, CHAT.body(prompt, "m1", 100)).status == 200
    [request] = stage.heard(prompt)
    assert request.header("content-length") == str(len(request.body))


def test_a_chunked_body_arrives_whole(live: Proxy, stage: Stage) -> None:
    """So does one whose length nobody knew at its start."""
    prompt = new_prompt()
    body = b'{"model":"m1","messages":[{"role":"user","content":"%s"}]}' % prompt.encode()
    with socket.create_connection(("127.0.0.1", live.port), timeout=15) as client:
        head = f"POST http://{OPENAI}{CHAT_PATH} HTTP/1.1\r\nHost: {OPENAI}\r\n"
        client.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body))
        client.sendall(body + b"\r\n0\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert stage.heard(prompt)[0].body == body
