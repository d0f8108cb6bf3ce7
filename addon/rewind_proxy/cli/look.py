"""Looking at what was recorded and what was called: `ls`, `runs`, `steps`, `stats`. Nothing here writes.

JSON (`--json`), records as in store/records.py:

    ls      [cassette, …]   newest first
    runs    [run + {"tiers": {tier: model calls, …}, "side": calls that are no model calls}, …]   newest first
    steps   [step, …]       in order
    stats   {"store": {"path", "cassettes", "blobs", "bytes_on_disk", "bytes_uncompressed", "generation",
                       "format", "indexed", "quarantined"},
             "runs", "steps", "tiers", "side", "tokens_saved", "saved_ms"}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated, TypeAlias, TypeVar

import typer
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, Tier
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    open_store,
    print_nothing,
    reader_of,
    settings_for,
)
from rewind_proxy.cli.output import (
    Column,
    clock,
    console,
    duration,
    facts,
    listing,
    number,
    plural,
    print_json,
    safe_line,
    size,
    tier_counts,
    tier_text,
    tokens,
    when,
)
from rewind_proxy.report import Report
from rewind_proxy.store import CassetteRecord, Log, RunRecord, StepRecord

PANEL = "Look"
SHORT_ID = 12
DEFAULT_LIMIT = 30
R = TypeVar("R")
# What went wrong first: the end of a line may be cut.
_TIERS: tuple[Tier, ...] = ("miss", "failed", "exact", "normalised", "alias", "recorded", "passed")

LimitOption: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", metavar="N", min=0, help="Show the newest N; 0 shows all.")
]


def register(app: typer.Typer) -> None:
    """Add `ls`, `runs`, `steps` and `stats`."""
    app.command("ls", rich_help_panel=PANEL)(ls)
    app.command("runs", rich_help_panel=PANEL)(runs)
    app.command("steps", rich_help_panel=PANEL)(steps)
    app.command("stats", rich_help_panel=PANEL)(stats)


def ls(store: StoreOption = None, limit: LimitOption = DEFAULT_LIMIT, as_json: JsonOption = False) -> None:
    """List the recordings, newest first."""
    settings = settings_for(store)
    reader = reader_of(settings)
    with open_store(settings, reader) as opened:
        records = list(_newest(opened.cassettes(newest_first=True), limit))
        if as_json:
            print_json([record.model_dump(mode="json") for record in records])
            return
        if not records:
            print_nothing("recordings", settings)
            return
        # A stored request has no preview of its own: the reader makes it as it does for a live one.
        previews = [reader.read_stored(record, opened.request_body(record)).preview for record in records]
        total = opened.stats().cassettes
    out = console()
    out.print(listing(_cassette_columns(records, previews), out.width))
    _print_left(len(records), total, "recording")


def runs(store: StoreOption = None, limit: LimitOption = DEFAULT_LIMIT, as_json: JsonOption = False) -> None:
    """List the runs, newest first, with their model calls by tier."""
    settings = settings_for(store)
    with open_log(settings) as log:
        found = [_summed(run, log) for run in _newest(log.runs(), limit)]
        if as_json:
            print_json([run.to_json() for run in found])
            return
        if not found:
            print_nothing("runs", settings)
            return
        total = sum(1 for _ in log.runs()) if len(found) == limit else len(found)
    out = console()
    out.print(listing(_run_columns(found), out.width))
    _print_left(len(found), total, "run")


def steps(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, the start of one, or `last`.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the calls of a run in order."""
    settings = settings_for(store)
    with open_log(settings) as log:
        record = log.run(run)
        found = log.steps(record.id)
    if as_json:
        print_json([step.model_dump(mode="json") for step in found])
        return
    out = console()
    title = Text(record.id, style="bold").append(f"  {record.mode}  {when(record.started_at)}", style="dim")
    out.print(title.append(f"  {safe_line(record.session)}", style="bold"), soft_wrap=True)
    out.print()
    out.print(listing(_step_columns(found), out.width))
    for host in record.tunnelled:
        out.print(Text(f"tunnelled: {safe_line(host)}", style="dim"), soft_wrap=True)


