"""Errors on purpose have the status, headers and JSON of the provider's own."""

from __future__ import annotations

import json

import pytest

from rewind_proxy.canonical.model import Wire
from rewind_proxy.wire.failures import ON_PURPOSE, failure

KINDS = [
    ("chat_completions", 400, {"type": "invalid_request_error", "code": None}),
    ("chat_completions", 401, {"type": "invalid_request_error", "code": "invalid_api_key"}),
    ("chat_completions", 429, {"type": "requests", "code": "rate_limit_exceeded"}),
    ("responses", 500, {"type": "server_error", "code": None}),
    ("responses", 503, {"type": "service_unavailable_error", "code": "server_is_overloaded"}),
    ("generic", 502, {"type": "server_error"}),
    ("anthropic", 400, {"type": "invalid_request_error"}),
    ("anthropic", 401, {"type": "authentication_error"}),
    ("anthropic", 429, {"type": "rate_limit_error"}),
    ("anthropic", 500, {"type": "api_error"}),
    ("anthropic", 529, {"type": "overloaded_error"}),
    ("gemini", 400, {"code": 400, "status": "INVALID_ARGUMENT"}),
    ("gemini", 401, {"code": 401, "status": "UNAUTHENTICATED"}),
    ("gemini", 429, {"code": 429, "status": "RESOURCE_EXHAUSTED"}),
    ("gemini", 500, {"code": 500, "status": "INTERNAL"}),
    ("gemini", 503, {"code": 503, "status": "UNAVAILABLE"}),
]


@pytest.mark.parametrize(("wire", "status", "kind"), KINDS)
def test_the_error_of_a_provider(wire: Wire, status: int, kind: dict[str, object]) -> None:
    """The error says what it is in the provider's words, and its message that it was made."""
    made = failure(wire, "whole", status, None)
    error = json.loads(made.body)["error"]
    assert error.items() >= kind.items()
    assert error["message"].endswith(ON_PURPOSE)
    assert dict(made.headers)["content-type"].startswith("application/json")
    assert "retry-after" not in dict(made.headers)


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic", "gemini"])
def test_retry_after(wire: Wire) -> None:
    """How long to wait stands in the header that every SDK reads."""
    assert dict(failure(wire, "sse", 429, 7).headers)["retry-after"] == "7"


def test_where_else_a_provider_says_how_long() -> None:
    """OpenAI says it in milliseconds and in words too, Gemini in the error's details."""
    openai, gemini = failure("responses", "sse", 429, 7), failure("gemini", "sse", 429, 7)
    assert dict(openai.headers)["retry-after-ms"] == "7000"
    assert "try again in 7s" in json.loads(openai.body)["error"]["message"]
    assert json.loads(gemini.body)["error"]["details"][0]["retryDelay"] == "7s"


@pytest.mark.parametrize(("status", "again"), [(400, "false"), (401, "false"), (429, "true"), (529, "true")])
def test_anthropic_says_whether_to_retry(status: int, again: str) -> None:
    """Its SDK obeys the header before it looks at the status."""
    assert dict(failure("anthropic", "whole", status, None).headers)["x-should-retry"] == again


def test_anthropic_wraps_its_error() -> None:
    """Its errors have a type outside, and the id of the request."""
    body = json.loads(failure("anthropic", "sse", 529, None).body)
    assert (body["type"], body["request_id"]) == ("error", "req_rewind_fault")


def test_an_array_of_gemini() -> None:
    """Where the answer is an array, so is the error."""
    [body] = json.loads(failure("gemini", "json-array", 500, None).body)
    assert body["error"]["code"] == 500
