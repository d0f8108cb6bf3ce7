"""What `rewind run` prints when its command has ended: one line of counts, and each miss explained."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.amounts import dollars
from rewind_proxy.cli.output import TIER_STYLES, as_text, console, safe_line
from rewind_proxy.explain import summary
from rewind_proxy.explain.miss import miss_lines

_MISSES_SHOWN = 5


def print_summary(report: JsonObject, reason: str, log: Path | None, faults: str = "") -> None:
    """Print the report of a run on standard error, where it does not mix with the command's output."""
    screen = console(stderr=True)
    screen.print(headline(report, reason), soft_wrap=True)
    misses = report["misses"] if isinstance(report["misses"], list) else []
    for miss in misses[:_MISSES_SHOWN]:
        if isinstance(miss, dict):
            screen.print(miss_text(miss), soft_wrap=True)
    if len(misses) > _MISSES_SHOWN:
        screen.print(
            f"  … and {len(misses) - _MISSES_SHOWN} more: rewind steps last (all of it with --report)"
        )
    print_orphans(report)
    if (elsewhere := report.get("log")) is not None:
        screen.print(
            Text(
                f"  the store cannot be written: this run is logged in {safe_line(str(elsewhere))}; "
                "to answer a miss, copy the store and replay there",
                style="yellow",
            ),
            soft_wrap=True,
        )
    if faults:  # what they made is counted as passed or as a hit
        screen.print(Text(f"  with faults on purpose: {safe_line(faults)}", style="yellow"), soft_wrap=True)
    if reason:
        child = report["child_exit"]
        screen.print(
            Text(f"  {reason}; the command itself ended with {child}", style="bold red"), soft_wrap=True
        )
    if log is not None:
        screen.print(f"  the proxy's log: {log}", soft_wrap=True)


def print_orphans(report: JsonObject) -> None:
    """Name each file of the folder `cassettes` that is not used, and why."""
    told = report.get("cassettes")
    orphans = told.get("orphans") if isinstance(told, dict) else None
    for orphan in orphans if isinstance(orphans, list) else []:
        if isinstance(orphan, dict):
            text = Text("  not used: ", style="yellow")
            line = text.append(safe_line(f"{orphan['file']}: {orphan['why']}"), style="default")
            console(stderr=True).print(line, soft_wrap=True)


def headline(report: JsonObject, reason: str = "") -> Text:
    """The line of counts, with what was saved in money; a `reason` is said elsewhere."""
    money = report["money_saved_usd"]
    saved = dollars(money) if isinstance(money, float) and money else ""
    return as_text([summary.headline(report, reason, saved)])


def miss_text(miss: JsonObject) -> Text:
    """A miss as a person reads it: what was asked, why not, where it differs, what would have matched."""
    text = Text("  ").append("miss ", style=TIER_STYLES["miss"])
    text.append(safe_line(f"{miss['method']} {miss['url']}"), style="default")
    return text.append("\n").append_text(as_text(miss_lines(miss), indent=4))
