"""Credentials whose shape alone is too common: they count beside the name of their service, or by an inner mark.

As public scanners know them. The first column is a word that stands in the text when it is lower-cased; where
the pattern has a group `token`, that is the credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redact_rules import Span

_START, _END = r"(?<![\w-])", r"(?![\w-])"
_HEX = "[0-9a-f]"

_ROWS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        # A bot's token: its id in base64, a time, a digest.
        (
            "discord",
            rf"{_START}[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}{_END}",
        ),
        ("mailgun", rf"{_START}(?:key-{_HEX}{{32}}|{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}){_END}"),
        ("-us", rf"{_START}{_HEX}{{32}}-us[0-9]{{1,2}}{_END}"),  # Mailchimp
        ("q~", r"(?<![\w~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"),  # Microsoft Entra
        (
            "a3-",
            rf"{_START}A3-[A-Z0-9]{{6}}-(?:[A-Z0-9]{{11}}|[A-Z0-9]{{6}}-[A-Z0-9]{{5}})(?:-[A-Z0-9]{{5}}){{3}}{_END}",
        ),
        ("pat", rf"{_START}pat[A-Za-z0-9]{{14}}\.{_HEX}{{64}}{_END}"),  # Airtable
        (
            "pat.",
            rf"{_START}[ps]at\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9]{{24}}\.[A-Za-z0-9]{{20}}{_END}",
        ),  # Harness
        ("sat.", rf"{_START}sat\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9]{{24}}\.[A-Za-z0-9]{{20}}{_END}"),
        ("atlasv1", rf"{_START}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,}}"),  # Terraform
        ("facebook", r"(?<![\w|])[0-9]{15,16}(?:\||%7C)(?P<token>[\w-]{27,40})(?![\w-])"),
        ("_mmk", rf"{_START}[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk{_END}"),  # MaxMind
        ("asana", rf"(?<![\w/-])[0-2]/[0-9]{{16}}(?:/[0-9]{{16}})?:(?P<token>{_HEX}{{32}}){_END}"),
        ("bigmodel", rf"{_START}{_HEX}{{32}}\.[A-Za-z0-9]{{16}}{_END}"),
        ("zhipu", rf"{_START}{_HEX}{{32}}\.[A-Za-z0-9]{{16}}{_END}"),
        ("okta", rf"{_START}00[\w-]{{40}}{_END}"),
    )
)
SERVICE_WORDS = tuple(word for word, _ in _ROWS)


def service_tokens(text: str, lowered: str) -> Iterator[Span]:
    """What the rows above tell."""
    for word, pattern in _ROWS:
        if word in lowered:
            group = "token" if "token" in pattern.groupindex else 0
            for found in pattern.finditer(text):
                yield found.span(group)
