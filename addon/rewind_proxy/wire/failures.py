"""Errors as the providers themselves send them, for faults on purpose: status, headers and JSON.

Sources: platform.openai.com/docs/guides/error-codes, docs.anthropic.com/en/api/errors and
ai.google.dev/gemini-api/docs/troubleshooting; the bodies are those that the official SDKs parse.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire

ON_PURPOSE = "[rewind: made on purpose]"
"""Ends each message, so that whoever sees one on a screen knows."""


class Failure(NamedTuple):
    """An error answer."""

    headers: tuple[tuple[str, str], ...]
    body: bytes


class _OpenAI(NamedTuple):
    type: str
    code: str | None
    message: str


_OPENAI = {
    401: _OpenAI("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: _OpenAI("request_forbidden", "unsupported_country_region_territory", "Not supported here."),
    404: _OpenAI("invalid_request_error", "model_not_found", "The model does not exist."),
    429: _OpenAI("requests", "rate_limit_exceeded", "Rate limit reached."),
    503: _OpenAI("service_unavailable_error", "server_is_overloaded", "Our servers are overloaded."),
}
_OPENAI_CLIENT = _OpenAI("invalid_request_error", None, "The request could not be processed.")
_OPENAI_SERVER = _OpenAI("server_error", None, "The server had an error while processing your request.")

_ANTHROPIC = {
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "There is an issue with your billing."),
    403: ("permission_error", "Your API key does not have permission."),
    404: ("not_found_error", "The requested resource could not be found."),
    413: ("request_too_large", "Request exceeds the maximum size."),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
_ANTHROPIC_CLIENT = ("invalid_request_error", "The request is not valid.")
_ANTHROPIC_SERVER = ("api_error", "Internal server error")

_GEMINI = {
    401: ("UNAUTHENTICATED", "API keys are not valid."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "The model is not found."),
    409: ("ABORTED", "The operation was aborted."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The deadline has expired."),
}
_GEMINI_CLIENT = ("INVALID_ARGUMENT", "Request contains an invalid argument.")
_GEMINI_SERVER = ("INTERNAL", "An internal error has occurred.")
_RETRIED = frozenset({408, 409, 429})
"""Below 500; from there on everything is worth another try (CLIENTS.md: what the SDKs retry)."""


_Answer: TypeAlias = tuple[tuple[tuple[str, str], ...], JsonValue]


def failure(wire: Wire, form: Form, status: int, retry_after: int | None) -> Failure:
    """The error of a wire: `retry_after` in seconds stands wherever that provider says it."""
    match wire:
        case "anthropic":
            headers, body = _anthropic(status)
        case "gemini":
            headers, body = _gemini(status, form, retry_after)
        case "chat_completions" | "responses" | "generic":
            headers, body = _openai(status, retry_after)
    if retry_after is not None:
        headers += (("retry-after", str(retry_after)),)
    return Failure(headers, dumps(body))


def _openai(status: int, retry_after: int | None) -> _Answer:
    kind, code, message = _OPENAI.get(status, _OPENAI_CLIENT if status < 500 else _OPENAI_SERVER)
    headers = [("content-type", "application/json"), ("x-request-id", "req_rewind_fault")]
    if retry_after is not None:
        message += f" Please try again in {retry_after}s."
        headers.append(("retry-after-ms", str(retry_after * 1000)))
    if status == 429:
        headers += [
            ("x-ratelimit-limit-requests", "1"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", f"{retry_after or 0}s"),
        ]
    error: JsonObject = {"message": f"{message} {ON_PURPOSE}", "type": kind, "param": None, "code": code}
    return tuple(headers), {"error": error}


def _anthropic(status: int) -> _Answer:
    kind, message = _ANTHROPIC.get(status, _ANTHROPIC_CLIENT if status < 500 else _ANTHROPIC_SERVER)
    again = status >= 500 or status in _RETRIED
    headers = [
        ("content-type", "application/json"),
        ("request-id", "req_rewind_fault"),
        ("x-should-retry", "true" if again else "false"),
    ]
    if status == 429:
        headers += [
            ("anthropic-ratelimit-requests-limit", "1"),
            ("anthropic-ratelimit-requests-remaining", "0"),
        ]
    error: JsonObject = {"type": kind, "message": f"{message} {ON_PURPOSE}"}
    return tuple(headers), {"type": "error", "error": error, "request_id": "req_rewind_fault"}


def _gemini(status: int, form: Form, retry_after: int | None) -> _Answer:
    name, message = _GEMINI.get(status, _GEMINI_CLIENT if status < 500 else _GEMINI_SERVER)
    error: JsonObject = {"code": status, "message": f"{message} {ON_PURPOSE}", "status": name}
    if retry_after is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{retry_after}s"}]
    body: JsonObject = {"error": error}
    # A stream without `alt=sse` is an array, and so is its error.
    return (("content-type", "application/json; charset=UTF-8"),), [body] if form == "json-array" else body
