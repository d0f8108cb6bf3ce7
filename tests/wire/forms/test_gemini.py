"""Gemini answers, as Google AI, Vertex and Code Assist send them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import AnswerUsage, Asked, CanonicalAnswer, Choice, Finish
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Target
from rewind_proxy.cli.provider.gemini import GEMINI as PROVIDER
from rewind_proxy.cli.provider.turn import decide
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms import convert
from rewind_proxy.wire.forms.gemini import parse, render
from rewind_proxy.wire.gemini import Gemini
from wire.forms.form_answers import SAMPLES, SIGNATURE, SPEECH, answer, call, parts, text, usages

GOLDEN = Path(__file__).parent / "golden"
WHOLE = Asked("gemini", "whole")
STREAM = Asked("gemini", "sse")
ARRAY = Asked("gemini", "json-array")
FORMS: tuple[Asked, ...] = (WHOLE, STREAM, ARRAY)


def response(*said: JsonValue, finish: str | None = None, **members: JsonValue) -> JsonObject:
    """A response of one candidate; `members` are the candidate's."""
    candidate: JsonObject = {"content": {"parts": list(said), "role": "model"}, "index": 0, **members}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "g", "responseId": "r-1"}


def whole(*said: JsonValue, finish: str = "STOP", **members: JsonValue) -> bytes:
    """A body of one response."""
    return json.dumps(response(*said, finish=finish, **members)).encode()


def stream(*responses: JsonValue) -> bytes:
    """A body of events."""
    return "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in responses).encode()


def array(*responses: JsonValue) -> bytes:
    """A body of one array."""
    return json.dumps(list(responses)).encode()


def read(form: Form, body: bytes) -> CanonicalAnswer:
    """The canonical answer."""
    found = parse(form, body)
    assert found is not None
    return found


def said(form: Form, body: bytes) -> tuple[JsonObject, ...]:
    """The parts of the only choice."""
    (choice,) = read(form, body).choices
    return choice.parts


def responses(form: Form, body: bytes) -> list[JsonObject]:
    """The responses in a rendered body."""
    if form == "sse":
        return [json.loads(event.data) for event in answers.events(body)]
    value = json.loads(body)
    return value if form == "json-array" else [value]


@pytest.mark.parametrize("form", ["sse", "json-array"])
def test_the_stream_of_a_small_answer(form: Form) -> None:
    """A rendered stream is what the golden file says, byte for byte."""
    small = answer(
        {"type": "reasoning", "text": "A folder, then."},
        text("I will look into the folder first, then tell you more."),
        call("call_1", "list", '{"path": "/src"}'),
        finish="tool_calls",
    )
    made = render(small, Asked("gemini", form))
    assert made.body == (GOLDEN / f"gemini.{form}").read_bytes()
    assert made.content_type == ("text/event-stream" if form == "sse" else "application/json; charset=UTF-8")


@pytest.mark.parametrize("form", ["sse", "json-array"])
def test_a_stream_has_the_grammar_of_the_wire(form: Form) -> None:
    """Responses of one id; calls whole; finish reason and usage in the last alone; pieces of fair size."""
    made = render(SAMPLES["calls"], Asked("gemini", form))
    found = responses(form, made.body)
    assert len(found) == len(made.chunks)
    assert {(one["responseId"], one["modelVersion"]) for one in found} == {
        ("answer-1", "model-of-the-recording")
    }
    assert [("usageMetadata" in one) for one in found] == [False] * (len(found) - 1) + [True]
    candidates = [one for each in found for one in answers.objects(each["candidates"])]
    assert [("finishReason" in one) for one in candidates] == [False] * (len(found) - 1) + [True]
    spoken = [
        str(part["text"])
        for one in candidates
        if isinstance(one["content"], dict)
        for part in answers.objects(one["content"]["parts"])
        if "text" in part and "thought" not in part
    ]
    assert "".join(spoken) == SPEECH
    assert all(20 <= len(piece) <= 48 for piece in spoken[:-1])


def test_the_first_candidate_sets_the_pace() -> None:
    """Each response has the next of the first candidate, so that its text is never that of another."""
    other = Choice((text("Another answer, which is much longer than the first. " * 9),), "length")
    two = replace(SAMPLES["cut"], choices=(*SAMPLES["text"].choices, other))
    found = responses("sse", render(two, STREAM).body)
    assert all(answers.objects(one["candidates"])[0]["index"] == 0 for one in found)
    assert len(found) > 3
    assert all(len(answers.objects(one["candidates"])) == 2 for one in found)
    again = read("sse", stream(*found))
    assert again.choices == (*SAMPLES["text"].choices, other)


