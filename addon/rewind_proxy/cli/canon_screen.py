"""What `rewind canon` shows on a terminal: the request as a conversation, then what was taken out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from rewind_proxy.canonical.core_v3 import core_request_hash
from rewind_proxy.canonical.scrub import Slot
from rewind_proxy.cli.output import console, facts, number, plural, print_lines, safe_line, table
from rewind_proxy.explain.conversation import Conversation
from rewind_proxy.explain.exchange import request_lines
from rewind_proxy.matching.reading import Reading

_RULE_WIDTH = 72
_ROWS = 40
_PARAMETER = 200
_LEAST_VALUE = 16


def show_reading(reading: Reading) -> None:
    """Print what is understood of a request, for a person."""
    out = console()
    out.print(facts(_facts(reading)))
    out.print(Text("─" * min(_RULE_WIDTH, out.width), style="dim"))
    view = Conversation(noise=reading.volatile.members, how="--json shows all")
    print_lines(out, request_lines(view, reading, reading.body))
    if reading.canonical is not None and reading.canonical.params:
        out.print(Text("parameters", style="bold"))
        params = reading.canonical.params.items()
        out.print(
            facts((f"  {safe_line(name)}", _cut(json.dumps(v, ensure_ascii=False))) for name, v in params)
        )
        out.print()
    _show_slots(out, reading.normalised.slots if reading.normalised else ())
    _show_redactions(out, [(each.rule, each.path) for each in reading.redactions])


def _facts(reading: Reading) -> Iterator[tuple[str, str]]:
    endpoint, target, record = reading.endpoint, reading.target, reading.record
    yield "endpoint", safe_line(f"{record.method} https://{record.host}{record.path}")
    yield "class", f"{endpoint.cls}, {endpoint.operation}" if endpoint.cls == "model" else endpoint.cls
    yield "wire", f"{endpoint.wire}, {record.form}" if endpoint.cls == "model" else ""
    yield "preset", safe_line(record.preset)
    yield "exact", reading.exact
    yield "normalised", reading.fingerprint
    yield "core_v3", (core_request_hash(reading.canonical, target.host) or "") if reading.canonical else ""


def _show_slots(out: Console, slots: tuple[Slot, ...]) -> None:
    if not slots:
        return
    out.print(_title("slot", len(slots), "taken out for matching; places in the canonical form"))
    grid = table(("rule", "left"), ("is", "left"), ("value", "left"), ("place", "left"))
    longest = max(out.width // 3, _LEAST_VALUE)
    for slot in slots[:_ROWS]:
        place, value = safe_line(str(slot.at)), _cut(slot.value, longest)
        grid.add_row(Text(safe_line(slot.rule), style="cyan"), safe_line(slot.placeholder), value, place)
    out.print(grid)
    _print_left(out, len(slots))


def _show_redactions(out: Console, redactions: list[tuple[str, str]]) -> None:
    if not redactions:
        return
    out.print(_title("redaction", len(redactions), "credentials; places in the body as it was sent"))
    grid = table(("rule", "left"), ("place", "left"))
    for rule, path in redactions[:_ROWS]:
        grid.add_row(Text(rule, style="cyan"), safe_line(path))
    out.print(grid)
    _print_left(out, len(redactions))


def _title(name: str, count: int, what: str) -> Text:
    return Text(plural(count, name), style="bold").append(f"  {what}", style="not bold dim")


def _print_left(out: Console, count: int) -> None:
    if count > _ROWS:
        out.print(Text(f"… and {number(count - _ROWS)} more (--json shows all)", style="dim"))
    out.print()


def _cut(text: str, longest: int = _PARAMETER) -> str:
    line = safe_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
