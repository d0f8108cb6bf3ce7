"""Bodies read with a memory are what they are without one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.document import Documents
from rewind_proxy.canonical.item import Item
from rewind_proxy.canonical.model import JsonValue
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
        assert jcs.dumps(document.value) == jcs.dumps(plain) == document.canonical()
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


def test_equal_text_is_one_object() -> None:
    """A message that was sent before is the object that it was then, in a body that is otherwise another."""
    documents = Documents()
    message = {"role": "user", "content": "one and the same text of some length, said twice"}
    first = documents.read(json.dumps({"messages": [message]}).encode()).value
    second = documents.read(
        json.dumps({"model": "m", "messages": [{"a": 1}, message, message]}).encode()
    ).value
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(first["messages"], list)
    assert isinstance(second["messages"], list)
    known = first["messages"][0]
    assert isinstance(known, Item)
    assert second["messages"][1] is known


def test_memory_is_bounded() -> None:
    """However much is read, no more is kept than what adds up to the bound."""
    documents = Documents(100_000)
    for number in range(200):
        documents.read(json.dumps({"messages": [{"n": number, "text": "x" * 900}]}).encode())
    assert 10 <= len(documents) <= 100_000 // 900
