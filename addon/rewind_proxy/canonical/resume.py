"""Where the next request of a session can go on: what was hashed of it up to its last message but one.

A chain of digests and the numbers given on the way depend on what stood before alone. So where a request
starts with the very parts of an earlier one, it goes on from there. Parts are told by their identity, which
`Documents` gives to equal text, and plain texts by what they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonObject, Message
from rewind_proxy.canonical.scrub import Place
from rewind_proxy.canonical.shown import Shown

_PARTS = 10_000
"""Parts of all chains kept together; what is kept of each is small, but it keeps the part itself alive."""
_BACK = 12
"""Messages that a turn adds at most, for it to be found."""

_Sign = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A request up to some message. `links` are those so far, `link` the last of them as bytes."""

    shown: Shown
    link: bytes
    links: tuple[str, ...]
    signs: tuple[_Sign, ...]
    held: tuple[Sequence[Message], Sequence[JsonObject]]
    """Keeps alive what the signs name by its identity."""


class Chains:
    """The chains of the requests that came last, under one set of match settings."""

    def __init__(self, parts: int = _PARTS) -> None:
        self._chains: dict[tuple[object, ...], Chain] = {}
        self._parts = 0
        self._most = parts

    def find(
        self, keys: Mapping[Place, object], tools: Sequence[JsonObject], signs: tuple[_Sign, ...]
    ) -> Chain | None:
        """The longest chain that a request starts with, all but its last message at most."""
        head = _head(keys, tools)
        last = len(signs) - 2
        for at in range(last, max(-1, last - _BACK), -1):
            chain = self._chains.get((head, at, signs[at]))
            if chain is not None and chain.signs == signs[: at + 1]:
                return chain
        return None

    def keep(self, keys: Mapping[Place, object], tools: Sequence[JsonObject], chain: Chain) -> None:
        """Keep a chain for the requests that start with it; the oldest go."""
        key = (_head(keys, tools), len(chain.signs) - 1, chain.signs[-1])
        before = self._chains.pop(key, None)
        self._chains[key] = chain
        self._parts += _size(chain) - (_size(before) if before else 0)
        while self._parts > self._most:
            oldest = next(iter(self._chains), None)
            if oldest is None:
                self._parts = 0
                return
            dropped = self._chains.pop(oldest, None)
            self._parts -= _size(dropped) if dropped else 0


def signs_of(messages: Sequence[Message]) -> tuple[_Sign, ...]:
    """What tells messages from others, as long as their parts are alive."""
    return tuple((message.role, *map(_sign, message.parts)) for message in messages)


def _sign(part: JsonObject) -> str | int:
    if len(part) == 2 and part.get("type") == "text" and isinstance(text := part.get("text"), str):
        return text
    return id(part)


def _head(keys: Mapping[Place, object], tools: Sequence[JsonObject]) -> tuple[int, ...]:
    return (id(keys), *map(id, tools))


def _size(chain: Chain) -> int:
    return sum(map(len, chain.signs)) + len(chain.held[1])
