"""Credentials that show by what stands around them: headers, URLs, key blocks; and the list of such rules.

Only the value goes; the name, the scheme and the user stay. As in `assign`, the text may be escaped
JSON, and a value may already be partly `[REDACTED]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from rewind_proxy.canonical.redaction.assign import (
    FOREIGN_WORDS,
    SECRET_WORDS,
    assigned_passwords,
    assigned_secrets,
    end_of,
    foreign_passwords,
)
from rewind_proxy.canonical.redaction.auth import CREDENTIAL_PARAMETERS
from rewind_proxy.canonical.redaction.forms import field_values
from rewind_proxy.canonical.redaction.judge import (
    JUDGED,
    SCHEME,
    TRAILING,
    has_digit_or_capital,
    is_reference,
    looks_secret,
)
from rewind_proxy.canonical.redaction.login import (
    COMMAND_WORDS,
    LOGIN_FILE_WORDS,
    command_passwords,
    digest_responses,
    login_files,
)
from rewind_proxy.canonical.redaction.manifests import MANIFEST_WORDS, manifest_secrets
from rewind_proxy.canonical.redaction.pairs import named_values
from rewind_proxy.canonical.redaction.places import name_kind
from rewind_proxy.canonical.redaction.rules import MARK, MARK_PATTERN, QUOTE, Span
from rewind_proxy.canonical.redaction.service import SERVICE_WORDS, service_tokens
from rewind_proxy.canonical.redaction.tables import COLUMN_WORDS, column_secrets

# Headers ------------------------------------------------------------------------------------------------

_AUTHORIZATION = re.compile(
    rf"auth(?:orization|(?<![a-z]auth)){QUOTE}?\]?[ \t]*(?:=>|[:=])[ \t]*(?P<quote>{QUOTE})?"
    rf"(?P<scheme>{SCHEME}(?:[ \t]+|:[ \t]*))?"
)
_BEARER = re.compile(rf"bearer(?<![a-z0-9]bearer)(?:[ \t]+|{QUOTE}?[ \t]*[:=][ \t]*|%20|\+){QUOTE}?")
_CREDENTIALS = re.compile(rf"(?:{MARK_PATTERN}|[A-Za-z0-9._~+/=!:%-]{{1,64}}+){{1,{JUDGED // 64 + 1}}}")
_CREDENTIALS_REST = re.compile(rf"(?:{MARK_PATTERN}|[A-Za-z0-9._~+/=!:%-]++)*+")


_CALLS = frozenset({"(", "["})


def _presented(text: str, lowered: str, lead: re.Pattern[str], least: int) -> Iterator[Span]:
    position = 0
    while (found := lead.search(lowered, position)) is not None:
        position = start = found.end()
        value = _CREDENTIALS.match(text, start)
        if value is None:
            continue
        stop = value.end()
        whole = stop - start < JUDGED
        if whole:
            stop = start + len(value[0].rstrip(TRAILING))
        groups = found.groupdict()
        if (
            not groups.get("scheme", "")
            and text[stop : stop + 1] in _CALLS
            and not text.startswith(MARK, stop)
        ):
            continue  # an expression of a program
        if _is_presented(text[start:stop], least, groups.get("scheme", ""), quoted=bool(groups.get("quote"))):
            position = stop if whole else end_of(_CREDENTIALS_REST, text, stop)
            yield start, position


def _is_presented(value: str, least: int, scheme: str | None, *, quoted: bool) -> bool:
    if MARK in value:
        return True
    if scheme is None:
        return looks_secret(value, quoted=quoted)  # it may as well be an expression of a program
    return (
        len(value) >= least and not is_reference(value) and (has_digit_or_capital(value) or len(value) >= 32)
    )


def authorization_headers(text: str, lowered: str) -> Iterator[Span]:
    """`Authorization: Bearer …`, `"authorization": "Basic …"`, `_auth=…`; the scheme stays."""
    return _presented(text, lowered, _AUTHORIZATION, 8)


def bearer_tokens(text: str, lowered: str) -> Iterator[Span]:
    """`Bearer …` with no header name before it."""
    return _presented(text, lowered, _BEARER, 16)


_COOKIE = re.compile(rf"cookie{QUOTE}?[ \t]*[:=][ \t]*{QUOTE}?")
_PAIR = r"""[A-Za-z0-9_.~%-]{1,64}=(?:"[^\s;"'`\\]{0,4096}"|[^\s;"'`\\]{0,4096})"""
_COOKIES = re.compile(rf"(?:{MARK_PATTERN}|{_PAIR})(?:;[ \t]*(?:{MARK_PATTERN}|{_PAIR}))*+")


def cookies(text: str, lowered: str) -> Iterator[Span]:
    """The pairs of a `Cookie:` or `Set-Cookie:` line that holds one value of eight characters or more."""
    position = 0
    while (found := _COOKIE.search(lowered, position)) is not None:
        position = found.end()
        pairs = _COOKIES.match(text, position)
        if pairs is not None:
            position = pairs.end()
            if MARK in pairs[0] or any(len(pair.partition("=")[2]) >= 8 for pair in pairs[0].split(";")):
                yield pairs.span()


# URLs ---------------------------------------------------------------------------------------------------

_URL = re.compile(
    rf"""://(?:
      [^\s/?\#@:"'`<>\\]{{0,128}}:(?P<password>(?:{MARK_PATTERN}|[^\s/?\#"'`<>\\]){{1,256}})@
    | (?P<user>(?:{MARK_PATTERN}|[A-Za-z0-9_~.%-]){{16,256}})@
    | hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/
        (?P<slack>(?:{MARK_PATTERN}|[A-Za-z0-9_/-]){{16,512}})
    | (?:\w{{1,20}}\.)?discord(?:app)?\.com/api/(?:v[0-9]{{1,2}}/)?
        webhooks/[0-9]{{15,22}}/(?P<discord>(?:{MARK_PATTERN}|[\w-]){{16,200}})
    | [\w-]{{1,64}}\.webhook\.office\.com/webhookb2/(?P<teams>(?:{MARK_PATTERN}|[\w@/-]){{32,400}})
    | hooks\.zapier\.com/hooks/catch/(?P<zapier>(?:{MARK_PATTERN}|[\w/-]){{8,100}})
    | hook\.(?:\w{{2,5}}\.)?make\.com/(?P<make>(?:{MARK_PATTERN}|\w){{24,100}})
    | maker\.ifttt\.com/(?:\w{{1,20}}/){{1,6}}key/(?P<ifttt>(?:{MARK_PATTERN}|[\w-]){{16,100}})
    )""",
    re.VERBOSE,
)
# In JSON and in another URL, and with the user and password before the host that Oracle's driver takes.
_ENCODED_URLS = (
    re.compile(
        rf"""(?::|%3[Aa])(?:\\{{1,15}}/){{2}}[^\s/?\#@:"'`<>\\]{{0,128}}:(?P<password>(?:{MARK_PATTERN}|[^\s/?\#"'`<>\\@]){{1,256}})@"""
    ),
    re.compile(
        rf"%3[Aa]%2[Ff]%2[Ff](?:[\w.~+-]|%(?!3[Aa]|40|2[Ff])[0-9A-Fa-f]{{2}}){{0,128}}%3[Aa](?P<password>(?:{MARK_PATTERN}|[\w.~!*()+-]|%(?!40|2[Ff])[0-9A-Fa-f]{{2}}){{1,256}})%40"
    ),
    re.compile(
        rf"""jdbc:oracle:(?:thin|oci8?):[^\s/@:"'`]{{1,128}}/(?P<password>(?:{MARK_PATTERN}|[^\s@"'`]){{1,256}})@"""
    ),
)
_WEBHOOKS = frozenset({"slack", "discord", "teams", "zapier", "make", "ifttt"})
_PARAMETER = re.compile(r"(?:amp;)?(?P<name>[A-Za-z0-9_.%~-]{1,64})=")
_VAGUE = frozenset({"key", "token", "auth", "sig", "signature", "secret", "code"})
_PARAMETER_VALUE = re.compile(rf"""(?:{MARK_PATTERN}|[^\s&;"'`<>\\#|)\]]){{1,{JUDGED}}}""")
_PARAMETER_REST = re.compile(rf"""(?:{MARK_PATTERN}|[^\s&;"'`<>\\#|)\]])*+""")


def url_secrets(text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG001  # one signature for all rules
    """`scheme://user:password@host`; a lone user that is a token; the secret path of a webhook."""
    for pattern in _ENCODED_URLS:
        for found in pattern.finditer(text):
            if not is_reference(found["password"]):
                yield found.span("password")
    for found in _URL.finditer(text):
        kind = found.lastgroup or ""
        value = found[kind]
        if kind in _WEBHOOKS or (
            not is_reference(value) if kind == "password" else looks_secret(value, quoted=False)
        ):
            yield found.span(kind)


def url_parameters(text: str, lowered: str) -> Iterator[Span]:
    """`?key=…`, `&sig=…`, `&X-Amz-Signature=…`."""
    for separator in ("?", "&", "\\u0026"):
        at = text.find(separator)
        while at >= 0:
            start = at + len(separator)
            span = _parameter(text, lowered, start)
            if span is not None:
                yield span
            at = text.find(separator, span[1] if span else start)


def _parameter(text: str, lowered: str, at: int) -> Span | None:
    found = _PARAMETER.match(lowered, at)
    value = _PARAMETER_VALUE.match(text, found.end()) if found else None
    if found is None or value is None or is_reference(value[0]):
        return None
    kind = _parameter_kind(unquote(found["name"]))
    if not kind or (MARK not in value[0] and not _is_given(value[0], kind)):
        return None
    return value.start(), end_of(_PARAMETER_REST, text, value.end())


def _parameter_kind(name: str) -> str:
    kind = name_kind(name)
    if name in _VAGUE:
        return "vague"
    return "key" if name in CREDENTIAL_PARAMETERS else kind


def _is_given(value: str, kind: str) -> bool:
    if kind == "token":
        return looks_secret(value, quoted=False)
    return len(value) >= (16 if kind == "vague" else 6) and not value.isalpha()


_CURL_USER = re.compile(
    rf"""(?:-u|--user)(?:[ \t]{{1,4}}|=)?{QUOTE}?[^\s:"'`\\]{{1,128}}:"""
    rf"""(?P<password>(?:{MARK_PATTERN}|[^\s"'`\\]){{3,256}})"""
)


def curl_passwords(text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG001  # one signature for all rules
    """`curl -u user:password`; but not the numeric user and group of other commands."""
    for found in _CURL_USER.finditer(text):
        if not found["password"].isdigit() and not is_reference(found["password"]):
            yield found.span("password")


# Key blocks ---------------------------------------------------------------------------------------------

_SSH2 = re.compile(
    r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----[^-]*+(?:-(?!---)[^-]*+)*+"
    r"---- END SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BLOCK_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_LINE = rf"(?:[A-Za-z0-9+/=]{{16,}}|{MARK_PATTERN})"
_BETWEEN = r"(?:\\[nr]|[^A-Za-z0-9/\\-]|-(?!-)){0,32}(?:[0-9]{1,6}[^A-Za-z0-9+/\\]{1,4})?"
_PRIVATE_KEY = re.compile(
    rf"-----BEGIN {_BLOCK_NAME}"
    r"(?:"
    rf"(?=(?:[^-]|-(?!----)){{0,600}}?(?:[A-Za-z0-9+/]{{40}}|{MARK_PATTERN}))"
    rf"[^-]*+(?:-(?!----)[^-]*+)*+-----END {_BLOCK_NAME}"
    # A block that is cut off: lines of base64, with what an editor, a diff or an escape puts between them.
    rf"|(?:{_BETWEEN}{_LINE})+(?:{_BETWEEN}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
    r")"
)


_PUTTY = re.compile(
    rf"Private-Lines: [0-9]{{1,4}}{_BETWEEN}"
    rf"(?P<lines>{_LINE}(?:{_BETWEEN}{_LINE})*+(?:{_BETWEEN}[A-Za-z0-9+/]{{1,15}}={{1,2}})?)"
)


def private_keys(text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG001  # one signature for all rules
    """PEM and PGP private keys, whole or cut off; the private lines of a key of PuTTY."""
    for found in _PRIVATE_KEY.finditer(text):
        yield found.span()
    for found in _SSH2.finditer(text):
        yield found.span()
    for found in _PUTTY.finditer(text):
        yield found.span("lines")


@dataclass(frozen=True, slots=True)
class ContextRule:
    """A credential known by its surroundings. `words`: one of them stands in every text with a match, when
    that is lower-cased."""

    id: str
    name: str
    words: tuple[str, ...]
    spans: Callable[[str, str], Iterator[Span]]
    version: int = 1


CONTEXT_RULES: tuple[ContextRule, ...] = (
    ContextRule("RW302", "private-key", ("private key", "private-lines"), private_keys),
    ContextRule("RW303", "authorization-header", ("auth",), authorization_headers),
    ContextRule("RW304", "bearer-token", ("bearer",), bearer_tokens),
    ContextRule("RW305", "url-secret", ("://", ":\\/", "%3a%2f%2f", "jdbc:oracle:"), url_secrets),
    ContextRule("RW306", "url-parameter", ("?", "&"), url_parameters),
    ContextRule("RW307", "secret-assignment", SECRET_WORDS, assigned_secrets),
    ContextRule("RW308", "password-assignment", ("pass", "pw", "identified "), assigned_passwords),
    ContextRule("RW309", "cookie-header", ("cookie",), cookies),
    ContextRule("RW311", "curl-user", ("curl",), curl_passwords),
    ContextRule(
        "RW312",
        "command-password",
        COMMAND_WORDS,
        command_passwords,
    ),
    ContextRule("RW313", "login-file", LOGIN_FILE_WORDS, login_files),
    ContextRule("RW314", "digest-response", ("digest",), digest_responses),
    ContextRule("RW316", "token-of-a-service", SERVICE_WORDS, service_tokens),
    ContextRule("RW317", "named-value", ("value", "<string", "<key", "kty"), named_values),
    ContextRule("RW318", "foreign-password", FOREIGN_WORDS, foreign_passwords),
    ContextRule("RW319", "table-column", COLUMN_WORDS, column_secrets),
    ContextRule("RW320", "kubernetes-secret", MANIFEST_WORDS, manifest_secrets),
    ContextRule("RW321", "password-field", ("<input",), field_values),
)
