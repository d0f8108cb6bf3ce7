"""`rewind verify`: is everything in the store as it was written, and is no credential in it.

JSON (`--json`):

    {"store", "recordings", "runs", "damaged": [{"problem", "cassette"?}, …], "credentials": [c, …],
     "answers": [c, …], "quarantined", "left_out": [why, …], "ok"}
    c = {"rule", "where", "cassette"?, "run"?, "step"?, "alias"?, "pending"?}

Exit status: 1 when something is damaged or a credential is in a request or in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import typer
from rich.text import Text

from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    gate_settings,
    open_log,
    open_store,
    print_nothing,
)
from rewind_proxy.cli.output import console, number, plural, print_json, safe_line
from rewind_proxy.cli.progress import progress_bars
from rewind_proxy.matching.opening import Watch
from rewind_proxy.matching.scanning import (
    Credential,
    alias_credentials,
    log_credentials,
    request_credentials,
    stored_answer_credentials,
)
from rewind_proxy.settings import Settings
from rewind_proxy.store import Damage, Log, RunRecord, Store

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verified:
    """What is wrong with a store and its log."""

    damaged: Sequence[Damage]
    credentials: Sequence[Credential]
    answers: Sequence[Credential]

    def ok(self, settings: Settings) -> bool:
        """Whether nothing is that has to be mended."""
        return not (self.damaged or self.credentials or (settings.redact_answers and self.answers))


def verify(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Check every digest and entry, and look for credentials by today's rules. Nothing is changed.

    Answers that repeat a credential are named apart: they are kept as they were, unless `redact_answers` is
    on. Exit status 1 when something is damaged or a credential is in a request or in the log. A store that is
    named and not there is an error.
    """
    settings = gate_settings(store)
    with open_store(settings) as opened, open_log(settings) as log:
        with progress_bars() as watch:
            verified = verified_store(opened, log, settings, watch)
        index = opened.index_report()
        left_out = (*opened.left_out, *log.left_out)
        recordings, runs = (
            opened.stats().cassettes,
            sum(isinstance(each, RunRecord) for each in log.readable()),
        )
    ok = verified.ok(settings)
    if as_json:
        print_json(
            {
                "store": str(settings.store),
                "recordings": recordings,
                "runs": runs,
                "damaged": [
                    {name: value for name, value in asdict(each).items() if value is not None}
                    for each in verified.damaged
                ],
                "credentials": [each.to_json() for each in verified.credentials],
                "answers": [each.to_json() for each in verified.answers],
                "quarantined": index.quarantined,
                "left_out": [*left_out],
                "ok": ok,
            }
        )
    elif not recordings and not runs and ok:
        print_nothing("recordings", settings)
    else:
        _show_verified(verified, recordings, runs)
        _show_lines(f"{number(len(left_out))} left out when rules were added", left_out, "yellow")
        if index.quarantined:
            line = f"{plural(index.quarantined, 'recording')} cannot be matched under these settings"
            console().print(Text(line, style="yellow"))
    if not ok:
        raise typer.Exit(1)


def verified_store(store: Store, log: Log, settings: Settings, watch: Watch) -> Verified:
    """Check every digest and entry, and look for credentials by the store's and today's rules together."""
    wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    redactor = Redactor((*store.redaction, *wanted))
    damaged = [*store.check(watch("checking")), *log.check()]
    credentials: list[Credential] = []
    answers: list[Credential] = []
    progress, total = watch("looking for credentials"), store.stats().cassettes
    for done, record in enumerate(store.readable(), start=1):
        credentials += request_credentials(store, record, redactor)
        answers += stored_answer_credentials(store, record, redactor)
        progress(done, total)
    credentials += alias_credentials(store, redactor)
    credentials += log_credentials(log, redactor)
    return Verified(damaged, credentials, answers)


def _show_verified(verified: Verified, recordings: int, runs: int) -> None:
    screen = console()
    screen.print(Text(f"{plural(recordings, 'recording')}, {plural(runs, 'run')}", style="bold"))
    damaged, credentials, answers = verified.damaged, verified.credentials, verified.answers
    _show_lines(f"{number(len(damaged))} damaged", [each.problem for each in damaged], "red")
    _show_lines(
        plural(len(credentials), "credential"), [credential_line(each) for each in credentials], "red"
    )
    if verified.credentials:
        screen.print(Text("  `rewind maintain` redacts them, when a rule is new", style="dim"))
    _show_lines(
        f"{plural(len(answers), 'answer')} with a credential in it (kept as it came; redact_answers masks)",
        [credential_line(each) for each in answers],
        "yellow",
    )
    if not verified.damaged and not verified.credentials:
        screen.print(Text("sound, and no credential in any request", style="green"))


def credential_line(found: Credential) -> str:
    """Where a credential is, and which rule knows it, on one line."""
    step = "" if found.step is None else f" step {found.step}"
    place = found.cassette[:SHORT_ID] if found.cassette else f"run {found.run}{step}"
    if request := found.alias or found.pending:
        place = f"{'alias' if found.alias else 'pending request'} {request[:SHORT_ID]}"
    return f"{place}  {found.rule}  {found.where}"


def _show_lines(title: str, lines: Sequence[str], style: str) -> None:
    if not lines:
        return
    screen = console()
    screen.print(Text(title, style=style))
    for line in lines[:_SHOWN]:
        screen.print(Text(f"  {safe_line(line)}"), soft_wrap=True)
    if len(lines) > _SHOWN:
        screen.print(Text(f"  … and {number(len(lines) - _SHOWN)} more (--json lists them)", style="dim"))
