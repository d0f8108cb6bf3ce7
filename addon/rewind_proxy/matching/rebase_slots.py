"""Which recorded values become which live ones (DESIGN §8, "Re-basing").

Both requests have one normalised fingerprint, so their slots stand at the same places under the same
placeholders: the k-th `⟨uuid:1⟩` of the one is the k-th of the other. Nothing is paired any other way.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rewind_proxy.canonical.captured import CAPTURING, is_followed
from rewind_proxy.canonical.scrub import Slot, Taken

Family = Literal["root", "uuid", "time", "id"]

FAMILY_OF_RULE: Mapping[str, Family] = {
    "RS101": "uuid",
    "RS103": "time",
    "RS105": "root",
    **dict.fromkeys(CAPTURING, "id"),
}
"""The rules whose slots are put back: never durations, lone numbers, dates without a time.

Ids that a client made are followed to where they are quoted, so they must be put back too: else a replayed
call would ask the client for a task that it never had.
"""

# A folder with one of these in its name could not be told from the quotes of JSON and code around it.
_UNUSABLE = re.compile(r"[\"'`\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class Replacements:
    """Recorded value to live value, by family.

    A root that stays as it is is listed too (mapped to itself), so that a shorter root inside it is left
    alone there; so is one that would have to become two things at once.
    """

    roots: Mapping[str, str]
    uuids: Mapping[str, str]
    """In lower case."""
    times: Mapping[str, str]
    ids: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any value differs."""
        return bool(self.uuids or self.times or self.ids) or any(
            old != new for old, new in self.roots.items()
        )


def slots_digest(taken: Iterable[Taken]) -> str:
    """Tells whether two requests of one fingerprint have the same values to put back: hex.

    It is kept with a recording, so that a replay at the same place need not read the recorded request again.
    """
    values = "\0".join(f"{each.placeholder}\0{each.value}" for each in taken if each.rule in FAMILY_OF_RULE)
    return hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def replacements(recorded: Sequence[Slot], live: Sequence[Slot]) -> Replacements:
    """What a recording's answer needs changed for the live request.

    `recorded` and `live` are the slots of two requests with one normalised fingerprint. A recorded value that
    stands for two live ones is ambiguous and is left out.
    """
    pairs: dict[Family, dict[str, str]] = {"root": {}, "uuid": {}, "time": {}, "id": {}}
    ambiguous: set[tuple[Family, str]] = set()
    others = _by_placeholder(live)
    for key, values in _by_placeholder(recorded).items():
        live_values = others.get(key, ())
        if len(values) != len(live_values):
            continue
        family = key[0]
        known = pairs[family]
        for old, new in zip(values, live_values, strict=True):
            if known.setdefault(old, new) != new:
                ambiguous.add((family, old))
    for family, old in ambiguous:
        pairs[family][old] = old
    return Replacements(
        {old: new for old, new in pairs["root"].items() if len(old) > 1 and not _UNUSABLE.search(old)},
        {old: new for old, new in pairs["uuid"].items() if old != new},
        {old: new for old, new in pairs["time"].items() if old != new},
        {
            old: new
            for old, new in pairs["id"].items()
            if old != new and is_followed(old) and is_followed(new)
        },
    )


def in_common(slots: Sequence[Slot], others: Sequence[Slot]) -> tuple[Slot, ...]:
    """The slots that stand under the same placeholder at the same places in another request, one for one."""
    known = Counter((slot.placeholder, slot.at) for slot in others)
    here = Counter((slot.placeholder, slot.at) for slot in slots)
    return tuple(
        slot for slot in slots if here[slot.placeholder, slot.at] == known[slot.placeholder, slot.at]
    )


def _by_placeholder(slots: Sequence[Slot]) -> dict[tuple[Family, str], list[str]]:
    found: dict[tuple[Family, str], list[str]] = {}
    for slot in slots:
        family = FAMILY_OF_RULE.get(slot.rule)
        if family is not None:
            found.setdefault((family, slot.placeholder), []).append(slot.value)
    return found
