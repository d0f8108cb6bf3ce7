"""The report of a step, hit or miss: how it was answered, by what, what was left aside for it (DESIGN §8).

A hit is explained from the log and its recording. Of the live request the log keeps what the rules took out;
a proxy that still has the request explains more: where the two differ in anything at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction
from rewind_proxy.canonical.scrub import LINKING_ID
from rewind_proxy.errors import StoreError
from rewind_proxy.explain.lines import Line, Span, deeper, facts, line
from rewind_proxy.explain.miss import difference_lines, miss_lines
from rewind_proxy.explain.words import duration, exact_time, number, plural, safe_line
from rewind_proxy.matching.comparison import compare
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.store import Store
from rewind_proxy.store.records import CassetteRecord, StepRecord

OUTCOMES = {
    "exact": "replayed",
    "normalised": "replayed",
    "alias": "replayed",
    "recorded": "recording",
    "miss": "refused",
    "passed": "passed",
}
"""What `x-rewind` says of a tier."""
_SHOWN = 20
_VALUE = 60
_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """One value that a rule took out of both requests; None where it is not known."""

    rule: str
    path: str
    recorded: str | None
    live: str | None

    def to_json(self) -> JsonObject:
        """`{"rule", "path", "recorded", "live"}`."""
        return {"rule": self.rule, "path": self.path, "recorded": self.recorded, "live": self.live}


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of how a step was answered. Everything in it is redacted."""

    step: StepRecord
    cassette: CassetteRecord | None = None
    """What answered or was made, if it is still in the store."""
    scrubbed: tuple[Scrubbed, ...] = ()
    redactions: tuple[Redaction, ...] = ()
    """Of the live request, if that is there: rule and place only."""
    differences: tuple[Difference, ...] = ()
    """Where the live request, if that is there, and the recorded one differ before anything is left aside."""

    @property
    def outcome(self) -> str:
        """As in `x-rewind`."""
        return outcome(self.step)

    @property
    def notes(self) -> list[str]:
        """What made a hit possible, one by one, and what else there is to say."""
        return [note for note in self.step.note.split("; ") if note]

    def to_json(self) -> JsonObject:
        """The report as `explain --json` prints it."""
        step = self.step
        notes: list[JsonValue] = [*self.notes]
        return {
            "step": f"{step.run}.{step.number}",
            "outcome": self.outcome,
            "tier": step.tier,
            "class": step.cls,
            "method": step.method,
            "url": f"https://{step.host}{step.path}",
            "model": step.model,
            "status": step.status,
            "exact": step.exact,
            "normalised": step.normalised,
            "cassette": step.cassette,
            "recorded_at": self.cassette.recorded_at if self.cassette else None,
            "recorded_run": self.cassette.run if self.cassette else None,
            "notes": notes,
            "reason": step.reason,
            "scrubbed": [each.to_json() for each in self.scrubbed],
            "redactions": [{"rule": each.rule, "path": each.path} for each in self.redactions],
            "differences": [each.to_json() for each in self.differences],
            "miss": step.miss,
        }

    def lines(self) -> Iterator[Line]:
        """The report for a person."""
        step = self.step
        tier: Span = (step.tier, step.tier) if step.cls == "model" else ("faint", step.cls)
        how = () if tier[1] == self.outcome else (" · ", tier)
        yield line(("strong", self.outcome), *how, f" · step {step.run}.{step.number}")
        yield from facts(self._facts())
        if step.miss is not None:
            yield from deeper(miss_lines(step.miss))
        elif step.reason:
            yield line(safe_line(step.reason)).deeper()
        if step.tier == "exact" and step.cls == "model":
            yield line(("faint", "It is the same request, in everything that counts there.")).deeper()
        yield from _section("left aside", [line(safe_line(note)) for note in self.notes])
        yield from _section("scrubbed", [_scrubbed_line(each) for each in self.scrubbed])
        yield from _section(
            "redacted", [line(("place", each.rule), f" {safe_line(each.path)}") for each in self.redactions]
        )
        if self.differences:
            shown = self.differences[:_DIFFERENCES]
            yield line(("strong", "as sent"), ("faint", f" {_places(len(self.differences))}"))
            for each in shown:
                yield from deeper(difference_lines(each.to_json()))

    def _facts(self) -> Iterator[tuple[str, str | Span]]:
        step, cassette = self.step, self.cassette
        yield "call", safe_line(f"{step.method} https://{step.host}{step.path}")
        yield "model", safe_line(step.model or "")
        if cassette is not None:
            yield "recording", ("place", cassette.id[:12])
            yield "recorded", f"{exact_time(cassette.recorded_at)}, run {safe_line(cassette.run)}"
        elif step.cassette:
            yield "recording", f"{step.cassette[:12]}, which is not in the store any more"
        yield "status", str(step.status or "")
        yield "took", _took(step)
        read, written = step.input_tokens, step.output_tokens
        yield "tokens", f"{number(read)} in, {number(written)} out" if read or written else ""
        yield "fingerprint", step.normalised[:12]


