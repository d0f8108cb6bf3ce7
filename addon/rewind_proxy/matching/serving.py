"""From a recording that answers to the answer itself: re-based, in the form asked for (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rewind_proxy.canonical.answer import Asked
from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, Tier
from rewind_proxy.canonical.scrub import Slot
from rewind_proxy.matching.answer_redaction import moved_chunks
from rewind_proxy.matching.choice import same_form
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.matching.reasons import Aspects, Reasons, aspects, reasons, reasons_by_record
from rewind_proxy.matching.rebase import Rebased, rebase, replacements
from rewind_proxy.matching.rebase_slots import in_common
from rewind_proxy.settings import Settings
from rewind_proxy.store import Answer, Store
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.wire.forms import convert


@dataclass(frozen=True, slots=True)
class Served:
    """An answer ready to be sent: `headers` are the recorded ones, content type included."""

    answer: Answer
    headers: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What is not stored of a recorded request, and is read out of it once."""

    aspects: Aspects
    slots: tuple[Slot, ...]


class Serving:
    """Makes answers from recordings under one set of settings."""

    def __init__(self, settings: Settings, reader: RequestReader, store: Store) -> None:
        self._settings = settings
        self._reader = reader
        self._store = store
        self._known: TextCache[int, _Recorded] = TextCache()
        """What was learnt from recorded requests, by `seq`."""

    def serve(self, tier: Tier, cassette: CassetteRecord, reading: Reading) -> Served | None:
        """The answer of a recording to a live request; None when it cannot be given in the form asked for.

        Same wire and form: the recorded bytes, but for re-based slots. Raises what the store raises.
        """
        answer = self._store.answer(cassette)
        headers = cassette.answer.headers
        notes = self.notes(tier, cassette, reading)
        if tier != "exact" and self._settings.rebase:
            rebased = self._rebased(tier, cassette, answer, reading)
            if rebased.count:
                notes.append(f"re-based {rebased.count}")
            answer = replace(answer, body=rebased.body, chunks=moved_chunks(answer.chunks, rebased))
        if not same_form(cassette.request, reading.record):
            recorded, asked = cassette.request, asked_of(reading)
            rendered = None
            if reading.endpoint.operation == "generate" and cassette.answer.ending != "error":
                rendered = convert(answer.body, recorded.wire, recorded.form, asked)
            if rendered is None:
                return None
            notes.append(f"converted {recorded.wire} {recorded.form}->{asked.wire} {asked.form}")
            notes += [f"lost {each}" for each in rendered.notes]
            first = answer.chunks[0][1] if answer.chunks else 0
            last = answer.chunks[-1][1] if answer.chunks else 0
            answer = Answer(rendered.body, spread(rendered.chunks, first, last))
            headers = (
                *((name, value) for name, value in headers if name != "content-type"),
                ("content-type", rendered.content_type),
            )
        return Served(answer, headers, tuple(notes))

    def _rebased(self, tier: Tier, cassette: CassetteRecord, answer: Answer, reading: Reading) -> Rebased:
        same = cassette.request.slots_digest == reading.record.slots_digest
        recorded = None if same or reading.normalised is None else self._recorded(cassette)
        if recorded is None or reading.normalised is None:
            return Rebased(answer.body, 0)
        slots, live = recorded.slots, reading.normalised.slots
        if tier == "alias":  # the requests differ: only what stands at the same place is the same thing
            slots, live = in_common(slots, live), in_common(live, slots)
        values = replacements(slots, live)
        return rebase(answer.body, cassette.request.wire, cassette.request.form, values)

    def notes(self, tier: Tier, cassette: CassetteRecord, reading: Reading) -> list[str]:
        """Every rule that made the hit possible, with both values of what was ignored."""
        if tier == "exact" or reading.normalised is None:
            return []
        tail_n = self._settings.tail_n
        why = reasons_by_record(cassette.request, reading, self._settings.ignore)
        if why is None:
            recorded = self._recorded(cassette)
            if recorded is not None:
                why = reasons(recorded.aspects, cassette.request, aspects(reading, tail_n), reading)
        if why is not None and tier == "alias":
            why = Reasons(values=why.values)  # that they differ elsewhere is what was approved
        notes = [*why.notes()] if why else []
        if reading.normalised.rules:
            notes.append("scrubbed " + " ".join(reading.normalised.rules))
        if tail_n:
            notes.append(f"tail_n={tail_n}")
        return notes

    def _recorded(self, cassette: CassetteRecord) -> _Recorded | None:
        """What is to be known of a recorded request; None of one that is not understood any more."""
        known = self._known.get(cassette.seq)
        if known is None:
            stored = self._reader.read_stored(cassette, self._store.request_body(cassette))
            if stored.normalised is None:
                return None
            known = _Recorded(aspects(stored, self._settings.tail_n), stored.normalised.slots)
            size = sum(len(slot.value) + 100 for slot in known.slots) + len(dumps(known.aspects.ignored))
            self._known.put(cassette.seq, known, size)
        return known


def asked_of(reading: Reading) -> Asked:
    """What a rendered answer has to fit, from the live request."""
    params = reading.canonical.params if reading.canonical else {}
    options = params.get("stream_options")
    model = params.get("model")
    return Asked(
        wire=reading.record.wire,
        form=reading.record.form,
        model=model if isinstance(model, str) else "",
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        wrapped=reading.record.path.startswith("/v1internal:"),
        custom_tools=frozenset(_custom_tools(reading.canonical.tools if reading.canonical else ())),
    )


def _custom_tools(tools: tuple[JsonObject, ...]) -> Iterator[str]:
    """Names of the tools that take free text, those in namespaces included (Codex)."""
    stack: list[JsonValue] = [*tools]
    while stack:
        tool = stack.pop()
        if not isinstance(tool, dict):
            continue
        name, nested = tool.get("name"), tool.get("tools")
        if tool.get("type") == "custom" and isinstance(name, str):
            yield name
        if isinstance(nested, list):
            stack.extend(nested)


def spread(lengths: tuple[int, ...], first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Chunks of a synthesised stream, spread evenly over the time that the recorded answer took."""
    steps = max(1, len(lengths) - 1)
    return tuple((length, first + (last - first) * index // steps) for index, length in enumerate(lengths))
