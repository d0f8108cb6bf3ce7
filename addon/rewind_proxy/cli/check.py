"""`rewind check`: is a store fit to be committed and replayed in CI: nothing in it unused, secret or stale.

JSON (`--json`):

    {"store", "recordings", "findings": [{"kind", "what", "mend", "cassette"?}, …], "notes": [text, …], "ok"}

`kind` is `unused` (`prune --unused` would delete it: no run in the log replayed it, and the newest run did
not record it), `secret` or `damaged` (as `verify` finds them, or in the folder `cassettes`) or `stale`
(written by other versions, under other settings, or under a shorter list of redaction rules). `mend` is the
command that mends it.

Exit status: 1 when anything was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal

import typer
from rich.text import Text

from rewind_proxy.canonical.fingerprint import HASH_VERSION
from rewind_proxy.canonical.model import JsonValue
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
from rewind_proxy.cli.output import console, number, plural, print_json, safe_line, when
from rewind_proxy.cli.progress import progress_bars
from rewind_proxy.cli.verify import credential_line, verified_store
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.opening import Watch
from rewind_proxy.matching.pruning import never_replayed, uses
from rewind_proxy.matching.scanning import in_request
from rewind_proxy.porting.folder import Orphan, recording_in, scan
from rewind_proxy.settings import Settings
from rewind_proxy.store import FORMAT_VERSION, CassetteRecord, Log, Store, log_path

_PANEL = "Maintain"
_SHOWN = 20
_MAINTAIN = "rewind maintain"
_PRUNE = "rewind prune --unused --yes"

Kind = Literal["unused", "secret", "damaged", "stale"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that keeps a store from being fit."""

    kind: Kind
    what: str
    mend: str
    """The command, or where there is none what to do, in a few words."""
    cassette: str | None = None


def register(app: typer.Typer) -> None:
    """Add `check`."""
    app.command("check", rich_help_panel=_PANEL)(check)


def check(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Check for CI that nothing in a store is unused, secret or stale. Nothing is changed.

    Unused is what `prune --unused` would delete. Exit status 1 when anything was found; each finding comes
    with the command that mends it. A store that has no recordings has nothing to find, but one that is named
    and not there is an error.
    """
    settings = gate_settings(store)
    notes: list[str] = []
    with open_store(settings) as opened, open_log(settings) as log:
        with progress_bars() as watch:
            findings = [
                *_unused(opened, log, settings, notes),
                *_unsafe(opened, log, settings, watch),
                *_in_folder(opened, settings),
                *_stale(opened, log, settings),
            ]
        recordings = opened.stats().cassettes
    if as_json:
        listed: list[JsonValue] = [
            {name: value for name, value in asdict(each).items() if value is not None} for each in findings
        ]
        print_json(
            {
                "store": str(settings.store),
                "recordings": recordings,
                "findings": listed,
                "notes": [*notes],
                "ok": not findings,
            }
        )
    elif not recordings and not findings:
        print_nothing("recordings", settings)
    else:
        _show(findings, notes, recordings)
    if findings:
        raise typer.Exit(1)


def _unused(store: Store, log: Log, settings: Settings, notes: list[str]) -> Iterator[Finding]:
    found = uses(store.readable(), store.aliases.all(), log)
    if not found.last:
        return
    try:
        chosen = never_replayed(found)
    except StoreError:  # the log has no runs
        notes.append(f"which recordings are used is not known: {log_path(store.path)} has no runs, run first")
        return
    files = {} if settings.cassettes is None else scan(settings.cassettes).files
    for record in store.readable():
        if record.id in chosen:
            what = f"{_named(record)}, recorded {when(record.recorded_at)}"
            if kept := files.get((record.run, record.exact, record.recorded_at)):
                what = f"{what}, {', '.join(map(str, kept))}"
            # The store takes from the folder whatever it does not have.
            mend = f"delete its file, then {_PRUNE}" if kept else _PRUNE
            yield Finding("unused", what, mend, record.id)


def _unsafe(store: Store, log: Log, settings: Settings, watch: Watch) -> Iterator[Finding]:
    verified = verified_store(store, log, settings, watch)
    for each in verified.damaged:
        yield Finding("damaged", each.problem, "record it again, or restore the file", each.cassette)
    secrets = [*verified.credentials, *(verified.answers if settings.redact_answers else ())]
    for found in secrets:
        yield Finding("secret", credential_line(found), _MAINTAIN, found.cassette)


def _in_folder(store: Store, settings: Settings) -> Iterator[Finding]:
    """The files of the folder `cassettes` that are no recordings, or no more; and what is secret in them."""
    if settings.cassettes is None:
        return
    found = scan(settings.cassettes)
    for orphan in found.orphans:
        yield Finding("damaged", str(orphan), "restore or delete the file")
    redactor = Redactor((*store.redaction, *_wanted(settings)))
    for file in sorted(file for files in found.files.values() for file in files):
        kept = recording_in(file)
        held = in_request(kept.request, kept.body, redactor)
        redactor.value({"session": kept.session}, held)
        for each in held:
            yield Finding("secret", f"{Orphan(file, '').name}  {each.rule}  {each.path}", _MAINTAIN)


def _wanted(settings: Settings) -> tuple[str, ...]:
    return tuple(rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off))


def _stale(store: Store, log: Log, settings: Settings) -> Iterator[Finding]:
    for record in store.readable():
        for name, its, ours in (
            ("format", record.format_version, FORMAT_VERSION),
            ("hash", record.hash_version, HASH_VERSION),
        ):
            if its != ours:
                what = f"{_named(record)}: {name} version {its}, this Rewind's is {ours}"
                yield Finding("stale", what, _MAINTAIN, record.id)
    wanted = _wanted(settings)
    for place, is_empty, rules in (
        (store.path, not store.stats().cassettes, store.redaction),
        (log_path(store.path), log.is_empty(), log.redaction),
    ):
        missing = [rule for rule in wanted if rule not in rules]
        if missing and not is_empty:
            what = f"{place} was written without {plural(len(missing), 'redaction rule')} of today"
            yield Finding("stale", what, _MAINTAIN)
    index = store.index_report()
    if store.needs_index():
        left = store.count("model") - index.indexed - index.quarantined
        what = f"{plural(left, 'recording')} not indexed under the settings in force"
        yield Finding("stale", what, _MAINTAIN)
    if index.quarantined:
        what = f"{plural(index.quarantined, 'recording')} cannot be matched under the settings in force"
        yield Finding("stale", what, "rewind verify names damage; record them again")


def _named(record: CassetteRecord) -> str:
    request = record.request
    return f"{record.id[:SHORT_ID]}  {request.method} {request.host}{request.path}"


def _show(findings: list[Finding], notes: list[str], recordings: int) -> None:
    screen = console()
    screen.print(Text(plural(recordings, "recording"), style="bold"))
    for (kind, mend), group in groupby(findings, key=lambda each: (each.kind, each.mend)):
        found = list(group)
        title = Text(f"{number(len(found))} {kind}", style="red")
        screen.print(title.append(f" · {mend}", style="default"), soft_wrap=True)
        for each in found[:_SHOWN]:
            screen.print(Text(f"  {safe_line(each.what)}"), soft_wrap=True)
        if len(found) > _SHOWN:
            more = f"  … and {number(len(found) - _SHOWN)} more (--json lists them)"
            screen.print(Text(more, style="dim"))
    for note in notes:
        screen.print(Text(safe_line(note), style="yellow"), soft_wrap=True)
    if not findings:
        known = "nothing secret or stale" if notes else "nothing unused, secret or stale"
        screen.print(Text(known, style="green"))
