"""What `rewind run` prints when its command has ended: one line of counts, and each miss explained."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from rewind_proxy.canonical.model import HIT_TIERS, JsonObject, Tier
from rewind_proxy.cli.amounts import dollars
from rewind_proxy.cli.output import TIER_STYLES, as_text, console, duration, number, plural, safe_line
from rewind_proxy.explain.miss import miss_lines

NO_CALL = "no model call arrived"
_MISSES_SHOWN = 5
_LEAST_MS = 1000
_COUNTS: tuple[tuple[str, Tier], ...] = (
    ("exact", "exact"),
    ("normalised", "normalised"),
    ("alias", "alias"),
    ("recorded", "recorded"),
    ("passed", "passed"),
    ("refused", "miss"),
    ("failed", "failed"),
)


def print_summary(report: JsonObject, reason: str, log: Path | None, faults: str = "") -> None:
    """Print the report of a run on standard error, where it does not mix with the command's output."""
    screen = console(stderr=True)
    screen.print(headline(report, reason), soft_wrap=True)
    misses = report["misses"] if isinstance(report["misses"], list) else []
    for miss in misses[:_MISSES_SHOWN]:
        if isinstance(miss, dict):
            screen.print(miss_text(miss), soft_wrap=True)
    if len(misses) > _MISSES_SHOWN:
        screen.print(f"  … and {len(misses) - _MISSES_SHOWN} more: see --report")
    print_orphans(report)
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
    """`rewind · replay · 3 calls: 2 exact, 1 normalised · 812 tokens, $0.07 and 4.2 s saved · 2 unused`."""
    line = Text("rewind", style="bold").append(f" · {report['mode']} · ", style="default")
    line.append(plural(_count(report, "steps"), "call"), style="default")
    parts = [
        Text(f"{number(_count(report, name))} {name}", style=TIER_STYLES[tier])
        for name, tier in _COUNTS
        if report[name]
    ]
    if parts:
        line.append(": ", style="default").append(Text(", ").join(parts))
    if saved := _saved(report):
        line.append(f" · {saved} saved", style="default")
    if report["side"]:
        line.append(f" · {number(_count(report, 'side'))} side", style="dim")
    if report["unused"] and any(report[name] for name in (*HIT_TIERS, "refused")):
        line.append(f" · {number(_count(report, 'unused'))} unused", style="dim")
    if not report["steps"] and NO_CALL not in reason:  # said once
        line.append(f" · {NO_CALL}", style="yellow")
    tunnelled = report["tunnelled"]
    if isinstance(tunnelled, list) and tunnelled:
        line.append(f" · tunnelled {safe_line(', '.join(map(str, tunnelled)))}", style="dim")
    return line


def _saved(report: JsonObject) -> str:
    """`812 tokens, $0.07 and 4.2 s`: of money and time only what is known and worth a word."""
    tokens, money, ms = (report[name] for name in ("tokens_saved", "money_saved_usd", "saved_ms"))
    parts = [f"{number(tokens)} tokens"] if isinstance(tokens, int) and tokens else []
    if isinstance(money, float) and money:
        parts.append(dollars(money))
    if isinstance(ms, int) and ms >= _LEAST_MS:
        parts.append(duration(ms))
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def miss_text(miss: JsonObject) -> Text:
    """A miss as a person reads it: what was asked, why not, where it differs, what would have matched."""
    text = Text("  ").append("miss ", style=TIER_STYLES["miss"])
    text.append(safe_line(f"{miss['method']} {miss['url']}"), style="default")
    return text.append("\n").append_text(as_text(miss_lines(miss), indent=4))


def _count(report: JsonObject, name: str) -> int:
    value = report[name]
    return value if isinstance(value, int) else 0
