"""Cassettes of vcrpy, format version 1, as its YAML and JSON serialisers write them. Pure.

A body is text, bytes (`!!binary`), null, or an object with `string` or `base64_string`. What stands in them
is what vcrpy's stub of the client's library saw: still in its content coding, or no longer.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

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
from rewind_proxy.porting.safe_yaml import Value

VERSION = 1


def is_cassette(document: object) -> bool:
    """Whether a parsed document is meant as a cassette."""
    return isinstance(document, dict) and "interactions" in document


def entries(document: Mapping[str, Any], file: str) -> Iterator[Entry]:
    """The exchanges of a cassette. Raises `PortingError` at once for another format version, or none."""
    version, found = document.get("version"), document.get("interactions")
    if version != VERSION:
        said = f"in format {version}" if type(version) is int else "that names no format by number"
        raise PortingError(f"{file}: a cassette of vcrpy {said}; format {VERSION} is read")
    if not isinstance(found, list):
        raise PortingError(f'{file}: no cassette of vcrpy: "interactions" is no list')
    return (
        _entry(interaction, f"{file}, interaction {number}")
        for number, interaction in enumerate(found, start=1)
    )


class _NoExchangeError(Exception):
    """Why an interaction is none."""


def _entry(interaction: Value, place: str) -> Entry:
    try:
        whole = _object(interaction)
        asked, answered = _object(whole.get("request")), _object(whole.get("response"))
        body, headers = _bytes(asked.get("body")), _headers(asked.get("headers"))
        uri, method = asked.get("uri"), asked.get("method")
        request = (
            request_to(method, uri, as_coded(headers, body), body)
            if isinstance(uri, str) and isinstance(method, str)
            else None
        )
        if request is None:
            return Left(place, "its request names no host")
        if lacks_body(headers, body):
            return Left(place, NOT_THERE.format("request"))
        status = answered.get("status_code")  # older stubs of httpx
        content = answered.get("content", answered.get("body"))
        if status is None:
            status = _object(answered.get("status")).get("code")
        if not isinstance(status, int) or not 100 <= status <= 599:
            return Left(place, "its answer has no status")
        answer, answer_headers = _bytes(content), _headers(answered.get("headers"))
        if method != "HEAD" and lacks_body(answer_headers, answer):
            return Left(place, NOT_THERE.format("answer"))
    except _NoExchangeError as error:
        return Left(place, str(error))
    return Heard(
        place=place,
        request=request,
        status=status,
        headers=as_coded(answer_headers, answer),
        body=answer,
        started_at=_date(answer_headers),
    )


def _object(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise _NoExchangeError("it has no request and response")
    return value


def _headers(value: Value) -> Headers:
    """Of a mapping of names to a value or a list of values."""
    found: list[tuple[str, str]] = []
    for name, values in (value if isinstance(value, dict) else {}).items():
        for one in values if isinstance(values, list) else [values]:
            if isinstance(one, bytes):
                found.append((name, one.decode("latin-1")))
            elif isinstance(one, str | int | float):
                found.append((name, str(one)))
    return tuple(found)


def _bytes(value: Value) -> bytes:
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass")
        case {"base64_string": str(text)}:
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except ValueError:
                raise _NoExchangeError("a body in it is no base64") from None
        case {"string": inner}:
            return _bytes(inner)
        case _:
            raise _NoExchangeError("a body in it is neither text nor bytes")


def _date(headers: Headers) -> float | None:
    """When the answer was given, as its own header says: cassettes keep no times."""
    said = next((value for name, value in headers if name.lower() == "date"), "")
    try:
        stamp = parsedate_to_datetime(said).timestamp() if said else -1.0
    except (ValueError, OverflowError, TypeError):
        return None
    return stamp if stamp >= 0 else None
