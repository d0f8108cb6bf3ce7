"""What a person decides about a pending request: an alias for it, or an answer of its own (DESIGN §12)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer
from rewind_proxy.canonical.fingerprint import HASH_VERSION
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.answer_redaction import redact_answer
from rewind_proxy.matching.choice import same_form
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.matching.serving import asked_of, spread
from rewind_proxy.store import (
    AliasRecord,
    AnswerRecord,
    CassetteRecord,
    Exchange,
    Log,
    PendingRecord,
    RequestRecord,
    Store,
)
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms import FORMS

_SHORT_ID = 12


class ReviewError(RewindError):
    """A decision that cannot be carried out; the message says what can be done instead."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """An answer by hand, stored."""

    cassette: CassetteRecord
    notes: tuple[str, ...] = ()
    """What the wire of the request cannot express, and tools that the request does not offer."""


class Review:
    """Carries out decisions on an open store and log.

    `reader` redacts by all rules in force, the store's and the settings': what the log kept may have been
    redacted by fewer.
    """

    def __init__(self, store: Store, log: Log, reader: RequestReader, *, redact_answers: bool) -> None:
        self._store = store
        self._log = log
        self._reader = reader
        self._redact_answers = redact_answers

    def approve(self, pending: PendingRecord, cassette: CassetteRecord, now: float) -> AliasRecord:
        """Have a cassette answer a pending request from now on. Raises `ReviewError`, `StoreError`."""
        why = cannot_answer(pending.request, cassette.request)
        if why:
            raise ReviewError(f"{cassette.id[:12]} cannot answer {pending.id[:12]}: {why}")
        reading, body = self._read(pending)
        scores = {each.cassette: each.score for each in self._log.pending.candidates(pending)}
        alias = AliasRecord(
            id=pending.id,
            cassette=cassette.id,
            exact=pending.exact,
            request=reading.record,
            approved_at=now,
            score=scores.get(cassette.id),
            step=f"{pending.run}.{pending.step}",
        )
        self._store.aliases.put(alias, body, reading.fingerprint)
        self._log.pending.remove(pending)
        return alias

    def answer(self, pending: PendingRecord, answer: CanonicalAnswer, now: float) -> Supplied:
        """Store an answer to a pending request, in its wire and form, as if it had been recorded.

        Raises `ReviewError`, `StoreError`.
        """
        reading, body = self._read(pending)
        exchange, notes = self._exchange(reading, body, pending.run, answer, now)
        supplied = Supplied(self._store.put(exchange), notes)
        self._log.pending.remove(pending)
        return supplied

    def correct(self, cassette: CassetteRecord, answer: CanonicalAnswer, now: float) -> Supplied:
        """Store another answer in place of one that was written by hand. Raises as `answer` does.

        What an alias led to it answers with the new one.
        """
        must_be_by_hand(cassette)
        body = self._store.request_body(cassette)
        reading = self._reader.read_stored(cassette, body)
        exchange, notes = self._exchange(reading, body, cassette.run, answer, now)
        if exchange.answer_body == self._store.answer(cassette).body:
            return Supplied(cassette, notes)
        made = self._store.put(exchange)
        self._store.aliases.lead([cassette.id], made.id)
        self._store.delete([cassette.id])
        return Supplied(made, notes)

    def _exchange(
        self, reading: Reading, body: JsonValue, run: str, answer: CanonicalAnswer, now: float
    ) -> tuple[Exchange, tuple[str, ...]]:
        """What is stored, and `Supplied.notes`."""
        wire, form = reading.record.wire, reading.record.form
        forms = FORMS.get(wire)
        if forms is None or reading.endpoint.operation != "generate" or reading.canonical is None:
            what = reading.endpoint.operation if forms else "a request that is matched byte for byte"
            raise ReviewError(f"no answer can be written for {what}: approve a recording, or record one")
        asked = asked_of(reading)
        rendered = forms.render(_custom(answer, asked), asked)
        content, chunks = rendered.body, rendered.chunks
        if self._redact_answers:
            content = redact_answer(content, wire, form, self._reader.redactor).body
            chunks = (len(content),)
        ending = "length" if answer.choices and answer.choices[0].finish == "length" else "complete"
        exchange = Exchange(
            request=reading.record,
            body=body,
            answer=AnswerRecord(
                headers=(("content-type", rendered.content_type),),
                content_type=rendered.content_type,
                ending=ending,
                model=asked.model or None,
                by_hand=True,
            ),
            answer_body=content,
            chunks=spread(chunks, 0, 0),
            exact=reading.exact,
            normalised=reading.fingerprint,
            links=reading.links,
            sketched=reading.sketched,
            run=run,
            recorded_at=now,
            hash_version=HASH_VERSION,
        )
        unknown = sorted(_called(answer) - _offered(reading))
        notes = (*rendered.notes, *(f"the request offers no tool {name!r}" for name in unknown))
        return exchange, notes

    def _read(self, pending: PendingRecord) -> tuple[Reading, JsonValue]:
        kept = self._log.pending.body(pending)
        body = None if kept is None else self._reader.redactor.value(kept)
        return self._reader.read_kept(pending.request, pending.exact, body), body


def must_be_by_hand(cassette: CassetteRecord) -> None:
    """Raises `ReviewError` for the answer of a model."""
    if not cassette.answer.by_hand:
        raise ReviewError(
            f"{cassette.id[:12]} was recorded, and what a model said is kept as it was: "
            "`rewind run --mode record` records it anew"
        )


def best(store: Store, log: Log, pending: PendingRecord) -> str:
    """The id of the best candidate of a pending request. Raises `ReviewError` when there is none."""
    for each in log.pending.candidates(pending):
        if not each.rejected and store.recordings_of(each.cassette):
            return each.cassette
    short = pending.id[:_SHORT_ID]
    hint = f", as `rewind approve {short} {pending.nearest[:_SHORT_ID]}`" if pending.nearest else ""
    raise ReviewError(
        f"{short} has no candidate: name a recording (`rewind ls`){hint}, or write an answer with "
        f"`rewind answer {short} --edit`"
    )


def cannot_answer(asked: RequestRecord, recorded: RequestRecord) -> str:
    """Why the recording of a request cannot answer another; empty when it can."""
    if recorded.cls != "model":
        return f"it is a recording of class {recorded.cls}"
    if recorded.operation != asked.operation:
        return f"it was recorded as {recorded.operation}, and is asked for as {asked.operation}"
    convertible = asked.operation == "generate" and recorded.wire in FORMS and asked.wire in FORMS
    if not same_form(recorded, asked) and not convertible:
        return (
            f"it was recorded as {recorded.wire} ({recorded.form}), "
            f"and is asked for as {asked.wire} ({asked.form})"
        )
    return ""


def _custom(answer: CanonicalAnswer, asked: Asked) -> CanonicalAnswer:
    """The answer with calls of tools that take free text marked as such."""
    choices = tuple(
        replace(choice, parts=tuple(_custom_part(part, asked) for part in choice.parts))
        for choice in answer.choices
    )
    return replace(answer, choices=choices)


def _custom_part(part: JsonObject, asked: Asked) -> JsonObject:
    if part.get("type") != "tool_call" or part.get("name") not in asked.custom_tools:
        return part
    # An object is what a wire without such tools has, and is understood as that.
    is_object = answers.load_object(str(part["arguments"])) is not None
    return part if is_object else {**part, "call_type": "custom"}


def _called(answer: CanonicalAnswer) -> set[str]:
    return {
        str(part["name"]) for choice in answer.choices for part in choice.parts if part["type"] == "tool_call"
    }


def _offered(reading: Reading) -> set[str]:
    """The names of the tools of a request, those in namespaces included (Codex)."""
    names: set[str] = set()
    stack: list[JsonValue] = [*(reading.canonical.tools if reading.canonical else ())]
    while stack:
        tool = stack.pop()
        if isinstance(tool, dict):
            names.add(str(tool.get("name", tool.get("type"))))
            if isinstance(nested := tool.get("tools"), list):
                stack.extend(nested)
    return names
