"""The floor of the proxy benches: a mitmproxy add-on that answers a fixed 200, or passes to a fixed address.

Loaded by a stock `mitmdump -s`; `BENCH_UPSTREAM=host:port` makes it pass, unbuffered.
"""

from __future__ import annotations

import os

from mitmproxy import http

BODY = b'data: {"type":"response.completed","response":{"status":"completed"}}\n\n'
_UPSTREAM = os.environ.get("BENCH_UPSTREAM", "")


def request(flow: http.HTTPFlow) -> None:
    """Answer, or send on."""
    if not _UPSTREAM:
        flow.response = http.Response.make(200, BODY, {"content-type": "text/event-stream"})
        return
    host, _, port = _UPSTREAM.partition(":")
    flow.request.scheme, flow.request.host, flow.request.port = "http", host, int(port)


def responseheaders(flow: http.HTTPFlow) -> None:
    """Pass the body as it comes."""
    if flow.response is not None and _UPSTREAM:
        flow.response.stream = True
