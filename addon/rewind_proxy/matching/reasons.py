"""Why two requests of one normalised fingerprint are one: each rule that took a difference out of them.

Promise 3 of DESIGN §1: nothing answers another request but through a rule that is named on the hit. Notes of
hits (`x-rewind-note`) and the `rules` of `test-match` are both made from what stands here.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Message, Volatile
from rewind_proxy.canonical.redact import MARK
from rewind_proxy.canonical.scrub import FOLDING
from rewind_proxy.canonical.tail import tail
from rewind_proxy.canonical.text import normalise_text
from rewind_proxy.canonical.volatile import inner_tools, nested, system_line
from rewind_proxy.matching.reading import Reading
from rewind_proxy.store.records import RequestRecord

SYSTEM_LINE = "system-line"
"""What the volatile first line of a system block is called (DESIGN §5, step 1)."""

_EXCERPT = 80
_CONTAINERS = (dict, list)
# All that folding looks at: blanks, line ends, and characters that Unicode may compose.
_FOLDABLE = re.compile(r"[^\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Aspects:
    """What the normalised fingerprint leaves out of a request, small enough to be kept."""

    ignored: JsonObject
    volatile: Mapping[str, bytes]
    """A digest of what stood under each volatile name."""
    folded: bytes
    """A digest of what the folding of texts (step 3) changed."""
    tools: tuple[str, ...]
    """Their names in the order sent."""
    nulls: Mapping[str, int]
    """How often a member of a name was null."""
    cut: bytes
    """A digest of the messages before the last `tail_n`."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """What made a normalised hit possible."""

    values: tuple[tuple[str, JsonValue, JsonValue], ...] = ()
    """Ignored: name, recorded, live; None where it was absent."""
    volatile: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    """Ids of rules by which credentials were taken out, which may have been others; the mark itself where the
    request was sent with it."""
    folded: bool = False
    reordered: bool = False
    nulls: tuple[str, ...] = ()
    cut: bool = False

    def notes(self) -> Iterator[str]:
        """As they stand in `x-rewind-note`, the model first."""
        for name, recorded, live in sorted(self.values, key=lambda each: (each[0] != "model", each[0])):
            yield f"{name} {_plain(recorded)}->{_plain(live)}"
        if self.volatile:
            yield "volatile " + " ".join(self.volatile)
        if self.redacted:
            yield "redacted " + " ".join(self.redacted)
        if self.folded:
            yield f"folded {FOLDING}"
        if self.reordered:
            yield "tools reordered"
        if self.nulls:
            yield "null " + " ".join(self.nulls)

    def rules(self) -> Iterator[str]:
        """As they stand in `rules` of `test-match`."""
        if self.folded:
            yield FOLDING
        yield from (f"ignore:{name}" for name, _, _ in self.values)
        yield from (f"volatile:{name}" for name in self.volatile)
        yield from self.redacted
        if self.reordered:
            yield "tools"
        yield from (f"null:{name}" for name in self.nulls)
        if self.cut:
            yield "tail_n"


def reasons(a: Aspects, recorded: RequestRecord, b: Aspects, live: Reading) -> Reasons:
    """Why `live` is answered by a recording of `recorded`; `a` and `b` are their aspects."""
    same_writing = bool(recorded.written_digest) and recorded.written_digest == live.record.written_digest
    names = dict.fromkeys((*a.ignored, *b.ignored))
    return Reasons(
        values=(
            *(
                (name, a.ignored.get(name), b.ignored.get(name))
                for name in names
                if not _same(a.ignored.get(name), b.ignored.get(name))
            ),
            *_addresses(recorded, live.record),
        ),
        volatile=_differing(a.volatile, b.volatile),
        redacted=() if same_writing else _redacted(live),
        folded=a.folded != b.folded,
        reordered=a.tools != b.tools,
        nulls=_differing(a.nulls, b.nulls),
        cut=a.cut != b.cut,
    )


def _redacted(live: Reading) -> tuple[str, ...]:
    rules = tuple(dict.fromkeys(each.rule for each in live.redactions))
    return rules or ((MARK,) if live.normalised and live.normalised.shown.marked else ())


def reasons_by_record(recorded: RequestRecord, live: Reading, ignore: Sequence[str]) -> Reasons | None:
    """The same without reading the recorded request; None where its record does not tell.

    It does when both are written alike but for the parameters that stand in the record. `ignore` is the
    ignore list.
    """
    if not recorded.written_digest or recorded.written_digest != live.record.written_digest:
        return None
    a, b = recorded.params, live.record.params
    differing = [name for name in dict.fromkeys((*a, *b)) if not _same(a.get(name), b.get(name))]
    volatile = live.volatile.params
    ignored = live.normalised.ignored if live.normalised else {}
    values = [
        (name, a.get(name), b.get(name))
        for name in differing
        if name not in volatile and (name in ignored or name in ignore)
    ]
    return Reasons(
        values=(*values, *_addresses(recorded, live.record)),
        volatile=tuple(sorted(name for name in differing if name in volatile)),
    )


def aspects(reading: Reading, tail_n: int) -> Aspects:
    """The aspects of a request that has a normalised fingerprint."""
    canonical, normalised = reading.canonical, reading.normalised
    assert canonical is not None
    assert normalised is not None
    kept = normalised.shown.kept()
    folded = hashlib.sha256()
    for index, message in enumerate(kept.messages):
        for at, part in enumerate(message.parts):
            if digest := _folded(part):
                folded.update(b"%d.%d%b" % (index, at, digest))
    for index, tool in enumerate(kept.tools):
        if digest := _folded(tool):
            folded.update(b"t%d%b" % (index, digest))
    folded.update(_folded(kept.params))
    nulls: Counter[str] = Counter()
    _count_nulls(reading.body, nulls)
    return Aspects(
        ignored=normalised.ignored,
        volatile=_volatile(reading),
        folded=folded.digest(),
        tools=tuple(_names(canonical.tools)),
        nulls=nulls,
        cut=_cut(canonical.messages, tail_n) if tail_n else b"",
    )


def _names(tools: Sequence[JsonValue]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, dict):
            yield str(tool.get("name", tool.get("type")))
            yield from _names(inner_tools(tool))


def _cut(messages: Sequence[Message], tail_n: int) -> bytes:
    kept = set(map(id, tail(messages, tail_n)))
    return _digest([each.to_json() for each in messages if id(each) not in kept])


def _addresses(a: RequestRecord, b: RequestRecord) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Host and wire, which the ignore list holds like any parameter."""
    if a.host != b.host:
        yield "host", a.host, b.host
    if a.wire != b.wire:
        yield "wire", a.wire, b.wire


