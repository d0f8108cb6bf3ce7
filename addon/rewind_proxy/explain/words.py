"""How stored text, sizes and times read, wherever they are shown.

Whatever comes out of a store was written by someone else: `safe` makes its control characters visible before
it reaches a terminal.
"""

from __future__ import annotations

from datetime import datetime

from rewind_proxy.visible import UNSAFE, safe, safe_line

__all__ = ["UNSAFE", "duration", "exact_time", "number", "plural", "safe", "safe_line", "size"]


def duration(milliseconds: float) -> str:
    """`85 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """Bytes in binary units: `812 B`, `4.0 KiB`."""
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def number(count: int) -> str:
    """`12,345`."""
    return f"{count:,}"


def plural(count: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def exact_time(seconds: float) -> str:
    """A stored time as local time with its offset: `2026-11-30 11:45:03 +0100`."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
