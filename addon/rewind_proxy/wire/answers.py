"""What the adapters share in reading an answer's end and in writing a refusal.

An answer is read leniently (a provider's body is not ours to judge) and never raises: what does not parse
says nothing, and an answer whose terminal event did not parse is `cut`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, TypeAlias, cast

from rewind_proxy.canonical.model import Ending, Form, JsonObject, JsonValue, Usage
from rewind_proxy.wire import sse

Kind: TypeAlias = Literal["complete", "length", "error", "cut"]

CUT = Ending("cut")
_MISSING = object()


def load(body: bytes | str) -> JsonValue | object:
    """The JSON value of a body, or a marker that is no JSON value when it is not JSON."""
    try:
        return cast("JsonValue", json.loads(body))
    except (ValueError, RecursionError):  # a body that does not parse says nothing: see above
        return _MISSING


def load_object(body: bytes | str) -> JsonObject | None:
    """The JSON object of a body, or None when it is none."""
    value = load(body)
    return value if isinstance(value, dict) else None


def load_list(body: bytes) -> list[JsonValue] | None:
    """The JSON array of a body, or None when it is none (one that was not closed is none)."""
    value = load(body)
    return value if isinstance(value, list) else None


def events(body: bytes) -> Iterator[sse.Event]:
    """The events of a stream.

    The last one counts even when no blank line ended it: a JSON document or `[DONE]` shows by itself whether
    it is whole, and clients differ in whether they read it.
    """
    stream = sse.parse(body)
    yield from stream.events
    if stream.pending is not None:
        yield stream.pending


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; none when it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: JsonValue) -> str | None:
    """`value` when it is a string with something in it."""
    return value if isinstance(value, str) and value else None


def count(value: JsonValue) -> int:
    """A number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def usage(value: JsonValue, read: str, written: str, cached: str) -> Usage | None:
    """The usage object `value`: its counts stand under these names, those of the cache as OpenAI has them."""
    if not isinstance(value, dict):
        return None
    details = value.get(cached)
    if not isinstance(details, dict):
        details = {}
    return Usage(
        count(value.get(read)),
        count(value.get(written)),
        count(details.get("cached_tokens")),
        count(details.get("cache_write_tokens")),
    )


def plain(form: Form, body: bytes) -> Ending:
    """The end of an answer without a terminal event of its own (counts, embeddings): any whole JSON."""
    value = load(body)
    if form == "sse" or value is _MISSING:
        return CUT
    if not isinstance(value, dict):
        return Ending("complete")
    model = string(value.get("model"))
    counted = value.get("usage")
    tokens = usage(counted, "prompt_tokens", "completion_tokens", "prompt_tokens_details")
    return Ending("error" if value.get("error") is not None else "complete", model, tokens)


def openai_error(message: str) -> JsonObject:
    """OpenAI's error JSON, which most providers share."""
    error: JsonObject = {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": "rewind_no_recording",
    }
    return {"error": error}
