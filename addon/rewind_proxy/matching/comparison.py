"""Whether one request would be answered by the recording of another, why not, and what would change that.

One comparison serves miss reports and `test-match`. What would make two requests match is never guessed: a
change of settings is named only after both requests, normalised anew under it, had one fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Literal

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.scrub import LINKING_ID
from rewind_proxy.matching.difference import Difference, differences, outer_differences
from rewind_proxy.matching.reading import Reading, RequestReader

MANY = 50
"""Differences that are listed; past that two requests are simply not alike."""
RECORDED_CLASSES = frozenset({"model", "side"})
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two requests gave. Everything in it is redacted."""

    tier: Literal["exact", "normalised"] | None
    differences: tuple[Difference, ...] = ()
    """Where they part; empty when they match."""
    rules: tuple[str, ...] = ()
    """What made a normalised match possible: ids of scrub rules, `ignore:<name>`, `tail_n`."""
    would_match_with: tuple[str, ...] = ()
    """Each a change of settings under which they would match."""

    def to_json(self) -> JsonObject:
        """`{"match", "differences", "rules", "would_match_with"}` (DESIGN §12)."""
        return {
            "match": self.tier,
            "differences": [each.to_json() for each in self.differences],
            "rules": [*self.rules],
            "would_match_with": [*self.would_match_with],
        }


def compare(
    recorded: Reading,
    live: Reading,
    reader: RequestReader,
    weakest: Literal["normalised", "exact"] = "normalised",
) -> Comparison:
    """Whether `live` would be answered by a recording of `recorded`.

    Both were read by `reader`; `weakest` is the setting `match`.
    """
    if not RECORDED_CLASSES.issuperset((recorded.endpoint.cls, live.endpoint.cls)):
        return Comparison(None, _first(_outer_differences(recorded, live)))
    if recorded.exact == live.exact:
        return Comparison("exact")
    a, b = recorded.normalised, live.normalised
    if a is None or b is None:
        return Comparison(None, _first(_outer_differences(recorded, live)))
    if a.fingerprint != b.fingerprint:
        needed = () if weakest == "normalised" else ("match = normalised",)
        found = _first(differences(a.view, b.view))
        changes = tuple(_changes(recorded, live, reader, found))
        return Comparison(None, found, (), tuple(" and ".join((*needed, *each)) for each in changes))
    if weakest == "normalised":
        return Comparison("normalised", rules=tuple(dict.fromkeys(_rules(recorded, live, reader.match))))
    return Comparison(None, _first(_inner_differences(recorded, live)), (), ("match = normalised",))


def _first(found: Iterator[Difference]) -> tuple[Difference, ...]:
    return tuple(islice(found, MANY))


def _inner_differences(a: Reading, b: Reading) -> Iterator[Difference]:
    """Where two requests part that are one when normalised: in what they mean, else in how it is written."""
    assert a.canonical is not None
    assert b.canonical is not None
    found = [*differences(a.canonical.to_json(), b.canonical.to_json())]
    yield from found
    if not found:
        yield from _outer_differences(a, b)


def _outer_differences(a: Reading, b: Reading) -> Iterator[Difference]:
    """Where two requests part that are matched byte for byte."""
    yield from outer_differences(_outer(a), _outer(b))


def _outer(reading: Reading) -> JsonObject:
    record = reading.record
    return {
        "class": reading.endpoint.cls,
        "method": record.method,
        "host": record.host,
        "path": record.path,
        "query": [list(pair) for pair in record.query],
        "body": f"sha256:{record.body_sha256}" if record.opaque else reading.body,
    }


def _rules(a: Reading, b: Reading, settings: MatchSettings) -> Iterator[str]:
    """What two requests of one normalised fingerprint differ in, by the rule that took it out of both."""
    assert a.normalised is not None
    assert b.normalised is not None
    for ours, theirs in zip(a.normalised.slots, b.normalised.slots, strict=False):
        if ours.value != theirs.value and ours.rule != LINKING_ID:
            yield ours.rule
    for name in _differing(a.normalised.ignored, b.normalised.ignored):
        yield f"ignore:{name}"
    if a.target.host != b.target.host:
        yield "ignore:host"
    if a.endpoint.wire != b.endpoint.wire:
        yield "ignore:wire"
    kept = settings.tail_n
    if kept and a.canonical and b.canonical and a.canonical.messages[:-kept] != b.canonical.messages[:-kept]:
        yield "tail_n"