def outcome(step: StepRecord) -> str:
    """How a step ended, as `x-rewind` says it."""
    return OUTCOMES.get(step.tier, "refused" if step.miss is not None else "passed")


def explain_step(
    step: StepRecord, store: Store, reader: RequestReader, live: Reading | None = None
) -> Explanation:
    """The report of a step; `live` is its request, where that is still there. Raises `CorruptRecordError`."""
    cassette = _cassette(step, store)
    redactions = live.redactions if live else ()
    if step.cls != "model" or cassette is None:
        return Explanation(step, cassette, _own(live), redactions)
    stored = reader.read_stored(cassette, store.request_body(cassette))
    if live is None or live.fingerprint != stored.fingerprint:
        return Explanation(step, cassette, _parallel(stored, step.slots), redactions)
    differences: tuple[Difference, ...] = ()
    if step.tier != "recorded":
        differences = compare(stored, live, reader, "exact").differences
    values = [each.value for each in live.normalised.taken] if live.normalised else []
    return Explanation(step, cassette, _parallel(stored, values), redactions, differences)


def _cassette(step: StepRecord, store: Store) -> CassetteRecord | None:
    if step.cassette is None:
        return None
    try:
        return store.cassette(step.cassette)
    except StoreError:
        return None  # forgotten or pruned since


def _own(live: Reading | None) -> tuple[Scrubbed, ...]:
    """What was taken out of a request that nothing answered."""
    if live is None or live.normalised is None:
        return ()
    return tuple(
        Scrubbed(slot.rule, str(slot.at), None, slot.value)
        for slot in live.normalised.slots
        if slot.rule != LINKING_ID
    )


def _parallel(stored: Reading, values: Sequence[str]) -> tuple[Scrubbed, ...]:
    """What was taken out of a recorded request, beside the values of the live one, in the same order."""
    if stored.normalised is None:
        return ()
    places: dict[tuple[str, str, str], str] = {}
    for slot in stored.normalised.slots:
        places.setdefault((slot.rule, slot.placeholder, slot.value), str(slot.at))
    pairs = zip_longest(stored.normalised.taken, islice(values, len(stored.normalised.taken)))
    return tuple(
        Scrubbed(taken.rule, places.get(tuple(taken), ""), taken.value, live or None)
        for taken, live in pairs
        if taken.rule != LINKING_ID
    )


def _scrubbed_line(each: Scrubbed) -> Line:
    recorded, live = each.recorded, each.live
    spans: list[Span | str] = [("place", each.rule), f" {safe_line(each.path)}  "]
    if recorded is None or live is None or recorded == live:
        return line(*spans, _value(live if recorded is None else recorded))
    return line(*spans, ("before", _value(recorded)), " → ", ("after", _value(live)))


def _value(value: str | None) -> str:
    text = safe_line(value or "")
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def _section(title: str, lines: Sequence[Line]) -> Iterator[Line]:
    if not lines:
        return
    yield line(("strong", title))
    yield from deeper(lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield line(("faint", f"… and {number(len(lines) - _SHOWN)} more")).deeper()


def _places(count: int) -> str:
    first = f", the first {_DIFFERENCES}" if count > _DIFFERENCES else ""
    return f"differs in {plural(count, 'place')}{first}:"


def _took(step: StepRecord) -> str:
    if not step.latency_ms and not step.saved_ms:
        return ""
    saved = f" instead of {duration(step.saved_ms)}" if step.saved_ms else ""
    return duration(step.latency_ms) + saved
