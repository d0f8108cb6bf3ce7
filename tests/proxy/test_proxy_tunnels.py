"""Hosts that Rewind does not know pass untouched, in every mode, and are listed; or they are kept out."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy.calls import CHAT, CHAT_PATH, OPENAI, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import recorded
from proxy.origins import CorporateProxy, Identity, echo, origin, through_tls
from rewind_proxy.cli.provider import FakeProvider
from support.client import Client, tunnel
from support.proxies import Proxy, proxy


class Foreign(NamedTuple):
    """A TLS server of a host that nobody knows."""

    identity: Identity
    port: int


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    """A server that echoes, with a certificate of its own CA for `localhost`."""
    identity = Identity.make(tmp_path_factory.mktemp("ca") / "own", "localhost")
    with origin(echo, identity) as port:
        yield Foreign(identity, port)


@pytest.mark.parametrize("which", ["live", "offline"])
def test_tls_to_an_unknown_host_is_its_own(
    request: pytest.FixtureRequest, foreign: Foreign, which: str
) -> None:
    """The origin's certificate arrives, in replay too: git, pip and npm work without our CA."""
    running: Proxy = request.getfixturevalue(which)
    got = through_tls(running, "localhost", foreign.port, foreign.identity.trust(), b"hello")
    assert got == b"hello"


@pytest.mark.parametrize("which", ["live", "offline"])
def test_a_server_that_speaks_first_is_heard(request: pytest.FixtureRequest, which: str) -> None:
    """SSH through CONNECT works: the connection is opened before the client has said a word."""
    running: Proxy = request.getfixturevalue(which)
    with origin(lambda connection: connection.sendall(b"SSH-2.0-server\r\n")) as port:
        status, connection = tunnel(running, "localhost", port)
        with connection:
            assert (status, connection.recv(100)) == (200, b"SSH-2.0-server\r\n")


def test_what_passed_is_in_the_report(
    start: Start, stopped: FakeProvider, foreign: Foreign, tmp_path: Path
) -> None:
    """Report and summary list each host once, by the name that the client gave."""
    report = tmp_path / "report.json"
    settings = {"mode": "replay", "session": "tunnels"}
    options = ["--report", str(report)]
    with (
        origin(echo) as raw,
        start(provider=stopped, settings=settings, options=options, tool="dump") as running,
    ):
        for _ in range(2):
            through_tls(running, "localhost", foreign.port, foreign.identity.trust(), b"hello")
        _, connection = tunnel(running, "127.0.0.1", raw)
        with connection:
            connection.sendall(b"\x00raw")
            assert connection.recv(100) == b"\x00raw"
        CHAT.once(running, new_prompt())
        ended = running.stop()
    listed = ["localhost", "127.0.0.1"]
    assert json.loads(report.read_text())["tunnelled"] == listed
    assert f"tunnelled {', '.join(listed)}" in ended.output


def test_replay_mode_ends_raw_connections_to_known_hosts(start: Start, stopped: FakeProvider) -> None:
    """What was open when the mode changed goes no further."""
    with origin(echo) as raw:
        settings = {"hosts": f"localhost:{raw}=generic"}
        with start(provider=stopped, settings=settings, options=CONTROL) as running:
            _, connection = tunnel(running, "localhost", raw)
            with connection:
                connection.sendall(b"\x00raw")
                assert connection.recv(100) == b"\x00raw"
                tell(running, "set", "rewind_mode", "replay")
                connection.sendall(b"\x00more")
                assert connection.recv(100) == b""


def test_unknown_hosts_can_be_kept_out(start: Start, stage: Stage, foreign: Foreign) -> None:
    """With `rewind_unknown = refuse` they get 403 that says what to do, and are not dialled."""
    with start(provider=stage.provider, settings={"unknown": "refuse"}) as running:
        status, connection = tunnel(running, "localhost", foreign.port)
        with connection:
            text = connection.recv(1 << 16)
        with Client(running, "example.invalid", tls=False) as client:
            plain = client.post("/x", b"x" * 100_000)
        assert (status, plain.status) == (403, 403)
        for said in (text, plain.body):
            assert b"rewind_unknown = refuse" in said
            assert b"rewind_hosts" in said
        assert running.sockets.outward(foreign.port) == []
        assert CHAT.once(running, new_prompt()).status == 200


