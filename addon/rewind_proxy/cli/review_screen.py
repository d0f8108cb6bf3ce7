"""A pending request beside a candidate: what both say, where they part, and the answer it would get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, JsonValue, Message
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import Desk
from rewind_proxy.cli.output import facts, plural, rendered, safe_line, when
from rewind_proxy.explain.conversation import Conversation
from rewind_proxy.explain.exchange import answer_parts
from rewind_proxy.explain.miss import difference_lines
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.matching.comparison import Comparison, compare
from rewind_proxy.matching.reading import Reading
from rewind_proxy.matching.similarity import likeness
from rewind_proxy.store import CandidateRecord, CassetteRecord, PendingRecord
from rewind_proxy.wire import ADAPTERS

_SIDE_BY_SIDE = range(100, 1000)
"""Columns in which two conversations stand side by side: fewer are too few, more are no screen."""
_MESSAGES = 3
"""Messages that are shown from the first on that differs."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A pending request and a recording that may answer it."""

    cassette: CassetteRecord
    score: float
    rejected: bool
    recorded: Reading
    asked: Reading
    comparison: Comparison
    answer: list[JsonObject] | None
    """The parts of the recorded answer."""

    def to_json(self) -> JsonObject:
        """`{"cassette", "score", "rejected", "difference", "differences", "answer"}`."""
        differences = self.comparison.differences
        parts: list[JsonValue] = [*(self.answer or ())]
        return {
            "cassette": self.cassette.id,
            "score": round(self.score, 3),
            "rejected": self.rejected,
            "difference": differences[0].to_json() if differences else None,
            "differences": len(differences),
            "answer": None if self.answer is None else parts,
        }


def asked_of(desk: Desk, pending: PendingRecord) -> Reading:
    """A pending request, read. Raises `StoreError`."""
    return desk.reader.read_kept(pending.request, pending.exact, desk.log.pending.body(pending))


def pair(desk: Desk, asked: Reading, candidate: CandidateRecord) -> Pair | None:
    """A pending request and a candidate, read; None when the recording is gone. Raises `StoreError`."""
    found = desk.store.recordings_of(candidate.cassette)
    if not found:
        return None
    cassette = found[-1]
    recorded = desk.reader.read_stored(cassette, desk.store.request_body(cassette))
    form = answer_form(cassette.answer.content_type, cassette.request.form)
    answer = answer_parts(cassette.request.wire, form, desk.store.answer(cassette).body)
    comparison = compare(recorded, asked, desk.reader)
    return Pair(cassette, candidate.score, candidate.rejected, recorded, asked, comparison, answer)


def nearest(desk: Desk, asked: Reading, pending: PendingRecord) -> Pair | None:
    """The recording that the miss report named, for a request without candidates."""
    if pending.nearest is None:
        return None
    found = pair(desk, asked, CandidateRecord(cassette=pending.nearest, score=0.0))
    if found is None:
        return None
    a, b = found.recorded.sketched.signature(), asked.sketched.signature()
    score = likeness(a, b) if a and b else 0.0
    return replace(found, score=score)


def pending_facts(pending: PendingRecord) -> Table:
    """What is known of a pending request."""
    request = pending.request
    model = request.params.get("model")
    refused = f"{when(pending.last_at)}, step {pending.run}.{pending.step}"
    rows: list[tuple[str, str | Text]] = [
        ("pending", Text(pending.id[:SHORT_ID], style="bold cyan")),
        ("refused", refused + (f", {pending.count} times" if pending.count > 1 else "")),
        ("session", safe_line(pending.session)),
        ("endpoint", safe_line(f"{request.method} https://{request.host}{request.path}")),
        ("model", safe_line(model) if isinstance(model, str) else ""),
        ("asks", safe_line(pending.preview)),
        ("why", safe_line(pending.reason)),
    ]
    return facts(rows)


