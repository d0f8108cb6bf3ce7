"""Redaction: credentials become `[REDACTED]` in everything that is stored (DESIGN §6).

A list of rules is a list of strings that only grows: `RW101@1` for a built-in rule and its version,
`pattern:<regex>` for one of the project's. The law that keeps live, stored and re-keyed requests on one
fingerprint is, for any split of the list into R1 + R2,

    redact(R1 + R2)(x) == redact(R1 + R2)(redact(R1)(x))

It holds by construction, whatever the rules do: on each text the first rule of the list that changes anything
is applied, then the list starts over, until no rule changes anything. The work on `x` under R1 + R2 therefore
begins with all of the work under R1, and that under R1 + R2 on `redact(R1)(x)` goes on from there. It ends,
because each change leaves fewer characters outside the marks.

Member names keep the law too (`redaction.names`): what a name that holds a credential becomes depends on the
final values beside it, and it says nothing of its own value, before as after.

Values of auth headers seen on the wire (`Redactor.with_secrets`) are no rules: they are replaced before the
list runs, so that what is stored can be re-keyed without them.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.canonical.redaction.auth import (
    LEAST,
    Pairs,
    auth_values,
    is_auth_header,
    is_credential_parameter,
    mask_url,
    query_values,
    strip_query,
)
from rewind_proxy.canonical.redaction.engine import BUILT_IN_RULES, PATTERN, RuleEngine, compile_pattern
from rewind_proxy.canonical.redaction.names import SHORTEST_NAME, is_concerned
from rewind_proxy.canonical.redaction.places import NameKind
from rewind_proxy.canonical.redaction.rules import MARK
from rewind_proxy.canonical.redaction.walk import Hit, json_in, redact_json, redact_tree

__all__ = [
    "MARK",
    "REDACTION_RULES",
    "Redaction",
    "Redactor",
    "auth_values",
    "is_auth_header",
    "mask_url",
    "query_values",
    "rule_list",
    "strip_query",
]

WIRE_RULE = "RW001"
"""What a redaction is called whose credential was seen in an auth header."""
REDACTION_RULES = tuple(rule.partition("@")[0] for rule in BUILT_IN_RULES)
"""The ids of the built-in rules, without their versions."""
_DERIVED = 64


@dataclass(frozen=True, slots=True)
class Redaction:
    """One rule that changed one leaf. `path` is a JSON path such as `$.messages[0].content`."""

    rule: str
    path: str


def rule_list(
    redact_defaults: bool, redact_patterns: Sequence[str], redact_off: Sequence[str]
) -> tuple[str, ...]:
    """The rules that the settings ask for, as the store keeps them.

    `redact_off` holds ids of built-in rules (`REDACTION_RULES`), as the settings have checked. Raises
    `SettingsError` for a pattern that is no regular expression or matches the empty text.
    """
    for index, pattern in enumerate(redact_patterns):
        compile_pattern(pattern, f"redact_patterns[{index}]")
    off = frozenset(redact_off)
    built_in = tuple(rule for rule in BUILT_IN_RULES if rule.partition("@")[0] not in off)
    patterns = tuple(dict.fromkeys(PATTERN + pattern for pattern in redact_patterns))
    return (built_in if redact_defaults else ()) + patterns


class Redactor:
    """Replaces credentials. Immutable; build one for a list of rules and keep it."""

    __slots__ = ("_derived", "_engine", "_lock", "_secret", "_secrets", "rules")

    def __init__(self, rules: Sequence[str] = BUILT_IN_RULES) -> None:
        """Raises `StoreVersionError` for a built-in rule that this version does not know."""
        self.rules: tuple[str, ...] = tuple(dict.fromkeys(rules))
        self._engine = RuleEngine(self.rules)
        self._secrets: tuple[str, ...] = ()
        self._secret: re.Pattern[str] | None = None
        self._derived: OrderedDict[frozenset[str], Redactor] = OrderedDict()
        self._lock = threading.Lock()

    def with_secrets(self, values: Iterable[str]) -> Redactor:
        """A redactor that also takes these values out wherever they stand as a whole token.

        `values` come from `auth_values`; those under 16 characters are left out. The rules and their memory
        of texts are shared with this one.
        """
        secrets = frozenset(value for value in values if len(value) >= LEAST and MARK not in value)
        secrets |= frozenset(self._secrets)
        if secrets == frozenset(self._secrets):
            return self
        with self._lock:
            derived = self._derived.pop(secrets, None)
            if derived is None:
                derived = self._with(secrets)
            self._derived[secrets] = derived
            if len(self._derived) > _DERIVED:
                self._derived.popitem(last=False)
        return derived

    def _with(self, secrets: frozenset[str]) -> Redactor:
        derived = object.__new__(Redactor)
        derived.rules = self.rules
        derived._engine = self._engine
        derived._secrets = tuple(sorted(secrets, key=lambda value: (-len(value), value)))
        derived._secret = _whole_token(derived._secrets)
        derived._derived = OrderedDict()
        derived._lock = threading.Lock()
        return derived

    def value(self, value: JsonValue, found: list[Redaction] | None = None, path: str = "$") -> JsonValue:
        """A parsed wire body without credentials; the same object when it holds none.

        What was replaced is added to `found`, its place below `path`. Only string leaves differ, and member
        names that are a credential. Media, ids, signatures and encrypted members stay; base64 of a text type
        is looked into.
        """
        redacted, hits = redact_tree(value, self._leaf, self._name_rule, wire=True)
        if found is not None:
            found.extend(Redaction(rule, path + below) for rule, below in hits)
        return redacted

    def text(self, text: str) -> str:
        """A text without credentials."""
        return self._leaf(text, "")[0]

    def query(self, pairs: Sequence[tuple[str, str]]) -> Pairs:
        """Decoded query pairs: a credential parameter's value is replaced, others are redacted as text."""
        return tuple(
            (self.text(name), MARK if value and is_credential_parameter(name, value) else self.text(value))
            for name, value in pairs
        )

    def concerns(self, names: Iterable[str]) -> bool:
        """Whether the names of an object hold a credential, or are to be told apart: `value` changes them."""
        return any(len(name) >= SHORTEST_NAME and is_concerned(name, self._name_rule) for name in names)

    def _name_rule(self, name: str) -> str:
        return self._wire_rule(name) or self._engine.name_rule(name)

    def _wire_rule(self, name: str) -> str:
        return WIRE_RULE if self._secret is not None and self._secret.search(name) else ""

    def _leaf(self, text: str, kind: NameKind) -> tuple[str, tuple[Hit, ...]]:
        if self._secret is None:
            return self._engine.settle(text, kind)
        masked, first = self._mask(text, kind)
        redacted, hits = self._engine.settle(masked, kind)
        hits = first + hits
        # A rule can take away what stood next to a secret and so make it a whole token.
        while redacted != masked:
            masked, again = self._mask(redacted, kind)
            if not again:
                break
            redacted, more = self._engine.settle(masked, kind)
            hits += again + more
        return redacted, hits

    def _mask(self, text: str, _kind: NameKind) -> tuple[str, tuple[Hit, ...]]:
        assert self._secret is not None
        escaped = "\\u" in text or "\\/" in text
        if not escaped and not any(secret in text for secret in self._secrets):
            return text, ()
        document = json_in(text)
        if document is not None:
            return redact_json(text, document, self._mask, self._wire_rule)
        masked = self._secret.sub(MARK, text)
        return (text, ()) if masked == text else (masked, ((WIRE_RULE, ""),))


def _whole_token(secrets: Sequence[str]) -> re.Pattern[str]:
    """Any of the values, longest first, where no letter or digit touches it but the end of an escape."""
    starts = (
        "(?<![A-Za-z0-9])",
        "(?<=%[0-9A-Fa-f]{2})",
        r"(?<=\\[abefnrtv0])",
        r"(?<=\\x[0-9A-Fa-f]{2})",
        r"(?<=\\u[0-9A-Fa-f]{4})",
        *(rf"(?<=\[{'[0-9;]' * width}m)" for width in range(9)),
    )
    values = "|".join(map(re.escape, secrets))
    return re.compile(f"(?:{'|'.join(starts)})(?:{values})(?![A-Za-z0-9])")
