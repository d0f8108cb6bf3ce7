"""How a call is told: comment and marker of its flow, as mitmweb and mitmproxy show and filter them
(`~comment`, `~marker`), and its name in the log.
"""

from __future__ import annotations

from mitmproxy import http

from rewind_proxy.canonical.model import Tier
from rewind_proxy.explain.step import OUTCOMES, outcome
from rewind_proxy.explain.words import safe_line
from rewind_proxy.faults import FAULT
from rewind_proxy.store.records import StepRecord

STEP = "rewind_step"
"""Where the metadata of a flow name its step."""
_MARKERS: dict[Tier, str] = {
    "exact": ":recycle:",
    "normalised": ":recycle:",
    "alias": ":recycle:",
    "recorded": ":red_circle:",
    "miss": ":no_entry:",
    "failed": ":warning:",
    "passed": ":arrow_right:",
}
_OURS = "rewind: "
_FAULT_MARKER = ":zap:"
_ID = 8


def label(flow: http.HTTPFlow, step: StepRecord) -> None:
    """Label the flow of a step that is over."""
    flow.comment = said(step)
    flow.marked = _FAULT_MARKER if _fault(step) else _MARKERS[step.tier]


def said(step: StepRecord) -> str:
    """How a step ended: `rewind: replayed · normalised · 3f9a…`.

    A call that is no model call has its class in place of the tier; what was done to it on purpose is named.
    """
    words = [outcome(step), step.tier if step.cls == "model" else step.cls]
    if step.cassette:
        words.append(f"{step.cassette[:_ID]}…")
    if fault := _fault(step):
        words.append(fault)
    return _comment(words)


def call(method: str, host: str, path: str) -> str:
    """A call in a line of the log; each of the three comes from the client."""
    return safe_line(f"{method} {host}{path}")


def _fault(step: StepRecord) -> str:
    note = step.note.partition(";")[0]
    return note if note.startswith(FAULT) else ""


def label_under_way(flow: http.HTTPFlow, tier: Tier, what: str = "") -> None:
    """Label a flow whose step is not over: its answer is written down, or still to come."""
    flow.comment = _comment([OUTCOMES.get(tier, "passed"), what or tier])
    flow.marked = _MARKERS[tier]


def labelled(flow: http.HTTPFlow) -> bool:
    """Whether a flow has a label: its answer was ours, say, and only its way to the client broke off."""
    return flow.comment.startswith(_OURS)


def _comment(said: list[str]) -> str:
    return _OURS + " · ".join(dict.fromkeys(said))
