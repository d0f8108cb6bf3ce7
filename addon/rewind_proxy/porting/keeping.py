"""From what a file tells to what the store keeps: read, redacted and judged as if it had just passed by.

Ids and fingerprints are made anew. A recording of our own text comes back as it was, in its run and with its
times; what other tools recorded, or somebody edited, becomes a run of its own, named by the file's content:
the same file twice is the same run, and nothing is kept twice.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rewind_proxy.decisions import Forward, Session, Step, is_ours
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.opening import Opened
from rewind_proxy.matching.reading import Reading
from rewind_proxy.matching.scanning import in_request
from rewind_proxy.porting.asked import NEVER, address, is_told, read_kept
from rewind_proxy.porting.document import Kept
from rewind_proxy.porting.heard import Entry, Heard, Left
from rewind_proxy.recording import Captured, NotRecorded, exchange
from rewind_proxy.settings import Settings
from rewind_proxy.store import Exchange
from rewind_proxy.store.records import RunRecord

_TICK = 1e-6
"""Between two recordings of one time, so that their order shows in their times."""
_DIGITS = 12
_SUPERSEDED = "the store has a newer answer to this side request"
_OURS = "Rewind gave this answer itself, not a provider"
_LONGEST_REASON = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class Outcome:
    """What became of the entries of a source."""

    recordings: int = 0
    known: int = 0
    """Those that were in the store already."""
    edited: int = 0
    """Of the recordings, those that somebody had changed by hand."""
    redacted: int = 0
    """Those that held a credential by today's rules in their file."""
    left: Counter[str] = field(default_factory=Counter)
    """How many were left out, by the reason."""
    unknown_hosts: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)
    """Where each one that was left out stands, and why; without those to unknown hosts."""

    def leave(self, place: str, reason: str) -> None:
        """Count one that is left out."""
        self.left[reason] += 1
        self.places.append(f"{place}: {reason}")

    def add(self, other: Outcome) -> None:
        """Sum up."""
        self.recordings += other.recordings
        self.known += other.known
        self.edited += other.edited
        self.redacted += other.redacted
        self.left += other.left
        self.unknown_hosts += other.unknown_hosts
        self.places += other.places


