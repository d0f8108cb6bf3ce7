"""A miss names the nearest recording, the first difference and what would have matched (CASES 65)."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import pytest

from case_tables import fake
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.engine import Refuse, refusal_text
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.miss import NEVER, Miss
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.store import CassetteRecord
from test_engine import Desk, chat

ENTRIES, ONE = 200, 57
SYSTEM = "You are a careful engineer. Read the file before you change it, and run the tests after."
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": f"{name} one file of the project", "parameters": {}},
    }
    for name in ("read", "write", "list")
]


def session(number: int) -> Any:
    """A conversation of nine messages; the first four are the same in all."""
    texts = ["What is in the repository?", "Three modules.", "Which has tests?", "The parser."]
    texts += [f"Step {step}: look at item {number} of list {step * number}." for step in range(4)]
    spoken = [
        {"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(texts)
    ]
    tools = copy.deepcopy(TOOLS)
    return {"model": "m1", "max_tokens": 64, "tools": tools, "messages": [system(SYSTEM), *spoken]}


def system(text: str) -> JsonObject:
    """A system message."""
    return {"role": "system", "content": text}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A store with two hundred sessions."""
    desk = Desk(tmp_path_factory.mktemp("filled"))
    for number in range(ENTRIES):
        desk.record(desk.request(session(number)), b'{"ok":%d}' % number)
    yield desk
    desk.store.close()


def refused(desk: Desk, body: Any, **where: Any) -> Miss:
    """The miss of a request in replay mode."""
    decision = desk.decide(desk.request(body, **where), "replay")
    assert isinstance(decision, Refuse)
    assert decision.miss.text() in refusal_text(decision.miss)
    return decision.miss


def one_of(desk: Desk) -> CassetteRecord:
    """The recording that the requests below are like."""
    [found] = desk.store.lookup_exact(desk.read(desk.request(session(ONE))).exact)
    return found


def word_of_message_7(body: Any) -> None:
    body["messages"][7]["content"] = body["messages"][7]["content"].replace("look at", "throw")


def tool_description(body: Any) -> None:
    body["tools"][1]["function"]["description"] = "write one file of the projects"


def system_prompt(body: Any) -> None:
    body["messages"][0]["content"] = SYSTEM.replace("careful", "careless")


def no_head(body: Any) -> None:
    del body["messages"][0], body["tools"]


@pytest.mark.parametrize(
    ("change", "path", "would"),
    [
        (word_of_message_7, "$.messages[7].parts[0].text", ("tail_n = 1",)),
        (tool_description, "$.tools[2].description", ()),
        (system_prompt, "$.messages[0].parts[0].text", ()),
        (no_head, "$.messages[0].parts[0].text", ()),
    ],
)
def test_the_nearest_of_many_is_found(filled: Desk, change: Any, path: str, would: tuple[str, ...]) -> None:
    """One difference in one of two hundred: that recording is named, and the place, within a second."""
    body = session(ONE)
    change(body)
    begun = time.thread_time()
    miss = refused(filled, body)
    assert time.thread_time() - begun < 1
    assert miss.nearest == one_of(filled).id
    assert miss.difference is not None
    assert (miss.difference.path, miss.would_match_with) == (path, would)
    assert not miss.reason.startswith(NEVER)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda body: body.update(max_tokens=65), "$.params.max_tokens"),
        (lambda body: body["tools"].reverse(), "$.tools[0].description"),
    ],
)
def test_what_the_normalised_tier_ignores(filled: Desk, tmp_path: Any, change: Any, path: str) -> None:
    """With `match = exact` the report says that the normalised tier would have matched."""
    desk = Desk(tmp_path, match="exact")
    desk.record(desk.request(session(ONE)))
    body = session(ONE)
    change(body)
    miss = refused(desk, body)
    assert miss.nearest == one_of(desk).id
    assert miss.difference is not None
    assert miss.difference.path == path
    assert miss.would_match_with == ("match = normalised",)
    desk.store.close()


