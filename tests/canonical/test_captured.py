"""Ids that a rule captured as random are one slot wherever they are quoted (DESIGN §5, "Scrubbing")."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.captured import Captured
from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.canonical.spans import Leaf
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})


def reader(**settings: object) -> RequestReader:
    """A reader that has read nothing."""
    return RequestReader(HOSTS, Redactor(), MatchSettings.model_validate(settings), 2**26)


def call(number: int, arguments: JsonObject) -> JsonObject:
    """A call of a tool, as the model made it."""
    function: JsonObject = {"name": "sh", "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def result(number: int, content: JsonValue) -> JsonObject:
    """Its result."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


def said(text: str) -> JsonObject:
    """What the user said."""
    return {"role": "user", "content": text}


def read(*messages: JsonObject, using: RequestReader | None = None) -> Reading:
    """A conversation after a question and a first call."""
    body: JsonObject = {"model": "m", "messages": [said("Go on."), call(1, {"a": 1}), *messages]}
    host = HOSTS.find("api.openai.com", 443)
    assert host is not None
    request = RawRequest("POST", host.name, 443, "/v1/chat/completions", (), json.dumps(body).encode())
    return (using or reader()).read(request, host)


AGENT, OTHER = "a1f0c2d4e5", "a9b8c7d6e5"
TASK = "bqmzrwxtk"
CAPTURED_AND_QUOTED = {
    "an agent's id in a later call": (
        result(1, "Done.\nagentId: @ (use SendMessage)"),
        call(2, {"to": "@"}),
    ),
    "in the same result": (result(1, "agentId: @ (use SendMessage with to: '@' to continue)"),),
    "a task's id without a digit": (
        result(1, "Command running in background with ID: @. Output: /x/tasks/@.output"),
        call(2, {"task_id": "@"}),
        said("Is @ done?"),
    ),
    "a path of the task": (result(1, "with ID: @."), call(2, {"path": "/srv/tasks/@.output"})),
    "a folder of mktemp's": (result(1, "/tmp/tmp.@"), call(2, {"command": "ls tmp.@; cat /tmp/tmp.@/a"})),
    "beside marks and in JSON": (result(1, "agentId: @"), said('{"id":"@"}, agent-@, (@) `@`\n@')),
}


def filled(messages: tuple[JsonObject, ...], value: str) -> list[JsonObject]:
    """The messages with a value in all their gaps."""
    return [*json.loads(json.dumps(messages).replace("@", value))]


@pytest.mark.parametrize("kind", CAPTURED_AND_QUOTED)
def test_a_captured_id_is_one_slot_wherever_it_is_quoted(kind: str) -> None:
    """Another id in all its places is the same request; another id in one of them is another."""
    messages = CAPTURED_AND_QUOTED[kind]
    first, second = (TASK, "bkdltqjwv") if "ID: @" in json.dumps(messages) else (AGENT, OTHER)
    one, two = read(*filled(messages, first)), read(*filled(messages, second))
    assert one.fingerprint == two.fingerprint
    text = json.dumps(filled(messages, first))
    if text.count(first) > 1:
        last = text.rindex(first)
        mixed = read(*json.loads(text[:last] + second + text[last + len(first) :]))
        assert mixed.fingerprint != one.fingerprint
    assert one.normalised is not None
    assert first not in json.dumps(one.normalised.view)
    assert {slot.value.removeprefix("tmp.") for slot in one.normalised.slots if slot.rule != "RS102"} >= {
        first
    }


@pytest.mark.parametrize(
    "messages",
    [
        (result(1, "agentId: @"), said("what of x@?")),
        (result(1, "agentId: @"), said("what of @0?")),
        (result(1, "agentId: @"), said("what of @_a?")),
        (said("@ comes before"), result(1, "agentId: @")),
        (said("agentId: @"), said("@")),
    ],
)
def test_what_is_no_quotation_counts(messages: tuple[JsonObject, ...]) -> None:
    """A part of a longer word, what stands before the capture, and an id in a user's words are meaning."""
    assert read(*filled(messages, AGENT)).fingerprint != read(*filled(messages, OTHER)).fingerprint


def test_a_short_or_numeric_value_is_not_followed() -> None:
    """A number that a rule took for random means something where it stands alone."""
    for value, other in (("4711", "4712"), ("123456789", "123456780")):
        pair = [
            read(result(1, f"Chunk ID: {each}"), said(f"Is {value} prime?")).fingerprint
            for each in (value, other)
        ]
        assert pair[0] == pair[1]
        assert read(result(1, f"Chunk ID: {value}"), said(f"Is {other} prime?")).fingerprint != pair[0]


def test_without_the_rule_nothing_is_followed() -> None:
    """`scrub_off` takes the capture away and so its quotations."""
    off = reader(scrub_off=("RS203", "RS106"))
    one, two = (read(result(1, f"agentId: {v}"), said(v), using=off) for v in (AGENT, OTHER))
    assert one.fingerprint != two.fingerprint


def test_a_request_that_goes_on_from_an_earlier_one_follows_the_same() -> None:
    """What was captured in the history is known when only the new messages are looked at."""
    known = reader()
    history = [result(1, f"agentId: {AGENT}"), *(call(n, {"n": n}) for n in range(2, 6))]
    read(*history, said("a"), using=known)
    longer = [*history, said("a"), call(9, {"to": AGENT}), result(9, "sent")]
    assert read(*longer, using=known).fingerprint == read(*longer).fingerprint


WORDS = st.sampled_from(
    ["agent", AGENT, OTHER, "tmp.Xa8d0f", "n", "\n", "\\", '"', " ", "-", "ä", "é", "/", "_"]
)


def captured(*values: str) -> Captured:
    """What holds these values."""
    made = Captured()
    for value in values:
        made.add(value, "RS203", "agent")
    return made


@given(st.lists(WORDS, max_size=12))
def test_few_values_are_found_as_many_are(pieces: list[str]) -> None:
    """The quick look for the first words of a few values hides nothing."""
    text = "".join(pieces)
    values = (AGENT, OTHER, "tmp.Xa8d0f")
    more = (f"other{number}" for number in range(40))
    found = captured(*values).follow(Leaf(text, ())).spans
    assert captured(*values, *more).follow(Leaf(text, ())).spans == found


def test_ten_thousand_captured_values_cost_no_more_than_their_text() -> None:
    """Values that start with one word are told by their length, so a hostile log stays linear."""
    values = [f"run-{number:06d}a" for number in range(10_000)]
    leaf = captured(*values).follow(Leaf(" ".join(values), ()))
    assert len(leaf.spans) == 10_000
