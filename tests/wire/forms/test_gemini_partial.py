"""Calls of Vertex whose arguments arrive in pieces (`streamFunctionCallArguments`)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.answer import Asked
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.forms import convert
from rewind_proxy.wire.forms.gemini import parse


def body(*parts: JsonObject) -> bytes:
    """A stream with a part in each response, and an end."""
    contents: list[JsonObject] = [{"content": {"role": "model", "parts": [part]}} for part in parts]
    responses = [{"candidates": [candidate]} for candidate in [*contents, {"finishReason": "STOP"}]]
    return "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in responses).encode()


def call(*pieces: JsonValue, more: bool = True, **members: JsonValue) -> JsonObject:
    """A part with pieces of a call; `more` of them follow."""
    said: JsonObject = {**members, **({"partialArgs": [*pieces]} if pieces else {})}
    return {"functionCall": said | ({"willContinue": True} if more else {})}


def piece(path: str, more: bool = False, **value: JsonValue) -> JsonObject:
    """One entry of `partialArgs`."""
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def calls(stream: bytes) -> list[tuple[JsonValue, JsonValue]]:
    """Name and decoded arguments of each call."""
    found = parse("sse", stream)
    assert found is not None
    return [
        (part["name"], json.loads(str(part["arguments"])))
        for part in found.choices[0].parts
        if part["type"] == "tool_call"
    ]


BEGUN = call(name="f")
END = call(more=False)
ADDS_UP: dict[str, tuple[list[JsonObject], JsonObject]] = {
    "a text in pieces": (
        [
            BEGUN,
            call(piece("$.place", more=True, stringValue="Boston")),
            call(piece("$.place", stringValue=", MA")),
            END,
        ],
        {"place": "Boston, MA"},
    ),
    "values that are no text": (
        [
            BEGUN,
            call(
                piece("$.n", numberValue=50),
                piece("$.yes", boolValue=True),
                piece("$.no", boolValue=False),
                piece("$.none", nullValue="NULL_VALUE"),
            ),
            END,
        ],
        {"n": 50, "yes": True, "no": False, "none": None},
    ),
    "a last part with pieces": (
        [
            BEGUN,
            call(piece("$.list[0].id", stringValue="")),
            call(piece("$.list[1]", numberValue=0.5), more=False),
        ],
        {"list": [{"id": ""}, 0.5]},
    ),
    "pieces of two texts that alternate": (
        [
            BEGUN,
            call(piece("$.a", more=True, stringValue="1"), piece("$.b", more=True, stringValue="x")),
            call(piece("$.a", stringValue="2"), piece("$.b", stringValue="y")),
            END,
        ],
        {"a": "12", "b": "xy"},
    ),
    "names in quotes": (
        [BEGUN, call(piece("$['a b']['it\\'s']", numberValue=1), piece('$["\\"c\\""]', numberValue=2)), END],
        {"a b": {"it's": 1}, '"c"': 2},
    ),
    "the two halves of a character": (
        [BEGUN, call(piece("$.a", stringValue="\ud83d")), call(piece("$.a", stringValue="\ude00")), END],
        {"a": "😀"},
    ),
    "parts that say nothing": ([BEGUN, call(), call(piece("$.a", more=True)), END], {}),
    "no arguments": ([BEGUN, END], {}),
    "pieces beside whole arguments": (
        [call(piece("$.b", numberValue=2), name="f", args={"a": 1}), END],
        {"a": 1, "b": 2},
    ),
    "a name that is repeated": (
        [BEGUN, call(piece("$.a", stringValue="x"), name="f", more=False)],
        {"a": "x"},
    ),
}


@pytest.mark.parametrize("case", ADDS_UP)
def test_pieces_add_up_to_a_call(case: str) -> None:
    """As Google's reference of `PartialArg` has it."""
    parts, arguments = ADDS_UP[case]
    assert calls(body(*parts)) == [("f", arguments)]


