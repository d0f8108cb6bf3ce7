"""What the engine decides, and the place of a call in its session: plain values (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rewind_proxy.canonical.model import EndpointClass, Tier
from rewind_proxy.faults import FAULT, Fault
from rewind_proxy.matching.choice import Memory
from rewind_proxy.matching.miss import Miss
from rewind_proxy.matching.reading import Reading
from rewind_proxy.store import Answer
from rewind_proxy.store.records import CassetteRecord, RunRecord

NOTE = "x-rewind-note"
ANSWERED = "x-rewind"
"""The header that says who gave an answer: `recording` and `passed` are the provider's."""
REPLAYED, REFUSED = "replayed", "refused"

Header: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Session:
    """One client session: a session name, or the life of the proxy. It is one run of the log."""

    run: RunRecord
    memory: Memory = field(default_factory=Memory)
    calls: int = 0
    """Steps given out, model calls and others."""
    steps: int = 0
    """Model calls: what `rewind_from_step` counts."""
    turns: int = 0
    """Generations asked for: what `rewind_fault` counts."""
    replayed: bool = False
    """Whether a model call of this session was answered from the store."""

    def next_turn(self) -> int:
        """The number of a generation that is asked for now."""
        self.turns += 1
        return self.turns


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
    fault: Fault | None = None


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
    fault: Fault | None = None


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


@dataclass(frozen=True, slots=True)
class Serve:
    """Accept a model's WebSocket ourselves: each turn on it is decided as the POST that it stands for."""

    reading: Reading
    step: Step


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with a provider's error, made on purpose (`rewind_fault`); nothing goes upstream."""

    reading: Reading
    step: Step
    fault: Fault
    status: int
    body: bytes
    headers: tuple[Header, ...]


Decision: TypeAlias = Replay | Forward | Refuse | Serve | Fail


PASSED: tuple[Header, ...] = ((ANSWERED, "passed"), ("x-rewind-tier", "passed"))
"""Of an answer that is not kept."""


def unread(step: Step, tier: Tier) -> Forward:
    """To forward a request of which nothing is known."""
    headers = ((ANSWERED, "passed"), ("x-rewind-tier", tier), ("x-rewind-step", step.id))
    return Forward(None, step, "model", record=False, headers=headers)


def unrecorded(forward: Forward) -> Forward:
    """The same call, whose answer is not kept after all."""
    others = (each for each in forward.headers if each[0] not in (ANSWERED, "x-rewind-tier"))
    return replace(forward, record=False, headers=(*PASSED, *others))


def step_headers(step: Step, reading: Reading) -> tuple[Header, ...]:
    """What tells a client which step its call was, and by which fingerprint it is found."""
    return ("x-rewind-step", step.id), ("x-rewind-fingerprint", reading.fingerprint[:12])


def is_ours(headers: Iterable[Header]) -> bool:
    """Whether an answer with these headers was given by Rewind, and not by a provider."""
    told = {name.lower(): value for name, value in headers}
    return told.get(ANSWERED) in (REPLAYED, REFUSED) or told.get(NOTE, "").startswith(FAULT)


def header_safe(text: str, limit: int = 900) -> str:
    """`text` as a header value: printable ASCII on one line."""
    safe = "".join(char if " " <= char <= "~" else "?" for char in text)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."
