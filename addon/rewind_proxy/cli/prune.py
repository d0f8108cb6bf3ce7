"""`rewind prune`: delete recordings that are no longer needed. It lists them first.

JSON (`--json`): `{"store", "recordings": [cassette, …], "aliases", "bytes", "deleted", "bytes_freed"}`,
cassettes as in store/records.py. `aliases` counts those that lead to them, and go with them; `bytes` is what
the answers hold; `bytes_freed` is what the files have lost, once deleted.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    print_nothing,
    reader_of,
    settings_for,
)
from rewind_proxy.cli.output import Column, console, listing, number, plural, print_json, size, when
from rewind_proxy.matching.pruning import never_replayed, outside_newest_runs, unused_since, uses
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord, Log, Store, is_store, log_path

_DAY = 24 * 60 * 60


def prune(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID…]", help="Recordings to delete, used or not.", show_default=False),
    ] = None,
    keep_runs: Annotated[
        int | None,
        typer.Option(
            "--keep-runs", metavar="N", min=1, help="Keep what the newest N runs recorded or replayed."
        ),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--unused-since", metavar="DAYS", min=0, help="Delete what was last used more than DAYS days ago."
        ),
    ] = None,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Delete what no run replayed, but for what the newest run recorded."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete; without it they are listed.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List recordings that are no longer needed, and with --yes delete them.

    For --keep-runs and --unused-since a recording is used by a run that recorded or replayed it, for --unused
    by one that replayed it. Proxies may go on meanwhile.
    """
    if (keep_runs is not None) + (since is not None) + unused + bool(ids) != 1:
        raise typer.BadParameter("give one of --keep-runs N, --unused-since DAYS and --unused, or ids")
    settings = settings_for(store)
    if not is_store(settings.store):
        if as_json:
            print_json(_result(settings, []))
        else:
            print_nothing("recordings", settings)
        return
    digest = reader_of(settings).settings_digest
    with Store.open(settings.store, settings_digest=digest, readonly=not yes, create=False) as opened:
        with open_log(settings) as log:
            approved = opened.aliases.all()
            found = uses(opened.readable(), approved, log)
        if ids:
            chosen = {opened.cassette(each).id for each in ids}
        elif keep_runs is not None:
            chosen = outside_newest_runs(found, keep_runs)
        elif since is not None:
            chosen = unused_since(found, time.time() - since * _DAY)
        else:
            chosen = never_replayed(found)
        records = [record for record in opened.readable() if record.id in chosen]
        aliases = sum(alias.cassette in chosen for alias in approved)
        freed = 0
        if yes and records:
            before = opened.size()
            opened.delete(sorted(chosen))
            opened.compact()
            if is_store(log_path(settings.store)):
                with Log.open(settings.store) as log:
                    log.pending.forget(chosen)
            freed = before - opened.size()
    if as_json:
        print_json(_result(settings, records, aliases, deleted=yes and bool(records), freed=freed))
    else:
        _show(records, aliases, found.last, deleted=yes, freed=freed)


def _result(
    settings: Settings,
    records: list[CassetteRecord],
    aliases: int = 0,
    *,
    deleted: bool = False,
    freed: int = 0,
) -> JsonObject:
    return {
        "store": str(settings.store),
        "recordings": [record.model_dump(mode="json") for record in records],
        "aliases": aliases,
        "bytes": _bytes(records),
        "deleted": deleted,
        "bytes_freed": freed,
    }


def _bytes(records: list[CassetteRecord]) -> int:
    answers = {record.answer_sha256: record.answer_length for record in records}
    return sum(answers.values())


def _show(
    records: list[CassetteRecord], aliases: int, last: dict[str, float], *, deleted: bool, freed: int
) -> None:
    screen = console()
    if not records:
        screen.print("Nothing to delete.")
        return
    columns = [
        Column("id", [Text(record.id[:SHORT_ID], style="cyan") for record in records]),
        Column("recorded", [when(record.recorded_at) for record in records]),
        Column("last used", [when(last[record.id]) for record in records]),
        Column("run", [record.run for record in records], from_width=90),
        Column("size", [size(record.answer_length) for record in records], justify="right"),
        Column(
            "request", [f"{r.request.method} {r.request.host}{r.request.path}" for r in records], cut=True
        ),
    ]
    screen.print(listing(columns, screen.width))
    count = plural(len(records), "recording")
    if aliases:
        count += f" and {number(aliases)} {'alias' if aliases == 1 else 'aliases'}"
    if deleted:
        screen.print(Text(f"{count} deleted, {size(freed)} given back to the disk", style="green"))
    else:
        held = size(_bytes(records))
        screen.print(
            Text(f"{count}, {held} of answers. Nothing was deleted: --yes deletes them.", style="bold")
        )
