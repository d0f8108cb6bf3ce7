"""Where two requests part (DESIGN §8, "Reports")."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.matching.difference import ABSENT, EXCERPT, differences


def view(*texts: str, **more: object) -> JsonObject:
    """A normalised view with one message for each text."""
    messages = [{"role": "user", "parts": [{"type": "text", "text": text}]} for text in texts]
    return {"operation": "generate", "messages": messages, "tools": [], "params": {}, **more}  # type: ignore[dict-item]


def test_one_word_of_a_message() -> None:
    """A changed word is named by message, part and member, with both spellings."""
    first = next(differences(view("a", "read it"), view("a", "write it")))
    assert first.to_json() == {"path": "$.messages[1].parts[0].text", "a": "read it", "b": "write it"}


def test_excerpts_are_short_and_show_the_place() -> None:
    """Of long texts only the neighbourhood of the first difference is shown."""
    long = "x" * 5000
    first = next(differences(view(f"{long}old{long}"), view(f"{long}new{long}")))
    assert "old" in first.a
    assert "new" in first.b
    assert max(len(first.a), len(first.b)) <= EXCERPT + 2


def test_missing_and_more() -> None:
    """A message, tool or parameter that only one side has is `(absent)` on the other."""
    assert next(differences(view("a"), view("a", "b"))).a == ABSENT
    tool = next(differences(view(tools=[{"name": "t"}]), view()))
    assert (tool.path, tool.b) == ("$.tools[0]", ABSENT)
    assert [d.path for d in differences(view(params={"x y": 1}), view(params={"x y": 2}))] == [
        "$.params['x y']"
    ]


def test_types_tell_apart() -> None:
    """1 and true are two values, as they are in JSON."""
    assert len(list(differences(view(params={"x": 1}), view(params={"x": True})))) == 1


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_difference_is_found_exactly_when_there_is_one(a: str, b: str) -> None:
    """Two views differ if and only if a difference is named, and its excerpts differ."""
    found = list(differences(view(a), view(b)))
    assert bool(found) == (a != b)
    assert all(each.a != each.b for each in found)
