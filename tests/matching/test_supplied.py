"""Answers that a person writes: what is read as one, and what is wrong with others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewind_proxy.matching.supplied import SuppliedAnswerError, read_answer, written

CALL = {"name": "read", "arguments": {"path": "a.py"}}


def parts(content: Any, **more: Any) -> list[dict[str, Any]]:
    """The parts of the answer in a file, without ids that were made."""
    text = content if isinstance(content, str) else json.dumps(content)
    [choice] = read_answer(text, "f", **more).choices
    return [dict(part) for part in choice.parts]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("It is 4.\n", "It is 4."),
        ("# Heading\n\n- a\n", "# Heading\n\n- a"),
        ("[1, 2]", "[1, 2]"),
        ("{", "{"),
        ({"text": "It is 4."}, "It is 4."),
        ({"text": "It is 4.", "finish": "length"}, "It is 4."),
    ],
)
def test_text(content: Any, text: str) -> None:
    """Whatever is no object of ours is the text itself."""
    assert parts(content) == [{"type": "text", "text": text}]


def test_a_file_may_be_taken_as_text() -> None:
    """For a structured answer that looks like one of ours."""
    assert parts('{"text": "x", "tone": "dry"}', as_text=True)[0]["text"] == '{"text": "x", "tone": "dry"}'


@pytest.mark.parametrize("content", ['{"txt": "x"}', '{"city": "Paris"}', "{}", ' {"finish": "stop"}\n'])
def test_an_object_without_members_of_an_answer_is_a_mistake(content: str) -> None:
    """A misspelt one would be stored as the text that it looks like: only `as_text` makes it that."""
    with pytest.raises(SuppliedAnswerError, match=r'^f: neither "text" nor "tool_calls" is in it.*--text'):
        parts(content)
    assert parts(content, as_text=True)[0]["text"] == content.removesuffix("\n")


def test_tool_calls() -> None:
    """After the text; each has an id, the same for the same file; free text stays what it is."""
    content = {"text": "Reading.", "tool_calls": [CALL, {"name": "shell", "arguments": "ls", "id": "call_7"}]}
    text, first, second = parts(content)
    assert text["text"] == "Reading."
    assert (first["name"], json.loads(first["arguments"])) == ("read", {"path": "a.py"})
    assert first["id"].startswith("call_")
    assert first == parts(content)[1]
    assert (second["id"], second["arguments"]) == ("call_7", "ls")


@pytest.mark.parametrize(
    ("content", "finish"),
    [
        ("x", "stop"),
        ({"text": "x", "finish": "length"}, "length"),
        ({"tool_calls": [CALL]}, "tool_calls"),
        ({"tool_calls": [CALL], "finish": "stop"}, "tool_calls"),
        ({"text": "x", "finish": "tool_calls"}, "stop"),
    ],
)
def test_how_it_ends(content: Any, finish: str) -> None:
    """Calls wait for their results, whatever is said."""
    text = content if isinstance(content, str) else json.dumps(content)
    assert read_answer(text, "f").choices[0].finish == finish


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ({"text": ""}, "empty"),
        ({"text": 5}, '"text" is a text'),
        ({"text": "x", "tool_call": []}, "no 'tool_call'.*--text"),
        ({"text": "x", "tool_calls": {}}, "is a list"),
        ({"text": "x", "finish": "done"}, "one of stop, length"),
        ('{"tool_calls": [{"name": "f", "arguments": {"n": 1e999}}]}', "none that JSON has"),
        ('{"text": "x", "tool_calls": [}', "line 1, column 30"),
        ('{"text": ' + "[" * 100_000, "nested too deeply"),
        ({"tool_calls": ["read"]}, r"\[0\] is an object"),
        ({"tool_calls": [{"arguments": {}}]}, '"name" is the name'),
        ({"tool_calls": [{**CALL, "args": 1}]}, "no 'args'"),
        ({"tool_calls": [{**CALL, "arguments": [1]}]}, '"arguments" is an object'),
        ({"tool_calls": [{**CALL, "id": 1}]}, '"id" is a text'),
    ],
)
def test_what_is_no_answer(content: Any, said: str) -> None:
    """The message names the file, the member and what belongs there."""
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(SuppliedAnswerError, match=f"(?s)^f: .*{said}"):
        read_answer(text, "f")


@pytest.mark.parametrize("content", ["It is 4.", {"text": "x", "tool_calls": [CALL], "finish": "tool_calls"}])
def test_what_is_written_is_read_again(content: Any) -> None:
    """An editor that is closed at once changes nothing."""
    text = content if isinstance(content, str) else json.dumps(content)
    assert read_answer(written(read_answer(text, "f")), "f") == read_answer(text, "f")