def _volatile(reading: Reading) -> dict[str, bytes]:
    assert reading.canonical is not None
    volatile = reading.volatile
    found: dict[str, list[JsonValue]] = {}
    for name, value in reading.canonical.params.items():
        if name in volatile.params and value is not None:
            found[name] = [value]
    for index, message in enumerate(reading.canonical.messages):
        for part in message.parts:
            _take_volatile(part, volatile, found)
            text = part.get("text")
            first = index == 0 and message.role == "system" and isinstance(text, str)
            if first and isinstance(text, str) and (line := system_line(text, volatile)):
                found.setdefault(SYSTEM_LINE, []).append(line)
    for tool in reading.canonical.tools:
        for each in (tool, *inner_tools(tool)):
            if isinstance(each, dict):
                _take_volatile(each, volatile, found)
    return {name: _digest(values) for name, values in found.items()}


def _take_volatile(part: JsonObject, volatile: Volatile, found: dict[str, list[JsonValue]]) -> None:
    """The volatile members of a part, and of what it wraps: as `canonical.volatile` drops them."""
    if not volatile.members.isdisjoint(part):
        for name in volatile.members.intersection(part):
            if part[name] is not None:
                found.setdefault(name, []).append(part[name])
    for _, inner in nested(part):
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                _take_volatile(each, volatile, found)


def _folded(value: JsonValue) -> bytes:
    """A digest of what folding changes in the texts of a value; empty when it changes nothing.

    Of a text that it changes all counts that it looks at, and nothing else: not what scrubbing takes out.
    """
    pieces = [run for text in _texts(value) if normalise_text(text) != text for run in _runs(text)]
    return hashlib.sha256("".join(pieces).encode("utf-8", "surrogatepass")).digest() if pieces else b""


def _runs(text: str) -> list[str]:
    return ["\0", *_FOLDABLE.findall(text)]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from _texts(value[name])
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _count_nulls(value: JsonValue, found: Counter[str]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if item is None:
                found[name] += 1
            elif isinstance(item, _CONTAINERS):
                _count_nulls(item, found)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                _count_nulls(item, found)


def _digest(value: JsonValue) -> bytes:
    return hashlib.sha256(dumps(value)).digest()


def _differing(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name)))


def _same(a: JsonValue, b: JsonValue) -> bool:
    return a is b or dumps(a) == dumps(b)


def _plain(value: JsonValue) -> str:
    if value is None:
        return "(absent)"
    text = value if isinstance(value, str) else dumps(value).decode("utf-8", "replace")
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."
