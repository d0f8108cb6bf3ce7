"""HAR 1.2 files: of browsers, of mitmproxy's `hardump`, of SDKs and proxies. Pure.

Bodies stand in them as text or in base64, decoded or as they were sent, whatever the headers say
(`heard.as_coded`). Messages of WebSockets are left alone: their upgrade is no model call.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import PortingError
from rewind_proxy.porting.heard import (
    NOT_THERE,
    Entry,
    Headers,
    Heard,
    Left,
    as_coded,
    lacks_body,
    request_to,
)

_CHARSET = re.compile(r"charset=", re.IGNORECASE)
# HTTP/2's own fields, which browsers write among the headers.
_PSEUDO = ":"


def is_har(document: JsonValue) -> bool:
    """Whether a JSON document is meant as a HAR file."""
    return isinstance(document, dict) and isinstance(document.get("log"), dict)


def entries(document: JsonValue, file: str) -> Iterator[Entry]:
    """The exchanges of a HAR file. Raises `PortingError` at once when it has no list of entries."""
    log = document.get("log") if isinstance(document, dict) else None
    found = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(log, dict) or not isinstance(found, list):
        raise PortingError(f'{file}: no HAR file: "log" has no "entries"')
    creator = log.get("creator")
    of_mitmproxy = isinstance(creator, dict) and creator.get("name") == "mitmproxy"
    return (
        _entry(entry, f"{file}, entry {number}", of_mitmproxy=of_mitmproxy)
        for number, entry in enumerate(found, start=1)
    )


class _NoExchangeError(Exception):
    """Why an entry is none."""


def _entry(entry: JsonValue, place: str, *, of_mitmproxy: bool) -> Entry:
    try:
        whole = _object(entry)
        asked, answered = _object(whole.get("request")), _object(whole.get("response"))
        headers = _headers(asked)
        body = _sent(asked, headers)
        url, method = asked.get("url"), asked.get("method")
        request = (
            request_to(method, url, as_coded(headers, body), body)
            if isinstance(url, str) and isinstance(method, str)
            else None
        )
        if request is None:
            return Left(place, "its request names no host")
        status = answered.get("status")
        if not isinstance(status, int) or not 100 <= status <= 599:
            return Left(place, "no answer came")
        content = _object(answered.get("content", {}))
        answer_headers = _typed(_headers(answered), content)
        answer = _received(content, of_mitmproxy=of_mitmproxy)
        whole_size = () if method == "HEAD" else (content.get("size"), answered.get("bodySize"))
        if lacks_body(answer_headers if whole_size else (), answer, *whole_size):
            raise _NoExchangeError(NOT_THERE.format("answer"))
    except _NoExchangeError as error:
        return Left(place, str(error))
    took = whole.get("time")
    error_text = answered.get("_error")
    return Heard(
        place=place,
        request=request,
        status=status,
        headers=as_coded(answer_headers, answer),
        body=answer,
        started_at=_time(whole.get("startedDateTime")),
        milliseconds=round(took) if isinstance(took, int | float) and 0 <= took < 1e12 else 0,
        broken=error_text if isinstance(error_text, str) else "",
    )


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise _NoExchangeError("it has no request and response")
    return value


def _headers(message: JsonObject) -> Headers:
    found = message.get("headers")
    headers: list[tuple[str, str]] = []
    for header in found if isinstance(found, list) else []:
        match header:
            case {"name": str(name), "value": str(value)} if not name.startswith(_PSEUDO):
                headers.append((name, value))
    return tuple(headers)


def _typed(headers: Headers, content: JsonObject) -> Headers:
    """With the content type that some tools tell of the body alone."""
    kind = content.get("mimeType")
    if not isinstance(kind, str) or not kind or any(n.lower() == "content-type" for n, _ in headers):
        return headers
    return (*headers, ("content-type", kind))


def _sent(request: JsonObject, headers: Headers) -> bytes:
    posted = request.get("postData")
    holder = posted if isinstance(posted, dict) else {}
    body = _bytes(holder)
    # A form may be there as a list of its fields alone: its bytes are not.
    if lacks_body(headers, body, request.get("bodySize")) or (not body and holder.get("params")):
        raise _NoExchangeError(NOT_THERE.format("request"))
    return body


def _received(content: JsonObject, *, of_mitmproxy: bool) -> bytes:
    body = _bytes(content)
    kind = str(content.get("mimeType", ""))
    if (
        of_mitmproxy
        and content.get("encoding") != "base64"
        and "json" not in kind
        and not _CHARSET.search(kind)
    ):
        # mitmproxy 11 reads a stream of events as Latin-1, where its bytes are UTF-8.
        try:
            plain = body.decode().encode("latin-1")
            plain.decode()
        except UnicodeError:
            return body
        return plain
    return body


def _bytes(holder: JsonObject) -> bytes:
    text = holder.get("text", "")
    if not isinstance(text, str):
        return b""
    if holder.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise _NoExchangeError("a body in it is no base64") from None
    return text.encode("utf-8", "surrogatepass")


def _time(value: JsonValue) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    stamp = moment.timestamp() if moment.tzinfo else None
    return stamp if stamp is not None and stamp >= 0 else None