def test_plain_http_to_an_unknown_host_is_not_held_back(live: Proxy) -> None:
    """Each piece of request and answer arrives before the next is sent."""
    heard, answered = threading.Semaphore(0), threading.Semaphore(0)

    def serve(connection: socket.socket) -> None:
        got = b""
        for end in (b"one\r\n", b"two\r\n", b"0\r\n\r\n"):
            while not got.endswith(end):
                got += connection.recv(1 << 16)
            heard.release()
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nuno\r\n")
        assert answered.acquire(timeout=15)
        connection.sendall(b"3\r\ndue\r\n0\r\n\r\n")

    with origin(serve) as port, socket.create_connection(("127.0.0.1", live.port), timeout=15) as client:
        target = f"POST http://localhost:{port}/ HTTP/1.1\r\nHost: localhost\r\n"
        client.sendall(target.encode() + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        for piece in (b"3\r\ntwo\r\n", b"0\r\n\r\n"):
            assert heard.acquire(timeout=15)
            client.sendall(piece)
        got = b""
        while not got.endswith(b"uno\r\n"):
            got += client.recv(1 << 16)
        answered.release()
        while not got.endswith(b"0\r\n\r\n"):
            got += client.recv(1 << 16)
    assert b"due" in got


# A corporate proxy


NAMES = (OPENAI, "auth.openai.com", "git.invalid")


class Company(NamedTuple):
    """A proxy beyond ours; it leads names to servers on loopback, and the others nowhere."""

    proxy: CorporateProxy
    identity: Identity
    provider: FakeProvider


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """A corporate proxy that leads OpenAI to a provider with TLS, and two more hosts to one that echoes."""
    identity = Identity.make(tmp_path_factory.mktemp("ca") / "company", *NAMES)
    with FakeProvider() as provider:

        def onward(connection: socket.socket) -> None:
            with socket.create_connection(("127.0.0.1", provider.port)) as plain:
                back = threading.Thread(target=_copy, args=(plain, connection), daemon=True)
                back.start()
                _copy(connection, plain)
                back.join()

        with origin(onward, identity) as secured, origin(echo, identity) as other:
            to = dict(zip(NAMES, (secured, other, other), strict=True))
            with CorporateProxy(to).running() as corporate:
                yield Company(corporate, identity, provider)


def _copy(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(1 << 16):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def test_live_traffic_goes_through_a_corporate_proxy(company: Company, tmp_path: Path, confdir: Path) -> None:
    """Known hosts are decrypted and asked through it; unknown ones and logins pass it with their own TLS."""
    corporate, identity, provider = company
    mode = ["--mode", f"upstream:http://127.0.0.1:{corporate.port}"]
    ca = ["--set", f"ssl_verify_upstream_trusted_ca={identity.ca}"]
    prompt = new_prompt()
    with proxy(tmp_path, confdir, options=[*mode, *ca]) as running:
        got = CHAT.once(running, prompt)
        assert (got.status, got.headers["x-rewind"]) == (200, "recording")
        recorded(running.store, prompt)
        for host in ("git.invalid", "auth.openai.com"):
            assert through_tls(running, host, 443, identity.trust(), b"hello") == b"hello"
        replayed = CHAT.once(running, prompt)
        assert (replayed.headers["x-rewind"], replayed.body) == ("replayed", got.body)
    asked = [head.split()[1] for head in corporate.asked]
    assert asked == [b"api.openai.com:443", b"git.invalid:443", b"auth.openai.com:443"]
    assert len(provider.asked(CHAT_PATH)) == 1


def test_a_login_host_is_refused_by_name_in_replay(offline: Proxy, stopped: FakeProvider) -> None:
    """`auth.openai.com` is decrypted in replay, so that the refusal can say why."""
    offline.sockets.clear()
    with Client(offline, "auth.openai.com") as client:
        got = client.post("/oauth/token", b"grant_type=refresh_token")
    assert got.status == 400
    assert b"POST auth.openai.com/oauth/token is refused in replay mode" in got.body
    assert offline.sockets.outward(stopped.port) == []