def stats(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Sum up the store and all runs: hits by tier, tokens and time saved, size on disk."""
    settings = settings_for(store)
    with open_store(settings) as opened, open_log(settings) as log:
        sizes, index = opened.stats(), opened.index_report()
        report, run_count = Report(settings.mode), 0
        counts: Counter[Tier] = Counter()
        for run in log.runs():
            run_count += 1
            for step in log.steps(run.id):
                report.add(step)
                if step.cls == "model":
                    counts[step.tier] += 1
    tiers = _in_order(counts)
    if as_json:
        print_json(
            {
                "store": {"path": str(settings.store), **asdict(sizes), **asdict(index)},
                "runs": run_count,
                "steps": report.steps,
                "tiers": dict(tiers.items()),
                "side": report.side,
                "tokens_saved": report.tokens_saved,
                "saved_ms": report.saved_ms,
            }
        )
        return
    if not sizes.cassettes and not run_count:
        print_nothing("recordings", settings)
        return
    rows: list[tuple[str, str | Text]] = [
        ("store", safe_line(str(settings.store))),
        ("recordings", number(sizes.cassettes)),
        (
            "on disk",
            f"{size(sizes.bytes_on_disk)} ({size(sizes.bytes_uncompressed)} of content, uncompressed)",
        ),
        ("not matched", plural(index.quarantined, "recording") if index.quarantined else ""),
        ("runs", number(run_count)),
        (
            "model calls",
            Text(f"{number(report.steps)}: ").append_text(tier_counts(tiers)) if report.steps else "",
        ),
        ("other calls", number(report.side) if report.side else ""),
        ("tokens saved", number(report.tokens_saved) if report.tokens_saved else ""),
        ("time saved", duration(report.saved_ms) if report.saved_ms else ""),
    ]
    console().print(facts(rows))


@dataclass(frozen=True, slots=True)
class _SummedRun:
    run: RunRecord
    tiers: dict[Tier, int]
    side: int

    def to_json(self) -> JsonObject:
        tiers: JsonObject = dict(self.tiers.items())
        return {**self.run.model_dump(mode="json"), "tiers": tiers, "side": self.side}


def _summed(run: RunRecord, log: Log) -> _SummedRun:
    found = log.steps(run.id)
    tiers = _in_order(Counter(step.tier for step in found if step.cls == "model"))
    return _SummedRun(run, tiers, len(found) - sum(tiers.values()))


def _in_order(counts: Counter[Tier]) -> dict[Tier, int]:
    return {tier: counts[tier] for tier in _TIERS if counts[tier]}


def _cassette_columns(records: Sequence[CassetteRecord], previews: Sequence[str]) -> list[Column]:
    requests, answers = [r.request for r in records], [r.answer for r in records]
    return [
        Column("id", [Text(record.id[:SHORT_ID], style="cyan") for record in records]),
        Column("recorded", [when(record.recorded_at) for record in records]),
        Column("host", [request.host for request in requests], from_width=120),
        Column("model", [_model(record) for record in records], cut=True),
        Column("form", [request.form for request in requests], from_width=150),
        Column("tokens", [tokens(a.input_tokens, a.output_tokens) for a in answers], justify="right"),
        Column("took", [duration(a.latency_ms) for a in answers], justify="right", from_width=100),
        Column("size", [size(record.answer_length) for record in records], justify="right", from_width=130),
        Column(
            "preview",
            [p or _request_line(r.method, r.path) for p, r in zip(previews, requests, strict=True)],
            cut=True,
        ),
    ]


def _model(record: CassetteRecord) -> str:
    asked = record.request.params.get("model")
    return asked if isinstance(asked, str) else record.answer.model or record.request.cls


def _run_columns(found: Sequence[_SummedRun]) -> list[Column]:
    records = [summed.run for summed in found]
    return [
        Column("run", [Text(run.id, style="cyan") for run in records]),
        Column("started", [when(run.started_at) for run in records]),
        Column("took", [_took(run) for run in records], justify="right", from_width=100),
        Column("mode", [run.mode for run in records], from_width=90),
        Column("model calls", [tier_counts(summed.tiers) for summed in found], cut=True),
        Column("other", [number(s.side) if s.side else "" for s in found], justify="right", from_width=100),
        Column("session", [run.session for run in records], cut=True),
        Column("client", [run.client.partition(" ")[0] for run in records], from_width=120),
    ]


def _took(run: RunRecord) -> str:
    return "" if run.ended_at is None else duration((run.ended_at - run.started_at) * 1000)


def _step_columns(found: Sequence[StepRecord]) -> list[Column]:
    return [
        Column("#", [str(step.number) for step in found], justify="right"),
        Column("time", [clock(step.started_at) for step in found]),
        Column("tier", [_tier(step) for step in found]),
        Column("model", [step.model or "" for step in found], cut=True),
        Column("tokens", [tokens(s.input_tokens, s.output_tokens) for s in found], justify="right"),
        Column("took", [_latency(step) for step in found], justify="right"),
        Column(
            "cassette", [Text((s.cassette or "")[:SHORT_ID], style="cyan") for s in found], from_width=100
        ),
        Column("preview", [_preview(step) for step in found], cut=True),
        Column("note", [step.reason or step.note for step in found], from_width=130, cut=True),
    ]


def _tier(step: StepRecord) -> Text:
    """The tier of a model call; of others what they are, since their tier says little."""
    return tier_text(step.tier) if step.cls == "model" else Text(step.cls, style="dim")


def _latency(step: StepRecord) -> str:
    return duration(step.latency_ms) if step.latency_ms else ""


def _preview(step: StepRecord) -> str | Text:
    if step.preview:
        return step.preview
    return Text(
        safe_line(f"{_request_line(step.method, step.host + step.path)} {step.status or ''}"), style="dim"
    )


def _request_line(method: str, path: str) -> str:
    return f"{method} {path}"


def _newest(records: Iterable[R], limit: int) -> Iterator[R]:
    return islice(records, limit or None)


def _print_left(shown: int, total: int, noun: str) -> None:
    if total > shown:
        line = f"… {plural(total - shown, f'older {noun}')} not shown (--limit 0 shows all)"
        console().print(Text(line, style="dim"), soft_wrap=True)
