"""Chat Completions answers, as OpenAI and the many that speak its dialect send them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import AnswerUsage, Asked, CanonicalAnswer, Choice, Finish
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Target, Usage
from rewind_proxy.cli.provider.chat_completions import CHAT_COMPLETIONS as PROVIDER
from rewind_proxy.cli.provider.turn import decide
from rewind_proxy.wire import answers
from rewind_proxy.wire.chat_completions import ChatCompletions
from rewind_proxy.wire.forms import convert
from rewind_proxy.wire.forms.chat_completions import parse, render
from rewind_proxy.wire.forms.pieces import pieces
from wire.forms.form_answers import SAMPLES, SIGNATURE, SPEECH, answer, call, parts, text, usages

GOLDEN = Path(__file__).parent / "golden"
WHOLE = Asked("chat_completions", "whole")
STREAM = Asked("chat_completions", "sse")
Messages = dict[str, JsonObject]


def stream(*chunks: JsonValue, done: bool = True) -> bytes:
    """A stream of these chunks."""
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return (events + ("data: [DONE]\n\n" if done else "")).encode()


def delta(**members: JsonValue) -> JsonObject:
    """A chunk with this delta."""
    return {"id": "c-1", "model": "m", "choices": [{"index": 0, "delta": members, "finish_reason": None}]}


def end(reason: str = "stop", **members: JsonValue) -> JsonObject:
    """The chunk that ends the choice."""
    return {"id": "c-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason, **members}]}


def whole(message: JsonObject, reason: str = "stop", **members: JsonValue) -> bytes:
    """A completion of one choice."""
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": reason}
    return json.dumps({"id": "c-1", "model": "m", "choices": [choice], **members}).encode()


def read(form: Form, body: bytes) -> CanonicalAnswer:
    """The canonical answer."""
    found = parse(form, body)
    assert found is not None
    return found


def said(form: Form, body: bytes) -> tuple[JsonObject, ...]:
    """The parts of the only choice."""
    (choice,) = read(form, body).choices
    return choice.parts


def rendered(body: bytes, form: Form, asked: Asked) -> JsonObject:
    """A recording in another form, put together by the adapter's own reading for streams."""
    found = convert(body, "chat_completions", form, asked)
    assert found is not None
    value = answers.load_object(found.body)
    assert value is not None
    return value


def chunks(body: bytes) -> list[JsonObject]:
    """The chunks of a stream, which has to end in `[DONE]`."""
    events = [event.data for event in answers.events(body)]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_the_stream_of_a_small_answer() -> None:
    """A rendered stream is what the golden file says, byte for byte."""
    small = answer(
        {"type": "reasoning", "text": "A folder, then."},
        text("I will look into the folder first, then tell you more."),
        call("call_1", "list", '{"path": "/src"}'),
        finish="tool_calls",
    )
    made = render(small, STREAM)
    assert made.body == (GOLDEN / "chat_completions.sse").read_bytes()
    assert made.content_type == "text/event-stream; charset=utf-8"


def test_a_stream_has_the_grammar_of_the_wire() -> None:
    """The role first, deltas, one finish reason a choice, usage beside no choices, fair pieces."""
    two = replace(SAMPLES["calls"], choices=SAMPLES["calls"].choices + SAMPLES["text"].choices)
    made = render(two, STREAM)
    found = chunks(made.body)
    assert {chunk["object"] for chunk in found} == {"chat.completion.chunk"}
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in found}) == 1
    assert len(made.chunks) == len(found) + 1
    assert found.pop()["choices"] == []
    choices = [choice for chunk in found for choice in answers.objects(chunk["choices"])]
    for index in (0, 1):
        own = [choice for choice in choices if choice["index"] == index]
        deltas = [choice["delta"] for choice in own]
        assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
        assert [one["role"] for one in deltas if isinstance(one, dict) and "role" in one] == ["assistant"]
        assert [bool(choice["finish_reason"]) for choice in own] == [False] * (len(own) - 1) + [True]
        spoken = [one["content"] for one in deltas if isinstance(one, dict) and one.get("content")]
        assert "".join(map(str, spoken)) == SPEECH
        assert all(20 <= len(str(piece)) <= 48 for piece in spoken[:-1])


