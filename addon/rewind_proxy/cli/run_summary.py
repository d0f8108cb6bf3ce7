"""What `rewind run` prints when its command has ended: one line of counts, and each miss explained."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, JsonValue, Tier
from rewind_proxy.cli.output import TIER_STYLES, console, number, plural, safe, safe_line

_MISSES_SHOWN = 5
_COUNTS: tuple[tuple[str, Tier], ...] = (
    ("exact", "exact"),
    ("normalised", "normalised"),
    ("alias", "alias"),
    ("recorded", "recorded"),
    ("passed", "passed"),
    ("refused", "miss"),
    ("failed", "failed"),
)


def print_summary(report: JsonObject, reason: str, log: Path | None) -> None:
    """Print the report of a run on standard error, where it does not mix with the command's output."""
    screen = console(stderr=True)
    screen.print(headline(report), soft_wrap=True)
    misses = report["misses"] if isinstance(report["misses"], list) else []
    for miss in misses[:_MISSES_SHOWN]:
        if isinstance(miss, dict):
            screen.print(miss_text(miss), soft_wrap=True)
    if len(misses) > _MISSES_SHOWN:
        screen.print(f"  … and {len(misses) - _MISSES_SHOWN} more: see --report")
    if reason:
        child = report["child_exit"]
        screen.print(
            Text(f"  {reason}; the command itself ended with {child}", style="bold red"), soft_wrap=True
        )
    if log is not None:
        screen.print(f"  the proxy's log: {log}", soft_wrap=True)


def headline(report: JsonObject) -> Text:
    """`rewind · replay · 3 calls: 2 exact, 1 normalised · 812 tokens saved`."""
    line = Text("rewind", style="bold").append(f" · {report['mode']} · ", style="default")
    line.append(plural(_count(report, "steps"), "call"), style="default")
    parts = [
        Text(f"{number(_count(report, name))} {name}", style=TIER_STYLES[tier])
        for name, tier in _COUNTS
        if report[name]
    ]
    if parts:
        line.append(": ", style="default").append(Text(", ").join(parts))
    if report["tokens_saved"]:
        line.append(f" · {number(_count(report, 'tokens_saved'))} tokens saved", style="default")
    if report["side"]:
        line.append(f" · {number(_count(report, 'side'))} side", style="dim")
    if not report["steps"]:
        line.append(" · no model call arrived", style="yellow")
    tunnelled = report["tunnelled"]
    if isinstance(tunnelled, list) and tunnelled:
        line.append(f" · tunnelled {safe_line(', '.join(map(str, tunnelled)))}", style="dim")
    return line


def miss_text(miss: JsonObject) -> Text:
    """A miss as a person reads it: what was asked, why not, where it differs, what would have matched."""
    text = Text("  ").append("miss ", style=TIER_STYLES["miss"])
    text.append(safe_line(f"{miss['method']} {miss['url']}"), style="default")
    text.append(f"\n    {safe(str(miss['reason']))}", style="default")
    if miss["nearest"]:
        text.append(f" Nearest: {str(miss['nearest'])[:12]}.", style="dim")
    difference: JsonValue = miss["difference"]
    if isinstance(difference, dict):
        text.append("\n").append(difference_text(difference, "    "))
    would = miss["would_match_with"]
    if isinstance(would, list) and would:
        text.append(f"\n    would match with: {safe_line('; '.join(map(str, would)))}", style="yellow")
    if isinstance(pending := miss.get("pending"), str):
        text.append(f"\n    to answer it: rewind review {pending[:12]}", style="bold")
    return text


def difference_text(difference: JsonObject, indent: str = "") -> Text:
    """Where two requests part, and what stands there in each."""
    text = Text(f"{indent}at {safe_line(str(difference['path']))}", style="cyan")
    text.append(f"\n{indent}  - recorded  {safe_line(str(difference['a']))}", style="red")
    text.append(f"\n{indent}  + live      {safe_line(str(difference['b']))}", style="green")
    return text


def _count(report: JsonObject, name: str) -> int:
    value = report[name]
    return value if isinstance(value, int) else 0
