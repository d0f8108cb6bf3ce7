"""Anthropic's SDK reads what is rendered for Messages: the proof that it is what it should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.wire.forms import anthropic
from wire.forms.typed_answers import CASES, TEXT, answer, meaning
from wire.forms.typed_sdk import read_by_sdk

pytestmark = pytest.mark.once

SEARCH: JsonObject = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "locks"},
}
FOUND: JsonObject = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://docs.example/locks",
            "title": "Locks",
            "encrypted_content": "RW5j",
            "page_age": None,
        }
    ],
}
LOCATED: JsonObject = {
    "type": "char_location",
    "cited_text": "pins",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 3,
    "end_char_index": 7,
}
OWN: dict[str, CanonicalAnswer] = {
    "signed": answer({"type": "reasoning", "text": "Hm.", "signature": "c2ln"}, TEXT),
    "unsaid": answer({"type": "reasoning", "text": "", "signature": "c2ln"}, TEXT),
    "search": answer(
        {"type": "opaque", "wire": "anthropic", "value": SEARCH},
        {"type": "opaque", "wire": "anthropic", "value": FOUND},
        {"type": "text", "text": "It pins.", "citations": [LOCATED]},
        wire="anthropic",
    ),
}
EQUAL = {case: CASES[case] for case in CASES if case not in ("no-ids", "custom-call", "cited")} | OWN
"""Answers of which this wire can say everything."""
ANSWERS = CASES | OWN


@pytest.fixture(scope="module")
def read() -> dict[str, Any]:
    """All cases, read by the SDK."""
    bodies = {
        case: {
            False: anthropic.render(found, Asked("anthropic", "whole")),
            True: anthropic.render(found, Asked("anthropic", "sse")),
        }
        for case, found in ANSWERS.items()
    }
    return read_by_sdk("anthropic", bodies)


@pytest.mark.parametrize("case", ANSWERS)
def test_each_event_is_of_the_sdks_own_types(read: dict[str, Any], case: str) -> None:
    """The message and every event validate against the types that the SDK declares."""
    assert read[case]["invalid"] == []


@pytest.mark.parametrize("case", EQUAL)
@pytest.mark.parametrize("way", ["whole", "helper", "async_whole", "async_helper"])
def test_the_sdk_reads_what_was_meant(read: dict[str, Any], case: str, way: str) -> None:
    """Whole and through `.stream()`, sync and async, the SDK returns the answer that was rendered."""
    returned = json.dumps(read[case][way]).encode()
    assert meaning(anthropic.parse("whole", returned)) == meaning(EQUAL[case])


@pytest.mark.parametrize("case", ANSWERS)
def test_a_stream_and_a_whole_message_are_one(read: dict[str, Any], case: str) -> None:
    """The SDK puts the same message together from the events as it reads from the whole body."""
    found = read[case]
    parsed = [
        anthropic.parse("whole", json.dumps(found[way]).encode())
        for way in ("whole", "helper", "async_whole", "async_helper")
    ]
    assert [meaning(one) for one in parsed] == [meaning(parsed[0])] * 4
    assert found["events"] == found["async_events"]


def test_a_custom_call_is_a_function_with_one_argument(read: dict[str, Any]) -> None:
    """The free text of a custom tool reaches the client of this wire as `{"input": …}`."""
    (block,) = read["custom-call"]["helper"]["content"]
    assert (block["name"], block["input"]) == ("exec", {"input": "text('hi')"})


def test_ids_that_are_missing_are_made(read: dict[str, Any]) -> None:
    """Two calls without ids get two, the same in both forms."""
    whole, helper = read["no-ids"]["whole"], read["no-ids"]["helper"]
    ids = [block["id"] for block in whole["content"]]
    assert len(set(ids)) == 2
    assert all(found.startswith("toolu_") for found in ids)
    assert ids == [block["id"] for block in helper["content"]]
    assert whole["id"].startswith("msg_")
    assert whole["id"] == helper["id"]


def test_a_citation_of_the_web_keeps_its_source(read: dict[str, Any]) -> None:
    """A citation with an address comes out with it, and with the words that its positions mark."""
    (block,) = read["cited"]["helper"]["content"]
    (citation,) = block["citations"]
    assert citation["url"] == "https://docs.example/locks"
    assert citation["cited_text"] == "Lock files pin versions."
