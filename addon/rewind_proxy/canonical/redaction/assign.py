"""Credentials that are the value of a name that says so, in text: assignments of any kind of file.

Programs, shells, configuration, markdown, tables, markup: what stands between name and value is one operator
of many; the value is judged by `judge`. In text that is itself escaped JSON a quote can have up to
fifteen backslashes before it (four levels of JSON in strings); neither quotes nor backslashes are ever part
of a match. A value may already be partly `[REDACTED]`: the rest goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.redaction.judge import (
    JUDGED,
    TRAILING,
    has_digit_or_capital,
    is_given_word,
    is_label,
    is_reference,
    looks_password,
    looks_secret,
    looks_short_password,
)
from rewind_proxy.canonical.redaction.rules import MARK, MARK_PATTERN, QUOTE, Span

# Names --------------------------------------------------------------------------------------------------

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
    return "|".join(f"(?<={re.escape(word + joint + last)})" for word in words for joint in _JOINTS)


def _not_after(words: list[str], last: str) -> str:
    return "".join(f"(?<!{re.escape(word + joint + last)})" for word in words for joint in _JOINTS)


_SUFFIX = (
    r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|test|live|staging|main|primary|secondary|old|new|value|b64"
    r"|base64|base|data))?"
)


@dataclass(frozen=True, slots=True)
class _Family:
    """Names of one kind, in lower case, and how a value beside them is judged.

    Each pattern starts with a rare part of the word: `re` searches for a leading literal.
    """

    names: tuple[re.Pattern[str], ...]
    judge: Callable[..., bool]
    groups: bool = False
    """A value may be groups with blanks between them, as Google writes the passwords of apps."""
    everywhere: bool = True
    """Whether other operators than `:` and `=` count too."""


_SECRETS = _Family(
    tuple(
        re.compile(head + _SUFFIX)
        for head in (
            f"ke(?:y(?:{_after(_KEY_KINDS, 'key')})|n(?<=token){_not_after(_TOKEN_NOT, 'token')})",
            r"cre(?:t(?<=secret)|dentials?)",
        )
    ),
    looks_secret,
)
SECRET_WORDS = (
    *(word + joint + "key" for word in _KEY_KINDS for joint in _JOINTS),
    "token",
    "secret",
    "credential",
)
"""One of these stands in every name of a secret."""
_PASSWORDS = _Family(
    tuple(
        re.compile(head + _SUFFIX)
        for head in (
            r"pass(?:w(?:or)?d|wort|phrase|code|(?<=[_-]pass))",
            r"pwd(?:(?<=[;_-]pwd)|(?<=dbpwd))",  # but PWD and OLDPWD are folders
            r"identified (?:with [\w']{1,40} )?by(?: password)?",  # SQL
        )
    ),
    looks_password,
    groups=True,
)
_SHORT_PASSWORDS = _Family(
    (re.compile(r"p(?:ass|wd?)(?<![a-z0-9_-]pass)(?<![a-z0-9]pw)(?<![a-z0-9_;-]pwd)(?![a-z0-9_])"),),
    looks_short_password,
    everywhere=False,
)
FOREIGN_WORDS = tuple(
    "kennwort contraseña contrasena senha пароль Пароль 密码 密碼 口令 パスワード 비밀번호".split()
)
_FOREIGN_PASSWORDS = _Family((re.compile("|".join(FOREIGN_WORDS)),), looks_password)

# Operators ----------------------------------------------------------------------------------------------

_STRONG = r"(?:\*{1,3}|__|</?(?:b|strong|code|em|i|label|dt|dd|td|th|span)>)"
_BREAK = r"(?:[ \t\r\n]|\\[nrt])"
_COLOUR = r"(?:\x1b\[[0-9;]{0,12}[mK]){0,3}+"  # of a terminal
_OPERATOR = re.compile(
    rf"""(?:{_COLOUR}(?:{QUOTE}{_STRONG}?|{_STRONG}{QUOTE}?)?\]?{_COLOUR}[ \t]{{0,8}}
        (?:\[[^\[\]\n]{{0,24}}\](?=:))?
        (?:=>|:=|={{1,3}}|%3[Dd]|\\{{1,15}}u003[Dd]|[：＝→]|->
        |:(?:[ \t]{{0,4}}[A-Za-z&]{{1,10}}[ \t]{{0,4}}=)?)
        {_STRONG}{{0,2}}(?P<block>[ \t]{{0,4}}[|>][+-]?(?:\r?\n|\\n)[ \t]{{1,16}})?
        {_COLOUR}[ \t]{{0,8}}{_COLOUR}
    |(?P<comma>{QUOTE},[ \t]{{0,4}})(?={QUOTE})
    |(?P<cell>(?:{QUOTE}|\*\*)?[ \t]{{0,16}}\|[ \t]{{0,16}})
    |(?P<tag>{QUOTE}?>)
    |(?P<element></[A-Za-z]{{1,10}}>{_BREAK}{{0,20}}<[A-Za-z]{{1,10}}(?:[ ][^<>]{{0,80}})?>)
    |(?P<says>{QUOTE}?[ \t]{{1,4}}(?:is|was)[ \t]?:?[ \t]{{1,4}})
    |(?P<space>[ \t]{{1,32}}))""",
    re.VERBOSE,
)
_OPENING = re.compile(rf"(?:\*{{1,3}}|[bfru]{{0,2}}(?={QUOTE}))?{QUOTE}|\*{{1,3}}(?=[^\s*])")
_ROW = re.compile(r"\|[^|\n]{0,80}\Z")
_ROW_GOES_ON = re.compile(r"[ \t`*]{0,16}(?:\||\r?\n|\\n|\Z)")
_OPTION = re.compile(r"--[A-Za-z0-9_-]{0,60}\Z")
# Commands that set a variable or an option: `set -x NAME v`, `setx NAME v`, `aws configure set NAME v`.
_SETTER = re.compile(
    r"\b(?:setx|setenv|set[ \t]{1,4}-[A-Za-z-]{1,10}|(?:config|configure|secrets?|env)[ \t]{1,4}(?:set|add))"
    r"[ \t]{1,4}(?:(?:-[A-Za-z-]{1,12}|/[mM])[ \t]{1,4}){0,2}[\w./:@-]{0,80}\Z"
)
# What names a user in SQL before his password, which has no operator: `CREATE ROLE a LOGIN PASSWORD '…'`.
_SQL = re.compile(r"(?i)\b(?:user|role|login|with|(?:un)?encrypted|grant)\b[^;\n]{0,100}\Z")
# The row of a list in two columns (`password    hunter2`), as `vault kv get` prints it.
_LISTED = re.compile(r"[ \t]{0,16}(?:\w[\w.-]{0,60})?")
_ENDS_LINE = re.compile(r"[ \t]{0,16}(?:\r?\n|\\n|\Z)")
# Where a word of letters alone is a value for sure: in an element, beside the user in a connection string.
_ELEMENT = re.compile(r"<[\w:.-]{0,40}\Z")
_CONNECTION = re.compile(
    r"(?i)\b(?:user(?:name|[ ]?id)?|uid|server|data source|host|database|dbname|initial catalog)"
    r"=[^\s;&?\"'`]{1,100}(?:[;&?][ ]?|[ ])[\w.-]{0,30}\Z"
    r"|--set(?:-string)?[ =][^\s\"'`]{0,100}\Z|(?<![\w-])-[DP][\w.-]{1,60}\Z"  # of Helm, of Java and Gradle
)
# What follows an option in a sentence about it, and in the list of a program's options.
_PROSE = re.compile(
    r"[ \t]{1,4}(?:is|are|was|to|for|the|and|or|of|in|with|from|on|when|if|that|which|must|should|can|will|as"
    r"|by|not|an?|be|it|you|your)\b|[ \t]{2,}[A-Z]|[,.:;)](?:[ \t\n]|\Z)"
)
_PHRASE = re.compile(r"""[^"'`\\\n]{8,128}""")
_COLOURS = re.compile(_COLOUR)
_BEFORE = 160