@pytest.mark.parametrize("include", [True, False])
def test_usage_is_streamed_when_it_is_asked_for(include: bool) -> None:
    """With `include_usage` each chunk announces usage and the last has it; without, none speaks of it."""
    found = chunks(render(SAMPLES["text"], replace(STREAM, include_usage=include)).body)
    if include:
        assert [chunk["usage"] for chunk in found[:-1]] == [None] * (len(found) - 1)
        assert isinstance(found[-1]["usage"], dict)
    else:
        assert all("usage" not in chunk for chunk in found)


def test_usage_that_was_not_recorded_is_named() -> None:
    """A stream recorded without usage gives a completion without it, and a note."""
    made = convert(stream(delta(content="Hi"), end()), "chat_completions", "sse", WHOLE)
    assert made is not None
    assert b"usage" not in made.body
    assert made.notes == ("usage unknown",)


BOTH: dict[str, tuple[bytes, bytes, tuple[JsonObject, ...]]] = {
    "text": (
        whole({"role": "assistant", "content": "Hello", "refusal": None, "annotations": []}),
        stream(delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), end()),
        (text("Hello"),),
    ),
    "interleaved calls": (
        whole(
            {
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                    {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"y":2}'}},
                ],
            },
            "tool_calls",
        ),
        stream(
            delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}]),
            delta(tool_calls=[{"index": 1, "id": "b", "type": "function", "function": {"name": "g"}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x'}}]),
            delta(
                tool_calls=[
                    {"index": 1, "function": {"arguments": '{"y":'}},
                    {"index": 0, "function": {"arguments": '":1}'}},
                ]
            ),
            delta(tool_calls=[{"index": 1, "function": {"arguments": "2}"}}]),
            end("tool_calls"),
        ),
        (call("a", "f", '{"x":1}'), call("b", "g", '{"y":2}')),
    ),
    "a custom call": (
        whole(
            {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}]},
            "tool_calls",
        ),
        stream(
            delta(
                tool_calls=[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": ""}}]
            ),
            delta(tool_calls=[{"index": 0, "custom": {"input": "ls "}}]),
            delta(tool_calls=[{"index": 0, "custom": {"input": "-l"}}]),
            end("tool_calls"),
        ),
        (call("a", "sh", "ls -l", call_type="custom"),),
    ),
    "a refusal": (
        whole({"content": None, "refusal": "I will not."}),
        stream(delta(refusal="I will"), delta(refusal=" not."), end()),
        (text("I will not.", refusal=True),),
    ),
    "reasoning of DeepSeek": (
        whole({"content": "Hi", "reasoning_content": "A greeting."}),
        stream(
            delta(reasoning_content="A gree"), delta(reasoning_content="ting."), delta(content="Hi"), end()
        ),
        ({"type": "reasoning", "text": "A greeting."}, text("Hi")),
    ),
    "reasoning under two names": (
        whole({"content": "Hi", "reasoning_content": "A greeting.", "reasoning": "A greeting."}),
        stream(delta(reasoning_content="A greeting.", reasoning="A greeting."), delta(content="Hi"), end()),
        (
            {"type": "reasoning", "text": "A greeting.", "names": ["reasoning_content", "reasoning"]},
            text("Hi"),
        ),
    ),
    "reasoning of OpenRouter": (
        whole(
            {
                "content": "Hi",
                "reasoning": "A greeting.",
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "A greeting.", "signature": SIGNATURE}
                ],
            }
        ),
        stream(
            delta(
                reasoning="A gree",
                reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "A gree"}],
            ),
            delta(
                reasoning="ting.", reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "ting."}]
            ),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "signature": SIGNATURE}]),
            delta(content="Hi"),
            end(),
        ),
        (
            {
                "type": "reasoning",
                "text": "A greeting.",
                "names": ["reasoning"],
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "A greeting.", "signature": SIGNATURE}
                ],
            },
            text("Hi"),
        ),
    ),
    "citations": (
        whole(
            {
                "content": "See here.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "url": "https://e.x",
                            "title": "T",
                            "start_index": 4,
                            "end_index": 8,
                        },
                    }
                ],
            }
        ),
        stream(
            delta(content="See here."),
            delta(
                annotations=[
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "url": "https://e.x",
                            "title": "T",
                            "start_index": 4,
                            "end_index": 8,
                        },
                    }
                ]
            ),
            end(),
        ),
        (text("See here.", citations=[{"url": "https://e.x", "title": "T", "start": 4, "end": 8}]),),
    ),
    "content in parts (Mistral)": (
        whole(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "A greeting."}]},
                    {"type": "text", "text": "Hello"},
                ]
            }
        ),
        stream(
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "A gree"}]}]),
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "ting."}]}]),
            delta(content="Hel"),
            delta(content="lo"),
            end(),
        ),
        ({"type": "reasoning", "text": "A greeting."}, text("Hello")),
    ),
    "the older function_call": (
        whole({"content": None, "function_call": {"name": "f", "arguments": '{"x":1}'}}, "function_call"),
        stream(
            delta(function_call={"name": "f", "arguments": ""}),
            delta(function_call={"arguments": '{"x"'}),
            delta(function_call={"arguments": ":1}"}),
            end("function_call"),
        ),
        (call("", "f", '{"x":1}', function_call=True),),
    ),
    "audio, and what nobody knows": (
        whole(
            {"content": None, "audio": {"id": "au", "data": "QUJD", "transcript": "Hi"}, "x_new": {"a": [1]}}
        ),
        stream(
            delta(audio={"id": "au", "transcript": "H"}),
            delta(audio={"data": "QU", "transcript": "i"}),
            delta(audio={"data": "JD"}, x_new={"a": [1]}),
            end(),
        ),
        (
            {
                "type": "opaque",
                "wire": "chat_completions",
                "value": {"audio": {"id": "au", "data": "QUJD", "transcript": "Hi"}, "x_new": {"a": [1]}},
            },
        ),
    ),
}
"""An answer whole, the same as a stream, and its canonical parts."""


