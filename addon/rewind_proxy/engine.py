"""Request in, decision out: `Replay | Forward | Refuse` (DESIGN §8). No mitmproxy, no clock, no sockets.

mode          hit                 miss
auto          replay              forward and record
replay        replay              refuse
record        forward, record     forward, record
passthrough   forward, log only   forward, log only
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import EndpointClass, JsonValue, Mode, Tier
from rewind_proxy.canonical.scrub import Slot
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.choice import Memory, choose, ignored_differences
from rewind_proxy.matching.miss import Miss, explain_miss, unusable
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.matching.rebase import Rebased, rebase, replacements
from rewind_proxy.settings import Settings
from rewind_proxy.store import Answer, Store
from rewind_proxy.store.records import CassetteRecord, RunRecord
from rewind_proxy.wire import ADAPTERS, Host

REFUSED_STATUS = 400
"""The one status that stops all measured agents at once and shows them the text (CLIENTS.md)."""
UNKNOWN_SIDE_STATUS = 404
"""Harmless at once, where 204, 5xx, a drop or a hang cost clients 5 to 30 seconds (CLIENTS.md)."""
SOCKET_STATUS = 426
"""Codex falls back to POST within the same turn (CLIENTS.md)."""
NO_RECORDING = "rewind: no recording"

Header = tuple[str, str]


@dataclass(slots=True)
class Session:
    """One client session: a session name, or the life of the proxy. It is one run of the log."""

    run: RunRecord
    memory: Memory = field(default_factory=Memory)
    calls: int = 0
    """Steps given out, model calls and others."""
    replayed: bool = False
    """Whether a model call of this session was answered from the store."""


@dataclass(frozen=True, slots=True)
class Step:
    """The place of one intercepted call in its run."""

    session: Session
    number: int
    started_at: float

    @property
    def id(self) -> str:
        """`<run>.<number>`, as in `x-rewind-step`."""
        return f"{self.session.run.id}.{self.number}"


@dataclass(frozen=True, slots=True)
class Replay:
    """Answer from the store."""

    reading: Reading
    step: Step
    tier: Tier
    cassette: CassetteRecord
    answer: Answer
    note: str
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """Send it on. `record`: keep the answer; `reading` is None when the request could not even be read."""

    reading: Reading | None
    step: Step
    cls: EndpointClass
    record: bool
    headers: tuple[Header, ...]
    after_replay: bool = False
    """The session was answered from the store before: this turn carries ids that the provider never saw."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error of ours; nothing goes upstream."""

    reading: Reading | None
    step: Step
    cls: EndpointClass
    tier: Tier
    status: int
    body: bytes
    headers: tuple[Header, ...]
    miss: Miss


Decision: TypeAlias = Replay | Forward | Refuse


