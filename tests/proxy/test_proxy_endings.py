"""How proxies end: exit statuses, killed processes, full and unwritable disks, two proxies on a store."""

from __future__ import annotations

import json
import re
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proxy.calls import CHAT, CHAT_SSE, OPENAI, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import cassettes, recorded, steps_of, until
from proxy.test_proxy_options import not_started
from proxy.test_proxy_sockets import upgrade
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.store import Store
from support import behaviours
from support.children import Child, environment
from support.client import Client
from support.proxies import LISTENING, SCRIPT, Proxy
from support.sockets import SocketLog

REPLAY = {"mode": "replay"}


def test_a_refused_model_call_ends_mitmdump_with_4(start: Start, stopped: FakeProvider) -> None:
    """Plain mitmdump tells CI that something was not recorded, with the reason in its summary."""
    with start(provider=stopped, settings=REPLAY) as running:
        CHAT.once(running, new_prompt())
        ended = running.stop()
    assert ended.status == 4
    assert "rewind · replay · 1 call: 1 refused" in ended.output
    assert "Traceback" not in ended.output


def test_what_is_no_model_call_is_no_refusal(start: Start, stopped: FakeProvider) -> None:
    """Side 404s, telemetry, logins, a 426 and an unknown host that is kept out are told, and end with 0."""
    with start(provider=stopped, settings={**REPLAY, "unknown": "refuse"}) as running:
        with Client(running, OPENAI) as client:
            assert client.get("/v1/models").status == 404
            assert client.post("/v1/traces/ingest", b"{}").status == 404
            assert client.post("/v1/oauth/token", b"{}").status == 400
        assert upgrade(running, "/v1/responses", "s").status == 426
        with Client(running, "nobody.invalid", tls=False) as client:
            assert client.get("/").status == 403
        ended = running.stop()
    assert ended.status == 0
    said = "rewind · replay · 0 calls · 4 side · no model call arrived · refused unknown nobody.invalid"
    assert said in ended.output


def test_a_hit_ends_with_0(start: Start, stage: Stage, live: Proxy) -> None:
    """A run that was answered whole is a success."""
    prompt = new_prompt()
    CHAT.once(live, prompt)
    recorded(live.store, prompt)
    with start(provider=stage.provider, settings=REPLAY, store=live.store) as running:
        CHAT.once(running, prompt)
        assert running.stop().status == 0


@pytest.mark.parametrize(("tool", "number"), [("script", signal.SIGTERM), ("proxy", signal.SIGINT)])
def test_a_proxy_ends_at_once_with_its_work_done(
    start: Start, stage: Stage, tool: Any, number: signal.Signals
) -> None:
    """Told to end right after an answer it writes what is left; a live one ends with 0, refused or not."""
    prompt = new_prompt()
    with start(provider=stage.provider, tool=tool) as running:
        CHAT.once(running, new_prompt(), headers={"x-rewind-mode": "replay"})
        CHAT.once(running, prompt)
        ended = running.child.stop(number)
    assert ended.status == 0
    assert len(cassettes(running.store, prompt)) == 1


def test_a_proxy_ends_while_an_answer_is_on_its_way(start: Start, stage: Stage) -> None:
    """A call that is not over when the proxy ends is not recorded, and is in the log as that."""
    stage.behaviour = behaviours.stall(1)
    prompt = new_prompt()
    with start(provider=stage.provider, settings={"session": "late"}) as running:
        client = threading.Thread(target=lambda: CHAT_SSE.once(running, prompt))
        client.start()
        until(lambda: stage.heard(prompt))
        running.stop()
        client.join()
    [step] = steps_of(running.store, "late")
    assert (step.tier, step.cassette) == ("passed", None)
    assert cassettes(running.store, prompt) == []


