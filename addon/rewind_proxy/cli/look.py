"""Looking at what was recorded and what was called: `ls`, `runs`, `steps`. Nothing here writes.

JSON (`--json`), records as in store/records.py:

    ls      [cassette, …]   newest first
    runs    [run + {"tiers": {tier: model calls, …}, "side": calls that are no model calls,
                    "models": {model: calls, …}, "tokens_saved", "saved_ms"}, …]                 newest first
    steps   [step, …]       in order
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, TypeAlias, TypeVar

import typer
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.amounts import ago, offset, percent
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
    console,
    duration,
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
from rewind_proxy.cli.tally import Tally, tally
from rewind_proxy.errors import GoneError
from rewind_proxy.matching.pruning import untouched_by
from rewind_proxy.store import CassetteRecord, RunRecord, StepRecord

PANEL = "Look"
SHORT_ID = 12
DEFAULT_LIMIT = 30
R = TypeVar("R")

LimitOption: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", metavar="N", min=0, help="Show the newest N; 0 shows all.")
]


def register(app: typer.Typer) -> None:
    """Add `ls`, `runs` and `steps`."""
    app.command("ls", rich_help_panel=PANEL)(ls)
    app.command("runs", rich_help_panel=PANEL)(runs)
    app.command("steps", rich_help_panel=PANEL)(steps)


def ls(
    store: StoreOption = None,
    limit: LimitOption = DEFAULT_LIMIT,
    unused: Annotated[
        str | None,
        typer.Option(
            "--unused", metavar="RUN", help="Only what this run (an id, or `last`) did not record or replay."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the recordings, newest first."""
    settings = settings_for(store)
    reader = reader_of(settings)
    with open_store(settings, reader) as opened:
        found = opened.cassettes(newest_first=True)
        total = opened.stats().cassettes
        if unused is not None:
            with open_log(settings) as log:
                run = log.run(unused)
                found = untouched_by(run, log.steps(run.id), found)
            left = list(found)
            found, total = iter(left), len(left)
        records = list(_newest(found, limit))
        if as_json:
            print_json([record.model_dump(mode="json") for record in records])
            return
        if not records and unused is not None:
            console().print(f"Run {safe_line(run.id)} used every recording that it could have used.")
            return
        if not records:
            print_nothing("recordings", settings)
            return
        # A stored request has no preview of its own: the reader makes it as it does for a live one.
        shown: list[tuple[CassetteRecord, str]] = []
        for record in records:
            with suppress(GoneError):  # by a proxy that runs
                shown.append((record, reader.read_stored(record, opened.request_body(record)).preview))
    out = console()
    out.print(listing(_cassette_columns([record for record, _ in shown], [p for _, p in shown]), out.width))
    _print_left(len(shown), total, "recording")


def runs(store: StoreOption = None, limit: LimitOption = DEFAULT_LIMIT, as_json: JsonOption = False) -> None:
    """List the runs, newest first, with their model calls by tier."""
    settings = settings_for(store)
    with open_log(settings) as log:
        found = [_SummedRun(run, tally(log.steps(run.id))) for run in _newest(log.runs(), limit)]
        if as_json:
            print_json([run.to_json() for run in found])
            return
        if not found:
            print_nothing("runs", settings)
            return
        total = sum(1 for _ in log.runs()) if len(found) == limit else len(found)
    out = console()
    out.print(listing(_run_columns(found, out.width), out.width))
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
    out.print(listing(_step_columns(record, found), out.width))
    for host in record.tunnelled:
        out.print(Text(f"tunnelled: {safe_line(host)}", style="dim"), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _SummedRun:
    run: RunRecord
    calls: Tally

    def to_json(self) -> JsonObject:
        calls = self.calls
        return {
            **self.run.model_dump(mode="json"),
            "tiers": dict(calls.tiers.items()),
            "side": calls.side,
            "models": dict(calls.models.items()),
            "tokens_saved": calls.tokens_saved,
            "saved_ms": calls.saved_ms,
        }


def _cassette_columns(records: Sequence[CassetteRecord], previews: Sequence[str]) -> list[Column]:
    requests, answers, now = [r.request for r in records], [r.answer for r in records], time.time()
    return [
        Column("id", [Text(record.id[:SHORT_ID], style="cyan") for record in records]),
        Column("recorded", [ago(record.recorded_at, now) for record in records]),
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


def _run_columns(found: Sequence[_SummedRun], width: int) -> list[Column]:
    records, calls, now = [summed.run for summed in found], [summed.calls for summed in found], time.time()
    return [
        Column("run", [Text(run.id, style="cyan") for run in records]),
        Column("started", [ago(run.started_at, now) for run in records]),
        Column("took", [_took(run) for run in records], justify="right", from_width=100),
        Column("mode", [run.mode for run in records], from_width=90),
        Column("hits", [percent(each.hit_rate) for each in calls], justify="right", from_width=100),
        Column("model calls", [tier_counts(each.tiers, width) for each in calls]),
        Column("other", [number(c.side) if c.side else "" for c in calls], justify="right", from_width=120),
        Column("model", [_models(each) for each in calls], from_width=130, cut=True),
        Column("session", [run.session for run in records], cut=True),
        Column("client", [run.client.partition(" ")[0] for run in records], from_width=150, cut=True),
    ]


def _models(calls: Tally) -> str:
    """The model that was asked most, and how many others were."""
    (name, _), *others = calls.models.most_common() or [("", 0)]
    return f"{name} +{len(others)}" if others else name


def _took(run: RunRecord) -> str:
    return "" if run.ended_at is None else duration((run.ended_at - run.started_at) * 1000)


def _step_columns(run: RunRecord, found: Sequence[StepRecord]) -> list[Column]:
    return [
        Column("#", [str(step.number) for step in found], justify="right"),
        Column("at", [offset(step.started_at - run.started_at) for step in found], justify="right"),
        Column("tier", [_tier(step) for step in found]),
        Column("model", [step.model or "" for step in found], cut=True),
        Column("tokens", [tokens(s.input_tokens, s.output_tokens) for s in found], justify="right"),
        Column("took", [_latency(step) for step in found], justify="right"),
        Column(
            "recording", [Text((s.cassette or "")[:SHORT_ID], style="cyan") for s in found], from_width=100
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
