"""Flows of mitmproxy as JSON lines, one flow a line: what `python -m rewind_proxy.mitm flows FILE` prints.

    {"method", "host", "port", "path", "headers", "body", "upgrade",
     "status", "answer_headers", "answer", "started_at", "milliseconds", "broken"}   bodies in base64
    {"left": why it is no exchange}

Only `mitm` can read the files themselves, and no other part imports it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from rewind_proxy.canonical.text import whole_characters
from rewind_proxy.errors import PortingError
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.porting.heard import Entry, Heard, Left


class FlowLine(BaseModel):
    """One flow."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    left: str = ""
    method: str = ""
    host: str = ""
    port: int = 0
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    upgrade: bool = False
    status: int = 0
    answer_headers: tuple[tuple[str, str], ...] = ()
    answer: str = ""
    started_at: float = 0.0
    milliseconds: int = 0
    broken: str = ""


def entries(lines: Iterable[str], file: str) -> Iterator[Entry]:
    """The exchanges that the lines tell of. Raises `PortingError` for a line that is none."""
    for number, line in enumerate(lines, start=1):
        place = f"{file}, flow {number}"
        try:
            flow = FlowLine.model_validate_json(line)
            body, answer = _bytes(flow.body), _bytes(flow.answer)
        except ValueError:  # ValidationError is one
            raise PortingError(f"{place}: it could not be read") from None
        if flow.left:
            yield Left(place, flow.left)
            continue
        request = RawRequest(flow.method, flow.host, flow.port, flow.path, flow.headers, body, flow.upgrade)
        yield Heard(
            place=place,
            request=request,
            status=flow.status,
            headers=flow.answer_headers,
            body=answer,
            started_at=flow.started_at,
            milliseconds=flow.milliseconds,
            broken=flow.broken,
        )


def to_line(**members: Any) -> str:
    """The line of a flow; bodies are bytes here. Bytes in a text that are no UTF-8 become `?`."""
    return FlowLine(**{name: _said(value) for name, value in members.items()}).model_dump_json(
        exclude_defaults=True
    )


def _said(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, tuple):
        return tuple(_said(each) for each in value)
    return value


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
