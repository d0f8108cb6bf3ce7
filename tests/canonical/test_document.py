"""Bodies read with a memory are what they are without one."""

from __future__ import annotations

import json
import operator
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.documents import Documents
from rewind_proxy.canonical.history import History
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction, Redactor
from rewind_proxy.errors import OpaqueBodyError

KEY = "sk-proj-" + "Ab3" * 12
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(("", "⟨cwd⟩", "\ud83d", "😀", 'a"b\\', f"key {KEY}", "long " * 40)),
)
NAMES = st.one_of(
    st.sampled_from(("type", "text", "id", "api_key", "⟨number⟩", "\uffee", "😀")), st.text(max_size=3)
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(
    st.one_of(st.sampled_from(("messages", "input", "tools", "metadata", "input_audio")), NAMES),
    st.one_of(VALUES, st.lists(VALUES, max_size=5)),
    max_size=5,
)
LAYOUTS = st.sampled_from(((",", ":"), (", ", ": "), (" ,\n\t", "\r\n : ")))


def written(body: object, layout: tuple[str, str], *, escaped: bool) -> bytes:
    """A body as some client writes it; half a character can only be escaped."""
    text = json.dumps(body, separators=layout, ensure_ascii=escaped)
    return text.encode("utf-8", "replace")


def read_plainly(body: bytes) -> JsonValue | None:
    """The body, or None when it is opaque."""
    try:
        return jcs.parse(body)
    except OpaqueBodyError:
        return None


MEMORIES = st.sampled_from((0, 9_000, 4_000_000))


@given(st.lists(st.tuples(BODIES, LAYOUTS, st.booleans()), max_size=4), MEMORIES)
def test_reads_what_the_parser_reads(bodies: list[tuple[object, tuple[str, str], bool]], memory: int) -> None:
    """Whatever was read before, a body has the value, the canonical bytes and the redactions it has alone."""
    documents, redactor = Documents(memory), Redactor()
    data = [written(body, layout, escaped=escaped) for body, layout, escaped in bodies]
    for each in [*data, *reversed(data)]:
        plain = read_plainly(each)
        if plain is None:
            with pytest.raises(OpaqueBodyError):
                documents.read(each)
            continue
        document = documents.read(each)
        assert jcs.dumps(document.value) == jcs.dumps(plain)
        digest, members = document.digests(b"lead")
        assert digest.digest() == sha256(b"lead" + jcs.dumps(plain)).digest()
        if isinstance(plain, dict):
            assert members == {name: sha256(_hashed(plain[name])).digest() for name in plain}
        found: list[Redaction] = []
        expected: list[Redaction] = []
        assert jcs.dumps(document.redacted(redactor, found)) == jcs.dumps(redactor.value(plain, expected))
        assert found == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{",
        b'{"a":1,}',
        b'{"a":[1,]}',
        b'{"a":[{"b":1}}',
        b'{"a":1}x',
        b'{"a":1,"a":2}',
        b'{"a":[{"b":1,"b":2}]}',
        b"\xef\xbb\xbf" + b'{"a":[{"b":1}]}',
        b'{"a":"\xff"}',
        b'{"\\u27e8number\\u27e9":"1"}',
        b'{"a":[{"\\u27E8text\\u27E9":"1"}]}',
        b'{"a":' + b"[" * 398 + b"]" * 398 + b"}",
        b'{"a":' + b"[" * 400 + b"]" * 400 + b"}",
        b'{"a":[' + b'{"b":' * 398 + b"1" + b"}" * 398 + b"]}",
        b'{"a":[' + b'{"b":' * 399 + b"1" + b"}" * 399 + b"]}",
        b'{"a":' + b'{"b":' * 399 + b"1" + b"}" * 399 + b"}",
        b'{"a":' + b'{"b":' * 400 + b"1" + b"}" * 400 + b"}",
    ],
)
def test_odd_bodies(body: bytes) -> None:
    """What the parser refuses is refused, and what it takes is taken."""
    plain = read_plainly(body)
    if plain is None:
        with pytest.raises(OpaqueBodyError):
            Documents().read(body)
    else:
        assert Documents().read(body).value == plain


