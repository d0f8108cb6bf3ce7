"""What is ours and breaks: replay refuses, live modes forward untouched, no client pays (DESIGN §14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import lmdb
import pytest

from proxy.calls import CHAT, CHAT_SSE, RESPONSES_SSE, Ask, error_message, new_prompt
from proxy.conftest import Stage, tell
from proxy.looking import cassettes, record, steps_of, until
from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.store.records import CassetteRecord
from support.client import Client, Got
from support.proxies import Proxy, proxy

DECIDING = [
    "engine.decide_read",
    "engine.reader.read",
    "store.lookup_exact",
    "engine.reader._understand",
]
"""Methods between a request and its decision."""


@pytest.fixture
def breaking(live: Proxy, offline: Proxy) -> Iterator[Callable[[Proxy, str], None]]:
    """Breaks a method of a proxy until the end of the test."""
    broken: list[Proxy] = []

    def breaks(running: Proxy, method: str) -> None:
        broken.append(running)
        assert tell(running, "breaks", method, "1").status == 200

    yield breaks
    for running in broken:
        assert tell(running, "breaks", "all", "").status == 200


Breaking = Callable[[Proxy, str], None]


@pytest.mark.parametrize("method", DECIDING)
@pytest.mark.parametrize("ask", [CHAT, RESPONSES_SSE], ids=lambda ask: ask.name)
def test_a_fault_in_replay_is_a_refusal(
    live: Proxy, offline: Proxy, stopped: FakeProvider, breaking: Breaking, method: str, ask: Ask
) -> None:
    """The client gets 400 with the reason, the step is `failed`, the log has the traceback."""
    prompt, session = new_prompt(), new_prompt()
    record(live, ask, prompt)
    offline.sockets.clear()
    breaking(offline, method)
    got = ask.once(offline, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.headers["x-should-retry"]) == (400, "false")
    assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("refused", "failed")
    assert error_message(got).startswith("rewind: no recording. Rewind failed while it looked for one")
    [step] = steps_of(offline.store, session)
    assert (step.tier, step.status) == ("failed", 400)
    until(lambda: f"FaultError in {method}" in offline.child.output)
    assert offline.sockets.outward(stopped.port) == []


def test_a_fault_before_there_is_a_step_closes_the_connection(
    offline: Proxy, stopped: FakeProvider, breaking: Breaking
) -> None:
    """Where not even a refusal can be made, replay says nothing rather than to go live."""
    offline.sockets.clear()
    breaking(offline, "step")
    with pytest.raises(ConnectionError):
        CHAT.once(offline, new_prompt())
    assert offline.sockets.outward(stopped.port) == []


def test_a_fault_after_the_answer_was_found_costs_nothing(
    live: Proxy, offline: Proxy, breaking: Breaking
) -> None:
    """When only the bookkeeping fails, the recorded answer goes out all the same."""
    prompt = new_prompt()
    recorded = record(live, CHAT, prompt)
    breaking(offline, "note")
    got = CHAT.once(offline, prompt)
    assert (got.status, got.body) == (200, recorded.body)


@pytest.mark.parametrize("method", [*DECIDING, "step"])
@pytest.mark.parametrize("ask", [CHAT, RESPONSES_SSE], ids=lambda ask: ask.name)
def test_a_fault_in_a_live_mode_forwards_untouched(
    live: Proxy, stage: Stage, breaking: Breaking, method: str, ask: Ask
) -> None:
    """The provider gets the client's bytes, the client the provider's; nothing is stored."""
    prompt, session = new_prompt(), new_prompt()
    body = f'  {{"messages":[{{"role":"user","content":"{prompt}"}}],"input":"{prompt}","stream":true}} \n'
    breaking(live, method)
    with Client(live, ask.host) as client:
        got = client.post(ask.path, body.encode(), {"x-rewind-session": session})
    [request] = stage.heard(prompt)
    assert request.body == body.encode()
    assert (got.status, got.cut, got.body) == (200, False, stage.said(prompt))
    if method != "step":
        assert (got.headers["x-rewind"], got.headers["x-rewind-tier"]) == ("passed", "failed")
        [step] = steps_of(live.store, session)
        assert (step.tier, step.cassette) == ("failed", None)
        assert "FaultError" in step.reason
    until(lambda: f"FaultError in {method}" in live.child.output)
    assert cassettes(live.store, prompt) == []


@pytest.mark.parametrize("method", ["keep", "_record", "store.put", "_recorder.record"])
@pytest.mark.parametrize("ask", [CHAT, CHAT_SSE], ids=lambda ask: ask.name)
def test_a_fault_while_recording_is_not_the_clients(
    live: Proxy, stage: Stage, breaking: Breaking, method: str, ask: Ask
) -> None:
    """After forwarding, the answer is whole and unchanged whatever fails of ours."""
    prompt, session = new_prompt(), new_prompt()
    breaking(live, method)
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    assert (got.status, got.cut, got.body) == (200, False, stage.said(prompt))
    live.child.wait_for(re.compile(f"FaultError in {method}"))
    [step] = steps_of(live.store, session)
    assert (step.tier, step.cassette) == ("failed", None)
    assert cassettes(live.store, prompt) == []


# A store whose values are garbage: each kind of damage has a prompt of its own, and one is left whole.

GARBAGE = b"1\x28\xb5\x2f\xfd garbage"
PLAIN_GARBAGE = b"0{}"


def _of_record(record: CassetteRecord) -> tuple[str, bytes]:
    return "cassettes", b"r" + record.seq.to_bytes(8, "big")


def _of_structure(record: CassetteRecord) -> tuple[str, bytes]:
    return "cassettes", b"s" + record.seq.to_bytes(8, "big")


def _of_answer(record: CassetteRecord) -> tuple[str, bytes]:
    return "blobs", b"b" + bytes.fromhex(record.answer_sha256)


def _of_exact(record: CassetteRecord) -> tuple[str, bytes]:
    return "exact", bytes.fromhex(record.exact) + record.seq.to_bytes(8, "big")


Key = Callable[[CassetteRecord], tuple[str, bytes]]
Change = Callable[[bytes], bytes]
DAMAGE: Mapping[str, tuple[Key, Change]] = {
    "a record of garbage": (_of_record, lambda _: GARBAGE),
    "a record cut in half": (_of_record, lambda old: old[: len(old) // 2]),
    "an empty record": (_of_record, lambda _: b""),
    "a record that is other JSON": (_of_record, lambda _: PLAIN_GARBAGE),
    "a structure of garbage": (_of_structure, lambda _: GARBAGE),
    "a structure that is other JSON": (_of_structure, lambda _: PLAIN_GARBAGE),
    "an answer of garbage": (_of_answer, lambda _: GARBAGE),
    "an answer cut in half": (_of_answer, lambda old: old[: len(old) // 2]),
    "an answer that is another": (_of_answer, lambda _: b"0data: [DONE]\n\n"),
    "a flipped bit": (_of_answer, lambda old: old[:-1] + bytes([old[-1] ^ 1])),
    "an entry that leads elsewhere": (_of_exact, lambda _: b"\x00" * 32),
}


@dataclass(frozen=True)
class Damaged:
    """A store with one sound recording and one for each kind of damage, and two proxies that use it."""

    prompts: Mapping[str, str]
    sound: Got
    replaying: Proxy
    live: Proxy
    stage: Stage


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Iterator[Damaged]:
    """Record, damage the values while no proxy runs, start two proxies."""
    store = tmp_path_factory.mktemp("damaged") / "store"
    prompts = {kind: new_prompt() for kind in (*DAMAGE, "sound")}
    stage, settings = Stage(), {"mode": "replay"}
    with stage.provider:
        with proxy(tmp_path_factory.mktemp("a"), confdir, provider=stage.provider, store=store) as recording:
            answers = {kind: CHAT_SSE.once(recording, prompt) for kind, prompt in prompts.items()}
        found = {kind: cassettes(store, prompts[kind]) for kind in DAMAGE}
        for kind, (place, change) in DAMAGE.items():
            [record] = found[kind]
            rewrite(store, *place(record), change)
        with (
            proxy(
                tmp_path_factory.mktemp("b"), confdir, provider=stage.provider, store=store, settings=settings
            ) as replaying,
            proxy(tmp_path_factory.mktemp("c"), confdir, provider=stage.provider, store=store) as live,
        ):
            yield Damaged(prompts, answers["sound"], replaying, live, stage)


def rewrite(store: Path, table: str, key: bytes, change: Change) -> None:
    """Change one value of a store that nobody has open."""
    with lmdb.open(str(store / "1"), max_dbs=16, create=False) as environment:
        database = environment.open_db(table.encode(), create=False)
        with environment.begin(write=True, db=database) as txn:
            old = txn.get(key)
            assert old is not None
            txn.put(key, change(bytes(old)))


@pytest.mark.parametrize("kind", DAMAGE)
def test_garbage_in_the_store_is_never_an_answer(damaged: Damaged, kind: str) -> None:
    """Replay refuses, and names the cassette that is damaged and what to do; the others still replay."""
    heard = len(damaged.stage.provider.requests)
    got = CHAT_SSE.once(damaged.replaying, damaged.prompts[kind])
    assert (got.status, got.headers["x-rewind"]) == (400, "refused")
    assert re.search("recording [0-9a-f]{64} .*(damaged|does not match|rewind verify)", error_message(got))
    assert len(damaged.stage.provider.requests) == heard
    sound = CHAT_SSE.once(damaged.replaying, damaged.prompts["sound"])
    assert (sound.status, sound.body) == (200, damaged.sound.body)


@pytest.mark.parametrize("kind", DAMAGE)
def test_past_garbage_a_live_mode_asks_the_provider(damaged: Damaged, kind: str) -> None:
    """In `auto` a damaged recording costs a live call, and nothing else."""
    prompt = damaged.prompts[kind]
    before = len(damaged.stage.heard(prompt))
    got = CHAT_SSE.once(damaged.live, prompt)
    assert (got.status, got.cut, got.body.endswith(b"data: [DONE]\n\n")) == (200, False, True)
    assert got.headers["x-rewind"] in ("passed", "recording")
    assert len(damaged.stage.heard(prompt)) == before + 1
