"""Credentials by the name of a header or of a query parameter."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote_plus

from rewind_proxy.canonical.redaction.judge import member_value
from rewind_proxy.canonical.redaction.places import NameKind, name_kind
from rewind_proxy.canonical.redaction.rules import MARK

IDENTITY_HEADERS = frozenset(
    "chatgpt-account-id openai-organization openai-project anthropic-organization-id "
    "x-goog-authenticated-user-id x-goog-user-project copilot-integration-session".split()
)
"""Names of headers that say who is asking, and hold no credential."""
_AUTH_WORDS = frozenset(
    "key apikey auth authn authz authorization authentication token secret password passwd pwd passphrase "
    "cookie jwt credential assertion csrf xsrf".split()
)
_AUTH_ENDINGS = ("apikey", "token", "secret", "password", "authorization")
_AUTH_PREFIXES = ("cf-access-",)
NO_AUTH_HEADERS = re.compile(
    r"sec-websocket-.* | access-control-.* | (?:www|proxy)-authenticate | public-key-pins.*"
    r"| .*rate-?limit.* | (?:.*-)?(?:idempoten(?:cy|t)|cache|surrogate|partition|routing|shard|sort|row|range"
    r"|dedup(?:lication)?|object|affinity|trace|request|message)-key"
    r"| .*-(?:version|type|mode|method|scheme|count|counts|limit|usage|budget|remaining|reset|expires|expiry"
    r"|status|enabled|length)",
    re.VERBOSE,
)
"""Names of headers that hold no credential although a word in them says so."""

CREDENTIAL_PARAMETERS = frozenset(
    "key token auth secret sig signature x-amz-signature x-amz-credential x-goog-signature x-goog-credential "
    "code_verifier".split()
)
"""Names of query parameters whose value is a credential whatever it looks like, in lower case; `name_kind`
knows the others, as it does those of members."""
VAGUE_PARAMETERS = frozenset("code session sid sas".split())
"""Names of query parameters whose value is a credential when it looks like one."""

LEAST = 16
"""A value of an auth header shorter than this is not looked for in bodies (DESIGN §6)."""

_NOT_WORD = re.compile(r"[^a-z0-9]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}[ \t:]+")

Pairs = tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def is_auth_header(name: str) -> bool:
    """Whether a header of this name, in any letter case, holds a credential or an identity."""
    lowered = name.strip().lower()
    if lowered in IDENTITY_HEADERS or lowered.startswith(_AUTH_PREFIXES):
        return True
    if NO_AUTH_HEADERS.fullmatch(lowered):
        return False
    words = _NOT_WORD.split(lowered)
    return (
        not _AUTH_WORDS.isdisjoint(words)
        or any(word.endswith(_AUTH_ENDINGS) for word in words)
        or name_kind(lowered) != ""
    )


def is_credential_parameter(name: str, value: str) -> bool:
    """Whether a query parameter, both decoded, holds a credential: by the decision that members have.

    Google takes its own parameters with a `$` too (`$key`).
    """
    lowered = name.strip().lower().removeprefix("$")
    if lowered in CREDENTIAL_PARAMETERS:
        return True
    kind: NameKind = "token" if lowered in VAGUE_PARAMETERS else name_kind(lowered)
    return kind != "" and (MARK in value or bool(member_value(value, kind)))


def auth_values(headers: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The values of auth headers to look for in bodies: whole, without their scheme, and a Basic password."""
    values: set[str] = set()
    for name, value in headers:
        if not is_auth_header(name):
            continue
        if name.strip().lower().endswith("cookie"):
            # A Set-Cookie line has one pair, then attributes (RFC 6265 §4.1); a Cookie line has only pairs.
            pairs = value.split(";")[: 1 if "set-" in name.lower() else None]
            values.update(pair.partition("=")[2].strip(' "') for pair in pairs)
            continue
        whole = value.strip()
        values.add(whole)
        scheme = _SCHEME.match(whole)
        if scheme is not None:
            values.add(whole[scheme.end() :])
            values.add(_basic_password(whole[scheme.end() :]))
    return frozenset(value for value in values if len(value) >= LEAST)


def query_values(query: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The values of credential parameters, decoded, to look for in bodies."""
    return frozenset(
        value for name, value in query if len(value) >= LEAST and is_credential_parameter(name, value)
    )


def _basic_password(token: str) -> str:
    try:
        return base64.b64decode(token, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, ValueError):
        return ""  # not of the form user:password in base64


def strip_query(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """The decoded pairs without those that hold a credential: for the exact fingerprint."""
    return tuple((name, value) for name, value in pairs if not is_credential_parameter(name, value))


_USERINFO = re.compile(r"(?<=://)[^/?#\s]*(?=@)")


def mask_url(url: str) -> str:
    """`url` with user information and the values of credential parameters replaced, the rest as written."""
    head, mark, tail = _USERINFO.sub(MARK, url, count=1).partition("?")
    if not mark:
        head, mark, tail = head.partition("#")
    return head + mark + "#".join(_mask_pairs(part) for part in tail.split("#"))


def _mask_pairs(query: str) -> str:
    masked: list[str] = []
    for pair in re.split("([&;])", query):
        name, equals, value = pair.partition("=")
        secret = value and is_credential_parameter(unquote_plus(name), unquote_plus(value))
        masked.append(name + equals + MARK if secret else pair)
    return "".join(masked)
