"""`rewind canon`: what Rewind understands of a request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, cast

import typer

from rewind_proxy import settings as sources
from rewind_proxy.canonical.core_v3 import core_request_hash
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.cli.canon_screen import show_reading
from rewind_proxy.cli.opening import JsonOption
from rewind_proxy.cli.output import print_error, print_json
from rewind_proxy.cli.request_file import RequestFileError, read_request
from rewind_proxy.cli.settings_flags import READING, with_settings
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable


def register(app: typer.Typer) -> None:
    """Add `canon`."""
    app.command("canon", rich_help_panel="Understand")(with_settings(canon_command, READING))


def canon_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A request file; .jsonl or - for many.")],
    as_json: JsonOption = False,
    *,
    flags: dict[str, object],
) -> None:
    """Show what Rewind understands of a request: class, canonical form, fingerprints, slots, redactions.

    Slots have their places in the canonical form, redactions in the body as it was sent.

    A `.jsonl` file or `-` gives one JSON line out per line in; a line that cannot be read gives `{"error"}`,
    and exit status 1 at the end. A single file is shown for reading on a terminal, else as JSON.
    """
    reader = settings_reader(sources.load(flags=flags, environ=os.environ, cwd=Path.cwd()))
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
    reading = read_request(read_document(file), reader, file)
    if as_json or not at_screen():
        print_json(as_canon(reading))
    else:
        show_reading(reading)


def at_screen() -> bool:
    """Whether somebody reads what is printed."""
    return sys.stdout.isatty()


def settings_reader(settings: Settings) -> RequestReader:
    """A reader under the settings alone: no store's redaction list is in it (DESIGN §6)."""
    rules = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    hosts = HostTable(settings.hosts)
    return RequestReader(hosts, Redactor(rules), settings.match_settings, settings.max_body)


def canon(document: JsonValue, reader: RequestReader, place: str) -> JsonObject:
    """The JSON of `canon` (DESIGN §12) for one parsed request file. Raises `RequestFileError`."""
    return as_canon(read_request(document, reader, place))


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
