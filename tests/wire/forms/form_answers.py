"""Canonical answers for the tests of forms: a few by hand, any number at random, and what must survive."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

from rewind_proxy.canonical.answer import AnswerUsage, CanonicalAnswer, Choice, Finish
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire

NINE: tuple[tuple[Wire, Form], ...] = (
    ("chat_completions", "whole"),
    ("chat_completions", "sse"),
    ("responses", "whole"),
    ("responses", "sse"),
    ("anthropic", "whole"),
    ("anthropic", "sse"),
    ("gemini", "whole"),
    ("gemini", "sse"),
    ("gemini", "json-array"),
)
"""Every form of every wire that has canonical answers."""

SIGNATURE = "c2lnbmF0dXJl"
SPEECH = (
    "Of the three files, only the second mentions the family 👨‍👩‍👧‍👦 of settings in München. "
    "I will read it, and then list what stands beside it, so that nothing is missed."
)


def read(found: CanonicalAnswer | None) -> CanonicalAnswer:
    """An answer that must be one."""
    assert found is not None
    return found


def read_parts(found: CanonicalAnswer | None) -> list[JsonObject]:
    """The parts of the only choice."""
    return list(read(found).choices[0].parts)


def kinds(told: list[JsonObject]) -> list[str]:
    """The kinds of events and of what fills a block, each as often as it comes after another."""
    found: list[str] = []
    for event in told:
        filled = event.get("delta")
        kind = str(filled["type"] if isinstance(filled, dict) and "type" in filled else event["type"])
        if kind not in found[-1:]:
            found.append(kind)
    return found


def text(said: str, **members: JsonValue) -> JsonObject:
    """A text part."""
    return {"type": "text", "text": said, **members}


def call(identifier: str, name: str, arguments: str, **members: JsonValue) -> JsonObject:
    """A tool call."""
    return {"type": "tool_call", "id": identifier, "name": name, "arguments": arguments, **members}


def answer(*parts: JsonObject, finish: Finish = "stop", wire: Wire | None = None) -> CanonicalAnswer:
    """An answer of one choice, with everything a wire has a word for."""
    return CanonicalAnswer(
        choices=(Choice(parts, finish),),
        usage=AnswerUsage(input=120, output=45, cached=100, reasoning=20),
        model="model-of-the-recording",
        id="answer-1",
        created=1_700_000_000,
        wire=wire,
    )


SAMPLES: dict[str, CanonicalAnswer] = {
    "text": answer(text(SPEECH)),
    "one call": answer(call("call_a", "read", '{"path": "/a/b.txt", "lines": [1, 2]}'), finish="tool_calls"),
    "calls": answer(
        {"type": "reasoning", "text": "Three files; the second first.", "signature": SIGNATURE},
        text(SPEECH),
        call("call_a", "read", '{"path": "/a/b.txt", "depth": {"x": null}, "name": "ünï ☃"}'),
        call("call_b", "list_folder", "{}"),
        call("call_c", "read", '{"path": "' + "/deep" * 40 + '"}'),
        finish="tool_calls",
    ),
    "cut": answer(text("The answer to this is as long as"), finish="length"),
    "cited": answer(
        text(
            "Zürich is in Switzerland, as the map shows.",
            citations=[{"url": "https://example.com/map", "title": "A map", "start": 0, "end": 24}],
        )
    ),
}


@dataclass(frozen=True)
class Told:
    """What has to survive between two forms: the words, the calls, how it ended, and what it cost."""

    text: str
    calls: tuple[tuple[str, JsonValue], ...]
    finish: str | None
    usage: tuple[int, int, int] | None


def told(found: CanonicalAnswer) -> Told:
    """What an answer's first choice tells, with what no two wires do alike taken out.

    Chat Completions alone tells a stop from a wait for results when there are calls.
    """
    choice = found.choices[0]
    calls = tuple(
        (str(part["name"]), json.loads(str(part["arguments"]) or "{}"))
        for part in choice.parts
        if part["type"] == "tool_call"
    )
    finish = "tool_calls" if calls and choice.finish == "stop" else choice.finish
    usage = found.usage
    return Told(
        "".join(str(part["text"]) for part in choice.parts if part["type"] == "text"),
        calls,
        finish,
        (usage.input, usage.output, usage.cached) if usage else None,
    )


words = st.text(max_size=120)
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
identifiers = st.from_regex(r"[a-z]{1,8}_[0-9A-Za-z]{4,12}", fullmatch=True)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


@st.composite
def usages(draw: st.DrawFn) -> AnswerUsage:
    """Counts that fit into one another."""
    read, written = draw(st.integers(0, 10**7)), draw(st.integers(0, 10**7))
    cached = draw(st.integers(0, read))
    return AnswerUsage(read, written, cached, reasoning=draw(st.integers(0, written)))


@st.composite
def calls(draw: st.DrawFn) -> JsonObject:
    """A tool call whose arguments are an object."""
    spelt = json.dumps(draw(arguments), ensure_ascii=draw(st.booleans()))
    return call(draw(identifiers | st.just("")), draw(names), spelt)


@st.composite
def parts(draw: st.DrawFn) -> tuple[JsonObject, ...]:
    """Parts in the order in which every wire has them: thoughts, words, a refusal, calls."""
    found: list[JsonObject] = []
    if draw(st.booleans()):
        thought: JsonObject = {"type": "reasoning", "text": draw(words.filter(bool))}
        if draw(st.booleans()):
            thought["signature"] = SIGNATURE
        found.append(thought)
    found.extend(text(said) for said in draw(st.lists(words.filter(bool), max_size=2)))
    if draw(st.integers(0, 5)) == 0:
        found.append(text(draw(words.filter(bool)), refusal=True))
    # Two with one id are told apart in every form (`repeated id`); those without are all different.
    found.extend(draw(st.lists(calls(), max_size=3, unique_by=lambda part: str(part["id"] or id(part)))))
    return tuple(found)


@st.composite
def finished(draw: st.DrawFn) -> Choice:
    """A choice; one without calls does not wait for their results."""
    said = draw(parts())
    calls = any(part["type"] == "tool_call" for part in said)
    ends: tuple[Finish, ...] = ("stop", "length", "content_filter", "refusal", "pause")
    return Choice(said, draw(st.sampled_from((*ends, "tool_calls") if calls else ends)))


@st.composite
def random_answers(draw: st.DrawFn, choices: int = 1) -> CanonicalAnswer:
    """Any answer that a provider may have given."""
    return CanonicalAnswer(
        choices=tuple(draw(st.lists(finished(), min_size=1, max_size=choices))),
        usage=draw(usages()),
        model=draw(names),
        id=draw(identifiers | st.just("")),
        created=draw(st.integers(0, 2**31)),
    )
