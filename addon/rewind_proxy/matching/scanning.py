"""Looking for credentials in what is stored, by today's rules. What is found is named, never shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import cast

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redaction, Redactor
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.matching.answer_redaction import answer_credentials, answer_form
from rewind_proxy.store import CassetteRecord, Log, RequestRecord, RunRecord, StepRecord, Store


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential in a file of Rewind's: which rule knows it, and where it is."""

    rule: str
    where: str
    """A JSON path; for an answer that is a stream, `byte n`."""
    cassette: str | None = None
    run: str | None = None
    step: int | None = None
    alias: str | None = None
    pending: str | None = None

    def to_json(self) -> JsonObject:
        """Its members, without those that say nothing."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def request_credentials(store: Store, record: CassetteRecord, redactor: Redactor) -> Iterator[Credential]:
    """The credentials in a stored request: body, address and user agent. Damaged ones hold none."""
    try:
        body = store.request_body(record)
    except CorruptRecordError:
        body = None
    for each in in_request(record.request, body, redactor):
        yield Credential(each.rule, each.path, cassette=record.id, run=record.run)


def alias_credentials(store: Store, redactor: Redactor) -> Iterator[Credential]:
    """The credentials in the requests of aliases. Damaged ones hold none."""
    for alias in store.aliases.all():
        try:
            body = store.aliases.body(alias)
        except CorruptRecordError:
            body = None
        for each in in_request(alias.request, body, redactor):
            yield Credential(each.rule, each.path, alias=alias.id)


def in_request(request: RequestRecord, body: JsonValue, redactor: Redactor) -> list[Redaction]:
    """The credentials in a request, by its record and body: path and rule of each."""
    found: list[Redaction] = []
    outside: JsonObject = {
        "path": request.path,
        "query": [[name, value] for name, value in request.query],
        "content_type": request.content_type,
        "user_agent": request.user_agent,
        "params": cast("JsonObject", request.params),
    }
    redactor.value(outside, found)
    if body is not None:
        redactor.value(body, found, "$.body")
    return found


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
    for pending in log.pending.all():
        try:
            body = log.pending.body(pending)
        except CorruptRecordError:
            body = None
        found = in_request(pending.request, body, redactor)
        texts: JsonObject = {name: getattr(pending, name) for name in ("session", "preview", "reason")}
        redactor.value(texts, found)
        for each in found:
            yield Credential(each.rule, each.path, pending=pending.id)


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
