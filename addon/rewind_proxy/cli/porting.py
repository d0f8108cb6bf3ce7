"""`rewind import` and `rewind export`: recordings in and out as files.

JSON (`--json`):

    import   {"store", "recordings", "known", "edited", "left": {why: count, …},
              "unknown_hosts": {host: count, …},
              "files": [{"file", "format", "recordings", "known", "left_out": ["place: why", …]}, …]}
    export   with `-o DIR`: {"folder", "recordings", "written", "unchanged", "replaced": [file, …],
                             "orphans": [{"file", "why"}, …]}; with `-o FILE`: {"file", "recordings"}

`known`: recordings that the store had already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy import settings as sources
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    open_store,
    print_nothing,
    reader_of,
    settings_for,
)
from rewind_proxy.cli.output import console, facts, number, plural, print_error, print_json, safe_line
from rewind_proxy.cli.progress import progress_bars
from rewind_proxy.cli.proxy_child import child_variables
from rewind_proxy.cli.settings_flags import reading_and, with_settings
from rewind_proxy.errors import PortingError, StoreError
from rewind_proxy.handover import FLOWS_TOOL
from rewind_proxy.matching.opening import Progress, Watch, open_ready
from rewind_proxy.porting import folder as folders
from rewind_proxy.porting import text
from rewind_proxy.porting.exporting import Exported, Exporter, in_order
from rewind_proxy.porting.keeping import Keeper, Outcome
from rewind_proxy.porting.sources import Source
from rewind_proxy.porting.sources import sources as sources_at
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord, Log, Store
from rewind_proxy.wire import HostTable

_PANEL = "Share"
_SHOWN = 10
_LINES = ".jsonl"


def register(app: typer.Typer) -> None:
    """Add `import` and `export`."""
    app.command("import", rich_help_panel=_PANEL)(
        with_settings(import_command, reading_and("session", "record_errors", "redact_answers"))
    )
    app.command("export", rich_help_panel=_PANEL)(export_command)


def import_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Files, or folders of `rewind export`.")
    ],
    as_json: JsonOption = False,
    *,
    flags: dict[str, object],
) -> None:
    """Import recordings: flows of mitmproxy, HAR, cassettes of vcrpy, or what `rewind export` wrote.

    What a file is, is told by its content. It is redacted before anything is written, and only complete
    answers become recordings. `--session` names the session that they belong to, `--hosts HOST=WIRE` a host
    that Rewind does not know by itself. Exit status 1 when nothing could be imported.
    """
    # Whatever CI says: this verb writes.
    settings = sources.load(flags={**flags, "mode": "auto"}, environ=os.environ, cwd=Path.cwd())
    found = [each for file in files for each in sources_at(file, _flow_lines)]
    with progress_bars() as watch:
        opened = open_ready(settings, HostTable(settings.hosts), watch)
        try:
            keeper = Keeper(opened, settings, time.time())
            with opened.store.alone():
                done = [(each, _import(each, keeper, watch)) for each in found]
        finally:
            opened.close()
    total = Outcome()
    for _, outcome in done:
        total.add(outcome)
    if as_json:
        print_json(_as_json(settings, total, done))
    else:
        _show(settings, total)
        _show_empty(done)
    if not total.recordings and not total.known:
        raise typer.Exit(1)


def _import(source: Source, keeper: Keeper, watch: Watch) -> Outcome:
    outcome = Outcome()
    run = keeper.file_run(source.digest, source.file.stem)
    tell = watch(f"importing {safe_line(source.file.name)}")
    try:
        for done, entry in enumerate(source.entries, start=1):
            keeper.keep(entry, run, outcome)
            tell(done, source.count or done)
    finally:
        keeper.finish()
    return outcome


def _flow_lines(file: Path) -> Iterator[str]:
    """The lines of a flow file, from the child that reads it. Raises `PortingError`."""
    words = [sys.executable, "-m", "rewind_proxy.mitm", FLOWS_TOOL, str(file.absolute())]
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(  # noqa: S603  # our own module, no shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=child_variables(None),
            encoding="utf-8",
        )
        with child:
            assert child.stdout is not None
            yield from child.stdout
        if child.returncode:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").splitlines()
            raise PortingError(f"{file}: {lines[-1] if lines else 'the flows cannot be read'}")


def _as_json(settings: Settings, total: Outcome, done: list[tuple[Source, Outcome]]) -> JsonObject:
    files: list[JsonValue] = [
        {
            "file": str(source.file),
            "format": source.format,
            "recordings": outcome.recordings,
            "known": outcome.known,
            "left_out": [*outcome.places],
        }
        for source, outcome in done
    ]
    return {
        "store": str(settings.store),
        "recordings": total.recordings,
        "known": total.known,
        "edited": total.edited,
        "left": dict(total.left.items()),
        "unknown_hosts": dict(total.unknown_hosts.items()),
        "files": files,
    }


def _show(settings: Settings, total: Outcome) -> None:
    screen = console()
    rows: list[tuple[str, str | Text]] = [
        ("store", safe_line(str(settings.store))),
        ("imported", plural(total.recordings, "recording")),
        ("edited by hand", number(total.edited) if total.edited else ""),
        ("there already", number(total.known) if total.known else ""),
        ("left out", number(total.left.total()) if total.left else ""),
    ]
    screen.print(facts(rows))
    for reason, count in total.left.most_common():
        screen.print(Text(f"  {number(count)} × {safe_line(reason)}"), soft_wrap=True)
    for place in total.places[:_SHOWN]:
        screen.print(Text(f"    {safe_line(place)}", style="dim"), soft_wrap=True)
    if len(total.places) > _SHOWN:
        screen.print(Text(f"    … and {number(len(total.places) - _SHOWN)} more: see --json", style="dim"))
    for host, count in total.unknown_hosts.most_common():
        name = safe_line(host)
        screen.print(
            Text(f"{name} is no known host: {plural(count, 'call')} left out ", style="yellow").append(
                f"(--hosts {name}=WIRE, or `hosts` in rewind.toml)", style="dim"
            ),
            soft_wrap=True,
        )


def _show_empty(done: list[tuple[Source, Outcome]]) -> None:
    for source, found in done:
        if not (found.recordings or found.known or found.left or found.unknown_hosts):
            what = f"{source.file} has no exchange in it ({source.format})"
            console().print(Text(safe_line(what), style="yellow"), soft_wrap=True)


def export_command(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID…]", help="Recordings; all of the store without.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="S", help="Those of the runs of a session.", show_default=False),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Those of a run: its id, the start of one, or `last`."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="PATH", help="A folder, or a file named *.jsonl.", show_default=False
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export recordings as text to read, review and commit: deterministic, redacted as the store is.

    Into a folder each recording goes as a file of its own, named by its content; what is there already stays
    as it is. A file named *.jsonl, or standard output without `-o`, gets one line a recording.
    """
    settings = settings_for(store)
    wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    reader = reader_of(settings)
    with open_store(settings, reader) as opened, open_log(settings) as log:
        records = _chosen(opened, log, ids or [], session, run)
        if not records and not opened.stats().cassettes:
            print_nothing("recordings", settings, stderr=True)  # standard output is for recordings
            raise typer.Exit(1)
        if not records:
            raise StoreError(_none_chosen(session, run))
        if not set(wanted) <= set(opened.redaction):
            raise StoreError(
                f"{opened.path} was written under a shorter list of redaction rules: "
                "run `rewind maintain` first"
            )
        answers = Redactor(opened.redaction) if settings.redact_answers else None
        exporter = Exporter(opened, log, reader, answers)
        with progress_bars() as watch:
            exported = _watched(exporter.export(in_order(records)), watch("exporting"), len(records))
            if output is None:
                for each in exported:
                    typer.echo(f"{text.line(each.document)}\n".encode(), nl=False)
            elif output.suffix == _LINES:
                _to_file(output, list(exported), as_json=as_json)
            elif output.is_file() or output.suffix == ".json":
                raise PortingError(f"{output}: name a folder, or a file that ends in {_LINES}")
            else:
                whole = not ids and session is None and run is None
                _to_folder(output, exported, whole=whole, as_json=as_json)


