"""Writing off the event loop: one thread, a bounded queue, and no failure that reaches the client."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from threading import Event
from typing import Self

from rewind_proxy.errors import StoreError, traceback_of, words_of
from rewind_proxy.store.cassettes import Store
from rewind_proxy.store.exchange import Exchange, Refusal
from rewind_proxy.store.log import Log
from rewind_proxy.store.records import CandidateRecord, CassetteRecord, StepRecord

_logger = logging.getLogger(__name__)

MAX_QUEUED = 1024
MAX_QUEUED_BYTES = 256 * 1024 * 1024
FLUSH_SECONDS = 0.25
_STEPS_AT_ONCE = 256
_KEPT_FAILURES = 100
_MOST_CANDIDATES = 8
_ENDED_POLL = 0.1


@dataclass(frozen=True, slots=True)
class _Recording:
    exchange: Exchange
    step: StepRecord | None
    done: Future[CassetteRecord] = field(default_factory=Future)

    @property
    def size(self) -> int:
        return len(self.exchange.answer_body) + self.exchange.request.body_length


class Recorder:
    """Stores exchanges and logs steps, in the order given, in a thread of its own.

    A write that fails never raises into the caller. It costs the recording, is counted (`failed`), kept in
    words (`failures`, the first hundred), told to `on_failure` (in the recorder's thread, or the caller's
    when the queue is full), set as the exception of the future, and logged as a step of tier `failed`.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        *,
        on_failure: Callable[[str], None] | None = None,
        max_queued: int = MAX_QUEUED,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        self.failed = 0
        self.failures: list[str] = []
        self._store = store
        self._log = log
        self._on_failure = on_failure
        self._max_bytes = max_queued_bytes
        self._bytes = 0
        self._closed = False
        self._lock = threading.Lock()
        self._queue: Queue[_Recording | Refusal | StepRecord | Event | None] = Queue(max_queued)
        self._thread = threading.Thread(target=self._work, name="rewind-recorder", daemon=True)
        self._thread.start()

    def record(self, exchange: Exchange, step: StepRecord | None = None) -> Future[CassetteRecord]:
        """Store an exchange, then log its step with the cassette's id in it.

        The future is done when the recording can be looked up, or has the error that cost it. Cancelling it
        does not take the recording back.
        """
        recording = _Recording(exchange, step)
        with self._lock:
            full = self._bytes > self._max_bytes
            if not full:
                self._bytes += recording.size
        if full or not self._enqueue(recording):
            error = StoreError("recordings come faster than the disk takes them: one is lost")
            self._fail(error)
            recording.done.set_exception(error)
            if step is not None:
                self.log_step(failed_step(step, error))
        return recording.done

    def log_step(self, step: StepRecord) -> None:
        """Log a step, within half a second, in one transaction with others."""
        if not self._enqueue(step):
            self._fail(StoreError("steps come faster than the disk takes them: one is not in the log"))

    def keep(self, refusal: Refusal) -> None:
        """Keep a refused miss as a pending request, with its candidates."""
        if not self._enqueue(refusal):
            self._fail(StoreError("refusals come faster than the disk takes them: one is not pending"))

    def flush(self) -> None:
        """Wait until everything that was given before is stored and logged."""
        written = Event()
        self._queue.put(written)
        while not written.wait(_ENDED_POLL) and self._thread.is_alive():
            pass  # closed meanwhile, by another thread: that writes everything, too

    def close(self) -> None:
        """Write everything that was given and end the thread. Twice is once."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._queue.put(None)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, item: _Recording | Refusal | StepRecord) -> bool:
        if self._closed:
            return False
        with suppress(Full):
            self._queue.put_nowait(item)
            return True
        return False

    def _work(self) -> None:
        steps: list[StepRecord] = []
        due = 0.0
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, due - time.monotonic()) if steps else None)
            except Empty:
                self._flush(steps)
                continue
            if item is None:
                self._flush(steps)
                return
            if isinstance(item, Event):
                self._flush(steps)
                item.set()
                continue
            step = self._done_with(item)
            if step is not None:
                due = due if steps else time.monotonic() + FLUSH_SECONDS
                steps.append(step)
            if len(steps) >= _STEPS_AT_ONCE or (steps and time.monotonic() >= due):
                self._flush(steps)

    def _done_with(self, item: _Recording | Refusal | StepRecord) -> StepRecord | None:
        """Do what is to be done at once; the step that is left to be logged."""
        if isinstance(item, _Recording):
            return self._put(item)
        if isinstance(item, StepRecord):
            return item
        try:
            near = item.pending.nearest
            found = self._store.similar(item.sketched, item.threshold, _MOST_CANDIDATES, near)
            candidates = [CandidateRecord(cassette=each.record.id, score=each.score) for each in found]
            self._log.pending.put(item.pending, item.body, candidates)
        except Exception as error:  # it costs this pending request
            self._fail(error)
        return None

    def _put(self, recording: _Recording) -> StepRecord | None:
        wanted, step = recording.done.set_running_or_notify_cancel(), recording.step
        try:
            record = self._store.put(recording.exchange)
        except Exception as error:  # whatever it is, it costs this recording and nothing else
            self._fail(error)
            if wanted:
                recording.done.set_exception(error)
            return None if step is None else failed_step(step, error)
        finally:
            with self._lock:
                self._bytes -= recording.size
        if wanted:
            recording.done.set_result(record)
        return None if step is None else step.model_copy(update={"cassette": record.id})

    def _flush(self, steps: list[StepRecord]) -> None:
        try:
            if steps:
                self._log.append(steps)
        except Exception as error:  # as above: it costs these lines of the log
            self._fail(error)
        finally:
            steps.clear()

    def _fail(self, error: Exception) -> None:
        text = _in_words(error)
        with self._lock:
            self.failed += 1
            if len(self.failures) < _KEPT_FAILURES:
                self.failures.append(text)
        if self._on_failure is not None:
            try:
                self._on_failure(text)
            except Exception as error:  # the thread goes on whatever the caller's function does
                _logger.error("rewind: telling of a failed recording failed\n%s", traceback_of(error))


def _in_words(error: BaseException) -> str:
    words = words_of(error)
    return f"{words} in the recorder" if words == type(error).__name__ else words


def failed_step(step: StepRecord, error: BaseException) -> StepRecord:
    """The step of a call whose recording was lost to an error."""
    return step.model_copy(update={"tier": "failed", "reason": _in_words(error)})