SIGNED: JsonObject = {"thoughtSignature": SIGNATURE}
OWN_PARTS: tuple[JsonValue, ...] = (
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, **SIGNED},
)
BOTH: dict[str, tuple[list[JsonValue], list[list[JsonValue]], tuple[JsonObject, ...]]] = {
    "text": ([{"text": "Hello"}], [[{"text": "Hel"}], [{"text": "lo"}], [{"text": ""}]], (text("Hello"),)),
    "thoughts, then text": (
        [{"text": "A greeting.", "thought": True}, {"text": "Hello"}],
        [[{"text": "A gree", "thought": True}], [{"text": "ting.", "thought": True}, {"text": "Hello"}]],
        ({"type": "reasoning", "text": "A greeting."}, text("Hello")),
    ),
    "a signature in a piece of its own": (
        [{"text": "Hello", **SIGNED}],
        [[{"text": "Hel"}], [{"text": "lo"}], [{"text": "", **SIGNED}]],
        (text("Hello", signature=SIGNATURE),),
    ),
    "no text after a signed part goes on in it": (
        [{"text": "One.", **SIGNED}, {"text": "Two."}],
        [[{"text": "One.", **SIGNED}], [{"text": "Tw"}], [{"text": "o."}]],
        (text("One.", signature=SIGNATURE), text("Two.")),
    ),
    "a signature after a call": (
        [{"functionCall": {"name": "f", "args": {}}}, {"text": "", **SIGNED}],
        [[{"functionCall": {"name": "f", "args": {}}}], [{"text": "", **SIGNED}]],
        (call("", "f", "{}"), text("", signature=SIGNATURE)),
    ),
    "calls": (
        [
            {"functionCall": {"id": "a", "name": "f", "args": {"x": 1.5, "y": [None]}}, **SIGNED},
            {"functionCall": {"name": "g"}},
        ],
        [
            [{"functionCall": {"id": "a", "name": "f", "args": {"x": 1.5, "y": [None]}}, **SIGNED}],
            [{"functionCall": {"name": "g"}}],
        ],
        (call("a", "f", '{"x":1.5,"y":[null]}', signature=SIGNATURE), call("", "g", "{}")),
    ),
    "code, its result and a picture": (
        list(OWN_PARTS),
        [[part] for part in OWN_PARTS],
        tuple({"type": "opaque", "wire": "gemini", "value": value} for value in OWN_PARTS),
    ),
}
"""Parts whole, the same in a stream, and canonical."""


@pytest.mark.parametrize("case", BOTH)
def test_every_form_is_read_alike(case: str) -> None:
    """A stream and an array add up to what the whole answer says."""
    in_one, in_many, canonical = BOTH[case]
    pieces = [response(*one) for one in in_many[:-1]] + [response(*in_many[-1], finish="STOP")]
    assert said("whole", whole(*in_one)) == canonical
    assert said("sse", stream(*pieces)) == canonical
    assert said("json-array", array(*pieces)) == canonical


@pytest.mark.parametrize("asked", FORMS, ids=lambda asked: str(asked.form))
@pytest.mark.parametrize("case", BOTH)
def test_a_form_gives_another_on_this_wire(case: str, asked: Asked) -> None:
    """From any form comes any other, with every part and nothing to note but usage nobody recorded."""
    in_one, _, canonical = BOTH[case]
    made = convert(whole(*in_one), "gemini", "whole", asked)
    assert made is not None
    assert made.notes == ("usage unknown",)
    assert said(asked.form, made.body) == canonical


@pytest.mark.parametrize("asked", FORMS, ids=lambda asked: str(asked.form))
def test_what_only_this_wire_says_is_kept_on_it(asked: Asked) -> None:
    """Ratings, sources, odd finish reasons and details of usage are those of the recording."""
    usage: JsonObject = {
        "promptTokenCount": 8,
        "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 4,
        "totalTokenCount": 17,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8}],
    }
    own: JsonObject = {
        "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        "citationMetadata": {"citationSources": [{"startIndex": 0, "endIndex": 2, "uri": "https://e.x"}]},
        "avgLogprobs": -0.25,
    }
    sent = response({"text": "Hi"}, finish="RECITATION", **own) | {
        "usageMetadata": usage,
        "createTime": "2026",
    }
    body = json.dumps(sent).encode()
    assert read("whole", body).usage == AnswerUsage(11, 6, 0, 0, 4)
    made = convert(body, "gemini", "whole", asked)
    assert made is not None
    assert made.notes == ()
    last = responses(asked.form, made.body)[-1]
    assert (last["usageMetadata"], last["createTime"]) == (usage, "2026")
    (candidate,) = answers.objects(last["candidates"])
    assert {name: candidate[name] for name in own} == own
    assert candidate["finishReason"] == "RECITATION"
    elsewhere = convert(body, "gemini", "whole", Asked("chat_completions", "whole"))
    assert elsewhere is not None
    assert {"safetyRatings", "citationMetadata", "avgLogprobs", "createTime"} <= set(elsewhere.notes)
    assert json.loads(elsewhere.body)["choices"][0]["finish_reason"] == "content_filter"


