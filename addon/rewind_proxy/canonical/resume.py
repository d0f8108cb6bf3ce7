"""Where the next request of a session can go on: what was hashed of it up to its last message but one.

A chain of digests and the numbers given on the way depend on what stood before alone. So where a request
starts with the very messages of an earlier one, it goes on from there. `History` gives equal text the same
objects, so messages are told by their identity, and what is not in a list of objects by what it says.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, Message
from rewind_proxy.canonical.paths.roots import Found, Root
from rewind_proxy.canonical.shown import Shown

_MESSAGES = 40_000
"""Messages of all chains kept together: of eight sessions of 1 MB. Each takes less than 0.5 KB, measured."""
_BACK = 20
"""How far from its end a request is looked at for where an earlier one was kept: what a turn adds, and what
was not settled then."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A request up to some message. `links` are those so far, `link` the last of them as bytes."""

    messages: Sequence[Message]
    """As the client sent them."""
    tools: Sequence[JsonObject]
    told: tuple[Found, ...]
    """What the messages tell of roots."""
    roots: tuple[Root, ...]
    shown: Shown
    link: bytes
    links: tuple[str, ...]


class Chains:
    """The chains of the requests that came last, under one set of match settings."""

    def __init__(self, messages: int = _MESSAGES) -> None:
        self._chains: dict[tuple[int, ...], Chain] = {}
        self._messages = 0
        self._most = messages

    def find(self, meaning: object, messages: Sequence[Message], tools: Sequence[JsonObject]) -> Chain | None:
        """The longest chain that a request starts with, all but its last message at most.

        `meaning` stands for all else that a chain depends on.
        """
        last = len(messages) - 1
        for count in range(last, max(0, last - _BACK), -1):
            chain = self._chains.get(_key(meaning, messages, count, tools))
            if (
                chain is not None
                and all(map(operator.is_, chain.tools, tools))
                and _starts_with(messages, chain.messages)
            ):
                return chain
        return None

    def keep(self, meaning: object, chain: Chain, known: Chain | None = None) -> None:
        """Keep a chain for the requests that start with it, in place of the one that it goes on from.

        The oldest go.
        """
        replaced = [] if known is None else [self._chains.pop(_key_of(meaning, known), None)]
        replaced.append(self._chains.pop(_key_of(meaning, chain), None))
        self._chains[_key_of(meaning, chain)] = chain
        self._messages += len(chain.messages) - sum(len(each.messages) for each in replaced if each)
        while self._messages > self._most:
            oldest = next(iter(self._chains), None)
            if oldest is None:
                self._messages = 0
                return
            dropped = self._chains.pop(oldest, None)
            self._messages -= len(dropped.messages) if dropped else 0


def _key_of(meaning: object, chain: Chain) -> tuple[int, ...]:
    return _key(meaning, chain.messages, len(chain.messages), chain.tools)


def _key(
    meaning: object, messages: Sequence[Message], count: int, tools: Sequence[JsonObject]
) -> tuple[int, ...]:
    return id(meaning), count, id(messages[count - 1]), len(tools)


def _starts_with(messages: Sequence[Message], start: Sequence[Message]) -> bool:
    return all(one is other or _same(one, other) for one, other in zip(messages, start, strict=False))


def _same(one: Message, other: Message) -> bool:
    return (
        one.role == other.role
        and len(one.parts) == len(other.parts)
        and all(a is b or _same_part(a, b) for a, b in zip(one.parts, other.parts, strict=True))
    )


def _same_part(one: JsonObject, other: JsonObject) -> bool:
    """Whether two parts are equal as JSON: Python takes `1`, `1.0` and `true` for one."""
    if len(one) != len(other) or one.get("type") != other.get("type"):
        return False
    text, also = one.get("text"), other.get("text")
    if isinstance(text, str) and (len(one) == 2 or text != also):
        return text == also
    return dumps(one) == dumps(other)
