"""How money, rates and ages read, and how a moment in the past is given (`--since`)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal

import typer

from rewind_proxy.cli.output import plural, when

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,6})([mhdw])")
_OLDEST_IN_DAYS = 14
_BARS = "▁▂▃▄▅▆▇█"


def moment(text: str, now: float) -> float:
    """`30m`, `12h`, `7d`, `2w` before now, or a date, with or without a time; seconds since the epoch.

    A time without an offset is local. Raises `typer.BadParameter`.
    """
    try:
        if found := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[found[2]]: int(found[1])}).total_seconds()
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no moment: 30m, 12h, 7d, 2w or 2026-11-30") from None


def ago(seconds: float, now: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `2 days ago`; what is older than two weeks by its date."""
    minutes = (now - seconds) / 60
    if not 0 <= minutes < _OLDEST_IN_DAYS * 24 * 60:
        return when(seconds)[:10]
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes:.0f} min ago"
    if minutes < 48 * 60:
        return f"{minutes // 60:.0f} h ago"
    return f"{plural(int(minutes // (24 * 60)), 'day')} ago"


def offset(seconds: float) -> str:
    """The time since a start: `0:07`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def dollars(amount: Decimal | float) -> str:
    """`$1,234.50`, `$0.07`, `under $0.01`; nothing is `$0.00`."""
    return "under $0.01" if 0 < amount < Decimal("0.005") else f"${amount:,.2f}"


def percent(rate: float | None) -> str:
    """`83 %`. Only all is `100 %`, and only nothing is `0 %`."""
    if rate is None:
        return ""
    return f"{rate * 100:.0f} %" if rate in (0, 1) else f"{min(99, max(1, round(rate * 100)))} %"


def bars(rates: list[float]) -> str:
    """Rates from 0 to 1 as a row of bars: `▁▄█`."""
    return "".join(_BARS[round(rate * (len(_BARS) - 1))] for rate in rates)