@pytest.mark.parametrize("case", BOTH)
def test_both_forms_are_read_alike(case: str) -> None:
    """A stream adds up to what the whole answer says."""
    in_one, in_many, canonical = BOTH[case]
    assert _sorted(said("whole", in_one)) == _sorted(canonical)
    assert _sorted(said("sse", in_many)) == _sorted(canonical)


def _sorted(found: tuple[JsonObject, ...]) -> str:
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize("case", BOTH)
def test_one_form_gives_the_other_on_this_wire(case: str) -> None:
    """From a stream comes the whole message as the provider gives it, from a whole one the deltas."""
    in_one, in_many, _ = BOTH[case]
    sent = json.loads(in_one)["choices"][0]
    made = rendered(in_many, "sse", WHOLE)
    (choice,) = answers.objects(made["choices"])
    assert _meant(choice["message"]) == _meant(sent["message"])
    assert choice["finish_reason"] == sent["finish_reason"]
    there = convert(in_one, "chat_completions", "whole", STREAM)
    assert there is not None
    back = rendered(there.body, "sse", WHOLE)
    (again,) = answers.objects(back["choices"])
    assert _meant(again["message"]) == _meant(sent["message"])


def _meant(message: JsonValue) -> JsonObject:
    assert isinstance(message, dict)
    return {name: value for name, value in message.items() if name != "role" and value not in (None, [])}