def title(shown: Pair, at: int, of: int) -> Text:
    """`candidate 1 of 2   3f9a12cd34ef   0.93   recorded 2026-11-30 11:45`."""
    line = Text(f"candidate {at} of {of}" if of else "nearest recording", style="bold")
    line.append(f"   {shown.cassette.id[:SHORT_ID]}", style="cyan")
    line.append(f"   {shown.score:.2f}", style=score_style(shown.score))
    by_hand = ", answered by hand" if shown.cassette.answer.by_hand else ""
    line.append(f"   recorded {when(shown.cassette.recorded_at)}{by_hand}", style="dim")
    if shown.rejected:
        line.append("   rejected", style="red")
    return line


def score_style(score: float) -> str:
    """The colour of a score."""
    return "green" if score >= 0.95 else "yellow" if score >= 0.85 else "red"


def lines(shown: Pair, width: int) -> Iterator[RenderableType]:
    """A pair for reading: the conversations from where they part, the first difference, the answer."""
    yield from _conversations(shown, width)
    found = shown.comparison.differences
    if found:
        more = f" (the first of {len(found)})" if len(found) > 1 else ""
        yield Text(f"difference{more}", style="bold")
        shown_lines = rendered(difference_lines(found[0].to_json()))
        yield Padding(Group(*shown_lines), (0, 0, 1, 2), expand=False)
    yield Text("it would be answered with", style="bold")
    if shown.answer is None:
        yield Text("  an answer that has no parts: rewind show " + shown.cassette.id[:SHORT_ID])
    else:
        yield from rendered(_view(shown.recorded).parts(shown.answer))
    yield Text()


def _conversations(shown: Pair, width: int) -> Iterator[RenderableType]:
    a, b = _messages(shown.recorded), _messages(shown.asked)
    if not a and not b:
        return
    same = _same(shown.recorded, shown.asked)
    if same:
        yield Text(f"  {plural(same, 'message')} alike before", style="dim")
    left, right = a[same : same + _MESSAGES], b[same : same + _MESSAGES]
    if not left and not right:
        return
    sides = ("recorded", left, _view(shown.recorded), len(a)), ("refused", right, _view(shown.asked), len(b))
    if width not in _SIDE_BY_SIDE:
        for name, messages, view, total in sides:
            yield Text(name, style="bold")
            yield Padding(_side(messages, view, total - same), (0, 0, 0, 2), expand=False)
        return
    grid = Table.grid(padding=(0, 3, 0, 0), expand=True)
    for _ in sides:
        grid.add_column(ratio=1, overflow="fold")
    grid.add_row(*(Text(name, style="bold") for name, *_ in sides))
    grid.add_row(*(_side(messages, view, total - same) for _, messages, view, total in sides))
    yield grid


def _side(messages: Sequence[Message], view: Conversation, total: int) -> RenderableType:
    if not messages:
        return Text("(nothing more)\n", style="dim")
    more = total - len(messages)
    left = [Text(f"… {plural(more, 'more message')}\n", style="dim")] if more > 0 else []
    return Group(*rendered(view.messages(messages)), *left)


def _messages(reading: Reading) -> Sequence[Message]:
    return reading.normalised.shown.kept().messages if reading.normalised else ()


def _same(a: Reading, b: Reading) -> int:
    """How many messages are alike at the start, when normalised."""
    if a.normalised is None or b.normalised is None:
        return 0
    ours, theirs = a.normalised.view["messages"], b.normalised.view["messages"]
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    both = enumerate(zip(ours, theirs, strict=False))
    return next((at for at, (x, y) in both if x != y), min(len(ours), len(theirs)))


def _view(reading: Reading) -> Conversation:
    return Conversation(noise=ADAPTERS[reading.record.wire].volatile.members)


def offered(desk: Desk, asked: Reading, pending: PendingRecord) -> list[Pair]:
    """The candidates that are still there and were not rejected, the best first."""
    found = (pair(desk, asked, each) for each in desk.log.pending.candidates(pending) if not each.rejected)
    return [each for each in found if each is not None]
