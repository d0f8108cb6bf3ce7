"""What may be shown of a flow: its conversation and the report of its step, without any credential.

Nothing is kept for it while calls pass. When somebody looks, the request is read again from the flow; by then
its auth headers are masked, so their values are remembered here, and taken out wherever they stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Protocol, cast

from mitmproxy import http

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor, auth_values, is_auth_header
from rewind_proxy.errors import OpaqueBodyError, RewindError
from rewind_proxy.explain.conversation import Conversation
from rewind_proxy.explain.exchange import answer_lines, answer_parts, decoded, request_lines
from rewind_proxy.explain.lines import BLANK, Line, line
from rewind_proxy.explain.step import Explanation, explain_step
from rewind_proxy.explain.words import safe_line, size
from rewind_proxy.matching.answer_redaction import answer_form, redact_answer
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.mitm import labels, traffic
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.recording import MAX_ANSWER
from rewind_proxy.wire import ADAPTERS, HostTable
from rewind_proxy.wire.body import decode

_MOST_SEEN = 256
_MOST_READ = 4 * 2**20
"""Bytes of a body: mitmproxy makes its views where calls pass, and 20 MB would hold them up for seconds."""
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r){2}")
_RULE = "─" * 72
_HOW = "the JSON view, or rewind show, has all of it"


class Seen:
    """The values of auth headers that this proxy has seen, the newest."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._runs: set[str] = set()

    def update(self, flow: http.HTTPFlow) -> None:
        """Remember those of a flow that is about to be masked."""
        self._runs.add(_run_of(flow))
        for value in auth_values(flow.request.headers.items(multi=True)):
            self._values.pop(value, None)
            self._values[value] = None
            if len(self._values) > _MOST_SEEN:
                del self._values[next(iter(self._values))]

    def values(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._values)

    def knows(self, flow: http.HTTPFlow) -> bool:
        """Whether the credentials of a flow are among them, or still in the flow itself.

        Those of a flow that another proxy masked and saved are not: nobody could take them out of its body.
        """
        masked = any(
            is_auth_header(name) and value == traffic.MASK for name, value in flow.request.headers.items()
        )
        return not masked or _run_of(flow) in self._runs


def _run_of(flow: http.HTTPFlow) -> str:
    return str(flow.metadata.get(labels.STEP, "")).rpartition(".")[0]


class Owner(Protocol):
    """What the views need to know of the add-on they belong to."""

    runtime: Runtime | None
    hosts: HostTable
    seen: Seen


class NotOursError(RewindError):
    """Why nothing can be said of a flow."""