def test_indices_that_gateways_leave_out_or_repeat() -> None:
    """Calls are told apart by their ids where the index is missing, or 0 in all of them."""
    first: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    second: JsonObject = {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    expected = (call("a", "f", "{}"), call("b", "f", "{}"))
    zero: JsonObject = {"index": 0}
    for bodies in ([[first], [second]], [[zero | first], [zero | second]], [[first, second]]):
        chunked = [delta(tool_calls=list(calls)) for calls in bodies]
        assert said("sse", stream(*chunked, end("tool_calls"))) == expected


def test_parallel_calls_stand_in_the_order_of_their_indexes() -> None:
    """A call that begins before the one with the lower index follows it, as the SDK puts them together."""
    second: JsonObject = {"index": 1, "id": "b", "type": "function", "function": {"name": "g"}}
    first: JsonObject = {"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}
    pieces_of: list[JsonValue] = [
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 1, "function": {"arguments": "{}"}},
    ]
    body = stream(
        delta(tool_calls=[second]),
        delta(tool_calls=[first]),
        delta(tool_calls=pieces_of),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        end("tool_calls"),
    )
    assert said("sse", body) == (call("a", "f", '{"x":1}'), call("b", "g", "{}"))


def test_an_id_that_two_calls_have_is_given_to_one() -> None:
    """Results are told apart by the ids of their calls: the second call gets another, and that is named."""
    made = render(answer(call("a", "f", "{}"), call("a", "g", "{}")), WHOLE)
    (message,) = [choice["message"] for choice in json.loads(made.body)["choices"]]
    first, second = (one["id"] for one in message["tool_calls"])
    assert first == "a"
    assert second.startswith("call_")
    assert "repeated id" in made.notes


def test_what_is_said_again_is_said_once() -> None:
    """Gateways that repeat id and name of a call in each chunk, or send them empty, change neither."""
    found = said(
        "sse",
        stream(
            delta(
                tool_calls=[
                    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
                ]
            ),
            delta(
                tool_calls=[
                    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "}"}}
                ]
            ),
            delta(
                tool_calls=[{"index": 0, "id": "", "type": "", "function": {"name": None, "arguments": " "}}]
            ),
            end("tool_calls"),
        ),
    )
    assert found == (call("a", "f", "{} "),)


def test_half_a_character_in_each_of_two_chunks() -> None:
    """An emoji whose two escapes came in two deltas is one character again."""
    body = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
    body += b'data: {"choices":[{"delta":{"content":"\\ude00"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    assert said("sse", body) == (text("😀"),)
    lone = whole({"content": "a\ud83db"})
    made = convert(lone, "chat_completions", "whole", STREAM)
    assert made is not None
    assert said("sse", made.body) == (text("a\ud83db"),)


def test_tokens_stay_with_their_pieces() -> None:
    """Log probabilities come in the chunk of the tokens that they are of, and add up to all of them."""
    tokens: list[JsonValue] = [
        {"token": token, "logprob": -0.1, "bytes": None, "top_logprobs": []}
        for token in ("The", " quick", " brown", " fox", " jumps", " over", " the", " lazy", " dog", ".")
    ]
    words = "".join(str(token["token"]) for token in answers.objects(tokens))
    body = json.dumps(
        {
            "choices": [
                {
                    "index": 0,
                    "message": {"content": words},
                    "logprobs": {"content": tokens},
                    "finish_reason": "stop",
                }
            ]
        }
    ).encode()
    made = convert(body, "chat_completions", "whole", STREAM)
    assert made is not None
    told = []
    for chunk in chunks(made.body):
        for choice in answers.objects(chunk["choices"]):
            if isinstance(logprobs := choice["logprobs"], dict) and isinstance(choice["delta"], dict):
                found = [str(token["token"]) for token in answers.objects(logprobs["content"])]
                assert "".join(found) == choice["delta"]["content"]
                told.extend(found)
    assert "".join(told) == words
    assert len(made.chunks) > 4
    (again,) = read("sse", made.body).choices
    assert again.own["logprobs"] == {"content": tokens}


