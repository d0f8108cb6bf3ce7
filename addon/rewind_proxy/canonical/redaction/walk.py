"""Over the string leaves of a JSON value: what may be looked at, and the value with the changed ones.

Nothing is mutated; what has not changed is the same object. No recursion over the value, so that a deep body
cannot exhaust the stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redaction.json_path import Link, path_of, steps_of
from rewind_proxy.canonical.redaction.names import (
    NUMBER_RULE,
    SHORTEST_NAME,
    NameRule,
    copied,
    is_concerned,
    numbered_names,
    redacted_names,
)
from rewind_proxy.canonical.redaction.pairs import VALUE_MEMBERS, kind_after, kind_beside, kind_inside
from rewind_proxy.canonical.redaction.places import (
    FREE_MEMBERS,
    PLACED_MEMBERS,
    NameKind,
    data_uri,
    decoded_text,
    encoded_text,
    is_sealed,
    is_textual,
    may_be_text,
    media_type,
    name_kind,
)
from rewind_proxy.errors import OpaqueBodyError

Hit = tuple[str, str]
"""A rule's id, and the path from the leaf's own text (empty, or into the JSON it holds)."""
Leaf = Callable[[str, NameKind], tuple[str, tuple[Hit, ...]]]


def redact_tree(value: JsonValue, leaf: Leaf, rule: NameRule, *, wire: bool) -> tuple[JsonValue, list[Hit]]:
    """`value` with `leaf` applied to its string leaves, and what that changed, with paths below `value`.

    A member name that is a credential by `rule` is redacted too. `wire`: it is a body of a provider's API,
    where ids, signatures and encrypted members are left alone.
    """
    try:
        return _redact_leaves(value, leaf, rule, wire=wire)
    except _NameConcerned:
        return _redact_names(value, leaf, rule, wire=wire)


class _NameConcerned(Exception):  # noqa: N818  # no error: names are to be looked at first
    """A member name is a credential, or a mark with a number."""


def _redact_names(value: JsonValue, leaf: Leaf, rule: NameRule, *, wire: bool) -> tuple[JsonValue, list[Hit]]:
    own = copied(value)
    found = [(rule_id, path_of(link)) for rule_id, link in redacted_names(own, rule)]
    redacted, below = _redact_leaves(own, leaf, None, wire=wire)
    found += below
    found += ((NUMBER_RULE, path_of(link)) for link in numbered_names(redacted))
    return (redacted, found) if found else (value, [])


def _redact_leaves(
    value: JsonValue, leaf: Leaf, rule: NameRule | None, *, wire: bool
) -> tuple[JsonValue, list[Hit]]:
    if isinstance(value, str):
        text, hits = leaf(value, "")
        return text, list(hits)
    changes: list[tuple[Link, str]] = []
    found: list[Hit] = []
    stack: list[tuple[JsonValue, Link, str, bool, NameKind]] = [(value, None, "", not wire, "")]
    while stack:
        node, link, parent, free, told = stack.pop()
        nested: list[tuple[JsonValue, Link, str, bool, NameKind]] = []
        if isinstance(node, dict):
            for name, child in node.items():
                if len(name) >= SHORTEST_NAME and rule is not None and is_concerned(name, rule):
                    raise _NameConcerned
                if isinstance(child, str):
                    kind = name_kind(name) or told
                    if not kind and name in VALUE_MEMBERS:
                        kind = kind_beside(node, name, leaf)
                    if not child or name == jcs.NUMBER_TAG:
                        continue
                    if name in PLACED_MEMBERS:
                        _place(node, link, parent, name, kind, child, free, leaf, changes, found)
                    elif child[0] in "dD":
                        _plain((link, name), child, kind, leaf, changes, found)
                    else:  # it is no `data:` URI: the way that nearly all leaves go
                        redacted, hits = leaf(child, kind)
                        if hits:
                            _note((link, name), redacted, hits, changes, found)
                elif isinstance(child, dict):
                    inner = kind_inside(node, name, leaf)
                    nested.append((child, (link, name), name, free or name in FREE_MEMBERS, inner))
                elif isinstance(child, list):
                    nested.append((child, (link, name), name, free, ""))
        elif isinstance(node, list):
            for index, child in enumerate(node):
                if isinstance(child, str):
                    if child:
                        kind = kind_after(node, index, leaf) if index else ""
                        _plain((link, index), child, kind, leaf, changes, found)
                elif isinstance(child, dict | list):
                    nested.append((child, (link, index), parent, free, ""))
        stack.extend(reversed(nested))
    return (_with(value, changes) if changes else value), found


def _place(
    holder: JsonObject,
    link: Link,
    parent: str,
    name: str,
    kind: NameKind,
    text: str,
    free: bool,
    leaf: Leaf,
    changes: list[tuple[Link, str]],
    found: list[Hit],
) -> None:
    if is_sealed(holder, name, free=free):
        return
    media = media_type(holder, parent, name, text)
    if media is None:
        _plain((link, name), text, kind, leaf, changes, found)
    elif is_textual(media) or may_be_text(media, text):
        _encoded((link, name), "", text, leaf, changes, found)


def _plain(
    link: Link, text: str, kind: NameKind, leaf: Leaf, changes: list[tuple[Link, str]], found: list[Hit]
) -> None:
    uri = data_uri(text)
    if uri is not None:
        media = uri["type"] or "text/plain"  # RFC 2397: without a type it is text/plain
        if is_textual(media) or may_be_text(media, uri["data"]):
            _encoded(link, text[: uri.start("data")], uri["data"], leaf, changes, found)
        return
    redacted, hits = leaf(text, kind)
    if hits:
        _note(link, redacted, hits, changes, found)


def _encoded(
    link: Link, head: str, data: str, leaf: Leaf, changes: list[tuple[Link, str]], found: list[Hit]
) -> None:
    text = decoded_text(data)
    if text is None:
        redacted, hits = leaf(data, "")
    else:
        redacted, hits = leaf(text, "")
        redacted = encoded_text(redacted)
    if hits:
        _note(link, head + redacted, hits, changes, found)


def _note(
    link: Link, text: str, hits: tuple[Hit, ...], changes: list[tuple[Link, str]], found: list[Hit]
) -> None:
    changes.append((link, text))
    path = path_of(link)
    found.extend((rule, path + below) for rule, below in hits)


def _with(value: JsonValue, changes: list[tuple[Link, str]]) -> JsonValue:
    """A copy of `value` with the changed leaves; containers without one are shared with it."""
    root = _copy(value)
    owned = {id(root)}
    for link, text in changes:
        *above, last = steps_of(link)
        node = root
        for step in above:
            child = node[step]  # type: ignore[index]  # a step was made from this very container
            if id(child) not in owned:
                child = _copy(child)
                owned.add(id(child))
                node[step] = child  # type: ignore[index]
            node = child
        node[last] = text  # type: ignore[index]
    return root


def _copy(value: JsonValue) -> JsonValue:
    return value.copy() if isinstance(value, dict | list) else value


# JSON in a string ---------------------------------------------------------------------------------------

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')


def json_in(text: str) -> JsonValue | None:
    """The object or array that `text` is as a whole, or None."""
    head, tail = text.lstrip()[:1], text.rstrip()[-1:]
    if (head, tail) not in (("{", "}"), ("[", "]")):
        return None
    try:
        return jcs.parse(text)
    except OpaqueBodyError:
        return None


def redact_json(text: str, value: JsonValue, leaf: Leaf, rule: NameRule) -> tuple[str, tuple[Hit, ...]]:
    """The JSON document `text` (read as `value`) with its string leaves and its names redacted.

    Only the string tokens that change are written anew: numbers, white space and the spelling of all other
    strings stay as they are, so the result is the same however often it is done.
    """
    redacted, hits = redact_tree(value, leaf, rule, wire=False)
    if not hits:
        return text, ()
    pieces: list[str] = []
    end = 0
    tokens = _JSON_STRING.finditer(text)
    for token, before, after in zip(tokens, _strings(value), _strings(redacted), strict=True):
        if after is not before and after != before:
            pieces += [text[end : token.start()], json.dumps(after, ensure_ascii=False)]
            end = token.end()
    return "".join(pieces) + text[end:], tuple(hits)


def _strings(value: JsonValue) -> Iterator[str]:
    """Names and string leaves in the order of the document; numbers that JCS cannot say were no strings."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, list):
            stack.extend(reversed(node))
        elif isinstance(node, dict) and jcs.NUMBER_TAG not in node:
            for name, child in reversed(node.items()):
                stack += [child, name]