class Keeper:
    """Puts what files tell into an open store."""

    def __init__(self, opened: Opened, settings: Settings, now: float) -> None:
        """`now` is for what has no time of its own."""
        self._store, self._log, self._reader = opened.store, opened.log, opened.reader
        self._settings = settings
        self._now = now
        self._there: dict[str, set[tuple[str, float]]] = {}
        self._runs: dict[str, RunRecord] = {}

    def keep(self, entry: Entry | Kept, run: FileRun, outcome: Outcome) -> None:
        """Store what can be replayed, and count what became of the entry. Raises `StoreError`."""
        match entry:
            case Left():
                outcome.leave(entry.place, self._shown(entry.reason))
            case Heard():
                self._keep_heard(entry, run, outcome)
            case Kept():
                self._keep_kept(entry, run, outcome)

    def holds(self, run: str, exact: str, recorded_at: float) -> bool:
        """Whether the store has a recording: what never changes of one names it."""
        if run not in self._there:
            records = self._store.cassettes(run=run)
            self._there[run] = {(record.exact, record.recorded_at) for record in records}
        return (exact, recorded_at) in self._there[run]

    def file_run(self, digest: str, name: str) -> FileRun:
        """The run that a file becomes, as far as its entries are no recordings of ours."""
        mark = digest[:_DIGITS]
        before = next((run for run in self._store.runs_present() if run.endswith(f"-{mark}")), "")
        known = Counter(record.id for record in self._store.cassettes(run=before)) if before else Counter()
        session = self._settings.session or name
        return FileRun(mark, self._reader.redactor.text(session), before, known)

    def finish(self) -> None:
        """Write the runs that were met into the log. Raises `StoreError`."""
        for run in self._runs.values():
            try:
                self._log.run(run.id)
            except StoreError:
                self._log.start_run(run)
        self._runs.clear()

    # -- what other tools recorded

    def _keep_heard(self, heard: Heard, run: FileRun, outcome: Outcome) -> None:
        request = heard.request
        host = self._reader.hosts.find(request.host, request.port)
        if host is None:
            outcome.unknown_hosts[self._shown(request.host)] += 1
            return
        reading = self._reader.read(request, host)
        if reason := NEVER.get(reading.endpoint.cls) or (_OURS if is_ours(heard.headers) else ""):
            outcome.leave(heard.place, reason)
            return
        started = heard.started(self._now)
        ended = run.after(started + heard.took / 1000)
        chunks = ((heard.body, heard.took),) if heard.body else ()
        captured = Captured(heard.status, heard.headers, chunks, ended, heard.broken)
        made = self._exchange(reading, run.record(started), captured, errors=self._settings.record_errors)
        if isinstance(made, NotRecorded):
            outcome.leave(heard.place, self._shown(made.reason))
            return
        self._put_new(heard.place, made, run, outcome)

    def _put_new(self, place: str, made: Exchange, run: FileRun, outcome: Outcome) -> bool:
        """Whether it is new, and now there."""
        cassette_id = content_id(made.exact, made.answer_body)
        if run.known[cassette_id]:
            run.known[cassette_id] -= 1
            outcome.known += 1
            return False
        if self._superseded(made):
            outcome.leave(place, _SUPERSEDED)
            return False
        self._put(made, run.session)
        outcome.recordings += 1
        return True

    # -- recordings of our own

    def _keep_kept(self, kept: Kept, run: FileRun, outcome: Outcome) -> None:
        name, port = address(kept.request.host)
        host = self._reader.hosts.find(name, port)
        if host is None:
            outcome.unknown_hosts[self._shown(kept.request.host)] += 1
            return
        found = read_kept(kept, host, self._reader)
        if isinstance(found, str):
            outcome.leave(kept.place, found)
            return
        session = self._reader.redactor.text(kept.session)
        outcome.redacted += session != kept.session or self._shows_more(kept)
        own = kept.run and not kept.edited
        if own and self.holds(kept.run, found.exact, kept.recorded_at):
            outcome.known += 1
            return
        ended = kept.recorded_at if own else run.after(kept.recorded_at or self._now)
        started = max(0.0, ended - kept.latency_ms / 1000)
        into = RunRecord(id=kept.run, mode="record", started_at=started) if own else run.record(started)
        made = self._again(kept, found, into, ended)
        if isinstance(made, NotRecorded):
            outcome.leave(kept.place, made.reason)
        elif own and self._superseded(made):
            outcome.leave(kept.place, _SUPERSEDED)
        elif own:
            self._put(made, self._reader.redactor.text(self._settings.session) or session)
            self._there[kept.run].add((made.exact, made.recorded_at))
            outcome.recordings += 1
        elif self._put_new(kept.place, made, run, outcome):
            outcome.edited += 1

    def _shows_more(self, kept: Kept) -> bool:
        """Whether there is a credential in a request as its file has it."""
        return bool(in_request(kept.request, kept.body, self._reader.redactor))

    def _again(self, kept: Kept, reading: Reading, run: RunRecord, ended: float) -> Exchange | NotRecorded:
        pieces: list[tuple[bytes, int]] = []
        at = 0
        for length, milliseconds in kept.chunks:
            pieces.append((kept.answer_body[at : at + length], milliseconds))
            at += length
        captured = Captured(kept.status, kept.headers, tuple(pieces), ended)
        # An error answer in our own text was recorded on purpose.
        made = self._exchange(reading, run, captured, errors=True)
        if isinstance(made, NotRecorded):
            return made
        told = {"latency_ms": kept.latency_ms, "by_hand": kept.by_hand}
        answer = made.answer.model_copy(update=told)
        chunks = kept.chunks if made.answer_body == kept.answer_body else made.chunks
        return replace(
            made, answer=answer, chunks=chunks, told=is_told(kept, reading.target.host, made.exact)
        )

    def _superseded(self, made: Exchange) -> bool:
        """Of class `side` the store keeps the newest run's answers: an older one must not push them out."""
        return made.request.cls == "side" and any(
            record.recorded_at > made.recorded_at and record.run != made.run
            for record in self._store.lookup_exact(made.exact)
        )

    # -- both

    def _shown(self, words: str) -> str:
        """Words of a file, as a person may see them: it may hold anything in any place."""
        shown = self._reader.redactor.text(words)
        return shown if len(shown) <= _LONGEST_REASON else f"{shown[:_LONGEST_REASON]}…"

    def _exchange(
        self, reading: Reading, run: RunRecord, captured: Captured, *, errors: bool
    ) -> Exchange | NotRecorded:
        step = Step(Session(run), 1, captured.ended_at)
        # No header that came over a wire holds one: it would end the header when it is replayed.
        headers = tuple(header for header in captured.headers if not _CONTROL.search("".join(header)))
        captured = replace(captured, headers=headers)
        forward = Forward(reading, step, reading.endpoint.cls, True, ())
        redactor = self._reader.redactor if self._settings.redact_answers else None
        return exchange(forward, captured, record_errors=errors, redactor=redactor)

    def _put(self, made: Exchange, session: str) -> None:
        self._store.put(made)
        started = max(0.0, made.recorded_at - made.answer.latency_ms / 1000)
        before = self._runs.get(made.run)
        if before is None:
            client = made.request.user_agent[:200]
            before = RunRecord(id=made.run, session=session, mode="record", started_at=started, client=client)
        self._runs[made.run] = before.model_copy(
            update={"started_at": min(started, before.started_at), "ended_at": made.recorded_at}
        )


@dataclass(slots=True)
class FileRun:
    """The run that a file becomes."""

    mark: str = ""
    session: str = ""
    id: str = ""
    """Empty until its first recording, unless the store has it from before."""
    known: Counter[str] = field(default_factory=Counter)
    """Cassette ids that the store has of it, how often."""
    last: float = 0.0

    def record(self, started: float) -> RunRecord:
        """Its record; its name begins with the time of its first recording, as every run's does."""
        if not self.id:
            self.id = f"{stamp(started)}-{self.mark}"
        return RunRecord(id=self.id, session=self.session, mode="record", started_at=started)

    def after(self, ended: float) -> float:
        """The time of the next recording: they stay in the order of the file."""
        self.last = ended if ended > self.last else self.last + _TICK
        return self.last


def stamp(seconds: float) -> str:
    """A time as it begins the names of runs and files."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d-%H%M%S")


def content_id(exact: str, answer: bytes) -> str:
    """The id of a cassette with an answer (DESIGN §7)."""
    return hashlib.sha256(bytes.fromhex(exact) + answer).hexdigest()
