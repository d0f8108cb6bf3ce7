"""`rewind maintain`, and the group of verbs that keep a store in order: `verify` and `prune` with it.

JSON (`--json`):

    {"store", "recordings", "rules_added", "rewritten", "answers_redacted", "files_redacted",
     "left_out": [why, …], "indexed", "quarantined", "bytes_before", "bytes_after"}
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.text import Text

from rewind_proxy import settings as sources
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.cli.opening import JsonOption, print_nothing
from rewind_proxy.cli.output import console, facts, number, plural, print_json, safe_line, size
from rewind_proxy.cli.progress import progress_bars
from rewind_proxy.cli.prune import prune
from rewind_proxy.cli.settings_flags import reading_and, with_settings
from rewind_proxy.cli.verify import verify
from rewind_proxy.matching.opening import Opened, Progress, Watch, index_store, open_ready, rewrite_store
from rewind_proxy.matching.scanning import stored_answer_credentials
from rewind_proxy.porting.folder import read_in, redact_again, scan
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord, Store, is_store
from rewind_proxy.wire import HostTable

_PANEL = "Maintain"
_WORTH_COMPACTING = 16
"""A file is compacted when more than one in so many of its bytes holds nothing."""


def register(app: typer.Typer) -> None:
    """Add `maintain`, `verify` and `prune`."""
    app.command("maintain", rich_help_panel=_PANEL)(
        with_settings(maintain, reading_and("record_errors", "redact_answers", "cassettes"))
    )
    app.command("verify", rich_help_panel=_PANEL)(verify)
    app.command("prune", rich_help_panel=_PANEL)(prune)


@dataclass(frozen=True, slots=True)
class _Maintained:
    """What was done."""

    store: str
    recordings: int = 0
    rules_added: int = 0
    rewritten: int = 0
    answers_redacted: int = 0
    files_redacted: int = 0
    """In the folder of `cassettes`."""
    left_out: tuple[str, ...] = ()
    indexed: int = 0
    quarantined: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def maintain(as_json: JsonOption = False, *, flags: dict[str, object]) -> None:
    """Bring a store up to date: redact again if the rules have grown, index for these settings, compact.

    Proxies may go on meanwhile. One that was killed in the middle goes on where it was.
    """
    # Whatever CI says: this verb writes.
    settings = sources.load(flags={**flags, "mode": "auto"}, environ=os.environ, cwd=Path.cwd())
    done = _Maintained(str(settings.store))
    if is_store(settings.store) or (settings.cassettes and scan(settings.cassettes).files):
        with progress_bars() as watch:
            opened = open_ready(settings, HostTable(settings.hosts), watch)
            try:
                done = _maintained(opened, settings, watch)
            finally:
                opened.close()
    elif not as_json:
        print_nothing("recordings", settings)
        return
    if as_json:
        print_json({**asdict(done), "left_out": [*done.left_out]})
    else:
        _show(done)


def _maintained(opened: Opened, settings: Settings, watch: Watch) -> _Maintained:
    store, log, redactor = opened.store, opened.log, opened.reader.redactor
    prepared = opened.prepared
    rewritten, left_out = prepared.rewritten, prepared.dropped
    before = store.size() + log.size()
    answers = 0
    if settings.redact_answers:
        answers = sum(1 for _ in _answers_to_redact(store, redactor, watch("looking at answers")))
        if answers:
            report = rewrite_store(store, opened.reader, watch, answers=True)
            rewritten, left_out = report.rewritten, (*left_out, *report.dropped)
    files = 0
    if settings.cassettes:
        orphans = read_in(settings.cassettes, opened, settings, time.time(), watch).orphans
        left_out = (*left_out, *map(str, orphans))
        files = len(redact_again(settings.cassettes, opened, redactor if settings.redact_answers else None))
    store.release_quarantined()
    index = index_store(store, opened.reader, watch)
    for each in (store, log):
        if each.spare() * _WORTH_COMPACTING > each.size():
            each.compact()
    return _Maintained(
        store=str(store.path),
        recordings=store.stats().cassettes,
        rules_added=prepared.rules_added,
        rewritten=rewritten,
        answers_redacted=answers,
        files_redacted=files,
        left_out=left_out,
        indexed=index.indexed,
        quarantined=index.quarantined,
        bytes_before=before,
        bytes_after=store.size() + log.size(),
    )


def _answers_to_redact(store: Store, redactor: Redactor, progress: Progress) -> Iterator[CassetteRecord]:
    total = store.stats().cassettes
    for done, record in enumerate(store.readable(), start=1):
        if any(stored_answer_credentials(store, record, redactor)):
            yield record
        progress(done, total)


def _show(done: _Maintained) -> None:
    before, after = size(done.bytes_before), size(done.bytes_after)
    others = done.recordings - done.indexed - done.quarantined
    rows: list[tuple[str, str | Text]] = [
        ("store", safe_line(done.store)),
        ("recordings", number(done.recordings)),
        ("new rules", _count(done.rules_added)),
        ("redacted again", _count(done.rewritten)),
        ("answers redacted", _count(done.answers_redacted)),
        ("files written again", _count(done.files_redacted)),
        (
            "indexed",
            number(done.indexed) + (f" ({plural(others, 'side call')} beside: no index)" if others else ""),
        ),
        ("not matched", Text(_count(done.quarantined), style="red")),
        ("store and log", after if before == after else f"{before} → {after}"),
    ]
    screen = console()
    screen.print(facts(rows))
    if done.left_out:
        screen.print(Text(f"{plural(len(done.left_out), 'record')} could not be read:", style="red"))
    for why in done.left_out:
        screen.print(Text(f"  {safe_line(why)}"), soft_wrap=True)


def _count(count: int) -> str:
    return number(count) if count else ""
