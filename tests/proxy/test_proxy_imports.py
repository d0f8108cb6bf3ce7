"""What a plain mitmdump saved, and folders of text recordings, replay through a real proxy."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.calls import ASKS, CHAT, CHAT_SSE, Ask, fake_credential, new_prompt
from proxy.conftest import Stage, Start
from rewind_proxy.cli.provider import FakeProvider
from support.children import Child, Finished, environment, rewind
from support.proxies import LISTENING, Proxy
from support.runs import Place, rewind_run

PROMPTS = {ask.name: f"Grüße 世界 {secrets.token_hex(8)}" for ask in ASKS}
KEY = fake_credential()
COMMAND = """
import json, sys, urllib.request
body = json.dumps({"model": "m1", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
url = "https://api.openai.com/v1/chat/completions"
print(urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})).read())
"""


def command(folder: Path, *argv: str | Path) -> Finished:
    """A verb, in a folder that is project and HOME."""
    return rewind(*argv, env=environment(folder), cwd=folder)


def told(finished: Finished) -> dict[str, Any]:
    """The JSON of a verb that went well."""
    assert finished.status == 0, finished.output
    value = finished.json
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True, slots=True)
class Saved:
    """What one mitmdump without our addon saved: the files `flows` and `x.har`."""

    folder: Path
    answers: Mapping[str, bytes]
    """By the name of what was asked."""
    provider: FakeProvider
    """It is stopped."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Each API was asked in each form, then an unknown host, then with a credential in the prompt."""
    folder = tmp_path_factory.mktemp("saved")
    answers: dict[str, bytes] = {}
    with Stage().provider as provider:
        argv: list[str | Path] = [Path(sys.executable).with_name("mitmdump")]
        argv += ["--mode", f"reverse:{provider.url}", "--set", "keep_host_header=true"]
        argv += ["--listen-host", "127.0.0.1", "--listen-port", "0", "--set", f"confdir={folder}"]
        argv += ["-w", folder / "flows", "--set", f"hardump={folder / 'x.har'}"]
        child = Child(argv, environment(folder), folder)
        try:
            port = int(child.wait_for(LISTENING)[1])
            for ask in ASKS:
                answers[ask.name] = asked_plainly(port, ask, PROMPTS[ask.name])
            asked_plainly(port, CHAT, "to a host that nobody knows", host="llm.corp.example")
            asked_plainly(port, CHAT, f"my key is {KEY}", key=KEY)
        finally:
            child.stop()
    return Saved(folder, answers, provider)


