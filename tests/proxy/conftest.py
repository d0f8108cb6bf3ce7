"""Proxies that run for the whole session, for tests that need no special ones, and a provider to direct."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlencode

import pytest

from proxy import control
from proxy.calls import Ask
from rewind_proxy.cli.provider import Behaviour, Exchange, FakeProvider, Request
from support.client import Client, Got
from support.proxies import Proxy, proxy

CONTROL = ("-s", str(Path(control.__file__)))
"""The arguments that load the script of `control`."""


class Stage:
    """A provider whose behaviour each test sets; it answers well until then."""

    def __init__(self) -> None:
        self.behaviour: Behaviour = Exchange.send
        self.provider = FakeProvider(self._behave)
        self._planned: dict[int, bytes] = {}

    def _behave(self, exchange: Exchange) -> None:
        self._planned[exchange.request.number] = b"".join(exchange.answer.chunks)
        self.behaviour(exchange)

    @property
    def url(self) -> str:
        """Its base URL."""
        return self.provider.url

    @property
    def port(self) -> int:
        """Its port."""
        return self.provider.port

    def heard(self, text: str) -> list[Request]:
        """The requests whose body holds a text."""
        return [request for request in self.provider.requests if text.encode() in request.decoded]

    def said(self, text: str) -> bytes:
        """The whole answer to the last request whose body holds a text."""
        return self._planned[self.heard(text)[-1].number]


@pytest.fixture(scope="session")
def _the_stage() -> Iterator[Stage]:
    stage = Stage()
    with stage.provider:
        yield stage


@pytest.fixture
def stage(_the_stage: Stage) -> Iterator[Stage]:
    """The provider of `live`."""
    before = len(_the_stage.provider.failures)
    yield _the_stage
    _the_stage.behaviour = Exchange.send
    assert _the_stage.provider.failures[before:] == ()


@pytest.fixture(scope="session")
def stopped() -> FakeProvider:
    """A provider that was stopped: its port is closed."""
    with FakeProvider() as provider:
        pass
    return provider


@pytest.fixture(scope="session")
def _live_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="session")
def _the_live_proxy(_the_stage: Stage, _live_folder: Path, confdir: Path) -> Iterator[Proxy]:
    with proxy(_live_folder, confdir, provider=_the_stage.provider, options=CONTROL) as running:
        yield running


@pytest.fixture
def live(_the_live_proxy: Proxy, stage: Stage) -> Proxy:
    """A proxy in mode `auto` before the provider of `stage`."""
    return _the_live_proxy


@pytest.fixture(scope="session")
def offline(
    _the_live_proxy: Proxy, stopped: FakeProvider, tmp_path_factory: pytest.TempPathFactory, confdir: Path
) -> Iterator[Proxy]:
    """A proxy in mode `replay` on the store of `live`. Where the provider would be, nobody listens."""
    with proxy(
        tmp_path_factory.mktemp("offline"),
        confdir,
        provider=stopped,
        settings={"mode": "replay"},
        options=CONTROL,
        store=_the_live_proxy.store,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def _serving(tmp_path_factory: pytest.TempPathFactory, _the_stage: Stage, confdir: Path) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("serving")
    settings = {"socket": "serve"}
    with proxy(folder, confdir, provider=_the_stage.provider, settings=settings, options=CONTROL) as running:
        yield running


@pytest.fixture
def serving(_serving: Proxy, stage: Stage) -> Proxy:
    """A proxy before the provider of `stage`, in mode `auto` until a test changes that."""
    tell(_serving, "set", "rewind_mode", "auto")
    return _serving


class Start(Protocol):
    """Starts proxies of one test: each in a folder of its own, all on one store unless told otherwise."""

    def __call__(
        self,
        *,
        provider: FakeProvider | None = None,
        settings: Mapping[str, str | Sequence[str]] | None = None,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        store: Path | None = None,
        tool: Literal["script", "proxy", "dump"] = "script",
    ) -> AbstractContextManager[Proxy]:
        """As `support.proxies.proxy`."""
        ...


@pytest.fixture
def start(tmp_path: Path, confdir: Path) -> Start:
    """Starts proxies for this test."""
    numbers = count(1)

    def start(
        *,
        provider: FakeProvider | None = None,
        settings: Mapping[str, str | Sequence[str]] | None = None,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        store: Path | None = None,
        tool: Literal["script", "proxy", "dump"] = "script",
    ) -> AbstractContextManager[Proxy]:
        folder = tmp_path / f"proxy-{next(numbers)}"
        folder.mkdir()
        return proxy(
            folder,
            confdir,
            provider=provider,
            settings=settings,
            options=options,
            variables=variables,
            store=store or tmp_path / ".rewind" / "store",
            tool=tool,
        )

    return start


class Stream:
    """An answer that is waited for when it is first looked at, and read as it comes."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection

    @cached_property
    def _response(self) -> http.client.HTTPResponse:
        return self._connection.getresponse()

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        return {name.lower(): value for name, value in self._response.getheaders()}

    def read(self) -> bytes:
        """What has arrived, once there is something; nothing at the end."""
        return self._response.read1(1 << 16)

    def read_to(self, end: bytes) -> bytes:
        """Everything up to some bytes that the answer has."""
        got = b""
        while not got.endswith(end):
            piece = self.read()
            assert piece, f"the answer ended after {got!r}"
            got += piece
        return got

    def close(self) -> None:
        """Leave, whatever is still to come."""
        if "_response" in self.__dict__:
            self._response.close()
        self._connection.close()


@contextmanager
def streaming(
    running: Proxy, ask: Ask, prompt: str, headers: Mapping[str, str] | None = None
) -> Iterator[Stream]:
    """Ask, and read the answer as it comes; at the end the client leaves, whatever is still to come."""
    connection = http.client.HTTPSConnection("127.0.0.1", running.port, context=running.trust(), timeout=30)
    connection.set_tunnel(ask.host, 443)
    stream = Stream(connection)
    try:
        body = json.dumps(ask.body(prompt, "m1", 100))
        connection.request("POST", ask.path.format(model="m1"), body, dict(headers or {}))
        yield stream
    finally:
        stream.close()


def tell(running: Proxy, what: str, name: str, value: str) -> Got:
    """Ask the control script of a proxy for something."""
    with Client(running, control.HOST, tls=False) as client:
        return client.get(f"/{what}?{urlencode({name: value})}")
