"""Request files: `{"method", "url", "headers", "body"}`, as `canon` and `test-match` read them (DESIGN §12).

`body` is JSON, or a string that is sent as is; `body_base64` is bytes. Several stand in a `.jsonl` file.
"""

from __future__ import annotations

import base64
import json
from typing import get_args
from urllib.parse import urlsplit

from rewind_proxy.canonical.model import JsonObject, JsonValue, Wire
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.settings_values import did_you_mean, quote
from rewind_proxy.wire import Host, HostTable

_MEMBERS = ("method", "url", "headers", "body", "body_base64")
_FORM = '{"url": "https://api.openai.com/v1/responses", "body": {…}}'


class RequestFileError(RewindError):
    """A request file that is not one; the message names the file and what is missing."""


def request_from(document: JsonValue, place: str) -> RawRequest:
    """The request of a parsed file; `place` names it in errors. Raises `RequestFileError`."""
    if not isinstance(document, dict):
        raise RequestFileError(f"{place}: not a request file: write {_FORM}")
    url = document.get("url")
    if not isinstance(url, str) or not urlsplit(url).hostname:
        raise RequestFileError(f'{place}: not a request file: "url" is missing or has no host: write {_FORM}')
    for name in document:
        if name not in _MEMBERS:
            guess = did_you_mean(name, _MEMBERS)
            known = ", ".join(_MEMBERS)
            raise RequestFileError(f"{place}: a request file has no {quote(name)}{guess} (it has {known})")
    split = urlsplit(url)
    headers = document.get("headers") or {}
    # A body written as JSON is the decoded one, whatever coding its client sent it in.
    dropped = "content-encoding" if isinstance(document.get("body"), dict | list) else None
    if not isinstance(headers, dict):
        raise RequestFileError(f'{place}: "headers" is an object of names and values')
    method = document.get("method", "POST")
    if not isinstance(method, str):
        raise RequestFileError(f'{place}: "method" is a text')
    return RawRequest(
        method=method,
        host=split.hostname or "",
        port=split.port or (80 if split.scheme == "http" else 443),
        path=(split.path or "/") + (f"?{split.query}" if split.query else ""),
        headers=tuple((name, str(value)) for name, value in headers.items() if name.lower() != dropped),
        body=_body(document, place),
        upgrade=str(headers.get("upgrade", headers.get("Upgrade", ""))).lower() == "websocket",
    )


def _body(document: JsonObject, place: str) -> bytes:
    coded = document.get("body_base64")
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except ValueError:
            raise RequestFileError(f'{place}: "body_base64" is not base64') from None
    body = document.get("body")
    if body is None and "body" not in document:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body).encode("ascii")


def host_of(table: HostTable, request: RawRequest, place: str) -> Host:
    """The known host of a request. Raises `RequestFileError` for one that Rewind would tunnel."""
    host = table.find(request.host, request.port)
    if host is None:
        raise RequestFileError(
            f"{place}: {request.host} is no known host, Rewind would tunnel it; "
            f"add it with --hosts {request.host}=WIRE, WIRE one of {', '.join(get_args(Wire))}"
        )
    return host


def read_request(document: JsonValue, reader: RequestReader, place: str) -> Reading:
    """What is known of the request of a parsed file. Raises `RequestFileError`."""
    request = request_from(document, place)
    return reader.read(request, host_of(reader.hosts, request, place))
