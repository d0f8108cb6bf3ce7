"""Credentials whose shape alone is too common: they count where their service is named, or by an inner mark.

As public scanners know them. A row is a word that stands in the text when it is lower-cased, how many
characters of the credential stand before what the pattern matches, and the pattern; its group `token` is the
credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.redaction.rules import Span

_END = r"(?![\w-])"
_HEX, _CAPS = "[0-9a-f]", "[A-Z0-9]"


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
        ("facebook", 0, r"(?<![\w|])[0-9]{15,16}(?:\||%7C)(?P<token>[\w-]{27,40})(?![\w-])"),
        ("_mmk", 36, rf"{_after('_mmk', '[A-Za-z0-9]{6}_[A-Za-z0-9]{29}')}{_END}"),  # MaxMind
        ("asana", 0, rf"(?<![\w/-])[0-2]/[0-9]{{16}}(?:/[0-9]{{16}})?:(?P<token>{_HEX}{{32}}){_END}"),
        ("bigmodel", 0, rf"(?<![\w-]){_HEX}{{32}}\.[A-Za-z0-9]{{16}}{_END}"),
        ("zhipu", 0, rf"(?<![\w-]){_HEX}{{32}}\.[A-Za-z0-9]{{16}}{_END}"),
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
