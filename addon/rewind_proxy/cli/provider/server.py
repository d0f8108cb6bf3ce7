"""The fake provider's server: plain HTTP/1.1 and WebSockets on loopback, on a port of its own.

It counts connections and requests, keeps what was asked, and lets a test say how an answer is sent.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, TypeAlias

import zstandard

from rewind_proxy.cli.provider.endpoints import Answer, answer
from rewind_proxy.cli.provider.sockets import SOCKET, ProviderSocket, data_of, plan

HOSTS = ("api.openai.com", "chatgpt.com", "api.anthropic.com", "generativelanguage.googleapis.com")
"""The hosts that the fake provider can stand for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. `number` counts all requests from 1, `nth` those of the same path."""

    number: int
    nth: int
    method: str
    """`SOCKET` for a turn on a WebSocket."""
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    body: bytes
    """As sent, still compressed if it was."""

    def header(self, name: str) -> str:
        """The first value of a header, or the empty string."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def is_model_socket(self) -> bool:
        """Whether it asks for a WebSocket for turns of the Responses API."""
        upgrades = self.method == "GET" and self.header("upgrade").lower() == "websocket"
        return upgrades and self.path.endswith("/responses")

    @property
    def decoded(self) -> bytes:
        """The body without its content encoding; as it came where that is unknown or damaged."""
        with contextlib.suppress(zlib.error, zstandard.ZstdError):
            match self.header("content-encoding"):
                case "gzip":
                    return zlib.decompress(self.body, wbits=31)
                case "zstd":
                    return zstandard.ZstdDecompressor().decompressobj().decompress(self.body)
        return self.body


class Exchange:
    """A request and the answer it is about to get: a behaviour sends it whole, otherwise, or in part."""

    def __init__(self, request: Request, planned: Answer, connection: _Connection) -> None:
        self.request = request
        self.answer = planned
        self._connection = connection

    def send(self, delay: float = 0.0) -> None:
        """Send the answer as planned, with `delay` seconds before each event but the first."""
        if self.request.is_model_socket:
            self._connection.speak(self.request)
            return
        if not self.answer.streamed:
            (body,) = self.answer.chunks
            self.whole(self.answer.status, self.answer.content_type, body, self.answer.headers)
            return
        self.head(self.answer.status, [("transfer-encoding", "chunked")])
        for index, chunk in enumerate(self.answer.chunks):
            if index and delay:
                time.sleep(delay)
            self.chunk(chunk)
        self.end()

    def whole(
        self, status: int, content_type: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Send a complete answer with a length."""
        self._connection.send_response(status)
        for name, value in (
            ("content-type", content_type),
            *headers,
            ("content-length", str(len(body))),
        ):
            self._connection.send_header(name, value)
        self._connection.end_headers()
        if self.request.method != "HEAD":
            self.raw(body)

    def head(self, status: int, extra: list[tuple[str, str]]) -> None:
        """Send the planned headers and `extra`, which says how long the body is or how it is framed."""
        self._connection.send_response(status)
        for name, value in (("content-type", self.answer.content_type), *self.answer.headers, *extra):
            self._connection.send_header(name, value)
        self._connection.end_headers()

    def chunk(self, content: bytes) -> None:
        """Send one chunk of a chunked body."""
        self.raw(b"%x\r\n%s\r\n" % (len(content), content))

    def end(self) -> None:
        """Send the last chunk."""
        self.raw(b"0\r\n\r\n")

    def raw(self, content: bytes) -> None:
        """Send bytes as they are."""
        self._connection.wfile.write(content)

    def close(self) -> None:
        """Close the connection after what was sent."""
        self._connection.close_connection = True

    def stall(self) -> None:
        """Say nothing more until the client leaves or the provider stops."""
        with contextlib.suppress(ConnectionError):  # a client with something unread resets it
            self._connection.connection.recv(1)
        self.close()


class SocketExchange(Exchange):
    """A turn on a WebSocket: its events are frames, without status and headers, and so is an error."""

    def __init__(
        self, request: Request, planned: Answer, connection: _Connection, socket: ProviderSocket
    ) -> None:
        super().__init__(request, planned, connection)
        self.socket = socket

    def whole(
        self,
        status: int,  # noqa: ARG002  # an event says it itself
        content_type: str,  # noqa: ARG002
        body: bytes,
        headers: tuple[tuple[str, str], ...] = (),  # noqa: ARG002
    ) -> None:
        """Send the one event of an answer."""
        self.chunk(body)

    def head(self, status: int, extra: list[tuple[str, str]]) -> None:
        """A frame has no head."""

    def chunk(self, content: bytes) -> None:
        """Send an event."""
        self.socket.send(data_of(content))

    def end(self) -> None:
        """The last event says that it is the last."""


Behaviour: TypeAlias = Callable[[Exchange], None]
"""How an exchange goes, from a provider that answers to one that breaks."""


class FakeProvider:
    """A provider without a model: `with FakeProvider() as provider: … provider.url …`."""

    def __init__(self, behaviour: Behaviour = Exchange.send) -> None:
        self._server = _Server(behaviour)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> Self:
        """Listen, and answer in threads."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection. What was asked can still be read."""
        self._server.shutdown()
        self._server.server_close()
        self._server.close_connections()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def upstream(self) -> str:
        """The setting `upstream` that sends all its hosts here, as a variable or an option takes it."""
        return ",".join(f"{host}={self.url}" for host in HOSTS)

    @property
    def connections(self) -> int:
        """How many connections were accepted."""
        return self._server.connections

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests, in order of arrival."""
        return tuple(self._server.requests)

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """What went wrong in the provider itself; a client that leaves is no failure."""
        return tuple(self._server.failures)

    def asked(self, path: str) -> list[Request]:
        """The requests whose path ends so."""
        return [request for request in self.requests if request.path.endswith(path)]


class _Connection(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        request = self.server.arrived(self.command, path, query, headers, self._read_body())
        planned = answer(request.method, request.path, request.query, request.decoded, request.nth)
        self.server.behaviour(Exchange(request, planned, self))

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST  # noqa: N815 (http.server's names)

    def speak(self, upgrade: Request) -> None:
        """Accept a WebSocket, and answer each of its turns."""
        self.close_connection = True
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        spoken = ProviderSocket(headers, self.path, self.rfile.read1, self.wfile.write)
        spoken.accept()
        for frame in spoken.frames():
            sent = frame.encode() if isinstance(frame, str) else frame
            request = self.server.arrived(SOCKET, upgrade.path, upgrade.query, headers, sent)
            planned = plan(spoken, frame)
            self.server.behaviour(SocketExchange(request, planned, self, spoken))

    def _read_body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", "0")))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return body

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Requests are kept, not printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self._counts: Counter[str] = Counter()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Connection)

    def arrived(
        self, method: str, path: str, query: str, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> Request:
        with self._lock:
            self._counts[path] += 1
            number, nth = len(self.requests) + 1, self._counts[path]
            request = Request(number, nth, method, path, query, headers, body)
            self.requests.append(request)
        return request

    def server_bind(self) -> None:
        # HTTPServer would look up the machine's name here.
        socketserver.TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        with self._lock:
            self.connections += 1
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            with contextlib.suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_connection: object) -> None:
        error = sys.exception()
        if error and not isinstance(error, ConnectionError):
            self.failures.append(error)
