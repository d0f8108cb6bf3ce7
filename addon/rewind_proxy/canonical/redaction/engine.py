"""A list of redaction rules applied to one text, until none of them changes anything.

The law that this keeps is in `redact`. What makes it quick: rules name a literal that stands in each of their
matches, so one look at the text says which can match at all (and since a change only takes characters away,
that stays true), and texts seen before are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.literals import Literals
from rewind_proxy.canonical.redaction.base64_rule import (
    BASE64_PARTS,
    BASE64_RULE,
    Base64Rule,
    may_hold_base64,
)
from rewind_proxy.canonical.redaction.concealed import Revealed, revealed
from rewind_proxy.canonical.redaction.context import CONTEXT_RULES, ContextRule
from rewind_proxy.canonical.redaction.judge import member_value
from rewind_proxy.canonical.redaction.places import NameKind
from rewind_proxy.canonical.redaction.rules import (
    MARK,
    RUN_CLASS,
    RUN_LEAD,
    RUN_LENGTH,
    Span,
    TokenRule,
)
from rewind_proxy.canonical.redaction.tokens import TOKEN_RULES
from rewind_proxy.canonical.redaction.walk import Hit, json_in, redact_json
from rewind_proxy.errors import SettingsError, StoreVersionError

PATTERN = "pattern:"
MEMBER_RULE = "RW310"
_SHORTEST = 6
_PASSES = 64
_CHOICES = 1000
_REMEMBERED = 600_000

_SHAPE = bytes(ord("a") if byte in RUN_CLASS else ord(" ") for byte in range(256))
_RUN = b"a" * RUN_LENGTH
_MARKS = re.compile(re.escape(MARK))
# Media pasted into a text: what looks like a key in there is not one.
_PASTED_MEDIA = re.compile(
    r"data:(?:image|audio|video|font|application)/[\w.+-]{1,80}(?:;[\w.=-]{1,80})*;base64,[A-Za-z0-9+/_=-]{64,}"
)

_Found = tuple[str, tuple[Hit, ...]]


@dataclass(frozen=True, slots=True)
class _PatternRule:
    id: str
    pattern: re.Pattern[str]

    def spans(self, text: str, lowered: str) -> Iterable[Span]:  # noqa: ARG002  # one signature for all rules
        return (match.span() for match in self.pattern.finditer(text))


@dataclass(frozen=True, slots=True)
class _MemberRule:
    """By the name of the member that holds the text."""

    id: str
    version: int = 1


_MEMBERS = _MemberRule(MEMBER_RULE)
_BuiltIn = TokenRule | ContextRule | _MemberRule | Base64Rule
_IN_ORDER: tuple[_BuiltIn, ...] = (*TOKEN_RULES, *CONTEXT_RULES, BASE64_RULE, _MEMBERS)
_Rule = _BuiltIn | _PatternRule
_BUILT_IN: dict[str, _BuiltIn] = {f"{rule.id}@{rule.version}": rule for rule in _IN_ORDER}
BUILT_IN_RULES = tuple(_BUILT_IN)
"""The identities of the built-in rules, in the order in which they are applied."""


def compile_pattern(pattern: str, place: str) -> re.Pattern[str]:
    """A project's pattern. Raises `SettingsError`, naming the place and never the pattern, when it is bad."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        raise SettingsError(f"{place} is no regular expression: {error.msg}{where}") from None
    if compiled.search(""):
        raise SettingsError(
            f"{place} matches the empty text: it would redact everything. Make it need a character."
        )
    return compiled


def _load(rules: Iterable[str]) -> tuple[_Rule, ...]:
    loaded: list[_Rule] = []
    patterns = 0
    for rule in rules:
        if rule.startswith(PATTERN):
            patterns += 1
            place = f"redaction pattern {patterns}"
            loaded.append(_PatternRule(f"RW{900 + patterns}", compile_pattern(rule[len(PATTERN) :], place)))
        elif rule in _BUILT_IN:
            loaded.append(_BUILT_IN[rule])
        else:
            raise StoreVersionError(
                f"redaction rule {rule[:40]!r} is not known to this version of Rewind. "
                "Open the store with the version that wrote it, or a newer one."
            )
    return tuple(loaded)