def test_calls_follow_one_another() -> None:
    """Each has its own pieces, and what stands between them keeps its place."""
    stream = body(
        {**call(name="f", id="1"), "thoughtSignature": "c2ln"},
        call(piece("$.a", stringValue="x")),
        END,
        {"text": "And "},
        {"text": "then"},
        call(name="g"),
        call(piece("$.a", stringValue="y"), more=False),
        {"functionCall": {"name": "h", "args": {"a": "z"}}},
    )
    found = parse("sse", stream)
    assert found is not None
    assert found.choices[0].parts == (
        {"type": "tool_call", "id": "1", "name": "f", "arguments": '{"a":"x"}', "signature": "c2ln"},
        {"type": "text", "text": "And then"},
        {"type": "tool_call", "id": "", "name": "g", "arguments": '{"a":"y"}'},
        {"type": "tool_call", "id": "", "name": "h", "arguments": '{"a":"z"}'},
    )


UNCLEAR: dict[str, list[JsonObject]] = {
    "a call that was to go on": [BEGUN, call(piece("$.a", stringValue="x"))],
    "another call before the end of one": [BEGUN, call(name="g"), END],
    "a place that is no place": [BEGUN, call(piece("$..a", stringValue="x")), END],
    "a place without its root": [BEGUN, call(piece(".a", stringValue="x")), END],
    "the root": [BEGUN, call(piece("$", stringValue="x")), END],
    "no place": [BEGUN, call({"stringValue": "x"}), END],
    "an entry that is past the end": [BEGUN, call(piece("$.a[999999999]", stringValue="x")), END],
    "a member of a text": [BEGUN, call(piece("$.a", stringValue="x"), piece("$.a.b", stringValue="x")), END],
    "an entry of an object": [
        BEGUN,
        call(piece("$.a.b", numberValue=1), piece("$.a[0]", numberValue=1)),
        END,
    ],
    "two numbers in one place": [BEGUN, call(piece("$.a", numberValue=1), piece("$.a", numberValue=2)), END],
    "a text after a number": [BEGUN, call(piece("$.a", numberValue=1), piece("$.a", stringValue="2")), END],
    "a number after a text": [BEGUN, call(piece("$.a", stringValue="2"), piece("$.a", numberValue=1)), END],
    "two values in one": [BEGUN, call(piece("$.a", numberValue=1, stringValue="2")), END],
    "no value": [BEGUN, call(piece("$.a")), END],
    "no piece": [BEGUN, call(3), END],
    "the place of a whole argument": [call(piece("$.a", numberValue=2), name="f", args={"a": 1}), END],
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_does_not_add_up_is_no_answer(case: str) -> None:
    """A call that cannot be told for sure is never served in another form."""
    stream = body(*UNCLEAR[case])
    assert parse("sse", stream) is None
    assert convert(stream, "gemini", "sse", Asked("anthropic", "sse")) is None


def leaves(value: JsonValue, path: str = "$") -> Iterator[JsonObject]:
    """The pieces of arguments, texts in two."""
    match value:
        case dict():
            for name, member in value.items():
                yield from leaves(member, f"{path}[{json.dumps(name)}]")
        case list():
            for index, member in enumerate(value):
                yield from leaves(member, f"{path}[{index}]")
        case str():
            yield piece(path, more=True, stringValue=value[: len(value) // 2])
            yield piece(path, stringValue=value[len(value) // 2 :])
        case bool():
            yield piece(path, boolValue=value)
        case None:
            yield piece(path, nullValue="NULL_VALUE")
        case _:
            yield piece(path, numberValue=value)


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, width=32) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=3))
def test_any_arguments_survive_in_pieces(arguments: JsonObject) -> None:
    """One piece to a part, whatever the names and values are."""
    assert calls(body(BEGUN, *(call(one) for one in leaves(arguments)), END)) == [("f", arguments)]
