"""Passwords that no name stands beside: options of commands, lines of login files, the Digest of a header.

Only the value goes. As in `assign`, it may already be partly `[REDACTED]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redaction.judge import is_reference
from rewind_proxy.canonical.redaction.rules import MARK_PATTERN, QUOTE, Span

_VALUE = rf"""(?P<password>(?:{MARK_PATTERN}|[^\s"'`\\;|&<>]){{1,256}})"""
_IN_QUOTES = rf"""(?P<quoted>(?:{MARK_PATTERN}|[^\s"'`\\]){{1,256}})(?={QUOTE})"""
_GIVEN = rf"(?:{QUOTE}{_IN_QUOTES}|{_VALUE})"
_MAYBE_APART = rf"[ \t]{{0,4}}{_GIVEN}"
_USER = rf"""{QUOTE}?(?![0-9]+:[0-9]+\b)[^\s:"'`\\]{{1,128}}"""
_BEFORE = "(?<= )"
# A file of cookies has no `=` in its name.
_COOKIE = rf"""(?:{MARK_PATTERN}|[\w.~%-]{{1,64}}=[^\s;"'`\\]{{0,4096}})"""
_COOKIES = rf"(?P<password>{_COOKIE}(?:;[ \t]{{0,4}}{_COOKIE}){{0,40}})"
_COMMAND = 200
"""How far from the command's name its option may stand, on the same line."""

# Each by a literal that `re` can search for, what may not be part of a longer word, and the option.
_COMMANDS = tuple(
    (re.compile(rf"{name}(?<![\w-]{name}){tail}(?=[ \t])"), re.compile(_BEFORE + option))
    for name, tail, option in (
        ("sshpass", r"(?=[ \t]{1,4}-p)", rf"-p{_MAYBE_APART}"),
        ("mysql", r"(?:dump|admin|import|show|check|pump|sh)?(?:\.exe)?", rf"-p{_GIVEN}"),
        ("mariadb", r"(?:-dump|-admin|-import|-show|-check)?", rf"-p{_GIVEN}"),
        ("redis-cli", "", rf"-a[ ]{{1,4}}{_GIVEN}"),
        ("docker login", "", rf"-p{_MAYBE_APART}"),
        ("podman login", "", rf"-p{_MAYBE_APART}"),
        ("registry login", "", rf"-p{_MAYBE_APART}"),
        ("openssl", "", rf"-pass(?:in|out)?[ \t]{{1,4}}{QUOTE}?pass:{_VALUE}"),
        ("ldap", r"(?:search|modify|add|delete|passwd|whoami)", rf"-w[ ]{{0,4}}{_GIVEN}"),
        ("smbclient", "", rf"-U[ ]{{0,4}}{QUOTE}?[\w.\\/@-]{{1,128}}%{_VALUE}"),
        ("az login", "", rf"-p[ ]{{1,4}}{_GIVEN}"),
        ("http -a", "", rf"{_USER}:{_VALUE}"),
        ("https -a", "", rf"{_USER}:{_VALUE}"),
        ("openssl", "", rf"-k[ ]{{1,4}}{_GIVEN}"),
        (
            "sqlplus",
            "",
            rf"(?:-\w{{1,8}} ){{0,4}}[\w.$]{{1,128}}/(?P<password>(?:{MARK_PATTERN}|[^\s@'`\\/]){{1,256}})@",
        ),
        ("curl", r"(?:\.exe)?", rf"-[A-Za-z]{{0,5}}[uU][ \t]{{1,4}}{_USER}:{_VALUE}"),
        ("curl", r"(?:\.exe)?", rf"--proxy-user(?:[ \t]{{1,4}}|=){_USER}:{_VALUE}"),
        ("curl", r"(?:\.exe)?", rf"(?:-b|--cookie)(?:[ \t]{{0,4}}|=){QUOTE}?{_COOKIES}"),
    )
)
COMMAND_WORDS = (
    *"sshpass mysql mariadb redis-cli openssl ldap smbclient sqlplus curl --from-literal".split(),
    *("docker login", "podman login", "registry login", "az login", "http -a", "https -a"),
)
"""One of these stands in every text with such a command."""
_LINE_END = re.compile(r"[\n\r;|]|\\n|&&")


def command_passwords(text: str, lowered: str) -> Iterator[Span]:
    """`sshpass -p …`, `mysql -p…`, `redis-cli -a …`, `docker login -p …`, `curl -u user:…`, `curl -b a=…`."""
    for command, option in _COMMANDS:
        for found in command.finditer(lowered):
            start = found.end()
            stop = start + _COMMAND
            cut = _LINE_END.search(text, start, stop)
            # The window is for the option; its value may be longer.
            given = option.search(text, start, cut.start() if cut else stop + 256)
            if given is not None and given.start() < stop:
                yield from _password(given)
    if "--from-literal" in lowered:
        for found in _LITERAL.finditer(text):
            yield from _password(found)


def _password(found: re.Match[str]) -> Iterator[Span]:
    group = "quoted" if found.groupdict().get("quoted") is not None else "password"
    if not is_reference(found[group]):
        yield found.span(group)


_SPACE = r"(?:[ \t\r\n]|\\n|\\t){1,8}"
_FIELD = rf"(?:login|user|account|port){_SPACE}[^\s\\]{{1,128}}{_SPACE}"
# A host, or its word and a new line, so that it is no prose (`machine learning login page`).
_NETRC = re.compile(
    rf"machine{_SPACE}(?:(?=[^\s\\]{{0,252}}[.\d])[^\s\\]{{1,253}}{_SPACE}|localhost{_SPACE}"
    r"|[\w-]{1,63}(?:\n|\r\n|\\n)[ \t]{0,8})"
    rf"(?:{_FIELD}){{0,4}}password{_SPACE}{QUOTE}?{_VALUE}"
)
_NETRC_DEFAULT = re.compile(
    rf"(?:^|\\n)default{_SPACE}login{_SPACE}[^\s\\]{{1,128}}{_SPACE}password{_SPACE}{_VALUE}", re.MULTILINE
)
# host:port:database:user:password (PostgreSQL, "The Password File"); a database's name starts with no digit.
_PGPASS = re.compile(
    r"(?m:^)(?:[\w.-]{1,253}|\*):(?:[0-9]{4,5}|\*):(?:[A-Za-z_][\w-]{0,62}|\*):[\w.@-]{1,63}:"
    rf"(?P<password>(?:{MARK_PATTERN}|\\[:\\]|[^\s:\\\"'`]){{1,256}})(?=\r?\n|\Z)"
)
_PGPASS_WORDS = (":*:", ":5432:", ":5433:", ":6432:", ":6543:", "pgpass")
LOGIN_FILE_WORDS = ("login", *_PGPASS_WORDS)
"""One of these stands in every text with such a line, in lower case."""
_LITERAL = re.compile(
    rf"--from-literal[= ]{QUOTE}?[\w.-]{{1,253}}={QUOTE}?"
    rf"(?P<password>(?:{MARK_PATTERN}|[^\s\"'`\\]){{1,256}})"
)


def login_files(text: str, lowered: str) -> Iterator[Span]:
    """`machine h login u password …` of a `.netrc`, `host:port:database:user:…` of a `.pgpass`."""
    patterns = [_NETRC, _NETRC_DEFAULT] if "login" in lowered else []
    if any(word in lowered for word in _PGPASS_WORDS):
        patterns.append(_PGPASS)
    for pattern in patterns:
        for found in pattern.finditer(lowered):
            start, stop = found.span("password")
            if not is_reference(text[start:stop]):
                yield start, stop


_DIGEST = re.compile(r"digest(?=[ \t]+[a-z]{2,12}[ \t]?=)")
_RESPONSE = re.compile(
    rf"response[ \t]?=[ \t]?{QUOTE}?(?P<password>(?:{MARK_PATTERN}|[0-9A-Fa-f]){{10,256}})"
)
_HEADER = 1000


def digest_responses(text: str, lowered: str) -> Iterator[Span]:
    """`Digest username="…", …, response="…"`: a password can be guessed from the response (RFC 7616 §5.9)."""
    for found in _DIGEST.finditer(lowered):
        line = text.find("\n", found.end(), found.end() + _HEADER)
        response = _RESPONSE.search(text, found.end(), line if line >= 0 else found.end() + _HEADER)
        if response is not None:
            yield response.span("password")
