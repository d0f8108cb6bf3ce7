"""What a running proxy holds: the open store and log, the engine, the sessions, the counts.

It knows no mitmproxy. All writing happens on threads of its own: the loop only hands work over.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Lock

from rewind_proxy.canonical.fingerprint import settings_digest
from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.engine import Decision, Engine, Forward, Session, Step
from rewind_proxy.matching.reading import RawRequest, RequestReader
from rewind_proxy.matching.rewriting import run_rewriter, step_rewriter
from rewind_proxy.recording import Captured, NotRecorded, exchange, passed_step, recorded_step
from rewind_proxy.report import Report
from rewind_proxy.settings import Settings
from rewind_proxy.store import Log, Recorder, Store
from rewind_proxy.store.records import CassetteRecord, RunRecord, StepRecord
from rewind_proxy.wire import Host, HostTable

logger = logging.getLogger(__name__)

RequestLine = tuple[str, str, str]
"""(method, host, path) of a request that could not be read."""


class Runtime:
    """One open store under one set of settings, for as long as the proxy runs with them."""

    def __init__(self, settings: Settings, hosts: HostTable, progress: Callable[[int, int], None]) -> None:
        """Open the store and log, and index the store for these settings. Raises `RewindError`."""
        self.settings = settings
        self.report = Report(settings.mode, settings.session)
        wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
        self.store = Store.open(
            settings.store, settings_digest=settings_digest(settings.match_settings), redaction=wanted
        )
        try:
            self.log = Log.open(settings.store, redaction=wanted)
            try:
                self.engine = Engine(settings, self._prepared(hosts, wanted, progress), self.store)
            except BaseException:
                self.log.close()
                raise
        except BaseException:
            self.store.close()
            raise
        self._recorder = Recorder(self.store, self.log)
        # Answers are decoded and read on a thread of their own, so that a long one delays no other client.
        self._reading = ThreadPoolExecutor(1, "rewind-reading")
        self._sessions: dict[str, Session] = {}
        self._counting = Lock()

    def _prepared(
        self, hosts: HostTable, wanted: tuple[str, ...], progress: Callable[[int, int], None]
    ) -> RequestReader:
        """A reader for a store and log redacted by every rule in force (theirs, then ours), and indexed."""
        settings = self.settings
        rules = (*self.store.redaction, *(rule for rule in wanted if rule not in self.store.redaction))
        redactor = Redactor(rules)
        reader = RequestReader(hosts, redactor, settings.match_settings, settings.max_body)
        if rules != self.store.redaction:
            logger.warning("rewind: the redaction list has grown: everything stored is redacted again")
            self.store.rewrite(redactor.value, rules, redactor.text, progress)
        if not set(rules) <= set(self.log.redaction):
            self.log.rewrite(run_rewriter(redactor), step_rewriter(redactor, reader, self.store), rules)
        if self.store.needs_index():
            index = self.store.index(reader.keys_of, progress)
            logger.info("rewind: %d recordings are indexed for these settings", index.indexed)
        return reader

    def step(self, session: str, client: str, now: float) -> Step:
        """The next step of a session, which starts with its first call."""
        known = self._sessions.get(session)
        if known is None:
            stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
            run = RunRecord(
                id=f"{stamp}-{secrets.token_hex(2)}",
                session=session,
                mode=self.settings.mode,
                started_at=now,
                client=client[:200],
            )
            known = self._sessions[session] = Session(run)
            self._reading.submit(self.log.start_run, run)
        known.calls += 1
        return Step(known, known.calls, now)

    def decide(self, request: RawRequest, host: Host, step: Step, mode: Mode) -> Decision:
        """The engine's decision."""
        return self.engine.decide(request, host, step, mode=mode)

    def note(self, step: StepRecord) -> None:
        """Count a step that is over, and log it."""
        self._count(step)
        self._recorder.log_step(step)

    def keep(self, forward: Forward, captured: Captured) -> None:
        """An answer passed by as a whole: record it, off the loop."""
        self._reading.submit(self._keep, forward, captured)

    def _keep(self, forward: Forward, captured: Captured) -> None:
        try:
            made = exchange(forward, captured, record_errors=self.settings.record_errors)
        except Exception as error:
            logger.exception("rewind: an answer could not be read; it is not recorded")
            reason = f"the answer could not be read ({type(error).__name__})"
            self.note(_passed(forward, captured, reason, failed=True))
            return
        if isinstance(made, NotRecorded):
            logger.info("rewind: not recorded: %s", made.reason)
            self.note(_passed(forward, captured, made.reason))
            return
        step = recorded_step(forward, made, captured.status)
        done = self._recorder.record(made, step)
        done.add_done_callback(lambda future: self._kept(future, step))

    def _kept(self, future: Future[CassetteRecord], step: StepRecord) -> None:
        error = future.exception()
        if error is None:
            self._count(step.model_copy(update={"cassette": future.result().id}))
            return
        logger.warning("rewind: an answer could not be recorded: %s", error)
        self._count(step.model_copy(update={"tier": "failed"}))  # the recorder logs it so

    def _count(self, step: StepRecord) -> None:
        with self._counting:
            self.report.add(step)

    def close(self, now: float) -> JsonObject:
        """Write what is left, end the runs, close everything; the report, still without the child's exit."""
        self._reading.shutdown(wait=True)
        self._recorder.close()
        for session in self._sessions.values():
            end = {"ended_at": now, "tunnelled": tuple(self.report.tunnelled)}
            self.log.end_run(session.run.model_copy(update=end))
        cassettes = self.store.count("model")
        self.log.close()
        self.store.close()
        return self.report.to_json(cassettes=cassettes, child_exit=None)


def _passed(forward: Forward, captured: Captured, reason: str, *, failed: bool = False) -> StepRecord:
    return passed_step(
        forward,
        ("", "", ""),
        status=captured.status,
        latency_ms=captured.latency_ms,
        reason=reason,
        failed=failed,
    )
