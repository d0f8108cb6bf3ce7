"""Text under the interoperable hash (DESIGN §13)."""

from __future__ import annotations

import base64
import hashlib
import time
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.core_v3 import normalize_text
from rewind_proxy.canonical.core_v3_text import WHITE_SPACE

# ECMA-262 §12.2 and §12.3: WhiteSpace and LineTerminator.
JAVASCRIPT_WHITE_SPACE = [0x9, 0xA, 0xB, 0xC, 0xD, 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B)]
JAVASCRIPT_WHITE_SPACE += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF]
NO_WHITE_SPACE = [0x1C, 0x1D, 0x1E, 0x1F, 0x85, 0x180E, 0x200B, 0x2060]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class TestWhiteSpace:
    def test_the_set(self) -> None:
        """White space is JavaScript's `\\s`, no more and no less."""
        assert sorted(WHITE_SPACE) == [chr(point) for point in JAVASCRIPT_WHITE_SPACE]

    @pytest.mark.parametrize("point", [p for p in JAVASCRIPT_WHITE_SPACE if p not in (0xA, 0xD)])
    def test_white(self, point: int) -> None:
        """Each of its characters is white inside a line, at its end, on a blank line and before a fence."""
        white = chr(point)
        assert normalize_text(f"a{white}{white}b{white}") == "a b"
        assert normalize_text(f"{white}\na\n{white}{white}") == "a"
        fenced = normalize("NFC", f"a\n{white}```\nx  y\n```")
        assert normalize_text(fenced) == fenced

    @pytest.mark.parametrize("point", NO_WHITE_SPACE)
    def test_not_white(self, point: int) -> None:
        """What Python or Unicode calls white, or looks so, stays."""
        text = f"a{chr(point)}{chr(point)}b{chr(point)}"
        assert normalize_text(text) == text


class TestText:
    @pytest.mark.parametrize(
        ("text", "normal"),
        [
            ("", ""),
            ("cafe\u0301 \u212b", "café \u00c5"),
            ("a\r\nb\rc\n\rd", "a\nb\nc\n\nd"),
            ("a \t b\nc\td", "a b\nc d"),
            ("a  \nb\t\n c", "a\nb\n c"),
            ("    indented", " indented"),
            ("\n \n\t\na\n\n\nb\n\n  \n", "a\n\n\nb"),
            (" \n\t\n", ""),
            ("a\u2028\u2028b", "a b"),
            ("\u2000a", " a"),
        ],
    )
    def test_table(self, text: str, normal: str) -> None:
        """NFC, LF, one space for a run, no trailing white space, no blank lines at either end."""
        assert normalize_text(text) == normal

    @pytest.mark.parametrize(
        ("text", "normal"),
        [
            ("a  b\n```py  x\na  =  1  \n\n```\nc  d ", "a b\n```py  x\na  =  1  \n\n```\nc d"),
            ("```\nx  y \n", "```\nx  y "),
            ("a\n```\nx  y \n \n\n", "a\n```\nx  y "),
            ("```\na  b\n```\nc  d\n```\ne  f", "```\na  b\n```\nc d\n```\ne  f"),
            ("  ```\na  b\n  ```\nc  d", "  ```\na  b\n  ```\nc d"),
            ("````\na  b\n````\nc  d", "````\na  b\n````\nc d"),
            ("in  ```a  b``` line\nc  d", "in ```a b``` line\nc d"),
            ("``\na  b\n``", "``\na b\n``"),
            ("~~~\na  b\n~~~", "~~~\na b\n~~~"),
            ("```\r\na  b\r\ne\u0301\r\n```", "```\na  b\né\n```"),
            ("\n\n```\n\na\n\n```\n\n", "```\n\na\n\n```"),
        ],
    )
    def test_fences(self, text: str, normal: str) -> None:
        """The lines of a fence stay but for NFC and line ends; an unclosed one runs to the end."""
        assert normalize_text(text) == normal

    @given(st.lists(st.sampled_from([*"a \t\n\r`e", "\u0301", "\u2028", "\ufeff", "```"])).map("".join))
    def test_idempotent(self, text: str) -> None:
        """Normalising twice is normalising once."""
        once = normalize_text(text)
        assert normalize_text(once) == once

    @given(st.text())
    def test_never_raises(self, text: str) -> None:
        """Any text has a normal form, with no line end but LF and no blank line at either end."""
        lines = normalize_text(text).split("\n")
        assert "\r" not in "".join(lines)
        assert lines == [""] or (lines[0].strip(WHITE_SPACE) and lines[-1].strip(WHITE_SPACE))


