"""Where two runs part: the first model call of which the requests differ, and where they do (DESIGN §12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import Literal, TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import StoreError
from rewind_proxy.explain.lines import Line, Span, deeper, facts, line
from rewind_proxy.explain.miss import difference_lines, prefix_lines
from rewind_proxy.explain.words import number, plural, safe_line
from rewind_proxy.matching.comparison import Comparison, compare
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.miss import shared_messages
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.store import Log, Store
from rewind_proxy.store.records import RunRecord, StepRecord

_SHOWN = 5

Weakest: TypeAlias = Literal["normalised", "exact"]


@dataclass(frozen=True, slots=True)
class Parting:
    """Two runs, and the first model call in which they part."""

    a: RunRecord
    b: RunRecord
    together: int
    """How many model calls at their start are the same."""
    calls: tuple[int, int]
    """How many model calls each has."""
    at: tuple[StepRecord | None, StepRecord | None] = (None, None)
    """The calls that differ; None of a run that had ended."""
    comparison: Comparison | None = None
    """Of the two requests, where both are known."""
    shared: tuple[int, int] = (0, 0)
    """How many messages at their start are the same, of how many of the second."""

    @property
    def same(self) -> bool:
        """Whether the runs asked for the same to their ends."""
        return self.at == (None, None)

    def to_json(self) -> JsonObject:
        """`{"a", "b", "same", "together", "calls", "steps", "shared", "messages", "differences",
        "would_match_with"}`: `together` counts model calls, `shared` the messages of those that part.
        """
        found = self.comparison
        steps: list[JsonValue] = [step.model_dump(mode="json") if step else None for step in self.at]
        return {
            "a": self.a.id,
            "b": self.b.id,
            "same": self.same,
            "together": self.together,
            "calls": list(self.calls),
            "steps": steps,
            "shared": self.shared[0],
            "messages": self.shared[1],
            "differences": None if found is None else [each.to_json() for each in found.differences],
            "would_match_with": [*found.would_match_with] if found else [],
        }

    def lines(self) -> Iterator[Line]:
        """The parting for a person."""
        yield from facts(
            (name, f"{run.id}  {plural(count, 'model call')}{_named(run)}")
            for name, run, count in (("- a", self.a, self.calls[0]), ("+ b", self.b, self.calls[1]))
        )
        if self.same:
            yield line(("exact", f"They ask for the same, in {plural(self.together, 'model call')}."))
            return
        yield line(("strong", f"They part at model call {number(self.together + 1)}."))
        yield from deeper(self._sides())
        if None in self.at:
            return
        if self.comparison is None:
            yield line(("faint", "One of the two requests is not kept: there is nothing to compare."))
        else:
            yield from deeper(prefix_lines(*self.shared))
            yield from deeper(_comparison_lines(self.comparison))

    def _sides(self) -> Iterator[Line]:
        marks: tuple[Span, Span] = (("before", "- a "), ("after", "+ b "))
        for mark, step in zip(marks, self.at, strict=True):
            if step is None:
                yield line(mark, ("faint", "has ended"))
            else:
                yield line(
                    mark,
                    f" {step.run}.{step.number}  ",
                    (step.tier, step.tier),
                    f"  {safe_line(step.preview or step.path)}",
                )


def _comparison_lines(found: Comparison) -> Iterator[Line]:
    for each in found.differences[:_SHOWN]:
        yield from difference_lines(each.to_json(), ("a", "b"))
    left = len(found.differences) - _SHOWN
    if left > 0:
        yield line(("faint", f"… and {plural(left, 'more place')} (--json lists them)"))
    if found.would_match_with:
        yield line(("advice", f"would match with: {safe_line('; '.join(found.would_match_with))}"))


def part(
    a: tuple[RunRecord, Sequence[StepRecord]],
    b: tuple[RunRecord, Sequence[StepRecord]],
    store: Store,
    log: Log,
    reader: RequestReader,
    weakest: Weakest,
) -> Parting:
    """Where two runs part; each comes with its steps. `weakest` is the setting `match`.

    Raises `CorruptRecordError`.
    """
    steps = tuple([step for step in each[1] if step.cls == "model"] for each in (a, b))
    calls = (len(steps[0]), len(steps[1]))
    together = 0
    for ours, theirs in zip_longest(*steps):
        if ours is None or theirs is None:
            return Parting(a[0], b[0], together, calls, (ours, theirs))
        if _key(ours, weakest) != _key(theirs, weakest):
            readings = _read(ours, store, log, reader), _read(theirs, store, log, reader)
            found = _compared((ours, readings[0]), (theirs, readings[1]), reader, weakest)
            return Parting(a[0], b[0], together, calls, (ours, theirs), *found)
        together += 1
    return Parting(a[0], b[0], together, calls)


def _key(step: StepRecord, weakest: Weakest) -> str:
    return step.normalised if weakest == "normalised" else step.exact


def _compared(
    a: tuple[StepRecord, Reading | None],
    b: tuple[StepRecord, Reading | None],
    reader: RequestReader,
    weakest: Weakest,
) -> tuple[Comparison | None, tuple[int, int]]:
    (ours, left), (theirs, right) = a, b
    if left is not None and right is not None:
        pairs = zip(left.links, right.links, strict=False)
        links = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return compare(left, right, reader, weakest), shared_messages(links, right)
    # A request that is not kept any more: its report tells, where it was compared with the other call's.
    for refused, other in ((theirs, ours), (ours, theirs)):
        miss = refused.miss
        if miss and miss.get("difference") and miss.get("nearest") == other.cassette:
            found = miss["difference"]
            sides = (found["a"], found["b"]) if refused is theirs else (found["b"], found["a"])
            difference = Difference(found["path"], *sides)
            return Comparison(None, (difference,)), (miss.get("shared", 0), miss.get("messages", 0))
    return None, (0, 0)


def _read(step: StepRecord, store: Store, log: Log, reader: RequestReader) -> Reading | None:
    """The request of a step, as its recording has it, or as it is pending."""
    try:
        if step.cassette is not None:
            cassette = store.cassette(step.cassette)
            return reader.read_stored(cassette, store.request_body(cassette))
        pending = log.pending.find(step.normalised)
        return reader.read_kept(pending.request, pending.exact, log.pending.body(pending))
    except StoreError:
        return None  # deleted or answered since, or never read


def _named(run: RunRecord) -> str:
    return f"  {safe_line(run.session)}" if run.session else ""
