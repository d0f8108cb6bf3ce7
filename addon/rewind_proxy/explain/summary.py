"""The one line that a run ends with, whoever ran it: its calls by tier, what was saved, what went past."""

from __future__ import annotations

from rewind_proxy.canonical.model import HIT_TIERS, JsonObject, JsonValue, Tier
from rewind_proxy.explain.lines import Line, Span, line
from rewind_proxy.explain.words import duration, number, plural, safe_line

NO_CALL = "no model call arrived"
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


def headline(report: JsonObject, reason: str = "", money: str = "") -> Line:
    """`rewind · replay · 3 calls: 2 exact, 1 normalised · 812 tokens, $0.07 and 4.2 s saved · 2 unused`.

    `reason` is said elsewhere, and not twice; `money` is what was saved, where that is known.
    """
    spans: list[Span | str] = [("strong", "rewind"), f" · {report['mode']} · "]
    spans.append(plural(_count(report, "steps"), "call"))
    lead = ": "
    for name, tier in _COUNTS:
        if report[name]:
            spans += [lead, (tier, f"{number(_count(report, name))} {name}")]
            lead = ", "
    if saved := _saved(report, money):
        spans.append(f" · {saved} saved")
    if report["side"]:
        spans.append(("faint", f" · {number(_count(report, 'side'))} side"))
    if report["unused"] and any(report[name] for name in (*HIT_TIERS, "refused")):
        spans.append(("faint", f" · {number(_count(report, 'unused'))} unused"))
    if sockets := _count(report, "sockets"):
        spans.append(("advice", f" · {plural(sockets, 'socket')} passed on, not counted"))
    elif not report["steps"] and NO_CALL not in reason:
        spans.append(("advice", f" · {NO_CALL}"))
    for words, name in (("tunnelled", "tunnelled"), ("refused unknown", "refused_hosts")):
        if hosts := _hosts(report[name]):
            spans.append(("faint", f" · {words} {hosts}"))
    return line(*spans)


def _saved(report: JsonObject, money: str) -> str:
    """`812 tokens, $0.07 and 4.2 s`: of money and time only what is known and worth a word."""
    count, ms = _count(report, "tokens_saved"), _count(report, "saved_ms")
    parts = [f"{number(count)} tokens" if count else "", money, duration(ms) if ms >= _LEAST_MS else ""]
    parts = [part for part in parts if part]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _hosts(names: JsonValue) -> str:
    return safe_line(", ".join(map(str, names))) if isinstance(names, list) else ""


def _count(report: JsonObject, name: str) -> int:
    value = report[name]
    return value if isinstance(value, int) else 0
