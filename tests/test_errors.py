"""What a log is told of an exception: where it was raised, and no word that may quote a credential."""

from __future__ import annotations

import pytest

from rewind_proxy.errors import RewindError, StoreError, traceback_of, words_of

SECRET = "zebra-17"


def choke() -> None:
    """Raise what quotes a value, in the course of another error that does."""
    try:
        int(SECRET)
    except ValueError:
        raise KeyError(SECRET) from None


def chain() -> None:
    """Raise one of ours because of one that quotes a value."""
    try:
        int(SECRET)
    except ValueError as error:
        raise StoreError("the store cannot be read") from error


def group() -> None:
    """Raise several at once."""
    raise ExceptionGroup(SECRET, [ValueError(SECRET), FileNotFoundError(2, "No such file", "some.json")])


def test_words_of_ours_and_of_the_system_are_told() -> None:
    """Of any other exception it is the type."""
    assert words_of(RewindError("a sentence")) == "a sentence"
    assert words_of(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
    assert words_of(ValueError(SECRET)) == "ValueError"


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (choke, ["in choke", "builtins.KeyError\n"]),
        (chain, ["builtins.ValueError\n", "rewind_proxy.errors.StoreError: the store cannot be read\n"]),
        (
            group,
            ["builtins.ExceptionGroup\n", "builtins.ValueError\n", "No such file: 'some.json'\n"],
        ),
    ],
)
def test_a_traceback_names_places_and_types(fail: object, said: list[str]) -> None:
    """In their order, with what led to an exception and what stands in a group; it quotes nothing."""
    assert callable(fail)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of each kind
        fail()
    told = traceback_of(caught.value)
    places = [told.find(each) for each in ("in test_a_traceback", *said)]
    assert -1 not in places
    assert sorted(places[1:]) == places[1:]
    assert SECRET not in told
