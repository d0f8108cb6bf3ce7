"""Many literals looked for at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.literals import Literals

WORDS = st.lists(st.text("aäbk \ud800", min_size=1, max_size=4), max_size=6)


@given(WORDS, st.text("aäbk \ud800🙂", max_size=60), st.integers(0, 60_000))
def test_they_are_those_that_stand_in_the_text(words: list[str], text: str, before: int) -> None:
    """Those and no others, wherever they stand in a text of any length, half characters among its letters."""
    whole = "-" * before + text
    looked_for = [word for word in words if "\ud800" not in word]
    assert Literals(looked_for).within(whole) == {word for word in looked_for if word in whole}
