"""Whether the value of a name that says secret is the credential itself: judged by its shape.

Code and prose are full of such names: `token = os.environ["TOKEN"]`, `max_tokens: 100`, `password: string`,
`"password": "Enter your password"`. A value that is already partly `[REDACTED]` was one.
"""

from __future__ import annotations

import re

from rewind_proxy.canonical.redaction.places import NameKind
from rewind_proxy.canonical.redaction.rules import MARK, Span

JUDGED = 128
"""Characters of a value that decide; longer values are taken whole once those are a credential's."""

_SHORTEST_WORD = 6
TRAILING = ".:,!?"
"""What ends a sentence or a clause rather than a bare value."""
SCHEME = r"(?:bearer|basic|token|apikey|api-key|key|negotiate|digest|ntlm|bot|splunk|geniekey|ssws)"
"""Schemes of an Authorization header, in lower case."""

_REFERENCE = re.compile(
    r"""\$(?:[{(]|[a-z_]\w*\Z) | <[^<>]*>?\Z | \{+[^{}]*\}*\Z | &lt; | %(?:[a-z]\Z|\(\w+\)|\{|\w+%\Z)
    | (?:~|\.{1,2})/ | [a-z][a-z0-9+.-]{0,20}:// | [x*.•…-]{3,}\Z | !(?:ref|sub|getatt|vault|secret|env)\b
    | (?:os|process|import\.meta|env|environ|secrets|vars?|local|module|data|self|this|config|settings|args
        |ctx|options|props|request|req|app)\b[.\[(]
    | your[-_ ]?[\w -]{0,40}(?:key|token|secret|password|here|value)
    | (?:insert|replace|enter|put|paste)[-_ ](?:with[-_ ])?(?:your|the|here)\b | placeholder
    | (?:[a-z0-9]{1,12}[-_]){0,4}(?:x{4,}\Z|[*•]{3}|\.{3}|…) | x{4,}
    | (?:[a-z_]\w{0,60}\.){1,6}\w{0,60}(?:key|token|secret)s?(?:type)?s?\Z
    | (?:null|none|true|false|undefined)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# Words joined by separators: names, paths, versions. A random token is one long run, or mixes digits in.
_SLUG = re.compile(r"[A-Za-z]*[0-9]{0,6}(?:[-_./:@][A-Za-z]*[0-9]{0,6})+")
_CAMEL = re.compile(r"(?:[A-Z]{0,8}[a-z]{2,}+[0-9]{0,5}|[A-Z]{2,8}+[0-9]{0,3}|[._])++")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.:/]+[A-Za-z0-9]*)+")
_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_LETTER = re.compile("[A-Za-z]")
_NUMBERED = re.compile("[A-Z]?[a-z]+[0-9]+")
# What tests, counts, times and versions print beside "pass": `PASS: TestLogin2`, `12ms`.
_OUTCOME = re.compile(
    r"(?:test|spec|suite|case)s?.* | [0-9]{4}-[0-9]{2}.* | [0-9.,]+[A-Za-z%]{1,4} | [0-9a-f]{7,}"
    r"| .*[/\\].*",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


# What a form calls the field, in the languages that forms are in: no password.
_LABEL = re.compile(
    r"pass[ -]?(?:w(?:or)?[dt]|phrase|code)|kennwort|mot de passe|contrase|senha|wachtwoord|has[lł]o|парол"
    r"|密[码碼]|口令|パスワード|비밀번호",
    re.IGNORECASE,
)
_NOT_LETTERS = re.compile(r"[\W\d_]+")


def is_label(value: str) -> bool:
    """Whether a password's member holds the name of the field (`Password`, `Enter your password`)."""
    found = _LABEL.search(value)
    if found is None or _DIGIT.search(value):
        return False
    return len(value.split()) > 1 or not _NOT_LETTERS.sub("", value[: found.start()] + value[found.end() :])


# What stands behind an option or below a heading and tells what belongs there.
_METAVARIABLE = re.compile(
    r".*(?:token|key|secret|pass|pwd|cred|auth|value).*"
    r"|(?:string|text|option|flag|argument|param|parameter|number|boolean|integer|prompt|header|return|require|need)s?"
    r"|required|optional|missing|invalid|default|instead|stdin|without|before|after|should|cannot|needed|prompted"
    r"|because|hidden|masked|expired|empty|unset|never|always|disabled|enabled|random|unknown|redacted|placeholder"
    r"|example|change(?:me|it)?",
    re.IGNORECASE,
)


def is_given_word(value: str) -> bool:
    """Whether a word of letters alone is a credential where one is given for sure (`--password hunter`)."""
    return (
        value.isalpha()
        and len(value) >= _SHORTEST_WORD
        and not (value.isupper() and value.isascii())
        and _METAVARIABLE.fullmatch(value) is None
        and not is_reference(value)
        and not is_label(value)
    )


def is_reference(value: str) -> bool:
    """Whether it names where a credential is (`$TOKEN`, `os.environ[…]`), or stands for it (`<key>`)."""
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
    lower, upper, digit = bool(_LOWER.search(value)), bool(_UPPER.search(value)), bool(_DIGIT.search(value))
    if digit:
        shaped = (lower or upper) and (quoted or named or not _CAMEL.fullmatch(value))
    else:
        shaped = lower and upper and (quoted or named) and len(value) >= 20
    return shaped and len(value) >= 16 and not _SLUG.fullmatch(value) and not is_reference(value)


def looks_password(value: str, *, quoted: bool, named: bool = False) -> bool:
    """Whether a value beside a password's name is the password itself: shorter, and any characters."""
    if MARK in value:
        return True
    if value.isalpha():
        shaped = (quoted or named) and (len(value) >= 12 or not value.islower())
    elif quoted or named:
        shaped = len(value) >= 6
    else:
        random = _DIGIT.search(value) or (value.endswith("=") and _UPPER.search(value))
        shaped = len(value) >= 6 and bool(random) and not _IDENTIFIER.fullmatch(value)
    return shaped and not is_reference(value) and not is_label(value)


def looks_short_password(value: str, *, quoted: bool, named: bool = False) -> bool:
    """Whether a value beside `pass`, `pw` or `pwd`, which have other meanings too, is a password."""
    if MARK in value:
        return True
    if len(value) < 8 or is_reference(value) or not (_LETTER.search(value) and _DIGIT.search(value)):
        return False
    if _OUTCOME.fullmatch(value):
        return False
    return quoted or named or not any(shape.fullmatch(value) for shape in (_SLUG, _IDENTIFIER, _NUMBERED))


# Members ------------------------------------------------------------------------------------------------

_WHOLE_HEADER = re.compile(rf"{SCHEME}(?:[ \t]+|:[ \t]*)", re.IGNORECASE)


def member_value(text: str, kind: NameKind) -> list[Span]:
    """The credential in a member's value; `kind` is what `places.name_kind` says of its name."""
    if kind == "hidden":
        return [(0, len(text))] if text.strip() and text != MARK else []
    start = 0
    if kind in ("authorization", "key"):
        scheme = _WHOLE_HEADER.match(text)
        start = scheme.end() if scheme else 0
    value = text[start:]
    if not value.strip() or value == MARK or is_reference(value):
        return []
    if MARK in value or (kind == "authorization" and start):
        return [(start, len(text))]
    if kind == "password":
        return [] if is_label(value) else [(start, len(text))]
    if len(value.split()) > 1:
        return []  # a description of the member
    if kind == "token" and not looks_secret(value, quoted=True):
        return []
    if kind == "pass" and not looks_short_password(value, quoted=True):
        return []
    return [(start, len(text))]