def test_grounding_becomes_citations_and_back() -> None:
    """Segments count bytes, citations characters; a source that nothing rests on is one without a place."""
    grounding: JsonObject = {
        "groundingChunks": [
            {"web": {"uri": "https://e.x/1", "title": "One"}},
            {"web": {"uri": "https://e.x/2", "title": "Two"}},
            {"retrievedContext": {"uri": "gs://bucket"}},
        ],
        "groundingSupports": [
            {
                "segment": {"startIndex": 0, "endIndex": 7, "text": "Zürich"},
                "groundingChunkIndices": [0, 2, 9],
            },
            {"segment": {"startIndex": 1, "endIndex": 2}, "groundingChunkIndices": [0]},
        ],
        "webSearchQueries": ["zürich"],
    }
    body = whole({"text": "Hm", "thought": True}, {"text": "Zürich it is."}, groundingMetadata=grounding)
    (choice,) = read("whole", body).choices
    assert choice.parts[1]["citations"] == [
        {"url": "https://e.x/1", "title": "One", "start": 0, "end": 6},
        {"url": "https://e.x/2", "title": "Two"},
    ]
    made = convert(body, "gemini", "whole", STREAM)
    assert made is not None
    (candidate,) = answers.objects(responses("sse", made.body)[-1]["candidates"])
    assert candidate["groundingMetadata"] == grounding


@given(
    words=st.text(min_size=1, max_size=60), spans=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))
)
@settings(max_examples=60, deadline=None)
def test_places_of_citations_survive(words: str, spans: list[tuple[int, int]]) -> None:
    """Whatever the text, a citation marks the same characters after a trip through this wire."""
    places = [sorted(min(place, len(words)) for place in span) for span in spans]
    cited: list[JsonValue] = [{"url": "https://e.x", "start": start, "end": end} for start, end in places]
    part = text(words, citations=cited) if cited else text(words)
    for asked in FORMS:
        made = render(answer(part), asked)
        assert said(asked.form, made.body) == (part,)


def test_an_id_that_two_calls_have_is_given_to_one() -> None:
    """Results are told apart by the ids of their calls: the second call has none, and that is named."""
    made = render(answer(call("a", "f", "{}"), call("a", "g", "{}")), WHOLE)
    sent = [part["functionCall"] for part in json.loads(made.body)["candidates"][0]["content"]["parts"]]
    assert [one.get("id") for one in sent] == ["a", None]
    assert "repeated id" in made.notes


