"""Replay stays shut: when the add-on goes, whatever a mode header says, by any spelling of an address."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import RemoteDisconnected
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader

from proxy.calls import CHAT, CHAT_PATH, CHAT_SSE, OPENAI, fake_credential, new_prompt
from proxy.conftest import CONTROL, Stage, Start, streaming, tell
from proxy.looking import record
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.mitm.traffic import MASK
from support.behaviours import late, paced
from support.children import PYTHON_PATH, Child, environment
from support.client import Client
from support.proxies import LISTENING, SCRIPT, Proxy


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.05)


@contextmanager
def own_script(tmp_path: Path, confdir: Path, stage: Stage, mode: str, *others: Path) -> Iterator[Proxy]:
    """mitmdump with a copy of our script, `rewind.py` in the folder, and other scripts after it."""
    script = tmp_path / "rewind.py"
    shutil.copy(Path(PYTHON_PATH) / "rewind.py", script)
    store = tmp_path / ".rewind" / "store"
    sets = {
        "confdir": confdir,
        "rewind_mode": mode,
        "rewind_store": store,
        "rewind_upstream": f"{OPENAI}={stage.url}",
    }
    argv = [
        str(Path(sys.executable).with_name("mitmdump")),
        "--listen-host",
        "127.0.0.1",
        "--listen-port",
        "0",
    ]
    argv += [word for each in (script, *others) for word in ("-s", str(each))]
    argv += [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    child = Child(argv, environment(tmp_path, PYTHONPATH=PYTHON_PATH), tmp_path)
    try:
        port = int(child.wait_for(LISTENING)[1])
        yield Proxy(child, port, confdir, store, None)  # type: ignore[arg-type]
    finally:
        child.stop()


@pytest.mark.parametrize("damage", ["removed", "broken"])
def test_a_script_that_goes_leaves_the_proxy_shut(
    tmp_path: Path, confdir: Path, stage: Stage, damage: str
) -> None:
    """mitmproxy goes on without a script that was removed or does not load: no call passes then."""
    prompt, script = new_prompt(), tmp_path / "rewind.py"
    with own_script(tmp_path, confdir, stage, "replay") as running:
        with Client(running, OPENAI) as kept:
            assert CHAT.send(kept, prompt).status == 400
            if damage == "removed":
                script.unlink()
            else:
                script.write_text("this is no Python(")
            child = running.child
            until(lambda: "rror" in child.output or "No such" in child.output or gone(running, prompt))
            for _ in range(3):
                assert not answered(lambda: CHAT.send(kept, prompt).status)
                assert not answered(lambda: CHAT.once(running, prompt).status)
        assert stage.heard(prompt) == []
        ended = running.child.stop()
    assert ended.status == 4


WAITS = """
import asyncio
async def request(flow):
    print("waits", flush=True)
    await asyncio.sleep(3)
"""
"""A script of the user's that takes its time after our own hook."""


def test_a_script_that_is_loaded_anew_leaves_the_calls_under_way(
    tmp_path: Path, confdir: Path, stage: Stage
) -> None:
    """A call that is still to be sent then reaches its provider with the client's credential."""
    script, waits = tmp_path / "rewind.py", tmp_path / "waits.py"
    waits.write_text(WAITS)
    prompt, key = new_prompt(), fake_credential()
    with own_script(tmp_path, confdir, stage, "auto", waits) as running, Client(running, OPENAI) as client:
        client.begin(CHAT_PATH, CHAT.body(prompt, "m1", 100), headers={"authorization": f"Bearer {key}"})
        until(lambda: "waits" in running.child.output)
        script.write_text(script.read_text() + "# another\n")
        until(lambda: running.child.output.count("oading script") >= 3)
        assert client.answer().status == 200
    assert stage.heard(prompt)[0].header("authorization") == f"Bearer {key}"


def answered(ask: Callable[[], int]) -> bool:
    """Whether a provider answered."""
    try:
        return ask() == 200
    except (OSError, ssl.SSLError, AssertionError, ValueError):
        return False
    except Exception as error:  # http.client has many names for a closed connection
        return type(error).__module__ != "http.client"


def gone(running: Proxy, prompt: str) -> bool:
    """Whether calls are no longer answered by us."""
    try:
        return CHAT.once(running, prompt).status != 400
    except Exception:  # whatever a closed connection is called
        return True


@pytest.mark.parametrize("word", ["repaly", "none", "auto", "record", "replay,auto"])
def test_another_word_than_replay_is_refused(live: Proxy, stage: Stage, word: str) -> None:
    """A mode that a request may not ask for is refused with the choice, and never goes live."""
    prompt = new_prompt()
    got = CHAT.once(live, prompt, headers={"x-rewind-mode": word})
    assert got.status == 400
    assert b"may ask for `replay` only" in got.body
    assert stage.heard(prompt) == []


