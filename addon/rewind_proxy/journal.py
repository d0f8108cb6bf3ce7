"""The model steps of a proxy, kept in memory for whoever started it and asks: JUnit, the pytest plugin.

The log on disk is written in batches, and a full disk costs its lines; these are all there at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.report import Report
from rewind_proxy.store.records import RunRecord, StepRecord

_OF_A_RUN = (
    "session",
    "runs",
    "sockets",
    "unused",
    "tunnelled",
    "refused_hosts",
    "money_saved_usd",
    "child_exit",
)
"""Members of a report that are about a whole run."""


@dataclass(frozen=True, slots=True)
class JournalStep:
    """A model step that is over, and the session that it belongs to (redacted, as the log has it)."""

    session: str
    step: StepRecord

    def to_json(self) -> JsonObject:
        """Its members; `step` as in store/records.py."""
        return {"session": self.session, "step": self.step.model_dump()}

    @classmethod
    def from_json(cls, value: JsonObject) -> JournalStep:
        """What `to_json` gave."""
        return cls(str(value["session"]), StepRecord.model_validate(value["step"]))


class Journal:
    """Steps in the order in which they ended. Safe to use from several threads."""

    def __init__(self) -> None:
        self._steps: list[JournalStep] = []
        self._sessions: dict[str, str] = {}
        self._lock = Lock()

    def begin(self, run: RunRecord) -> None:
        """Know the session of the steps of a run."""
        self._sessions[run.id] = run.session

    def add(self, step: StepRecord) -> None:
        """Keep a model step; others are not kept."""
        if step.cls == "model":
            with self._lock:
                self._steps.append(JournalStep(self._sessions.get(step.run, ""), step))

    def take(self) -> list[JournalStep]:
        """What came since this was asked last."""
        with self._lock:
            taken, self._steps = self._steps, []
        return taken


def report_of(steps: list[JournalStep], mode: Mode) -> JsonObject:
    """The counts and misses of steps, as in the report of a run, and `failures`: `{"step", "reason"}`."""
    report = Report(mode)
    for each in steps:
        report.add(each.step)
    counts = report.to_json(cassettes=0, child_exit=None)
    failed = [each.step for each in steps if each.step.tier == "failed" and each.step.miss is None]
    return {
        **{name: value for name, value in counts.items() if name not in _OF_A_RUN},
        "failures": [{"step": f"{step.run}.{step.number}", "reason": step.reason} for step in failed],
    }
