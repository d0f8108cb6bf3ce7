"""A JSON body as it was read: its value, its digests, and what is left of it without credentials."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.history import History
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction, Redactor

if TYPE_CHECKING:
    from hashlib import _Hash

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
    data, own = items.fold("canonical", lambda: (b"", hashlib.sha256(b"[")), _canonical)
    return b"[%b]" % data, own.digest()


def _canonical(state: tuple[bytes, _Hash], items: History, first: int) -> tuple[bytes, _Hash]:
    data, own = _written(items, first), state[1].copy()
    own.update(data)
    return state[0] + data, own


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