@pytest.mark.parametrize("word", ["replay", "REPLAY", " Replay "])
def test_replay_in_any_case_is_replay(live: Proxy, stage: Stage, word: str) -> None:
    """The word counts, not its case."""
    prompt = new_prompt()
    got = CHAT.once(live, prompt, headers={"x-rewind-mode": word})
    assert (got.status, b"no recording" in got.body, stage.heard(prompt)) == (400, True, [])


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "127.1"])
def test_no_spelling_of_an_upstream_is_dialled(start: Start, name: str) -> None:
    """What stands for a known host is not dialled in replay, however a client spells its address."""
    with FakeProvider() as provider, start(provider=provider, settings={"mode": "replay"}) as running:
        with Client(running, name, tls=False, port=provider.port) as client:
            assert not answered(lambda: client.get("/v1/models").status)
        assert provider.connections == 0


def test_a_connect_to_an_address_waits_for_the_name_inside(start: Start) -> None:
    """In replay a tunnel to an address is dialled only once the TLS inside names no known host."""
    with socket.create_server(("127.0.0.1", 0)) as listener, start(settings={"mode": "replay"}) as running:
        listener.settimeout(1)
        raw = socket.create_connection(("127.0.0.1", running.port), timeout=10)
        raw.sendall(f"CONNECT 127.0.0.1:{listener.getsockname()[1]} HTTP/1.1\r\n\r\n".encode())
        assert b"200" in raw.recv(4096)
        with running.trust().wrap_socket(raw, server_hostname=OPENAI) as tls:
            tls.sendall(f"GET /v1/models HTTP/1.1\r\nhost: {OPENAI}\r\n\r\n".encode())
            assert b"404" in tls.recv(4096)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_an_upstream_of_no_known_host_stops_the_start(tmp_path: Path, confdir: Path) -> None:
    """A key of `rewind_upstream` that no call could go to is refused; a pattern of the table is honoured."""
    argv = [sys.executable, "-m", "rewind_proxy.mitm", "proxy", "--listen-port", "0"]
    argv += ["--set", f"confdir={confdir}", "--set", "rewind_upstream=api.openia.com=http://127.0.0.1:9"]
    ended = Child(argv, environment(tmp_path, PYTHONPATH=PYTHON_PATH), tmp_path).wait()
    assert (ended.status, "api.openia.com is no known host" in ended.output) == (1, True)


def test_a_pattern_of_the_table_has_an_upstream(start: Start, stage: Stage) -> None:
    """`*.openai.azure.com=…` sends every Azure resource there."""
    settings = {"upstream": [f"*.openai.azure.com={stage.url}"]}
    prompt = new_prompt()
    with start(settings=settings) as running, Client(running, "mine.openai.azure.com") as client:
        path = "/openai/deployments/d/chat/completions?api-version=1"
        client.post(path, {"messages": [{"role": "user", "content": prompt}]})
    assert len(stage.heard(prompt)) == 1


def test_odd_proxy_credentials_are_no_fault(live: Proxy) -> None:
    """A user name at the proxy that is not text names no session, and the tunnel is opened all the same."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as raw:
        head = f"CONNECT {OPENAI}:443 HTTP/1.1\r\nProxy-Authorization: Basic \xff\xfe\r\n\r\n"
        raw.sendall(head.encode("latin-1"))
        assert b"200" in raw.recv(4096)


def test_a_change_of_settings_leaves_streams_alone(start: Start, stage: Stage) -> None:
    """A call under way when a setting changes goes on streaming, and is counted in the one report."""
    prompt = new_prompt()
    stage.behaviour = paced(0.3)
    with start(provider=stage.provider, options=CONTROL) as running:
        with streaming(running, CHAT_SSE, prompt) as stream:
            until(lambda: len(stage.heard(prompt)) == 1)
            assert tell(running, "set", "rewind_repeat", "last").status == 200
            assert stream.read_to(b"data: [DONE]\n\n")
        stage.behaviour = Exchange.send
        CHAT.once(running, new_prompt())
        ended = running.stop()
    assert "2 calls" in ended.output


def test_a_flow_over_a_change_of_settings_is_masked(start: Start, stage: Stage, tmp_path: Path) -> None:
    """Before its answer begins or after: its flow has its own address, a label, and no credential."""
    saved, key = tmp_path / "flows", fake_credential()
    signed = {"authorization": f"Bearer {key}"}
    with start(provider=stage.provider, options=(*CONTROL, "-w", str(saved))) as running:
        for behaviour, begins in ((late(1), False), (paced(0.3), True)):
            prompt, stage.behaviour = new_prompt(), behaviour
            with streaming(running, CHAT_SSE, prompt, signed) as stream:
                until(lambda: len(stage.heard(prompt)) == 1)  # noqa: B023  # asked at once
                assert not begins or stream.headers["x-rewind"] == "recording"
                assert tell(running, "set", "rewind_repeat", "first" if begins else "last").status == 200
                assert begins or stream.headers["x-rewind"] == "passed"
                stream.read_to(b"data: [DONE]\n\n")
        running.stop()
    with saved.open("rb") as file:
        flows = [each for each in FlowReader(file).stream() if isinstance(each, http.HTTPFlow)]
    called = [each for each in flows if each.request.pretty_host == OPENAI]
    assert [each.comment for each in called] == ["rewind: passed"] * 2
    assert {each.request.headers["authorization"] for each in called} == {MASK}


def test_a_request_that_is_read_while_replay_is_set_does_not_go_live(start: Start, stage: Stage) -> None:
    """A large one is read beside the loop; the provider's connection that is open already is not used."""
    first, large = new_prompt(), new_prompt() + " word" * 300_000
    with start(provider=stage.provider, options=CONTROL) as running, Client(running, OPENAI) as client:
        CHAT.send(client, first)
        tell(running, "delays", "_large_reader.read", "2")
        client.begin(CHAT_PATH, CHAT.body(large, "m1", 100))
        time.sleep(1)
        assert tell(running, "set", "rewind_mode", "replay").status == 200
        refused = client.answer()
        ended = running.stop()
    assert (refused.status, refused.headers["x-rewind"]) == (400, "refused")
    assert stage.heard(large) == []
    assert ended.status == 4


