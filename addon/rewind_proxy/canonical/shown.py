"""A request as it is hashed: its parts in canonical bytes, numbered in order, and what reports need of it.

Hashing needs bytes alone, so the JSON of a request and its slots are put together only when they are asked
for (a miss, a re-base, `canon`). By then every value has its number, so a second walk shows the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rewind_proxy.canonical.item import of_item
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Message
from rewind_proxy.canonical.pointer import ROOT, Pointer
from rewind_proxy.canonical.roots import Root
from rewind_proxy.canonical.scrub import PLACE_OF_ROLE, Numbering, Place, Scrubber, Slot
from rewind_proxy.canonical.template import Template, make_template
from rewind_proxy.canonical.walk import MediaDigests, Walk

_Where = tuple[Literal["messages", "tools"], int, int]
PLACES: tuple[Place, ...] = ("system", "user", "assistant", "tool_result", "tools", "params")


class Taken(NamedTuple):
    """A value that was taken out, without its place."""

    rule: str
    placeholder: str
    value: str


class CanonicalParts(NamedTuple):
    """Messages, tools and parameters. Of two requests with one normalised fingerprint they are parallel."""

    messages: Sequence[Message]
    tools: Sequence[JsonObject]
    params: JsonObject


class Shown:
    """Takes the messages, tools and parameters of one request in canonical order."""

    def __init__(
        self, scrubber: Scrubber, media: MediaDigests, roots: tuple[Root, ...], keys: Mapping[Place, object]
    ) -> None:
        """`keys` stand for scrubber and roots: a part keeps what it was shown as at a place under its key."""
        self._scrubber, self._media, self._roots, self._keys = scrubber, media, roots, keys
        self._numbering = Numbering()
        self._walk = self._with(self._numbering)
        self._taken: list[tuple[Template | None, JsonObject, Place, _Where]] = []
        self._messages: list[Message] = []
        self._tools: list[JsonObject] = []
        self._params: JsonObject = {}
        self._values: list[Taken] = []
        self._seen: set[tuple[str, str, str]] = set()
        self._counted = 0

    def fork(self) -> Shown:
        """One that has taken the same and goes its own way."""
        self._count()
        other = Shown(self._scrubber, self._media, self._roots, self._keys)
        other._numbering = self._numbering.fork()
        other._walk = other._with(other._numbering)
        other._taken, other._messages, other._tools = [*self._taken], [*self._messages], self._tools
        other._values, other._seen, other._counted = [*self._values], set(self._seen), self._counted
        return other

    def message(self, message: Message) -> bytes:
        """The canonical bytes of the next message."""
        place, index = PLACE_OF_ROLE[message.role], len(self._messages)
        self._messages.append(message)
        parts = [self._take(part, place, ("messages", index, at)) for at, part in enumerate(message.parts)]
        return b'{"parts":[' + b",".join(parts) + b'],"role":"' + message.role.encode() + b'"}'

    def tools(self, tools: Sequence[JsonObject]) -> bytes:
        """The canonical bytes of the tools, already in order."""
        self._tools = [*tools]
        shown = [self._take(tool, "tools", ("tools", index, 0)) for index, tool in enumerate(tools)]
        return b"[" + b",".join(shown) + b"]"

    def params(self, params: JsonObject) -> bytes:
        """The canonical bytes of the parameters, which come last."""
        self._params = params
        return dumps(self._walk.named(params, "params", ROOT.member("params")))

    def _take(self, part: JsonObject, place: Place, where: _Where) -> bytes:
        template = of_item(part, self._keys[place], lambda _: self._template(part, place))
        self._taken.append((template, part, place, where))
        if template is None:
            return dumps(_show(self._walk, part, place, _pointer(where)))
        return template.fill(self._numbering)

    def _template(self, part: JsonObject, place: Place) -> Template | None:
        return make_template(lambda numbering, at: _show(self._with(numbering), part, place, at))

    def _with(self, numbering: Numbering) -> Walk:
        return Walk(self._scrubber, self._media, numbering, self._roots, self._keys["params"])

    # -- for reports

    def kept(self) -> CanonicalParts:
        """What was taken, as it was before scrubbing: without what is volatile, ignored or cut off."""
        return CanonicalParts(self._messages, self._tools, self._params)

    def taken(self) -> list[Taken]:
        """What was taken out, in canonical order: a numbered value once, others each time."""
        self._count()
        return [*self._values, *map(_taken_of, self._of_params())]

    def _count(self) -> None:
        for template, part, place, where in self._taken[self._counted :]:
            if template is None:
                self._values += map(_taken_of, self._slots_of(part, place, _pointer(where)))
                continue
            for gap in template.gaps:
                if gap.key not in self._seen:
                    if gap.numbered:
                        self._seen.add(gap.key)
                    placeholder = self._numbering.placeholder(gap.kind, gap.value, numbered=gap.numbered)
                    self._values.append(Taken(gap.rule, placeholder, gap.value))
        self._counted = len(self._taken)

    def slots(self) -> tuple[Slot, ...]:
        """All that was taken out, in canonical order."""
        slots: list[Slot] = []
        for template, part, place, where in self._taken:
            at = _pointer(where)
            if template is not None:
                slots += template.slots(self._numbering, at)
            else:
                slots += self._slots_of(part, place, at)
        return (*slots, *self._of_params())

    def _slots_of(self, part: JsonObject, place: Place, at: Pointer) -> list[Slot]:
        taking = self._numbering.again()
        _show(self._with(taking), part, place, at)
        return taking.slots

    def _of_params(self) -> list[Slot]:
        taking = self._numbering.again()
        self._with(taking).named(self._params, "params", ROOT.member("params"))
        return taking.slots

    def view(self) -> JsonObject:
        """`{"messages", "tools", "params"}` as they were hashed."""
        walk = self._with(self._numbering.again())
        messages: list[JsonValue] = [
            walk.message(message, _pointer(("messages", index, 0)))
            for index, message in enumerate(self._messages)
        ]
        tools: list[JsonValue] = [
            _show(walk, tool, "tools", _pointer(("tools", index, 0)))
            for index, tool in enumerate(self._tools)
        ]
        return {
            "messages": messages,
            "tools": tools,
            "params": walk.named(self._params, "params", ROOT.member("params")),
        }


def _show(walk: Walk, part: JsonObject, place: Place, at: Pointer) -> JsonValue:
    return walk.value(part, "tools", place, at) if place == "tools" else walk.part(part, place, at)


def _taken_of(slot: Slot) -> Taken:
    return Taken(slot.rule, slot.placeholder, slot.value)


def _pointer(where: _Where) -> Pointer:
    section, index, part = where
    at = ROOT.member(section).item(index)
    return at.member("parts").item(part) if section == "messages" else at
