"""Looking for credentials in what is stored, by today's rules. What is found is named, never shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import cast

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.canonical.redact import Redaction, Redactor
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.matching.answer_redaction import answer_credentials, answer_form
from rewind_proxy.store import CassetteRecord, Log, RunRecord, StepRecord, Store


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential in a file of Rewind's: which rule knows it, and where it is."""

    rule: str
    where: str
    """A JSON path; for an answer that is a stream, `byte n`."""
    cassette: str | None = None
    run: str | None = None
    step: int | None = None

    def to_json(self) -> JsonObject:
        """Its members, without those that say nothing."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def request_credentials(store: Store, record: CassetteRecord, redactor: Redactor) -> Iterator[Credential]:
    """The credentials in a stored request: body, address and user agent. Damaged ones hold none."""
    request = record.request
    found: list[Redaction] = []
    outside: JsonObject = {
        "path": request.path,
        "query": [[name, value] for name, value in request.query],
        "content_type": request.content_type,
        "user_agent": request.user_agent,
        "params": cast("JsonObject", request.params),
    }
    redactor.value(outside, found)
    try:
        body = store.request_body(record)
    except CorruptRecordError:
        body = None
    if body is not None:
        redactor.value(body, found, "$.body")
    for each in found:
        yield Credential(each.rule, each.path, cassette=record.id, run=record.run)


def stored_answer_credentials(
    store: Store, record: CassetteRecord, redactor: Redactor
) -> Iterator[Credential]:
    """The credentials that a recorded answer repeats."""
    try:
        body = store.answer(record).body
    except CorruptRecordError:
        return
    form = answer_form(record.answer.content_type, record.request.form)
    for each in answer_credentials(body, record.request.wire, form, redactor):
        yield Credential(each.rule, each.where, cassette=record.id, run=record.run)


def log_credentials(log: Log, redactor: Redactor) -> Iterator[Credential]:
    """The credentials in the log."""
    for record in log.readable():
        found: list[Redaction] = []
        redactor.value(_texts(record), found)
        run, step = (record.id, None) if isinstance(record, RunRecord) else (record.run, record.number)
        for each in found:
            yield Credential(each.rule, each.path, run=run, step=step)


def _texts(record: RunRecord | StepRecord) -> JsonObject:
    if isinstance(record, RunRecord):
        return {"client": record.client, "session": record.session}
    return {
        "path": record.path,
        "model": record.model,
        "note": record.note,
        "reason": record.reason,
        "preview": record.preview,
        "miss": record.miss,
    }