def test_a_list_goes_on_from_the_one_that_was_sent_before() -> None:
    """The messages of the turn before are the objects that they were then, whatever stands around them."""
    documents = Documents()
    messages: list[JsonValue] = [{"role": "user", "content": f"text {number} " * 20} for number in range(8)]
    first = _messages(documents, {"messages": messages})
    longer = _messages(documents, {"model": "m", "messages": [*messages, {"role": "user"}, {"a": 1}]})
    assert all(map(operator.is_, first, longer))
    assert _messages(documents, {"messages": [*messages, {"role": "user"}, {"a": 1}]}) is longer
    assert len(documents) == 1


def test_the_last_messages_may_be_said_otherwise() -> None:
    """What comes before them is known when a mark moves in one of the last three (Claude Code's)."""
    documents = Documents()
    messages: list[JsonValue] = [{"role": "user", "content": f"text {number} " * 20} for number in range(8)]
    marked: list[JsonValue] = [*messages[:-1], {"role": "user", "content": "x", "cache_control": {}}]
    first = _messages(documents, {"messages": marked})
    second = _messages(documents, {"messages": [*messages, {"role": "assistant"}]})
    assert [*map(operator.is_, first, second)] == [True] * 7 + [False]
    assert second == [*messages, {"role": "assistant"}]


@pytest.mark.parametrize(("words", "kept"), [(20, 9), (2000, 2)])
def test_questions_about_one_history(words: int, kept: int) -> None:
    """The history is read once, whatever else is asked of it; of a large one the last question is kept."""
    documents = Documents()
    messages: list[JsonValue] = [
        {"role": "user", "content": f"text {number} " * words} for number in range(8)
    ]
    bodies: list[list[JsonValue]] = [[*messages, {"question": number}] for number in range(9)]
    asked = [_messages(documents, {"messages": body}) for body in bodies]
    assert asked == bodies
    assert all(all(map(operator.is_, asked[0][:8], each)) for each in asked)
    assert len({id(each.before) for each in asked[1:]}) == 1
    assert len(documents) == kept


def test_a_list_that_only_starts_alike_is_another() -> None:
    """Two sessions with one first message do not take each other's place."""
    documents = Documents()
    start: JsonValue = {"role": "user", "content": "the same first words of two sessions " * 9}
    one: list[JsonValue] = [start, *_numbered("n", 5)]
    two: list[JsonValue] = [start, *_numbered("m", 9)]
    first = _messages(documents, {"messages": one})
    assert _messages(documents, {"messages": two}) == two
    assert _messages(documents, {"messages": [*one, {"n": 5}]}) == [*one, {"n": 5}]
    assert all(map(operator.is_, first, _messages(documents, {"messages": [*one, {"n": 6}]})))


def _numbered(name: str, count: int) -> list[JsonValue]:
    return [{name: number} for number in range(count)]


def test_a_shorter_list_has_its_own_digests_after_a_longer_one() -> None:
    """What is kept of a list for a longer one that goes on from it is still its own."""
    documents = Documents()
    tools: list[JsonValue] = [{"name": f"tool {number}", "description": "x" * 90} for number in range(9)]
    for count in (9, 6, 9, 6):
        body: JsonObject = {"messages": [{"role": "user", "content": "y" * 300}], "tools": tools[:count]}
        _, members = documents.read(json.dumps(body).encode()).digests(b"")
        assert members == {name: sha256(_hashed(value)).digest() for name, value in body.items()}


def _messages(documents: Documents, body: JsonObject) -> History:
    value = documents.read(json.dumps(body).encode()).value
    assert isinstance(value, dict)
    messages = value["messages"]
    assert isinstance(messages, History)
    return messages


def _hashed(value: JsonValue) -> bytes:
    """What a member's digest is of: a list goes without its end."""
    return jcs.dumps(value)[:-1] if isinstance(value, list) else jcs.dumps(value)


def test_memory_is_bounded() -> None:
    """However much is read, no more is kept than what adds up to the bound."""
    documents = Documents(100_000)
    for number in range(200):
        documents.read(json.dumps({"messages": [{"n": number, "text": "x" * 900}]}).encode())
    assert 10 <= len(documents) <= 100_000 // 900


def test_what_is_used_again_is_kept() -> None:
    """Tools that every session sends outlive the sessions that do not come back."""
    documents = Documents(100_000)
    tools: JsonValue = [{"name": "t", "description": "x" * 900}]
    for number in range(200):
        body = {"messages": [{"n": number, "text": "x" * 900}], "tools": tools}
        value = documents.read(json.dumps(body).encode()).value
        assert isinstance(value, dict)
        if number == 0:
            first = value["tools"]
        assert value["tools"] is first
