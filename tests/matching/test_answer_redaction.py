"""`redact_answers`: credentials in recorded answers, whole or split over the deltas of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_tables import fake
from matching.rebase_answers import WIRES_AND_FORMS, Said, body, copies, cut, events, stream
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.canonical.redact import MARK, Redactor
from rewind_proxy.matching.answer_redaction import (
    answer_credentials,
    answer_form,
    moved_chunks,
    redact_answer,
)

KEY, TOKEN = fake("sk-proj-", 40), fake("ghp_", 36)
REDACTOR = Redactor()
TEXT = f"Your key is {KEY}, and\nGITHUB_TOKEN={TOKEN} too."
ARGUMENTS: JsonObject = {
    "command": f"curl -H 'Authorization: Bearer {KEY}' x",
    "password": "hunter2-hunter2",
    "n": 1,
}

few = settings(max_examples=30)
cuts = st.lists(st.integers(0, len(TEXT)), max_size=12)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@few
@given(cuts=cuts)
def test_no_copy_of_a_credential_is_left(wire: Wire, form: Form, cuts: list[int]) -> None:
    """Wherever the deltas were cut: every text and all arguments are those of the redacted whole."""
    answer = body(wire, form, Said(TEXT, dict(ARGUMENTS)), cuts)
    redacted = redact_answer(answer, wire, form, REDACTOR)
    texts, arguments = copies(wire, form, redacted.body)
    assert set(texts) == {REDACTOR.text(TEXT)}
    assert texts[0].count(MARK) == 2
    wanted = REDACTOR.value(ARGUMENTS)
    assert arguments
    assert all(each == wanted for each in arguments)
    for secret in (KEY, TOKEN, "hunter2-hunter2"):
        assert secret.encode() not in redacted.body
    if form == "sse":
        assert len(events(redacted.body)) == len(events(answer))


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@few
@given(cuts=cuts)
def test_redacting_twice_is_redacting_once(wire: Wire, form: Form, cuts: list[int]) -> None:
    """And an answer without a credential keeps every byte."""
    once = redact_answer(body(wire, form, Said(TEXT, dict(ARGUMENTS)), cuts), wire, form, REDACTOR).body
    assert redact_answer(once, wire, form, REDACTOR).body == once
    assert answer_credentials(once, wire, form, REDACTOR) == []


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@few
@given(cuts=cuts)
def test_credentials_are_named_and_not_shown(wire: Wire, form: Form, cuts: list[int]) -> None:
    """By rule and place."""
    answer = body(wire, form, Said(TEXT, dict(ARGUMENTS)), cuts)
    found = answer_credentials(answer, wire, form, REDACTOR)
    assert {"RW101", "RW201"} <= {each.rule for each in found}
    assert all(each.where.startswith("$" if form == "whole" else "byte ") for each in found)
    assert KEY not in str(found)


Delta = Callable[[str], JsonObject]


def choice(**members: JsonValue) -> JsonObject:
    """A chunk of Chat Completions."""
    return {"choices": [{"index": 0, **members}]}


DELTAS: dict[str, tuple[Wire, Delta]] = {
    "details of thoughts": (
        "chat_completions",
        lambda said: choice(
            delta={"reasoning_details": [{"type": "reasoning.text", "text": said, "index": 0}]}
        ),
    ),
    "thoughts in parts": (
        "chat_completions",
        lambda said: choice(
            delta={"content": [{"type": "thinking", "thinking": [{"type": "text", "text": said}]}]}
        ),
    ),
    "a transcript": ("chat_completions", lambda said: choice(delta={"audio": {"transcript": said}})),
    "a new kind of block": (
        "anthropic",
        lambda said: {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "compaction_delta", "content": said},
        },
    ),
    "a new kind of event": (
        "responses",
        lambda said: {
            "type": "response.apply_patch_call_operation_diff.delta",
            "output_index": 0,
            "delta": said,
        },
    ),
    "no known wire": ("generic", lambda said: {"out": said}),
}


def strings(value: JsonValue) -> Iterator[str]:
    """The strings in a value."""
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(child)


@pytest.mark.parametrize("kind", DELTAS)
@few
@given(cuts=cuts)
def test_what_no_reader_knows_is_put_together_too(kind: str, cuts: list[int]) -> None:
    """A credential split over the deltas of anything is masked and named; what is around it stays."""
    wire, delta = DELTAS[kind]
    pieces = cut(TEXT, cuts)
    answer = stream([delta(piece) for piece in pieces], typed=False)
    redacted = redact_answer(answer, wire, "sse", REDACTOR).body
    told = [json.loads(line.removeprefix("data: ")) for line in redacted.decode().splitlines() if line]
    assert len(told) == len(pieces)
    fixed = set(strings(delta("")))  # types
    assert "".join(text for text in strings(told) if text not in fixed) == REDACTOR.text(TEXT)
    assert {"RW101"} <= {each.rule for each in answer_credentials(answer, wire, "sse", REDACTOR)}


def test_the_tokens_of_a_whole_answer_are_put_together() -> None:
    """Log probabilities spell the text again, a token in each entry."""
    tokens: list[JsonValue] = [{"token": piece} for piece in cut(TEXT, range(0, len(TEXT), 4))]
    answer = json.dumps({"choices": [{"message": {"content": TEXT}, "logprobs": {"content": tokens}}]})
    redacted = json.loads(redact_answer(answer.encode(), "chat_completions", "whole", REDACTOR).body)
    [choice] = redacted["choices"]
    assert "".join(token["token"] for token in choice["logprobs"]["content"]) == choice["message"]["content"]
    assert choice["message"]["content"] == REDACTOR.text(TEXT)


def test_a_string_that_holds_a_credential_alone_loses_all_of_it() -> None:
    """Also where the text that it goes on in has another one at the same place."""
    events_of: list[JsonValue] = [
        {"password": "hunter2-hunter2 " + KEY[:20]},
        {"password": KEY[20:] + " end"},
    ]
    redacted = redact_answer(stream(events_of, typed=False), "generic", "sse", REDACTOR).body
    assert b"hunter2" not in redacted
    assert KEY[:20].encode() not in redacted
    assert KEY[20:].encode() not in redacted


def test_a_delta_alone_that_looks_like_a_credential_is_none() -> None:
    """What counts is the text that the deltas make: here the token goes on to the left."""
    pieces = ["risk-adjusted-a", "sk-proj-" + "A1b2" * 12]
    answer = "".join(
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
        for piece in pieces
    ).encode()
    assert redact_answer(answer, "chat_completions", "sse", REDACTOR).body == answer


@pytest.mark.parametrize(
    ("wire", "form", "answer"),
    [
        ("generic", "whole", json.dumps({"data": [{"api_key": "hunter2-hunter2", "note": f"a {KEY} b"}]})),
        ("generic", "sse", f'data: {{"note": "a {KEY} b", "api_key": "hunter2-hunter2"}}\n\n'),
        ("generic", "whole", f"plain words: {KEY}\nhunter: password=hunter2-hunter2\n"),
        ("responses", "sse", f"data: {{broken {KEY}\n\ndata: password=hunter2-hunter2\n\n"),
        ("anthropic", "whole", json.dumps({"type": "error", "error": {"message": f"bad {KEY}"}})),
        (
            "chat_completions",
            "whole",
            json.dumps({"choices": [{"message": {"reasoning_content": KEY, "signature": "abc"}}]}),
        ),
    ],
)
def test_every_other_string_is_looked_at_too(wire: Wire, form: Form, answer: str) -> None:
    """Unknown members, errors, other formats, reasoning that is signed, and what does not parse."""
    redacted = redact_answer(answer.encode(), wire, form, REDACTOR).body.decode()
    assert MARK in redacted
    assert KEY not in redacted
    assert "hunter2" not in redacted
    assert redacted.count("\n") == answer.count("\n")


@pytest.mark.parametrize(
    "answer", [b"\xff\xfe" + KEY.encode(), b"", b"null", b"[]", b'"x"', b"data: [DONE]\n\n"]
)
@pytest.mark.parametrize("form", ["whole", "sse", "json-array"])
def test_what_is_no_text_or_holds_nothing_stays(answer: bytes, form: Form) -> None:
    """Audio and images are not looked into; nothing raises."""
    for wire in ("generic", "gemini"):
        assert redact_answer(answer, wire, form, REDACTOR).body == answer


def test_escapes_and_white_space_around_a_credential_stay() -> None:
    """Only the credential's own characters are replaced."""
    answer = '{ "a" : "\\u00e9\\n\\"KEY\\" \\ud83d\\ude00",\r\n "b":1.0 }'.replace("KEY", KEY)
    redacted = redact_answer(answer.encode(), "generic", "whole", REDACTOR).body.decode()
    assert redacted == answer.replace(KEY, MARK)


@given(cuts=cuts, lengths=st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_chunks_go_on_making_the_whole_body(cuts: list[int], lengths: list[int]) -> None:
    """However the answer came in pieces, as many make it up after it was redacted."""
    answer = body("responses", "sse", Said(TEXT, dict(ARGUMENTS)), cuts)
    lengths = [*lengths, len(answer) - sum(lengths)]
    chunks = tuple((length, at) for at, length in enumerate(lengths))
    redacted = redact_answer(answer, "responses", "sse", REDACTOR)
    moved = moved_chunks(chunks, redacted)
    assert [at for _, at in moved] == [at for _, at in chunks]
    assert sum(length for length, _ in moved) == len(redacted.body)
    assert all(length >= 0 for length, _ in moved)


@pytest.mark.parametrize(
    ("content_type", "asked", "form"),
    [
        ("text/event-stream; charset=utf-8", "whole", "sse"),
        ("application/json", "sse", "whole"),
        ("application/json", "json-array", "json-array"),
    ],
)
def test_the_form_is_that_of_what_came(content_type: str, asked: Form, form: Form) -> None:
    """Not of what was asked for."""
    assert answer_form(content_type, asked) == form