def test_what_only_this_wire_says_is_kept_on_it_and_named_on_others() -> None:
    """Fingerprint, tier, filter results and odd finish reasons stay on this wire; another wire names them."""
    body = whole(
        {"content": "Hi"},
        "model_length",
        system_fingerprint="fp_1",
        service_tier="default",
        citations=["https://e.x"],
        usage={"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4, "queue_time": 0.2},
    )
    made = convert(body, "chat_completions", "whole", STREAM)
    assert made is not None
    assert made.notes == ()
    found = chunks(made.body)
    assert all(chunk["system_fingerprint"] == "fp_1" for chunk in found)
    assert [chunk["citations"] for chunk in found if "citations" in chunk] == [["https://e.x"]]
    assert found[-1]["usage"] == json.loads(body)["usage"]
    assert read("sse", made.body).choices[0].own == {"finish_reason": "model_length"}
    elsewhere = convert(body, "chat_completions", "whole", Asked("gemini", "whole"))
    assert elsewhere is not None
    assert elsewhere.notes == (
        "system_fingerprint",
        "service_tier",
        "citations",
        "usage details",
        "finish details",
    )


def test_padding_of_a_stream_is_no_part_of_the_answer() -> None:
    """OpenAI pads its chunks against eavesdroppers; the padding is not kept."""
    found = read("sse", stream({**delta(content="Hi"), "obfuscation": "xYz"}, end()))
    assert found.own == {}


USAGES: dict[str, tuple[JsonObject, AnswerUsage]] = {
    "all": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        AnswerUsage(10, 7, 4, 2, 5),
    ),
    "reasoning counted apart (xAI)": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 22,
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        AnswerUsage(10, 12, reasoning=5),
    ),
    "nulls": (
        {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "prompt_tokens_details": None},
        AnswerUsage(10, 7),
    ),
}


@pytest.mark.parametrize("case", USAGES)
def test_usage_is_read(case: str) -> None:
    """Tokens read, written, cached and thought, as the dialects count them; here they stay as sent."""
    sent, expected = USAGES[case]
    body = whole({"content": "Hi"}, usage=sent)
    assert read("whole", body).usage == expected
    assert rendered(body, "whole", WHOLE)["usage"] == sent


COUNTS: JsonObject = {"prompt_tokens": 18, "completion_tokens": 39, "total_tokens": 57}
PLACES: dict[str, JsonObject] = {
    "Groq": {**end(), "x_groq": {"id": "req_1", "usage": COUNTS}},
    "Moonshot": end(usage=COUNTS),
}


@pytest.mark.parametrize("provider", PLACES)
def test_usage_is_found_where_a_provider_streams_it(provider: str) -> None:
    """Groq's own member and Moonshot's choice carry the usage of a stream that was not asked for any."""
    body = stream(delta(content="Hi"), PLACES[provider])
    assert read("sse", body).usage == AnswerUsage(18, 39)
    assert ChatCompletions().ending("sse", "generate", body).usage == Usage(18, 39, 0)