def test_a_killed_proxy_leaves_whole_exchanges(start: Start, stage: Stage) -> None:
    """kill -9 in the middle of writing: the store opens, and each of its exchanges is whole and replays."""
    prompts = [f"{new_prompt()} {'filler ' * 3000}" for _ in range(40)]
    answers: dict[str, bytes] = {}

    def ask(some: list[str], running: Proxy) -> None:
        try:
            for prompt in some:
                answers[prompt] = CHAT.once(running, prompt).body
        except (ConnectionError, OSError):
            pass  # the proxy was killed: that is the test

    with start(provider=stage.provider) as running:
        clients = [threading.Thread(target=ask, args=(prompts[at::4], running)) for at in range(4)]
        for client in clients:
            client.start()
        until(lambda: len(answers) >= 8)
        assert running.child.stop(signal.SIGKILL).status == -signal.SIGKILL
        for client in clients:
            client.join()
    with Store.open(running.store, settings_digest="0", readonly=True) as store:
        bodies = [dumps(store.request_body(record)) for record in store.cassettes()]
    kept = [prompt for prompt in prompts if any(prompt.encode() in body for body in bodies)]
    assert len(kept) == len(bodies) > 0
    with start(provider=stage.provider, settings=REPLAY) as again:
        for prompt in kept:
            assert CHAT.once(again, prompt).body == answers.get(prompt, stage.said(prompt))


def test_a_store_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    """Below a file there can be no folder: exit 1, and the message names it."""
    (tmp_path / "file").write_text("")
    store = tmp_path / "file" / "store"
    ended = not_started(tmp_path, "--set", f"rewind_store={store}", "--set", "rewind_mode=replay")
    assert ended.status == 1
    assert str(store) in ended.output


def test_a_store_that_is_damaged_stops_the_start(tmp_path: Path) -> None:
    """A file that is no store is named, and left as it is."""
    content = b"not lmdb" * 4000
    generation = tmp_path / "store" / "1"
    generation.mkdir(parents=True)
    (generation / "data.mdb").write_bytes(content)
    (tmp_path / "store" / "CURRENT").write_text("1\n")
    ended = not_started(tmp_path, "--set", f"rewind_store={tmp_path / 'store'}")
    assert ended.status == 1
    assert str(generation) in ended.output
    assert (generation / "data.mdb").read_bytes() == content


