"""mitmproxy's flows and our requests: reading one, answering one, masking what others may save."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mitmproxy import http

from rewind_proxy.canonical.redact import Redactor, auth_values, is_auth_header, mask_url
from rewind_proxy.canonical.redaction.auth import LEAST
from rewind_proxy.engine import Header
from rewind_proxy.errors import traceback_of
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.wire import Host, HostTable

SESSION_HEADER = "x-rewind-session"
MODE_HEADER = "x-rewind-mode"
MASK = "[REDACTED]"

Redact = Callable[[str, Iterable[Header]], str]
"""A text, and the headers of the request it is of, whose credentials are taken out too."""
_BUILT_IN = Redactor()
logger = logging.getLogger(__name__)


def known_host(table: HostTable, flow: http.HTTPFlow) -> Host | None:
    """The entry of the table for a flow: by its address first, then by the name the client gave.

    In transparent and local modes the address is an IP: then the Host header and the SNI tell.
    """
    request = flow.request
    found = table.find(request.host, request.port)
    if found is None and request.pretty_host != request.host:
        found = table.find(request.pretty_host, request.port)
    if found is None and flow.client_conn.sni:
        found = table.find(flow.client_conn.sni, request.port)
    return found


def raw_request(flow: http.HTTPFlow) -> RawRequest:
    """A flow's request as the engine reads it, the body still encoded."""
    request = flow.request
    return RawRequest(
        method=request.method,
        host=request.host,
        port=request.port,
        path=request.path,
        headers=tuple(request.headers.items(multi=True)),
        body=request.raw_content or b"",
        upgrade=request.headers.get("upgrade", "").lower() == "websocket"
        or (request.method == "CONNECT" and ":protocol" in request.headers),
    )


def take_own_headers(flow: http.HTTPFlow) -> tuple[str, str]:
    """What `x-rewind-session` and `x-rewind-mode` say, taken out of the request; empty where absent.

    Asked again it says the same: the values are kept with the flow.
    """
    headers = flow.request.headers
    if SESSION_HEADER in headers:
        flow.metadata[SESSION_HEADER] = _name(headers.pop(SESSION_HEADER).encode("utf-8", "surrogateescape"))
    if MODE_HEADER in headers:
        flow.metadata[MODE_HEADER] = headers.pop(MODE_HEADER)
    return flow.metadata.get(SESSION_HEADER, ""), flow.metadata.get(MODE_HEADER, "")


def take_proxy_user(flow: http.HTTPFlow) -> str:
    """The user name given to the proxy, which names the session; else empty.

    Credentials are for the proxy alone (RFC 9110 §11.7.1), so their header goes. `proxyauth` has taken it out
    before us and left what it said in the metadata.
    """
    scheme, _, token = flow.request.headers.pop("proxy-authorization", "").partition(" ")
    if scheme.lower() != "basic":
        user, _ = flow.metadata.get("proxyauth") or ("", "")
        return str(user or "")
    try:
        return _name(base64.b64decode(token, validate=True).partition(b":")[0])
    except ValueError:  # not base64 (of ASCII)
        return ""


def _name(sent: bytes) -> str:
    """A session's name as a client sent it: UTF-8, else Latin-1 (`requests`; RFC 7617 leaves it open)."""
    try:
        return sent.decode().strip()
    except UnicodeDecodeError:
        return sent.decode("latin-1").strip()