def test_nothing_close(filled: Desk) -> None:
    """What is like no recording is never called near to one; the same system prompt alone is not enough."""
    for body in (
        chat("Zebras dance quietly"),
        {"model": "m1", "messages": [system("Be a poet"), {"role": "user", "content": "Zebras dance"}]},
    ):
        assert refused(filled, body) == Miss(f"{NEVER}.")
    body = {**session(ONE), "messages": [system(SYSTEM), {"role": "user", "content": "Zebras dance quietly"}]}
    miss = refused(filled, body)
    assert (
        miss.reason == f"{NEVER}: the nearest recording shares its system prompt and tools, and no message."
    )
    assert miss.difference is not None
    assert miss.difference.b == "Zebras dance quietly"


def test_a_count_of_what_was_generated(tmp_path: Any) -> None:
    """Another operation on the same conversation is named as that."""
    desk = Desk(tmp_path)
    body = {"model": "m1", "max_tokens": 64, "messages": [{"role": "user", "content": "How long is this?"}]}
    desk.record(desk.request(body, "/v1/messages", "api.anthropic.com"))
    miss = refused(desk, body, path="/v1/messages/count_tokens", host="api.anthropic.com")
    assert miss.reason == (
        "The nearest recording was recorded as generate, and is asked for as count_tokens."
    )
    assert miss.nearest is not None
    assert miss.difference is not None
    assert miss.difference.path == "$.operation"
    desk.store.close()


def test_generic_requests_are_compared_within_their_endpoint(tmp_path: Any) -> None:
    """Of what no adapter knows the nearest body on the same host and path is named, with the JSON path."""
    desk = Desk(tmp_path)
    for number in range(20):
        image = {"model": "i1", "prompt": f"a cat with {number} hats", "style": {"size": 100 + number}}
        desk.record(desk.request(image, "/v1/images/generations"), b'{"ok":%d}' % number)
    live = {"model": "i1", "prompt": "a cat with 7 hats", "style": {"size": 999}}
    miss = refused(desk, live, path="/v1/images/generations")
    assert miss.nearest is not None
    assert miss.difference is not None
    assert miss.difference.to_json() == {"path": "$.body.style.size", "a": "107", "b": "999"}
    assert refused(desk, live, path="/v1/images/variations") == Miss(f"{NEVER}.")
    assert refused(desk, live, path="/v1/images/generations", host="api.x.ai").nearest is None
    desk.store.close()


def test_a_miss_holds_no_secret(tmp_path: Any) -> None:
    """Its excerpts are of redacted requests, on both sides."""
    desk = Desk(tmp_path)
    secrets = [fake("sk-proj-", 40, salt) for salt in ("a", "b")]
    desk.record(desk.request(chat(f"the key is {secrets[0]} and the file is one")))
    miss = refused(desk, chat(f"the key is {secrets[1]} and the file is two"))
    assert miss.difference is not None
    assert not any(secret in str(miss) for secret in secrets)
    desk.store.close()


def test_trials_are_bounded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large request that differs in its noise is normalised anew a few times at most."""
    desk = Desk(tmp_path)

    def noisy(folder: str) -> Any:
        lines = "\n".join(f"/srv/{folder}/file{number}.py took {number} ms" for number in range(4000))
        return chat(f"{lines}\nend")

    desk.record(desk.request(noisy("one")))
    original, tried = RequestReader.again, list[Reading]()

    def again(reader: RequestReader, reading: Reading) -> Reading:
        tried.append(reading)
        return original(reader, reading)

    monkeypatch.setattr(RequestReader, "again", again)
    assert refused(desk, noisy("two")).nearest is not None
    assert len(tried) == 0
    assert refused(desk, chat("see /srv/two/x.py")).nearest is None
    desk.store.close()


def test_a_terminal_shows_no_control_characters() -> None:
    """What a client and the log say of a miss quotes a store, which may be somebody else's."""
    miss = Miss("Why not.", difference=Difference("$.x", "a\x1b[2J\nb", "\u202ea"))
    assert miss.text() == "Why not.\nFirst difference: $.x\n  recorded: a\\x1b[2J\nb\n  live:     \\u202ea"
