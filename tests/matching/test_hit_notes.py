"""Every rule that made a normalised hit possible is named on the hit (DESIGN §1, promise 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from case_tables import fake
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.engine import Replay
from rewind_proxy.matching import serving
from rewind_proxy.store import CassetteRecord, Store
from test_engine import Desk, chat

TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "ab"
]
GROQ = {"path": "/openai/v1/chat/completions", "host": "api.groq.com"}
OBJECTS = {"ignore": ("model", "response_format", "tool_choice")}
UUIDS = ("0b7f3c1e-8a52-4e0c-9f57-2d2f1f6c9a10", "5c2d9f61-1b8e-4d7a-8f00-7a8f3e2b1c44")


def note(folder: Path, recorded: Any, live: Any, where: Any = None, **settings: Any) -> str:
    """The note of a request that is answered by the recording of another."""
    desk = Desk(folder, **settings)
    try:
        desk.record(desk.request(recorded))
        found = desk.decide(desk.request(live, **(where or {})), "replay")
        assert isinstance(found, Replay), found
        assert found.tier == "normalised"
        return found.note
    finally:
        desk.store.close()


def messages(*contents: Any) -> JsonObject:
    """A body with user messages alone."""
    return {"model": "m1", "messages": [{"role": "user", "content": content} for content in contents]}


@pytest.mark.parametrize(
    ("recorded", "live", "expected"),
    [
        (chat(max_tokens=1), chat(max_tokens=2, model="m2"), "model m1->m2; max_tokens 1->2"),
        (chat(metadata={"a": "1"}), chat(metadata={"a": "2"}), "volatile metadata"),
        (chat(prompt_cache_key="a"), chat(prompt_cache_key="b"), "volatile prompt_cache_key"),
        (chat(prompt_cache_key="a"), chat(seed=1), "seed (absent)->1; volatile prompt_cache_key"),
        (chat("count 'a  b'"), chat("count 'a b'"), "folded RS001"),
        (chat("count 'a b'"), chat("count 'a\tb'"), "folded RS001"),
        (chat("one\r\ntwo"), chat("one\ntwo"), "folded RS001"),
        (chat("e\u0301"), chat("\u00e9"), "folded RS001"),
        (chat(tools=TOOLS), chat(tools=TOOLS[::-1]), "tools reordered"),
        (chat(stop=None), chat(), "null stop"),
        (chat(f"see  {UUIDS[0]}"), chat(f"see  {UUIDS[1]}"), "scrubbed RS101"),
        (chat(f"see  {UUIDS[0]}"), chat(f"see {UUIDS[1]}"), "folded RS001; scrubbed RS101"),
        (
            chat(stream_options={"include_usage": True}),
            chat(),
            'stream_options {"include_usage":true}->(absent)',
        ),
    ],
)
def test_what_differed_is_named(tmp_path: Path, recorded: Any, live: Any, expected: str) -> None:
    """By name, with both values of what is ignored; nothing else is named."""
    assert note(tmp_path, recorded, live) == expected


def test_ignored_objects_are_named(tmp_path: Path) -> None:
    """What a project ignores may be an object; both values are shown, cut when they are long."""
    recorded = chat(
        response_format={"type": "json_object"}, tool_choice={"type": "function", "name": "a" * 200}
    )
    told = note(tmp_path, recorded, chat(response_format={"type": "text"}), **OBJECTS)
    assert 'response_format {"type":"json_object"}->{"type":"text"}' in told
    assert "tool_choice {" in told
    assert "...->(absent)" in told
    assert len(told) < 300


def test_another_host_is_named(tmp_path: Path) -> None:
    """A recording of OpenAI that answers a request to Groq says so."""
    assert note(tmp_path, chat(), chat(), GROQ) == "host api.openai.com->api.groq.com"


def test_another_wire_is_named(tmp_path: Path) -> None:
    """So does one that answers another wire, with what only one of them sends."""
    desk = Desk(tmp_path)
    desk.record(desk.request({"model": "m1", "input": "Hi"}, "/v1/responses"))
    recorded = desk.store.lookup_exact(next(desk.store.cassettes()).exact)[0]
    live = {"model": "m1", "max_tokens": 9, "metadata": {"user_id": "u"}, **messages("Hi")}
    request = desk.request(live, "/v1/messages", "api.anthropic.com")
    reading = desk.read(request)
    made = serving.Serving(desk.settings, desk.reader, desk.store)
    assert made.notes("normalised", recorded, reading) == [
        "host api.openai.com->api.anthropic.com",
        "max_tokens (absent)->9",
        "wire responses->anthropic",
        "volatile metadata",
    ]
    desk.store.close()


def test_members_of_messages_that_change_are_named(tmp_path: Path) -> None:
    """A cache mark on a block is volatile too."""
    desk = Desk(tmp_path)
    block = {"type": "text", "text": "Hi"}
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    where = {"path": "/v1/messages", "host": "api.anthropic.com"}
    desk.record(desk.request({"max_tokens": 9, **messages([marked])}, **where))
    found = desk.decide(desk.request({"max_tokens": 9, **messages([block])}, **where), "replay")
    assert isinstance(found, Replay)
    assert found.note == "volatile cache_control"
    desk.store.close()


def test_another_secret_is_named(tmp_path: Path) -> None:
    """Requests that differ in a credential alone are one, and the rule says why; the note holds neither."""
    secrets = [fake("sk-proj-", 40, salt) for salt in ("a", "b")]
    recorded, live = (chat(f"is {secret} strong?") for secret in secrets)
    told = note(tmp_path / "1", recorded, live)
    assert told.startswith("redacted RW1")
    same = note(tmp_path / "2", chat(f"is {secrets[0]} strong?", seed=1), chat(f"is {secrets[0]} strong?"))
    assert same == "seed 1->(absent)"


def test_a_mark_where_a_secret_was_is_named(tmp_path: Path) -> None:
    """A request that was sent with what redaction leaves says so: its recording may have had a credential."""
    secret = fake("sk-proj-", 40)
    told = note(tmp_path, chat(f"is {secret} strong?"), chat("is [REDACTED] strong?"))
    assert told == "redacted [REDACTED]"


def test_folding_can_be_switched_off(tmp_path: Path) -> None:
    """It is a rule like any other: without it two spellings are two requests."""
    desk = Desk(tmp_path, scrub_off=("RS001",))
    a, b = (desk.read(desk.request(chat(text))) for text in ("a  b", "a b"))
    assert a.fingerprint != b.fingerprint
    desk.store.close()


def test_a_hit_that_its_record_explains_reads_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing but ignored numbers and words differ, the recorded request is not read again."""
    desk = Desk(tmp_path)
    desk.record(desk.request(chat("a  b", temperature=0, prompt_cache_key="k1")))
    read: list[str] = []
    monkeypatch.setattr(Store, "request_body", lambda _self, record: read.append(record.id))
    found = desk.decide(desk.request(chat("a  b", temperature=1, prompt_cache_key="k2")), "replay")
    assert isinstance(found, Replay)
    assert found.note == "temperature 0->1; volatile prompt_cache_key"
    assert read == []
    desk.store.close()


def test_a_recorded_request_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt from it is kept for the next hit."""
    desk = Desk(tmp_path)
    desk.record(desk.request(chat("a  b")))
    original, read = Store.request_body, list[str]()

    def request_body(store: Store, record: CassetteRecord) -> JsonValue | None:
        read.append(record.id)
        return original(store, record)

    monkeypatch.setattr(Store, "request_body", request_body)
    for live in ("a b", "a   b", "a\tb"):
        found = desk.decide(desk.request(chat(live)), "replay")
        assert isinstance(found, Replay)
        assert found.note == "folded RS001"
    assert len(read) == 1
    desk.store.close()