MOVES = """
def request(flow):
    if flow.request.pretty_host == "{host}":
        flow.request.scheme, flow.request.host, flow.request.port = "http", "127.0.0.1", {port}
"""
"""A script of the user's that moves a host."""


@pytest.mark.parametrize("paced", [False, True])
def test_a_script_that_moves_a_host_leads_no_replay_astray(
    start: Start, stage: Stage, live: Proxy, tmp_path: Path, *, paced: bool
) -> None:
    """What is answered at once comes; a call whose answer takes its time is closed, and nobody is dialled."""
    prompt, script = new_prompt(), tmp_path / "moves.py"
    record(live, CHAT, prompt)
    script.write_text(MOVES.format(host=OPENAI, port=stage.port))
    asked = len(stage.heard(prompt))
    settings = {"mode": "replay", "pace": "1000" if paced else "instant"}
    with start(store=live.store, settings=settings, options=("-s", str(script))) as running:
        if paced:
            with pytest.raises((ConnectionError, ssl.SSLError, RemoteDisconnected)):
                CHAT.once(running, prompt)
        else:
            assert CHAT.once(running, prompt).headers["x-rewind"] == "replayed"
        ended = running.stop()
    assert ended.status == (4 if paced else 0)
    assert ("another add-on has moved a call" in ended.output) is paced
    assert len(stage.heard(prompt)) == asked


def test_a_change_that_cannot_be_carried_out_changes_nothing(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    """A store that does not open is named, and the proxy goes on with the one that it has."""
    (tmp_path / "file").touch()
    with start(provider=stage.provider, options=CONTROL) as running:
        prompt = new_prompt()
        record(running, CHAT, prompt)
        for setting in (
            {"rewind_store": str(tmp_path / "file" / "store")},
            {"rewind_cassettes": str(SCRIPT)},
        ):
            [(name, value)] = setting.items()
            refused = tell(running, "set", name, value)
            assert (refused.status, value in refused.body.decode()) == (409, True)
            assert CHAT.once(running, prompt).headers["x-rewind-tier"] == "exact"
        assert tell(running, "set", "rewind_mode", "replay").status == 200
        assert CHAT.once(running, prompt).headers["x-rewind-tier"] == "exact"


def test_a_proxy_ends_with_the_verb_that_started_it(tmp_path: Path, stage: Stage) -> None:
    """`kill -9` of `rewind run` leaves no proxy behind."""
    argv = [sys.executable, "-c", "from rewind_proxy.cli.app import main; main()"]
    argv += ["run", "--upstream", f"{OPENAI}={stage.url}", "--", sys.executable, "-c", SHOW_PROXY]
    child = Child(argv, environment(tmp_path, PYTHONPATH=PYTHON_PATH, XDG_DATA_HOME=str(tmp_path)), tmp_path)
    try:
        until(lambda: "port=" in child.output)
        port = int(child.output.partition("port=")[2].split()[0])
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: not listens(port))
    finally:
        child.stop()


SHOW_PROXY = (
    "import os, time; "
    "print('port=' + os.environ['HTTPS_PROXY'].rpartition(':')[2], flush=True); "
    "time.sleep(8)"
)


def listens(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
