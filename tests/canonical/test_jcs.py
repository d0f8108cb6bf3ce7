"""Canonical JSON: RFC 8785, and tags for what it has no word for (CASES 3, 4, 5)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.jcs import NUMBER_TAG, TEXT_TAG, dumps, parse, store_dumps, store_loads
from rewind_proxy.errors import OpaqueBodyError

SAFE = st.integers(-(2**53) + 1, 2**53 - 1)
PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | SAFE | st.floats(allow_nan=False, allow_infinity=False) | PLAIN_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(PLAIN_TEXT, inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_equal_to_the_reference(value: Any) -> None:
    """The fast path writes what the rfc8785 package writes, for every value that package takes."""
    assert dumps(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("token", "canonical"),
    [
        ("10.0", "10"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("1e-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("0.70", "0.7"),
        ("5.0", "5"),
        ("1E2", "100"),
        ("9007199254740991", "9007199254740991"),
        ("4.35", "4.35"),
        ("1e16", "10000000000000000"),
        ("0.0001", "0.0001"),
        ("0.00001", "0.00001"),
    ],
)
def test_numbers(token: str, canonical: str) -> None:
    """A number is written as ECMAScript writes it, however it was spelled."""
    assert dumps(parse(token)).decode() == canonical


def test_big_integers_stay_apart() -> None:
    """Integers past 2^53 keep their own digits instead of meeting in one float."""
    a, b = (parse(f'{{"seed":{digits}}}') for digits in ("9007199254740993", "9007199254740992"))
    assert dumps(a) != dumps(b)
    assert a == {"seed": {NUMBER_TAG: "9007199254740993"}}


@pytest.mark.parametrize("token", ["1E400", "-1E400", "NaN", "Infinity", "-Infinity", "1" * 5000])
def test_numbers_past_json(token: str) -> None:
    """What no double can hold is kept as its token, and the rest of the body stays readable."""
    assert parse(f'{{"a":{token},"b":1}}') == {"a": {NUMBER_TAG: token}, "b": 1}


def test_tags_cannot_be_sent() -> None:
    """A body that holds a tag of ours is opaque, so it never equals a body that was given one."""
    for tag in (NUMBER_TAG, TEXT_TAG, TEXT_TAG + "x"):
        with pytest.raises(OpaqueBodyError):
            parse(json.dumps({tag: "9007199254740993"}))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (r'"\ud83d"', r'"\ud83e"'),
        (r'"\udc00\ud83d"', r'"\ud83d\udc00"'),
        (r'"\ud83d"', r'"\\ud83d"'),
        (r'{"\ud83d":1}', r'{"\ud83e":1}'),
    ],
)
def test_lone_surrogates(a: str, b: str) -> None:
    """Lone surrogates neither crash nor collide, in values and in names."""
    assert dumps(parse(a)) != dumps(parse(b))


def test_a_pair_of_surrogates_is_one_letter() -> None:
    """An escaped pair is the letter itself."""
    assert dumps(parse(r'"\ud83d\ude42"')) == '"🙂"'.encode()


def test_names_are_sorted_by_utf_16() -> None:
    """U+1F600 comes before U+FB33, as its first code unit does (RFC 8785 §3.2.3)."""
    assert dumps({"\ufb33": 1, "😀": 2}) == '{"😀":2,"\ufb33":1}'.encode()
    names = ["\n", "\r", "1", "</script>", "€", "ö", "דּ", "😀"]
    assert dumps(dict.fromkeys(names, 0)) == dumps(dict.fromkeys(reversed(names), 0))


@pytest.mark.parametrize(
    "body",
    [b'{"a":1,"a":2}', b'{"a":"\xff"}', b"", b"{", b"nonsense", b'{"a":1}x', b"\xef\xbb\xbf\xef\xbb\xbf1"],
)
def test_opaque_bodies(body: bytes) -> None:
    """Duplicate members, invalid UTF-8 and what is no JSON are refused as a whole."""
    with pytest.raises(OpaqueBodyError) as caught:
        parse(body)
    assert caught.value.__cause__ is None


def test_deep_nesting() -> None:
    """Nesting past any sensible depth is refused, not a crash, up to what the parser itself can take."""
    for depth in (500, 2000, 200_000):
        with pytest.raises(OpaqueBodyError):
            parse("[" * depth + "]" * depth)
    assert parse("[" * 300 + "]" * 300) is not None


def test_errors_do_not_quote_the_body() -> None:
    """What is said of a bad body holds nothing of it."""
    with pytest.raises(OpaqueBodyError) as caught:
        parse('{"key": "hunter2", bad}')
    assert "hunter2" not in str(caught.value)


@given(
    st.recursive(
        st.none() | SAFE | st.text() | st.floats(allow_nan=False),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_the_stored_form_reads_back(value: Any) -> None:
    """What is stored reads back equal, lone surrogates included."""
    if not any(isinstance(leaf, float) and math.isinf(leaf) for leaf in _leaves(value)):
        assert store_loads(store_dumps(value)) == value


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
