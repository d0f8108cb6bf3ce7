"""The summary at the end of a proxy, in one line."""

from __future__ import annotations

from rewind_proxy.canonical.model import JsonObject, JsonValue


def summary(report: JsonObject) -> str:
    """One line of a report: `rewind (replay): 3 calls · 2 exact · 1 refused · 5 side · 812 tokens saved`."""
    words = [_counted(report["steps"], "call" if report["steps"] == 1 else "calls")]
    for name in ("exact", "normalised", "alias", "recorded", "passed", "refused", "failed", "side", "unused"):
        if report[name]:
            words.append(_counted(report[name], name))
    if report["tokens_saved"]:
        words.append(_counted(report["tokens_saved"], "tokens saved"))
    if isinstance(ms := report["saved_ms"], int) and ms >= 1000:
        words.append(f"{ms / 1000:.1f} s saved")
    if isinstance(tunnelled := report["tunnelled"], list) and tunnelled:
        words.append("tunnelled " + ", ".join(map(str, tunnelled)))
    return f"rewind ({report['mode']}): " + " · ".join(words)


def _counted(count: JsonValue, noun: str) -> str:
    return f"{count:,} {noun}" if isinstance(count, int) else f"{count} {noun}"