NOTES: dict[str, tuple[CanonicalAnswer, tuple[str, ...]]] = {
    "reasoning": (
        answer({"type": "reasoning", "summary": ["a", "b"], "signature": "s", "encrypted_content": "e"}),
        ("reasoning summary", "reasoning signature", "reasoning encrypted_content"),
    ),
    "order": (answer(call("a", "f", "{}"), text("After.")), ("order of parts",)),
    "opaque": (
        answer({"type": "opaque", "wire": "responses", "value": {"type": "web_search_call"}}),
        ("web_search_call",),
    ),
    "odd names": (
        answer({"type": "opaque", "wire": "responses", "value": {"type": "a\r\nset-cookie: é" + "x" * 90}}),
        ("a set-cookie " + "x" * 47,),
    ),
    "citations": (
        answer(text("Hi", citations=[{"file_id": "f"}, {"url": "https://e.x", "cited_text": "H"}])),
        ("citations", "citation cited_text"),
    ),
    "signed call": (answer(call("a", "f", "{}", signature="s")), ("tool_call signature",)),
    "stop sequence": (
        replace(answer(), choices=(Choice((), "stop", stop_sequence="END"),)),
        ("stop_sequence",),
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_what_is_lost_is_named(case: str) -> None:
    """Each thing this wire has no word for is one short phrase, safe in a header."""
    canonical, notes = NOTES[case]
    assert render(canonical, WHOLE).notes == notes
    assert render(canonical, STREAM).notes == notes


FINISHES: dict[Finish, tuple[str, tuple[str, ...]]] = {
    "stop": ("stop", ()),
    "length": ("length", ()),
    "tool_calls": ("tool_calls", ()),
    "content_filter": ("content_filter", ()),
    "refusal": ("content_filter", ("finish refusal->content_filter",)),
    "pause": ("stop", ("finish pause->stop",)),
}


@pytest.mark.parametrize("finish", FINISHES)
def test_finish_reasons(finish: Finish) -> None:
    """Each canonical finish has a reason of this wire, with a note where it says less."""
    reason, notes = FINISHES[finish]
    made = render(answer(text("Hi"), finish=finish), WHOLE)
    assert json.loads(made.body)["choices"][0]["finish_reason"] == reason
    assert made.notes == notes


def test_a_function_call_becomes_custom_where_the_tool_is() -> None:
    """A call that a wire without custom tools carried is one again for a client that offers such a tool."""
    wrapped = answer(call("a", "shell", '{"input": "ls"}'), finish="tool_calls")
    made = json.loads(render(wrapped, replace(WHOLE, custom_tools=frozenset({"shell"}))).body)
    (found,) = made["choices"][0]["message"]["tool_calls"]
    assert found == {"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    (plain,) = json.loads(render(wrapped, WHOLE).body)["choices"][0]["message"]["tool_calls"]
    assert plain["type"] == "function"


def test_citations_move_with_their_text() -> None:
    """Places count from the start of the joined text; a citation without a place is of its whole part."""
    cited = answer(
        text("One. "),
        text("Two. ", citations=[{"url": "https://e.x"}, {"url": "https://f.x", "start": 0, "end": 3}]),
    )
    message = json.loads(render(cited, WHOLE).body)["choices"][0]["message"]
    places = [
        (one["url_citation"]["start_index"], one["url_citation"]["end_index"])
        for one in message["annotations"]
    ]
    assert [message["content"][start:end] for start, end in places] == ["Two. ", "Two"]


def test_calls_of_an_unknown_type_are_all_kept() -> None:
    """Each is there in both forms of this wire, after those that are known, and named elsewhere."""
    unknown: list[JsonValue] = [{"id": f"u{n}", "type": "new_kind", "new": {"n": n}} for n in (1, 2)]
    known: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = whole({"content": None, "tool_calls": [known, *unknown]}, "tool_calls")
    for asked in (WHOLE, STREAM):
        made = convert(body, "chat_completions", "whole", asked)
        assert made is not None
        back = rendered(made.body, asked.form, WHOLE)
        message = answers.objects(back["choices"])[0]["message"]
        assert isinstance(message, dict)
        calls = answers.objects(message["tool_calls"])
        assert [one["id"] for one in calls] == ["a", "u1", "u2"]
        assert calls[1:] == unknown
    elsewhere = convert(body, "chat_completions", "whole", Asked("gemini", "whole"))
    assert elsewhere is not None
    assert "tool_calls" in elsewhere.notes


NO_SUCCESS: dict[str, tuple[Form, bytes]] = {
    "a stream without its end": ("sse", stream(delta(content="Hi"), done=False)),
    "a choice that broke": ("whole", whole({"content": "Hi"}, "error")),
    "an error chunk": ("sse", stream(delta(content="Hi"), {"error": {"message": "busy"}})),
    "no choices": ("whole", b'{"choices":[]}'),
    "the array of another wire": ("json-array", b"[]"),
}


@pytest.mark.parametrize("case", NO_SUCCESS)
def test_no_answer_but_a_complete_success(case: str) -> None:
    """What is cut, broken or an error has no canonical answer."""
    assert parse(*NO_SUCCESS[case]) is None


ODD: list[JsonValue] = [None, 3, True, "x", [], [3], [None], {}, {"a": 1}, [{}], [{"index": []}]]


@pytest.mark.parametrize(
    "name", ["content", "tool_calls", "refusal", "reasoning_details", "annotations", "audio"]
)
@pytest.mark.parametrize("value", ODD, ids=json.dumps)
def test_odd_members_do_not_raise(name: str, value: JsonValue) -> None:
    """Whatever a member holds, both forms are read and written in every form."""
    for form, body in (("whole", whole({name: value})), ("sse", stream(delta(**{name: value}), end()))):
        for asked in (
            WHOLE,
            STREAM,
            Asked("gemini", "sse"),
            Asked("responses", "sse"),
            Asked("anthropic", "sse"),
        ):
            assert convert(body, "chat_completions", form, asked) is not None  # type: ignore[arg-type]


def test_the_fake_providers_streams_add_up() -> None:
    """What a provider streams and what it gives whole are one answer but for its fresh ids."""
    body: JsonObject = {
        "model": "m",
        "messages": [{"role": "user", "content": "Please run `ls -l /tmp` and tell me."}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "shell", "parameters": {"properties": {"command": {"type": "string"}}}},
            }
        ],
        "stream_options": {"include_usage": True},
    }
    turn = decide(PROVIDER, body, "m")
    in_many = b"".join(PROVIDER.sse(event) for event in PROVIDER.events(turn, body))
    streamed, at_once = read("sse", in_many), read("whole", json.dumps(PROVIDER.whole(turn)).encode())
    assert turn.call is not None
    for found in (streamed, at_once):
        (part,) = (part for part in found.choices[0].parts if part["type"] == "tool_call")
        assert (part["name"], part["arguments"]) == ("shell", turn.call.text)
        assert found.choices[0].finish == "tool_calls"
    assert (streamed.usage, streamed.model) == (at_once.usage, at_once.model)


@given(found=parts(), finish=st.sampled_from(["stop", "length", "content_filter"]), usage=usages())
@settings(max_examples=80, deadline=None)
def test_what_this_wire_can_say_comes_back_equal(
    found: tuple[JsonObject, ...], finish: Finish, usage: AnswerUsage
) -> None:
    """Without notes, an answer is read from either form as it was, neighbouring texts joined."""
    said_here = _sayable(found)
    canonical = CanonicalAnswer((Choice(said_here, finish),), usage, "m", "c-1", 5, wire="chat_completions")
    for asked in (WHOLE, STREAM):
        made = render(canonical, asked)
        assert made.notes == ()
        assert parse(asked.form, made.body) == canonical


def _sayable(found: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    words = "".join(str(part["text"]) for part in found if part["type"] == "text" and "refusal" not in part)
    thoughts = [{"type": "reasoning", "text": part["text"]} for part in found if part["type"] == "reasoning"]
    refusals = [part for part in found if "refusal" in part]
    calls = [
        part | {"id": part["id"] or f"call_{n}"}
        for n, part in enumerate(found)
        if part["type"] == "tool_call"
    ]
    return (*thoughts, *([text(words)] if words else []), *refusals, *calls)


@given(st.text(st.characters(exclude_categories=()), max_size=400))
def test_pieces_are_the_text(whole_text: str) -> None:
    """Pieces join to the text and none is empty or endless."""
    found = list(pieces(whole_text))
    assert "".join(found) == whole_text
    assert all(0 < len(piece) <= 104 for piece in found)


@pytest.mark.parametrize("unit", ["👨‍👩‍👧‍👦", "🇨🇭", "e\u0301", "👍🏽", "\r\n", "\ud83d\ude00"])
def test_pieces_end_between_graphemes(unit: str) -> None:
    """A family, a flag, a letter with its accent, a tone of skin: none is cut in two."""
    for shift in range(12):
        found = list(pieces("x" * (30 + shift) + unit + "y" * 60))
        assert any(unit in piece for piece in found)


def test_a_request_that_holds_the_answer_has_the_same_parts() -> None:
    """The message that a client sends back is read by the request adapter as the same calls and text."""
    made = json.loads(render(SAMPLES["calls"], WHOLE).body)["choices"][0]["message"]
    request = ChatCompletions().request(
        Target("POST", "h", "/v1/chat/completions"), "generate", {"messages": [made]}
    )
    (message,) = request.messages
    kinds = [(part["type"], part.get("name"), part.get("id")) for part in message.parts]
    expected = [
        (part["type"], part.get("name"), part.get("id")) for part in SAMPLES["calls"].choices[0].parts
    ]
    assert kinds == expected
