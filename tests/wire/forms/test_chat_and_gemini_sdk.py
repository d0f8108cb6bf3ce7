"""OpenAI's and Google's SDKs read what was recorded through any wire, in every way they have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Rendered
from rewind_proxy.canonical.model import Form, JsonValue, Wire
from rewind_proxy.wire.forms import FORMS, convert
from wire.forms.form_answers import NINE, SAMPLES, SIGNATURE, answer, call, text, told
from wire.forms.typed_sdk import read_by_sdk

pytestmark = pytest.mark.once

READ: tuple[Form, ...] = ("whole", "sse")
READ_SAMPLES = ("calls", "cut", "cited")
CASES = [f"{wire}-{form}-{sample}" for wire, form in NINE for sample in READ_SAMPLES]
"""A sample, and the form in which it was recorded."""
OWN: dict[str, CanonicalAnswer] = {
    "choices": replace(SAMPLES["calls"], choices=SAMPLES["calls"].choices + SAMPLES["cut"].choices),
    "refusal": answer(text("I can say this."), text("But not this other thing.", refusal=True)),
    "custom": answer(call("call_x", "shell", 'echo "hi"', call_type="custom"), finish="tool_calls"),
    "no ids": replace(
        SAMPLES["calls"], id="", choices=answer(call("", "a", "{}"), call("", "a", "{}")).choices
    ),
    "nothing": answer(),
    "no usage": replace(SAMPLES["text"], usage=None),
}
"""Samples of what only some wires can say."""


def key(case: str, form: Form) -> str:
    """A case as it stands in an address."""
    return f"{case.replace(' ', '_')}.{form}"


def rendered(wire: Wire) -> dict[str, Rendered]:
    """Every case in the forms that the SDK of the wire reads."""
    found: dict[str, Rendered] = {}
    for form in READ:
        asked = Asked(wire, form)
        for source, recorded_as in NINE:
            for sample in READ_SAMPLES:
                body = FORMS[source].render(SAMPLES[sample], Asked(source, recorded_as)).body
                converted = convert(body, source, recorded_as, asked)
                assert converted is not None
                found[key(f"{source}-{recorded_as}-{sample}", form)] = converted
        for case, canonical in OWN.items():
            found[key(case, form)] = FORMS[wire].render(canonical, asked)
    return found


def read(wire: Wire, script: str) -> dict[str, Any]:
    """What the SDK of a wire makes of every case."""
    return read_by_sdk(wire, {case: {False: one, True: one} for case, one in rendered(wire).items()}, script)


@pytest.fixture(scope="module")
def chat() -> dict[str, Any]:
    return read("chat_completions", "read_chat.py")


@pytest.fixture(scope="module")
def gemini() -> dict[str, Any]:
    return read("gemini", "read_gemini.py")


CHAT_WAYS: dict[Form, list[str]] = {
    "whole": ["create", "async create"],
    "sse": ["stream", "helper", "async stream", "async helper"],
}
GEMINI_WAYS: dict[Form, list[str]] = {
    "whole": ["generate", "async generate"],
    "sse": ["stream", "chat", "async stream", "async chat"],
}
FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}


def meant(found: dict[str, Any], finish: str, calls: list[tuple[str, JsonValue]]) -> list[JsonValue]:
    """What a reading has to tell, as `told` gives it."""
    return [found["text"] or "", [list(one) for one in calls], finish, found["usage"][:3]]


def expected(case: str) -> list[JsonValue]:
    """What the sample of a case tells."""
    sample = told(SAMPLES[case.split("-")[-1]])
    assert sample.usage is not None
    return [sample.text, [list(one) for one in sample.calls], sample.finish, list(sample.usage)]


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("case", CASES)
def test_openai_reads_what_was_recorded(chat: dict[str, Any], case: str, form: Form) -> None:
    """Text, calls, finish reason and usage are the recording's: create, `.stream()`, sync and async."""
    for way in CHAT_WAYS[form]:
        (found,) = chat[key(case, form)][way]
        calls = [(name, json.loads(arguments)) for _, name, arguments in found["calls"]]
        assert meant(found, found["finish"], calls) == expected(case), way


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("case", CASES)
def test_google_reads_what_was_recorded(gemini: dict[str, Any], case: str, form: Form) -> None:
    """Text, calls, finish reason and usage are the recording's, through models and chats, sync and async."""
    for way in GEMINI_WAYS[form]:
        (found,) = gemini[key(case, form)][way]
        calls = [(name, arguments) for _, name, arguments in found["calls"]]
        finish = "tool_calls" if calls else FINISHES[found["finish"]]
        assert meant(found, finish, calls) == expected(case), way
    if form == "sse":
        assert gemini[key(case, form)]["texts"] == expected(case)[0]


