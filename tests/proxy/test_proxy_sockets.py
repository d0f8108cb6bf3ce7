"""WebSockets: model sockets fall back to POST, other sockets pass in live modes and are refused in replay."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy.calls import CHAT, OPENAI, fake_credential, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import steps_of
from rewind_proxy.cli.provider import Exchange, FakeProvider
from support.client import tunnel
from support.proxies import Proxy, proxy

UPGRADE = (
    b"GET %s HTTP/1.1\r\nHost: api.openai.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"x-rewind-session: %s\r\n\r\n"
)
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
CLIENT_SAYS = b"\x81\x82\x00\x00\x00\x00hi"
SERVER_SAYS = b"\x81\x02hi"
"""RFC 6455: one text frame, from the client masked (with zeros)."""
MODEL_SOCKETS = ["/v1/responses", "/backend-api/codex/responses"]


def speaks(exchange: Exchange) -> None:
    """Upgrade, and answer the first frame."""
    exchange.raw(SWITCHED)
    connection = exchange._connection.connection
    if connection.recv(100)[:2] == CLIENT_SAYS[:2]:  # the rest is masked anew by the proxy
        exchange.raw(SERVER_SAYS)
    exchange.stall()


@pytest.fixture(scope="module")
def _switchable(
    tmp_path_factory: pytest.TempPathFactory, _the_stage: Stage, confdir: Path
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("sockets")
    with proxy(folder, confdir, provider=_the_stage.provider, options=CONTROL) as running:
        yield running


@pytest.fixture
def switchable(_switchable: Proxy, stage: Stage) -> Proxy:
    """A proxy whose mode the tests change; its provider speaks on sockets."""
    stage.behaviour = speaks
    return _switchable


class Upgraded(NamedTuple):
    """The answer to an upgrade."""

    status: int
    outcome: str | None
    """`x-rewind`."""
    body: bytes
    """What came instead of a socket, or on the socket after a frame of ours."""


def upgrade(running: Proxy, path: str, session: str) -> Upgraded:
    """Ask for a WebSocket, and say something on it if there is one."""
    _, raw = tunnel(running, OPENAI, 443)
    with raw, running.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
        connection.sendall(UPGRADE % (path.encode(), session.encode()))
        response = HTTPResponse(connection)
        response.begin()
        body = response.read()
        if response.status == 101:
            connection.sendall(CLIENT_SAYS)
            body = connection.recv(100)
        return Upgraded(response.status, response.getheader("x-rewind"), body)


@pytest.mark.parametrize("mode", ["auto", "record", "replay"])
@pytest.mark.parametrize("path", MODEL_SOCKETS)
def test_a_model_socket_is_sent_back_to_post(switchable: Proxy, stage: Stage, mode: str, path: str) -> None:
    """426 at once: the client falls back to POST within the same turn; the provider hears nothing."""
    assert tell(switchable, "set", "rewind_mode", mode).status == 200
    heard, session = len(stage.provider.requests), new_prompt()
    got = upgrade(switchable, path, session)
    assert (got.status, got.outcome) == (426, "refused")
    assert b"send the request by POST instead" in got.body
    assert len(stage.provider.requests) == heard
    [step] = steps_of(switchable.store, session)
    assert (step.cls, step.tier, step.status) == ("socket", "miss", 426)


@pytest.mark.parametrize("path", MODEL_SOCKETS)
def test_passthrough_lets_a_model_socket_pass(switchable: Proxy, path: str) -> None:
    """Frames go both ways; the answer to the upgrade is the provider's, and says that it passed."""
    tell(switchable, "set", "rewind_mode", "passthrough")
    assert upgrade(switchable, path, new_prompt()) == (101, "passed", SERVER_SAYS)


@pytest.mark.parametrize("mode", ["auto", "record", "passthrough"])
def test_other_sockets_pass_in_live_modes(switchable: Proxy, stage: Stage, mode: str) -> None:
    """A realtime socket is not ours to keep, and not ours to break."""
    tell(switchable, "set", "rewind_mode", mode)
    session = new_prompt()
    assert upgrade(switchable, "/v1/realtime?model=m1", session) == (101, "passed", SERVER_SAYS)
    assert not any(name.startswith("x-rewind") for name, _ in stage.provider.requests[-1].headers)
    [step] = steps_of(switchable.store, session)
    assert (step.cls, step.tier, step.status) == ("socket", "passed", 101)