class TestBase64:
    @given(st.binary(min_size=768, max_size=900))
    def test_long(self, data: bytes) -> None:
        """Text of 1,024 units and more of base64 is the digest of its bytes, however the lines are cut."""
        assert normalize_text(base64.b64encode(data).decode()) == digest(data)
        assert normalize_text(base64.encodebytes(data).decode()) == digest(data)
        assert normalize_text(base64.b64encode(data).decode().rstrip("=").ljust(1024)) == digest(data)

    def test_length(self) -> None:
        """White space and padding count among the 1,024 units; one unit less is text."""
        for text in ("A" * 1024, "AAAA" + " " * 1020, "\ufeff" * 1020 + "AAAA", "AA" + "\n" * 1020 + "=="):
            assert normalize_text(text).startswith("sha256:")
            assert not normalize_text(text[1:]).startswith("sha256:")

    @pytest.mark.parametrize("other", [*".,:;'\"!?-_()%", "é", "\u0085", "=A", "==="])
    def test_other_letters(self, other: str) -> None:
        """One character that is no base64, the URL-safe two among them, makes it text."""
        text = "A" * 1024 + other
        assert normalize_text(text) == text

    def test_alphabet(self) -> None:
        """All 64 letters of RFC 4648 §4 belong to it."""
        assert normalize_text(LETTERS * 16) == digest(base64.b64decode(LETTERS * 16))

    @pytest.mark.parametrize(
        ("tail", "data"), [("Y", b""), ("YQ", b"a"), ("YR", b"a"), ("YWI=", b"ab"), ("YQ = = ", b"a")]
    )
    def test_decoded_as_node_does(self, tail: str, data: bytes) -> None:
        """Padding is optional; a lone last letter and the last bits are dropped."""
        assert normalize_text("A" * 1024 + tail) == digest(bytes(768) + data)

    def test_weak_spot(self) -> None:
        """Long prose without punctuation is taken for base64, as DESIGN §13 warns."""
        assert normalize_text("word " * 205).startswith("sha256:")

    @pytest.mark.parametrize(
        ("url", "data"),
        [
            ("data:image/png;base64,aGVsbG8=", b"hello"),
            ("data:image/png;base64,aGVs\nbG8", b"hello"),
            ("data:;base64,aGVsbG8=", b"hello"),
            ("data:text/plain; charset=utf-8;base64,aGVsbG8=", b"hello"),
            ("data:image/png;base64,", b""),
            ("data:image/png;base64,-_-_", b"\xfb\xff\xbf"),
            ("data:image/png;base64,+/+/", b"\xfb\xff\xbf"),
        ],
    )
    def test_data_urls(self, url: str, data: bytes) -> None:
        """A whole-string base64 data URL of any length is the digest of its bytes; either alphabet counts."""
        assert normalize_text(url) == digest(data)

    @pytest.mark.parametrize(
        "text",
        [
            "see data:image/png;base64,aGVsbG8=",
            "data:image/png;base64,aGVsbG8= there",
            "data:image/png;base64,aGVs.G8=",
            "data:image/png;base64,aG=sbG8=",
            "data:text/plain,aGVsbG8=",
            "data:a,b;base64,aGVsbG8=",
            "aGVsbG8=",
        ],
    )
    def test_no_data_url(self, text: str) -> None:
        """What only holds one, or is no base64 after all, is text; nothing of it is lost."""
        assert normalize_text(text) == text


@pytest.mark.parametrize(
    "unit", [" ", "a ", "```\n", "\n", "\ufeff", "A=", "data:;base64,", "data:", ";base64", "="]
)
def test_linear(unit: str) -> None:
    """A megabyte of hostile text takes well under two seconds."""
    text = "data:" + unit * (2**20 // len(unit)) + "."
    started = time.thread_time()
    normalize_text(text)
    normalize_text(text[5:])
    assert time.thread_time() - started < 2
