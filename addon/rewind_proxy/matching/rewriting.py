"""What a grown redaction list does to recorded answers, if asked to, and to the log (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Callable

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.canonical.redact import MARK, Redactor
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.answer_redaction import answer_form, moved_chunks, redact_answer
from rewind_proxy.matching.reading import RequestReader
from rewind_proxy.store import Answer, Redaction, Store
from rewind_proxy.store.records import CassetteRecord, PendingRecord, RunRecord, StepRecord

_PREVIEWS = 4096


def answer_rewriter(redactor: Redactor) -> Callable[[CassetteRecord, Answer], Answer]:
    """A function that redacts a recorded answer, and moves the ends of its chunks with the text."""

    def rewrite(cassette: CassetteRecord, answer: Answer) -> Answer:
        form = answer_form(cassette.answer.content_type, cassette.request.form)
        redacted = redact_answer(answer.body, cassette.request.wire, form, redactor)
        return Answer(redacted.body, moved_chunks(answer.chunks, redacted))

    return rewrite


def run_rewriter(redactor: Redactor) -> Callable[[RunRecord], RunRecord]:
    """A function that redacts a run again."""
    return lambda run: run.model_copy(
        update={"client": _uncut(redactor, run.client, 200), "session": redactor.text(run.session)}
    )


def step_rewriter(
    redactor: Redactor, reader: RequestReader, store: Store
) -> Callable[[StepRecord], StepRecord]:
    """A function that redacts a step again.

    A text that was cut may hold the first half of what a new rule would take out, and the rule would not see
    it. So a preview is derived again from the stored request, and where there is none, dropped; the excerpts
    of a miss are dropped, and so is any other text that was cut. Slots are parts of texts, and dropped too.
    """
    previews: dict[str, str] = {}

    def preview(cassette: str) -> str:
        known = previews.get(cassette)
        if known is None:
            if len(previews) >= _PREVIEWS:
                previews.clear()
            known = previews[cassette] = _preview(cassette, reader, store)
        return known

    def rewrite(step: StepRecord) -> StepRecord:
        miss = step.miss
        if miss and miss.get("difference"):
            miss = {**miss, "difference": {**miss["difference"], "a": MARK, "b": MARK}}
        return step.model_copy(
            update={
                "path": redactor.text(step.path),
                "model": step.model and redactor.text(step.model),
                "note": _uncut(redactor, step.note, 900),
                "reason": redactor.text(step.reason),
                "preview": "" if step.cassette is None else preview(step.cassette),
                "slots": (),
                "miss": redactor.value(miss),
            }
        )

    return rewrite


def pending_rewriter(
    redactor: Redactor, reader: RequestReader
) -> Callable[[PendingRecord, JsonValue], tuple[PendingRecord, JsonValue]]:
    """A function that redacts a pending request again, and derives from that what depends on it."""
    redaction = Redaction(redactor.value, redactor.text)

    def rewrite(pending: PendingRecord, body: JsonValue) -> tuple[PendingRecord, JsonValue]:
        redacted = None if body is None else redactor.value(body)
        reading = reader.read_kept(redaction.of_request(pending.request), pending.exact, redacted)
        known = {
            "request": reading.record,
            "normalised": reading.fingerprint,
            "preview": reading.preview,
            "session": redactor.text(pending.session),
            "reason": redactor.text(pending.reason),
        }
        return pending.model_copy(update=known), redacted

    return rewrite


def _uncut(redactor: Redactor, text: str, limit: int) -> str:
    """A text redacted; nothing when it was cut at `limit`."""
    return redactor.text(text) if len(text) < limit else ""


def _preview(cassette_id: str, reader: RequestReader, store: Store) -> str:
    try:
        cassette = store.cassette(cassette_id)
        return reader.read_stored(cassette, store.request_body(cassette)).preview
    except StoreError:
        return ""  # pruned or damaged: nothing is left to derive it from