# Values -------------------------------------------------------------------------------------------------

# Values are read in pieces of up to 64 characters, and in so many of them: enough to judge by.
_PIECES = JUDGED // 64 + 2
_SLASH = r"\\{1,15}/"  # JSON may write a slash so
_AND = r"&(?!amp;|[A-Za-z_][A-Za-z0-9_.-]{0,40}=)"  # the next parameter of a query is no part of a value
_QUOTES = ('"', "'", "`")
_IN_QUOTES = r"""[^\s"'`\\]"""
_IN_BARE = r"""[^\s"'`\\<>{}()\[\],;|&\x1b，。；：、！？（）「」『』]"""
_QUOTED = re.compile(rf"(?:{_IN_QUOTES}{{1,64}}+|{_SLASH}){{1,{_PIECES}}}")
_BARE = re.compile(rf"(?:{MARK_PATTERN}|{_IN_BARE}{{1,64}}+|{_AND}|{_SLASH}){{1,{_PIECES}}}")
_QUOTED_REST = re.compile(rf"(?:{_IN_QUOTES}++|{_SLASH})*+")
_BARE_REST = re.compile(rf"(?:{MARK_PATTERN}|{_IN_BARE}++|{_AND}|{_SLASH})*+")
_GROUPS = re.compile(
    r"[a-z]{4}(?:[ -][a-z]{4}){3}(?! ?[A-Za-z0-9])|[A-Za-z0-9](?: [A-Za-z0-9]){5,63}(?! ?[A-Za-z0-9])"
)
_OF_AN_APP = re.compile(r"app[ _-]?\Z", re.IGNORECASE)


def _assigned(text: str, lowered: str, family: _Family) -> Iterator[Span]:
    for name in family.names:
        position = 0
        while (found := name.search(lowered, position)) is not None:
            position = found.end()
            span = _value(text, found.start(), found.end(), family)
            if span is not None:
                yield span
                position = max(position, span[1])


