"""The SDKs of the two wires with typed events read what was recorded in any of the nine forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rewind_proxy.canonical.answer import Asked
from rewind_proxy.canonical.model import Wire
from rewind_proxy.wire.forms import FORMS, convert
from wire.forms.form_answers import NINE, SAMPLES, Told, told
from wire.forms.typed_sdk import read_by_sdk

pytestmark = pytest.mark.once

READ_SAMPLES = ("calls", "cut", "cited")
CASES = [f"{wire}-{form}-{sample}" for wire, form in NINE for sample in READ_SAMPLES]
"""A sample, and the form in which it was recorded."""
WAYS = ("whole", "helper", "final", "async_whole", "async_helper")
SDKS: dict[Wire, str] = {"responses": "openai", "anthropic": "anthropic"}


def of_responses(response: dict[str, Any]) -> Told:
    """What a `Response` of OpenAI's SDK tells its user."""
    items = response["output"]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = tuple(
        (item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"
    )
    reason = (response.get("incomplete_details") or {}).get("reason")
    finish = {"max_output_tokens": "length"}[reason] if reason else "tool_calls" if calls else "stop"
    usage = response["usage"]
    cached = usage["input_tokens_details"]["cached_tokens"]
    return Told("".join(texts), calls, finish, (usage["input_tokens"], usage["output_tokens"], cached))


def of_anthropic(message: dict[str, Any]) -> Told:
    """What a `Message` of Anthropic's SDK tells its user."""
    blocks = message["content"]
    calls = tuple((block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    finishes = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
    usage = message["usage"]
    cached = usage["cache_read_input_tokens"]
    read = usage["input_tokens"] + usage["cache_creation_input_tokens"] + cached
    return Told(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        calls,
        finishes[message["stop_reason"]],
        (read, usage["output_tokens"], cached),
    )


READERS: dict[Wire, Callable[[dict[str, Any]], Told]] = {"responses": of_responses, "anthropic": of_anthropic}


@pytest.fixture(scope="module", params=SDKS)
def target(request: pytest.FixtureRequest) -> Wire:
    wire: Wire = request.param
    return wire


@pytest.fixture(scope="module")
def read(target: Wire) -> dict[str, Any]:
    """Every recording, read by the SDK of the wire."""
    bodies = {}
    for wire, form in NINE:
        for sample in READ_SAMPLES:
            body = FORMS[wire].render(SAMPLES[sample], Asked(wire, form)).body
            whole = convert(body, wire, form, Asked(target, "whole"))
            streamed = convert(body, wire, form, Asked(target, "sse"))
            assert whole is not None
            assert streamed is not None
            bodies[f"{wire}-{form}-{sample}"] = {False: whole, True: streamed}
    return read_by_sdk(SDKS[target], bodies)


@pytest.mark.parametrize("case", CASES)
def test_the_sdk_reads_what_was_recorded(read: dict[str, Any], target: Wire, case: str) -> None:
    """Text, calls, finish reason and usage are the recording's: create, `.stream()`, sync and async."""
    expected = told(SAMPLES[case.split("-")[-1]])
    for way in WAYS:
        assert READERS[target](read[case][way]) == expected, way


@pytest.mark.parametrize("case", CASES)
def test_each_event_is_of_the_sdks_own_types(read: dict[str, Any], case: str) -> None:
    """The answer and every event validate against the types that the SDK declares, sync and async alike."""
    assert read[case]["invalid"] == []
    assert read[case]["events"] == read[case]["async_events"]
