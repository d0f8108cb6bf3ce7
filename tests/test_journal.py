"""The journal: the model steps of a proxy, each handed out once."""

from __future__ import annotations

import json

from rewind_proxy.journal import Journal, JournalStep, report_of
from rewind_proxy.store import RunRecord, StepRecord

MISS: dict[str, object] = {"reason": "no", "nearest": None, "difference": None, "would_match_with": []}


def step(number: int, tier: str = "exact", **known: object) -> StepRecord:
    """A step of the run `r`."""
    facts: dict[str, object] = {"run": "r", "number": number, "started_at": 1.0, "tier": tier}
    target = {"method": "POST", "host": "h", "path": "/p"}
    return StepRecord.model_validate(facts | target | known)


def test_what_was_taken_is_not_taken_again() -> None:
    """Each step comes with the session of its run; what is no model call is left out."""
    journal = Journal()
    journal.begin(RunRecord(id="r", session="mine", mode="auto", started_at=1.0))
    journal.add(step(1))
    journal.add(step(2, cls="side"))
    journal.add(step(3, run="another"))
    assert journal.take() == [JournalStep("mine", step(1)), JournalStep("", step(3, run="another"))]
    assert journal.take() == []


def test_a_step_is_the_same_after_it_was_json() -> None:
    """Half a character of a client's text is in it as it was."""
    kept = JournalStep("s", step(1, "miss", preview="\ud83d", miss=MISS))
    assert JournalStep.from_json(json.loads(json.dumps(kept.to_json()))) == kept


def test_a_report_counts_some_steps() -> None:
    """As that of a run counts all; refused calls are misses, lost recordings failures."""
    steps = [
        step(1),
        step(2, "miss", miss=MISS),
        step(3, "failed", reason="full"),
        step(4, "failed", miss=MISS),
    ]
    report = report_of([JournalStep("", each) for each in steps], "replay")
    counts = [report[name] for name in ("steps", "exact", "refused", "failed")]
    assert counts == [4, 1, 2, 2]
    assert report["failures"] == [{"step": "r.3", "reason": "full"}]
    misses = report["misses"]
    assert isinstance(misses, list)
    assert [miss["step"] for miss in misses if isinstance(miss, dict)] == ["r.2", "r.4"]
    assert "unused" not in report
