"""A name and its value that stand side by side: `{"name": "API_KEY", "value": "…"}`, in text and in objects.

Environments of containers, headers of recorded requests, settings in XML, property lists, arguments of a
command. In an object or a list the name that counts is the one that redaction leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redaction.judge import JUDGED, member_value
from rewind_proxy.canonical.redaction.places import NameKind, data_uri, name_kind
from rewind_proxy.canonical.redaction.rules import MARK, MARK_PATTERN, QUOTE, Span

_BREAK = r"(?:[ \t\r\n,;]|\\[nrt])"
_GIVES = rf"{QUOTE}?[ \t]{{0,8}}(?:=>|[:=])[ \t]{{0,8}}"
_NAME = r"(?P<name>[A-Za-z][\w.-]{1,60})"
_MARK = MARK_PATTERN.lower()
_IN_QUOTES = rf"""(?P<quoted>(?:{_MARK}|[^\s"'`\\]){{1,{JUDGED}}})"""
_BARE = rf"""(?P<bare>(?:{_MARK}|[^\s"'`\\<>{{}}()\[\],;|&$]){{1,{JUDGED}}})"""
_VALUE = rf"(?:{QUOTE}{_IN_QUOTES}|{_BARE})"
_REST = re.compile(rf"""(?:{MARK_PATTERN}|[^\s"'`\\<>])*+""")
# `name: X` before `value: …` in YAML, JSON and programs; `name="X" value="…"` in markup.
_VALUE_OF = re.compile(rf"value{_GIVES}{_VALUE}")
_NAME_BEFORE = re.compile(rf"(?:name|key){_GIVES}{QUOTE}?{_NAME}{QUOTE}?{_BREAK}{{1,40}}{QUOTE}?\Z")
_BEFORE = 140
_ELEMENTS = (
    # `<string name="X">…` of Android.
    re.compile(rf"name={QUOTE}{_NAME}{QUOTE}[^<>]{{0,80}}>{_VALUE}"),
    # `<key>X</key> <string>…` of a property list.
    re.compile(rf"<(?:key|name)>{_NAME}</(?:key|name)>{_BREAK}{{0,40}}<(?:string|value)>{_VALUE}"),
)


def named_values(text: str, lowered: str) -> Iterator[Span]:
    """`- name: API_KEY` and `value: …`, `<add key="ApiKey" value="…"/>`, `<key>apiKey</key><string>…`."""
    for found in _VALUE_OF.finditer(lowered):
        first = max(0, found.start() - _BEFORE)
        before = _NAME_BEFORE.search(lowered, first, found.start())
        if before is not None:
            yield from _named_value(text, before.span("name"), found)
    for pattern in _ELEMENTS:
        for found in pattern.finditer(lowered):
            yield from _named_value(text, found.span("name"), found)


def _named_value(text: str, name: Span, found: re.Match[str]) -> Iterator[Span]:
    start, stop = found.span("quoted" if found["quoted"] is not None else "bare")
    kind = name_kind(text[slice(*name)])
    value = text[start:stop]
    judged = kind if kind in ("", "password", "pass") else "token"
    if judged and (MARK in value or any(member_value(value, judged))):
        rest = _REST.match(text, stop) if stop - start >= JUDGED else None
        yield start, rest.end() if rest else stop


# Objects and lists --------------------------------------------------------------------------------------

_NAME_MEMBERS = ("name", "key", "Name", "Key", "variable", "header", "field")
_JWK_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
"""The private members of a key by RFC 7518 §6; such an object says `kty`."""
VALUE_MEMBERS = frozenset({"value", "Value", "val", "defaultValue"}) | _JWK_MEMBERS
"""Members that may say nothing themselves, and are told by another of the object."""
_SECRET_MEMBERS: dict[str, NameKind] = {"data": "key", "stringData": "password"}
_Leaf = Callable[[str, NameKind], tuple[str, object]]


def kind_beside(holder: JsonObject, member: str, leaf: _Leaf) -> NameKind:
    """What the other members of an object say of its `value`."""
    if member in _JWK_MEMBERS:
        return "key" if isinstance(holder.get("kty"), str) else ""
    for name in _NAME_MEMBERS:
        named = holder.get(name)
        if isinstance(named, str) and data_uri(named) is None:
            return _kind_of(leaf(named, name_kind(name))[0])
    return ""


def kind_inside(holder: JsonObject, member: str, leaf: _Leaf) -> NameKind:
    """What an object says of the texts right in one of its members, as a Secret of Kubernetes does."""
    given = _SECRET_MEMBERS.get(member, "")
    kind = holder.get("kind") if given else None
    return given if isinstance(kind, str) and leaf(kind, "")[0] == "Secret" else ""


def kind_after(items: list[JsonValue], index: int, leaf: _Leaf) -> NameKind:
    """What the string before it says of one in a list: a header's name, an option of a command."""
    name = items[index - 1]
    if not isinstance(name, str) or not (name[:1] == "-" or len(items) == 2) or data_uri(name) is not None:
        return ""
    name = leaf(name, "")[0]
    if _BLANK.search(name) is not None:
        return ""  # a text, not a name
    if len(items) > 2 and (name[:1] != "-" or "=" in name):
        return ""  # no option, or one with its value
    kind = _kind_of(name)
    if kind in ("", "hidden"):
        return kind
    # It may be a list of names, or of options: the value is judged.
    return "pass" if name.startswith("--") and kind in ("password", "pass") else "token"


_BLANK = re.compile(r"\s")


def _kind_of(name: str) -> NameKind:
    # A name that lost something to a rule might have said anything before: the value goes, so that what was
    # stored under fewer rules and what comes now land on the same.
    return "hidden" if MARK in name else name_kind(name)
