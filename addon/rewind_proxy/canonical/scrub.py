"""Scrubbing: what is noise in one text leaf, and the numbering of what was taken out (DESIGN §5).

`Scrubber.leaf` depends on the text, its member name and its place alone, so its result is kept in a bounded
cache: an agent sends its whole history again on every turn. `Numbering` belongs to one request.

Rules: RS001 folding of texts (step 3) · RS101 uuid · RS102 linking id · RS103 date with time · RS104 date by
cue · RS105 root of a path · RS106 random name below temp · RS107 folder (`paths = all`) · RS201 duration ·
RS202 process id · RS203 id made by the client, or by a tool, in its result · RS204 measure ·
`scrub:<name>` a project's own · `preset:<id>:<name>` an agent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.captured import CAPTURING, Captured
from rewind_proxy.canonical.dates.cued import CUE_WORDS
from rewind_proxy.canonical.dates.times import in_days, time_spans
from rewind_proxy.canonical.literals import Literals
from rewind_proxy.canonical.model import MatchSettings, Role
from rewind_proxy.canonical.noise.tool_results import NOISE_WORDS, noise_spans
from rewind_proxy.canonical.paths.roots import Root, folder_spans, root_spans, temp_name_spans
from rewind_proxy.canonical.pointer import Pointer
from rewind_proxy.canonical.preset import Preset
from rewind_proxy.canonical.spans import SEPARATOR, Leaf, Span
from rewind_proxy.canonical.text import composed, normalise_text
from rewind_proxy.canonical.uuids import uuid_spans

Place = Literal["system", "user", "assistant", "tool_result", "tools", "params"]
PLACE_OF_ROLE: dict[Role, Place] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool_result",
}
LINKING_ID = "RS102"
FOLDING = "RS001"
SCRUB_RULES = (
    FOLDING,
    "RS101",
    LINKING_ID,
    "RS103",
    "RS104",
    "RS105",
    "RS106",
    "RS107",
    "RS201",
    "RS202",
    "RS203",
    "RS204",
)
"""The ids of the built-in rules. Those of presets and of a project's own rules are not among them."""
OWN_RULE = "scrub:"
"""What the id of a project's own rule starts with; its name follows."""

_REMEMBERED = 600_000
_TRIGGER = re.compile(r"[\d/\\-]")
_WORDS = Literals(CUE_WORDS | NOISE_WORDS)


class Scrubber:
    """Finds the noise in text leaves under one set of match settings, in the requests of one agent."""

    follows = True
    """Whether what was captured elsewhere is noise too."""

    def __init__(self, settings: MatchSettings, preset: Preset | None = None) -> None:
        self._off = frozenset(settings.scrub_off)
        self._paths = settings.paths
        self._own = tuple(
            (f"{OWN_RULE}{rule.name}", rule.name, re.compile(rule.pattern), rule.where)
            for rule in settings.scrub
        )
        self._agents = tuple((preset.rule_id(rule), rule) for rule in preset.scrub) if preset else ()
        self._cache: TextCache[tuple[str, str, Place, object, bool], Leaf] = TextCache(_REMEMBERED)

    def leaf(
        self,
        text: str,
        member: str,
        place: Place,
        roots: tuple[Root, ...],
        rooted: object = None,
        *,
        as_written: bool = False,
    ) -> Leaf:
        """The leaf of `text`, found under `member` at `place`, in a request whose roots are known.

        `rooted` stands for the roots where many leaves are looked up: it is quicker to hash. A text that
        counts `as_written` keeps its blanks and line ends.
        """
        key = (text, member, place, roots if rooted is None else rooted, as_written)
        known = self._cache.get(key)
        if known is None:
            fold = composed if as_written else normalise_text
            normal = text if FOLDING in self._off else fold(text)
            known = _following(Leaf(normal, self._scan(normal, member, place, roots)))
            self._cache.put(key, known, len(text))
        return known

    def _scan(self, text: str, member: str, place: Place, roots: tuple[Root, ...]) -> tuple[Span, ...]:
        """Spans that do not overlap, in order of place. Of two that overlap the earlier rule's wins."""
        if len(text) < 2:
            return ()
        chosen: list[Span] = []
        taken = bytearray()  # a mask, so that a log of ten thousand times costs no more than its length
        for span in self._candidates(text, member, place, roots):
            if span.rule in self._off or span.start >= span.end:
                continue
            if not taken:
                taken = bytearray(len(text))
            if taken.find(1, span.start, span.end) < 0:
                taken[span.start : span.end] = b"\1" * (span.end - span.start)
                chosen.append(span)
        chosen.sort(key=lambda span: span.start)
        return tuple(in_days(chosen) if place == "tool_result" else chosen)

    def _candidates(self, text: str, member: str, place: Place, roots: tuple[Root, ...]) -> Iterator[Span]:
        for rule, kind, pattern, where in self._own:
            if where in ("any", place):
                for match in pattern.finditer(text):
                    yield Span(match.start(), match.end(), rule, kind, match.group())
        found: list[Span] = []
        if self._paths != "off" and (
            "/" in text or "\\" in text or "-" in text or "%2" in text or "%5" in text
        ):
            found = list(root_spans(text, roots))
            # A folder that is named as a root is one whatever stands in its name.
            yield from (span for span in found if span.kind == "root")
        for rule_id, agents in self._agents:
            if place in agents.where or "any" in agents.where:
                for match in agents.matches(text):
                    start, end = match.span(agents.pattern.groups)  # the one group, else the whole match
                    yield Span(start, end, rule_id, agents.name, text[start:end])
        if place != "tool_result" and not _TRIGGER.search(text):
            return  # all that follows needs one of these characters
        yield from found
        if "-" in text:
            yield from uuid_spans(text)
        words = _WORDS.within(text.lower())
        # A date that the model wrote comes back as it was recorded, today's beside it does not.
        date = "written" if place == "assistant" else "date"
        yield from time_spans(text, member, words, numbered=place != "tool_result", date=date)
        if place == "tool_result":
            yield from noise_spans(text, words)
        # After what is known by its place: a task's id below temp may look random, or not.
        yield from temp_name_spans(text, (span for span in found if span.kind == "tmp"))
        if self._paths == "all":
            yield from folder_spans(text)