class Views:
    """Reads flows again, and tells what became of them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._reader: tuple[Runtime, frozenset[str], RequestReader] | None = None

    def is_offered(self, flow: http.HTTPFlow) -> bool:
        """Whether there is anything to show of a flow: it is a call to a known host."""
        return traffic.known_host(self._owner.hosts, flow) is not None and self._owner.seen.knows(flow)

    def lines(self, flow: http.HTTPFlow, *, of_answer: bool) -> Iterator[Line]:
        """The conversation of one side, then the report of the step. Raises `RewindError`."""
        reader, reading = self.reading(flow)
        redactor = reader.redactor.with_secrets(auth_values(flow.request.headers.items(multi=True)))
        view = Conversation(noise=ADAPTERS[reading.record.wire].volatile.members, how=_HOW, folded=True)
        if of_answer:
            yield from self._answer(view, flow, reading, redactor)
            yield BLANK
        else:
            yield from request_lines(view, reading, _other_body(flow, reading, redactor))
        yield line(_RULE)
        explanation = self.explanation(flow, reader, reading)
        if explanation is None:
            yield line(("faint", "Its step is not over, or not in this log."))
        else:
            yield from explanation.lines()

    def explanation(
        self, flow: http.HTTPFlow, reader: RequestReader | None = None, reading: Reading | None = None
    ) -> Explanation | None:
        """The report of the step of a flow; None while it is not over. Raises `RewindError`."""
        if reader is None or reading is None:
            reader, reading = self.reading(flow)
        runtime = self.runtime()
        step = runtime.step_record(str(flow.metadata.get(labels.STEP, "")))
        return None if step is None else explain_step(step, runtime.store, reader, reading)

    def reading(self, flow: http.HTTPFlow) -> tuple[RequestReader, Reading]:
        """The request of a flow, read again. Raises `NotOursError`."""
        host = traffic.known_host(self._owner.hosts, flow)
        if host is None or not self.is_offered(flow):
            raise NotOursError("this is no call to a host that Rewind knows, or another proxy has masked it")
        if _too_large(flow, self.runtime().settings.max_body):
            step = safe_line(str(flow.metadata.get(labels.STEP, "STEP")))
            raise NotOursError(f"its request is too large to be read while calls pass: rewind explain {step}")
        reader = self._reader_for(self.runtime())
        return reader, reader.read(traffic.raw_request(flow), host)

    def runtime(self) -> Runtime:
        """The open store and log. Raises `NotOursError`."""
        if self._owner.runtime is None:
            raise NotOursError("the store of this proxy is not open")
        return self._owner.runtime

    def _reader_for(self, runtime: Runtime) -> RequestReader:
        seen = self._owner.seen.values()
        if self._reader is None or self._reader[0] is not runtime or self._reader[1] != seen:
            self._reader = (runtime, seen, runtime.reader_for(seen))
        return self._reader[2]

    def _answer(
        self, view: Conversation, flow: http.HTTPFlow, reading: Reading, redactor: Redactor
    ) -> Iterator[Line]:
        response = flow.response
        if response is None or response.raw_content is None:
            yield line(("faint", "There is no answer."))
            return
        content_type = response.headers.get("content-type", "")
        body = decode(response.raw_content, response.headers.get("content-encoding", ""), MAX_ANSWER)
        form = answer_form(content_type, reading.record.form)
        if len(body) > _MOST_READ:
            yield line(("faint", f"The answer is too large to be shown here: {size(len(body))}."))
            return
        parts = answer_parts(reading.record.wire, form, body)
        if parts is None and form == "sse":
            # A credential may go over several events of a stream that was cut.
            whole = _whole_events(body) or body
            body = redact_answer(whole, reading.record.wire, form, redactor).body
        if parts is not None:
            parts = _redacted(parts, redactor)
        elif (text := _error_message(body) or decoded(body)) is not None:
            body = redactor.text(text).encode("utf-8", "replace")
        yield from answer_lines(view, parts, body, content_type)


def _too_large(flow: http.HTTPFlow, max_body: int) -> bool:
    """Whether reading a request would hold up the proxy; one that cannot be read does not."""
    content, coding = flow.request.raw_content or b"", flow.request.headers.get("content-encoding", "")
    for limit, verdict in ((_MOST_READ, False), (max_body, True)):
        try:
            decode(content, coding, limit)
        except OpaqueBodyError:
            continue
        return verdict
    return False


def _whole_events(body: bytes) -> bytes:
    """A stream without the event that it was cut in."""
    end = 0
    for found in _EVENT_END.finditer(body):
        end = found.end()
    return body[:end]


def _redacted(parts: list[JsonObject], redactor: Redactor) -> list[JsonObject]:
    return cast("list[JsonObject]", redactor.value([*parts]))


def _error_message(body: bytes) -> str | None:
    """What an error says, as each wire has it (ours too); None of what is none."""
    try:
        match json.loads(body):
            case {"error": {"message": str(message)}}:
                return message
    except (ValueError, RecursionError):
        return None
    return None


def _other_body(flow: http.HTTPFlow, reading: Reading, redactor: Redactor) -> JsonValue:
    """The redacted body of a request that holds no conversation; None where it has none that is JSON."""
    request = flow.request
    if reading.canonical is not None or reading.record.opaque or not request.raw_content:
        return None
    try:
        plain = decode(request.raw_content, request.headers.get("content-encoding", ""), MAX_ANSWER)
        return redactor.value(cast("JsonValue", json.loads(plain)))
    except (OpaqueBodyError, ValueError):
        return None
