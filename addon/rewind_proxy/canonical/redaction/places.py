"""Where a string stands in a wire body, and what that says: a credential's member, media, an id, a signature.

The ids and signatures of the four wires are never touched. Inside what a tool was called with, or returned as
JSON, a member called `id` is data like any other.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redaction.rules import RUN_LENGTH
from rewind_proxy.canonical.redaction.tokens import holds_token

NameKind = Literal["authorization", "password", "pass", "key", "token", "hidden", ""]
"""What a member's name says of its value; empty when it says nothing, `hidden` when it was redacted."""

ID_MEMBERS = frozenset(
    "id call_id tool_use_id tool_call_id item_id previous_response_id response_id previous_message_id "
    "message_id file_id file_ids vector_store_id container container_id conversation conversation_id "
    "thread_id run_id "
    "assistant_id cachedContent cached_content approval_request_id batch_id trace_id".split()
)
SIGNED_MEMBERS = frozenset(
    "signature thoughtSignature thought_signature thought_signatures encrypted_content encrypted_index "
    "encrypted_stdout encrypted_stderr".split()
)
SEALED_TYPES = {"redacted_thinking": "data", "reasoning.encrypted": "data", "compaction": "encrypted_content"}
"""Objects of that `type` hold something encrypted in that member."""
MEDIA_TYPES = {"image_generation_call": "result"}
FREE_MEMBERS = frozenset({"args", "arguments", "input", "response"})
"""An object under such a member is a tool's own JSON."""
MEDIA_MEMBERS = frozenset({"data", "bytes", "file_data", "fileData", "b64_json", "blob"})

PLACED_MEMBERS = frozenset(
    {*ID_MEMBERS, *SIGNED_MEMBERS, *SEALED_TYPES.values(), *MEDIA_TYPES.values(), *MEDIA_MEMBERS}
)
"""Only of these it matters where they stand: every other member is plain text."""

_AUTHORIZATION = frozenset({"authorization", "proxyauthorization", "authorizationtoken"})
_PASSWORDS = ("password", "passwd", "passphrase", "pwd", "passwort", "kennwort")
_SHORT_PASSWORD = re.compile(r"(?:.*[_.-])?(?:pass|pw)|.*[a-z]Pass")
_KEYS = tuple(
    "apikey secretkey accesskey secretaccesskey privatekey accountkey authkey encryptionkey signingkey "
    "masterkey storagekey sharedkey sharedaccesskey subscriptionkey servicekey serverkey clientsecret "
    "appsecret consumersecret webhooksecret signingsecret accesstoken refreshtoken authtoken "
    "authorizationtoken bearertoken sessiontoken securitytoken apitoken idtoken privatetoken oauthtoken "
    "servicetoken bottoken appkey functionkey functionskey sessionkey virtualkey clientkeydata".split()
)
_COOKIES = frozenset({"cookie", "setcookie", "cookies"})
_LOOSE = (
    "token",
    "secret",
    "auth",
    "authentication",
    "credential",
    "credentials",
    "secretvalue",
    "jwt",
    "clientassertion",
    "jwtassertion",
    "bearer",
)
_NO_SECRETS = tuple(
    f"{word}token"
    for word in (
        "page next prev previous continuation cursor sync start stop skip delta resume first last max min "
        "eos bos pad unk mask sep cancel cancellation idempotency"
    ).split()
)
"""Tokens that turn pages, or that a model reads."""
_NOT_WORD = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4096)
def name_kind(name: str) -> NameKind:
    """What the name of a member, header or parameter says of its string value.

    A name that is itself a credential says nothing, whether or not the rule for it is on: so the value's fate
    is the same before and after the name was redacted.
    """
    if len(name) > 80 or (len(name) >= RUN_LENGTH and holds_token(name)):
        return ""
    flat = _NOT_WORD.sub("", name.lower())
    if flat in _AUTHORIZATION or flat.endswith("authorization"):
        return "authorization"
    if flat.endswith(_PASSWORDS) or flat in _COOKIES:
        return "password"
    if _SHORT_PASSWORD.fullmatch(name) or flat in ("pass", "pw"):
        return "pass"
    if flat.endswith(_KEYS):
        return "key"
    if flat.endswith(_LOOSE) and not flat.endswith(_NO_SECRETS):
        return "token"
    return ""


