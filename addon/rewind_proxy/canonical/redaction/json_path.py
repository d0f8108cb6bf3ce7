"""Places in a JSON value, kept as links while it is walked and written out only for what changed."""

from __future__ import annotations

import json
import re
from typing import TypeAlias

Link: TypeAlias = tuple["Link", str | int] | None
"""The place above and the last step from there; None for the value itself."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def steps_of(link: Link) -> list[str | int]:
    """Member names and indices from the value down."""
    steps: list[str | int] = []
    while link is not None:
        link, step = link
        steps.append(step)
    return steps[::-1]


def path_of(link: Link) -> str:
    """As in a JSON path, below its `$`."""
    return "".join(map(_step, steps_of(link)))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _IDENTIFIER.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