def answer(flow: http.HTTPFlow, status: int, headers: Iterable[Header], body: bytes) -> None:
    """Answer a flow ourselves: nothing goes upstream."""
    fields = [
        (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
        for name, value in headers
    ]
    flow.response = http.Response.make(status, body, http.Headers(fields))


def accept_tunnel(flow: http.HTTPFlow) -> None:
    """Answer CONNECT as mitmproxy itself does, without the headers that a made response has."""
    now = time.time()
    version = flow.request.data.http_version
    flow.response = http.Response(
        version, 200, b"Connection established", http.Headers(), b"", None, now, now
    )


@dataclass(frozen=True, slots=True)
class Address:
    """Where a flow's request was going."""

    scheme: str
    host: str
    port: int
    path: str
    host_header: str | None


def address_of(flow: http.HTTPFlow) -> Address:
    """The address that the client gave."""
    request = flow.request
    return Address(request.scheme, request.host, request.port, request.path, request.host_header)


def restore(flow: http.HTTPFlow, address: Address | None) -> None:
    """Give a finished flow its own address back, for whoever shows or saves it."""
    if address is not None:
        request = flow.request
        request.scheme, request.host, request.port = address.scheme, address.host, address.port
        request.path, request.host_header = address.path, address.host_header


def give_length(flow: http.HTTPFlow) -> None:
    """State the length of a body that came without one: mitmproxy would send it on as HTTP/1.1 unframed.

    HTTP/2 frames bodies itself, so its clients may leave the header out.
    """
    request = flow.request
    if request.raw_content and not {"content-length", "transfer-encoding"} & set(request.headers.keys()):
        request.headers["content-length"] = str(len(request.raw_content))


def send_to(flow: http.HTTPFlow, base_url: str) -> None:
    """Send a flow to another base URL (`rewind_upstream`); the client's own path comes after the base's."""
    split = urlsplit(base_url)
    request = flow.request
    path = request.path
    request.scheme = split.scheme
    request.host = split.hostname or ""
    request.port = split.port or (443 if split.scheme == "https" else 80)
    request.path = split.path.rstrip("/") + path


def refuse_host(flow: http.HTTPFlow, host: str) -> None:
    """Keep an unknown host out (`rewind_unknown = refuse`)."""
    text = (
        f"rewind: {host} is not a host that Rewind knows, and rewind_unknown = refuse keeps it out.\n"
        "Add it with rewind_hosts, or set rewind_unknown = tunnel.\n"
    )
    answer(flow, 403, (("content-type", "text/plain; charset=utf-8"),), text.encode())


def _redact(text: str, headers: Iterable[Header]) -> str:
    return _BUILT_IN.with_secrets(auth_values(headers)).text(text)


def mask(flow: http.HTTPFlow, redact: Redact | None) -> None:
    """Mask the credentials of a finished flow, so that no other add-on logs, shows or saves them.

    `redact` is the text redaction of the store that is open, if one is.
    """
    headers = flow.request.headers
    path, session = mask_url(flow.request.path), flow.metadata.get(SESSION_HEADER, "")
    try:
        sent = tuple(headers.items(multi=True))
        path, session = (redact or _redact)(path, sent), (redact or _redact)(session, sent)
    except Exception as error:
        path, session = f"/{MASK}", MASK  # what cannot be read may hold anything
        why = traceback_of(error)
        logger.error("rewind: the path of a flow could not be redacted; it is masked as a whole\n%s", why)
    flow.request.path = path
    if SESSION_HEADER in flow.metadata:
        flow.metadata[SESSION_HEADER] = session  # mitmproxy saves what it keeps with a flow
    _mask_headers(headers)
    if flow.response is not None:
        _mask_headers(flow.response.headers)


def _mask_headers(headers: http.Headers) -> None:
    fields: list[tuple[bytes, bytes]] = []
    for field, (name, value) in zip(headers.fields, headers.items(multi=True), strict=True):
        in_part = _MASKED_IN_PART.get(name.lower())
        if is_auth_header(name):
            fields.append((field[0], MASK.encode()))
        elif in_part is not None:
            fields.append((field[0], in_part(value).encode("utf-8", "surrogateescape")))
        else:
            fields.append(field)
    headers.fields = tuple(fields)


def _mask_protocols(value: str) -> str:
    """Subprotocols: a browser, which sets no headers, says its key there (`openai-insecure-api-key.sk-…`)."""
    masked: list[str] = []
    for protocol in value.split(","):
        name, dot, rest = protocol.strip().partition(".")
        if not dot:
            name, rest = "", name
        masked.append(f"{name}{dot}{MASK if len(rest) >= LEAST else rest}")
    return ", ".join(masked)


_MASKED_IN_PART: Mapping[str, Callable[[str], str]] = {
    "sec-websocket-protocol": _mask_protocols,
    "referer": mask_url,
    "location": mask_url,
    "content-location": mask_url,
}
"""Headers that are no credential as a whole, and how they may hold one."""
