"""The wire of what no adapter understands: matched byte for byte, on method, host, path, query and body."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Ending,
    Form,
    JsonObject,
    JsonValue,
    Operation,
    Target,
    Volatile,
    Wire,
)
from rewind_proxy.canonical.redaction.auth import strip_query
from rewind_proxy.wire import answers, sse

# A header by which a client asks for a stream (DashScope's own API), and the value that does.
_STREAM_HEADERS = {"x-dashscope-sse": "enable"}
_EVENTS = "text/event-stream"
_STREAM_PART = re.compile(r'form-data\s*;\s*name="?stream"?\s*', re.IGNORECASE)


def asks_for_stream(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the headers of a request ask for a stream: a provider's own, or an `Accept` of events alone."""
    for name, value in headers:
        lowered = name.lower()
        said = value.strip().lower()
        if lowered == "accept" and [each.partition(";")[0].strip() for each in said.split(",")] == [_EVENTS]:
            return True
        if _STREAM_HEADERS.get(lowered) == said:
            return True
    return False


def part_asks_for_stream(content: JsonValue) -> bool:
    """Whether a multipart body, read as `{"parts": …}`, has a field `stream` that is true."""
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else []:
        match part:
            case {"headers": {"content-disposition": str(disposition)}, "text": str(text)}:
                if _STREAM_PART.fullmatch(disposition) and text.strip().lower() == "true":
                    return True
    return False


class Generic:
    """The adapter of every other model endpoint."""

    wire: Wire = "generic"
    volatile = Volatile()

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`.

        The names start with `generic_`, so that an ignore list which holds `host` or `model` takes none of
        them. Credentials in the query are left out.
        """
        query: list[JsonValue] = [[name, value] for name, value in strip_query(target.query)]
        params: JsonObject = {
            "generic_method": target.method,
            "generic_host": target.host,
            "generic_path": target.path,
            "generic_query": query,
            "generic_body": body,
        }
        return CanonicalRequest(self.wire, operation, params=params)

    def form(self, target: Target, body: JsonObject) -> Form:  # noqa: ARG002  # the body tells
        """See `Adapter.form`."""
        return "sse" if body.get("stream") is True else "whole"

    def ending(
        self,
        form: Form,
        operation: Operation,  # noqa: ARG002
        body: bytes,
        choices: int = 1,  # noqa: ARG002
    ) -> Ending:
        """See `Adapter.ending`.

        Nothing is known of these answers: any whole body counts unless it is a JSON object with an `error`;
        a stream must end with a whole event and hold no `error` event.
        """
        if form == "sse":
            stream = sse.parse(body)
            if any(event.name == "error" for event in stream.events):
                return Ending("error")
            return Ending("complete" if stream.events and stream.pending is None else "cut")
        ending = answers.plain("whole", body)
        return ending if ending.kind == "error" else Ending("complete", ending.model, ending.usage)

    def error(self, status: int, message: str) -> JsonObject:  # noqa: ARG002  # the body does not name it
        """See `Adapter.error`."""
        return answers.openai_error(message)
