"""From the store to documents and the names of their files: by content, so that branches merge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.core_v3 import core_request_hash
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.errors import GoneError, StoreError
from rewind_proxy.matching.answer_redaction import answer_form, moved_chunks, redact_answer
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.porting import text
from rewind_proxy.porting.document import to_document
from rewind_proxy.porting.keeping import content_id, stamp
from rewind_proxy.store import CassetteRecord, Log, Store

_WORD = re.compile(r"[a-z0-9]+")
_WORDS = 5
_LONGEST_WORD = 20
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_FOLDER = 80
_NO_FOLDER = "run"
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Exported:
    """A recording as a document, and where its file stands below a folder."""

    document: JsonObject
    folder: str
    name: str
    cls: str

    @property
    def path(self) -> str:
        """Relative, with `/`."""
        return f"{self.folder}/{self.name}"

    @property
    def text(self) -> str:
        """What stands in its file."""
        return text.pretty(self.document) + "\n"

    @property
    def key(self) -> Key:
        """What names the recording for ever, whatever is redacted in it later."""
        document = self.document
        return str(document["run"]), str(document["exact"]), _seconds(document["recorded_at"])


Key = tuple[str, str, float]
"""Run, exact fingerprint and time of a recording."""


class Exporter:
    """Makes documents of the recordings of an open store."""

    def __init__(self, store: Store, log: Log, reader: RequestReader, answers: Redactor | None) -> None:
        """`answers` takes credentials out of answers, where `redact_answers` is on."""
        self._store, self._log, self._reader = store, log, reader
        self._answers = answers
        self._sessions: dict[str, str] = {}

    def export(self, records: Iterable[CassetteRecord]) -> Iterator[Exported]:
        """The documents of some recordings, less what is deleted meanwhile. Raises `CorruptRecordError`."""
        for record in records:
            try:
                made = self._one(record)
            except GoneError:
                continue
            yield made

    def session_of(self, run: str) -> str:
        """The session of a run; empty where the log does not know it."""
        if run not in self._sessions:
            try:
                self._sessions[run] = self._log.run(run).session
            except StoreError:
                self._sessions[run] = ""
        return self._sessions[run]

    def _one(self, record: CassetteRecord) -> Exported:
        body = self._store.request_body(record)
        answer = self._store.answer(record)
        answer_body, chunks = answer.body, answer.chunks
        if self._answers is not None:
            form = answer_form(record.answer.content_type, record.request.form)
            redacted = redact_answer(answer_body, record.request.wire, form, self._answers)
            answer_body, chunks = redacted.body, moved_chunks(chunks, redacted)
        reading = self._reader.read_stored(record, body)
        canonical = reading.canonical
        session = self.session_of(record.run)
        document = to_document(
            record,
            body,
            answer_body,
            chunks,
            id=content_id(record.exact, answer_body),
            session=session,
            core_v3=core_request_hash(canonical, reading.target.host) if canonical else None,
        )
        name = f"{stamp(record.recorded_at)}-{_words(reading)}-{str(document['sha256'])[:_DIGITS]}.json"
        return Exported(
            document, _folder(session) or _folder(record.run) or _NO_FOLDER, name, record.request.cls
        )


def in_order(records: Iterable[CassetteRecord]) -> list[CassetteRecord]:
    """As they are exported: by time, so that a store read in from the files exports them alike."""
    return sorted(records, key=lambda record: (record.recorded_at, record.run, record.id))


def _words(reading: Reading) -> str:
    """The first words of what was asked, or the end of the path; what is redacted leaves its mark alone."""
    words = _WORD.findall(reading.preview.lower()) or _WORD.findall(
        reading.record.path.rpartition("/")[2].lower()
    )
    return "-".join(word[:_LONGEST_WORD] for word in words[:_WORDS]) or "request"


def _folder(session: str) -> str:
    return _NOT_IN_NAMES.sub("_", session)[:_LONGEST_FOLDER].lstrip(".")


def _seconds(value: JsonValue) -> float:
    assert isinstance(value, int | float)
    return float(value)