def test_a_blocked_prompt_is_an_answer() -> None:
    """A blocked prompt stays one on this wire, and is a filtered answer of no words on others."""
    body = json.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "g"}).encode()
    assert read("whole", body).choices == (Choice(finish="content_filter"),)
    for asked in FORMS:
        made = convert(body, "gemini", "whole", asked)
        assert made is not None
        (found,) = responses(asked.form, made.body)
        assert found["promptFeedback"] == {"blockReason": "SAFETY"}
        assert "candidates" not in found
    chat = convert(body, "gemini", "whole", Asked("chat_completions", "whole"))
    assert chat is not None
    assert json.loads(chat.body)["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("asked", FORMS, ids=lambda asked: str(asked.form))
def test_code_assist_wraps_each_response(asked: Asked) -> None:
    """What was recorded through Code Assist is wrapped for it and bare for others, and the reverse."""
    bare = stream(response({"text": "Hel"}), response({"text": "lo"}, finish="STOP"))
    wrapped = stream(
        {"response": response({"text": "Hel"}), "traceId": "t"},
        {"response": response({"text": "lo"}, finish="STOP"), "traceId": "t"},
    )
    for body in (bare, wrapped):
        plain = convert(body, "gemini", "sse", asked)
        code_assist = convert(body, "gemini", "sse", replace(asked, wrapped=True))
        assert plain is not None
        assert code_assist is not None
        inner = [one["response"] for one in responses(asked.form, code_assist.body)]
        assert inner == responses(asked.form, plain.body)
        assert said(asked.form, plain.body) == said(asked.form, code_assist.body) == (text("Hello"),)
        assert (b"traceId" in code_assist.body) == (body is wrapped)
        assert b"traceId" not in plain.body


NOTES: dict[str, tuple[CanonicalAnswer, tuple[str, ...]]] = {
    "reasoning": (
        answer({"type": "reasoning", "summary": ["a"], "signature": "not base64!", "encrypted_content": "e"}),
        ("reasoning encrypted_content", "reasoning signature", "reasoning summary"),
    ),
    "a refusal": (answer(text("No.", refusal=True)), ("refusal",)),
    "a custom call": (
        answer(call("a", "sh", "ls", call_type="custom"), finish="tool_calls"),
        ("custom tool call",),
    ),
    "broken arguments": (answer(call("a", "f", '{"x":'), finish="tool_calls"), ("arguments as text",)),
    "huge numbers": (answer(call("a", "f", '{"x":1E400}'), finish="tool_calls"), ("arguments as text",)),
    "no number": (answer(call("a", "f", '{"x":NaN}'), finish="tool_calls"), ("arguments as text",)),
    "another wire's part": (
        answer({"type": "opaque", "wire": "anthropic", "value": {"type": "server_tool_use"}}),
        ("server_tool_use",),
    ),
    "citations of files": (
        answer(text("Hi", citations=[{"type": "char_location", "document_index": 0}])),
        ("citations",),
    ),
    "details of a citation": (
        answer(text("Hi", citations=[{"url": "https://e.x", "cited_text": "H"}])),
        ("citation cited_text",),
    ),
    "tokens written to a cache": (
        replace(answer(text("Hi")), usage=AnswerUsage(9, 1, cache_written=5)),
        ("usage cache_written",),
    ),
    "a stop sequence": (
        replace(answer(), choices=(Choice((), "stop", stop_sequence="END"),)),
        ("stop_sequence",),
    ),
}


@pytest.mark.parametrize("asked", FORMS, ids=lambda asked: str(asked.form))
@pytest.mark.parametrize("case", NOTES)
def test_what_is_lost_is_named(case: str, asked: Asked) -> None:
    """Each thing this wire has no word for is one short phrase."""
    canonical, notes = NOTES[case]
    assert render(canonical, asked).notes == notes


FINISHES: dict[Finish, tuple[str, tuple[str, ...]]] = {
    "stop": ("STOP", ()),
    "length": ("MAX_TOKENS", ()),
    "content_filter": ("SAFETY", ()),
    "refusal": ("SAFETY", ("finish refusal->SAFETY",)),
    "pause": ("STOP", ("finish pause->STOP",)),
}


@pytest.mark.parametrize("finish", FINISHES)
def test_finish_reasons(finish: Finish) -> None:
    """Each canonical finish has a reason of this wire, with a note where it says less."""
    reason, notes = FINISHES[finish]
    made = render(answer(text("Hi"), finish=finish), WHOLE)
    assert json.loads(made.body)["candidates"][0]["finishReason"] == reason
    assert made.notes == notes


@pytest.mark.parametrize(
    ("signature", "kept"),
    [
        ("a+/b", True),
        ("a-_b", True),
        ("YWI", True),
        ("YWI=", True),
        ("a+-b", False),
        ("ab==", False),
        ("é", False),
    ],
)
def test_only_signatures_that_the_sdk_can_read_are_sent(signature: str, kept: bool) -> None:
    """Google's SDK decodes a signature and fails on what is no base64: such a one is left out, and noted."""
    made = render(answer({"type": "reasoning", "text": "x", "signature": signature}), WHOLE)
    (part,) = json.loads(made.body)["candidates"][0]["content"]["parts"]
    assert part.get("thoughtSignature") == (signature if kept else None)
    assert made.notes == (() if kept else ("reasoning signature",))


NO_SUCCESS: dict[str, tuple[Form, bytes]] = {
    "a stream without its end": ("sse", stream(response({"text": "Hi"}))),
    "an array that was not closed": ("json-array", array(response({"text": "Hi"}, finish="STOP"))[:-1]),
    "an error": ("whole", b'{"error":{"code":429,"message":"busy","status":"RESOURCE_EXHAUSTED"}}'),
    "no candidates": ("whole", b'{"candidates":[]}'),
    "a call that was to go on": (
        "sse",
        stream(response({"functionCall": {"name": "f", "willContinue": True}}, finish="STOP")),
    ),
    "a whole answer with half a call": (
        "whole",
        whole({"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.x", "stringValue": "y"}]}}),
    ),
}


