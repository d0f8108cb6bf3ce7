"""Benches of the store: start-up and look-up by its size, refusals, and the size of a long session."""

from __future__ import annotations

import hashlib
import random
import time
from functools import partial
from pathlib import Path

from bench_bodies import Agent
from bench_figures import Figure, Report, alternate
from bench_own_time import ANSWER, TABLE, Desk
from bench_proxies import lean, running

from rewind_proxy.canonical.fingerprint import HASH_VERSION
from rewind_proxy.engine import Refuse, Step
from rewind_proxy.matching.reading import Reading
from rewind_proxy.store import AnswerRecord, Exchange, Sketched
from rewind_proxy.store.signature import SIGNATURE, SLOTS

_FEW = 1_000
_THRESHOLD = 0.85
_CANDIDATES = 8


def measure_sizes(report: Report, folder: Path, *, cassettes: int, quick: bool) -> None:
    """Start-up and look-up with few and with many cassettes; refusals among the many."""
    few, many = Desk(folder / "few"), Desk(folder / "many")
    for desk, count in ((few, _FEW), (many, cassettes)):
        _fill(desk, count)
    pick = random.Random(1)  # a repeatable choice
    lookups = 200 if quick else 1000

    def look_up(desk: Desk, count: int) -> float:
        names = [_hash("normalised", pick.randrange(count)) for _ in range(lookups)]
        begun = time.perf_counter()
        for name in names:
            if not desk.store.lookup_normalised(name):
                raise RuntimeError("a cassette is not where it should be")
        return (time.perf_counter() - begun) / lookups * 1e6

    times = alternate(
        3 if quick else 7, few=lambda: look_up(few, _FEW), many=lambda: look_up(many, cassettes)
    )
    report.add(
        Figure(
            "size of the store",
            f"look-up, {cassettes:,} against {_FEW:,} cassettes",
            times["many"] / times["few"],
            "×",
            1.3,
            detail=f"{times['many']:.0f} against {times['few']:.0f} µs",
        )
    )
    _measure_search(report, few, many, cassettes, quick=quick)
    _measure_refusal(report, many, cassettes, quick=quick)
    for desk in (few, many):
        desk.store.close()

    def start(name: str) -> float:
        settings = {"store": str(folder / name), "mode": "replay"}
        with running(lean(), folder, settings) as proxy:
            return proxy.ready_after

    starts = alternate(2 if quick else 5, few=lambda: start("few"), many=lambda: start("many"))
    report.add(
        Figure(
            "size of the store",
            f"start, {cassettes:,} against {_FEW:,} cassettes",
            starts["many"] / starts["few"],
            "×",
            1.2,
            detail=f"{starts['many']:.2f} against {starts['few']:.2f} s",
        )
    )


def _measure_search(report: Report, few: Desk, many: Desk, cassettes: int, *, quick: bool) -> None:
    """Finding the candidates of a pending request by its tokens, among few and among many."""
    read = _reading(few, Agent(1, 4096))
    pick = random.Random(2)  # a repeatable choice

    def search(desk: Desk, count: int) -> float:
        asked = bytearray(_signature(read, pick.randrange(count)))
        asked[SIGNATURE - 4 :] = b"diff"
        sketched = Sketched(lambda _: "", str, lambda: bytes(asked))
        begun = time.perf_counter()
        found = desk.store.similar(sketched, _THRESHOLD, _CANDIDATES)
        taken = time.perf_counter() - begun
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} candidates where one recording is alike")
        return taken * 1000

    times = alternate(
        21 if quick else 101, few=lambda: search(few, _FEW), many=lambda: search(many, cassettes)
    )
    report.add(
        Figure(
            "size of the store",
            f"candidates by tokens, {cassettes:,} against {_FEW:,} cassettes",
            times["many"] / times["few"],
            "×",
            detail=f"{times['many']:.2f} against {times['few']:.2f} ms",
        )
    )


def _measure_refusal(report: Report, desk: Desk, cassettes: int, *, quick: bool) -> None:
    agent = Agent(1, 4096)

    def refuse(question: int) -> float:
        request = agent.asking(question)
        host = TABLE.find(request.host, 443)
        assert host is not None
        begun = time.perf_counter()
        decision = desk.engine.decide(request, host, Step(desk.session, 1, 0.0), mode="replay")
        taken = (time.perf_counter() - begun) * 1000
        if not isinstance(decision, Refuse) or decision.miss.nearest is None:
            raise RuntimeError("no refusal with a nearest recording")
        return taken

    questions = iter(range(10**6, 2 * 10**6))
    times = alternate(5 if quick else 15, refusal=lambda: refuse(next(questions)))
    report.add(
        Figure(
            "size of the store",
            f"refusal with its nearest recording of {cassettes:,}",
            times["refusal"],
            "ms",
            100,
        )
    )


def _fill(desk: Desk, count: int) -> None:
    """Recordings that share all but their last message with one another."""
    agent = Agent(1, 4096)
    read = _reading(desk, agent)
    for index in range(count):
        exchange = Exchange(
            request=read.record,
            body=read.body,
            answer=AnswerRecord(status=200, content_type="text/event-stream"),
            answer_body=ANSWER,
            chunks=((len(ANSWER), 1),),
            exact=_hash("exact", index),
            normalised=_hash("normalised", index),
            links=(*read.links[:-1], _hash("link", index)),
            sketched=Sketched(lambda _: "", str, partial(_signature, read, index)),
            run=f"run-{index // 100:06}",
            recorded_at=0.0,
            hash_version=HASH_VERSION,
        )
        desk.store.put(exchange)


def _signature(read: Reading, index: int) -> bytes:
    """As of requests that share all but their last message."""
    shared = read.sketched.signature()[: SIGNATURE - SLOTS]
    return shared + hashlib.shake_128(_hash("end", index).encode()).digest(SLOTS)


def _reading(desk: Desk, agent: Agent) -> Reading:
    request = agent.asking(0)
    host = TABLE.find(request.host, 443)
    assert host is not None
    return desk.reader.read(request, host)


def _hash(kind: str, index: int) -> str:
    return hashlib.sha256(f"{kind} {index}".encode()).hexdigest()


def measure_session(report: Report, folder: Path, *, quick: bool) -> None:
    """What a long session takes in the store, against its last request and its answers."""
    turns = 60 if quick else 200
    desk = Desk(folder / "session")
    agent = Agent(5, 4096)
    answers = 0
    for turn in range(1, turns + 1):
        answer = ANSWER.replace(b"completed", b"completed %d" % turn, 1)
        answers += len(answer)
        desk.record(agent.request(turn), answer, reader=desk.reader)
    last = len(agent.encoded(turns))
    stats = desk.store.stats()
    desk.store.close()
    report.add(
        Figure(
            "stored size",
            f"a session of {turns} turns, of 3 × its last request plus its answers",
            stats.bytes_uncompressed / (3 * last + answers),
            "×",
            1.0,
            detail=f"{stats.bytes_uncompressed / 1024:.0f} KiB; last request {last / 1024:.0f} KiB",
        ),
        Figure(
            "stored size",
            "the same, compressed, with its indexes",
            stats.bytes_on_disk / (3 * last + answers),
            "×",
            1.0,
            detail=f"{stats.bytes_on_disk / 1024:.0f} KiB of file",
        ),
    )
