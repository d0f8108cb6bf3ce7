"""`rewind canon`: what Rewind understands of a request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from rewind_proxy.canonical.core_v3 import core_request_hash
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.cli.opening import JsonOption, StoreOption, settings_for
from rewind_proxy.cli.output import console, facts, print_error, print_json, safe, safe_line
from rewind_proxy.cli.request_file import RequestFileError, host_of, request_from
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable

_EXCERPT = 400


def register(app: typer.Typer) -> None:
    """Add `canon`."""
    app.command("canon", rich_help_panel="Understand")(canon_command)


def canon_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A request file; .jsonl or - for many.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what Rewind understands of a request: class, canonical form, fingerprints, slots, redactions.

    A `.jsonl` file or `-` gives one JSON line out per line in; a line that cannot be read gives `{"error"}`,
    and exit status 1 at the end. A single file is shown for reading on a terminal, else as JSON.
    """
    reader = settings_reader(settings_for(store))
    if file == "-" or file.endswith(".jsonl"):
        failed = False
        for number, line in enumerate(_lines(file), start=1):
            try:
                result = canon(_parsed(line, f"{file}, line {number}"), reader, f"{file}, line {number}")
            except RewindError as error:
                print_error(str(error))
                result, failed = {"error": str(error)}, True
            typer.echo(json.dumps(result, ensure_ascii=True))
        if failed:
            raise typer.Exit(1)
        return
    result = canon(read_document(file), reader, file)
    if as_json or not sys.stdout.isatty():
        print_json(result)
    else:
        _show(result)


def settings_reader(settings: Settings) -> RequestReader:
    """A reader under the settings alone: no store's redaction list is in it (DESIGN §6)."""
    rules = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    hosts = HostTable(settings.hosts)
    return RequestReader(hosts, Redactor(rules), settings.match_settings, settings.max_body)


def canon(document: JsonValue, reader: RequestReader, place: str) -> JsonObject:
    """The JSON of `canon` (DESIGN §12) for one parsed request file. Raises `RequestFileError`."""
    request = request_from(document, place)
    return as_canon(reader.read(request, host_of(reader.hosts, request, place)))


def as_canon(reading: Reading) -> JsonObject:
    """`{"class", "wire", "form", …}`; `canonical` is redacted, before scrubbing."""
    normalised, canonical = reading.normalised, reading.canonical
    return {
        "class": reading.endpoint.cls,
        "wire": reading.endpoint.wire,
        "form": reading.record.form,
        "operation": reading.endpoint.operation,
        "host": reading.target.host,
        "preset": reading.record.preset or None,
        "canonical": canonical.to_json() if canonical else None,
        "exact": reading.exact,
        "normalised": reading.fingerprint,
        "core_v3": core_request_hash(canonical, reading.target.host) if canonical else None,
        "slots": [
            {"rule": slot.rule, "value": slot.value, "path": str(slot.at)}
            for slot in (normalised.slots if normalised else ())
        ],
        "redactions": [{"rule": each.rule, "path": each.path} for each in reading.redactions],
        "opaque": reading.record.opaque,
    }


def read_document(file: str) -> JsonValue:
    """The JSON of a request file. Raises `RequestFileError`."""
    return _parsed(_text(file), file)


def _lines(file: str) -> Iterator[str]:
    text = sys.stdin.read() if file == "-" else _text(file)
    return (line for line in text.splitlines() if line.strip())


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise RequestFileError(f"{file} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise RequestFileError(f"{file} is not UTF-8") from None


def _parsed(text: str, place: str) -> JsonValue:
    try:
        return cast("JsonValue", json.loads(text))
    except ValueError as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        raise RequestFileError(f"{place}: not JSON (at {where} of it)") from None


def _show(result: JsonObject) -> None:
    screen = console()
    names = ("class", "wire", "form", "operation", "host", "preset", "exact", "normalised", "core_v3")
    screen.print(facts((name, safe_line(str(result[name] or ""))) for name in names))
    canonical = result["canonical"]
    if isinstance(canonical, dict):
        for section in ("messages", "tools", "params"):
            screen.print(Text(f"\n{section}", style="bold"))
            value = canonical[section]
            items = (
                value if isinstance(value, list) else [{k: v} for k, v in cast("JsonObject", value).items()]
            )
            for item in items:
                text = safe(dumps(item).decode("utf-8"))
                screen.print(text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…", soft_wrap=True)
    for title in ("slots", "redactions"):
        rows = cast("list[JsonObject]", result[title])
        if rows:
            screen.print(Text(f"\n{title}", style="bold"))
            for row in rows:
                line = Text(f"{row['rule']} ", style="cyan").append(safe_line(str(row["path"])), style="dim")
                screen.print(line.append(f"  {safe_line(str(row.get('value', '')))}", style="default"))
