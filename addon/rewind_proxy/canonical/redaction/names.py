"""Names of members that hold a credential: each becomes `[REDACTED]`, told apart where an object has several.

Which of an object's redacted names has which number depends on their values alone, so that it is the same for
any order of the members, for other keys in the same places, and whether they were redacted at once or one
after another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redaction.json_path import Link
from rewind_proxy.canonical.redaction.rules import MARK

NameRule = Callable[[str], str]
"""The id of the rule by which a name is a credential; empty when it is none."""
SHORTEST_NAME = 16
"""Shorter names are neither a credential, nor a value of an auth header, nor a numbered mark."""
NUMBER_RULE = "RW002"
"""What it is called when redacted names got other numbers."""

_NUMBERED = MARK + " no. "
_MARKED = re.compile(rf"{re.escape(MARK)}(?: no\. [0-9]+)?")


def is_concerned(name: str, rule: NameRule) -> bool:
    """Whether a name of `SHORTEST_NAME` or more characters needs `redacted_names` or `numbered_names`."""
    return name.startswith(_NUMBERED) or rule(name) != ""


def copied(value: JsonValue) -> JsonValue:
    """`value` with containers of its own."""
    root: list[JsonValue] = [value]
    stack: list[list[JsonValue] | JsonObject] = [root]
    while stack:
        node = stack.pop()
        places: Iterable[tuple[int | str, JsonValue]]
        places = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
        for place, child in places:
            if isinstance(child, dict | list):
                own: JsonObject | list[JsonValue] = dict(child) if isinstance(child, dict) else list(child)
                node[place] = own  # type: ignore[index]  # a place of this very container
                stack.append(own)
    return root[0]


def redacted_names(value: JsonValue, rule: NameRule) -> Iterator[tuple[str, Link]]:
    """Redact the names in `value`, in place: for each the rule, and its place by its new name."""
    for holder, link in _objects(value):
        found = {name: rule(name) for name in holder if len(name) >= SHORTEST_NAME}
        names = dict(zip((name for name, rule_id in found.items() if rule_id), _free(holder), strict=False))
        if names:
            _rename(holder, names)
            yield from ((found[name], (link, new)) for name, new in names.items())


def numbered_names(value: JsonValue) -> Iterator[Link]:
    """Number the redacted names in `value` by their values, in place: the objects where that changed one."""
    known: dict[int, bytes] = {}
    for holder, link in reversed(list(_objects(value))):
        marked = [name for name in holder if _MARKED.fullmatch(name)]
        if len(marked) < 2:
            continue
        keys = {name: _digest(holder[name], known) for name in marked}
        known.update((id(holder[name]), key) for name, key in keys.items() if _holds(holder[name]))
        names = {name: _mark(index) for index, name in enumerate(sorted(marked, key=keys.__getitem__))}
        if any(name != new for name, new in names.items()):
            _rename(holder, names)
            yield link


def _mark(index: int) -> str:
    return f"{_NUMBERED}{index + 1}" if index else MARK


def _free(holder: JsonObject) -> Iterator[str]:
    index = 0
    while True:
        if _mark(index) not in holder:
            yield _mark(index)
        index += 1


def _rename(holder: JsonObject, names: dict[str, str]) -> None:
    members = [(names.get(name, name), child) for name, child in holder.items()]
    holder.clear()
    holder.update(members)


def _holds(value: JsonValue) -> bool:
    return isinstance(value, dict | list)


def _objects(value: JsonValue) -> Iterator[tuple[JsonObject, Link]]:
    """The objects in `value` and their places, each before those within it."""
    stack: list[tuple[JsonValue, Link]] = [(value, None)]
    while stack:
        node, link = stack.pop()
        if isinstance(node, dict):
            yield node, link
            stack.extend((child, (link, name)) for name, child in node.items() if _holds(child))
        elif isinstance(node, list):
            stack.extend((child, (link, index)) for index, child in enumerate(node) if _holds(child))


def _digest(value: JsonValue, known: dict[int, bytes]) -> bytes:
    """A digest of a value's meaning. What is `known` is not read again, so that depth costs nothing."""
    digest = hashlib.sha256()
    stack: list[JsonValue | bytes] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, bytes):
            digest.update(node)
        elif not isinstance(node, dict | list):
            digest.update(jcs.dumps(node) + b",")
        elif id(node) in known:
            digest.update(known[id(node)])
        elif isinstance(node, list):
            digest.update(b"[")
            stack += [b"]", *reversed(node)]
        else:
            digest.update(b"{")
            stack.append(b"}")
            for name in sorted(node, reverse=True):
                stack += [node[name], name.encode("utf-8", "surrogatepass") + b":"]
    return digest.digest()
