"""Writing a whole store anew: when the list of redaction rules grows, everything goes through all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store import aliases, recordings, structure
from rewind_proxy.store.environment import Environment
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.origin import read_origin, write_origin
from rewind_proxy.store.recordings import Answer, Draft, RecordReader
from rewind_proxy.store.records import CassetteRecord, RequestRecord
from rewind_proxy.store.transaction import Txn

_BATCH = 32
_KIND, _KIND_WITH_ANSWERS = "redaction", "redaction with answers"


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """What became of the recordings of the generation that was left."""

    rewritten: int
    dropped: tuple[str, ...]
    """Why each that could not be read, and so not be redacted, is not in the new one."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """How what is stored is redacted."""

    body: Callable[[JsonValue], JsonValue]
    text: Callable[[str], str]
    """A single string: path, query names and values, content type, user agent."""
    request: Callable[[CassetteRecord, JsonValue], RequestRecord] | None = None
    """What follows from a redacted body, given its record, redacted so far."""
    answer: Callable[[CassetteRecord, Answer], Answer] | None = None
    """A recorded answer; without it answers stay as they are."""

    def of_request(self, request: RequestRecord) -> RequestRecord:
        """A request's record, redacted. Parameters are a small body: some go by their name."""
        return request.model_copy(
            update={
                "path": self.text(request.path),
                "query": tuple((self.text(name), self.text(value)) for name, value in request.query),
                "content_type": self.text(request.content_type),
                "user_agent": self.text(request.user_agent),
                "params": self.body(cast("JsonObject", request.params)),
            }
        )


class _Copy:
    """Copies recordings from one generation to the next, from where the copy had come to."""

    def __init__(
        self, place: Generations, redaction: Redaction, progress: Callable[[int, int], None] | None
    ) -> None:
        self._place = place
        self._redaction = redaction
        self._progress = progress
        self._reader = RecordReader()

    def fill(self, target: Environment) -> None:
        """Copy in small transactions, until there is nothing new to copy."""
        more = True
        while more:
            with self._place.read() as source, target.write() as txn:
                more = self._copy(source, txn, _BATCH)
                done, total = recordings.count(txn) + _dropped(txn), recordings.count(source)
            if more and self._progress is not None:
                self._progress(min(done, total), total)

    def finish(self, source: Txn, target: Txn) -> None:
        """Bring the copy up to date; nobody can write to the source any more."""
        self._copy(source, target, None)
        for key in list(recordings.in_order(target)):
            if not recordings.exists(source, key):
                recordings.remove(target, self._reader.read(target, key))
        self._copy_aliases(source, target)
        recordings.copy_seq(source, target)

    def _copy_aliases(self, source: Txn, target: Txn) -> None:
        """Copy the aliases, without their index; what leads to a recording that was left out is left out."""
        for alias_id in aliases.ids(target):  # killed just before the switch, this is done again
            aliases.remove(target, alias_id)
        origin = read_origin(target)
        assert origin is not None
        dropped: list[str] = []
        for alias_id in aliases.ids(source):
            try:
                alias, body = aliases.read(source, alias_id)
            except CorruptRecordError as error:
                dropped.append(str(error))
                continue
            if next(recordings.by_id(target, alias.cassette), None) is not None:
                request = self._redaction.of_request(alias.request)
                redacted = None if body is None else self._redaction.body(body)
                aliases.write(target, alias.model_copy(update={"request": request}), redacted)
        if dropped:
            # Once each, as above.
            write_origin(target, replace(origin, dropped=tuple(dict.fromkeys((*origin.dropped, *dropped)))))

    def _copy(self, source: Txn, target: Txn, limit: int | None) -> bool:
        """Copy what comes next, and note in the same transaction how far that is; whether there was any."""
        origin = read_origin(target)
        assert origin is not None
        keys = list(islice(recordings.in_order(source, bytes.fromhex(origin.last)), limit))
        if not keys:
            return False
        dropped = [*origin.dropped, *self._copied(source, target, keys)]
        write_origin(target, replace(origin, last=keys[-1].hex(), dropped=tuple(dropped)))
        return True

    def _copied(self, source: Txn, target: Txn, keys: Iterable[bytes]) -> Iterable[str]:
        """Why each of the recordings that were not copied could not be read."""
        for key in keys:
            try:
                record = self._reader.read(source, key)
                body, answer = recordings.read_body(source, record), recordings.read_answer(source, record)
            except CorruptRecordError as error:
                yield str(error)
                continue
            if self._redaction.answer is not None:
                answer = self._redaction.answer(record, answer)
            record, plan = self._redacted(record, answer), None
            if body is not None:
                body = self._redaction.body(body)
                plan = structure.plan(body)
                if self._redaction.request is not None:
                    request = self._redaction.request(record, body)
                    record = record.model_copy(update={"request": request})
            recordings.write(target, record, Draft(plan, answer.body, answer.chunks))

    def _redacted(self, record: CassetteRecord, answer: Answer) -> CassetteRecord:
        """A record whose request is redacted."""
        return record.model_copy(
            update={
                "request": self._redaction.of_request(record.request),
                "answer_sha256": hashlib.sha256(answer.body).hexdigest(),
                "answer_length": len(answer.body),
            }
        )


def _dropped(txn: Txn) -> int:
    origin = read_origin(txn)
    return 0 if origin is None else len(origin.dropped)


def rewrite(
    place: Generations,
    redaction: Redaction,
    rules: Iterable[str],
    progress: Callable[[int, int], None] | None,
) -> RewriteReport:
    """See `Store.rewrite`."""
    copy = _Copy(place, redaction, progress)
    kind = _KIND if redaction.answer is None else _KIND_WITH_ANSWERS
    made = place.replace(rules, copy.finish, copy.fill, kind)
    with place.read() as txn:
        return RewriteReport(recordings.count(txn), made.dropped)
