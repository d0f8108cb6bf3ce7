"""`rewind test-match`: would one request be answered by the recording of another, and why not.

JSON, for two request files (DESIGN §12):

    {"match": "exact"|"normalised"|null, "differences": [{"path", "a", "b"}], "rules": [id, …],
     "would_match_with": [settings, …]}

`differences` is empty when they match. `rules` are what made a normalised match possible: ids of scrub rules,
`ignore:<parameter>`, `tail_n`. Each of `would_match_with` is a change of settings that was tried and helps.
For a table (`--cases --json`): `{"cases", "differ": [{"id", "expected", "got", "difference"}]}`.

Exit status: 0 when B would be answered, or every case is as expected; else 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from rewind_proxy import settings as sources
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.canon import read_document, settings_reader
from rewind_proxy.cli.case_table import CaseTableError, read_table
from rewind_proxy.cli.opening import JsonOption
from rewind_proxy.cli.output import TIER_STYLES, as_text, console, plural, print_json, safe_line
from rewind_proxy.cli.request_file import host_of, request_from
from rewind_proxy.cli.settings_flags import with_settings
from rewind_proxy.explain.miss import difference_lines
from rewind_proxy.matching.comparison import Comparison, compare
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.settings import Settings

Expected = Literal["exact", "normalised", "different"]
_EXPECTED: tuple[Expected, ...] = ("exact", "normalised", "different")
_SHOWN = 5
_NOT_ANSWERED = 1


def register(app: typer.Typer) -> None:
    """Add `test-match`."""
    app.command("test-match", rich_help_panel="Understand")(with_settings(match_command))


def match_command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="A B", help="Two request files: what was recorded, and what is asked."),
    ] = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="F.jsonl", help="Check a table of pairs instead.")
    ] = None,
    as_json: JsonOption = False,
    *,
    flags: dict[str, object],
) -> None:
    """Say whether request B would be answered by a recording of request A, and if not, why.

    Exit status 0 when it would, 1 when it would not. --cases checks a table of pairs ({"id", "about", "a",
    "b", "expect", "settings"}), prints those that differ, and exits with 1 if any do.
    """
    settings = sources.load(flags=flags, environ=os.environ, cwd=Path.cwd())
    if cases is not None:
        if files:
            raise typer.BadParameter("give two request files, or --cases, not both")
        _check(cases, settings, as_json=as_json)
        return
    if files is None or len(files) != 2:
        raise typer.BadParameter("give two request files: what was recorded, and what is asked")
    reader = settings_reader(settings)
    a, b = (_reading(read_document(file), reader, file) for file in files)
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
        text.append(_difference_text(difference))
    left = len(comparison.differences) - _SHOWN
    if left > 0:
        text.append(f"\n  … and {plural(left, 'more place')} (--json lists them)", style="dim")
    for change in comparison.would_match_with:
        text.append(f"\n  would match with: {safe_line(change)}", style="yellow")
    return text


def _difference_text(difference: Difference) -> Text:
    return Text("\n").append_text(as_text(difference_lines(difference.to_json()), indent=2))


# -- tables


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a case gave."""

    id: str
    expected: Expected
    got: str
    difference: Difference | None

    def to_json(self) -> JsonObject:
        difference = self.difference.to_json() if self.difference else None
        return {"id": self.id, "expected": self.expected, "got": self.got, "difference": difference}

    def text(self) -> Text:
        text = (
            Text()
            .append(safe_line(self.id), style="bold")
            .append(f"  expected {self.expected}, got {self.got}", style="red")
        )
        return text.append(_difference_text(self.difference)) if self.difference else text


def _check(file: Path, settings: Settings, *, as_json: bool) -> None:
    outcomes = list(_outcomes(file, settings))
    differ = [outcome for outcome in outcomes if outcome.got != outcome.expected]
    if as_json:
        print_json({"cases": len(outcomes), "differ": [outcome.to_json() for outcome in differ]})
    else:
        screen = console()
        for outcome in differ:
            screen.print(outcome.text(), soft_wrap=True)
        count = f"{plural(len(outcomes), 'case')}, {len(differ)} differ"
        screen.print(Text(count, style="bold red" if differ else "green"))
    if differ:
        raise typer.Exit(1)


def _outcomes(file: Path, settings: Settings) -> Iterator[_Outcome]:
    plain = settings_reader(settings)
    for place, case in read_table(file):
        changed = case.get("settings", {})
        if not isinstance(changed, dict):
            raise CaseTableError(f'{place}: "settings" is an object of keys of rewind.toml')
        in_force = sources.with_keys(settings, changed, place) if changed else settings
        reader = settings_reader(in_force) if changed else plain
        yield _outcome(case, place, reader, in_force)


def _outcome(case: JsonObject, place: str, reader: RequestReader, settings: Settings) -> _Outcome:
    expected = next((each for each in _EXPECTED if each == case.get("expect")), None)
    if expected is None:
        raise CaseTableError(f'{place}: "expect" is one of {", ".join(_EXPECTED)}')
    a, b = (_reading(case.get(side), reader, f"{place}, {side}") for side in ("a", "b"))
    comparison = compare(a, b, reader, settings.match)
    got: str = comparison.tier or "different"
    if got == "exact" and a.fingerprint != b.fingerprint:
        got = "exact, but the normalised fingerprints differ"
    first = comparison.differences[0] if comparison.differences else None
    return _Outcome(str(case.get("id", place)), expected, got, first)


def _reading(document: JsonValue, reader: RequestReader, place: str) -> Reading:
    request = request_from(document, place)
    return reader.read(request, host_of(reader.hosts, request, place))
