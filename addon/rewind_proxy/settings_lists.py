"""The kinds of settings that hold several values: lists of texts, patterns, scrub rules, hosts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast
from urllib.parse import urlsplit

from rewind_proxy.canonical.model import ScrubRule
from rewind_proxy.settings_values import (
    BadValueError,
    Kind,
    Reader,
    did_you_mean,
    one_of,
    quote,
    read_text,
    within,
)

_HOST = re.compile(r"(?:[a-z0-9*][a-z0-9_.*-]*|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?")
_NO_URL = re.compile(r"[\x00-\x20\x7f-\x9f]")
_NUMBERED = re.compile(r"[A-Za-z]+[0-9]+")
"""Of an id with another number none is nearer than the rest."""


_TEXTS = 'a list, as ["…", "…"]'
_RULES = 'a list, as [{ name = "build", pattern = "…" }]'
_PAIRS = 'a list, as ["host=value"], or a table, as { "host" = "value" }'


def names(*, commas: Literal["always", "variable"] = "always") -> Kind:
    """A list of plain texts."""

    def read(value: object) -> object:
        return tuple(_nonempty(item, place) for item, place in _items(value))

    return Kind(label="list", written=_TEXTS, read=read, is_list=True, commas=commas)


def rule_ids(what: str, known: Iterable[str], told: str, *, own: str = "") -> Kind:
    """A list of ids of rules of one kind (`what`), each of them `known`; `told` says which there are.

    One that starts with `own` names a rule of the project's, which `settings` looks up when it has read them.
    """
    ids = frozenset(known)

    def read(value: object) -> object:
        found = tuple(_nonempty(item, place) for item, place in _items(value))
        for rule in found:
            if rule not in ids and not (own and rule.startswith(own)):
                numbered = _NUMBERED.fullmatch(rule) and rule.upper() not in ids
                guess = "" if numbered else did_you_mean(rule, sorted(ids))
                raise BadValueError(f"{quote(rule)} is not a {what} rule{guess} ({told})")
        return found

    return Kind(label="list", written=_TEXTS, read=read, is_list=True)


def patterns() -> Kind:
    """A list of regular expressions, compiled here for validation only."""

    def read(value: object) -> object:
        found = []
        for item, place in _items(value):
            if not isinstance(item, str):
                raise BadValueError(f"{place} is not a text")
            _check_pattern(item, place)
            found.append(item)
        return tuple(found)

    return Kind(label="list of patterns", written=_TEXTS, read=read, is_list=True, commas="never")


def scrub_rules() -> Kind:
    """A list of `{ name, pattern, where }`."""
    members = tuple(ScrubRule.model_fields)
    where = one_of("any", "system", "user", "assistant", "tool_result", "tools")

    def read(value: object) -> object:
        rules: list[ScrubRule] = []
        for item, place in _items(value, _RULES):
            if not isinstance(item, Mapping):
                raise BadValueError(f'{place} is not an object such as {{"name": "build", "pattern": "…"}}')
            for member in item:
                if member not in members:
                    guess = did_you_mean(str(member), members)
                    known = ", ".join(members)
                    raise BadValueError(f"{place}: {quote(member)} is not one of its keys {known}{guess}")
            name = _nonempty(item.get("name"), f"{place}: name")
            if any(rule.name == name for rule in rules):
                raise BadValueError(f"{place}: the name {quote(name)} is taken by an earlier rule")
            pattern = item.get("pattern")
            if not isinstance(pattern, str):
                raise BadValueError(f"{place} ({name}) has no pattern")
            _check_pattern(pattern, f"the pattern of {name}")
            place_word = within(f"{place} ({name}): where", where.read, item.get("where", "any"))
            rules.append(ScrubRule.model_validate({"name": name, "pattern": pattern, "where": place_word}))
        return tuple(rules)

    return Kind(label="list of rules", written=_RULES, read=read, is_list=True, commas="never")


def host_map(value_of: Reader) -> Kind:
    """`host=value` pairs, as a list or an object; hosts in lower case."""

    def read(value: object) -> object:
        found: dict[str, object] = {}
        for name, target, place in _pairs(value):
            host = name.strip().lower()
            match = _HOST.fullmatch(host)
            if match is None or not host.strip("*.") or not 0 < int(match["port"] or 1) < 65536:
                raise BadValueError(f"{place} is not a host name (a port may follow, a scheme may not)")
            read_value = within(f"host {host}", value_of, target)
            if found.setdefault(host, read_value) != read_value:
                raise BadValueError(f"host {host} is given twice, with two values")
        return found

    return Kind(label="host=value list", written=_PAIRS, read=read, is_list=True)


def base_url(value: object) -> str:
    """An absolute http or https URL without query, its last `/` taken off. The reason never quotes it."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        url = urlsplit(text)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        valid = False
    if not valid or url.query or url.fragment or _NO_URL.search(text):
        raise BadValueError("needs a base URL such as http://127.0.0.1:9000 (no query, no fragment)")
    return text.rstrip("/")


def _nonempty(value: object, place: str) -> str:
    text = cast("str", within(place, read_text, value)).strip()
    if not text:
        raise BadValueError(f"{place} is empty")
    return text


def _items(value: object, form: str = _TEXTS) -> list[tuple[object, str]]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise BadValueError(f"write {form}")
    return [(item, f"entry {number}") for number, item in enumerate(value, 1)]


def _pairs(value: object) -> Iterable[tuple[str, object, str]]:
    if isinstance(value, Mapping):
        for host, target in value.items():
            yield str(host), target, quote(host)
        return
    for item, place in _items(value, _PAIRS):
        if isinstance(item, Mapping):
            yield from _pairs(item)
            continue
        host, equals, target = item.partition("=") if isinstance(item, str) else ("", "", "")
        if not equals:
            raise BadValueError(f"{place} is not host=value")
        yield host, target, place


def _check_pattern(pattern: str, place: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning for `[[`: it still compiles
            compiled = re.compile(pattern)
    except re.error as error:
        at = "" if error.pos is None else f" at position {error.pos}"
        raise BadValueError(f"{place} is not a regular expression: {error.msg}{at}") from None
    except (OverflowError, RecursionError):
        raise BadValueError(f"{place} is too large a regular expression") from None
    if compiled.search(""):
        raise BadValueError(f"{place} matches the empty text, and so between any two characters")
