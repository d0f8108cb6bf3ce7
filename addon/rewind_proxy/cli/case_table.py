"""Tables of cases, one JSON object a line, with fake credentials written as marks and made when read.

`<<FAKE:prefix:n>>` (or `<<FAKE:prefix:n:salt>>`) becomes the prefix and n characters that a generator seeded
with the whole mark draws from letters and digits (after `AKIA` and `ASIA` from capitals and digits), so that
no scanner of secrets trips over the files.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import RewindError

_MARK = re.compile(r"<<FAKE:([^:>]*):([0-9]{1,6})(?::[^>]*)?>>")
_CAPITALS = ("AKIA", "ASIA")


class CaseTableError(RewindError):
    """A table of cases that is none; the message names the file and the line."""


def expand(text: str) -> str:
    """`text` with its marks expanded."""
    return _MARK.sub(_made, text)


def _made(mark: re.Match[str]) -> str:
    prefix, length = mark[1], int(mark[2])
    alphabet = string.ascii_uppercase if prefix in _CAPITALS else string.ascii_letters
    draw = random.Random(mark[0])  # noqa: S311  # the same characters every time is what is wanted
    return prefix + "".join(draw.choice(alphabet + string.digits) for _ in range(length))


def read_table(file: Path) -> Iterator[tuple[str, JsonObject]]:
    """The cases of a table, expanded, each with its place in words. Raises `CaseTableError`."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise CaseTableError(f"{file} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise CaseTableError(f"{file} is not UTF-8") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            case = cast("JsonValue", json.loads(expand(line)))
        except (ValueError, RecursionError):
            raise CaseTableError(f"{place}: not JSON") from None
        if not isinstance(case, dict):
            raise CaseTableError(f"{place}: a case is an object")
        yield place, case
