"""Credentials that are the value of a name that says so: assignments in text, members in JSON.

Values are judged by shape, because code is full of such names: `token = os.environ["TOKEN"]`,
`max_tokens: 100` and `password: string` stay. In text that is itself escaped JSON a quote can have up to
fifteen backslashes before it (four levels of JSON in strings); neither quotes nor backslashes are ever part
of a match. A value may already be partly `[REDACTED]`: the rest goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rewind_proxy.canonical.redact_places import NameKind
from rewind_proxy.canonical.redact_rules import MARK, MARK_PATTERN, QUOTE, Span

JUDGED = 128
"""Characters of a value that decide; longer values are taken whole once those are a credential's."""

TRAILING = ".:,!?"
"""What ends a sentence or a clause rather than a bare value."""
SCHEME = r"(?:bearer|basic|token|apikey|api-key|key|negotiate|digest|ntlm|bot|splunk|geniekey)"
"""Schemes of an Authorization header, in lower case."""

_REFERENCE = re.compile(
    r"""\$(?:[{(]|[a-z_]\w*\Z) | <[^<>]*>?\Z | \{+[^{}]*\}*\Z | &lt; | %(?:[a-z]\Z|\(\w+\)|\{|\w+%\Z)
    | (?:~|\.{1,2})/ | [a-z][a-z0-9+.-]{0,20}:// | [x*.•…-]{3,}\Z | !(?:ref|sub|getatt|vault|secret|env)\b
    | (?:os|process|import\.meta|env|environ|secrets|vars?|local|module|data|self|this|config|settings|args
        |ctx|options|props|request|req|app)\b[.\[(]
    | your[-_ ]\w*(?:key|token|secret|password|here) | x{4,} | (?:null|none|true|false|undefined)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# Words joined by separators: names, paths, versions. A random token is one long run, or mixes digits in.
_SLUG = re.compile(r"[A-Za-z]*[0-9]{0,6}(?:[-_./:@][A-Za-z]*[0-9]{0,6})+")
_CAMEL = re.compile(r"(?:[A-Z]{0,8}[a-z]{2,}+[0-9]{0,5}|[A-Z]{2,8}+[0-9]{0,3}|[._])++")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.:/]+[A-Za-z0-9]*)+")
_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")


def is_reference(value: str) -> bool:
    """Whether a value names where a credential is (`$TOKEN`, `os.environ[…]`, `<your key>`)."""
    return _REFERENCE.match(value) is not None


def has_digit_or_capital(value: str) -> bool:
    """Whether a value has a digit, or a capital past its first letter, as prose words seldom have."""
    return _DIGIT.search(value) is not None or _UPPER.search(value, 1) is not None


def looks_secret(value: str, *, quoted: bool, named: bool = False) -> bool:
    """Whether a value beside a secret's name is the credential itself.

    `named`: the name stands in capitals and directly before it (`API_TOKEN=…`), as code seldom does.
    """
    if MARK in value:
        return True
    if len(value) < 16 or is_reference(value) or _SLUG.fullmatch(value):
        return False
    lower, upper, digit = bool(_LOWER.search(value)), bool(_UPPER.search(value)), bool(_DIGIT.search(value))
    if digit:
        return (lower or upper) and (quoted or named or not _CAMEL.fullmatch(value))
    return lower and upper and (quoted or named) and len(value) >= 20


def looks_password(value: str, *, quoted: bool, named: bool = False) -> bool:
    """Whether a value beside a password's name is the password itself: shorter, and any characters."""
    if MARK in value:
        return True
    if is_reference(value):
        return False
    if value.isalpha():
        return (quoted or named) and (len(value) >= 12 or not value.islower())
    if quoted or named:
        return len(value) >= 6
    return len(value) >= 6 and not _IDENTIFIER.fullmatch(value) and bool(_DIGIT.search(value))


# Assignments --------------------------------------------------------------------------------------------

_KEY_KINDS = (
    "api app access secret private account auth master encryption encrypt signing sign storage shared "
    "service "
    "session client license licence subscription webhook deploy ssh admin server consumer openai anthropic "
    "gemini google mistral groq deepseek together cohere azure"
).split()
_TOKEN_NOT = (
    "page next continuation cursor sync pad eos bos unk mask sep stop special cancellation cancel start end "
    "first last per prev previous"
).split()
_JOINTS = ("", "_", "-", ".", " ")


def _after(words: list[str], last: str) -> str:
    return "|".join(f"(?<={re.escape(word + joint + last)})" for word in words for joint in _JOINTS[:4])


def _not_after(words: list[str], last: str) -> str:
    return "".join(f"(?<!{re.escape(word + joint + last)})" for word in words for joint in _JOINTS)


_SUFFIX = (
    r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|test|live|staging|main|primary|secondary|old|new|value|b64"
    r"|base64))?"
)

_SECRET_NAMES = tuple(
    # Each pattern starts with a rare part of the word: `re` searches for a leading literal.
    re.compile(head + _SUFFIX)
    for head in (
        f"ke(?:y(?:{_after(_KEY_KINDS, 'key')})|n(?<=token){_not_after(_TOKEN_NOT, 'token')})",
        r"cre(?:t(?<=secret)|dentials?)",
    )
)
_PASSWORD_NAMES = tuple(
    re.compile(head + _SUFFIX)
    for head in (
        r"pass(?:w(?:or)?d|phrase|(?<=[_-]pass))",
        r"pwd(?:(?<=[;_-]pwd)|(?<=dbpwd))",  # but PWD and OLDPWD are folders
    )
)
_OPERATOR = re.compile(
    rf"""(?:{QUOTE}?\]?[ \t]{{0,8}}
        (?:=>|:=|={{1,3}}|%3[Dd]|\\{{1,15}}u003[Dd]
        |:(?:[ \t]{{0,4}}[A-Za-z&]{{1,10}}[ \t]{{0,4}}=)?)[ \t]{{0,8}}
    |(?P<comma>{QUOTE},[ \t]{{0,4}})(?={QUOTE})
    |(?P<tag>>)
    |(?P<space>[ \t]{{1,4}}))""",
    re.VERBOSE,
)
_OPENING = re.compile(rf"(?:[bfru]{{0,2}}(?={QUOTE}))?{QUOTE}")
# Values are read in pieces of up to 64 characters, and in so many of them: enough to judge by.
_PIECES = JUDGED // 64 + 2
_SLASH = r"\\{1,15}/"  # JSON may write a slash so
_AND = r"&(?!amp;|[A-Za-z_][A-Za-z0-9_.-]{0,40}=)"  # the next parameter of a query is no part of a value
_IN_QUOTES = r"""[^\s"'`\\]"""
_IN_BARE = r"""[^\s"'`\\<>{}()\[\],;|&]"""
_QUOTED = re.compile(rf"(?:{_IN_QUOTES}{{1,64}}+|{_SLASH}){{1,{_PIECES}}}")
_BARE = re.compile(rf"(?:{MARK_PATTERN}|{_IN_BARE}{{1,64}}+|{_AND}|{_SLASH}){{1,{_PIECES}}}")
_QUOTED_REST = re.compile(rf"(?:{_IN_QUOTES}++|{_SLASH})*+")
_BARE_REST = re.compile(rf"(?:{MARK_PATTERN}|{_IN_BARE}++|{_AND}|{_SLASH})*+")
_OPTION = re.compile(r"--[A-Za-z0-9_-]{0,60}\Z")

_Judge = Callable[..., bool]


def _assigned(text: str, lowered: str, names: tuple[re.Pattern[str], ...], judge: _Judge) -> Iterator[Span]:
    for name in names:
        position = 0
        while (found := name.search(lowered, position)) is not None:
            position = found.end()
            span = _value(text, found.start(), found.end(), judge)
            if span is not None:
                yield span
                position = max(position, span[1])


def _value(text: str, name: int, end: int, judge: _Judge) -> Span | None:
    """The span of the credential assigned to the name that ends at `end`, or None."""
    operator = _OPERATOR.match(text, end)
    if operator is None:
        return None
    if operator["space"] and not _OPTION.search(text, max(0, name - 60), name):
        return None
    at = operator.end()
    opening = _OPENING.match(text, at)
    start = opening.end() if opening else at
    value = (_QUOTED if opening else _BARE).match(text, start)
    if value is None:
        return None
    stop = value.end()
    whole = stop - start < JUDGED
    if opening and text[stop : stop + 1].isspace():
        return None  # prose in quotes
    if whole and not opening:
        stop = start + len(value[0].rstrip(TRAILING))
        if text[stop : stop + 1] in ("(", "[", "{") and not text.startswith(MARK, stop):
            return None  # a call or a subscript
    judged = text[start : min(stop, start + JUDGED)]
    if operator["comma"] and not (has_digit_or_capital(judged) and looks_secret(judged, quoted=False)):
        return None  # a list of names
    named = text[name:end].isupper() and operator[0] == "="
    if stop == start or not judge(judged, quoted=bool(opening), named=named):
        return None
    if not whole:
        # Only now: reading to the end of each value that is none would take quadratic time.
        stop = end_of((_QUOTED_REST if opening else _BARE_REST), text, stop)
    return start, stop


def end_of(rest: re.Pattern[str], text: str, at: int) -> int:
    """Where what `rest` matches at `at` ends; `at` itself when it matches nothing."""
    found = rest.match(text, at)
    return found.end() if found else at


def assigned_secrets(text: str, lowered: str) -> Iterator[Span]:
    """`api_key = "…"`, `AWS_SECRET_ACCESS_KEY=…`, `--token …`, `<apiKey>…`, `x-api-key: …`."""
    return _assigned(text, lowered, _SECRET_NAMES, looks_secret)


def assigned_passwords(text: str, lowered: str) -> Iterator[Span]:
    """`password: "…"`, `DB_PASSWORD=…`, `Pwd=…;`."""
    return _assigned(text, lowered, _PASSWORD_NAMES, looks_password)


# Members ------------------------------------------------------------------------------------------------

_WHOLE_HEADER = re.compile(rf"{SCHEME}(?:[ \t]+|:[ \t]*)", re.IGNORECASE)


def member_value(text: str, kind: NameKind) -> list[Span]:
    """The credential in a member's value; `kind` is what `redact_places.name_kind` says of its name."""
    start = 0
    if kind in ("authorization", "key"):
        scheme = _WHOLE_HEADER.match(text)
        start = scheme.end() if scheme else 0
    value = text[start:]
    if not value.strip() or value == MARK or is_reference(value):
        return []
    if kind == "password" or (kind == "authorization" and start) or MARK in value:
        return [(start, len(text))]
    if len(value.split()) > 1:
        return []  # a description of the member
    if kind == "token" and not looks_secret(value, quoted=True):
        return []
    return [(start, len(text))]
