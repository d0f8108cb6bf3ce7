"""Whether one request would be answered by the recording of another, why not, and what would change that.

One comparison serves miss reports and `test-match`. What would make two requests match is never guessed: a
change of settings is named only after both requests, normalised anew under it, had one fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Literal

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.scrub import LINKING_ID
from rewind_proxy.matching.difference import Difference, common_length, differences, outer_differences
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.matching.reasons import aspects, reasons

MANY = 50
"""Differences that are listed; past that two requests are simply not alike."""
TRIED = 600_000
"""Bytes of requests that are normalised anew, at most, to find out what would make them match."""
_SCANNED = 4
"""How much longer that takes where the texts are to be scanned anew."""
_NUMBER = re.compile(rb"(\xe2\x9f\xa8[^:\xe2]+):\d+(?=\xe2\x9f\xa9)")
"""The number in a placeholder: `⟨uuid:3⟩`."""
RECORDED_CLASSES = frozenset({"model", "side"})
_MISSING = object()
_KNOWN_TEXTS = frozenset({"ignore", "tail_n"})
"""Settings under which what was found in texts stays true."""


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
        if recorded.endpoint.wire == live.endpoint.wire == "generic":
            found = _first(outer_differences(_unwrapped(a.view), _unwrapped(b.view)))
        else:
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


def _unwrapped(view: JsonObject) -> JsonObject:
    """The normalised view of a generic request, laid out as the request was."""
    params = view["params"]
    assert isinstance(params, dict)
    return {name.removeprefix("generic_"): value for name, value in params.items()}


def _rules(a: Reading, b: Reading, settings: MatchSettings) -> Iterator[str]:
    """What two requests of one normalised fingerprint differ in, by the rule that took it out of both."""
    assert a.normalised is not None
    assert b.normalised is not None
    for ours, theirs in zip(a.normalised.slots, b.normalised.slots, strict=False):
        if ours.value != theirs.value and ours.rule != LINKING_ID:
            yield ours.rule
    tail_n = settings.tail_n
    yield from reasons(aspects(a, tail_n), a.record, aspects(b, tail_n), b).rules()


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
        self._left = TRIED

    def keep(self, **changed: object) -> None:
        """Try everything that follows with these changes made."""
        self._kept = changed

    def matches(self, **changed: object) -> bool:
        """Whether the two are one under the settings in force and these changes, as far as that was tried."""
        size = self._a.record.body_length + self._b.record.body_length
        self._left -= size * (1 if changed.keys() <= _KNOWN_TEXTS else _SCANNED)
        if self._left < 0:
            return False
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
        if any(map(_in_a_path, found)):
            for paths in ("roots", "all"):
                if paths != self._reader.match.paths:
                    yield f"paths = {paths}", {"paths": paths}

    def tail(self) -> int:
        """The most messages at the end on which they match; 0 when they differ in the last one already."""
        a, b = self._a.canonical, self._b.canonical
        assert a is not None
        assert b is not None
        most = self._reader.match.tail_n or max(len(a.messages), len(b.messages))
        # Numbers start anew in a tail; all else in it is as it was.
        pairs = zip(_from_the_end(self._a), _from_the_end(self._b), strict=False)
        low = min(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), most - 1)
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


def _from_the_end(reading: Reading) -> Iterator[bytes]:
    """The normalised messages without the numbers of their placeholders, last first."""
    assert reading.normalised is not None
    messages = reading.normalised.view["messages"]
    assert isinstance(messages, list)
    return (_NUMBER.sub(rb"\1", _text(message)) for message in reversed(messages))


def _in_a_path(difference: Difference) -> bool:
    """Whether two texts part in words that could be paths."""
    a, b = difference.a, difference.b
    start = common_length(a, b)
    words = [text[max(text.rfind(blank, 0, start) for blank in " \n\t") + 1 :] for text in (a, b)]
    return all(any(mark in word.split(None, 1)[0] for mark in "/\\") for word in words if word.strip())


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)
