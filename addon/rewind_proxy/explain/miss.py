"""A miss report for reading: why, the nearest recording, where it parts, what would have matched."""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.explain.lines import Line, deeper, line, lines_of
from rewind_proxy.explain.words import number, plural, safe_line

_ID = 12


def miss_lines(miss: JsonObject) -> Iterator[Line]:
    """The lines of a miss report, which is as `Miss.to_json` gives it."""
    first, *others = lines_of(str(miss.get("reason") or "There is no recording of it."))
    nearest = miss.get("nearest")
    near = (("faint", f" Nearest: {str(nearest)[:_ID]}."),) if nearest else ()
    yield Line((*first.spans, *near))
    yield from others
    yield from prefix_lines(miss.get("shared"), miss.get("messages"))
    if isinstance(difference := miss.get("difference"), dict):
        yield from difference_lines(difference)
    would = miss.get("would_match_with")
    if isinstance(would, list) and would:
        yield line(("advice", f"would match with: {safe_line('; '.join(map(str, would)))}"))
    if isinstance(pending := miss.get("pending"), str):
        yield line(("strong", f"to answer it: rewind review {pending[:_ID]}"))


def prefix_lines(shared: JsonValue, messages: JsonValue) -> Iterator[Line]:
    """How far two conversations are one from their start, where that is known."""
    if isinstance(shared, int) and isinstance(messages, int) and shared and messages:
        first = f"first {number(shared)} of" if shared > 1 else "first of"
        verb = "are" if shared > 1 else "is"
        yield line(("faint", f"The {first} {plural(messages, 'message')} {verb} the same."))


def difference_lines(difference: JsonObject, names: tuple[str, str] = ("recorded", "live")) -> Iterator[Line]:
    """One place where two requests part, with what stands there in both."""
    yield line(("place", f"at {safe_line(str(difference['path']))}"))
    width = max(map(len, names)) + 2
    sides = (
        line(("before", f"- {names[0].ljust(width)}{safe_line(str(difference['a']))}")),
        line(("after", f"+ {names[1].ljust(width)}{safe_line(str(difference['b']))}")),
    )
    yield from deeper(sides)
