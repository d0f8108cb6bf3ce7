"""Faults on purpose (`rewind_fault`): how they are written, and which one a turn has. Pure.

`turn=3:429; turn=2:cut-after=5; turn=1:stall=10`: a turn is one generation of a session, counted from 1 as
the requests arrive, retries too (token counts and embeddings are none). At a turn stands

`429`, `429=20`  the provider's own error (400 to 599), with `retry-after` where seconds are given
`cut-after=5`    a stream breaks off after so many events; what is no stream, in its middle
`stall=10`       nothing comes for so many seconds, then the answer

and a stall goes together with either of the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_FAULT = re.compile(
    r"turn\s*=\s*(?P<turn>\d{1,6})\s*:\s*(?:"
    r"(?P<status>[45]\d\d)(?:\s*=\s*(?P<retry>\d{1,5}))?"
    r"|cut-after\s*=\s*(?P<cut>\d{1,6})"
    r"|stall\s*=\s*(?P<stall>\d{1,5}(?:\.\d{1,3})?))",
    re.ASCII,
)
_FORMS = "turn=3:429, turn=3:429=20, turn=2:cut-after=5 and turn=1:stall=10"
FAULT = "fault "
"""How the note of a call with a fault begins."""
_RETRY_AFTER = MappingProxyType({429: 1})
"""Seconds that an error tells the client to wait, where the fault does not say."""


class FaultSyntaxError(ValueError):
    """Why a text is no list of faults."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at one turn."""

    text: str
    """As it is written in the setting."""
    status: int | None = None
    """Of the error that stands in for the answer."""
    retry_after: int | None = None
    """Seconds, with a status."""
    cut_after: int | None = None
    """Events that come before the answer breaks off."""
    stall: float = 0.0
    """Seconds before the first byte."""

    @property
    def note(self) -> str:
        """As `x-rewind-note` and the step name it."""
        return f"{FAULT}{self.text}"


NO_FAULTS: Mapping[int, Fault] = MappingProxyType({})


def parse(text: str) -> Mapping[int, Fault]:
    """The faults of a setting, by turn. Raises `FaultSyntaxError`; an empty text has none."""
    found: dict[int, dict[str, re.Match[str]]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        match = _FAULT.fullmatch(part)
        if match is None or not int(match["turn"]):
            raise FaultSyntaxError(f"{part!r} is no fault; write {_FORMS}, several separated by ;")
        kind = next(name for name in ("status", "cut", "stall") if match[name] is not None)
        at = found.setdefault(int(match["turn"]), {})
        if kind in at:
            raise FaultSyntaxError(f"turn {match['turn']} has two of one kind")
        at[kind] = match
        if {"status", "cut"} <= at.keys():
            raise FaultSyntaxError(f"turn {match['turn']} has an error, so there is no stream to cut")
    return MappingProxyType({turn: _fault(at) for turn, at in found.items()})


def _fault(at: Mapping[str, re.Match[str]]) -> Fault:
    status, retry_after = None, None
    if "status" in at:
        status = int(at["status"]["status"])
        said = at["status"]["retry"]
        retry_after = _RETRY_AFTER.get(status) if said is None else int(said)
    return Fault(
        text="; ".join("".join(match.group().split()) for match in at.values()),
        status=status,
        retry_after=retry_after,
        cut_after=int(at["cut"]["cut"]) if "cut" in at else None,
        stall=float(at["stall"]["stall"]) if "stall" in at else 0.0,
    )
