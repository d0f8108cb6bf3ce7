"""How faults on purpose are written, and which one a turn has."""

from __future__ import annotations

import pytest

from rewind_proxy.faults import Fault, FaultSyntaxError, parse


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", {}),
        (" ; ", {}),
        ("turn=3:429", {3: Fault("turn=3:429", status=429, retry_after=1)}),
        ("turn=3:429=20", {3: Fault("turn=3:429=20", status=429, retry_after=20)}),
        ("turn=1:529", {1: Fault("turn=1:529", status=529)}),
        ("turn=1:503=0", {1: Fault("turn=1:503=0", status=503, retry_after=0)}),
        ("turn=2:cut-after=5", {2: Fault("turn=2:cut-after=5", cut_after=5)}),
        ("turn=2:cut-after=0", {2: Fault("turn=2:cut-after=0", cut_after=0)}),
        ("turn=1:stall=10", {1: Fault("turn=1:stall=10", stall=10)}),
        (" turn = 1 : stall = 0.25 ; ", {1: Fault("turn=1:stall=0.25", stall=0.25)}),
        (
            "turn=1:401;turn=12:500",
            {1: Fault("turn=1:401", status=401), 12: Fault("turn=12:500", status=500)},
        ),
        (
            "turn=1:stall=2; turn=1:cut-after=3",
            {1: Fault("turn=1:stall=2; turn=1:cut-after=3", stall=2, cut_after=3)},
        ),
        (
            "turn=1:500; turn=1:stall=2",
            {1: Fault("turn=1:500; turn=1:stall=2", status=500, stall=2)},
        ),
    ],
)
def test_written_well(text: str, faults: dict[int, Fault]) -> None:
    """Faults stand apart by semicolons, blanks do not count, and a stall goes with either of the others."""
    assert parse(text) == faults


@pytest.mark.parametrize(
    "text",
    [
        "429",
        "turn=0:429",
        "turn=-1:429",
        "turn=x:429",
        "turn=1:200",
        "turn=1:600",
        "turn=1:4290",
        "turn=1:cut-after",
        "turn=1:cut-after=-1",
        "turn=1:stall=soon",
        "turn=1:stall=1e9",
        "turn=1:429, turn=2:429",
        "turn=1:429 turn=2:429",
        "turn=1:melt",
        "turn=1:429; turn=1:500",
        "turn=1:stall=1; turn=1:stall=2",
        "turn=1:429; turn=1:cut-after=2",
        "turn=1:stall=" + "9" * 5000,
        "turn=\u0661:429",
    ],
)
def test_written_badly(text: str) -> None:
    """What is no fault, two of a kind at one turn, and an error with a cut are refused."""
    with pytest.raises(FaultSyntaxError):
        parse(text)
