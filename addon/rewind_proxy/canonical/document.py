"""A JSON body read with a memory of its lists: the messages and tools that were sent before.

Equal text gives the same items, whatever came in between, so a body reads the same with and without the
memory; only the time differs. What is odd about a body is left to `jcs.parse` as a whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.history import History
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction, Redactor
from rewind_proxy.errors import OpaqueBodyError

if TYPE_CHECKING:
    from hashlib import _Hash

_BYTES = 12_000_000
"""Of memory, about, that is taken by lists and what is kept with them."""
_AT_LEAST = 8
"""Lists that are kept however large: a session of megabytes is the one that must not be read anew."""
_LEAD = 200
_ALIKE = 64
"""Lists with one lead: sessions of one agent in one folder start alike."""
_PROBE = 64
_LAST = 3
"""Items at the end of a list that the next request may say otherwise: Claude Code moves its cache marks."""
_ENTRY = 800
_PER_CHARACTER = 4
"""What an item takes, measured: the text, its value, messages, numbers."""

_CONTAINERS = (dict, list)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE = re.compile(r"[ \t\n\r]*")
_Scan: TypeAlias = Callable[[str, int], tuple[JsonValue, int]]
_Hashes: TypeAlias = "tuple[_Hash, _Hash]"


class Document:
    """A body as it was read: its value, its digests and what is left of it without credentials."""

    __slots__ = ("value",)

    def __init__(self, value: JsonValue) -> None:
        self.value = value

    def digests(self, lead: bytes) -> tuple[_Hash, Mapping[str, bytes]]:
        """The SHA-256 of `lead` and the canonical bytes (RFC 8785), and a digest of each member's own.

        The hash may be added to.
        """
        value = self.value
        if not isinstance(value, dict) or not all(map(str.isascii, value)):
            members = value if isinstance(value, dict) else {}
            return hashlib.sha256(lead + jcs.dumps(value)), {n: _digest(v) for n, v in members.items()}
        digest: _Hash | None = None
        digests: dict[str, bytes] = {}
        written = lead + b"{"
        for name in sorted(value):
            member = value[name]
            written += b'"%b":' % name.encode() if _NAME.fullmatch(name) else jcs.dumps(name) + b":"
            if isinstance(member, History) and digest is None:
                whole, own = _hashes(member, written + b"[")
                digest, digests[name] = whole.copy(), own.digest()
                written = b"],"
                continue
            data, digests[name] = _data(member) if isinstance(member, History) else _encoded(member)
            written += data + b","
        written = (written[:-1] if value else written) + b"}"
        if digest is None:
            return hashlib.sha256(written), digests
        digest.update(written)
        return digest, digests

    def redacted(self, redactor: Redactor, found: list[Redaction]) -> JsonValue:
        """The value without credentials, as `Redactor.value` gives it, list by list."""
        body = self.value
        if not isinstance(body, dict) or redactor.concerns(body):
            return redactor.value(body, found)
        histories = {name: value for name, value in body.items() if _is_history(name, value)}
        rest: JsonObject = {name: value for name, value in body.items() if name not in histories}
        clean = redactor.value(rest, found)
        assert isinstance(clean, dict)
        changed = clean is not rest
        kept = {**body, **clean} if changed else body
        for name, value in histories.items():
            assert isinstance(value, History)
            items, hits = value.fold(("redacted", redactor), _nothing_redacted, partial(_redact, redactor))
            if items is not value:
                kept = {**kept, name: items} if kept is body else kept
                kept[name] = items
            found.extend(Redaction(rule, f"$.{name}[{index}]{below}") for rule, index, below in hits)
        return kept


def _is_history(name: str, value: JsonValue) -> bool:
    return isinstance(value, History) and name != "input_audio" and _NAME.fullmatch(name) is not None


_Hit: TypeAlias = tuple[str, int, str]
"""A rule's id, the index of the item, and the path below it."""
_Redacted: TypeAlias = tuple[History, tuple[_Hit, ...]]


def _nothing_redacted() -> _Redacted:
    return History(()), ()


