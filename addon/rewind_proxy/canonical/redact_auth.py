"""Credentials by the name of a header or of a query parameter."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote_plus

from rewind_proxy.canonical.redact_rules import MARK

AUTH_HEADERS = frozenset(
    "authorization proxy-authorization x-api-key api-key x-goog-api-key x-goog-iam-authorization-token "
    "ocp-apim-subscription-key cookie set-cookie chatgpt-account-id openai-organization openai-project "
    "anthropic-organization-id x-amz-security-token x-auth-token x-access-token x-goog-authenticated-user-id "
    "x-goog-user-project copilot-integration-session private-token".split()
)
"""Names of headers that hold a credential or say who is asking."""
AUTH_ENDINGS = (
    "authorization",
    "-api-key",
    "-apikey",
    "-token",
    "-secret",
    "-access-key",
    "-password",
    "-cookie",
)

CREDENTIAL_PARAMETERS = frozenset(
    "key api_key apikey api-key x-api-key x-goog-api-key access_token accesstoken access-token token auth "
    "auth_token authtoken oauth_token id_token refresh_token authorization bearer_token sig signature "
    "x-amz-signature x-amz-credential x-amz-security-token x-goog-signature x-goog-credential client_secret "
    "secret password passwd subscription-key ocp-apim-subscription-key session_token sessiontoken "
    "code_verifier".split()
)
"""Names of query parameters whose value is a credential, in lower case."""

LEAST = 16
"""A value of an auth header shorter than this is not looked for in bodies (DESIGN §6)."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}[ \t:]+")

Pairs = tuple[tuple[str, str], ...]


def is_auth_header(name: str) -> bool:
    """Whether a header of this name, in any letter case, holds a credential or an identity."""
    lowered = name.strip().lower()
    return lowered in AUTH_HEADERS or lowered.endswith(AUTH_ENDINGS)


def is_credential_parameter(name: str) -> bool:
    """Whether a query parameter of this decoded name holds a credential."""
    return name.strip().lower() in CREDENTIAL_PARAMETERS


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


def _basic_password(token: str) -> str:
    try:
        return base64.b64decode(token, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, ValueError):
        return ""  # not of the form user:password in base64


def strip_query(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """The decoded pairs without those that hold a credential: for the exact fingerprint."""
    return tuple((name, value) for name, value in pairs if not is_credential_parameter(name))


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
        masked.append(name + equals + MARK if value and is_credential_parameter(unquote_plus(name)) else pair)
    return "".join(masked)