def _value(text: str, name: int, end: int, family: _Family) -> Span | None:
    """The span of the credential assigned to the name that ends at `end`, or None."""
    operator = _OPERATOR.match(text, end)
    if operator is None or not (operator.lastgroup in (None, "block") or family.everywhere):
        return None
    before = text[max(0, name - _BEFORE) : name]
    setter = sql = False
    listed = (
        operator["space"] not in (None, " ", "\t")
        and text[operator.end() : operator.end() + 1] not in _QUOTES
        and _starts_row(before)
    )
    if operator["space"] and not listed and not _OPTION.search(before):
        setter = _SETTER.search(before) is not None
        sql = (
            not setter and family is _PASSWORDS and _SQL.search(text, max(0, name - _BEFORE), end) is not None
        )
        if not (setter or sql):
            return None
    if operator["cell"] and not _ROW.search(before):
        return None
    named = text[name:end].isupper() and (setter or _COLOURS.sub("", operator[0]).strip() == "=")
    at = operator.end()
    opening = _OPENING.match(text, at)
    start = opening.end() if opening else at
    quoted = opening is not None and not opening[0].endswith("*")
    if sql and not quoted:
        return None
    if family.groups and (quoted or named or _OF_AN_APP.search(before)):
        groups = _GROUPS.match(text, start)
        if groups is not None:
            return groups.span()
    value = (_QUOTED if quoted else _BARE).match(text, start)
    if value is None:
        return None
    stop = value.end()
    whole = stop - start < JUDGED
    if quoted and text[stop : stop + 1].isspace():
        sure = family is _PASSWORDS and (named or _OPTION.search(before) is not None)
        return _phrase(text, start) if sure else None  # else prose in quotes
    if whole and not quoted:
        stop = start + len(value[0].rstrip(TRAILING + "*" if opening else TRAILING))
        if text[stop : stop + 1] in ("(", "[", "{") and not text.startswith(MARK, stop):
            return None  # a call or a subscript
    judged = text[start : min(stop, start + JUDGED)]
    if operator["cell"] and not _ROW_GOES_ON.match(text, stop):
        return None
    if listed and not _ENDS_LINE.match(text, stop):
        return None
    if (
        operator["comma"]
        and not _OPTION.search(before)
        and not (has_digit_or_capital(judged) and looks_secret(judged, quoted=False))
    ):
        return None  # a list of names
    if operator["says"] and not (has_digit_or_capital(judged) and (quoted or family.judge is looks_secret)):
        return None  # a sentence about it
    if stop == start:
        return None
    if not family.judge(judged, quoted=quoted, named=named) and not (
        is_given_word(judged) and _is_told(text, before, stop, operator, named=named and family is _PASSWORDS)
    ):
        return None
    if not whole:
        # Only now: reading to the end of each value that is none would take quadratic time.
        stop = end_of((_QUOTED_REST if quoted else _BARE_REST), text, stop)
    return start, stop


def _starts_row(before: str) -> bool:
    line = before.rfind("\n") + 1
    return (line > 0 or len(before) < _BEFORE) and _LISTED.fullmatch(before, line) is not None


def _phrase(text: str, start: int) -> Span | None:
    """The span of several words in quotes."""
    phrase = _PHRASE.match(text, start)
    if phrase is None or text[phrase.end() : phrase.end() + 1] not in _QUOTES:
        return None
    return None if is_reference(phrase[0]) or is_label(phrase[0]) else phrase.span()


def _is_told(text: str, before: str, stop: int, operator: re.Match[str], *, named: bool) -> bool:
    """Whether what stands around a word says that it is a value and no word of a sentence or a program."""
    if operator["tag"]:
        return _ELEMENT.search(before) is not None and text.startswith("</", stop)
    given = _COLOURS.sub("", operator[0]).strip()
    if given == "=" and (named or _CONNECTION.search(before)):
        return True
    if given not in ("", "=") and not operator["comma"]:
        return False
    return _OPTION.search(before) is not None and (given == "=" or _PROSE.match(text, stop) is None)


def end_of(rest: re.Pattern[str], text: str, at: int) -> int:
    """Where what `rest` matches at `at` ends; `at` itself when it matches nothing."""
    found = rest.match(text, at)
    return found.end() if found else at


def assigned_secrets(text: str, lowered: str) -> Iterator[Span]:
    """`api_key = "…"`, `AWS_SECRET_ACCESS_KEY=…`, `--token …`, `<apiKey>…`, `**API key:** …`."""
    return _assigned(text, lowered, _SECRETS)


def assigned_passwords(text: str, lowered: str) -> Iterator[Span]:
    """`password: "…"`, `DB_PASSWORD=…`, `Pwd=…;`, `pass: …`."""
    yield from _assigned(text, lowered, _PASSWORDS)
    yield from _assigned(text, lowered, _SHORT_PASSWORDS)


def foreign_passwords(text: str, lowered: str) -> Iterator[Span]:
    """`密码：…`, `Kennwort: …`, `contraseña: …`."""
    return _assigned(text, lowered, _FOREIGN_PASSWORDS)
