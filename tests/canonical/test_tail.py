"""The window of the last messages (DESIGN §5, step 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonObject, Message, Role, Target, Wire
from rewind_proxy.canonical.tail import tail
from rewind_proxy.wire import ADAPTERS

ROLES: dict[str, Role] = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}


def messages(written: str) -> list[Message]:
    """Messages as words: the first letter is the role; `+1` is call 1, `=1` its result, `?x` is opaque."""
    made: list[Message] = []
    for word in written.split():
        parts: list[JsonObject] = [{"type": "text", "text": word}]
        for mark, name in zip(word[1::2], word[2::2], strict=True):
            if mark == "?":
                parts.append({"type": "opaque", "value": name})
            else:
                parts.append({"type": "tool_call" if mark == "+" else "tool_result", "id": name})
        made.append(Message(ROLES[word[0]], tuple(parts)))
    return made


def written(found: list[Message]) -> str:
    """The words of messages."""
    return " ".join(str(message.parts[0]["text"]) for message in found)


@pytest.mark.parametrize(
    ("all_of_them", "count", "kept"),
    [
        ("u a u", 0, "u a u"),
        ("u a u", 1, "u"),
        ("u a u", 2, "a u"),
        ("u a u", 9, "u a u"),
        ("u s a u", 1, "s u"),
        ("u a s u s", 1, "s u s"),
        ("u a u s", 2, "a u s"),
        ("u a+1 t=1", 1, "a+1 t=1"),
        ("u a+1+2 t=1 u t=2", 1, "a+1+2 t=1 u t=2"),
        ("u a+1+2 t=2 u t=1 a u", 3, "a+1+2 t=2 u t=1 a u"),
        ("u a+1 s t=1", 1, "a+1 s t=1"),
        ("u a+1 t=1 a+2 u u=2", 1, "a+2 u u=2"),
        ("u a+1 u a+2 t=2 u=1", 1, "a+1 u a+2 t=2 u=1"),
        ("u a+1 t=1 a+1 t=1", 1, "a+1 t=1"),
        ("u a+1=1 u", 1, "u"),
        ("u a t=9", 1, "a t=9"),
        ("u a t?x", 1, "a t?x"),
        ("t=9", 1, "t=9"),
        ("s s", 1, "s s"),
        ("", 1, ""),
    ],
)
def test_table(all_of_them: str, count: int, kept: str) -> None:
    """The last messages, the system's, and as many more as no result lacks its call."""
    assert written(tail(messages(all_of_them), count)) == kept


WORDS = st.lists(
    st.sampled_from(["s", "u", "a", "a+1", "a+1+2", "a+2", "t=1", "t=2", "t=1=2", "u=1", "t=9"]), max_size=12
)


@given(WORDS, st.integers(0, 13))
def test_laws(words: list[str], count: int) -> None:
    """Order stays, the system's messages too, no result loses its call, and more keeps no less."""
    whole = messages(" ".join(words))
    kept = tail(whole, count)
    places = [next(at for at, each in enumerate(whole) if each is message) for message in kept]
    assert places == sorted(places)
    assert {at for at, each in enumerate(whole) if each.role == "system"} <= {*places}
    said = [at for at, each in enumerate(whole) if each.role != "system"]
    assert {*said[-count:]} <= {*places} if count else len(kept) == len(whole)
    made: dict[object, int] = {}
    for at, message in enumerate(whole):
        for part in message.parts:
            if part["type"] == "tool_call":
                made[part["id"]] = at
            elif part["type"] == "tool_result" and part["id"] in made and at in places:
                assert made[part["id"]] in places
    assert len(tail(whole, count + 1)) >= len(kept) or count == 0


PATHS: dict[Wire, tuple[str, JsonObject]] = {
    "chat_completions": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}}
                        for each in "ab"
                    ],
                },
                {"role": "tool", "tool_call_id": "b", "content": "1"},
                {"role": "user", "content": "wait"},
                {"role": "tool", "tool_call_id": "a", "content": "2"},
            ]
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "input": [
                {"role": "user", "content": "q"},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "shell_call", "call_id": "b", "action": {"commands": ["ls"]}},
                {"type": "shell_call_output", "call_id": "b", "output": []},
                {"role": "user", "content": "wait"},
                {"type": "function_call_output", "call_id": "a", "output": "2"},
            ]
        },
    ),
    "anthropic": (
        "/v1/messages",
        {
            "messages": [
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in "ab"],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "b", "content": "1"},
                        {"type": "text", "text": "wait"},
                        {"type": "tool_result", "tool_use_id": "a", "content": "2"},
                    ],
                },
            ]
        },
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"functionCall": {"name": each}} for each in "fg"]},
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "g", "response": {"output": "1"}}},
                        {"text": "wait"},
                        {"functionResponse": {"name": "f", "response": {"output": "2"}}},
                    ],
                },
            ]
        },
    ),
}


@pytest.mark.parametrize("wire", PATHS)
def test_parallel_results_on_each_wire(wire: Wire) -> None:
    """A window that starts between two results of parallel calls goes back to the calls."""
    path, body = PATHS[wire]
    request = ADAPTERS[wire].request(Target("POST", "h.example", path), "generate", body)
    assert [message.role for message in tail(request.messages, 1)] == ["assistant", "tool", "user", "tool"]
