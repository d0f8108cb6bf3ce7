"""Which of several recordings answers (DESIGN §8)."""

from __future__ import annotations

from typing import Any

import pytest

from rewind_proxy.canonical.model import Form, Wire
from rewind_proxy.matching.choice import Memory, choose, same_form
from rewind_proxy.store.records import AnswerRecord, CassetteRecord, RequestRecord


def request(wire: Wire = "chat_completions", form: Form = "whole", **params: Any) -> RequestRecord:
    """A request with some parameters."""
    return RequestRecord(method="POST", host="h", path="/p", wire=wire, form=form, params=params)


def cassette(
    seq: int, run: str = "r1", asked: RequestRecord | None = None, ending: str = "complete"
) -> CassetteRecord:
    """A recording."""
    return CassetteRecord(
        id=f"{seq:064x}",
        seq=seq,
        run=run,
        recorded_at=0.0,
        hash_version=1,
        exact="",
        request=asked or request(),
        answer=AnswerRecord(ending=ending),
        answer_sha256="",
        answer_length=0,
        checksum="",
    )


def answers(
    candidates: list[CassetteRecord], times: int, memory: Memory | None = None, **how: Any
) -> list[int | str]:
    """The `seq` of what a session gets when it asks several times."""
    memory = memory or Memory()
    got: list[int | str] = []
    for _ in range(times):
        found = choose(
            candidates, request(), memory, how.get("repeat", "sequence"), how.get("exhausted", "last")
        )
        if isinstance(found, CassetteRecord):
            memory.remember(found)
            got.append(found.seq)
        else:
            got.append(found)
    return got


def test_what_was_imported_later_is_not_newer() -> None:
    """Order and newest run go by the times of the recordings: the same in every store that has them."""
    at = {1: 30.0, 2: 10.0, 3: 20.0}
    old, new = ([cassette(seq, run) for seq in seqs] for run, seqs in (("old", (2, 3)), ("new", (1,))))
    timed = [each.model_copy(update={"recorded_at": at[each.seq]}) for each in (*new, *old)]
    assert answers(timed, 1) == [1]
    assert answers(timed, 3, Memory(last_run="old")) == [2, 3, 3]


def test_each_once_then_the_last() -> None:
    """Three answers to one request come in recorded order, each once, then the last again."""
    three = [cassette(1), cassette(2), cassette(3)]
    assert answers(three, 5) == [1, 2, 3, 3, 3]
    assert answers(three, 4, exhausted="miss") == [1, 2, 3, "exhausted"]
    assert answers(three, 2, repeat="first") == [1, 1]
    assert answers(three, 2, repeat="last") == [3, 3]


def test_the_newest_run_answers_first() -> None:
    """Without a step before, the newest run answers; with one, the run that answered it."""
    both = [cassette(1, "old"), cassette(2, "old"), cassette(3, "new")]
    assert answers(both, 2) == [3, 3]
    assert answers(both, 2, Memory(last_run="old")) == [1, 2]
    assert answers(both, 1, Memory(last_run="gone")) == [3]


def test_model_and_parameters_come_before_the_run() -> None:
    """Of several the one with the same model is taken, then the one with the most equal parameters."""
    m1, m2 = request(model="m1", temperature=0), request(model="m2", temperature=1)
    recorded = [cassette(1, "r1", m1), cassette(2, "r2", m2)]
    for asked, seq in ((m1, 1), (m2, 2), (request(model="m3", temperature=0), 1)):
        found = choose(recorded, asked, Memory(), "sequence", "last")
        assert isinstance(found, CassetteRecord)
        assert found.seq == seq


def test_the_form_asked_for_comes_first() -> None:
    """A recording in the wire and form asked for is taken before one with the same model in another."""
    other, right = request(form="sse", model="m1"), request(model="m2")
    for recorded in ([cassette(1, asked=other), cassette(2, asked=right)], [cassette(2, asked=right)]):
        found = choose(recorded, request(model="m1"), Memory(), "sequence", "last")
        assert isinstance(found, CassetteRecord)
        assert found.seq == 2
    alone = choose([cassette(1, asked=other)], request(model="m1"), Memory(), "sequence", "last")
    assert isinstance(alone, CassetteRecord)
    assert not same_form(alone.request, request(model="m1"))


@pytest.mark.parametrize(
    ("recorded", "live", "hit"),
    [
        (64, 64, True),
        (64, 32, True),
        (64, 128, False),
        (64, None, False),
        (None, 128, True),
        (None, None, True),
    ],
)
def test_an_answer_cut_at_its_limit(recorded: int | None, live: int | None, hit: bool) -> None:
    """An answer that ended for length answers only a request whose limit is no larger."""
    kept = request(max_tokens=recorded) if recorded else request()
    asked = request(max_tokens=live) if live else request()
    found = choose([cassette(1, asked=kept, ending="length")], asked, Memory(), "sequence", "last")
    assert isinstance(found, CassetteRecord) == hit
    assert hit or found == "length"