def files_of(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Content and time of every file, but for LMDB's own table of readers."""
    return {
        file: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file() and file.name != "lock.mdb"
    }


def test_a_store_that_cannot_be_written_replays(start: Start, stage: Stage) -> None:
    """A committed store on a read-only disk answers and refuses; nothing in it changes.

    Its log is elsewhere, so no refusal says that `rewind review` knows of it.
    """
    prompt = new_prompt()
    with start(provider=stage.provider) as running:
        recording = CHAT.once(running, prompt)
    before = files_of(running.store)
    settings = {**REPLAY, "ignore": ["model"]}
    options = ["-s", str(Path(__file__).with_name("unwritable.py"))]
    with start(provider=stage.provider, settings=settings, options=options) as running:
        got = CHAT.once(running, prompt, model="m2")
        assert (got.headers["x-rewind-tier"], got.body) == ("normalised", recording.body)
        refused = CHAT.once(running, new_prompt())
        assert (refused.status, b"rewind review" in refused.body) == (400, False)
        ended = running.stop()
    assert files_of(running.store) == before
    assert f"{running.store} cannot be written" in ended.output
    assert ended.status == 4


def big_prompt() -> str:
    """A prompt that no compression makes small."""
    return f"{new_prompt()} {secrets.token_hex(300_000)}"


def test_a_full_disk_costs_the_recording_and_nothing_else(start: Start, stage: Stage, tmp_path: Path) -> None:
    """The client has its answer, hits go on, the loss is told; with room again it records again.

    Not even a log that cannot be written keeps the proxy from ending with its report.
    """
    report, known, lost, kept = tmp_path / "report.json", new_prompt(), big_prompt(), big_prompt()
    options = [*CONTROL, "--report", str(report)]
    with start(provider=stage.provider, options=options, tool="dump") as running:
        recording = CHAT.once(running, known)
        recorded(running.store, known)
        tell(running, "limit", "bytes", "200000")
        got = CHAT.once(running, lost, headers={"x-rewind-session": "full"})
        assert (got.status, got.body) == (200, stage.said(lost))
        running.child.wait_for(re.compile(r"rewind: .*/store/1 .*full"))
        assert CHAT.once(running, known).body == recording.body
        tell(running, "limit", "bytes", "")
        [step] = steps_of(running.store, "full")
        assert (step.tier, step.cassette, "full" in step.reason) == ("failed", None, True)
        CHAT.once(running, kept)
        recorded(running.store, kept)
        tell(running, "breaks", "log.start_run", "1")
        tell(running, "breaks", "log.append", "1")
        CHAT.once(running, known)
        ended = running.stop()
    assert (ended.status, "is not in the log" in ended.output) == (0, True)
    counted = json.loads(report.read_text())
    assert (counted["recorded"], counted["exact"], counted["failed"]) == (2, 2, 1)
    assert cassettes(running.store, lost) == []


def test_two_proxies_share_a_store(start: Start, live: Proxy, stage: Stage) -> None:
    """What one records the other replays, while both write."""
    prompts = [[new_prompt() for _ in range(12)] for _ in range(2)]

    def ask(running: Proxy, mine: Sequence[str]) -> None:
        for prompt in mine:
            CHAT.once(running, prompt)

    with start(provider=stage.provider, store=live.store) as other:
        pairs = ((live, prompts[0]), (other, prompts[1]))
        clients = [threading.Thread(target=ask, args=pair) for pair in pairs]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        for running, theirs in ((live, prompts[1]), (other, prompts[0])):
            for prompt in theirs:
                recorded(live.store, prompt)
                assert CHAT.once(running, prompt).headers["x-rewind"] == "replayed"


def test_a_script_that_is_reloaded_goes_on(tmp_path: Path, stage: Stage, confdir: Path) -> None:
    """mitmproxy loads a changed script anew: the store is closed and opened, recordings answer as before."""
    script = tmp_path / "rewind.py"
    script.write_text(SCRIPT.read_text())
    argv = [str(Path(sys.executable).with_name("mitmdump")), "-s", str(script), "--listen-host", "127.0.0.1"]
    argv += ["--listen-port", "0", "--set", f"confdir={confdir}"]
    env = environment(tmp_path, REWIND_UPSTREAM=stage.provider.upstream)
    child = Child(argv, env, tmp_path)
    try:
        port = int(child.wait_for(LISTENING)[1])
        log = SocketLog(tmp_path / "sockets.jsonl")
        running = Proxy(child, port, confdir, tmp_path / ".rewind" / "store", log)
        prompt = new_prompt()
        recording = CHAT.once(running, prompt)
        script.write_text(f"{SCRIPT.read_text()}\n# changed\n")
        child.wait_for(re.compile("rewind.py.*rewind.py", re.DOTALL))
        until(lambda: CHAT.once(running, prompt).headers["x-rewind"] == "replayed")
        assert CHAT.once(running, prompt).body == recording.body
        assert CHAT.once(running, new_prompt()).headers["x-rewind"] == "recording"
    finally:
        ended = child.stop()
    assert (ended.status, "Traceback" in ended.output) == (0, False)


def names_in(folder: Path) -> set[Path]:
    """Every name below a folder."""
    return set(folder.rglob("*"))


def test_no_name_changes_while_a_proxy_runs(start: Start, stage: Stage) -> None:
    """Agents list the project in their prompts: a listing is the same before and after a recording."""
    with start(provider=stage.provider) as running:
        CHAT.once(running, new_prompt())
        steps_of(running.store, "", 1)
        project = running.store.parent.parent
        before = names_in(project)
        CHAT.once(running, new_prompt())
        steps_of(running.store, "", 2)
        assert names_in(project) == before
    assert names_in(project) == before
    assert (running.store.parent / ".gitignore").read_text() == "*\n"
