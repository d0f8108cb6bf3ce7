"""What a generation says of itself: the redaction rules it went through, and what it was made from.

Both stand in the table `meta`. The second is written before anything is copied and tells, in the same
transactions as the copies, how far they have come: so a rewrite that was killed goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store.environment import META
from rewind_proxy.store.transaction import Txn

_REDACTION = b"redaction"
_ORIGIN = b"origin"


def read_redaction(txn: Txn) -> tuple[str, ...]:
    """The list of redaction rules of a generation."""
    value = txn.get(META, _REDACTION)
    return tuple(json.loads(value)) if value else ()


def write_redaction(txn: Txn, rules: Iterable[str]) -> None:
    """Add rules to the list of a generation, in order; it only grows."""
    merged = dict.fromkeys((*read_redaction(txn), *rules))
    txn.put(META, _REDACTION, json.dumps(list(merged)).encode())


@dataclass(frozen=True, slots=True)
class Origin:
    """What a generation is rewritten from, and how."""

    number: int
    """The generation it is made from."""
    rules: tuple[str, ...]
    """The whole list of redaction rules that it goes through."""
    kind: str = ""
    """What else is done to it, in words of the caller's."""
    last: str = ""
    """The last key that was copied, hex."""
    dropped: tuple[str, ...] = ()
    """Why each value that could not be read was left behind."""

    def same_work(self, other: Origin | None) -> bool:
        """Whether the two differ in how far they have come, and in nothing else."""
        return other is not None and replace(self, last="", dropped=()) == replace(other, last="", dropped=())


def read_origin(txn: Txn) -> Origin | None:
    """What a generation was made from; None for one that was not rewritten. Raises `CorruptRecordError`."""
    value = txn.get(META, _ORIGIN)
    if value is None:
        return None
    try:
        number, rules, kind, last, dropped = json.loads(value)
        return Origin(int(number), tuple(rules), str(kind), str(last), tuple(dropped))
    except (ValueError, TypeError) as error:
        raise CorruptRecordError("what the generation was made from does not parse") from error


def write_origin(txn: Txn, origin: Origin) -> None:
    """Note what a generation is made from, and how far the work has come."""
    value = [origin.number, origin.rules, origin.kind, origin.last, origin.dropped]
    txn.put(META, _ORIGIN, json.dumps(value).encode())
