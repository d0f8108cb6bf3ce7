"""A request as it is hashed: its parts in canonical bytes, numbered in order, and what reports need of it.

Hashing needs bytes alone, so the JSON of a request and its slots are put together only when they are asked
for (a miss, a re-base, `canon`). By then every value has its number, so a second walk shows the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rewind_proxy.canonical.captured import CAPTURING, Captured, Value, words_of
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


class _Part(NamedTuple):
    """A part that was taken; `captured` is what was captured before and is quoted in it."""

    template: Template | None
    part: JsonObject
    place: Place
    where: _Where
    captured: Captured | None


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
        self._captured = Captured()
        self._taken: list[_Part] = []
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
        other._numbering, other._captured = self._numbering.fork(), self._captured.fork()
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
        return dumps(self._show_params(self._numbering))

    def _take(self, part: JsonObject, place: Place, where: _Where) -> bytes:
        key = self._keys[place]
        template = of_item(part, key, lambda _: self._template(part, place, None))
        captured: Captured | None = None
        if template is None:
            captured = self._captured.fork()
            walk = self._with(self._numbering, captured)
            before = len(self._numbering.slots)
            data = dumps(_show(walk, part, place, _pointer(where)))
            for slot in self._numbering.slots[before:]:
                self._captured.add(Value(slot.value, slot.rule, slot.kind))
        else:
            renamed = self._capture(template)
            if self._captured:
                template, captured = self._followed(template, renamed, part, place)
            data = template.fill(self._numbering)
        self._taken.append(_Part(template, part, place, where, captured))
        return data

    def _capture(self, template: Template) -> list[str]:
        """Take down what is random in a part; returns what is known there as something else."""
        gaps = [gap for gap in template.gaps if gap.rule in CAPTURING]
        return [
            gap.value
            for gap in gaps
            if self._captured.add(Value(gap.value, gap.rule, gap.kind)).kind != gap.kind
        ]

    def _followed(
        self, template: Template, renamed: list[str], part: JsonObject, place: Place
    ) -> tuple[Template, Captured | None]:
        """The template with what was captured before taken out too, if any of that is quoted in it."""
        key = self._keys[place]
        words = of_item(part, (key, "words"), lambda _: words_of(template.pieces))
        if renamed:
            words |= words_of([value.encode() for value in renamed])
        quoted = self._captured.among(words)
        if not quoted:
            return template, None
        again = of_item(part, (key, quoted.key()), lambda _: self._template(part, place, quoted))
        assert again is not None  # what is taken out more has the kind of something that was taken out
        return again, quoted

    def _template(self, part: JsonObject, place: Place, captured: Captured | None) -> Template | None:
        return make_template(lambda numbering, at: _show(self._with(numbering, captured), part, place, at))

    def _with(self, numbering: Numbering, captured: Captured | None = None) -> Walk:
        return Walk(self._scrubber, self._media, numbering, self._roots, self._keys["params"], captured)

    def _show_params(self, numbering: Numbering) -> JsonObject:
        return self._with(numbering, self._captured).named(self._params, "params", ROOT.member("params"))

    # -- for reports

    def kept(self) -> CanonicalParts:
        """What was taken, as it was before scrubbing: without what is volatile, ignored or cut off."""
        return CanonicalParts(self._messages, self._tools, self._params)

    def taken(self) -> list[Taken]:
        """What was taken out, in canonical order: a numbered value once, others each time."""
        self._count()
        return [*self._values, *map(_taken_of, self._of_params())]

    def _count(self) -> None:
        for part in self._taken[self._counted :]:
            if part.template is None:
                self._values += map(_taken_of, self._slots_of(part))
                continue
            for gap in part.template.gaps:
                if gap.key not in self._seen:
                    if gap.numbered:
                        self._seen.add(gap.key)
                    placeholder = self._numbering.placeholder(gap.kind, gap.value, numbered=gap.numbered)
                    self._values.append(Taken(gap.rule, placeholder, gap.value))
        self._counted = len(self._taken)

    def slots(self) -> tuple[Slot, ...]:
        """All that was taken out, in canonical order."""
        slots: list[Slot] = []
        for part in self._taken:
            if part.template is not None:
                slots += part.template.slots(self._numbering, _pointer(part.where))
            else:
                slots += self._slots_of(part)
        return (*slots, *self._of_params())

    def _slots_of(self, part: _Part) -> list[Slot]:
        taking = self._numbering.again()
        self._shown(part, taking)
        return taking.slots

    def _of_params(self) -> list[Slot]:
        taking = self._numbering.again()
        self._show_params(taking)
        return taking.slots

    def view(self) -> JsonObject:
        """`{"messages", "tools", "params"}` as they were hashed."""
        numbering = self._numbering.again()
        parts: list[list[JsonValue]] = [[] for _ in self._messages]
        tools: list[JsonValue] = []
        for part in self._taken:
            section, index, _ = part.where
            (tools if section == "tools" else parts[index]).append(self._shown(part, numbering))
        messages: list[JsonValue] = [
            {"role": message.role, "parts": shown}
            for message, shown in zip(self._messages, parts, strict=True)
        ]
        return {"messages": messages, "tools": tools, "params": self._show_params(numbering)}

    def _shown(self, part: _Part, numbering: Numbering) -> JsonValue:
        return _show(self._with(numbering, part.captured), part.part, part.place, _pointer(part.where))


def _show(walk: Walk, part: JsonObject, place: Place, at: Pointer) -> JsonValue:
    return walk.value(part, "tools", place, at) if place == "tools" else walk.part(part, place, at)


def _taken_of(slot: Slot) -> Taken:
    return Taken(slot.rule, slot.placeholder, slot.value)


def _pointer(where: _Where) -> Pointer:
    section, index, part = where
    at = ROOT.member(section).item(index)
    return at.member("parts").item(part) if section == "messages" else at
