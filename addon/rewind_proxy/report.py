"""What a proxy did: the counts of `rewind run --report` and of the summary (DESIGN §12)."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewind_proxy.canonical.model import JsonObject, JsonValue, Mode
from rewind_proxy.store.records import StepRecord

REFUSED_EXIT = 4
"""A model call was refused, or in replay none arrived."""
FAILED_EXIT = 5
"""Our own recording failed."""
SERVED = "its turns are steps of their own"
"""What is told of a socket that was not passed on, but served."""
_SWITCHED = 101
"""The status of an upgrade that the provider agreed to."""


@dataclass(slots=True)
class Report:
    """Counts of one proxy's life. `steps` counts model calls only, `side` everything else."""

    mode: Mode
    session: str = ""
    steps: int = 0
    exact: int = 0
    normalised: int = 0
    alias: int = 0
    recorded: int = 0
    refused: int = 0
    passed: int = 0
    side: int = 0
    sockets: int = 0
    """WebSockets that were passed on: what is said on them is not counted."""
    failed: int = 0
    tokens_saved: int = 0
    saved_ms: int = 0
    misses: list[JsonObject] = field(default_factory=list)
    tunnelled: dict[str, None] = field(default_factory=dict)
    refused_hosts: dict[str, None] = field(default_factory=dict)
    """Unknown hosts that `rewind_unknown = refuse` kept out: reported, not counted as refusals."""
    runs: dict[str, None] = field(default_factory=dict)
    """Ids of the runs that the steps belong to: one for each session."""
    touched: set[str] = field(default_factory=set)
    """Ids of the model cassettes that answered or were made."""

    def add(self, step: StepRecord) -> None:
        """Count one step."""
        self.runs[step.run] = None
        if step.cls != "model":
            self.side += 1
            switched = step.cls == "socket" and step.tier == "passed" and step.status == _SWITCHED
            self.sockets += switched and step.reason != SERVED
            return
        self.steps += 1
        if step.cassette:
            self.touched.add(step.cassette)
        match step.tier:
            case "exact" | "normalised" | "alias":
                setattr(self, step.tier, getattr(self, step.tier) + 1)
                self.tokens_saved += step.input_tokens + step.output_tokens
                self.saved_ms += max(0, step.saved_ms - step.latency_ms)
            case "recorded":
                self.recorded += 1
            case "passed":
                self.passed += 1
            case "miss":
                self._refused(step)
            case "failed":
                self.failed += 1
                if step.miss is not None:
                    self._refused(step)

    def _refused(self, step: StepRecord) -> None:
        self.refused += 1
        miss: JsonObject = dict(step.miss or {})
        self.misses.append(
            {
                "step": f"{step.run}.{step.number}",
                "method": step.method,
                "url": f"https://{step.host}{step.path}",
                "reason": miss.get("reason"),
                "nearest": miss.get("nearest"),
                "difference": miss.get("difference"),
                "would_match_with": miss.get("would_match_with"),
                "pending": miss.get("pending"),
            }
        )

    def to_json(self, *, cassettes: int, child_exit: int | None) -> JsonObject:
        """The report of DESIGN §12; `cassettes` is how many model recordings the store holds."""
        tunnelled: list[JsonValue] = list(self.tunnelled)
        refused_hosts: list[JsonValue] = list(self.refused_hosts)
        runs: list[JsonValue] = list(self.runs)
        misses: list[JsonValue] = list(self.misses)
        return {
            "mode": self.mode,
            "session": self.session,
            "runs": runs,
            "steps": self.steps,
            "exact": self.exact,
            "normalised": self.normalised,
            "alias": self.alias,
            "recorded": self.recorded,
            "refused": self.refused,
            "passed": self.passed,
            "side": self.side,
            "sockets": self.sockets,
            "failed": self.failed,
            "unused": max(0, cassettes - len(self.touched)),
            "tunnelled": tunnelled,
            "refused_hosts": refused_hosts,
            "tokens_saved": self.tokens_saved,
            "saved_ms": self.saved_ms,
            "money_saved_usd": None,  # `rewind run` fills it in, where there are prices
            "child_exit": child_exit,
            "misses": misses,
        }
