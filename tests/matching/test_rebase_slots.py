"""Which recorded value becomes which live one: slots of one placeholder, in order (DESIGN §8)."""

from __future__ import annotations

import json

import pytest

from rewind_proxy.canonical.fingerprint import Normalised, Normaliser
from rewind_proxy.canonical.model import CanonicalRequest, MatchSettings, Message, Volatile
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.scrub import Slot
from rewind_proxy.matching.rebase import Replacements, rebase, replacements

NOTHING = Replacements({}, {}, {})
U1, U2, U3, U4 = (f"6f1c2a3b-0000-4000-8000-00000000000{n}" for n in range(1, 5))


def normalised(system: str, user: str, result: str = "") -> Normalised:
    """A request after normalisation."""
    messages = (
        Message("system", ({"type": "text", "text": system},)),
        Message("user", ({"type": "text", "text": user},)),
        Message("tool", ({"type": "tool_result", "id": "c", "content": [{"type": "text", "text": result}]},)),
    )
    request = CanonicalRequest("anthropic", "generate", messages)
    return Normaliser(MatchSettings()).normalise(request, "api.anthropic.com", Volatile())


def pair(recorded: Normalised, live: Normalised) -> Replacements:
    """The replacements of two requests that match."""
    assert recorded.fingerprint == live.fingerprint
    return replacements(recorded.slots, live.slots)


def slot(rule: str, value: str, placeholder: str) -> Slot:
    """A slot, wherever it was."""
    return Slot(rule, placeholder.strip("⟨⟩").partition(":")[0], value, placeholder, ROOT)


def test_a_moved_project() -> None:
    """The project, the home, ids and times of one request become those of the other."""
    recorded = normalised(
        "Primary working directory: /home/a/app",
        f"see /home/a/.claude/x, {U1} {U2}",
        "ok 2026-11-30T09:00:01Z",
    )
    live = normalised(
        "Primary working directory: /builds/7/app",
        f"see /root/.claude/x, {U3} {U4}",
        "ok 2027-01-02T10:11:12Z",
    )
    values = pair(recorded, live)
    assert values == Replacements(
        {"/home/a/app": "/builds/7/app", "/home/a": "/root"},
        {U1: U3, U2: U4},
        {"2026-11-30T09:00:01Z": "2027-01-02T10:11:12Z"},
    )
    body = b'{"content": [{"type": "tool_use", "input": {"path": "/home/a/app/x"}}]}'
    assert b'"/builds/7/app/x"' in rebase(body, "anthropic", "whole", values).body


def test_swapped_ids() -> None:
    """Values that trade their places are paired by place, not by value."""
    assert pair(normalised("s", f"{U1} to {U2}"), normalised("s", f"{U2} to {U1}")).uuids == {U1: U2, U2: U1}


def test_nothing_differs() -> None:
    """Two requests with the same slots need nothing changed."""
    same = normalised("Primary working directory: /home/a/app", f"{U1} at 2026-11-30T09:00:01Z")
    values = pair(same, same)
    assert not values
    assert values.roots == {"/home/a/app": "/home/a/app"}


def test_only_roots_uuids_full_times_and_ids() -> None:
    """Durations, process ids, dates alone, short names and a project's own noise are not put back."""
    recorded = normalised(
        "Today's date is 2026-11-30.",
        "now",
        "wrote /tmp/9f3a/x in 412 ms\nPID: 4711\nagentId: a0123456789",
    )
    live = normalised(
        "Today's date is 2027-01-02.", "now", "wrote /tmp/91bc/x in 399 ms\nPID: 9\nagentId: a9876543210"
    )
    assert pair(recorded, live) == Replacements({"/tmp": "/tmp"}, {}, {}, {"a0123456789": "a9876543210"})
    own = [slot("scrub:uuid", "a", "⟨uuid:1⟩")]
    assert replacements(own, [slot("scrub:uuid", "b", "⟨uuid:1⟩")]) == NOTHING


def test_an_id_that_a_client_made_is_put_back_where_the_answer_quotes_it() -> None:
    """A replayed call asks for the agent and the folder of today, also in JSON in a string."""
    recorded = normalised("s", "u", "agentId: a0123456789\nmade /tmp/tmp.Xk3fA9")
    live = normalised("s", "u", "agentId: a9876543210\nmade /tmp/tmp.Qw7dE1")
    values = pair(recorded, live)
    arguments = json.dumps({"to": "a0123456789", "ls": "/tmp/tmp.Xk3fA9/out\na0123456789x agent-a0123456789"})
    calls = [{"id": "c", "function": {"name": "send", "arguments": arguments}}]
    body = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()
    said = json.loads(rebase(body, "chat_completions", "whole", values).body)
    assert json.loads(said["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {
        "to": "a9876543210",
        "ls": "/tmp/tmp.Qw7dE1/out\na0123456789x agent-a9876543210",
    }


def test_times_that_are_not_numbered_are_paired_in_order() -> None:
    """Times in tool results share a placeholder and go in order; one with two meanings stays."""

    def times(*values: str) -> list[Slot]:
        return [slot("RS103", value, "⟨time⟩") for value in values]

    assert replacements(times("t1", "t2"), times("u1", "u2")).times == {"t1": "u1", "t2": "u2"}
    assert replacements(times("t1", "t2", "t1"), times("u1", "u2", "u3")).times == {"t2": "u2"}
    assert replacements(times("t1", "t2"), times("u1")) == NOTHING


@pytest.mark.parametrize(
    ("recorded", "live"),
    [("⟨uuid:1⟩", "⟨uuid:2⟩"), ("⟨uuid:1⟩", "⟨cwd⟩")],
)
def test_other_placeholders_are_never_paired(recorded: str, live: str) -> None:
    """There is no pairing but by kind and number."""
    assert replacements([slot("RS101", U1, recorded)], [slot("RS101", U2, live)]) == NOTHING


def test_an_ambiguous_root_shields_what_it_holds() -> None:
    """A root with two live meanings stays as it is, and so do the paths in it."""
    recorded = [
        slot("RS105", old, name) for old, name in (("/a/b", "⟨cwd⟩"), ("/a/b", "⟨home⟩"), ("/a", "⟨home:2⟩"))
    ]
    live = [slot("RS105", new, name) for new, name in (("/x", "⟨cwd⟩"), ("/y", "⟨home⟩"), ("/z", "⟨home:2⟩"))]
    values = replacements(recorded, live)
    assert values.roots == {"/a/b": "/a/b", "/a": "/z"}


def test_a_root_with_quotes_is_left_out() -> None:
    """A folder whose name holds a quote could not be told from the JSON and code around it."""
    assert replacements([slot("RS105", '/a"b', "⟨cwd⟩")], [slot("RS105", "/c", "⟨cwd⟩")]) == NOTHING
