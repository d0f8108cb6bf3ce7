"""`rewind test-match`: would one request be answered by the recording of another, and why not.

JSON, for two request files (DESIGN §12):

    {"match": "exact"|"normalised"|null, "differences": [{"path", "a", "b"}], "rules": [id, …],
     "would_match_with": [settings, …]}

`differences` is empty when they match. `rules` are what made a normalised match possible: ids of scrub rules,
`ignore:<parameter>`, `tail_n`. Each of `would_match_with` is a change of settings that was tried and helps.
Tables (`--cases`) are case_check.py's.

Exit status: 0 when B would be answered, or every case is as expected; else 1.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy import settings as sources
from rewind_proxy.cli.canon import read_document, settings_reader
from rewind_proxy.cli.case_check import check_table, difference_text
from rewind_proxy.cli.opening import JsonOption
from rewind_proxy.cli.output import TIER_STYLES, console, plural, print_json, safe_line
from rewind_proxy.cli.request_file import read_request
from rewind_proxy.cli.settings_flags import reading_and, with_settings
from rewind_proxy.matching.comparison import Comparison, compare
from rewind_proxy.matching.reading import Reading

_SHOWN = 5
_NOT_ANSWERED = 1


def register(app: typer.Typer) -> None:
    """Add `test-match`."""
    app.command("test-match", rich_help_panel="Understand")(
        with_settings(match_command, reading_and("match"))
    )


def match_command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="A B", help="Two request files: what was recorded, and what is asked."),
    ] = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="F.jsonl", help="Check a table of cases instead.")
    ] = None,
    as_json: JsonOption = False,
    *,
    flags: dict[str, object],
) -> None:
    """Say whether request B would be answered by a recording of request A, and if not, why.

    Exit status 0 when it would, 1 when it would not. --cases checks a table of pairs ({"id", "about", "a",
    "b", "expect", "settings"}) or of credentials ({"id", "about", "request", "gone", "kept", "settings"}),
    prints the lines that differ, and exits with 1 if any do.
    """
    settings = sources.load(flags=flags, environ=os.environ, cwd=Path.cwd())
    if cases is not None:
        if files:
            raise typer.BadParameter("give two request files, or --cases, not both")
        differ = check_table(cases, settings, as_json=as_json)
        raise typer.Exit(_NOT_ANSWERED if differ else 0)
    if files is None or len(files) != 2:
        raise typer.BadParameter("give two request files: what was recorded, and what is asked")
    reader = settings_reader(settings)
    a, b = (read_request(read_document(file), reader, file) for file in files)
    comparison = compare(a, b, reader, settings.match)
    if as_json or not sys.stdout.isatty():
        print_json(comparison.to_json())
    else:
        console().print(comparison_text(comparison, a, b), soft_wrap=True)
    if comparison.tier is None:
        raise typer.Exit(_NOT_ANSWERED)


def comparison_text(comparison: Comparison, a: Reading, b: Reading) -> Text:
    """A comparison as a person reads it."""
    if comparison.tier is not None:
        text = Text("match ").append(comparison.tier, style=TIER_STYLES[comparison.tier])
        if comparison.rules:
            text.append(f"\n  through {safe_line(', '.join(comparison.rules))}", style="cyan")
        return text
    text = Text().append("no match", style=TIER_STYLES["miss"])
    for reading in (a, b):
        if reading.endpoint.cls not in ("model", "side"):
            text.append(f"\n  {reading.endpoint.cls} requests are never recorded")
    for difference in comparison.differences[:_SHOWN]:
        text.append(difference_text(difference))
    left = len(comparison.differences) - _SHOWN
    if left > 0:
        text.append(f"\n  … and {plural(left, 'more place')} (--json lists them)", style="dim")
    for change in comparison.would_match_with:
        text.append(f"\n  would match with: {safe_line(change)}", style="yellow")
    return text
