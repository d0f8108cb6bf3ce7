"""What a running proxy holds: the open store and log, the engine, the sessions, the counts.

It knows no mitmproxy. All writing happens on threads of its own: the loop only hands work over.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.canonical.redact import Redactor, auth_values
from rewind_proxy.engine import Decision, Engine, Fail, Forward, Header, Refuse, Replay, Session, Step
from rewind_proxy.errors import CorruptRecordError, RewindError, StoreError, traceback_of, words_of
from rewind_proxy.journal import Journal
from rewind_proxy.matching.opening import open_ready
from rewind_proxy.matching.reading import RawRequest, RequestReader
from rewind_proxy.matching.reviewing import Review, best
from rewind_proxy.mitm import labels
from rewind_proxy.mitm.cassettes import Cassettes
from rewind_proxy.recording import Captured, NotRecorded, exchange, passed_step, recorded_step, refusal
from rewind_proxy.report import Report
from rewind_proxy.settings import Settings
from rewind_proxy.store import Recorder, failed_step
from rewind_proxy.store.records import AliasRecord, CassetteRecord, RunRecord, StepRecord
from rewind_proxy.wire import Host, HostTable

logger = logging.getLogger(__name__)

LARGE_BODY = 2**20
"""Bytes as sent; below, handing a body to a thread costs more than it saves."""

_NEWEST = 256
SESSION_SHOWN = 200
"""Characters of a session's name that are kept. Its whole name tells it from others."""

Told = Callable[[StepRecord], None]

RequestLine = tuple[str, str, str]
"""(method, host, path) of a request that could not be read."""


def _nobody(_: StepRecord) -> None:
    """Who is not interested in what became of an answer."""


