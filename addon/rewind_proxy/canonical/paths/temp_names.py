"""Names below the temp folder that were made at random (DESIGN §5, "Paths"; rule RS106).

What a person may have called a file (`llama70b`, `data-2023`, `python3.11`) is meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from rewind_proxy.canonical.paths.edges import REST, TRAILING
from rewind_proxy.canonical.spans import Span

# Capitals, small letters and perhaps digits, which are neither words in capitals nor numbers.
_SHORT_WORD = "At|By|Db|Do|Go|Id|In|Is|It|My|No|Of|On|Or|To|Ui|Up"
_WORDS = (
    r"(?:[a-z](?=[A-Z][a-z]{2}))?+"  # iPhone
    rf"(?:[A-Z]?[a-z]{{2,}}+|(?:{_SHORT_WORD})|[A-Z]{{2,}}+|[A-Z]?\d++)++\Z"
)
_MIXED = rf"(?=[A-Za-z0-9]{{6,16}}\Z)(?=[A-Z\d]*[a-z])(?=[a-z\d]*[A-Z])(?!{_WORDS})[A-Za-z0-9]+"
# The same behind a name that says temp, where only letters in one case may be a word.
_RANDOM = r"(?![A-Z]?[a-z]+\Z|[A-Z]+\Z)[A-Za-z0-9]"

# Programs whose names below temp have a fixed form: a user, a process or random characters follow.
_FAMILIES = (
    rf"tmp\.{_RANDOM}{{6,}}",  # mktemp
    r"\.?tmp(?!_[a-z]*\Z)[a-z0-9_]{8}",  # Python
    r"tmp(?!_)(?![a-z]{4,}\d{1,4}\Z)(?=[a-z_]*\d)[a-z0-9_]{6,12}",
    rf"\.tmp{_RANDOM}{{6}}",  # Rust
    r"tmp[0-9A-F]{1,6}\.tmp",  # Windows
    r"pytest-of-[\w.-]+",
    r"pytest-\d+",
    r"(?:tmux|tsx|v8-compile-cache|node-compile-cache|vscode-typescript)-?\d+",
    r"npm-\d+-[0-9a-f]{8}",
    r"hsperfdata_[\w.-]+",
    r"systemd-private-[0-9a-f]{32}-[\w.@-]+",
    rf"ssh-{_RANDOM}{{10,12}}",
    r"pip-(?:[a-z]+-)+[a-z0-9_]{8}",
    rf"_MEI{_RANDOM}{{5,6}}",
    rf"cc{_RANDOM}{{6}}",
    rf"(?:rustc|cargo-install){_RANDOM}{{6}}",
    rf"(?:playwright|puppeteer)[\w-]*-{_RANDOM}{{6}}",
    rf"com\.apple\.launchd\.{_RANDOM}{{10}}",
    r"yarn--\d{13}-0\.\d+",
)
# Hex has digits and letters mixed, and is no word with a number behind it or between two (`decade2`).
_HEX = r"(?=[a-f]*\d)(?=\d*[a-f])(?!(?=[0-9a-f]{6,7}\Z)[a-f]{4,}\d)(?![a-f]{3,}\d[a-f]{3,}\Z)[0-9a-f]{6,}"
_SHORT_HEX = r"(?=\d+[a-f]+\d|[a-f]+\d+[a-f]|\d{1,3}[a-f]{2}|[a-f]{2}\d{2})[0-9a-f]{4,5}"
_LONG_NUMBER = r"\d{9,20}"  # of a process and a time, or of Go's `MkdirTemp`
_PREFIX = r"\.?[A-Za-z][\w.-]{0,64}[-_.]"
_RANDOM_NAME = re.compile(
    rf"(?:{'|'.join(_FAMILIES)})"
    rf"|(?:{_PREFIX})?(?:{_HEX}|{_SHORT_HEX})"
    rf"|{_PREFIX}{_MIXED}"
    rf"|(?=[^\d]*\d)(?:{_MIXED})"
    rf"|(?:[A-Za-z][A-Za-z_.-]*)?{_LONG_NUMBER}"
)
_NAMES = re.compile(r"[^\\/]+")
# The temp folder by its variable, as shells, PowerShell and Windows write it.
_VARIABLE = re.compile(
    r"(?:\$(?:TMPDIR|TEMP|TMP)\b|\$\{(?:TMPDIR|TEMP|TMP)(?::?-[^{}\n]{0,64})?\}|\$env:(?:TMPDIR|TEMP|TMP)\b"
    r"|%(?:TEMP|TMP)%)(?=[\\/])"
)
_MAX_NAMES = 8
_LONGEST = 128


def temp_name_spans(text: str, temp_roots: Iterable[Span]) -> Iterator[Span]:
    """Components below the temp folder that look random (`tmpab12cd_x`, `run-8f3a`, `pytest-of-ann`).

    Below its variable too (`$TMPDIR/tmp.Ab12Cd34`), which is the same text on every machine and stays.
    """
    ends = [span.end for span in temp_roots]
    if "TMP" in text or "TEMP" in text:
        ends += (variable.end() for variable in _VARIABLE.finditer(text))
    for end in ends:
        rest = REST.match(text, end)
        if rest is None:
            continue
        for match in islice(_NAMES.finditer(rest.group()), _MAX_NAMES):
            name = match.group().rstrip(TRAILING)
            stem = _random_part(name)
            if stem:
                start = end + match.start()
                yield Span(start, start + len(stem), "RS106", "random", stem)


def _random_part(name: str) -> str | None:
    """The name, or the name less its extensions, if it looks random."""
    if len(name) <= _LONGEST:
        for stem in (name, name.split(".", 1)[0]):
            if _RANDOM_NAME.fullmatch(stem):
                return stem
    return None