def _differing(a: JsonObject, b: JsonObject) -> list[str]:
    """The members in which two objects differ."""
    names = dict.fromkeys((*a, *b))
    return [name for name in names if not _same(a.get(name, _MISSING), b.get(name, _MISSING))]


def _same(a: object, b: object) -> bool:
    return a is b or (a is not _MISSING and b is not _MISSING and _text(a) == _text(b))


def _text(value: object) -> bytes:
    json: JsonValue = value  # type: ignore[assignment]  # never the marker of what is missing
    return dumps(json)


def _changes(
    a: Reading, b: Reading, reader: RequestReader, found: tuple[Difference, ...]
) -> Iterator[tuple[str, ...]]:
    """The changes of settings under which two requests match, each as settings that belong together."""
    # A generic request is matched as a whole; requests for different things never match.
    if "generic" in (a.endpoint.wire, b.endpoint.wire) or a.endpoint.operation != b.endpoint.operation:
        return
    trial = _Trial(a, b, reader)
    base: tuple[str, ...] = ()
    if names := trial.parameters():
        base = (f"ignore += {', '.join(names)}",)
        trial.keep(ignore=(*reader.match.ignore, *names))
        if trial.matches():
            yield base
            return
    for words, changed in trial.scrubbing(found):
        if trial.matches(**changed):
            yield (*base, words)
    if tail := trial.tail():
        yield (*base, f"tail_n = {tail}")


class _Trial:
    """Tries other match settings on two requests."""

    def __init__(self, a: Reading, b: Reading, reader: RequestReader) -> None:
        self._a, self._b = a, b
        self._reader = reader
        self._kept: dict[str, object] = {}

    def keep(self, **changed: object) -> None:
        """Try everything that follows with these changes made."""
        self._kept = changed

    def matches(self, **changed: object) -> bool:
        """Whether the two are one under the settings in force and these changes."""
        settings = self._reader.match.model_copy(update=self._kept | changed)
        reader = self._reader.under(settings)
        return reader.again(self._a).fingerprint == reader.again(self._b).fingerprint

    def parameters(self) -> list[str]:
        """The parameters in which they differ, as the ignore list names them."""
        a, b = (each.normalised.view["params"] for each in (self._a, self._b) if each.normalised)
        assert isinstance(a, dict)
        assert isinstance(b, dict)
        return [name.strip("⟨⟩") for name in _differing(a, b)]

    def scrubbing(self, found: tuple[Difference, ...]) -> Iterator[tuple[str, dict[str, object]]]:
        """Changes that take more noise out."""
        off = self._reader.match.scrub_off
        if off and self.matches(scrub_off=()):
            needed = list(off)
            for rule in off:
                fewer = [each for each in needed if each != rule]
                if self.matches(scrub_off=_without(off, fewer)):
                    needed = fewer
            yield f"scrub_off -= {', '.join(needed)}", {"scrub_off": _without(off, needed)}
        if any("/" in text or "\\" in text for each in found for text in (each.a, each.b)):
            for paths in ("roots", "all"):
                if paths != self._reader.match.paths:
                    yield f"paths = {paths}", {"paths": paths}

    def tail(self) -> int:
        """The most messages at the end on which they match; 0 when they differ in the last one already."""
        a, b = self._a.canonical, self._b.canonical
        assert a is not None
        assert b is not None
        most = self._reader.match.tail_n or max(len(a.messages), len(b.messages))
        alike = takewhile(
            lambda pair: pair[0] == pair[1], zip(a.messages[::-1], b.messages[::-1], strict=False)
        )
        # Nearly always as many match as are equal as they stand: two trials instead of a search.
        low = min(max(1, sum(1 for _ in alike)), most - 1)
        if low < 1 or not self.matches(tail_n=low):
            low = 1 if low > 1 and self.matches(tail_n=1) else 0
        high = low + 1
        if not low or high >= most or not self.matches(tail_n=high):
            return low
        low, high = high, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.matches(tail_n=middle) else (low, middle)
        return low


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)
