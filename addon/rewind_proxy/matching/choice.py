"""Which of several recordings answers (DESIGN §8). Pure: the session's memory comes in and goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rewind_proxy.store.records import CassetteRecord, RequestRecord

Repeat = Literal["sequence", "first", "last"]
Exhausted = Literal["last", "miss"]
NoChoice = Literal["length", "exhausted"]


@dataclass(slots=True)
class Memory:
    """What a session has been answered with so far."""

    used: set[int] = field(default_factory=set)
    """`seq` of each recording handed out."""
    last_run: str = ""
    """The recorded run that answered the previous step."""

    def remember(self, cassette: CassetteRecord) -> None:
        """A recording was handed out."""
        self.used.add(cassette.seq)
        self.last_run = cassette.run


def choose(
    candidates: Sequence[CassetteRecord],
    asked: RequestRecord,
    memory: Memory,
    repeat: Repeat,
    exhausted: Exhausted,
) -> CassetteRecord | NoChoice:
    """The recording that answers, or why none of them can.

    `candidates` share a fingerprint with the request. Order of preference: the form and wire asked for; the
    model and other ignored parameters; the run that answered the previous step, else the newest run; within
    it in recorded order, each once, then the last again.
    """
    # By time: one that was imported may be older than what its store has, and chooses the same everywhere.
    in_order = sorted(candidates, key=lambda each: (each.recorded_at, each.seq))
    long_enough = [each for each in in_order if _long_enough(each, asked)]
    if not long_enough:
        return "length"
    best = max(_likeness(each.request, asked) for each in long_enough)
    alike = [each for each in long_enough if _likeness(each.request, asked) == best]
    runs = {each.run for each in alike}
    run = memory.last_run if memory.last_run in runs else alike[-1].run
    of_run = [each for each in alike if each.run == run]
    if repeat == "first":
        return of_run[0]
    if repeat == "last":
        return of_run[-1]
    for each in of_run:
        if each.seq not in memory.used:
            return each
    return of_run[-1] if exhausted == "last" else "exhausted"


def same_form(recorded: RequestRecord, asked: RequestRecord) -> bool:
    """Whether the recorded bytes are in the form that is asked for."""
    return recorded.wire == asked.wire and recorded.form == asked.form


def _long_enough(recorded: CassetteRecord, asked: RequestRecord) -> bool:
    """An answer cut at its limit answers only a request whose limit is no larger (DESIGN §7)."""
    if recorded.answer.ending != "length":
        return True
    limit, live = recorded.request.params.get("max_tokens"), asked.params.get("max_tokens")
    if not isinstance(limit, int | float):
        return True  # the model's own limit: no request allows more
    return isinstance(live, int | float) and live <= limit


def _likeness(recorded: RequestRecord, asked: RequestRecord) -> tuple[bool, bool, int]:
    names = recorded.params.keys() | asked.params.keys()
    same = sum(recorded.params.get(name) == asked.params.get(name) for name in names)
    same_model = recorded.params.get("model") == asked.params.get("model")
    return same_form(recorded, asked), same_model, same - len(names)
