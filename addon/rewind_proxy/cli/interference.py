"""Variables that lead a client past Rewind, or the proxy itself astray."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from rewind_proxy.cli.child_environment import (
    is_address,
    overriding_variables,
    split_no_proxy,
    upstream_proxy,
)
from rewind_proxy.errors import SettingsError
from rewind_proxy.wire.hosts import HostTable

BASE_URL_VARIABLES = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "AZURE_OPENAI_ENDPOINT",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
    "CODE_ASSIST_ENDPOINT",
    "COPILOT_PROVIDER_BASE_URL",
)
"""Where a client may have been told to call another host than its provider's."""

_TIMEOUT = 2.0


def interference(hosts: HostTable, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What gets in the way of a proxy and its clients, each with the next step."""
    yield from _no_proxy(hosts, environ)
    yield from _overriding(environ)
    yield from _base_urls(hosts, environ)
    yield from upstream_problems(environ)
    yield from _unsafe_node(environ)


def _no_proxy(hosts: HostTable, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    _, hiding = split_no_proxy(environ, hosts.patterns())
    for entry, hidden in hiding.items():
        detail = f"NO_PROXY: {entry!r} hides {', '.join(hidden)}"
        yield detail, "`rewind run` and `rewind env` leave it out; take it out for other clients"


def _overriding(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in overriding_variables(environ):
        yield f"{name} goes before HTTPS_PROXY for some clients", "`rewind run` and `rewind env` unset it"


def _base_urls(hosts: HostTable, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in BASE_URL_VARIABLES:
        if not (value := environ.get(name, "").strip()):
            continue
        try:
            url = urlsplit(value)
            host, port = url.hostname or "", url.port or (80 if url.scheme == "http" else 443)
        except ValueError:
            host = ""
        if not host:
            yield f"{name} is not a URL", "correct it or unset it"
        elif hosts.find(host, port) is None:
            place = host if url.port is None else f"{host}:{port}"
            next_step = f'add it: hosts = ["{place}=chat_completions"] in rewind.toml (or its wire format)'
            yield f"{name} leads to {place}, which Rewind does not know", next_step


def upstream_problems(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Why the proxy that is set already could not take live calls: one of this machine that is not there."""
    try:
        url = upstream_proxy(environ)
    except SettingsError as error:
        yield str(error), "live calls would not go through it"
        return
    if url is None:
        return
    parts = urlsplit(url)
    if is_loopback(parts.hostname or "") and not _listens(parts.hostname or "", parts.port or 80):
        detail = f"the proxy set here ({parts.hostname}:{parts.port}) does not answer"
        next_step = 'start it, or `eval "$(rewind env --unset)"`: live calls would go through it'
        yield detail, next_step


def _unsafe_node(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if environ.get("NODE_TLS_REJECT_UNAUTHORIZED") == "0":
        yield (
            "NODE_TLS_REJECT_UNAUTHORIZED=0: Node accepts any certificate",
            "unset it, Rewind does not need it",
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT).close()
    except OSError:
        return False
    return True
