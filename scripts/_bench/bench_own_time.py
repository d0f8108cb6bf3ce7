"""Own time per hit, in process: what reading a request and finding its answer costs, without mitmproxy.

First sight is a body that shares no text with any before; history seen is the same session one turn later.
Times are those of the processor for this thread, since other work on the machine is not Rewind's; the
yardstick beside them is `json.loads` of the same bytes in the same run.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_bodies import SIZES, Agent, Wire
from bench_figures import Figure, Report, median

from rewind_proxy.canonical.document import Document
from rewind_proxy.canonical.documents import Documents
from rewind_proxy.canonical.fingerprint import HASH_VERSION, Normaliser, settings_digest
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.engine import Engine, Replay, Session, Step
from rewind_proxy.matching import reading
from rewind_proxy.matching.reading import RawRequest, RequestReader
from rewind_proxy.settings import Settings
from rewind_proxy.store import AnswerRecord, Exchange, Store
from rewind_proxy.store.records import RunRecord
from rewind_proxy.wire import ADAPTERS, HostTable

TABLE = HostTable({})
BUDGETS = {"4 KB": (0.25, 0.15), "64 KB": (1.5, 0.6), "1 MB": (15.0, 7.0)}
_AGENTS = {"4 KB": 40, "64 KB": 16, "1 MB": 3}
ANSWER = b'data: {"type":"response.completed","response":{"status":"completed"}}\n\n'


class Desk:
    """An engine on a real store."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(store=folder, mode="replay")
        match = self.settings.match_settings
        self.digest = settings_digest(match)
        self.redactor = Redactor()
        self.store = Store.open(folder, settings_digest=self.digest, redaction=self.redactor.rules)
        self.reader = self.new_reader()
        self.engine = Engine(self.settings, self.reader, self.store)
        self.session = Session(RunRecord(id="bench", mode="replay", started_at=0.0))

    def new_reader(self) -> RequestReader:
        """A reader that has seen nothing yet."""
        return RequestReader(TABLE, Redactor(), self.settings.match_settings, self.settings.max_body)

    def record(
        self, request: RawRequest, answer: bytes = ANSWER, *, reader: RequestReader | None = None
    ) -> None:
        """Store an answer to a request, as a reader of its own reads it unless one is given."""
        host = TABLE.find(request.host, 443)
        assert host is not None
        read = (reader or self.new_reader()).read(request, host)
        self.store.put(
            Exchange(
                request=read.record,
                body=read.body,
                answer=AnswerRecord(status=200, content_type="text/event-stream"),
                answer_body=answer,
                chunks=((len(answer), 1),),
                exact=read.exact,
                normalised=read.fingerprint,
                links=read.links,
                sketched=read.sketched,
                run="recorded",
                recorded_at=0.0,
                hash_version=HASH_VERSION,
            )
        )

    def hit(self, request: RawRequest) -> float:
        """Milliseconds until the answer of a request is found. Raises when it is none."""
        host = TABLE.find(request.host, 443)
        assert host is not None
        self.session.calls += 1
        step = Step(self.session, self.session.calls, 0.0)
        begun = time.thread_time()
        decision = self.engine.decide(request, host, step, mode="replay")
        taken = time.thread_time() - begun
        if not isinstance(decision, Replay):
            raise RuntimeError(f"no hit: {decision}")
        return taken * 1000


def measure(report: Report, folder: Path, *, quick: bool, wire: Wire = "responses") -> None:
    """All three sizes, whole and by stage."""
    desk = Desk(folder / "own-time")
    for seed, (name, size) in enumerate(SIZES.items()):
        count = max(1, _AGENTS[name] // (4 if quick else 1))
        agents = [Agent(10_000 * (seed + 1) + index, size, wire) for index in range(2 * count + 1)]
        pairs = [(agent.request(), agent.request(agent.turns + 1)) for agent in agents]
        for agent in agents:  # a live request differs in what is ignored: the normalised tier answers
            for turns in (agent.turns, agent.turns + 1):
                desk.record(agent.request(turns, model="gpt-recorded"))
        for request in pairs.pop():
            desk.hit(request)  # a warm process: imports, compiled patterns
        first, seen, plain = [], [], []
        for before, after in pairs[:count]:
            plain.append(_loads(before.body))
            first.append(desk.hit(before))
            seen.append(desk.hit(after))
        for kind, values, budget in zip(
            ("first sight", "history seen"), (first, seen), BUDGETS[name], strict=True
        ):
            ratio = median(values) / median(plain)
            report.add(
                Figure(
                    "own time per hit",
                    f"{name}, {kind}",
                    median(values),
                    "ms",
                    budget,
                    detail=f"{ratio:.1f} × json.loads",
                )
            )
        with stages() as at_first:
            for before, _ in pairs[count:]:
                desk.hit(before)
                at_first.next()
        with stages() as again:
            for _, after in pairs[count:]:
                desk.hit(after)
                again.next()
        for stage in STAGES:
            detail = f"history seen: {again.median(stage):.3f} ms"
            report.add(Figure("of which", f"{name}, {stage}", at_first.median(stage), "ms", detail=detail))
    desk.store.close()


def _loads(body: bytes) -> float:
    begun = time.thread_time()
    json.loads(body)
    return (time.thread_time() - begun) * 1000


STAGES = ("decode and parse", "exact", "redact", "adapter", "normalise", "look-up")


class Spent:
    """Milliseconds spent in each stage, by hit."""

    def __init__(self) -> None:
        self._hits: list[dict[str, float]] = [{}]

    def add(self, stage: str, milliseconds: float) -> None:
        """Count for the hit at hand."""
        self._hits[-1][stage] = self._hits[-1].get(stage, 0.0) + milliseconds

    def next(self) -> None:
        """That hit is over."""
        self._hits.append({})

    def median(self, stage: str) -> float:
        """Of all hits that are over."""
        return median([hit.get(stage, 0.0) for hit in self._hits[:-1]])


@contextmanager
def stages() -> Iterator[Spent]:
    """What is spent in each stage while the block runs."""
    spent = Spent()

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **more: Any) -> Any:
            begun = time.thread_time()
            try:
                return function(*args, **more)
            finally:
                spent.add(stage, (time.thread_time() - begun) * 1000)

        return wrapper

    places: list[tuple[Any, str, str]] = [
        (reading, "decode", "decode and parse"),
        (Documents, "read", "decode and parse"),
        (Document, "digests", "exact"),
        (Document, "redacted", "redact"),
        *((type(adapter), "request", "adapter") for adapter in ADAPTERS.values()),
        (Normaliser, "normalise", "normalise"),
        (Store, "lookup_exact", "look-up"),
        (Store, "lookup_normalised", "look-up"),
        (Store, "answer", "look-up"),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    try:
        for (owner, name, original), (_, _, stage) in zip(originals, places, strict=True):
            setattr(owner, name, timed(stage, original))
        yield spent
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
