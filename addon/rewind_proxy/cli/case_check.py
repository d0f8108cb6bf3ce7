"""What `rewind test-match --cases` does: each case of a table read and held against what it expects.

A case is a pair of requests and the tier in which the one answers the other, or a request with what must be
`gone` from all that is stored of it and what must be `kept`. For `--json`:

    {"cases", "differ": [{"id", "expected", "got", "difference"}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.text import Text

from rewind_proxy import settings as sources
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.canon import settings_reader
from rewind_proxy.cli.case_table import CaseTableError, read_table
from rewind_proxy.cli.output import as_text, console, plural, print_json, safe_line
from rewind_proxy.cli.request_file import read_request
from rewind_proxy.explain.miss import difference_lines
from rewind_proxy.matching.comparison import compare
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.settings import Settings

Expected = Literal["exact", "normalised", "different"]
_EXPECTED: tuple[Expected, ...] = ("exact", "normalised", "different")
_REDACTED = "redacted"
_PIECE = 12
"""Characters of a credential that must not be left of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case gave."""

    id: str
    expected: str
    got: str
    difference: Difference | None = None

    def to_json(self) -> JsonObject:
        difference = self.difference.to_json() if self.difference else None
        return {"id": self.id, "expected": self.expected, "got": self.got, "difference": difference}

    def text(self) -> Text:
        """It as a person reads it."""
        text = Text().append(safe_line(self.id), style="bold")
        text.append(f"  expected {self.expected}, got {self.got}", style="red")
        return text.append(difference_text(self.difference)) if self.difference else text


def difference_text(difference: Difference) -> Text:
    """The first place where two requests differ, in three lines."""
    return Text("\n").append_text(as_text(difference_lines(difference.to_json()), indent=2))


def check_table(file: Path, settings: Settings, *, as_json: bool) -> int:
    """Check a table and print the cases that differ. Returns how many do. Raises `CaseTableError`."""
    outcomes = list(_outcomes(file, settings))
    if not outcomes:
        raise CaseTableError(f"{file} has no cases")
    differ = [outcome for outcome in outcomes if outcome.got != outcome.expected]
    if as_json:
        print_json({"cases": len(outcomes), "differ": [outcome.to_json() for outcome in differ]})
    else:
        screen = console()
        for outcome in differ:
            screen.print(outcome.text(), soft_wrap=True)
        count = f"{plural(len(outcomes), 'case')}, {len(differ)} differ"
        screen.print(Text(count, style="bold red" if differ else "green"))
    return len(differ)


def _outcomes(file: Path, settings: Settings) -> Iterator[Outcome]:
    plain = settings_reader(settings)
    for place, case in read_table(file):
        changed = case.get("settings", {})
        if not isinstance(changed, dict):
            raise CaseTableError(f'{place}: "settings" is an object of keys of rewind.toml')
        in_force = sources.with_keys(settings, changed, place) if changed else settings
        reader = settings_reader(in_force) if changed else plain
        if "request" in case:
            yield _redaction(case, place, reader)
        else:
            yield _match(case, place, reader, in_force)


def _match(case: JsonObject, place: str, reader: RequestReader, settings: Settings) -> Outcome:
    expected = next((each for each in _EXPECTED if each == case.get("expect")), None)
    if expected is None:
        raise CaseTableError(f'{place}: "expect" is one of {", ".join(_EXPECTED)}')
    a, b = (read_request(case.get(side), reader, f"{place}, {side}") for side in ("a", "b"))
    comparison = compare(a, b, reader, settings.match)
    got: str = comparison.tier or "different"
    if got == "exact" and a.fingerprint != b.fingerprint:
        got = "exact, but the normalised fingerprints differ"
    first = comparison.differences[0] if comparison.differences else None
    return Outcome(str(case.get("id", place)), expected, got, first)


def _redaction(case: JsonObject, place: str, reader: RequestReader) -> Outcome:
    """What is wrong with a redaction names the entry of the table, never the credential."""
    gone, kept = (_texts(case, name, place) for name in ("gone", "kept"))
    reading = read_request(case["request"], reader, f"{place}, request")
    leaves = list(_leaves(_stored(reading)))
    stays = [
        f"gone[{index}] stays"
        for index, secret in enumerate(gone)
        if any(piece in leaf for piece in _pieces(secret) for leaf in leaves)
    ]
    lost = [
        f"kept[{index}] is gone"
        for index, text in enumerate(kept)
        if not any(text in leaf for leaf in leaves)
    ]
    return Outcome(str(case.get("id", place)), _REDACTED, "; ".join([*stays, *lost]) or _REDACTED)


def _texts(case: JsonObject, name: str, place: str) -> list[str]:
    value = case.get(name, [])
    texts = [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []
    if not isinstance(value, list) or len(texts) < len(value):
        raise CaseTableError(f'{place}: "{name}" is a list of texts')
    return texts


def _stored(reading: Reading) -> JsonValue:
    """All that is kept of a request, in store and log."""
    canonical = reading.canonical.to_json() if reading.canonical else None
    record: JsonValue = json.loads(reading.record.to_json())
    return [canonical, reading.body, record, reading.preview]


def _leaves(value: JsonValue) -> Iterator[str]:
    """The string leaves of a value, names included, and those of JSON inside them."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                inner: JsonValue = json.loads(value)
            except (ValueError, RecursionError):  # it only looks like JSON, and was given as it is
                return
            yield from _leaves(inner)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)


def _pieces(secret: str) -> list[str]:
    return [secret[at : at + _PIECE] for at in range(max(1, len(secret) - _PIECE + 1))]
