"""For every ordered pair of the nine forms: what both can express survives, and what is lost is named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Rendered
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers
from rewind_proxy.wire.adapters import ADAPTERS
from rewind_proxy.wire.forms import FORMS, convert
from wire.forms.form_answers import NINE, SAMPLES, Told, random_answers, told
from wire.forms.typed_answers import damaged

Spelling = tuple[Wire, Form]
PAIRS = list(product(NINE, NINE))
MANY = ("chat_completions", "gemini")
"""The wires that can give several choices."""


def spelt(spelling: Spelling) -> str:
    return f"{spelling[0]}.{spelling[1]}"


def recorded(answer: CanonicalAnswer, spelling: Spelling) -> tuple[bytes, CanonicalAnswer]:
    """A recording of `answer` in a form, and what that form could say of it."""
    wire, form = spelling
    body = FORMS[wire].render(answer, Asked(wire, form)).body
    read = FORMS[wire].parse(form, body)
    assert read is not None
    return body, read


def converted(answer: CanonicalAnswer, source: Spelling, target: Spelling) -> tuple[Told, Told, Rendered]:
    """What a recording in one form tells, and what it tells in another."""
    body, read = recorded(answer, source)
    rendered = convert(body, *source, Asked(*target))
    assert rendered is not None
    again = FORMS[target[0]].parse(target[1], rendered.body)
    assert again is not None
    if len(read.choices) > 1 and target[0] not in MANY:
        assert f"choices {len(read.choices)}->1" in rendered.notes
    else:
        assert len(again.choices) == len(read.choices)
    return told(read), told(again), rendered


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=spelt)
def test_a_recording_tells_the_same_in_another_form(source: Spelling, target: Spelling, sample: str) -> None:
    """Text, tool calls with their order, the finish reason and usage are those of the recording."""
    before, after, rendered = converted(SAMPLES[sample], source, target)
    assert after == before
    assert sum(rendered.chunks) == len(rendered.body)
    assert all(note.isascii() and note.isprintable() for note in rendered.notes)


@given(pair=st.sampled_from(PAIRS), answer=random_answers(choices=3))
@settings(max_examples=300, deadline=None)
def test_any_answer_survives_or_its_loss_is_named(
    pair: tuple[Spelling, Spelling], answer: CanonicalAnswer
) -> None:
    """Random answers come through any pair; only a finish reason the target has no word for changes."""
    before, after, rendered = converted(answer, *pair)
    assert (after.text, after.calls, after.usage) == (before.text, before.calls, before.usage)
    told_of = [note for note in rendered.notes if note == "refusal" or note.startswith("finish ")]
    assert after.finish == before.finish or told_of


@pytest.mark.parametrize("spelling", NINE, ids=spelt)
@given(answer=random_answers(choices=2))
@settings(max_examples=30, deadline=None)
def test_reading_and_writing_again_changes_nothing(spelling: Spelling, answer: CanonicalAnswer) -> None:
    """What was read from a form is written in it so that it reads the same, and always in the same bytes."""
    wire, form = spelling
    _, read = recorded(answer, spelling)
    again = FORMS[wire].render(read, Asked(wire, form))
    assert FORMS[wire].parse(form, again.body) == read
    assert FORMS[wire].render(read, Asked(wire, form)) == again


@pytest.mark.parametrize("spelling", NINE, ids=spelt)
@given(answer=random_answers(choices=2))
@settings(max_examples=15, deadline=None)
def test_a_rendered_answer_is_complete_for_the_adapter(spelling: Spelling, answer: CanonicalAnswer) -> None:
    """The adapter that judges recordings takes each rendered answer for a complete one, with its usage."""
    wire, form = spelling
    body, read = recorded(answer, spelling)
    ending = ADAPTERS[wire].ending(form, "generate", body)
    assert ending.kind in ("complete", "length")
    assert ending.model == read.model
    assert ending.usage is not None
    assert read.usage is not None
    assert ending.usage.output_tokens == read.usage.output


def _many_parts_of_content() -> tuple[Spelling, JsonValue]:
    content: list[JsonValue] = [{"type": "reference", "reference_ids": [number]} for number in range(15_000)]
    choice: JsonObject = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    return ("chat_completions", "whole"), {"id": "c-1", "choices": [choice]}


def _many_citations() -> tuple[Spelling, JsonValue]:
    said = "wörd " * 100_000
    sources: list[JsonValue] = [{"web": {"uri": f"https://e.x/{number}"}} for number in range(5_000)]
    supports: list[JsonValue] = [
        {
            "segment": {"startIndex": 480_000 + 6 * number, "endIndex": 480_005 + 6 * number},
            "groundingChunkIndices": [number],
        }
        for number in range(5_000)
    ]
    candidate: JsonObject = {
        "content": {"parts": [{"text": said}], "role": "model"},
        "finishReason": "STOP",
        "groundingMetadata": {"groundingChunks": sources, "groundingSupports": supports},
    }
    return ("gemini", "whole"), {"candidates": [candidate]}


@pytest.mark.parametrize("made", [_many_parts_of_content, _many_citations])
def test_a_long_answer_takes_no_longer_than_its_length(
    made: Callable[[], tuple[Spelling, JsonValue]],
) -> None:
    """About half a megabyte that repeats whatever an answer can repeat is converted in little time."""
    spelling, value = made()
    body = json.dumps(value).encode()
    for target in (spelling, ("responses", "sse"), ("gemini", "sse")):
        begun = time.process_time()
        assert convert(body, *spelling, Asked(*target)) is not None
        assert time.process_time() - begun < 2


def test_a_generic_recording_is_not_converted() -> None:
    """What no adapter understands has no canonical answer, in either direction."""
    body, _ = recorded(SAMPLES["text"], ("gemini", "whole"))
    assert convert(b'{"any": 1}', "generic", "whole", Asked("gemini", "whole")) is None
    assert convert(body, "gemini", "whole", Asked("generic", "whole")) is None


DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"{",
    "a number": b"3",
    "an array": b"[]",
    "an empty object": b"{}",
    "HTML": b"<html>busy</html>",
    "half a surrogate": b'"\xed\xa0\x80"',
    "a comment": b": ping\n\n",
    "no data": b"event: x\ndata:\n\n",
    "deep": DEEP,
    "deep events": b"data: " + DEEP + b"\n\n",
    "an error": b'{"error":{"message":"overloaded","code":529,"type":"error"}}',
    "an error event": b'event: error\ndata: {"type":"error","error":{"message":"overloaded"}}\n\n',
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("source", NINE, ids=spelt)
def test_what_is_no_complete_success_is_not_converted(source: Spelling, broken: str) -> None:
    """Errors, cut and odd bodies give nothing, and never raise."""
    for target in NINE:
        assert convert(BROKEN[broken], *source, Asked(*target)) is None


@given(
    spelling=st.sampled_from(NINE),
    target=st.sampled_from(NINE),
    sample=st.sampled_from(["calls", "cited"]),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_damage_does_not_raise(
    spelling: Spelling, target: Spelling, sample: str, data: st.DataObject
) -> None:
    """With any value anywhere in it replaced or gone, a recording is converted or is no answer."""
    body, _ = recorded(SAMPLES[sample], spelling)
    if spelling[1] == "sse":
        events = [event.data for event in answers.events(body)]
        place = data.draw(st.integers(0, len(events) - 1))
        if (event := answers.load_object(events[place])) is not None:
            events[place] = json.dumps(data.draw(damaged(event)))
        body = "".join(f"data: {event}\n\n" for event in events).encode()
    else:
        body = json.dumps(data.draw(damaged({"body": json.loads(body)}))).encode()[9:-1]
    convert(body, *spelling, Asked(*target))


@pytest.mark.parametrize("spelling", NINE, ids=spelt)
def test_a_cut_recording_is_not_converted(spelling: Spelling) -> None:
    """Whatever is cut off before the end of an answer, it is no answer, and reading it does not raise."""
    wire, form = spelling
    body, _ = recorded(SAMPLES["calls"], spelling)
    half = body[: len(body) // 2]
    assert FORMS[wire].parse(form, half) is None
    for end in range(0, len(body), 97):
        FORMS[wire].parse(form, body[:end])
