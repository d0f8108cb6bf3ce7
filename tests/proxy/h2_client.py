"""One request over HTTP/2 through a proxy's tunnel."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Mapping

import h2.config  # type: ignore[import-untyped]  # version 4.1 has no types
import h2.connection  # type: ignore[import-untyped]
import h2.events  # type: ignore[import-untyped]

from rewind_proxy.canonical.model import JsonObject
from support.client import Got, tunnel
from support.proxies import Proxy


def post(
    proxy: Proxy, host: str, path: str, body: JsonObject, headers: Mapping[str, str] | None = None
) -> Got:
    """Send a JSON body over HTTP/2, and read the answer to its end or a cut."""
    status, raw = tunnel(proxy, host, 443)
    assert status == 200
    context = proxy.trust()
    context.set_alpn_protocols(["h2"])
    with raw, context.wrap_socket(raw, server_hostname=host) as connection:
        assert connection.selected_alpn_protocol() == "h2"
        return _exchange(connection, host, path, json.dumps(body).encode(), dict(headers or {}))


def _exchange(
    connection: ssl.SSLSocket, host: str, path: str, body: bytes, headers: Mapping[str, str]
) -> Got:
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    stream = client.get_next_available_stream_id()
    pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", path)]
    client.send_headers(stream, [*pseudo, ("content-type", "application/json"), *headers.items()])
    client.send_data(stream, body, end_stream=True)
    connection.sendall(client.data_to_send())
    answer: dict[str, str] = {}
    parts: list[bytes] = []
    while True:
        try:
            received = connection.recv(1 << 16)
        except (ConnectionError, socket.timeout):  # noqa: UP041  # it says what is meant
            received = b""
        if not received:
            return _got(answer, parts, cut=True)
        for event in client.receive_data(received):
            match event:
                case h2.events.ResponseReceived(headers=fields):
                    answer.update(dict(fields or ()))
                case h2.events.DataReceived(data=data, flow_controlled_length=length):
                    parts.append(data or b"")
                    client.acknowledge_received_data(length or 0, stream)
                case h2.events.StreamEnded():
                    return _got(answer, parts, cut=False)
                case h2.events.StreamReset() | h2.events.ConnectionTerminated():
                    return _got(answer, parts, cut=True)
        connection.sendall(client.data_to_send())


def _got(headers: Mapping[str, str], parts: list[bytes], *, cut: bool) -> Got:
    return Got(int(headers.get(":status", "0")), headers, b"".join(parts), (), cut)