class Runtime:
    """One open store under one set of settings, for as long as the proxy runs with them."""

    def __init__(
        self,
        settings: Settings,
        hosts: HostTable,
        progress: Callable[[int, int], None],
        before: Report | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Open the store and log, and index the store for these settings. Raises `RewindError`.

        `before` is the report of the proxy's life under other settings: its counts go on. `journal` is given
        every model step, when somebody wants them.
        """
        self.settings = settings
        if settings.fault:
            logger.warning("rewind: faults on purpose are on: %s", settings.fault)
        self.report = before or Report(settings.mode, settings.session)
        self.report.mode = settings.mode
        self._journal = journal
        opened = self._opened = open_ready(settings, hosts, lambda _: progress)
        self.store, self.log = opened.store, opened.log
        self._cassettes = Cassettes(settings.cassettes) if settings.cassettes else None
        if self._cassettes:
            try:
                self._cassettes.read_in(opened, settings, time.time())
            except BaseException:
                opened.close()
                raise
        self.engine = Engine(
            settings, opened.reader, opened.store, keeps_pending=opened.log_elsewhere is None
        )
        self._redactor = opened.reader.redactor
        self.report.session = session_shown(self._redactor, settings.session)
        self._redacts_answers = opened.reader.redactor if settings.redact_answers else None
        self._recorder = Recorder(self.store, self.log, on_failure=_warn)
        # Answers are decoded and read on a thread of their own, so that a long one delays no other client.
        self._reading = ThreadPoolExecutor(1, "rewind-reading")
        self._large = ThreadPoolExecutor(1, "rewind-large")
        # A reader of its own: the caches of one are not for two threads.
        rules = opened.reader.redactor.rules
        self._large_reader = RequestReader(hosts, Redactor(rules), settings.match_settings, settings.max_body)
        self._sessions: dict[str, Session] = {}
        self._counting = Lock()
        self._newest: OrderedDict[str, StepRecord] = OrderedDict()
        """Steps by their ids: those that may not be in the log yet, and more."""

    def redact(self, text: str, headers: Iterable[Header] = ()) -> str:
        """A text without credentials, and without the values of the auth headers of the request it is of."""
        return self._redactor.with_secrets(auth_values(headers)).text(text)

    def reader_for(self, secrets: Iterable[str]) -> RequestReader:
        """A reader of requests as they shall be shown: these values are taken out of them too."""
        settings, redactor = self.settings, self._redactor.with_secrets(secrets)
        return RequestReader(self.engine.reader.hosts, redactor, settings.match_settings, settings.max_body)

    def step(self, session: str, client: str, now: float, headers: Iterable[Header] = ()) -> Step:
        """The next step of a session, which starts with its first call; `headers` are those of that call."""
        known = self._sessions.get(session)
        if known is None:
            redactor = self._redactor.with_secrets(auth_values(headers))
            stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
            run = RunRecord(
                id=f"{stamp}-{secrets.token_hex(2)}",
                session=session_shown(redactor, session),
                mode=self.settings.mode,
                started_at=now,
                client=redactor.text(client)[:200],
            )
            known = self._sessions[session] = Session(run)
            if self._journal is not None:
                self._journal.begin(run)
            self._reading.submit(self._write_run, run)
        known.calls += 1
        return Step(known, known.calls, now)

    def _write_run(self, run: RunRecord) -> None:
        try:
            self.log.start_run(run)
        except Exception as error:  # it costs this line of the log; whoever ends the proxy gets the report
            _warn(f"run {run.id} is not in the log: {words_of(error)}")

    async def decide(self, request: RawRequest, host: Host, step: Step, mode: Mode) -> Decision:
        """The engine's decision. A large body is read on a thread: meanwhile other clients go on."""
        if len(request.body) < LARGE_BODY:
            reading = self.engine.reader.read(request, host)
        else:
            loop = asyncio.get_running_loop()
            reading = await loop.run_in_executor(self._large, self._large_reader.read, request, host)
        decision = self.engine.decide_read(reading, step, mode=mode)
        if isinstance(decision, Replay | Forward | Fail) and decision.fault is not None:
            logger.warning("rewind: fault on purpose at %s: %s", step.id, decision.fault.text)
        return decision

    def note(self, step: StepRecord) -> None:
        """Count a step that is over, and log it."""
        self._count(step)
        self._recorder.log_step(step)

    def refused(self, refuse: Refuse, step: StepRecord) -> None:
        """A call was refused: say so, count and log its step, and keep a miss as a pending request."""
        if step.cls == "model":
            call = labels.call(step.method, step.host, step.path)
            logger.warning("rewind: refused %s: %s", call, refuse.miss.text())
        self.note(step)
        kept = refusal(refuse, self.settings.review_threshold)
        if kept is not None:
            self._recorder.keep(kept)

    def keep(self, forward: Forward, captured: Captured, told: Told = _nobody) -> None:
        """An answer passed by as a whole: record it, off the loop.

        `told` hears what became of it, on a thread of ours.
        """
        self._reading.submit(self._keep, forward, captured, told)

    def _keep(self, forward: Forward, captured: Captured, told: Told) -> None:
        try:
            self._record(forward, captured, told)
        except Exception as error:
            logger.error("rewind: an answer could not be read; it is not recorded\n%s", traceback_of(error))
            reason = f"the answer could not be read ({type(error).__name__})"
            step = _passed(forward, captured, reason, failed=True)
            self.note(step)
            told(step)

    def _record(self, forward: Forward, captured: Captured, told: Told) -> None:
        made = exchange(
            forward, captured, record_errors=self.settings.record_errors, redactor=self._redacts_answers
        )
        if isinstance(made, NotRecorded):
            logger.info("rewind: not recorded: %s", made.reason)
            step = _passed(forward, captured, made.reason)
            self.note(step)
            told(step)
            return
        step = recorded_step(forward, made, captured.status)
        done = self._recorder.record(made, step)
        done.add_done_callback(lambda future: self._kept(future, step, told))

    def _kept(self, future: Future[CassetteRecord], step: StepRecord, told: Told) -> None:
        error = future.exception()
        if error is None:
            step = step.model_copy(update={"cassette": future.result().id})
            self._replace(step, future.result())
        else:
            step = failed_step(step, error)  # the recorder says and logs it so
        self._count(step)
        told(step)

    def forget(self, steps: Sequence[StepRecord]) -> tuple[int, int]:
        """Delete all recordings that answer the requests of steps, and their aliases; how many of each.

        What an alias led to stays: it is the recording of another request. Raises `StoreError`.
        """
        ids = frozenset().union(*map(self._answering, steps))
        own = {step.cassette for step in steps if step.cassette and step.tier != "alias"}
        aliases = sum(map(self._remove_alias, {step.normalised for step in steps if step.normalised}))
        return self._delete(ids | own), aliases

    def _delete(self, ids: Iterable[str]) -> int:
        wanted = sorted(ids)
        if self._cassettes:
            for each in wanted:
                with suppress(CorruptRecordError):  # then no file has it
                    self._cassettes.forget(self.store.recordings_of(each))
        return self.store.delete(wanted)

    def _remove_alias(self, fingerprint: str) -> bool:
        alias = self.store.aliases.lookup(fingerprint)
        return alias is not None and self.store.aliases.remove(alias.id)

    def approve(self, step: StepRecord, now: float) -> AliasRecord:
        """Have the best candidate of a refused request answer it from now on. Raises `RewindError`."""
        pending = self.log.pending.find(step.normalised)
        chosen = self.store.cassette(best(self.store, self.log, pending))
        review = Review(
            self.store, self.log, self.engine.reader, redact_answers=self._redacts_answers is not None
        )
        return review.approve(pending, chosen, now)

    def rerecord(self, steps: Iterable[StepRecord]) -> int:
        """Have the requests of steps recorded anew when they are asked next; how many there are.

        What answers them goes when the new answer is stored, not before. The mode of each request counts as
        ever, and a change of settings ends this.
        """
        marked = {self._key(step): self._answering(step) for step in steps}
        self.engine.anew.update(marked)
        return len(marked)

    def _key(self, step: StepRecord) -> str:
        return step.normalised if self.settings.match == "normalised" else step.exact

    def _answering(self, step: StepRecord) -> frozenset[str]:
        if not step.exact:
            return frozenset()  # it was never read
        found = [*self.store.lookup_exact(step.exact)]
        if self.settings.match == "normalised":
            found += self.store.lookup_normalised(step.normalised)
        return frozenset(each.id for each in found)

    def _replace(self, step: StepRecord, made: CassetteRecord) -> None:
        """A call that was to be recorded anew was: what answered it before goes."""
        before = self.engine.anew.pop(self._key(step), None)
        try:
            if before is not None:
                self._remove_alias(step.normalised)
                self.store.aliases.lead(before, made.id)
                self._delete(before - {made.id})
        except Exception as error:  # the new recording is there, and the newest
            _warn(f"what a new recording replaces could not be deleted: {words_of(error)}")

    def _count(self, step: StepRecord) -> None:
        with self._counting:
            self.report.add(step)
            self._newest[f"{step.run}.{step.number}"] = step
            if len(self._newest) > _NEWEST:
                self._newest.popitem(last=False)
        if self._journal is not None:
            self._journal.add(step)

    def step_record(self, step: str) -> StepRecord | None:
        """What is known of a step by its id, once it is over; None of one that is in no log of ours."""
        with self._counting:
            found = self._newest.get(step)
        if found is not None:
            return found
        run, _, number = step.rpartition(".")
        try:
            return self.log.step(run, int(number))
        except (StoreError, ValueError, OverflowError):  # a flow from a file may say anything
            return None

    def settle(self) -> None:
        """Wait until every answer that was handed over is read, recorded, logged and counted."""
        self._reading.submit(lambda: None).result()
        self._recorder.flush()

    def close(self, now: float) -> JsonObject:
        """Write what is left, end the runs, close everything; the report, still without the child's exit."""
        self._large.shutdown(wait=True)
        self._reading.shutdown(wait=True)
        self._recorder.close()
        for session in self._sessions.values():
            end = {"ended_at": now, "tunnelled": tuple(self.report.tunnelled)}
            self._write_run(session.run.model_copy(update=end))
        elsewhere = self._opened.log_elsewhere
        told: JsonObject = {"log": str(elsewhere)} if elsewhere else {}
        if self._cassettes:
            runs = [session.run.id for session in self._sessions.values()]
            if not self._cassettes.write(self._opened, self.settings, runs):
                self.report.failed += 1
            told["cassettes"] = self._cassettes.to_json()
        cassettes = self._count_cassettes()
        self.log.close()
        self.store.close()
        return self.report.to_json(cassettes=cassettes, child_exit=None) | told

    def _count_cassettes(self) -> int:
        # An answer that came again is one more recording of the same cassette: touched with it.
        touched = self.report.touched
        try:
            return self.store.count("model") - self.store.count_of(touched) + len(touched)
        except RewindError as error:
            _warn(str(error))
            return 0


def session_shown(redactor: Redactor, name: str) -> str:
    """A session's name as the log and the report have it: redacted, then cut."""
    return redactor.text(name)[:SESSION_SHOWN]


def _warn(text: str) -> None:
    logger.warning("rewind: %s", text)


def _passed(forward: Forward, captured: Captured, reason: str, *, failed: bool = False) -> StepRecord:
    return passed_step(
        forward,
        ("", "", ""),
        status=captured.status,
        latency_ms=captured.latency_ms,
        reason=reason,
        failed=failed,
    )
