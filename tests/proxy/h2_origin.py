"""A provider that speaks HTTP/2: a stream of events to each request, which may not end by itself."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

import h2.config  # type: ignore[import-untyped]  # version 4.1 has no types
import h2.connection  # type: ignore[import-untyped]
import h2.events  # type: ignore[import-untyped]

EVENTS = tuple(b'data: {"choices": [], "n": %d}\n\n' % number for number in range(4))
ENDLESS, SLOW = "Never end.", "End in a second."
"""Words of a prompt: what becomes of the stream that answers it. Others end at once."""


class H2Provider:
    """Serves a connection; knows how many it has had."""

    def __init__(self) -> None:
        self.connections = 0

    def serve(self, connection: socket.socket) -> None:
        """Answer each stream of a connection, until the other side leaves."""
        self.connections += 1
        server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        server.initiate_connection()
        asked: dict[int, bytes] = {}
        due: dict[int, float] = {}
        connection.settimeout(0.05)
        while True:
            for stream in [each for each, at in due.items() if at <= time.monotonic()]:
                del due[stream]
                server.end_stream(stream)
            connection.sendall(server.data_to_send())
            received = b""
            with suppress(TimeoutError):
                received = connection.recv(1 << 16)
                if not received:
                    return
            for event in server.receive_data(received):
                match event:
                    case h2.events.DataReceived(data=data, flow_controlled_length=length, stream_id=stream):
                        asked[stream] = asked.get(stream, b"") + data
                        server.acknowledge_received_data(length, stream)
                    case h2.events.StreamEnded(stream_id=stream):
                        server.send_headers(
                            stream, [(":status", "200"), ("content-type", "text/event-stream")]
                        )
                        for told in EVENTS:
                            server.send_data(stream, told)
                        if ENDLESS.encode() not in asked[stream]:
                            due[stream] = time.monotonic() + (1 if SLOW.encode() in asked[stream] else 0)
                    case h2.events.StreamReset(stream_id=stream):
                        due.pop(stream, None)
