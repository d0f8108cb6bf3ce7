"""How the looking verbs get at a store: its settings, read-only, a missing one being an empty one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.cli.output import console, plural, safe_line
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.reading import RequestReader
from rewind_proxy.porting.folder import scan
from rewind_proxy.settings import DEFAULT_STORE, Settings, load, resolve
from rewind_proxy.store import Log, StepRecord, Store, is_store, log_path
from rewind_proxy.wire import HostTable

STORE_HELP = f"Folder of the recordings (default {DEFAULT_STORE})."
StoreOption: TypeAlias = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help=STORE_HELP, show_default=False)
]
_DIGITS = 9
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def settings_for(store: Path | None) -> Settings:
    """The settings in force here, `--store` included. Raises `SettingsError`."""
    return load(flags={"store": store}, environ=os.environ, cwd=Path.cwd())


def gate_settings(store: Path | None) -> Settings:
    """The same for a verb that passes or fails a store: one that is named has to be there.

    Raises `StoreError` where it is not: a misspelt name would pass as an empty store.
    """
    found = resolve(flags={"store": store}, environ=os.environ, cwd=Path.cwd())
    source, path = found.sources["store"], found.settings.store
    if source != "default" and not is_store(path):
        raise StoreError(f"{source}: there is no store at {path}: record first, or name another with --store")
    return found.settings


def reader_of(settings: Settings) -> RequestReader:
    """What reads stored requests: they are redacted already, so it needs no rules of redaction."""
    return RequestReader(HostTable(settings.hosts), Redactor(()), settings.match_settings, settings.max_body)


def open_store(settings: Settings, reader: RequestReader | None = None) -> Store:
    """The store, for reading only. Raises `StoreError`."""
    reader = reader or reader_of(settings)
    return Store.open(settings.store, settings_digest=reader.settings_digest, readonly=True)


def open_log(settings: Settings) -> Log:
    """The log of the store, for reading only. Raises `StoreError`."""
    return Log.open(settings.store, readonly=True)


def step_named(name: str, log: Log, store: Store | None = None) -> StepRecord:
    """The step `RUN.NUMBER`, of which the run may be the start of an id, or `last`.

    Raises `StoreError`, which says what `name` is instead: a run, or a recording of `store`.
    """
    run, _, step_number = name.rpartition(".")
    if not run or not step_number.isdecimal() or len(step_number) > _DIGITS:
        raise StoreError(f"{safe_line(name)} {_no_step(name, log, store)}")
    return log.step(log.run(run).id, int(step_number))


def _no_step(name: str, log: Log, store: Store | None) -> str:
    how = "a step is RUN.NUMBER, or last.NUMBER"
    with suppress(StoreError):
        run = log.run(name).id
        return f"is a run: {how}, as {'last' if name == 'last' else run}.1 (`rewind steps {name}` lists them)"
    if store is not None:
        with suppress(StoreError):
            store.cassette(name)
            return f"is a recording, not a step: {how}; `rewind show {name}` shows the recording"
    return f"is no step: {how} (`rewind steps last` lists them)"


@dataclass(frozen=True, slots=True)
class Desk:
    """A store and its log, open, and the reader of requests that goes with them."""

    settings: Settings
    store: Store
    log: Log
    reader: RequestReader


@contextmanager
def open_desk(settings: Settings, *, write: bool) -> Iterator[Desk]:
    """Store and log for the verbs that decide; what is written goes through every rule of redaction.

    Neither is made in a project that has none. Raises `StoreError`.
    """
    logged = write and is_store(log_path(settings.store))
    stored = logged or (write and is_store(settings.store))
    wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    digest = reader_of(settings).settings_digest
    with ExitStack() as stack:
        store = stack.enter_context(
            Store.open(settings.store, settings_digest=digest, redaction=wanted, readonly=not stored)
        )
        log = stack.enter_context(Log.open(settings.store, redaction=wanted, readonly=not logged))
        rules = tuple(dict.fromkeys((*store.redaction, *wanted)))
        hosts = HostTable(settings.hosts)
        reader = RequestReader(hosts, Redactor(rules), settings.match_settings, settings.max_body)
        yield Desk(settings, store, log, reader)


def print_nothing(what: str, settings: Settings, *, stderr: bool = False) -> None:
    """Say that there is nothing to look at, and how to get something. Raises `PortingError`."""
    out = console(stderr=stderr)
    out.print(Text(f"No {what} in {safe_line(str(settings.store))}."), soft_wrap=True)
    if settings.cassettes and (found := scan(settings.cassettes).files):
        kept = f"{safe_line(str(settings.cassettes))} has {plural(len(found), 'recording')}"
        out.print(
            Text(f"{kept}: the next run reads in what is there, or rewind maintain.", style="dim"),
            soft_wrap=True,
        )
        return
    out.print(Text('Record some: rewind run -- codex exec "…"   (or see it work: rewind demo)', style="dim"))
