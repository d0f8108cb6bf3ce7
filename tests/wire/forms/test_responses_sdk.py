"""OpenAI's SDK reads what is rendered for Responses: the proof that it is what it should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.wire.forms import responses
from wire.forms.typed_answers import CASES, answer, meaning
from wire.forms.typed_sdk import read_by_sdk

pytestmark = pytest.mark.once

SEARCH: JsonObject = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "locks"},
}
ANSWERS: dict[str, CanonicalAnswer] = {
    **CASES,
    "refusal": answer({"type": "text", "text": "I will not do that.", "refusal": True}),
    "summaries": answer(
        {"type": "reasoning", "summary": ["**One**", "**Two**"], "encrypted_content": "Z0FBQUFB"},
        {"type": "text", "text": "Done.", "item_id": "msg_1", "phase": "final_answer"},
        wire="responses",
    ),
    "search": answer({"type": "opaque", "wire": "responses", "value": SEARCH}, wire="responses"),
}
EQUAL = [case for case in ANSWERS if case != "no-ids"]


@pytest.fixture(scope="module")
def read() -> dict[str, Any]:
    """All cases, read by the SDK."""
    bodies = {
        case: {
            False: responses.render(found, Asked("responses", "whole")),
            True: responses.render(found, Asked("responses", "sse")),
        }
        for case, found in ANSWERS.items()
    }
    return read_by_sdk("openai", bodies)


@pytest.mark.parametrize("case", ANSWERS)
def test_each_event_is_of_the_sdks_own_types(read: dict[str, Any], case: str) -> None:
    """The response and every event validate against the types that the SDK declares."""
    assert read[case]["invalid"] == []


@pytest.mark.parametrize("case", EQUAL)
@pytest.mark.parametrize("way", ["whole", "helper", "final", "async_whole", "async_helper"])
def test_the_sdk_reads_what_was_meant(read: dict[str, Any], case: str, way: str) -> None:
    """Whole and through `.stream()`, sync and async, the SDK returns the answer that was rendered."""
    returned = json.dumps(read[case][way]).encode()
    assert meaning(responses.parse("whole", returned)) == meaning(ANSWERS[case])


@pytest.mark.parametrize("case", ANSWERS)
def test_the_deltas_say_what_the_items_say(read: dict[str, Any], case: str) -> None:
    """Someone who listens to the deltas alone hears the texts and arguments of the final items."""
    events = read[case]["events"]
    assert events == read[case]["async_events"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    heard: dict[int, str] = {}
    for event in events:
        if event["type"].endswith(".delta"):
            heard[event["output_index"]] = heard.get(event["output_index"], "") + event["delta"]
    for index, item in enumerate(events[-1]["response"]["output"]):
        said = [item.get("arguments", ""), item.get("input", "")]
        for part in [*item.get("summary", []), *item.get("content", [])]:
            said.append(part.get("text", "") + part.get("refusal", ""))
        assert heard.get(index, "") == "".join(said)


def test_ids_that_are_missing_are_made(read: dict[str, Any]) -> None:
    """Two calls without ids get two, the same in both forms, and so do their items and the response."""
    whole, helper = read["no-ids"]["whole"], read["no-ids"]["helper"]
    ids = [found[name] for found in whole["output"] for name in ("id", "call_id")]
    assert len(set(ids)) == 4
    assert [found[:3] for found in ids] == ["fc_", "cal", "fc_", "cal"]
    assert ids == [found[name] for found in helper["output"] for name in ("id", "call_id")]
    assert whole["id"].startswith("resp_")
    assert whole["id"] == helper["id"]