def _watched(exported: Iterator[Exported], tell: Progress, total: int) -> Iterator[Exported]:
    for done, each in enumerate(exported, start=1):
        yield each
        tell(done, total)


def _chosen(
    store: Store, log: Log, ids: list[str], session: str | None, run: str | None
) -> list[CassetteRecord]:
    """The recordings that are asked for. Raises `StoreError` for an id, run or session that is not there."""
    runs: set[str] | None = None
    if session is not None:
        runs = {each.id for each in log.runs() if each.session == session}
        if not runs:
            raise StoreError(f"no run of a session {session!r}: `rewind runs` lists them")
    if run is not None:
        one = {run} if run in store.runs_present() else {log.run(run).id}
        runs = one if runs is None else runs & one
    wanted = {store.cassette(each).id for each in ids}
    if runs is None:
        records = list(store.cassettes())
    else:
        records = [record for each in sorted(runs) for record in store.cassettes(run=each)]
    return [record for record in records if not wanted or record.id in wanted]


def _none_chosen(session: str | None, run: str | None) -> str:
    """Why a choice among recordings came to nothing."""
    of = " of ".join(
        [
            *([f"run {run}"] if run is not None else []),
            *([f"session {session!r}"] if session is not None else []),
        ]
    )
    return (
        f"no such recording was made by {of}: what it replayed another run recorded "
        "(`rewind ls` lists all recordings, `rewind steps RUN` what a run replayed)"
    )


def _to_file(file: Path, exported: list[Exported], *, as_json: bool) -> None:
    folders.write_file(file, "".join(f"{text.line(each.document)}\n" for each in exported))
    if as_json:
        print_json({"file": str(file), "recordings": len(exported)})
    else:
        console().print(f"{plural(len(exported), 'recording')} in {safe_line(str(file))}", soft_wrap=True)


def _to_folder(folder: Path, exported: Iterator[Exported], *, whole: bool, as_json: bool) -> None:
    done = folders.write(folder, exported, whole=whole)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "recordings": len(done.written) + done.unchanged,
                "written": len(done.written),
                "unchanged": done.unchanged,
                "replaced": [str(file) for file in done.replaced],
                "orphans": [{"file": each.name, "why": each.why} for each in done.orphans],
            }
        )
        return
    screen = console()
    screen.print(
        facts(
            [
                ("folder", safe_line(str(folder))),
                ("written", plural(len(done.written), "recording")),
                ("unchanged", number(done.unchanged) if done.unchanged else ""),
            ]
        )
    )
    for file in done.replaced:
        screen.print(Text(f"  replaced: {safe_line(str(file))}", style="dim"), soft_wrap=True)
    for orphan in done.orphans:
        print_error(f"not touched: {orphan}")
