"""`rewind stats`: what the runs came to and what the recordings saved. Nothing here writes.

JSON (`--json`); a tally is `{"steps", "tiers": {tier: model calls}, "side", "hits", "hit_rate",
"tokens_saved", "input_tokens_saved", "output_tokens_saved", "cached_tokens_saved", "saved_ms",
"money_saved_usd", "unpriced": {model: hits}, "uncounted"}` (cli/tally.py says what each counts):

    {"store": {"path", "cassettes", "blobs", "bytes_on_disk", "bytes_uncompressed", "generation", "format",
               "indexed", "quarantined", "bytes_recorded", "bytes_of_log"},
     "since", "session", "runs", "prices", … a tally of everything …,
     "models":   [{"model", … a tally …}, …]              most calls first
     "sessions": [{"session", "runs", … a tally …}, …]    most calls first
     "hit_rates": [{"run", "session", "started_at", "steps", "hits", "hit_rate"}, …]}   oldest first

`bytes_recorded` is what clients sent and got, each recording by itself; `bytes_uncompressed` counts what
recordings share once. `since` and `session` are the filters in force, which the store's numbers do not know.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli import prices as sources
from rewind_proxy.cli.amounts import bars, dollars, moment, percent
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    open_store,
    print_nothing,
    settings_for,
)
from rewind_proxy.cli.output import (
    Column,
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
)
from rewind_proxy.cli.prices import Prices
from rewind_proxy.cli.tally import Tally
from rewind_proxy.settings import Settings
from rewind_proxy.store import IndexReport, Log, RunRecord, StepRecord, Store, StoreStats

PANEL = "Look"
_ROWS = 20
_RUNS_SHOWN = 24
_NAMED = 3


def register(app: typer.Typer) -> None:
    """Add `stats`."""
    app.command("stats", rich_help_panel=PANEL)(stats)


def stats(
    session: Annotated[
        str | None, typer.Option("--session", metavar="S", help="Only runs of this session.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only calls since 12h, 7d, or 2026-11-30.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sum up the store and the runs: hits by tier, model and session; tokens, money and time saved."""
    start = None if since is None else moment(since, time.time())
    settings = settings_for(store)
    prices = sources.load_prices()
    with open_store(settings) as opened, open_log(settings) as log:
        shelf = _Shelf.of(opened, log)
        found = _Found.of(log, prices, session, start)
    if as_json:
        filters: JsonObject = {"since": start, "session": session}
        head: JsonObject = {"store": shelf.to_json(settings), **filters}
        print_json(head | found.to_json())
        return
    if not found.runs and (session is not None or since is not None):
        print_nothing("such runs", settings)
        return
    if not shelf.sizes.cassettes and not found.runs:
        print_nothing("recordings", settings)
        return
    _show(settings, shelf, found)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What the store holds, and how well."""

    sizes: StoreStats
    index: IndexReport
    bytes_recorded: int
    bytes_of_log: int

    @classmethod
    def of(cls, store: Store, log: Log) -> _Shelf:
        recorded = sum(record.request.body_length + record.answer_length for record in store.readable())
        return cls(store.stats(), store.index_report(), recorded, log.size())

    def to_json(self, settings: Settings) -> JsonObject:
        numbers: JsonObject = {**asdict(self.sizes), **asdict(self.index)}
        sizes: JsonObject = {"bytes_recorded": self.bytes_recorded, "bytes_of_log": self.bytes_of_log}
        return {"path": str(settings.store), **numbers, **sizes}

    def on_disk(self) -> str:
        """`1.2 MiB for 14.0 MiB as sent and received (11.7 × smaller)`."""
        held = f"{size(self.sizes.bytes_on_disk)} for {size(self.bytes_recorded)} as sent and received"
        ratio = self.bytes_recorded / self.sizes.bytes_on_disk if self.sizes.bytes_on_disk else 0
        return f"{held} ({ratio:.1f} × smaller)" if ratio >= 1.05 else held


@dataclass(slots=True)
class _Found:
    """The runs that were asked for, tallied."""

    total: Tally
    runs: list[tuple[RunRecord, Tally]] = field(default_factory=list)
    models: dict[str, Tally] = field(default_factory=dict)
    sessions: dict[str, Tally] = field(default_factory=dict)

    @classmethod
    def of(cls, log: Log, prices: Prices | None, session: str | None, since: float | None) -> _Found:
        found = cls(Tally(prices))
        for run in log.runs(newest_first=False):
            if session is not None and run.session != session:
                continue
            steps = [step for step in log.steps(run.id) if since is None or step.started_at >= since]
            if since is not None and run.started_at < since and not steps:
                continue
            found._add(run, steps)
        return found

    def _add(self, run: RunRecord, steps: Sequence[StepRecord]) -> None:
        prices = self.total.prices
        of_run, of_models = Tally(prices), dict[str, Tally]()
        for step in steps:
            # Each is counted, and priced, once.
            model = of_models.setdefault(step.model or "", Tally(prices)) if step.cls == "model" else of_run
            model.add(step)
        for name, of_model in of_models.items():
            of_run.absorb(of_model)
            self.models.setdefault(name, Tally(prices)).absorb(of_model)
        self.runs.append((run, of_run))
        self.total.absorb(of_run)
        self.sessions.setdefault(run.session, Tally(prices)).absorb(of_run)

    def to_json(self) -> JsonObject:
        of_session = Counter(run.session for run, _ in self.runs)
        models: list[JsonValue] = [
            {"model": name, **each.to_json()} for name, each in most_called(self.models).items()
        ]
        sessions: list[JsonValue] = [
            {"session": name, "runs": of_session[name], **each.to_json()}
            for name, each in most_called(self.sessions).items()
        ]
        rates: list[JsonValue] = [
            {
                "run": run.id,
                "session": run.session,
                "started_at": run.started_at,
                "steps": each.steps,
                "hits": each.hits,
                "hit_rate": each.hit_rate,
            }
            for run, each in self.runs
        ]
        prices = self.total.prices
        return {
            "runs": len(self.runs),
            "prices": prices.name if prices else None,
            **self.total.to_json(),
            "models": models,
            "sessions": sessions,
            "hit_rates": rates,
        }


def most_called(tallies: Mapping[str, Tally]) -> dict[str, Tally]:
    """The same, those with the most model calls first."""
    return dict(sorted(tallies.items(), key=lambda item: (-item[1].steps, item[0])))


def _show(settings: Settings, shelf: _Shelf, found: _Found) -> None:
    total, index, out = found.total, shelf.index, console()
    calls = Text(f"{number(total.steps)}: ").append_text(tier_counts(total.tiers)) if total.steps else ""
    rows: list[tuple[str, str | Text]] = [
        ("store", safe_line(str(settings.store))),
        ("recordings", number(shelf.sizes.cassettes)),
        ("on disk", shelf.on_disk() if shelf.sizes.cassettes else ""),
        ("log on disk", size(shelf.bytes_of_log) if shelf.bytes_of_log else ""),
        ("not matched", plural(index.quarantined, "recording") if index.quarantined else ""),
        ("runs", number(len(found.runs))),
        ("model calls", calls),
        ("hit rate", _rates(found)),
        ("other calls", number(total.side) if total.side else ""),
        ("tokens saved", _tokens(total)),
        ("money saved", money_told(total)),
        ("not priced", _not_priced(total)),
        ("time saved", _time(total)),
    ]
    out.print(facts(rows))
    if found.models:
        _print_by("model", found.models, lambda name: name or "(none)", out.width)
    if set(found.sessions) - {""}:
        _print_by("session", found.sessions, lambda name: name or "(no name)", out.width)


def _rates(found: _Found) -> str:
    rates = [each.hit_rate for _, each in found.runs if each.hit_rate is not None][-_RUNS_SHOWN:]
    told = percent(found.total.hit_rate)
    return f"{told}  {bars(rates)}  run by run, the newest last" if len(rates) > 1 else told


def _tokens(total: Tally) -> str:
    if not total.tokens_saved:
        return ""
    cached = f" ({number(total.cached_tokens)} of them from a cache)" if total.cached_tokens else ""
    parts = f"{number(total.input_tokens)} in{cached}, {number(total.output_tokens)} out"
    return f"{number(total.tokens_saved)}: {parts}"


def money_told(total: Tally) -> str:
    """What was saved in money, or why that is not known; nothing when there were no hits."""
    if not total.hits:
        return ""
    if total.prices is None:
        return sources.HOW_TO_GET
    if total.money_saved is None:
        return "unknown"
    return f"{dollars(total.money_saved)} at the providers' list prices ({total.prices.name})"


def _not_priced(total: Tally) -> str:
    parts = []
    if total.unpriced:
        named = [f"{safe_line(name) or '(none)'} {n}" for name, n in total.unpriced.most_common(_NAMED)]
        more = len(total.unpriced) - _NAMED
        models = ", ".join([*named, f"{plural(more, 'more model')}"] if more > 0 else named)
        parts.append(f"{plural(total.unpriced.total(), 'hit')} of models without a known price ({models})")
    if total.uncounted and total.prices is not None:
        parts.append(f"{plural(total.uncounted, 'hit')} without counted tokens")
    return "; ".join(parts)


def _print_by(title: str, tallies: Mapping[str, Tally], named: Callable[[str], str], width: int) -> None:
    ranked = most_called(tallies)
    shown = dict(list(ranked.items())[:_ROWS])
    each = list(shown.values())
    columns = [
        Column(title, [named(name) for name in shown], cut=True),
        Column("hit rate", [percent(one.hit_rate) for one in each], justify="right"),
        Column("model calls", [tier_counts(one.tiers, width) for one in each]),
        Column("tokens saved", [_some(one.tokens_saved) for one in each], justify="right"),
        Column("money saved", [_money(one) for one in each], justify="right", from_width=100),
        Column("time saved", [_time(one) for one in each], justify="right", from_width=100),
    ]
    out = console()
    out.print()
    out.print(listing(columns, width))
    if len(ranked) > len(shown):
        line = f"… {plural(len(ranked) - len(shown), f'more {title}')} (--json has all)"
        out.print(Text(line, style="dim"), soft_wrap=True)


def _time(one: Tally) -> str:
    return duration(one.saved_ms) if one.saved_ms else ""


def _some(count: int) -> str:
    return number(count) if count else ""


def _money(one: Tally) -> str:
    return dollars(one.money_saved) if one.hits and one.money_saved is not None else ""
