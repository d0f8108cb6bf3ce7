"""A recording as the text that people commit, and back.

    {"rewind": 1, "sha256", "id", "exact", "run", "recorded_at", "session", "core_v3",
     "request": {"method", "url", …, "body"}, "answer": {"status", …, "events" | "json" | "lines" | "base64"}}

`body` is the redacted body of the request with its members sorted, `answer` as `answer_text` says. `sha256`
is the digest of all the rest: what does not match it was edited. Nothing in it is taken on trust when it is
read; only an exact fingerprint of a request that is kept redacted, or as a digest, cannot be made again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from pydantic import ValidationError

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import MARK
from rewind_proxy.errors import OpaqueBodyError, PortingError
from rewind_proxy.porting import answer_text, text
from rewind_proxy.porting.answer_text import Chunks
from rewind_proxy.porting.heard import LATEST
from rewind_proxy.store.records import AnswerRecord, CassetteRecord, RequestRecord

VERSION = 1
_DIGEST = "sha256"
_HEX = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
_URL = re.compile(r"https?://(?P<host>[^/*?@]+)(?P<path>[^?]*)(?:\?(?P<query>.*))?", re.DOTALL)
_READABLE = "[]/:,@"
_CARRIED = (
    "content_type",
    "user_agent",
    "cls",
    "wire",
    "operation",
    "form",
    "opaque",
    "body_length",
    "body_sha256",
)
"""What is told of a request beside its address and body; what is empty is left out."""
_CARRIED_DEFAULTS = {"cls": "model", "operation": "generate"}


@dataclass(frozen=True, slots=True)
class Kept:
    """A recording as a document says it."""

    place: str
    """Names it in messages: the file, and the line in one that has many."""
    request: RequestRecord
    body: JsonValue
    """The redacted wire body, or None where none was kept."""
    status: int
    headers: tuple[tuple[str, str], ...]
    answer_body: bytes
    chunks: Chunks
    latency_ms: int
    by_hand: bool
    """A person supplied the answer."""
    exact: str
    written: str
    """`RequestRecord.written_digest`."""
    run: str
    session: str
    recorded_at: float
    edited: bool
    """It does not match its digest, or has none: somebody wrote or changed it by hand."""


def to_document(
    record: CassetteRecord,
    body: JsonValue,
    answer_body: bytes,
    chunks: Chunks,
    *,
    id: str,  # noqa: A002  # the name it has everywhere
    session: str,
    core_v3: str | None,
) -> JsonObject:
    """The document of a recording; `body` and `answer_body` are as they may leave the store."""
    request, answer = record.request, record.answer
    told: JsonObject = {
        name: value
        for name in _CARRIED
        if (value := getattr(request, name)) and value != _CARRIED_DEFAULTS.get(name)
    }
    headers: JsonValue = [[name, value] for name, value in answer.headers]
    rest: JsonObject = {
        "id": id,
        "exact": record.exact,
        "run": record.run,
        "recorded_at": record.recorded_at,
        "session": session,
        "core_v3": core_v3,
        "request": {
            "method": request.method,
            "url": _url(request),
            **told,
            "written": request.written_digest,
            "body": _sorted(body),
        },
        "answer": {
            "status": answer.status,
            "headers": headers,
            "latency_ms": answer.latency_ms,
            **({"by_hand": True} if answer.by_hand else {}),
            **answer_text.written(answer_body, chunks, answer.content_type),
        },
    }
    return {"rewind": VERSION, _DIGEST: text.digest(rest), **rest}


def is_document(value: JsonValue) -> bool:
    """Whether a JSON value is meant as one."""
    return isinstance(value, dict) and "rewind" in value and "request" in value


def from_document(value: JsonValue, place: str) -> Kept:
    """What a document says. Raises `PortingError`, which names the place."""
    if not isinstance(value, dict) or not is_document(value):
        raise PortingError(f'{place}: no recording of Rewind\'s: it has no "rewind" and "request"')
    version = value["rewind"]
    if version != VERSION:
        said = f"text format {version}" if type(version) is int else "no text format that has a number"
        raise PortingError(f"{place}: written in {said}, this Rewind reads {VERSION}: update it")
    rest = {name: item for name, item in value.items() if name not in ("rewind", _DIGEST)}
    try:
        edited = text.digest(rest) != value.get(_DIGEST)
    except ValueError:
        raise PortingError(f"{place}: a number in it is past the range of a double") from None
    request, answer = _object(value, "request", place), _object(value, "answer", place)
    body = request.get("body")
    try:
        # No more levels than in a live body.
        jcs.check_depth(body, line := text.line(body), 0, len(line))
        record = _record(request, place)
        headers = AnswerRecord.model_validate({"headers": answer.get("headers", [])}).headers
    except OpaqueBodyError:
        raise PortingError(f"{place}: the body of its request is nested too deeply") from None
    except ValidationError as error:
        raise PortingError(f"{place}: {_first(error)}") from None
    answer_body, chunks = answer_text.read(answer, place)
    return Kept(
        place=place,
        request=record,
        body=body,
        status=_status(answer, place),
        headers=headers,
        answer_body=answer_body,
        chunks=chunks,
        latency_ms=_whole(answer, "latency_ms", place),
        by_hand=answer.get("by_hand") is True,
        exact=exact if isinstance(exact := value.get("exact"), str) and _HEX.fullmatch(exact) else "",
        written=str(request.get("written", "")),
        run=_run(value, place),
        session=_string(value, "session", place),
        recorded_at=_number(value, "recorded_at", place),
        edited=edited,
    )


def hides_something(kept: Kept) -> bool:
    """Whether the request is not there as it was sent: redacted, or kept as a digest alone."""
    request = kept.request
    if kept.body is None and (request.body_length or not request.opaque):
        return True
    return MARK in request.path or any(MARK in value for _, value in request.query) or _marked(kept.body)


def _marked(value: JsonValue) -> bool:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            if MARK in node:
                return True
        elif isinstance(node, dict):
            stack += [*node.keys(), *node.values()]
        elif isinstance(node, list):
            stack += node
    return False


def _url(request: RequestRecord) -> str:
    query = urlencode(request.query, errors="surrogateescape", quote_via=quote, safe=_READABLE)
    return f"https://{request.host}{request.path}" + (f"?{query}" if request.query else "")


def _record(request: JsonObject, place: str) -> RequestRecord:
    url = _URL.fullmatch(_string(request, "url", place))
    if url is None:
        raise PortingError(f'{place}: "url" has no host')
    told = {name: request[name] for name in _CARRIED if name in request}
    query = parse_qsl(url["query"] or "", keep_blank_values=True, errors="surrogateescape")
    address: Mapping[str, Any] = {
        "method": _string(request, "method", place),
        "host": url["host"],
        "path": url["path"] or "/",
        "query": query,
    }
    return RequestRecord.model_validate({"wire": "generic", "form": "whole", **told, **address})


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    return f'"{".".join(map(str, found["loc"]))}": {found["msg"]}'


def _object(value: JsonObject, name: str, place: str) -> JsonObject:
    found = value.get(name)
    if not isinstance(found, dict):
        raise PortingError(f'{place}: "{name}" is missing or no object')
    return found


def _string(value: JsonObject, name: str, place: str) -> str:
    found = value.get(name, "")
    if not isinstance(found, str):
        raise PortingError(f'{place}: "{name}" is no text')
    return found


def _run(value: JsonObject, place: str) -> str:
    """It names a folder, perhaps, and is a key of the store."""
    run = _string(value, "run", place)
    if run and not _RUN.fullmatch(run):
        raise PortingError(f'{place}: "run" is no name of a run')
    return run


def _number(value: JsonObject, name: str, place: str) -> float:
    found = value.get(name, 0)
    if not isinstance(found, int | float) or not 0 <= found < LATEST:
        raise PortingError(f'{place}: "{name}" is no time')
    return float(found)


def _status(answer: JsonObject, place: str) -> int:
    status = _whole(answer, "status", place)
    if not 200 <= status <= 599:
        raise PortingError(f'{place}: "status" is no status of an answer')
    return status


def _whole(value: JsonObject, name: str, place: str) -> int:
    found = value.get(name, 0)
    if not isinstance(found, int) or not 0 <= found < 2**40:
        raise PortingError(f'{place}: "{name}" is no number from 0')
    return found