class RuleEngine:
    """One list of rules, ready to run. Safe to share between threads."""

    def __init__(self, rules: tuple[str, ...]) -> None:
        self._rules = _load(rules)
        self._always = 0
        self._prefixes: dict[str, int] = {}
        self._words: dict[str, int] = {}
        self._encoded = self._members = 0
        for index, rule in enumerate(self._rules):
            bit = 1 << index
            if isinstance(rule, Base64Rule):
                self._encoded = bit
            elif isinstance(rule, TokenRule):
                for literal in rule.literals:
                    self._prefixes[literal] = self._prefixes.get(literal, 0) | bit
            elif isinstance(rule, _PatternRule):
                self._always |= bit
            elif isinstance(rule, _MemberRule):
                self._members = bit
            else:
                for word in rule.words:
                    self._words[word] = self._words.get(word, 0) | bit
        self._lowered: dict[str, tuple[str, ...]] = {}
        """Prefixes and what base64 makes of some, by how they are spelt in lower case."""
        for prefix in (*self._prefixes, *(BASE64_PARTS if self._encoded else ())):
            self._lowered[_lower(prefix)] = (*self._lowered.get(_lower(prefix), ()), prefix)
        self._looked_for = Literals((*self._words, *self._lowered))
        # No rule has a match in a shorter text, but for one that goes by the member's name.
        self._shortest = 1 if self._always else _SHORTEST
        self._seen: TextCache[tuple[str, NameKind], _Found] = TextCache(_REMEMBERED)
        self._choices: dict[int, tuple[_Rule, ...]] = {}
        self._names: dict[str, str] = {}

    def name_rule(self, name: str) -> str:
        """The id of the first rule by which a member's name holds a credential; empty when none does.

        Only the shapes of credentials count: a project's pattern may well match what members are called.
        """
        found = self._names.get(name)
        if found is None:
            found = self._name_rule(name)
            if len(self._names) < _CHOICES:
                self._names[name] = found
        return found

    def _name_rule(self, name: str) -> str:
        if len(name) < RUN_LENGTH:
            return ""
        hidden = revealed(name)
        readings = (name,) if hidden is None else (name, hidden.text)
        for rule in self._rules:
            if isinstance(rule, TokenRule) and any(any(rule.spans(text, "")) for text in readings):
                return rule.id
        return ""

    def settle(self, text: str, kind: NameKind) -> _Found:
        """`text` with all rules applied until none changes it, and what was applied."""
        if len(text) < self._shortest and not kind:
            return text, ()
        key = (text, kind)
        found = self._seen.get(key)
        if found is None:
            found = self._settle(text, kind)
            self._seen.put(key, found, len(text))
        return found

    def _settle(self, text: str, kind: NameKind) -> _Found:
        hidden = revealed(text)
        active = self._active(text, kind, hidden)
        if not active and "\\u" not in text and "\\/" not in text:
            return text, ()
        document = json_in(text)
        if document is not None:
            return redact_json(text, document, self.settle, self.name_rule)
        rules = self._chosen(active)
        passes = [0] * len(rules)
        hits: dict[str, None] = {}
        lowered = _lower(text)
        index = 0
        while index < len(rules):
            rule = rules[index]
            changed = _apply(rule, text, lowered, kind, hidden)
            if changed == text:
                index += 1
                continue
            text = changed
            hits[rule.id] = None
            passes[index] += 1
            if passes[index] > _PASSES:
                # A pattern that uncovers its own next match at each pass: quadratic, so the text goes whole.
                text = MARK
                break
            passes[:index] = [0] * index
            document = json_in(text)
            if document is not None:
                text, inner = redact_json(text, document, self.settle, self.name_rule)
                return text, (*((rule_id, "") for rule_id in hits), *inner)
            lowered = _lower(text)
            hidden = hidden and revealed(text)
            index = 0
        return text, tuple((rule_id, "") for rule_id in hits)

    def _chosen(self, active: int) -> tuple[_Rule, ...]:
        chosen = self._choices.get(active)
        if chosen is None:
            chosen = tuple(rule for index, rule in enumerate(self._rules) if active >> index & 1)
            if len(self._choices) < _CHOICES:
                self._choices[active] = chosen
        return chosen

    def _active(self, text: str, kind: NameKind, hidden: Revealed | None) -> int:
        """The rules that can match in `text`, as bits."""
        active = self._always | (self._members if kind else 0)
        found = self._looked_for.within(_lower(text))
        if hidden is not None:
            found |= self._looked_for.within(_lower(hidden.text))
        prefixes: list[str] = []
        for word in found:
            active |= self._words.get(word, 0)
            prefixes += self._lowered.get(word, ())
        if prefixes:
            runs = _runs(text) if hidden is None else f"{_runs(text)} {_runs(hidden.text)}"
            prefixes = [prefix for prefix in prefixes if prefix in runs]
            for prefix in prefixes:
                active |= self._prefixes.get(prefix, 0)
            if self._encoded and may_hold_base64(runs, prefixes):
                active |= self._encoded
        return active


def _lower(text: str) -> str:
    """`text` with A to Z in lower case; each character stays where it is, as `str.lower` does not promise."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _runs(text: str) -> str:
    """The runs of token characters that are long enough to hold a credential."""
    data = text.encode("utf-8", "surrogatepass")
    shape = data.translate(_SHAPE)
    runs: list[bytes] = []
    start = shape.find(_RUN)
    while start >= 0:
        end = shape.find(b" ", start + RUN_LENGTH)
        if end < 0:
            end = len(data)
        runs.append(data[max(0, start - RUN_LEAD) : end])
        start = shape.find(_RUN, end)
    return b" ".join(runs).decode("latin-1")


def _apply(rule: _Rule, text: str, lowered: str, kind: NameKind, hidden: Revealed | None) -> str:
    if isinstance(rule, _MemberRule):
        spans = member_value(text, kind) if kind else []
    else:
        spans = list(rule.spans(text, lowered))
        if hidden is not None and isinstance(rule, TokenRule):
            spans += map(hidden.origin, rule.spans(hidden.text, ""))
    if not spans:
        return text
    kept = [match.span() for match in _PASTED_MEDIA.finditer(text)] if ";base64," in text else []
    marks = [match.span() for match in _MARKS.finditer(text)]
    pieces: list[str] = []
    end = 0
    for start, stop in _widened(spans, marks):
        if any(first <= start and stop <= last for first, last in kept):
            continue
        pieces += [text[end:start], MARK]
        end = stop
    return "".join(pieces) + text[end:]


def _widened(spans: list[Span], marks: list[Span]) -> list[Span]:
    """The spans, joined where they overlap and widened over the marks they touch; none that is only marks.

    A mark is never cut, so each change leaves fewer characters outside of marks than before.
    """
    untouched = set(marks)
    joined: list[list[int]] = []
    for start, stop in sorted([*spans, *marks]):
        if joined and start < joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], stop)
        elif start < stop:
            joined.append([start, stop])
    return [(start, stop) for start, stop in joined if (start, stop) not in untouched]
