"""Writing a whole store anew: when the list of redaction rules grows, everything goes through all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import CorruptRecordError
from rewind_proxy.store import recordings, structure
from rewind_proxy.store.environment import Environment
from rewind_proxy.store.generations import Generations
from rewind_proxy.store.recordings import Draft, RecordReader
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.store.transaction import Txn

_BATCH = 32
_ALIASES = "aliases"


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """What became of the recordings of the generation that was left."""

    rewritten: int
    dropped: tuple[str, ...]
    """Why each that could not be read, and so not be redacted, is not in the new one."""


class _Copy:
    """Copies recordings from one generation to the next."""

    def __init__(
        self,
        place: Generations,
        transform: Callable[[JsonValue], JsonValue],
        text: Callable[[str], str],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._place = place
        self._transform = transform
        self._text = text
        self._progress = progress
        self._reader = RecordReader()
        self._last = b""
        self.rewritten = 0
        self.dropped: list[str] = []

    def fill(self, target: Environment) -> None:
        """Copy in small transactions, until there is nothing new to copy."""
        while True:
            with self._place.read() as source:
                total = recordings.count(source)
                keys = list(islice(recordings.in_order(source, self._last), _BATCH))
                with target.write() as txn:
                    self._copy(source, txn, keys)
            if not keys:
                return
            if self._progress is not None:
                self._progress(min(self.rewritten + len(self.dropped), total), total)

    def finish(self, source: Txn, target: Txn) -> None:
        """Bring the copy up to date; nobody can write to the source any more."""
        self._copy(source, target, list(recordings.in_order(source, self._last)))
        for key in list(recordings.in_order(target)):
            if not recordings.exists(source, key):
                recordings.remove(target, self._reader.read(target, key))
                self.rewritten -= 1
        for name, value in source.scan(_ALIASES, b""):
            target.put(_ALIASES, name, value)
        recordings.copy_seq(source, target)

    def _copy(self, source: Txn, target: Txn, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._last = key
            try:
                record = self._reader.read(source, key)
                body, answer = recordings.read_body(source, record), recordings.read_answer(source, record)
            except CorruptRecordError as error:
                self.dropped.append(str(error))
                continue
            plan = None if body is None else structure.plan(self._transform(body))
            recordings.write(target, redacted(record, self._text), Draft(plan, answer.body, answer.chunks))
            self.rewritten += 1


def redacted(record: CassetteRecord, text: Callable[[str], str]) -> CassetteRecord:
    """A record whose request went through `text`, string by string."""
    request = record.request
    return record.model_copy(
        update={
            "request": request.model_copy(
                update={
                    "path": text(request.path),
                    "query": tuple((name, text(value)) for name, value in request.query),
                    "user_agent": text(request.user_agent),
                    "params": {name: _leaf(value, text) for name, value in request.params.items()},
                }
            )
        }
    )


def _leaf(value: Any, text: Callable[[str], str]) -> Any:  # `params` is Any in its record
    return text(value) if isinstance(value, str) else value


def rewrite(
    place: Generations,
    transform: Callable[[JsonValue], JsonValue],
    redaction: Iterable[str],
    text: Callable[[str], str],
    progress: Callable[[int, int], None] | None,
) -> RewriteReport:
    """See `Store.rewrite`."""
    copy = _Copy(place, transform, text, progress)
    place.replace(redaction, copy.finish, copy.fill)
    return RewriteReport(copy.rewritten, tuple(copy.dropped))
