"""Credentials in base64 within a text: `echo c2st… | base64 -d`, a file printed so, a secret of Kubernetes.

What a provider's prefix looks like in base64 depends only on where in a group of three bytes it stands; the
characters that depend on no neighbour are searched for, and what they are part of is decoded to be sure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from rewind_proxy.canonical.redaction.rules import RUN_LENGTH, Span, TokenRule
from rewind_proxy.canonical.redaction.tokens import TOKEN_RULES

_PREFIXES = (
    "sk- sk_live_ AIza gsk_ xai- ghp_ gho_ ghs_ glpat- xoxb- xoxp- AKIA hf_ npm_ nvapi- eyJhbGciOi"
).split()
"""Of the credentials that are met most, such as leave three characters or more that words do not have."""
_DECODED = 160
"""Characters that are decoded at once: enough for what tells a credential."""
_GROUP = 4
_LEAST_PART = 4
"""Characters: what is shorter stands in any text. Of `sk-` alone that leaves five of nine places."""


def _inner(prefix: str, offset: int) -> tuple[str, int]:
    """`prefix` in base64 after `offset` bytes: the characters that are its own, and how many stand before."""
    first = -(-offset * 8 // 6)
    last = (offset + len(prefix)) * 8 // 6
    return base64.b64encode(b"\0" * offset + prefix.encode() + b"\0\0").decode()[first:last], first


def _rules(prefix: str) -> tuple[TokenRule, ...]:
    return tuple(
        rule for rule in TOKEN_RULES if any(literal.startswith(prefix[:3]) for literal in rule.literals)
    )


_Inner = tuple[str, int, tuple[TokenRule, ...]]
_INNER: dict[str, list[_Inner]] = {
    prefix: [(*_inner(prefix, offset), _rules(prefix)) for offset in range(3)] for prefix in _PREFIXES
}
# The same once more: base64 of base64, as a secret of Kubernetes that was encoded by hand first.
_TWICE: list[tuple[str, int, list[_Inner]]] = [
    (*_inner(part, offset), once)
    for prefix in ("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", *_PREFIXES)
    for once in [[(*_inner(prefix, offset), _rules(prefix)) for offset in range(3)]]
    for part, _, _ in once
    for offset in range(3)
    if len(_inner(part, offset)[0]) >= _LEAST_PART
]
_REST = re.compile(
    # The next line belongs to it where this one is as long as `base64` and `openssl` make them.
    r"[A-Za-z0-9+/_-]++(?:(?<=[A-Za-z0-9+/_-]{60})(?:\r?\n|\\n)[A-Za-z0-9+/_-]++)*+={0,2}"
)
_BEFORE = re.compile(r"[A-Za-z0-9+/_-]{4}")
_URL_ALPHABET = str.maketrans("-_", "+/", "\r\n\\")


# The base64 of a credential of `RUN_LENGTH` characters has no other character: only such that are no part of
# one give a `+` or a `/`. Few other runs in a text are that long.
_LEAST = RUN_LENGTH * 4 // 3
_LETTERS = re.compile(f"[A-Za-z0-9]{{{_LEAST}}}")
_SHAPE = bytes(ord("a") if chr(byte).isascii() and chr(byte).isalnum() else ord(" ") for byte in range(256))
_SHORTEST = b"a" * _LEAST
BASE64_PARTS = frozenset(part for part, *_ in chain(*_INNER.values())) | {part for part, *_ in _TWICE}
"""What prefixes are in base64, and in base64 of that: one stands in every match of `Base64Rule`."""


def may_hold_base64(runs: str, found: Iterable[str]) -> bool:
    """Whether the runs of token characters of a text, and what was found in them, can hold a `Base64Rule`."""
    # `bytes.find` looks for one long run faster than `re` does.
    return not BASE64_PARTS.isdisjoint(found) and _SHORTEST in runs.encode("latin-1").translate(_SHAPE)


@dataclass(frozen=True, slots=True)
class Base64Rule:
    """Base64 of a credential."""

    id: str
    name: str
    version: int = 1

    def spans(self, text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG002  # one signature for all rules
        """From the group of four characters in which the credential starts to the end of the base64."""
        for once in _INNER.values():
            for part, lead, rules in once:
                yield from _spans(text, part, lead, partial(_holds_token, rules))
        for part, lead, once in _TWICE:
            yield from _spans(text, part, lead, partial(_holds_base64, once))


BASE64_RULE = Base64Rule("RW315", "base64-credential")


def _spans(text: str, part: str, lead: int, holds: Callable[[str], bool]) -> Iterator[Span]:
    seen = [0] * _GROUP  # up to where each alignment was decoded, so that no text is decoded over and over
    found = text.find(part)
    while found >= 0:
        start, after = found - lead, found + len(part)
        if start >= seen[start % _GROUP] and _LETTERS.match(text, found):
            seen[start % _GROUP] = start + _DECODED // 2
            whole = _REST.match(text, start) if holds(_decoded(text, start)) else None
            if whole is not None:
                after = whole.end()
                yield whole.span()
        found = text.find(part, after)


def _decoded(text: str, start: int) -> str:
    """What the base64 at a place is of, from the group before it on."""
    first = start - _GROUP if _BEFORE.match(text, max(0, start - _GROUP), start) else start
    found = _REST.match(text, first, start + _DECODED)
    if found is None:
        return ""
    plain = found[0].rstrip("=").translate(_URL_ALPHABET)
    plain = plain[: len(plain) - len(plain) % _GROUP] if len(plain) % _GROUP == 1 else plain
    return base64.b64decode(plain + "=" * (-len(plain) % _GROUP)).decode("latin-1")


def _holds_token(rules: tuple[TokenRule, ...], decoded: str) -> bool:
    return any(any(rule.spans(decoded, "")) for rule in rules)


def _holds_base64(once: list[_Inner], decoded: str) -> bool:
    return any(any(_spans(decoded, part, lead, partial(_holds_token, rules))) for part, lead, rules in once)
