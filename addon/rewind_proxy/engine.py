"""Request in, decision out: `Replay | Forward | Refuse` (DESIGN §8). No mitmproxy, no clock, no sockets.

mode          hit                 miss
auto          replay              forward and record
replay        replay              refuse
record        forward, record     forward, record
passthrough   forward, log only   forward, log only
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import EndpointClass, Mode, Tier
from rewind_proxy.decisions import (
    ANSWERED,
    NOTE,
    REFUSED,
    REPLAYED,
    Decision,
    Fail,
    Forward,
    Header,
    Refuse,
    Replay,
    Serve,
    Session,
    Step,
    header_safe,
    step_headers,
)
from rewind_proxy.errors import RewindError
from rewind_proxy.faulted import fail, faulted
from rewind_proxy.faults import parse
from rewind_proxy.matching.choice import choose
from rewind_proxy.matching.miss import Miss, explain_miss, unusable
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.matching.serving import Serving
from rewind_proxy.settings import Settings
from rewind_proxy.store import Store
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.wire import ADAPTERS, Host

__all__ = [
    "Decision",
    "Engine",
    "Fail",
    "Forward",
    "Header",
    "Refuse",
    "Replay",
    "Serve",
    "Session",
    "Step",
    "header_safe",
    "refusal_text",
    "refuse_failed",
]

REFUSED_STATUS = 400
"""The one status that stops all measured agents at once and shows them the text (CLIENTS.md)."""
UNKNOWN_SIDE_STATUS = 404
"""Harmless at once, where 204, 5xx, a drop or a hang cost clients 5 to 30 seconds (CLIENTS.md)."""
SOCKET_STATUS = 426
"""Codex falls back to POST within the same turn (CLIENTS.md)."""
NO_RECORDING = "rewind: no recording"


class Engine:
    """Decides for each request of a known host, from the store and the session's memory."""

    def __init__(
        self, settings: Settings, reader: RequestReader, store: Store, *, keeps_pending: bool = True
    ) -> None:
        """`keeps_pending`: whether a refused miss can be answered later, which its report says how to do."""
        self.settings = settings
        self.reader = reader
        self.store = store
        self.anew: dict[str, frozenset[str]] = {}
        """Fingerprints of requests that are to be recorded anew when asked next, and what that replaces."""
        self._keeps_pending = keeps_pending
        self._faults = parse(settings.fault)
        self._serving = Serving(settings, reader, store)

    def decide(self, request: RawRequest, host: Host, step: Step, *, mode: Mode) -> Decision:
        """What happens to a request. Raises what the store raises: the caller is the fail-closed boundary."""
        return self.decide_read(self.reader.read(request, host), step, mode=mode)

    def decide_read(self, reading: Reading, step: Step, *, mode: Mode) -> Decision:
        """What happens to a request that was read already."""
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

    def _forked(self, at: int, mode: Mode) -> Mode:
        """The mode of a session's nth model call: before `from_step` the recorded run is followed."""
        fork = self.settings.from_step
        if not fork or mode not in ("auto", "record"):
            return mode
        return "replay" if at < fork else "record"

    def _model(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        turn = step.session.next_turn() if reading.endpoint.operation == "generate" else 0
        fault = self._faults.get(turn)
        if fault is not None and fault.status is not None:
            return fail(reading, step, fault, fault.status)
        at = step.session.steps + 1
        # What was cut is asked for again, as is what failed: the same call of the recorded run.
        again = fault is not None and fault.cut_after is not None
        if not again:
            step.session.steps = at
        decision = self._answered(reading, step, self._forked(at, mode))
        if isinstance(decision, Replay):
            step.session.replayed = True
            if not again:
                step.session.memory.remember(decision.cassette)
        return decision if fault is None else faulted(decision, fault)

    def _answered(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        if mode == "passthrough":
            return self._forward(reading, step, record=False)
        if mode == "record" or (mode == "auto" and self._key(reading) in self.anew):
            return self._forward(reading, step, record=True)
        found = self._find(reading, step)
        if isinstance(found, Replay):
            return found
        if mode == "auto":
            return self._forward(reading, step, record=True)
        miss = found or explain_miss(reading, self.reader, self.store, self.settings.match)
        if self._keeps_pending:
            miss = replace(miss, pending=reading.fingerprint)
        return self._refuse(reading, step, "miss", REFUSED_STATUS, miss)

    def _key(self, reading: Reading) -> str:
        return reading.fingerprint if self.settings.match == "normalised" else reading.exact

    def _find(self, reading: Reading, step: Step) -> Replay | Miss | None:
        """The answer of the first tier that has a recording, why its recordings cannot answer, or None."""
        why: Miss | None = None
        for tier, candidates, alias in self._tiers(reading):
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
            served = self._serving.serve(tier, chosen, reading)
            if served is None:
                why = unusable("format", candidates, reading)
                continue
            note = header_safe("; ".join((*alias, *served.notes)))
            headers = (
                *served.headers,
                (ANSWERED, REPLAYED),
                ("x-rewind-tier", tier),
                ("x-rewind-cassette", chosen.id),
                *step_headers(step, reading),
                *(((NOTE, note),) if note else ()),
            )
            return Replay(reading, step, tier, chosen, served.answer, note, headers)
        return why

    def _tiers(self, reading: Reading) -> Iterator[tuple[Tier, tuple[CassetteRecord, ...], tuple[str, ...]]]:
        """The recordings of each tier in turn, and what an alias has to say of itself."""
        yield "exact", self._by_exact(reading), ()
        if self.settings.match != "normalised":
            return
        if reading.normalised is not None:
            yield "normalised", self.store.lookup_normalised(reading.fingerprint), ()
        alias = self.store.aliases.lookup(reading.fingerprint)
        if alias is not None:
            yield "alias", self.store.recordings_of(alias.cassette), (f"alias {alias.id[:12]}",)

    def _by_exact(self, reading: Reading) -> tuple[CassetteRecord, ...]:
        """The recordings of an exact fingerprint; where a file told it, the rest must agree."""
        found = self.store.lookup_exact(reading.exact)
        if not any(each.told for each in found):
            return found
        if reading.endpoint.cls == "side":
            return tuple(each for each in found if not each.told or _address(each) == _address(reading))
        alike = {each.seq for each in self.store.lookup_normalised(reading.fingerprint)}
        return tuple(each for each in found if not each.told or each.seq in alike)

    def _side(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        if mode != "replay":
            return self._forward(reading, step, record=mode != "passthrough")
        candidates = self._by_exact(reading)
        if not candidates:
            miss = Miss("This side request was never recorded.")
            return self._refuse(reading, step, "miss", UNKNOWN_SIDE_STATUS, miss)
        memory = step.session.memory
        chosen = next((each for each in candidates if each.seq not in memory.used), candidates[-1])
        memory.used.add(chosen.seq)
        headers = (
            *chosen.answer.headers,
            (ANSWERED, REPLAYED),
            ("x-rewind-tier", "exact"),
            ("x-rewind-cassette", chosen.id),
            *step_headers(step, reading),
        )
        return Replay(reading, step, "exact", chosen, self.store.answer(chosen), "", headers)

    def _socket(self, reading: Reading, step: Step, mode: Mode) -> Decision:
        passes = not reading.endpoint.model_socket or self.settings.socket == "pass"
        if mode == "passthrough" or (mode != "replay" and passes):
            return self._forward(reading, step, record=False)
        if reading.endpoint.model_socket:
            if self.settings.socket == "serve" and reading.target.method == "GET":
                return Serve(reading, step)
            miss = Miss("This WebSocket is not recorded: send the request by POST instead.")
            return self._refuse(reading, step, "miss", SOCKET_STATUS, miss)
        miss = Miss("This WebSocket cannot be replayed.")
        refused = self._refuse(reading, step, "miss", REFUSED_STATUS, miss)
        # Nothing else will be asked in its place: it counts as the model call that it is.
        return replace(refused, cls="model") if reading.endpoint.realtime else refused

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
            (ANSWERED, "recording" if record else "passed"),
            ("x-rewind-tier", "recorded" if record else "passed"),
            *step_headers(step, reading),
        )
        cls = reading.endpoint.cls
        after_replay = cls == "model" and step.session.replayed
        return Forward(reading, step, cls, record, headers, after_replay)

    def _refuse(self, reading: Reading, step: Step, tier: Tier, status: int, miss: Miss) -> Refuse:
        body = dumps(ADAPTERS[reading.error_wire].error(status, refusal_text(miss)))
        headers = (*_refusal_headers(tier), *step_headers(step, reading))
        return Refuse(reading, step, reading.endpoint.cls, tier, status, body, headers, miss)


def _address(of: CassetteRecord | Reading) -> tuple[object, ...]:
    request = of.request if isinstance(of, CassetteRecord) else of.record
    return request.method, request.host, request.path, request.query


def refuse_failed(step: Step, cls: EndpointClass, error: BaseException) -> Refuse:
    """The refusal of a request that an exception of ours kept from being decided (DESIGN §14)."""
    # Our own errors are sentences without secrets; a foreign one may quote the value it choked on.
    why = str(error) if isinstance(error, RewindError) else type(error).__name__
    miss = Miss(f"Rewind failed while it looked for one ({why}); its log has the traceback.")
    return _refuse_unread(step, "failed", cls, miss)


def refuse_mode(step: Step, asked: str) -> Refuse:
    """The refusal of a request whose `x-rewind-mode` is none that a request may ask for."""
    said = header_safe(asked, 40)
    miss = Miss(f"x-rewind-mode says {said!r}; a request may ask for `replay` only, or leave it out.")
    return _refuse_unread(step, "miss", "model", miss)


def _refuse_unread(step: Step, tier: Tier, cls: EndpointClass, miss: Miss) -> Refuse:
    """A refusal that every wire's clients can read: each looks for `error.message`."""
    body = dumps({"type": "error", "error": {"type": "invalid_request_error", "message": refusal_text(miss)}})
    headers = (*_refusal_headers(tier), ("x-rewind-step", step.id))
    return Refuse(None, step, cls, tier, REFUSED_STATUS, body, headers, miss)


def refusal_text(miss: Miss) -> str:
    """The message of a refusal: it starts the same way every time, for people and for scripts."""
    return f"{NO_RECORDING}. {miss.text()}"


def _refusal_headers(tier: Tier) -> tuple[Header, ...]:
    return (
        ("content-type", "application/json"),
        ("x-should-retry", "false"),
        (ANSWERED, REFUSED),
        ("x-rewind-tier", tier),
    )
