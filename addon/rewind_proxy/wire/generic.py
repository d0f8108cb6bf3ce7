"""The wire of what no adapter understands: matched byte for byte, on method, host, path, query and body."""

from __future__ import annotations

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
from rewind_proxy.canonical.redact_auth import strip_query
from rewind_proxy.wire import answers, sse


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

    def ending(self, form: Form, operation: Operation, body: bytes) -> Ending:  # noqa: ARG002
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
