"""What a wire adapter is: one per wire format, stateless, pure."""

from __future__ import annotations

from typing import Protocol

from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Ending,
    Form,
    JsonObject,
    Operation,
    Target,
    Volatile,
    Wire,
)


class Adapter(Protocol):
    """Turns one wire format into canonical requests, and knows when an answer is complete."""

    wire: Wire
    volatile: Volatile

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """The canonical request of a body. Never raises on odd shapes: what is not understood is `opaque`."""
        ...

    def form(self, target: Target, body: JsonObject) -> Form:
        """The form of answer that the request asks for."""
        ...

    def ending(self, form: Form, operation: Operation, body: bytes, choices: int = 1) -> Ending:
        """How an answer (decoded bytes of a 2xx) ended, with model and usage where it says so.

        `choices` is how many alternatives the request asked for (`n`): a stream without a terminal event of
        its own is complete when so many have ended.
        """
        ...

    def error(self, status: int, message: str) -> JsonObject:
        """The provider's own error JSON for a refusal."""
        ...
