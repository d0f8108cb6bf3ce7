"""What a fault on purpose (`rewind_fault`) makes of a decision. Pure."""

from __future__ import annotations

from dataclasses import replace

from rewind_proxy.decisions import (
    NOTE,
    PASSED,
    Decision,
    Fail,
    Forward,
    Header,
    Replay,
    Step,
    header_safe,
    step_headers,
    unrecorded,
)
from rewind_proxy.faults import Fault
from rewind_proxy.matching.reading import Reading
from rewind_proxy.wire.failures import failure


def fail(reading: Reading, step: Step, fault: Fault, status: int) -> Fail:
    """The provider's own error in place of an answer: no recording is used up and nothing is forwarded."""
    made = failure(reading.error_wire, reading.record.form, status, fault.retry_after)
    headers = (*made.headers, *PASSED, *step_headers(step, reading), (NOTE, fault.note))
    return Fail(reading, step, fault, status, made.body, headers)


def faulted(decision: Decision, fault: Fault) -> Decision:
    """A decision that answers, with a stall or a cut. A live answer with one is not recorded."""
    match decision:
        case Replay():
            note = header_safe("; ".join(filter(None, (fault.note, decision.note))))
            return replace(decision, note=note, headers=_noted(decision.headers, note), fault=fault)
        case Forward():
            kept = unrecorded(decision)
            return replace(kept, headers=_noted(kept.headers, fault.note), fault=fault)
    return decision


def _noted(headers: tuple[Header, ...], note: str) -> tuple[Header, ...]:
    return (*(each for each in headers if each[0] != NOTE), (NOTE, note))