class Engine:
    """Decides for each request of a known host, from the store and the session's memory."""

    def __init__(self, settings: Settings, reader: RequestReader, store: Store) -> None:
        self.settings = settings
        self.reader = reader
        self.store = store
        self._slots: TextCache[int, tuple[Slot, ...]] = TextCache()
        """Slots of recorded requests, which are not stored, by `seq`."""

    def decide(self, request: RawRequest, host: Host, step: Step, *, mode: Mode) -> Decision:
        """What happens to a request. Raises what the store raises: the caller is the fail-closed boundary."""
        reading = self.reader.read(request, host)
        match reading.endpoint.cls:
            case "model":
                return self._model(reading, step, mode)
            case "side":
                return self._side(reading, step, mode)
            case "socket":
                return self._socket(reading, step, mode)
            case "telemetry" | "auth" as cls:
                if mode != "replay":
                    return self._forward(reading, step, record=False)
                return self._unrecorded(reading, step, cls)

    def _model(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        if mode == "passthrough":
            return self._forward(reading, step, record=False)
        if mode == "record":
            return self._forward(reading, step, record=True)
        found = self._find(reading, step)
        if isinstance(found, Replay):
            step.session.memory.remember(found.cassette)
            step.session.replayed = True
            return found
        if mode == "auto":
            return self._forward(reading, step, record=True)
        miss = found or explain_miss(reading, self.reader, self.store, self.settings.match)
        return self._refuse(reading, step, "miss", REFUSED_STATUS, miss)

    def _find(self, reading: Reading, step: Step) -> Replay | Miss | None:
        """The answer of the first tier that has a recording, why its recordings cannot answer, or None."""
        tiers: list[tuple[Tier, tuple[CassetteRecord, ...]]] = [
            ("exact", self.store.lookup_exact(reading.exact))
        ]
        if self.settings.match == "normalised" and reading.normalised is not None:
            tiers.append(("normalised", self.store.lookup_normalised(reading.fingerprint)))
        why: Miss | None = None
        for tier, candidates in tiers:
            if not candidates:
                continue
            chosen = choose(
                candidates,
                reading.record,
                step.session.memory,
                self.settings.repeat,
                self.settings.exhausted,
            )
            if isinstance(chosen, str):
                why = unusable(chosen, candidates, reading)
                continue
            return self._replay(tier, chosen, reading, step)
        return why

    def _replay(self, tier: Tier, chosen: CassetteRecord, reading: Reading, step: Step) -> Replay:
        answer = self.store.answer(chosen)
        notes = self._notes(tier, chosen, reading)
        if tier == "normalised" and self.settings.rebase:
            rebased = self._rebased(chosen, answer, reading)
            if rebased.count:
                notes.append(f"re-based {rebased.count}")
            answer = replace(answer, body=rebased.body)
        note = header_safe("; ".join(notes))
        headers = (
            ("x-rewind", "replayed"),
            ("x-rewind-tier", tier),
            ("x-rewind-cassette", chosen.id),
            *_step_headers(step, reading),
            *((("x-rewind-note", note),) if note else ()),
        )
        return Replay(reading, step, tier, chosen, answer, note, headers)

    def _rebased(self, cassette: CassetteRecord, answer: Answer, reading: Reading) -> Rebased:
        """The recorded answer with the folders, ids and times of the live request (DESIGN §8)."""
        same = cassette.request.slots_digest == reading.record.slots_digest
        if same or reading.normalised is None:
            return Rebased(answer.body, 0)
        slots = self._slots.get(cassette.seq)
        if slots is None:
            stored = self.reader.read_stored(cassette, self.store.request_body(cassette))
            slots = stored.normalised.slots if stored.normalised else ()
            self._slots.put(cassette.seq, slots, sum(len(slot.value) + 100 for slot in slots))
        values = replacements(slots, reading.normalised.slots)
        return rebase(answer.body, cassette.request.wire, cassette.request.form, values)

    def _notes(self, tier: Tier, cassette: CassetteRecord, reading: Reading) -> list[str]:
        if tier == "exact" or reading.normalised is None:
            return []
        notes = [
            f"{name} {_plain(recorded)}->{_plain(live)}"
            for name, recorded, live in ignored_differences(cassette.request, reading.record)
            if name in reading.normalised.ignored or name in self.settings.ignore
        ]
        if reading.normalised.rules:
            notes.append("scrubbed " + " ".join(reading.normalised.rules))
        if self.settings.tail_n:
            notes.append(f"tail_n={self.settings.tail_n}")
        return notes

    def _side(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        if mode != "replay":
            return self._forward(reading, step, record=mode != "passthrough")
        candidates = self.store.lookup_exact(reading.exact)
        if not candidates:
            miss = Miss("This side request was never recorded.")
            return self._refuse(reading, step, "miss", UNKNOWN_SIDE_STATUS, miss)
        memory = step.session.memory
        chosen = next((each for each in candidates if each.seq not in memory.used), candidates[-1])
        memory.used.add(chosen.seq)
        headers = (
            ("x-rewind", "replayed"),
            ("x-rewind-tier", "exact"),
            ("x-rewind-cassette", chosen.id),
            *_step_headers(step, reading),
        )
        return Replay(reading, step, "exact", chosen, self.store.answer(chosen), "", headers)

    def _socket(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        passes = not reading.endpoint.model_socket or self.settings.socket == "pass"
        if mode == "passthrough" or (mode != "replay" and passes):
            return self._forward(reading, step, record=False)
        if reading.endpoint.model_socket:
            miss = Miss("This WebSocket is not recorded: send the request by POST instead.")
            return self._refuse(reading, step, "miss", SOCKET_STATUS, miss)
        miss = Miss("This WebSocket cannot be replayed.")
        return self._refuse(reading, step, "miss", REFUSED_STATUS, miss)

    def _unrecorded(self, reading: Reading, step: Step, cls: EndpointClass) -> Refuse:
        if cls == "telemetry":
            return self._refuse(
                reading, step, "miss", UNKNOWN_SIDE_STATUS, Miss("Telemetry is never recorded.")
            )
        miss = Miss(
            f"Logins and tokens are never recorded: {reading.target.method} {reading.target.host}"
            f"{reading.record.path} is refused in replay mode. Any key will do for replayed answers."
        )
        return self._refuse(reading, step, "miss", REFUSED_STATUS, miss)

    def _forward(self, reading: Reading, step: Step, *, record: bool) -> Forward:
        headers: tuple[Header, ...] = (
            ("x-rewind", "recording" if record else "passed"),
            ("x-rewind-tier", "recorded" if record else "passed"),
            *_step_headers(step, reading),
        )
        cls = reading.endpoint.cls
        after_replay = cls == "model" and step.session.replayed
        return Forward(reading, step, cls, record, headers, after_replay)

    def _refuse(self, reading: Reading, step: Step, tier: Tier, status: int, miss: Miss) -> Refuse:
        body = dumps(ADAPTERS[reading.error_wire].error(status, refusal_text(miss)))
        headers = (*_refusal_headers(tier), *_step_headers(step, reading))
        return Refuse(reading, step, reading.endpoint.cls, tier, status, body, headers, miss)


def refuse_failed(step: Step, cls: EndpointClass, error: BaseException) -> Refuse:
    """The refusal of a request that an exception of ours kept from being decided (DESIGN §14)."""
    # Our own errors are sentences without secrets; a foreign one may quote the value it choked on.
    why = str(error) if isinstance(error, RewindError) else type(error).__name__
    miss = Miss(f"Rewind failed while it looked for one ({why}); its log has the traceback.")
    text = refusal_text(miss)
    # Readable by the clients of every wire: each looks for `error.message`.
    body = dumps({"type": "error", "error": {"type": "invalid_request_error", "message": text}})
    headers = (*_refusal_headers("failed"), ("x-rewind-step", step.id))
    return Refuse(None, step, cls, "failed", REFUSED_STATUS, body, headers, miss)


def refusal_text(miss: Miss) -> str:
    """The message of a refusal: it starts the same way every time, for people and for scripts."""
    return f"{NO_RECORDING}. {miss.text()}"


def header_safe(text: str, limit: int = 900) -> str:
    """`text` as a header value: printable ASCII on one line."""
    safe = "".join(char if " " <= char <= "~" else "?" for char in text)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def _plain(value: JsonValue) -> str:
    return "(absent)" if value is None else value if isinstance(value, str) else dumps(value).decode()


def _step_headers(step: Step, reading: Reading) -> tuple[Header, ...]:
    return ("x-rewind-step", step.id), ("x-rewind-fingerprint", reading.fingerprint[:12])


def _refusal_headers(tier: Tier) -> tuple[Header, ...]:
    return (
        ("content-type", "application/json"),
        ("x-should-retry", "false"),
        ("x-rewind", "refused"),
        ("x-rewind-tier", tier),
    )
