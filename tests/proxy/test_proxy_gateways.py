"""Traffic that does not go to a provider's own address: `rewind_upstream` and `rewind_hosts`."""

from __future__ import annotations

import socket

import pytest

from proxy.calls import CHAT, CHAT_PATH, CHAT_SSE, GENERATE_SSE, OPENAI, new_prompt
from proxy.conftest import Stage, Start
from proxy.looking import record, recorded, steps_of
from rewind_proxy.cli.provider import FakeProvider
from support.client import Client
from support.proxies import Proxy


def test_a_base_url_may_have_a_path(start: Start, offline: Proxy, stage: Stage) -> None:
    """The client's path and query come after it; what is recorded belongs to the original host."""
    settings = {"upstream": [f"generativelanguage.googleapis.com={stage.url}/gateway/v9/"]}
    prompt = new_prompt()
    with start(settings=settings, store=offline.store) as running:
        got = GENERATE_SSE.once(running, prompt)
        [cassette] = recorded(running.store, prompt)
        ended = running.stop()
    [request] = stage.heard(prompt)
    assert request.path == "/gateway/v9/v1beta/models/m1:streamGenerateContent"
    assert request.query == "alt=sse"
    assert request.header("host") == f"127.0.0.1:{stage.port}"
    assert (cassette.request.host, cassette.request.path) == (
        "generativelanguage.googleapis.com",
        "/v1beta/models/m1:streamGenerateContent",
    )
    assert "POST https://generativelanguage.googleapis.com/v1" in ended.output
    assert GENERATE_SSE.once(offline, prompt).body == got.body


def test_what_a_gateway_gave_answers_for_the_host(live: Proxy, start: Start, stage: Stage) -> None:
    """A recording made without a gateway hits behind one."""
    prompt = new_prompt()
    recording = record(live, CHAT, prompt)
    settings = {"upstream": [f"{OPENAI}={stage.url}/gateway"]}
    with start(settings=settings, store=live.store) as running:
        got = CHAT.once(running, prompt)
    assert (got.headers["x-rewind-tier"], got.body) == ("exact", recording.body)


def test_a_failing_request_goes_to_the_gateway_too(start: Start, stopped: FakeProvider) -> None:
    """With a gateway nothing goes to the provider's own address, whatever happens."""
    with start(provider=stopped) as running:
        assert CHAT.once(running, new_prompt()).status == 502
        assert running.sockets.outward() == []


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_gateway_on_localhost_is_recorded_and_replayed(start: Start, name: str) -> None:
    """A plain-HTTP gateway is known by host and port; other ports of the host are not."""
    prompt = new_prompt()
    with FakeProvider() as provider, FakeProvider() as other:
        settings = {"hosts": f"{name}:{provider.port}=chat_completions", "session": "gateway"}
        with start(settings=settings) as running:
            with Client(running, name, tls=False, port=provider.port) as client:
                recording = CHAT_SSE.send(client, prompt)
            with Client(running, name, tls=False, port=other.port) as client:
                assert "x-rewind" not in CHAT_SSE.send(client, prompt).headers
            [step] = steps_of(running.store, "gateway")
            assert (step.host, step.wire, step.tier) == (
                f"{name}:{provider.port}",
                "chat_completions",
                "recorded",
            )
        asked = len(provider.requests)
    with start(settings={**settings, "mode": "replay"}) as running:
        with Client(running, name, tls=False, port=provider.port) as client:
            got = CHAT_SSE.send(client, prompt)
            assert CHAT_SSE.send(client, new_prompt()).status == 400
        assert (got.headers["x-rewind"], got.body) == ("replayed", recording.body)
        assert running.sockets.outward(provider.port) == []
    assert len(provider.requests) == asked


def test_a_gateway_may_stand_for_a_host_of_ones_own(start: Start, stage: Stage) -> None:
    """`rewind_hosts` and `rewind_upstream` together: a company's name, decrypted and sent elsewhere."""
    settings = {
        "hosts": "llm.corp.example=chat_completions",
        "upstream": [f"llm.corp.example={stage.url}"],
    }
    prompt = new_prompt()
    with start(settings=settings) as running, Client(running, "llm.corp.example") as client:
        assert CHAT.send(client, prompt).headers["x-rewind"] == "recording"
        recorded(running.store, prompt)
        assert CHAT.send(client, prompt).headers["x-rewind"] == "replayed"
    assert len(stage.heard(prompt)) == 1


def test_a_body_without_a_length_gets_one(live: Proxy, stage: Stage) -> None:
    """A chunked request arrives whole, whatever framing it came in."""
    prompt = new_prompt()
    body = b'{"model":"m1","messages":[{"role":"user","content":"%s"}]}' % prompt.encode()
    with socket.create_connection(("127.0.0.1", live.port), timeout=15) as client:
        head = f"POST http://{OPENAI}{CHAT_PATH} HTTP/1.1\r\nHost: {OPENAI}\r\n"
        client.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body))
        client.sendall(body + b"\r\n0\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert stage.heard(prompt)[0].body == body