@pytest.mark.parametrize("read", ["true", "false"], ids=["frames", "bytes"])
@pytest.mark.parametrize(("mode", "path"), [("auto", "/v1/realtime"), ("passthrough", "/v1/responses")])
def test_replay_mode_ends_a_socket_that_passes(
    switchable: Proxy, stage: Stage, mode: str, path: str, read: str
) -> None:
    """A frame on a socket that was open when the mode changed would be a live call.

    With mitmproxy's option `websocket=false` a socket is raw TCP to it.
    """
    tell(switchable, "set", "websocket", read)
    heard: list[bytes] = []

    def listens(exchange: Exchange) -> None:
        exchange.raw(SWITCHED)
        while data := exchange._connection.connection.recv(100):
            heard.append(data)
            exchange.raw(SERVER_SAYS)

    stage.behaviour = listens
    tell(switchable, "set", "rewind_mode", mode)
    _, raw = tunnel(switchable, OPENAI, 443)
    with raw, switchable.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
        connection.sendall(UPGRADE % (path.encode(), b"s"))
        while b"\r\n\r\n" not in connection.recv(1 << 16):
            pass
        connection.sendall(CLIENT_SAYS)
        assert connection.recv(100) == SERVER_SAYS
        tell(switchable, "set", "rewind_mode", "replay")
        connection.sendall(CLIENT_SAYS)
        rest = b"".join(iter(lambda: connection.recv(100), b""))
    tell(switchable, "set", "websocket", "true")
    assert SERVER_SAYS not in rest
    assert len(heard) == 1


def test_a_socket_is_opened_with_the_providers_headers(start: Start, tmp_path: Path) -> None:
    """Its cookies go to the client as they are; what is saved of the flow is masked."""
    cookie, saved = f"Set-Cookie: session={fake_credential()}\r\n".encode(), tmp_path / "flows"

    def accepts(exchange: Exchange) -> None:
        exchange.raw(SWITCHED.replace(b"\r\n\r\n", b"\r\n" + cookie + b"\r\n"))
        exchange.stall()

    with FakeProvider(accepts) as provider, start(provider=provider, options=["-w", str(saved)]) as running:
        _, raw = tunnel(running, OPENAI, 443)
        with raw, running.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
            connection.sendall(UPGRADE % (b"/v1/realtime", b"s"))
            assert cookie in connection.recv(1 << 16)
        running.stop()
    assert b"/v1/realtime" in saved.read_bytes()
    assert cookie.split()[1] not in saved.read_bytes()


def test_other_sockets_are_refused_in_replay(switchable: Proxy, stage: Stage) -> None:
    """A realtime socket has no recording: 400, in the provider's error JSON."""
    tell(switchable, "set", "rewind_mode", "replay")
    heard = len(stage.provider.requests)
    got = upgrade(switchable, "/v1/realtime?model=m1", new_prompt())
    assert (got.status, got.outcome) == (400, "refused")
    assert b"rewind: no recording. This WebSocket cannot be replayed" in got.body
    assert len(stage.provider.requests) == heard


def test_after_a_426_the_connection_still_works(live: Proxy) -> None:
    """The client may send its POST on the connection that it asked for a socket on."""
    _, raw = tunnel(live, OPENAI, 443)
    with raw, live.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
        connection.sendall(UPGRADE % (b"/v1/responses", b"s"))
        while b"}}" not in connection.recv(1 << 16):
            pass
        body = b'{"model":"m1","input":"%s"}' % new_prompt().encode()
        head = b"POST /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_session_goes_on_after_a_426(live: Proxy) -> None:
    """The session goes on with POST, and is recorded as if nobody had asked for a socket."""
    prompt, session = new_prompt(), new_prompt()
    upgrade(live, "/v1/responses", session)
    got = CHAT.once(live, prompt, headers={"x-rewind-session": session})
    steps = steps_of(live.store, session, 2)
    assert [step.cls for step in steps] == ["socket", "model"]
    assert got.headers["x-rewind"] == "recording"
