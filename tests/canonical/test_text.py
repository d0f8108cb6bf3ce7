"""Text normalisation (DESIGN §5, step 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.text import composed, normalise_text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("cafe\u0301", "café"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a  b\t\tc", "a b c"),
        ("a \nb\t\n", "a\nb\n"),
        ("    indented  here", "    indented here"),
        ("\tif x:\n\t\tpass", "\tif x:\n\t\tpass"),
        ("  \n\n   x", "\n\n   x"),
        ("text  x\n```py\na  =  1  \n```\ny  z", "text x\n```py\na  =  1  \n```\ny z"),
        ("x\n```\nopen  fence  ", "x\n```\nopen  fence  "),
        ("```\n```", "```\n```"),
        ("~~~\na  b\n~~~\ny  z", "~~~\na  b\n~~~\ny z"),
        ("~~~\n```\na  b\n~~~\ny  z", "~~~\n```\na  b\n~~~\ny z"),
        ("```\n~~~\na  b\n```\ny  z", "```\n~~~\na  b\n```\ny z"),
        ("\n```", "\n```"),
        ("> ```\n> a  b\n> ```\n> y  z", "> ```\n> a  b\n> ```\n> y z"),
        (">> ~~~ py\n>> a  b\n>> ~~~\ny  z", ">> ~~~ py\n>> a  b\n>> ~~~\ny z"),
        ("> ```\n> a  b\ny  z\n```\na  b\n```", "> ```\n> a  b\ny z\n```\na  b\n```"),
        ("- ```\n  a  b\n  ```\n- y  z", "- ```\n  a  b\n  ```\n- y z"),
        ("1. > ```\n   > a  b\n   > ```\ny  z", "1. > ```\n   > a  b\n   > ```\ny z"),
        ("12) - ```\na  b\n```\ny  z", "12) - ```\na  b\n```\ny z"),
        ("-```\ny  z\n```\na  b", "-```\ny z\n```\na  b"),
        ("````\n```\na  b\n```\na  b\n````\ny  z", "````\n```\na  b\n```\na  b\n````\ny z"),
        ("```\n- ```\na  b\n```\ny  z", "```\n- ```\na  b\n```\ny z"),
        ("```\n```py\na  b\n```\ny  z", "```\n```py\na  b\n```\ny z"),
        ("```x  y``` z\ny  z", "```x y``` z\ny z"),
        ("~~~ x ~~~\na  b", "~~~ x ~~~\na  b"),
        ("long line " * 3, "long line long line long line"),
        ("", ""),
    ],
)
def test_table(text: str, normal: str) -> None:
    """NFC, LF, no trailing blanks, one space inside a line; indentation and fences as they are."""
    assert normalise_text(text) == normal


def test_composed() -> None:
    """NFC and nothing else: blanks, line ends and fences are as they were."""
    assert composed("cafe\u0301  \r\nx \t") == "café  \r\nx \t"


@given(st.text(st.sampled_from("a \t\n\r`~e\u0301>-1.)")))
def test_idempotent(text: str) -> None:
    """Normalising twice is normalising once."""
    once = normalise_text(text)
    assert normalise_text(once) == once
