"""The data of a Kubernetes Secret, whatever its members are called (`kind: Secret`, `data`, `stringData`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rewind_proxy.canonical.redaction.judge import is_reference
from rewind_proxy.canonical.redaction.rules import MARK_PATTERN, Span

_LINE = re.compile(r"(?P<indent>[ ]{0,64})(?P<item>(?:- ){0,8})(?P<text>[^\n]*)")
_KIND = re.compile(r"""kind:[ ]{1,8}["']?(?P<kind>[A-Za-z]{1,64})["']?[ \t\r]*""")
_DATA = re.compile(r"(?:data|stringData):[ \t\r]*")
_MEMBER = re.compile(
    r"""["']?[\w.-]{1,253}["']?:(?:[ \t]+(?:(?P<block>[|>][+-]?[ \t\r]*\Z)"""
    rf"""|["']?(?P<value>(?:{MARK_PATTERN}|[^\s"'{{\[])[^"'\n\r]*))|)"""
)
_PLAIN = re.compile(r"\S(?:[^\n\r]*[^\s])?")


MANIFEST_WORDS = ("kind: secret", 'kind: "secret"', "kind: 'secret'", '"kind"')
"""One of these stands in every text with such data, in lower case."""


@dataclass(slots=True)
class _Mapping:
    """A mapping of YAML that is being read."""

    indent: int
    secret: bool = False
    data: int = -1
    """The indent of its `data`, below which lines are members; -1 outside of it."""
    block: int = -1
    """The indent of a member that is a block of lines; -1 outside of one."""
    found: list[Span] = field(default_factory=list)


def manifest_secrets(text: str, lowered: str) -> Iterator[Span]:
    """The values of `data` and `stringData` beside `kind: Secret`, in YAML and in JSON within a text."""
    if any(word in lowered for word in MANIFEST_WORDS[:3]):
        yield from _of_yaml(text)
    if '"Secret"' in text:
        yield from _of_json(text)


def _of_yaml(text: str) -> Iterator[Span]:
    open_mappings: list[_Mapping] = []
    for line in _LINE.finditer(text):
        content = line["text"]
        if not content.strip():
            continue
        indent = len(line["indent"])
        if content.startswith("---") and not indent:
            yield from _closed(open_mappings, -1)
            continue
        inner = indent + len(line["item"])
        top = open_mappings[-1] if open_mappings else None
        if top and top.data >= 0 and indent > top.data:
            _member(top, indent, content, line.start("text"))
            continue
        yield from _closed(open_mappings, inner if not line["item"] else indent)
        if not open_mappings or open_mappings[-1].indent < inner:
            open_mappings.append(_Mapping(inner))
        top = open_mappings[-1]
        top.data = top.block = -1
        if kind := _KIND.fullmatch(content):
            top.secret = kind["kind"] == "Secret"
        elif _DATA.fullmatch(content):
            top.data = inner
    yield from _closed(open_mappings, -1)


def _closed(mappings: list[_Mapping], indent: int) -> Iterator[Span]:
    """Take away the mappings that stand deeper than `indent`."""
    while mappings and mappings[-1].indent > indent:
        closed = mappings.pop()
        if closed.secret:
            yield from closed.found


def _member(mapping: _Mapping, indent: int, content: str, start: int) -> None:
    if mapping.block >= 0 and indent > mapping.block:
        if plain := _PLAIN.match(content):
            mapping.found.append((start, start + plain.end()))
        return
    mapping.block = -1
    member = _MEMBER.match(content)
    if member is None:
        return
    if member["block"]:
        mapping.block = indent
    elif member["value"] and not is_reference(member["value"].strip()):
        first, last = member.span("value")
        mapping.found.append((start + first, start + first + len(content[first:last].rstrip())))


_OBJECT = re.compile(r'"(?:data|stringData)"\s{0,8}:\s{0,8}\{(?P<members>[^{}]{1,20000})\}')
_PAIR = re.compile(r'"[\w.-]{1,253}"\s{0,8}:\s{0,8}"(?P<value>(?:[^"\\\n]|\\.)+)"')
_SECRET = re.compile(r'"kind"\s{0,8}:\s{0,8}"Secret"')
_NEAR = 2000


def _of_json(text: str) -> Iterator[Span]:
    for found in _OBJECT.finditer(text):
        start, end = found.span()
        before = text.rfind('"kind"', max(0, start - _NEAR), start)
        after = text.find('"kind"', end, end + _NEAR)
        if any(at >= 0 and _SECRET.match(text, at) for at in (before, after)):
            for pair in _PAIR.finditer(text, *found.span("members")):
                if not is_reference(pair["value"]):
                    yield pair.span("value")
