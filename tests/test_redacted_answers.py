"""`redact_answers` while recording: the client's answer passes as it is, what is stored is masked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from case_tables import fake
from matching.recorded_projects import HOSTS, START, request, settings_at, unseen
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.engine import Forward, Replay
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.recording import Captured

KEY = fake("sk-proj-", 40)


def stream() -> tuple[bytes, ...]:
    """An answer that says a key, cut in the middle of it."""
    deltas = [f"It is {KEY[:20]}", f"{KEY[20:]}, keep it."]
    events = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return (*(f"data: {json.dumps(event)}\n\n".encode() for event in events), b"data: [DONE]\n\n")


@pytest.mark.parametrize("redact", [True, False])
def test_what_is_stored_of_an_answer_is_masked_when_asked_for(tmp_path: Path, redact: bool) -> None:
    """Split over deltas as it is; count of events and of chunks stay, and it is replayed like any other."""
    settings = settings_at(tmp_path, redact_answers=redact)
    runtime = Runtime(settings, HOSTS, unseen)
    live = request({"model": "m1", "stream": True, "messages": [{"role": "user", "content": "my key?"}]})
    host = HOSTS.find(live.host, live.port)
    assert host is not None
    forward = asyncio.run(runtime.decide(live, host, runtime.step("s", "agent/1", START), "auto"))
    assert isinstance(forward, Forward)
    chunks = tuple((piece, at) for at, piece in enumerate(stream()))
    runtime.keep(forward, Captured(200, (("content-type", "text/event-stream"),), chunks, START))
    runtime.close(START)
    assert bool(scan(tmp_path / ".rewind", [KEY[:20], KEY[20:]]).found) == (not redact)
    runtime = Runtime(settings, HOSTS, unseen)
    replay = asyncio.run(runtime.decide(live, host, runtime.step("s", "agent/1", START), "replay"))
    runtime.close(START)
    assert isinstance(replay, Replay)
    assert replay.answer.body.count(b"data: ") == 4
    assert [at for _, at in replay.answer.chunks] == [0, 1, 2, 3]
    assert sum(length for length, _ in replay.answer.chunks) == len(replay.answer.body)
    assert (b"[REDACTED]" in replay.answer.body) == redact
    assert (replay.answer.body == b"".join(stream())) == (not redact)