def is_sealed(holder: JsonObject, member: str, *, free: bool) -> bool:
    """Whether this member of a wire object is an id, a signature or something encrypted."""
    if free:
        return False
    if member in ID_MEMBERS or member in SIGNED_MEMBERS:
        return True
    kind = holder.get("type")
    return isinstance(kind, str) and SEALED_TYPES.get(kind) == member


_TEXTUAL = re.compile(
    r"text/|image/svg\+xml|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson|toml|sql|x-sh)",
    re.IGNORECASE,
)
_BINARY = re.compile(r"(?:image|audio|video|font)/", re.IGNORECASE)
_HEAD = 1024  # of base64, a multiple of four
_MEDIA_TYPE = re.compile(r"[A-Za-z]+/[\w.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]*={0,2}\s*")
_DATA_URI = re.compile(
    r"data:(?P<type>[\w.+-]{1,60}/[\w.+-]{1,100})?(?:;[\w.-]{1,60}=[^;,\s]{1,100})*;base64,(?P<data>[A-Za-z0-9+/_\s%=-]*)",
    re.IGNORECASE,
)


_URL_ALPHABET = str.maketrans("-_", "+/")


def media_type(holder: JsonObject, parent: str, member: str, text: str) -> str | None:
    """The media type of a base64 member, or None when `text` is not base64 media.

    Anthropic `source`, Gemini `inlineData`, MCP results, `input_audio`, `file_data` and generated images.
    """
    kind = holder.get("type")
    if isinstance(kind, str) and MEDIA_TYPES.get(kind) == member:
        found = "image/png"
    elif member not in MEDIA_MEMBERS:
        return None
    elif parent == "input_audio" or isinstance(holder.get("format"), str):
        found = "audio/wav"
    elif member in ("file_data", "fileData", "b64_json"):
        found = "application/octet-stream" if len(text) >= 256 else ""
    else:
        if kind == "text":
            return None  # an Anthropic text source holds the text itself
        named: JsonValue = None
        for name in ("media_type", "mimeType", "mime_type", "mediaType"):
            named = named or holder.get(name)
        found = named if isinstance(named, str) and _MEDIA_TYPE.match(named) else ""
    return found if found and _BASE64.fullmatch(text) else None


def data_uri(text: str) -> re.Match[str] | None:
    """The parts of a string that is one base64 data URI."""
    return _DATA_URI.fullmatch(text) if text[:5].lower() == "data:" else None


def is_textual(kind: str) -> bool:
    """Whether base64 of this media type holds text to look at."""
    return _TEXTUAL.match(kind) is not None


def may_be_text(kind: str, data: str) -> bool:
    """Whether base64 of a media type that tells nothing (`application/octet-stream`, a maker's own) holds
    text all the same: UTF-8 without a NUL.

    What is redacted in such text leaves it one, so that the answer is the same afterwards.
    """
    if _BINARY.match(kind):
        return False
    head = plain_bytes(data[:_HEAD])
    if head is None or b"\0" in head:
        return False
    whole = plain_bytes(data)
    if whole is None or b"\0" in whole:
        return False
    try:
        whole.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def plain_bytes(data: str) -> bytes | None:
    """The bytes in base64 of either alphabet, with or without line ends and padding; None if broken."""
    try:
        # A data URI may write its `=` and `+` as any URL may.
        plain = "".join((unquote(data) if "%" in data else data).split()).translate(_URL_ALPHABET)
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def decoded_text(data: str) -> str | None:
    """The text in base64 of either alphabet, bytes that are not UTF-8 as surrogates; None if broken."""
    plain = plain_bytes(data)
    return None if plain is None else plain.decode("utf-8", "surrogateescape")


def encoded_text(text: str) -> str:
    """The inverse of `decoded_text`, in the standard alphabet."""
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