@pytest.mark.parametrize("case", [case for case in CASES if case.endswith("calls")])
def test_the_ids_of_calls_are_the_recordings(chat: dict[str, Any], gemini: dict[str, Any], case: str) -> None:
    """A result that the client sends for a call names the same call as in the recording."""
    for form in READ:
        for found in (*chat[key(case, form)].values(), *gemini[key(case, form)].values()):
            if isinstance(found, list) and isinstance(found[0], dict):
                ids = [one[0] for one in found[0]["calls"]]
                assert ids == ["call_a", "call_b", "call_c"]


@pytest.mark.parametrize("form", READ)
def test_thoughts_are_read_apart(chat: dict[str, Any], gemini: dict[str, Any], form: Form) -> None:
    """Reasoning is where each SDK's users look for it, and Google's keeps the signature."""
    case = key("gemini-sse-calls", form)
    for way in CHAT_WAYS[form]:
        assert chat[case][way][0]["reasoning"] == "Three files; the second first."
    for way in GEMINI_WAYS[form]:
        found = gemini[case][way][0]
        assert (found["reasoning"], found["signatures"]) == ("Three files; the second first.", [SIGNATURE])


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("source", ["chat_completions-sse", "responses-whole", "gemini-json-array"])
def test_citations_stand_at_their_words(
    chat: dict[str, Any], gemini: dict[str, Any], source: str, form: Form
) -> None:
    """Places count characters at OpenAI and bytes at Google, and mark the same words."""
    case = key(f"{source}-cited", form)
    for way in CHAT_WAYS[form]:
        assert chat[case][way][0]["sources"] == [["https://example.com/map", 0, 24]]
    for way in GEMINI_WAYS[form]:
        (found,) = gemini[case][way][0]["sources"]
        assert found == ["https://example.com/map", 0, 25, "Zürich is in Switzerland"]


@pytest.mark.parametrize("form", READ)
def test_every_choice_is_read(chat: dict[str, Any], gemini: dict[str, Any], form: Form) -> None:
    """Two choices are two for both SDKs, each with its own finish reason."""
    for way in CHAT_WAYS[form]:
        assert [one["finish"] for one in chat[key("choices", form)][way]] == ["tool_calls", "length"]
    for way in GEMINI_WAYS[form]:
        assert [one["finish"] for one in gemini[key("choices", form)][way]] == ["STOP", "MAX_TOKENS"]


@pytest.mark.parametrize("form", READ)
def test_a_refusal_is_one_or_is_text(chat: dict[str, Any], gemini: dict[str, Any], form: Form) -> None:
    """OpenAI's SDK has a member for a refusal; at Google it is what the model says."""
    for way in CHAT_WAYS[form]:
        (found,) = chat[key("refusal", form)][way]
        assert (found["text"], found["refusal"]) == ("I can say this.", "But not this other thing.")
    for way in GEMINI_WAYS[form]:
        assert gemini[key("refusal", form)][way][0]["text"].endswith("But not this other thing.")


@pytest.mark.parametrize("form", READ)
def test_a_custom_call_is_one_or_a_function(chat: dict[str, Any], gemini: dict[str, Any], form: Form) -> None:
    """The free text of a custom tool's call arrives, at Google as the argument `input`."""
    for way in CHAT_WAYS[form]:
        assert chat[key("custom", form)][way][0]["calls"] == [["call_x", "shell", 'echo "hi"']]
    for way in GEMINI_WAYS[form]:
        assert gemini[key("custom", form)][way][0]["calls"] == [["call_x", "shell", {"input": 'echo "hi"'}]]


@pytest.mark.parametrize("form", READ)
def test_calls_without_ids_get_two(chat: dict[str, Any], form: Form) -> None:
    """Where the recording has no ids of calls (Gemini), each gets its own, the same in both forms."""
    found = {tuple(one[0] for one in chat[key("no ids", form)][way][0]["calls"]) for way in CHAT_WAYS[form]}
    ((first, second),) = found
    assert first != second
    assert first.startswith("call_")
    assert (
        chat[key("no ids", "whole")]["create"][0]["calls"] == chat[key("no ids", "sse")]["stream"][0]["calls"]
    )


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("case", ["nothing", "no usage"])
def test_what_is_missing_is_no_error(
    chat: dict[str, Any], gemini: dict[str, Any], case: str, form: Form
) -> None:
    """An answer without parts, or without usage, is read by both SDKs all the same."""
    for way in CHAT_WAYS[form]:
        assert chat[key(case, form)][way][0]["finish"] == "stop"
    for way in GEMINI_WAYS[form]:
        assert gemini[key(case, form)][way][0]["finish"] == "STOP"


def test_the_helper_tells_of_each_step(chat: dict[str, Any]) -> None:
    """OpenAI's helper fires its events for deltas and for the end of texts and arguments."""
    assert chat[key("chat_completions-whole-calls", "sse")]["events"] == [
        "chunk",
        "content.delta",
        "content.done",
        "tool_calls.function.arguments.delta",
        "tool_calls.function.arguments.done",
    ]
    assert "refusal.done" in chat[key("refusal", "sse")]["events"]