def _redact(redactor: Redactor, state: _Redacted, items: History, first: int) -> _Redacted:
    clean, hits = state
    new = items[first:]
    below: list[Redaction] = []
    kept = redactor.value(new, below)
    assert isinstance(kept, list)
    more = tuple(_hit(each, first) for each in below)
    if kept is new and (first == 0 or clean is items.before):
        return items, ()
    return History([*clean, *kept], clean if first else None), hits + more


_AT_ITEM = re.compile(r"\$\[([0-9]+)\]")


def _hit(found: Redaction, first: int) -> _Hit:
    at = _AT_ITEM.match(found.path)
    assert at is not None
    return found.rule, first + int(at[1]), found.path[at.end() :]


def _hashes(items: History, lead: bytes) -> _Hashes:
    """The hash of `lead` and the canonical bytes of the items, and that of these alone."""

    def start() -> _Hashes:
        return hashlib.sha256(lead), hashlib.sha256(b"[")

    return items.fold(("hashes", lead), start, _hash)


def _hash(state: _Hashes, items: History, first: int) -> _Hashes:
    data = _written(items, first)
    whole, own = state[0].copy(), state[1].copy()
    whole.update(data)
    own.update(data)
    return whole, own


def _data(items: History) -> tuple[bytes, bytes]:
    """The canonical bytes of a list, and their digest."""
    data = items.fold("canonical", bytes, lambda before, all_, first: before + _written(all_, first))
    digest = items.fold("digest", bytes, lambda _, __, ___: hashlib.sha256(b"[" + data).digest())
    return b"[%b]" % data, digest


def _written(items: History, first: int) -> bytes:
    """The items from `first` on as they stand in the canonical bytes."""
    data = jcs.dumps(items[first:])[1:-1]
    return b"," + data if first and data else data


def _encoded(value: JsonValue) -> tuple[bytes, bytes]:
    data = jcs.dumps(value)
    # Of a list without its end, which is how far a history is hashed.
    return data, hashlib.sha256(data[:-1] if isinstance(value, list) else data).digest()


def _digest(value: JsonValue) -> bytes:
    return _encoded(value)[1]


@dataclass(frozen=True, slots=True)
class _Known:
    """A list of objects as it was written: `raw` is its text up to the end of its last item."""

    raw: str
    items: History
    cut: int
    """Where the items end in `raw` that `items.before` holds; 0 when that is none."""

    def probe(self) -> str:
        """The last of those items' text, which is quicker to compare than all of it."""
        return self.raw[max(0, self.cut - _PROBE) : self.cut]


class _Odd(Exception):  # noqa: N818  # no error: it says that the plain way is to be taken
    """The body is to be read as a whole."""


