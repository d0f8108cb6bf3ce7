"""Noise in tool results that HTTP clients print: ids and counters of single answers, and Rewind's own proxy.

`rewind run` takes a free port each time, which its child's tools then name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.text import folded, places

REQUEST_IDS = (
    "request-id",
    "x-request-id",
    "x-correlation-id",
    "x-trace-id",
    "traceparent",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-amzn-requestid",
    "x-amzn-trace-id",
    "x-amz-request-id",
    "x-amz-id-2",
    "x-amz-cf-id",
    "x-ms-request-id",
    "x-cloud-trace-context",
    "x-github-request-id",
    "x-goog-request-id",
    "x-vercel-id",
    "x-nf-request-id",
    "fly-request-id",
    "cf-ray",
    "x-timer",
)
"""Headers whose value is another with each answer."""
COUNTERS = (
    "ratelimit-remaining",
    "ratelimit-used",
    "ratelimit-reset",
    "x-runtime",
    "x-response-time",
    "x-envoy-upstream-service-time",
)
"""Headers with what is left of a limit, or how long an answer took."""

_PROXY_VARIABLES = ("https_proxy", "http_proxy", "all_proxy", "https-proxy")
PROXY_WORDS = frozenset(_PROXY_VARIABLES)
"""One of these stands in every text that names a proxy by its variable, in lower case."""
_LOCAL = r"(?:127\.0\.0\.1|localhost|\[::1\]|host\.docker\.internal)"
# Ports that Linux gives to those who ask for any, others give higher ones. A port in a setting is lower.
_EPHEMERAL = "(?:3276[89]|327[7-9][0-9]|32[89][0-9]{2}|3[3-9][0-9]{3}|[4-6][0-9]{4})"
_PROXY = re.compile(
    r"(?i:(?:https?|all)[_-]proxy)[\"'\\]{0,4}+[ \t]{0,4}+(?:={1,2}|:)[ \t]{0,4}+[\"'\\]{0,4}+"
    rf"((?:https?|socks5h?)://(?:[^\s@/\"'\\]{{1,200}}@)?{_LOCAL}:(?P<port>{_EPHEMERAL}))(?![0-9])",
    re.ASCII,
)
# How curl and others name it afterwards.
_CALLED = re.compile(r"(?:127\.0\.0\.1:|localhost:|port )([0-9]{2,5})(?![0-9])", re.ASCII)


def proxy_spans(text: str) -> Iterator[tuple[int, int]]:
    """The proxy on this machine that a variable names, and its port wherever the text goes on to name it."""
    lower = folded(text)
    ports: dict[str, int] = {}
    for word in _PROXY_VARIABLES:
        for at in places(lower, word):
            if found := _PROXY.match(text, at):
                yield found.span(1)
                ports[found["port"]] = min(found.end(), ports.get(found["port"], found.end()))
    if ports:
        for called in _CALLED.finditer(text):
            if called.start() >= ports.get(called[1], len(text)):
                yield called.span(1)
