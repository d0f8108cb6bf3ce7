"""Credentials whose shape alone is too common: they count where their service is named, or by an inner mark.

As public scanners know them. A row is a word that stands in the text when it is lower-cased, how many
characters of the credential stand before what the pattern matches, and the pattern; its group `token` is the
credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redaction.rules import QUOTE, Span

_END = r"(?![\w-])"
_HEX, _CAPS = "[0-9a-f]", "[A-Z0-9]"
_BASE64 = "[A-Za-z0-9+/]"
# Words that are joined have no capitals within.
_RANDOM = "(?=[a-z0-9_-]{0,64}[A-Z])(?=[A-Z0-9_-]{0,64}[a-z])"
_JWK_MEMBER = rf"{QUOTE}(?:d|k|p|q|dp|dq|qi){QUOTE}\s{{0,4}}:\s{{0,4}}"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"


def _after(literal: str, before: str) -> str:
    """`literal` with `before`, of a fixed length, before it: `re` searches for the literal."""
    return rf"{literal}(?<={before}{literal})(?<![\w-]{before}{literal})"


_HARNESS = rf"\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9]{{24}}\.[A-Za-z0-9]{{20}}{_END}"
_ROWS: tuple[tuple[str, int, re.Pattern[str]], ...] = tuple(
    (word, lead, re.compile(pattern))
    for word, lead, pattern in (
        # A bot's token: its id in base64, a time, a digest.
        ("discord", 0, rf"[MNO](?<![\w-].)[\w-]{{23,27}}\.[\w-]{{6}}\.[\w-]{{27,40}}{_END}"),
        ("mailgun", 0, rf"key-(?<![\w-]key-){_HEX}{{32}}{_END}"),
        ("mailgun", 0, rf"(?<![\w-]){_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}{_END}"),
        ("-us", 32, rf"{_after('-us', f'{_HEX}{{32}}')}[0-9]{{1,2}}{_END}"),  # Mailchimp
        ("q~", 4, rf"{_after('Q~', '[A-Za-z0-9_~.]{3}[0-9]')}[A-Za-z0-9_~.-]{{31,34}}(?![\w~-])"),  # Entra
        (
            "a3-",
            0,
            rf"A3-(?<![\w-]A3-){_CAPS}{{6}}-(?:{_CAPS}{{11}}|{_CAPS}{{6}}-{_CAPS}{{5}})(?:-{_CAPS}{{5}}){{3}}{_END}",
        ),  # 1Password
        ("pat", 0, rf"pat(?<![\w-]pat)(?:[A-Za-z0-9]{{14}}\.{_HEX}{{64}}{_END}|{_HARNESS})"),  # Airtable too
        ("sat.", 0, rf"sat(?<![\w-]sat){_HARNESS}"),
        ("atlasv1", 14, rf"{_after('[.]atlasv1[.]', '[A-Za-z0-9]{14}')}[A-Za-z0-9_=-]{{60,}}"),  # Terraform
        (
            "facebook",
            0,
            r"(?<![\w|])[0-9]{15,16}(?:\||%7C)(?P<token>(?=[a-z\d_-]{0,39}[A-Z])[\w-]{27,40})(?![\w-])",
        ),
        ("_mmk", 36, rf"{_after('_mmk', '[A-Za-z0-9]{6}_[A-Za-z0-9]{29}')}{_END}"),  # MaxMind
        ("asana", 0, rf"(?<![\w/-])[0-2]/[0-9]{{16}}(?:/[0-9]{{16}})?:(?P<token>{_HEX}{{32}}){_END}"),
        ("bigmodel", 0, rf"(?<![\w-]){_HEX}{{32}}\.(?=[a-z0-9]{{0,15}}[A-Z])[A-Za-z0-9]{{16}}{_END}"),
        ("zhipu", 0, rf"(?<![\w-]){_HEX}{{32}}\.(?=[a-z0-9]{{0,15}}[A-Z])[A-Za-z0-9]{{16}}{_END}"),
        # Azure's keys of 84 characters, and those that name what they open near their end.
        ("jqqj9", 52, rf"{_after('JQQJ9', '[A-Za-z0-9]{52}')}[9DH][A-Za-z0-9]{{26}}{_END}"),
        *(
            (f"+{word.lower()}", 76, rf"{_after(f'[+]{word}', _BASE64 + '{76}')}{_BASE64}{{5}}[AQgw]==")
            for word in ("ASt", "ABa", "AMC")
        ),
        ("acdb", 76, rf"{_after('ACDb', _BASE64 + '{76}')}{_BASE64}{{5}}[AQgw]=="),
        ("azfu", 44, rf"{_after('AzFu', '[A-Za-z0-9_-]{44}')}[A-Za-z0-9_-]{{5}}[AQgw]=="),
        *(
            (f"+{word.lower()}", 33, rf"{_after(f'[+]{word}', _BASE64 + '{33}')}[A-P]{_BASE64}{{5}}=")
            for word in ("ASb", "ARm")
        ),
        ("aiot", 33, rf"{_after('AIoT', _BASE64 + '{33}')}[A-P]{_BASE64}{{5}}="),
        ("azca", 33, rf"{_after('AzCa', '[A-Za-z0-9]{33}')}[A-P][A-Za-z0-9]{{5}}="),
        ("azse", 42, rf"{_after('AzSe', '[A-Za-z0-9]{42}')}[A-D][A-Za-z0-9]{{5}}{_END}"),
        ("+acr", 42, rf"{_after('[+]ACR', _BASE64 + '{42}')}[A-D]{_BASE64}{{5}}(?![A-Za-z0-9+/])"),
        # A private key as JSON (RFC 7518 §6).
        (
            "kty",
            0,
            rf"{_JWK_MEMBER}{QUOTE}(?P<token>{_RANDOM}[\w-]{{22,4096}}={{0,2}}){QUOTE}",
        ),
        ("launchdarkly", 0, rf"(?:sdk|mob|api)-(?<![\w-]...-){_UUID}{_END}"),
        (
            "perm",  # JetBrains
            0,
            r"perm[:-](?<![\w-]perm[:-])[A-Za-z0-9+/]{4,64}={0,2}\.[A-Za-z0-9+/-]{2,64}={0,2}\.[A-Za-z0-9]{20,}",
        ),
        ("snyk_", 0, rf"snyk_[us]at\.(?<![\w-]snyk_.at\.){_HEX}{{8}}\.[\w-]{{20,}}(?:\.[\w-]+)*"),
        ("okta", 0, rf"00(?<![\w-]00)[\w-]{{40}}{_END}"),
    )
)
SERVICE_WORDS = tuple(dict.fromkeys(word for word, _, _ in _ROWS))


def service_tokens(text: str, lowered: str) -> Iterator[Span]:
    """What the rows above tell."""
    for word, lead, pattern in _ROWS:
        if word in lowered:
            group = "token" if "token" in pattern.groupindex else 0
            for found in pattern.finditer(text):
                start, stop = found.span(group)
                yield start - lead, stop