class Documents:
    """Reads bodies, and remembers their lists of objects until they add up to a bound.

    The oldest go first. Each operation is one of `dict`, which is atomic, so threads may share it.
    """

    def __init__(self, most: int = _BYTES) -> None:
        self._known: dict[str, tuple[_Known, ...]] = {}
        self._bytes = 0
        self._most = most

    def __len__(self) -> int:
        """How many lists are remembered."""
        return sum(map(len, self._known.values()))

    def read(self, body: bytes) -> Document:
        """Read one JSON document strictly. Raises `OpaqueBodyError` as `jcs.parse` does."""
        try:
            text = body.decode("utf-8")
            value = self._object(text, jcs.scanner(text))
        except (_Odd, OpaqueBodyError, ValueError, RecursionError):
            return Document(jcs.parse(body))
        return Document(value)

    def _object(self, text: str, scan: _Scan) -> JsonObject:
        """The object that `text` is. Raises for all that is not one, and for what is odd about it."""
        at = _past_space(text, 0)
        if text[at : at + 1] != "{":
            raise _Odd
        members: JsonObject = {}
        at = _past_space(text, at + 1)
        while True:
            name, at = scan(text, at)
            at = _past_space(text, at)
            if not isinstance(name, str) or name in members or "⟨" in name or text[at : at + 1] != ":":
                raise _Odd
            at = _past_space(text, at + 1)
            if text[at : at + 1] == "[":
                members[name], at = self._list(text, at, scan)
            else:
                value, end = scan(text, at)
                if isinstance(value, dict):
                    jcs.check_depth(value, text, at, end, above=1)
                members[name], at = value, end
            at = _past_space(text, at)
            mark = text[at : at + 1]
            at = _past_space(text, at + 1)
            if mark == "}" and at == len(text):
                return members
            if mark != ",":
                raise _Odd

    def _list(self, text: str, start: int, scan: _Scan) -> tuple[JsonValue, int]:
        known, before, at = self._before(text, start)
        if before is None:
            at = _past_space(text, start + 1)
            if text[at : at + 1] == "]":
                return [], at + 1
        items: list[JsonValue] = [] if before is None else [*before]
        ends: list[int] = []
        expected = before is None
        while True:
            if expected:
                item, at = _item(text, at, scan)
                items.append(item)
                ends.append(at)
            expected = True
            at = _past_space(text, at)
            mark = text[at : at + 1]
            if mark == "]":
                break
            if mark != ",":
                raise _Odd
            at = _past_space(text, at + 1)
        if before is not None and not ends:
            return before, at + 1
        if at - start < _LEAD or not all(type(item) is dict for item in items):
            return items, at + 1
        raw = text[start : ends[-1]]
        return self._remember(known, before, raw, items, [end - start for end in ends]), at + 1

    def _before(self, text: str, start: int) -> tuple[_Known | None, History | None, int]:
        """The longest list that the one at `start` goes on from, and where its items end."""
        best: tuple[_Known | None, History | None, int] = (None, None, start)
        lead = text[start : start + _LEAD]
        for known in self._known.get(lead, ()):
            end = start + len(known.raw)
            # An object ends where it ends: what starts with the text of some starts with these very objects.
            if end > best[2] and text.startswith(known.raw, start):
                best = (known, known.items, end)
                continue
            base, end = known.items.before, start + known.cut
            if base is None or end <= best[2] or text[end - _PROBE : end] != known.probe():
                continue
            if text.startswith(known.raw[: known.cut], start):
                best = (known, base, end)
        if best[1] is not None and best[0] is not None:
            self._known[lead] = self._known.pop(lead, (best[0],))
        return best

    def _remember(
        self, known: _Known | None, before: History | None, raw: str, items: list[JsonValue], ends: list[int]
    ) -> History:
        done = len(before) if before is not None else 0
        kept = len(items) - _LAST
        cut = 0
        base = before
        if before is not None:
            before.before = None  # what is kept with it is all that is needed of what came before
        if kept > done:
            base = History(items[:kept], before)
            cut = ends[kept - done - 1]
        elif known is not None:
            cut = len(known.raw) if before is known.items else known.cut
        made = History(items, base)
        lead = raw[:_LEAD]
        # What goes on from the whole of a list, or is longer, is its next turn.
        replaced = known if known and (before is known.items or len(items) > len(known.items)) else None
        alike = [each for each in self._known.pop(lead, ()) if each is not replaced]
        kept_alike = (*alike[1 - _ALIKE :], _Known(raw, made, cut))
        self._known[lead] = kept_alike
        dropped = alike[: 1 - _ALIKE] if len(alike) >= _ALIKE else []
        self._bytes += _size(kept_alike[-1]) - sum(map(_size, dropped)) - (_size(replaced) if replaced else 0)
        while self._bytes > self._most and len(self._known) > _AT_LEAST:
            oldest = next(iter(self._known), None)
            if oldest is None:
                self._bytes = 0
                break
            for each in self._known.pop(oldest, ()):
                self._bytes -= _size(each)
        return made


def _item(text: str, at: int, scan: _Scan) -> tuple[JsonValue, int]:
    value, end = scan(text, at)
    if isinstance(value, _CONTAINERS):
        jcs.check_depth(value, text, at, end, above=2)
    return value, end


def _size(known: _Known) -> int:
    return _PER_CHARACTER * len(known.raw) + _ENTRY * len(known.items)


def _past_space(text: str, at: int) -> int:
    if text[at : at + 1] not in (" ", "\t", "\n", "\r"):
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at
