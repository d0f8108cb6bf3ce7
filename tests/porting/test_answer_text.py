"""An answer as text: it reads well, and every byte, chunk and time comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import PortingError
from rewind_proxy.porting import text
from rewind_proxy.porting.answer_text import Chunks, read, written

SSE, JSON = "text/event-stream; charset=utf-8", "application/json"
ENDS = st.sampled_from(
    ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "data: ", "event: x", "é", "🌍", "\u2028", "\x85"]
)
TEXTS = st.lists(st.one_of(ENDS, st.text(max_size=5)), max_size=12).map("".join)
JSON_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    TEXTS.map(lambda value: value.encode("utf-8", "replace")),
    st.binary(max_size=60),
    JSON_VALUES.map(lambda value: json.dumps(value, ensure_ascii=True).encode()),
    JSON_VALUES.map(lambda value: json.dumps(value, indent=2).encode() + b"\n"),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, Chunks]:
    """A body cut into chunks anywhere, empty ones too."""
    body = draw(BODIES)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=6)))
    ends = [*cuts, len(body)]
    lengths = [end - start for start, end in zip([0, *cuts], ends, strict=True)]
    times = sorted(draw(st.lists(st.integers(0, 10**6), min_size=len(lengths), max_size=len(lengths))))
    return body, tuple(zip(lengths, times, strict=True))


@given(answer=answers(), kind=st.sampled_from([SSE, JSON, ""]))
def test_every_byte_and_chunk_comes_back(answer: tuple[bytes, Chunks], kind: str) -> None:
    """Whatever an answer holds, its text, written to a file and read again, is that answer."""
    members = written(*answer, kind)
    document = text.load(text.pretty(members), "file")
    assert isinstance(document, dict)
    assert read(document, "file") == answer
    assert text.load(text.line(members), "file") == document == members


def test_a_stream_is_one_event_a_line() -> None:
    """Each event has a line of its own with its chunk's time; a cut inside one is told by its offset."""
    body = b"event: a\ndata: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert written(body, ((18, 5), (13, 9), (5, 12)), SSE) == {
        "events": [[5, "event: a\ndata: 1\n\n"], [9, "data: 2\n\n"], [None, "data: 3\n\n", [4, 12]]]
    }


@pytest.mark.parametrize(
    ("body", "style"),
    [
        (b'{"b":1,"a":[2.5,"\xc3\xa9"]}', "compact"),
        (b'{"b": 1, "a": "\\u00e9"}', "spaced ascii"),
        (b'{\n  "b": 1,\n  "a": [\n    2\n  ]\n}\n', "indented"),
    ],
)
def test_json_is_there_as_json(body: bytes, style: str) -> None:
    """A body that one of the usual layouts gives back is told as its value, members in their order."""
    members = written(body, ((len(body), 1),), JSON)
    assert members["json"] == json.loads(body)
    assert members["style"] == style


@pytest.mark.parametrize(
    "body", [b'{"a":1.0e5}', b'{"a": 1,"b":2}', b'{"a":1,"a":1}', b'{"a":NaN}', b"no", b"1" * 5000]
)
def test_other_text_stands_line_by_line(body: bytes) -> None:
    """What no layout gives back byte for byte, or is no JSON, is told as it is."""
    members = written(body, ((len(body), 1),), JSON)
    assert members["lines"] == [body.decode()]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"events": [["soon", "data: 1\n\n"]]},
        {"events": [[1, "data: 1\n\n", [99, 2]]]},
        {"events": [[1, "data: 1\n\n", [4, 2], [2, 3]]]},
        {"base64": ["?"]},
        {"base64": ["é"]},
        {"lines": [1]},
        {"json": {}, "style": "upside down"},
        {"lines": ["a"], "chunks": [["a", 1]]},
    ],
)
def test_what_no_export_wrote_is_refused(members: dict[str, JsonValue]) -> None:
    """The error names the file."""
    with pytest.raises(PortingError, match=r"^some\.json: "):
        read(members, "some.json")


def test_unseen_characters_are_escaped() -> None:
    """What an editor hides or turns round is spelt out, so that a reviewer sees what is there."""
    hostile = "a\u202eb\u200bc\U000e0041d\x85e"
    said = text.pretty({"x": hostile})
    assert said.isascii()
    assert text.load(said, "file") == {"x": hostile}
