"""What a redaction rule is: a credential's prefix and the shape of what follows, and where a token can start.

A prefix counts only where a token can start (`risk-adjusted-…` holds no `sk-` key), and that includes what an
escape ends: `%20sk-…`, `\\nsk-…`, `\\u003dsk-…`, a colour code. A prefix with only crosses or words behind it
(`ghp_xxxxxxxx`, `sk-proj-your-key-here`) stands for a credential and is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]

MARK = "[REDACTED]"
MARK_PATTERN = r"\[REDACTED\]"
QUOTE = r"""(?:\\{0,15}["'`])"""
"""A quote, as it stands in text or in up to four levels of escaped JSON."""

_WORD = "[A-Za-z0-9]"
_HEX = "[0-9a-fA-F]"

RUN_LENGTH = 20
RUN_CLASS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
RUN_LEAD = 10
"""Every match of a `TokenRule` has `RUN_LENGTH` characters of `RUN_CLASS` in a row, and its literal stands in
that run or among the `RUN_LEAD` characters before it: text without one need not be looked at."""

TOKEN_START = re.compile(
    f"(?<!{_WORD})"
    f"|(?<=%{_HEX}{_HEX})"
    r"|(?<=\\[abefnrtv0])"
    rf"|(?<=\\x{_HEX}{_HEX})"
    rf"|(?<=\\u{_HEX}{_HEX}{_HEX}{_HEX})" + "".join(rf"|(?<=\[{'[0-9;]' * width}m)" for width in range(9))
)
"""Matches, at a place in a text, nothing but that a token can start there."""

_CROSSES = re.compile("[xX]{4,}")
_WORDS = re.compile(
    r"(?:[a-z]{1,12}|[A-Z]{1,12}|[A-Za-z]{1,5}[0-9]{1,2})(?:[-_.](?:[a-z]{1,12}|[A-Z]{1,12}|[a-z]{1,5}[0-9]{1,2}))+"
)
_STANDS_FOR = re.compile(
    "your|example|placeholder|replace|insert|dummy|fake|sample|redacted|goes", re.IGNORECASE
)


def is_placeholder(token: str) -> bool:
    """Whether what has the prefix of a credential only stands for one: crosses, or words that say so."""
    if _CROSSES.search(token) is not None:
        return len(_CROSSES.sub("", token)) < RUN_LENGTH
    return _WORDS.fullmatch(token) is not None and _STANDS_FOR.search(token) is not None


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A credential known by its prefix. `shapes`: each prefix, and the pattern of what follows it."""

    id: str
    name: str
    shapes: tuple[tuple[str, re.Pattern[str]], ...]
    version: int = 1

    @property
    def literals(self) -> tuple[str, ...]:
        """One of these stands in every match."""
        return tuple(prefix for prefix, _ in self.shapes)

    def spans(self, text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG002  # one signature for all rules
        """Where `text` holds such credentials, in no order."""
        for prefix, rest in self.shapes:
            at = text.find(prefix)
            while at >= 0:
                end = at + len(prefix)
                found = rest.match(text, end) if TOKEN_START.match(text, at) else None
                if found is not None:
                    end = found.end()
                    if not is_placeholder(text[at:end]):
                        yield at, end
                at = text.find(prefix, end)


def token_rule(rule_id: str, name: str, *shapes: tuple[str, str]) -> TokenRule:
    """A rule of (prefixes, rest) pairs: prefixes with blanks between them, and a pattern for what follows."""
    return TokenRule(
        rule_id,
        name,
        tuple((prefix, re.compile(rest)) for prefixes, rest in shapes for prefix in prefixes.split()),
    )