def asked_plainly(port: int, ask: Ask, prompt: str, *, host: str = "", key: str = "no-key-at-all") -> bytes:
    """Ask a provider through a reverse proxy that keeps the name of the host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"host": host or ask.host, "content-type": "application/json", "authorization": f"Bearer {key}"}
    connection.request("POST", ask.path.format(model="m1"), json.dumps(ask.body(prompt, "m1", 100)), headers)
    response = connection.getresponse()
    assert response.status == 200
    body = response.read()
    connection.close()
    return body


@pytest.mark.parametrize("name", ["flows", "x.har"])
def test_what_a_plain_mitmdump_saved_replays(name: str, saved: Saved, tmp_path: Path, start: Start) -> None:
    """Each call of each API, streamed or not, byte for byte, provider gone; no credential is stored."""
    file = tmp_path / "anything.txt"
    file.write_bytes((saved.folder / name).read_bytes())
    result = told(command(tmp_path, "import", file, "--session", "saved", "--json"))
    assert result["recordings"] == len(ASKS) + 1
    assert result["unknown_hosts"] == {"llm.corp.example": 1}
    assert (result["known"], result["left"]) == (0, {})
    again = told(command(tmp_path, "import", file, "--json", "--hosts", "llm.corp.example=chat_completions"))
    assert (again["recordings"], again["known"]) == (1, len(ASKS) + 1)
    runs = command(tmp_path, "runs", "--json").json
    assert isinstance(runs, list)
    assert [run["session"] for run in runs if isinstance(run, dict)] == ["saved"]
    written = [each for each in tmp_path.rglob("*") if each.is_file() and each != file]
    assert not any(KEY.encode() in each.read_bytes() for each in written)
    with start(provider=saved.provider, settings={"mode": "replay"}) as offline:
        for ask in ASKS:
            got = ask.once(offline, PROMPTS[ask.name])
            assert (got.status, got.headers["x-rewind"]) == (200, "replayed"), ask.name
            assert got.body == saved.answers[ask.name]


def test_a_flow_file_that_is_cut_gives_what_is_whole(saved: Saved, tmp_path: Path) -> None:
    """The rest is counted; a file that only begins like one is refused by name."""
    whole = (saved.folder / "flows").read_bytes()
    cut, fake = tmp_path / "cut", tmp_path / "fake"
    cut.write_bytes(whole[: len(whole) - 100])
    fake.write_bytes(b"9999:8:response;3:abc")
    result = told(command(tmp_path, "import", cut, "--json"))
    assert result["recordings"] > 3
    assert any("the file cannot be read from here on" in reason for reason in result["left"])
    refused = command(tmp_path, "import", fake)
    assert refused.status == 1
    assert f"{fake}: no flow file that this mitmproxy reads" in refused.stderr
    assert "Traceback" not in refused.output


def test_text_recordings_replay_with_their_pace_and_bytes(stage: Stage, start: Start, tmp_path: Path) -> None:
    """Recorded by the proxy, exported, imported into another store, asked again: the same bytes."""
    prompt = new_prompt()
    with start(provider=stage.provider) as live:
        first = CHAT_SSE.once(live, prompt)
    store, other = tmp_path / ".rewind" / "store", tmp_path / "other" / "store"
    exported = command(tmp_path, "export", "--store", store)
    lines = tmp_path / "all"
    lines.write_text(exported.stdout, encoding="utf-8")
    assert told(command(tmp_path, "import", lines, "--store", other, "--json"))["recordings"] == 1
    assert command(tmp_path, "export", "--store", other).stdout == exported.stdout
    with start(settings={"mode": "replay"}, store=other) as offline:
        again = CHAT_SSE.once(offline, prompt)
    assert (again.headers["x-rewind-tier"], again.body) == ("exact", first.body)


def ended(running: Proxy) -> str:
    """What a proxy had printed when it was stopped."""
    return running.stop().output


def test_a_folder_of_cassettes_goes_with_the_project(stage: Stage, start: Start, tmp_path: Path) -> None:
    """A plain mitmdump writes what it records; where the folder is read-only, a fresh store replays it."""
    folder = tmp_path / "cassettes"
    one, two = new_prompt(), new_prompt()
    settings = {"cassettes": str(folder), "session": "mine"}
    with start(provider=stage.provider, settings=settings) as live:
        said = CHAT.once(live, one).body
        ended(live)
    [file] = folder.rglob("*.json")
    assert file.parent.name == "mine"
    text = file.read_text(encoding="utf-8")
    with start(provider=stage.provider, settings=settings) as live:
        assert CHAT.once(live, one).headers["x-rewind"] == "replayed"
        CHAT_SSE.once(live, two)
        ended(live)
    assert len(list(folder.rglob("*.json"))) == 2
    assert file.read_text(encoding="utf-8") == text
    broken = folder / "broken.json"
    broken.write_text("<<<<<<< ours\n", encoding="utf-8")
    for each in [*folder.rglob("*"), folder]:
        each.chmod(each.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        replay = {**settings, "mode": "replay"}
        with start(settings=replay, store=tmp_path / "fresh" / "store") as offline:
            assert CHAT.once(offline, one).body == said
            assert CHAT_SSE.once(offline, two).headers["x-rewind-tier"] == "exact"
            assert f"a recording is not used: {broken}: not JSON" in ended(offline)
    finally:
        for each in [folder, *folder.rglob("*")]:
            each.chmod(each.stat().st_mode | stat.S_IWUSR)


def test_a_run_reports_what_it_read_and_wrote(stage: Stage, tmp_path: Path) -> None:
    """`rewind run` takes the folder from `rewind.toml`, reports what became of it, and names orphans."""
    prompt = new_prompt()
    places = [Place.make(tmp_path / name) for name in ("first", "second")]
    for place in places:
        (place.work / "rewind.toml").write_text("cassettes = '../../cassettes'\n", encoding="utf-8")
    (tmp_path / "cassettes").mkdir()
    other = tmp_path / "cassettes" / "other.json"
    other.write_text("{}", encoding="utf-8")
    argv = [sys.executable, "-c", COMMAND, prompt]
    store = tmp_path / "a" / "store"
    recorded = rewind_run(argv, places[0], mode="auto", store=store, provider=stage.provider)
    assert recorded.finished.status == 0, recorded.finished.output
    orphan = recorded.report["cassettes"].pop("orphans")
    assert recorded.report["cassettes"] == {"read": 0, "written": 1}
    assert [each["why"] for each in orphan] == ["no recording that `rewind export` wrote"]
    assert Path(orphan[0]["file"]).samefile(other)
    assert "not used: " in recorded.finished.stderr
    fresh = tmp_path / "b" / "store"
    replayed = rewind_run(argv, places[1], mode="replay", store=fresh, provider=stage.provider)
    assert replayed.finished.status == 0, replayed.finished.output
    assert (replayed.report["cassettes"]["read"], replayed.report["cassettes"]["written"]) == (1, 0)
    assert replayed.finished.stdout == recorded.finished.stdout


def test_what_cannot_be_written_back_is_a_failed_recording(stage: Stage, tmp_path: Path) -> None:
    """The client has its answer, the store its recording; the exit status says that the folder has not."""
    place = Place.make(tmp_path)
    argv = [sys.executable, "-c", COMMAND, new_prompt()]
    options = ["--cassettes", str(Path(os.devnull) / "cassettes")]
    store = tmp_path / "store"
    run = rewind_run(argv, place, mode="auto", store=store, provider=stage.provider, options=options)
    assert (run.finished.status, run.report["recorded"], run.report["failed"]) == (5, 1, 1)
    assert run.report["cassettes"] == {"read": 0, "written": 0, "orphans": []}
