"""A request body as stored: a small structure whose large members are blobs.

The elements of the arrays that grow with a session are stored one by one, other members of some size (the
tools, the instructions) whole. The structure is JSON made of tagged pairs, and a client's JSON stands only
inside a `value` pair, so nothing a client sends can be read as a reference:

    ["value", json]     ["list", digest of its last link]
    ["blob", digest]    ["members", [[name, structure], …]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from rewind_proxy.canonical.jcs import store_dumps, store_loads
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store.blobs import (
    blob_key,
    drop_blob,
    drop_list,
    keep_blob,
    keep_list,
    list_key,
    read_blob,
    read_list,
)
from rewind_proxy.store.transaction import Txn

ELEMENTWISE = frozenset({"messages", "input", "contents", "system"})
_INLINE = 256


@dataclass(frozen=True, slots=True)
class _Value:
    value: JsonValue


@dataclass(frozen=True, slots=True)
class _Blob:
    content: bytes


@dataclass(frozen=True, slots=True)
class _List:
    contents: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Members:
    members: tuple[tuple[str, Plan], ...]


Plan: TypeAlias = _Value | _Blob | _List | _Members


def plan(body: JsonValue) -> Plan:
    """Take a body apart. Pure, so that it is done before the write lock is taken."""
    if isinstance(body, dict):
        return _Members(tuple((name, _member(name, value)) for name, value in body.items()))
    return _whole(body)


def _member(name: str, value: JsonValue) -> Plan:
    if (
        name in ELEMENTWISE
        and isinstance(value, list)
        and value
        and all(isinstance(item, dict) for item in value)
    ):
        return _List(tuple(store_dumps(item) for item in value))
    if isinstance(value, dict) and not ELEMENTWISE.isdisjoint(value):
        return plan(value)  # Code Assist wraps the request of Gemini's API in `request`
    return _whole(value)


def _whole(value: JsonValue) -> Plan:
    content = store_dumps(value)
    return _Value(value) if len(content) < _INLINE else _Blob(content)


def keep(txn: Txn, planned: Plan) -> JsonValue:
    """Store what a plan holds; the structure that leads to it."""
    match planned:
        case _Value(value):
            return ["value", value]
        case _Blob(content):
            return ["blob", keep_blob(txn, content).hex()]
        case _List(contents):
            return ["list", keep_list(txn, contents).hex()]
        case _Members(members):
            return ["members", [[name, keep(txn, member)] for name, member in members]]


def read(txn: Txn, structure: JsonValue) -> JsonValue:
    """The body that a structure leads to. Raises `CorruptRecordError`."""
    match structure:
        case ["value", value]:
            return value
        case ["blob", str(digest)]:
            return store_loads(read_blob(txn, bytes.fromhex(digest)))
        case ["list", str(digest)]:
            return [store_loads(content) for content in read_list(txn, bytes.fromhex(digest))]
        case ["members", list(members)]:
            body: JsonObject = {}
            for member in members:
                name, value = _pair(member)
                body[name] = read(txn, value)
            return body
    raise _corrupt()


def drop(txn: Txn, structure: JsonValue) -> None:
    """Give back what a structure refers to. Raises `CorruptRecordError`."""
    match structure:
        case ["value", _]:
            return
        case ["blob", str(digest)]:
            drop_blob(txn, bytes.fromhex(digest))
        case ["list", str(digest)]:
            drop_list(txn, bytes.fromhex(digest))
        case ["members", list(members)]:
            for member in members:
                drop(txn, _pair(member)[1])
        case _:
            raise _corrupt()


def references(structure: JsonValue) -> Iterator[bytes]:
    """The blobs and lists that a structure refers to, as keys of their table. Raises `CorruptRecordError`."""
    match structure:
        case ["value", _]:
            return
        case ["blob", str(digest)]:
            yield blob_key(bytes.fromhex(digest))
        case ["list", str(digest)]:
            if digest:
                yield list_key(bytes.fromhex(digest))
        case ["members", list(members)]:
            for member in members:
                yield from references(_pair(member)[1])
        case _:
            raise _corrupt()


def _pair(member: JsonValue) -> tuple[str, JsonValue]:
    match member:
        case [str(name), structure]:
            return name, structure
    raise _corrupt()


def _corrupt() -> CorruptRecordError:
    return CorruptRecordError("a stored request is not built as Rewind builds them")