def _following(leaf: Leaf) -> Leaf:
    """The leaf with what it captures itself taken out wherever it quotes it."""
    if not leaf.spans:
        return leaf
    captured = Captured()
    for span in leaf.spans:
        if span.rule in CAPTURING:
            captured.add(span.value, span.rule, span.kind)
    return captured.follow(leaf) if captured.by_word else leaf


class Verbatim(Scrubber):
    """Leaves each text as it is: what is embedded counts byte for byte."""

    follows = False

    def leaf(
        self,
        text: str,
        member: str,  # noqa: ARG002
        place: Place,  # noqa: ARG002
        roots: tuple[Root, ...],  # noqa: ARG002
        rooted: object = None,  # noqa: ARG002
        *,
        as_written: bool = False,  # noqa: ARG002
    ) -> Leaf:
        """See `Scrubber.leaf`."""
        return Leaf(text, ())


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that scrubbing took out, with its kind and place, so that it can be put back."""

    rule: str
    kind: str
    value: str
    placeholder: str
    at: Pointer


class Taken(NamedTuple):
    """A value that was taken out, without its place."""

    rule: str
    placeholder: str
    value: str


class Numbering:
    """Placeholders of one request, numbered by first appearance (DESIGN §5, step 10)."""

    def __init__(self, *, slots: bool = False) -> None:
        """`slots`: whether to keep all that is taken out, with its place, in `slots`."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._slots: list[Slot] | None = [] if slots else None
        self._seen: set[tuple[str, str, str]] = set()
        self.taken: list[Taken] = []
        """What was taken out: a numbered value once, others each time."""
        self.captured = Captured()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All that was taken out, in order."""
        return tuple(self._slots or ())

    def placeholder(self, kind: str, value: str, *, numbered: bool = True) -> str:
        """`⟨kind:n⟩`; the first of a path root is `⟨cwd⟩`, what is equal by chance only is `⟨kind⟩`."""
        if not numbered:
            return f"⟨{kind}⟩"
        number = self._numbers.get((kind, value))
        if number is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[kind, value] = number
        if number == 1 and kind in ("cwd", "home", "tmp"):
            return f"⟨{kind}⟩"
        return f"⟨{kind}:{number}⟩"

    def fork(self) -> Numbering:
        """One that has given the same numbers and goes its own way."""
        other = Numbering()
        other._numbers, other._counts = self._numbers.copy(), self._counts.copy()
        other._seen, other.taken = self._seen.copy(), self.taken.copy()
        other.captured = self.captured.fork()
        return other

    def take(self, rule: str, kind: str, value: str, at: Pointer, *, numbered: bool = True) -> str:
        """The placeholder of a value, which is taken down."""
        placeholder = self.placeholder(kind, value, numbered=numbered)
        if rule in CAPTURING:
            self.captured.add(value, rule, kind)
        if not numbered:
            self.taken.append(Taken(rule, placeholder, value))
        elif (key := (rule, kind, value)) not in self._seen:
            self._seen.add(key)
            self.taken.append(Taken(rule, placeholder, value))
        if self._slots is not None:
            self._slots.append(Slot(rule, kind, value, placeholder, at))
        return placeholder

    def render(self, leaf: Leaf, at: Pointer) -> str:
        """The leaf's text with placeholders; a `⟨` that the text had itself is doubled, so none collides."""
        if not leaf.spans:
            return leaf.text.replace("⟨", "⟨⟨") if "⟨" in leaf.text else leaf.text
        pieces: list[str] = []
        position = 0
        for span in leaf.spans:
            pieces.append(leaf.text[position : span.start].replace("⟨", "⟨⟨"))
            if span.kind == SEPARATOR:
                pieces.append("/")
            else:
                pieces.append(self.take(span.rule, span.kind, span.value, at, numbered=span.numbered))
            position = span.end
        pieces.append(leaf.text[position:].replace("⟨", "⟨⟨"))
        return "".join(pieces)


class Unnumbered(Numbering):
    """Placeholders that say what was taken out, and not which."""

    def placeholder(self, kind: str, value: str, *, numbered: bool = True) -> str:  # noqa: ARG002
        """`⟨kind⟩`."""
        return f"⟨{kind}⟩"
