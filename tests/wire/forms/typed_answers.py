"""Canonical answers to render on the wires with typed events, and what of them has to come back."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import strategies as st

from rewind_proxy.canonical.answer import AnswerUsage, CanonicalAnswer, Choice
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.forms.rendering import rejoined

LONG = (
    "The build fails because the lock file names a package that is no longer there: remove the line, run the "
    "installer again, and commit both files. Это всё, 以上です 👩‍👩‍👧‍👦 👍🏽 — done."
)
USAGE = AnswerUsage(input=120, output=45, cached=80, cache_written=10, reasoning=12)


def answer(*parts: JsonObject, **members: object) -> CanonicalAnswer:
    """An answer of one choice with these parts."""
    choice = Choice(parts, finish="stop")
    made = CanonicalAnswer((choice,), USAGE, "a-model", "answer-1", 1_700_000_000)
    return replace(made, **members)  # type: ignore[arg-type]  # checked by the dataclass's reader


def call(name: str, arguments: str, call_id: str, **members: JsonValue) -> JsonObject:
    """A tool call."""
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments, **members}


TEXT: JsonObject = {"type": "text", "text": LONG}
CITED: JsonObject = {
    "type": "text",
    "text": "Lock files pin versions. So they say.",
    "citations": [{"url": "https://docs.example/locks", "title": "Locks", "start": 0, "end": 24}],
}
SHELL = call(
    "shell", json.dumps({"command": ["bash", "-lc", f"echo '{LONG}'"]}, ensure_ascii=False), "call_1"
)
EDIT = call("edit", '{"path": "a.py", "dry": true}', "call_2")

CASES: dict[str, CanonicalAnswer] = {
    "text": answer(TEXT),
    "two-texts": answer(TEXT, {"type": "text", "text": "And more."}),
    "calls": replace(answer(), choices=(Choice((TEXT, SHELL, EDIT), "tool_calls"),)),
    "no-ids": replace(
        answer(), id="", choices=(Choice((call("a", "{}", ""), call("b", "{}", "")), "tool_calls"),)
    ),
    "custom-call": replace(
        answer(), choices=(Choice((call("exec", "text('hi')", "call_3", call_type="custom"),), "tool_calls"),)
    ),
    "reasoning": answer({"type": "reasoning", "text": LONG}, TEXT),
    "sealed-reasoning": answer({"type": "reasoning", "encrypted_content": "Z0FBQUFB"}, TEXT),
    "cited": answer(CITED),
    "length": replace(answer(), choices=(Choice((TEXT,), "length"),)),
    "empty": answer(),
    "no-usage": answer(TEXT, usage=None),
}
"""Answers that any wire may have given."""


def meaning(found: CanonicalAnswer | None) -> JsonValue:
    """What must survive whatever the wire and the form: parts, finish, stop sequence, usage, model.

    Arguments count as the JSON that they spell; ids of items and members of one wire alone do not count.
    """
    assert found is not None
    (choice,) = found.choices
    usage = found.usage or AnswerUsage()
    counts: list[JsonValue] = [
        usage.input,
        usage.output,
        usage.cached,
        usage.cache_written,
        usage.reasoning,
    ]
    return [[_meant(part) for part in choice.parts], choice.finish, choice.stop_sequence, counts, found.model]


def _meant(part: JsonObject) -> JsonObject:
    # The helpers of an SDK add members of their own, null where nothing was asked of them.
    kept: JsonObject = {
        name: value for name, value in part.items() if name != "item_id" and value is not None
    }
    if part["type"] == "tool_call" and part.get("call_type") != "custom":
        kept["arguments"] = json.loads(str(part["arguments"]) or "{}")
    return kept


_TEXTS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=120).map(rejoined)
"""Half a surrogate pair too, as JSON can say it."""
_WORDS = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.text(max_size=8), _JSON, max_size=3)

TEXT_PARTS = st.builds(lambda text: {"type": "text", "text": text}, _TEXTS)
CALL_PARTS = st.builds(
    lambda name, arguments, number: call(name, json.dumps(arguments), f"call_{number}"),
    _WORDS,
    _OBJECTS,
    st.integers(0, 2**32),
)
CUSTOM_CALLS = st.builds(
    lambda name, source, number: call(name, source, f"call_{number}", call_type="custom"),
    _WORDS,
    _TEXTS,
    st.integers(0, 2**32),
)
THOUGHTS = st.builds(lambda text: {"type": "reasoning", "text": text}, _TEXTS)
SEALED = st.builds(lambda text: {"type": "reasoning", "encrypted_content": text}, _WORDS)
USAGES = st.builds(
    lambda fresh, cached, written, output, reasoning: AnswerUsage(
        fresh + cached + written, output + reasoning, cached, written, reasoning
    ),
    *[st.integers(0, 10**6)] * 5,
)


def answers_of(*parts: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[CanonicalAnswer]:
    """Answers of such parts, each call with an id of its own, that end as such answers do."""

    def built(found: list[JsonObject], cut: bool, usage: AnswerUsage | None) -> CanonicalAnswer:
        calls = any(part["type"] == "tool_call" for part in found)
        choice = Choice(tuple(found), "length" if cut else "tool_calls" if calls else "stop")
        return CanonicalAnswer((choice,), usage, "a-model", "answer-1", 1)

    unique = st.lists(st.one_of(*parts), max_size=5, unique_by=lambda part: part.get("id", id(part)))
    return st.builds(built, unique, st.booleans(), st.none() | USAGES)


@st.composite
def damaged(draw: st.DrawFn, document: JsonObject) -> JsonValue:
    """A document with one value, anywhere in it, replaced by another or taken out."""
    found: JsonValue = json.loads(json.dumps(document))
    places: list[JsonObject | list[JsonValue]] = []
    stack: list[JsonValue] = [found]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list) and node:
            places.append(node)
            stack.extend(node.values() if isinstance(node, dict) else node)
    place = draw(st.sampled_from(places))
    other = draw(st.none() | _JSON.map(lambda value: [value]))
    if isinstance(place, dict):
        name = draw(st.sampled_from(sorted(place)))
        del place[name]
        if other:
            place[name] = other[0]
    else:
        index = draw(st.integers(0, len(place) - 1))
        place[index : index + 1] = other or []
    return found
