"""Requests over HTTP/2 through a proxy's tunnel, one or many side by side."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import h2.config  # type: ignore[import-untyped]  # version 4.1 has no types
import h2.connection  # type: ignore[import-untyped]
import h2.events  # type: ignore[import-untyped]

from rewind_proxy.canonical.model import JsonObject
from support.client import Got, tunnel
from support.proxies import Proxy


@dataclass(slots=True)
class _Answer:
    """What has come on one stream."""

    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    over: bool = False
    cut: bool = False


def post(
    proxy: Proxy, host: str, path: str, body: JsonObject, headers: Mapping[str, str] | None = None
) -> Got:
    """Send a JSON body over HTTP/2, and read the answer to its end or a cut."""
    [got] = posts(proxy, host, path, [body], headers)
    return got


def posts(
    proxy: Proxy,
    host: str,
    path: str,
    bodies: Sequence[JsonObject],
    headers: Mapping[str, str] | None = None,
    *,
    left: Callable[[], object] | None = None,
) -> list[Got]:
    """Send JSON bodies as streams of one connection, and read each answer to its end or a cut.

    With `left` each stream is reset when its first bytes are there; it is called when all are, before the
    connection is closed.
    """
    status, raw = tunnel(proxy, host, 443)
    assert status == 200
    context = proxy.trust()
    context.set_alpn_protocols(["h2"])
    with raw, context.wrap_socket(raw, server_hostname=host) as connection:
        assert connection.selected_alpn_protocol() == "h2"
        pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", path)]
        fields = [*pseudo, ("content-type", "application/json"), *(headers or {}).items()]
        sent = [json.dumps(body).encode() for body in bodies]
        got = _exchange(connection, fields, sent, leave=left is not None)
        if left is not None:
            left()
        return got


def _exchange(
    connection: ssl.SSLSocket, fields: list[tuple[str, str]], bodies: Sequence[bytes], *, leave: bool
) -> list[Got]:
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    answers: dict[int, _Answer] = {}
    begun = time.monotonic()
    for body in bodies:
        stream = client.get_next_available_stream_id()
        client.send_headers(stream, fields)
        client.send_data(stream, body, end_stream=True)
        answers[stream] = _Answer()
    connection.sendall(client.data_to_send())
    while not all(answer.over for answer in answers.values()):
        try:
            received = connection.recv(1 << 16)
        except (ConnectionError, socket.timeout):  # noqa: UP041  # it says what is meant
            received = b""
        events = client.receive_data(received) if received else [h2.events.ConnectionTerminated()]
        for event in events:
            match event:
                case h2.events.ResponseReceived(headers=found, stream_id=stream):
                    answers[stream].headers.update(dict(found or ()))
                case h2.events.DataReceived(data=data, flow_controlled_length=length, stream_id=stream):
                    answer = answers[stream]
                    answer.parts.append(data or b"")
                    answer.arrivals.append((time.monotonic() - begun, len(data or b"")))
                    if leave and not answer.over:
                        client.reset_stream(stream)
                        answer.over = answer.cut = True
                    elif not answer.over:
                        client.acknowledge_received_data(length or 0, stream)
                case h2.events.StreamEnded(stream_id=stream):
                    answers[stream].over = True
                case h2.events.StreamReset(stream_id=stream):
                    answers[stream].over = answers[stream].cut = True
                case h2.events.ConnectionTerminated():
                    for answer in answers.values():
                        answer.cut = answer.cut or not answer.over
                        answer.over = True
        connection.sendall(client.data_to_send())
    return [
        Got(
            int(answer.headers.get(":status", "0")),
            answer.headers,
            b"".join(answer.parts),
            tuple(answer.arrivals),
            answer.cut,
        )
        for answer in answers.values()
    ]