@pytest.mark.parametrize("case", NO_SUCCESS)
def test_no_answer_but_a_complete_success(case: str) -> None:
    """What is cut, an error, or a call that cannot be put together has no canonical answer."""
    assert parse(*NO_SUCCESS[case]) is None


ODD: list[JsonValue] = [
    None,
    3,
    True,
    "x",
    [],
    [3],
    [None],
    {},
    {"a": 1},
    [{}],
    {"parts": 3},
    {"parts": [{}]},
]


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
@pytest.mark.parametrize("name", ["content", "groundingMetadata", "safetyRatings", "citationMetadata"])
def test_odd_members_do_not_raise(name: str, value: JsonValue) -> None:
    """Whatever a member holds, every form is read and written in every form of every wire."""
    one = response({"text": "Hi"}, finish="STOP")
    (candidate,) = answers.objects(one["candidates"])
    candidate[name] = value
    bodies: tuple[tuple[Form, bytes], ...] = (
        ("whole", json.dumps(one).encode()),
        ("sse", stream(one)),
        ("json-array", array(one)),
    )
    for form, body in bodies:
        for asked in (
            *FORMS,
            Asked("chat_completions", "sse"),
            Asked("responses", "sse"),
            Asked("anthropic", "sse"),
        ):
            assert convert(body, "gemini", form, asked) is not None


@pytest.mark.parametrize("depth", [200, 600, 900, 3000])
def test_deep_arguments_do_not_raise(depth: int) -> None:
    """Arguments of any depth are converted, or are no answer."""
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    body = whole({"functionCall": {"name": "f", "args": "ARGS"}}).replace(b'"ARGS"', nested)
    for asked in (
        *FORMS,
        Asked("chat_completions", "sse"),
        Asked("responses", "sse"),
        Asked("anthropic", "whole"),
    ):
        made = convert(body, "gemini", "whole", asked)
        assert made is not None or depth > 200


def test_the_fake_providers_streams_add_up() -> None:
    """What a provider streams and what it gives whole are one answer but for its fresh ids."""
    body: JsonObject = {
        "contents": [{"role": "user", "parts": [{"text": "Say a few words about the weather, please."}]}]
    }
    turn = decide(PROVIDER, body, "g")
    in_many = b"".join(PROVIDER.sse(event) for event in PROVIDER.events(turn, body))
    streamed, at_once = read("sse", in_many), read("whole", json.dumps(PROVIDER.whole(turn)).encode())
    assert streamed.choices == at_once.choices == (Choice((text(turn.text),), "stop"),)
    assert (streamed.usage, streamed.model) == (at_once.usage, at_once.model)


@given(found=parts(), finish=st.sampled_from(["length", "content_filter"]), usage=usages())
@settings(max_examples=60, deadline=None)
def test_what_this_wire_can_say_comes_back_equal(
    found: tuple[JsonObject, ...], finish: Finish, usage: AnswerUsage
) -> None:
    """Without notes, an answer is read from every form as it was, neighbouring texts joined."""
    sayable = _sayable(found)
    canonical = CanonicalAnswer((Choice(sayable, finish),), usage, "g", "r-1", wire="gemini")
    for asked in FORMS:
        made = render(canonical, asked)
        assert made.notes == ()
        assert parse(asked.form, made.body) == canonical


def _sayable(found: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    words = "".join(str(part["text"]) for part in found if part["type"] == "text")
    thoughts = [part for part in found if part["type"] == "reasoning"]
    calls = [
        part
        | {
            "arguments": json.dumps(
                json.loads(str(part["arguments"])), ensure_ascii=False, separators=(",", ":")
            )
        }
        for part in found
        if part["type"] == "tool_call"
    ]
    return (*thoughts, *([text(words)] if words else []), *calls)


def test_a_request_that_holds_the_answer_has_the_same_parts() -> None:
    """The content that a client sends back is read by the request adapter as the same calls and text."""
    made = json.loads(render(SAMPLES["calls"], WHOLE).body)["candidates"][0]["content"]
    request = Gemini().request(
        Target("POST", "h", "/v1beta/models/g:generateContent"), "generate", {"contents": [made]}
    )
    (message,) = request.messages
    kept = ("type", "text", "signature", "name", "id")
    expected = [
        {name: part[name] for name in kept if name in part} for part in SAMPLES["calls"].choices[0].parts
    ]
    assert [{name: part[name] for name in kept if name in part} for part in message.parts] == expected
