"""A request as it is hashed: its messages in canonical bytes, numbered in order, and what reports need of it.

Hashing needs bytes alone, so the JSON of a request and its slots are put together only when they are asked
for (a miss, a re-base, `canon`), by a second walk that shows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar, cast

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Message
from rewind_proxy.canonical.paths.roots import Root
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.redaction.rules import MARK
from rewind_proxy.canonical.scrub import Numbering, Scrubber, Slot, Taken, Unnumbered
from rewind_proxy.canonical.walk import MediaDigests, Walk

R = TypeVar("R")
_MARK = MARK.encode()


class CanonicalParts(NamedTuple):
    """Messages, tools and parameters. Of two requests with one normalised fingerprint they are parallel."""

    messages: Sequence[Message]
    tools: Sequence[JsonObject]
    params: JsonObject


class Shown:
    """Takes the messages, tools and parameters of one request in canonical order."""

    def __init__(
        self, scrubber: Scrubber, media: MediaDigests, roots: tuple[Root, ...], rooted: object
    ) -> None:
        """`rooted` stands for the roots (`Scrubber.leaf`)."""
        self._scrubber, self._media, self._roots, self._rooted = scrubber, media, roots, rooted
        self._numbering = Numbering()
        self._walk = self._with(self._numbering)
        self._messages: list[Message] = []
        self._made: list[dict[str, object]] = []
        """What was made of each message, for whoever asks again; forks share it."""
        self._made_of_tools: dict[str, object] = {}
        self._tools: list[JsonObject] = []
        self._before_tools = 0
        self._params: JsonObject = {}
        self.marked = False
        """Whether the mark of redaction stands in its messages or tools, from a rule or as it was sent."""

    def fork(self) -> Shown:
        """One that has taken the same and goes its own way."""
        other = Shown(self._scrubber, self._media, self._roots, self._rooted)
        other._numbering = self._numbering.fork()
        other._walk = other._with(other._numbering)
        other._messages, other._tools = self._messages.copy(), self._tools
        other._before_tools = self._before_tools
        other._made, other._made_of_tools = self._made.copy(), self._made_of_tools
        other.marked = self.marked
        return other

    def message(self, message: Message) -> bytes:
        """The canonical bytes of the next message."""
        at = ROOT.member("messages").item(len(self._messages))
        self._messages.append(message)
        self._made.append({})
        return self._looked_at(dumps(self._walk.message(message, at)))

    def tools(self, tools: Sequence[JsonObject]) -> bytes:
        """The canonical bytes of the tools, already in order."""
        self._tools, self._before_tools = [*tools], len(self._messages)
        return self._looked_at(dumps(_tools(self._walk, tools)))

    def params(self, params: JsonObject) -> bytes:
        """The canonical bytes of the parameters, which come last."""
        self._params = params
        return dumps(self._walk.named(params, "params", ROOT.member("params")))

    def _looked_at(self, data: bytes) -> bytes:
        self.marked = self.marked or _MARK in data
        return data

    def _with(self, numbering: Numbering) -> Walk:
        return Walk(self._scrubber, self._media, numbering, self._roots, self._rooted)

    # -- for reports

    def kept(self) -> CanonicalParts:
        """What was taken, as it was before scrubbing: without what is volatile, ignored or cut off."""
        return CanonicalParts(self._messages, self._tools, self._params)

    def each(self, name: str, make: Callable[[JsonValue], R]) -> Iterator[R]:
        """What `make` makes of the tools, then of each message, scrubbed; it is kept under `name`.

        Placeholders have no numbers here, so that what is shown depends on nothing else in the request.
        """
        yield _once(self._made_of_tools, name, lambda: make(_tools(self._with(Unnumbered()), self._tools)))
        for message, made in zip(self._messages, self._made, strict=True):
            yield _once(made, name, partial(self._make, make, message))

    def _make(self, make: Callable[[JsonValue], R], message: Message) -> R:
        return make(self._with(Unnumbered()).message(message, ROOT))

    def taken(self) -> list[Taken]:
        """What was taken out, in canonical order: a numbered value once, others each time."""
        return self._numbering.taken

    def slots(self) -> tuple[Slot, ...]:
        """All that was taken out, in canonical order."""
        numbering = Numbering(slots=True)
        self._show(numbering)
        return numbering.slots

    def view(self) -> JsonObject:
        """`{"messages", "tools", "params"}` as they were hashed."""
        return self._show(Numbering())

    def _show(self, numbering: Numbering) -> JsonObject:
        walk = self._with(numbering)
        at = ROOT.member("messages")
        messages: list[JsonValue] = []
        tools: list[JsonValue] = []
        for index, message in enumerate(self._messages):
            if index == self._before_tools:
                tools = _tools(walk, self._tools)
            messages.append(walk.message(message, at.item(index)))
        if self._before_tools >= len(self._messages):
            tools = _tools(walk, self._tools)
        params = walk.named(self._params, "params", ROOT.member("params"))
        return {"messages": messages, "tools": tools, "params": params}

    def params_view(self) -> JsonObject:
        """The parameters, scrubbed, with placeholders as in `each`."""
        return self._with(Unnumbered()).named(self._params, "params", ROOT.member("params"))


def _once(made: dict[str, object], name: str, make: Callable[[], R]) -> R:
    # Two threads may both make it: it is the same.
    if (known := made.get(name)) is not None:
        return cast("R", known)
    result = make()
    made[name] = result
    return result


def _tools(walk: Walk, tools: Sequence[JsonObject]) -> list[JsonValue]:
    at = ROOT.member("tools")
    return [walk.value(tool, "tools", "tools", at.item(index)) for index, tool in enumerate(tools)]
