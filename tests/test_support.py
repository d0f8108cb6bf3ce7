"""The tools of the end-to-end tests do what those tests rely on."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
import zstandard

from rewind_proxy.cli.provider import Behaviour, FakeProvider
from support import behaviours
from support.children import PYTHON_PATH, Child, environment, run
from support.sockets import SocketLog

DIALS_IN_EVERY_WAY = """
import asyncio, socket, sys

async def dial(port):
    for host, to in (("127.0.0.1", port), ("localhost", port), ("nobody.invalid", 443)):
        try:
            await asyncio.open_connection(host, to)
        except OSError:
            pass

port = int(sys.argv[1])
asyncio.run(dial(port))
try:
    socket.gethostbyname("other.invalid")
except OSError:
    pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    try:
        udp.sendto(b"x", ("192.0.2.1", 9))
    except OSError:
        pass
"""

ASKED = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Say something."}]}


def test_the_socket_log_sees_what_asyncio_does_in_other_threads(tmp_path: Path) -> None:
    """Connections to the provider, look-ups and datagrams are logged, however they are asked for."""
    log = SocketLog(tmp_path / "log")
    with FakeProvider() as provider:
        env = environment(tmp_path) | log.environment(PYTHON_PATH)
        run([sys.executable, "-c", DIALS_IN_EVERY_WAY, str(provider.port)], env, tmp_path)
        seen = log.outward(provider.port)
    assert f"socket.connect ['127.0.0.1', {provider.port}]" in seen
    assert "socket.getaddrinfo nobody.invalid" in seen
    assert "socket.gethostbyname other.invalid" in seen
    assert "socket.sendto ['192.0.2.1', 9]" in seen


def test_the_socket_log_lets_loopback_pass(tmp_path: Path) -> None:
    """Talking to oneself is not dialling out, unless it is to the provider."""
    log = SocketLog(tmp_path / "log")
    with FakeProvider() as provider:
        env = environment(tmp_path) | log.environment(PYTHON_PATH)
        dial = "import socket, sys; socket.create_connection(('localhost', int(sys.argv[1]))).close()"
        run([sys.executable, "-c", dial, str(provider.port)], env, tmp_path)
        assert log.outward() == []
        assert log.outward(provider.port) != []


def test_an_empty_socket_log_proves_nothing(tmp_path: Path) -> None:
    """When no process has logged, the assertion fails instead of passing."""
    (tmp_path / "log").touch()
    with pytest.raises(AssertionError, match="no process"):
        SocketLog(tmp_path / "log").outward()


def test_a_child_is_waited_for_by_what_it_prints(tmp_path: Path) -> None:
    """The wait ends with the line, not after a fixed time, and the child's end has its status."""
    code = "import time; print('port 17', flush=True); time.sleep(60)"
    child = Child([sys.executable, "-c", code], environment(tmp_path), tmp_path)
    assert child.wait_for(re.compile(r"port (\d+)"))[1] == "17"
    assert child.stop().status == -signal.SIGTERM


def test_a_child_that_ends_early_fails_the_wait(tmp_path: Path) -> None:
    """A wait for a line that never comes fails at once with what was printed."""
    child = Child([sys.executable, "-c", "print('no luck')"], environment(tmp_path), tmp_path)
    with pytest.raises(AssertionError, match="no luck"):
        child.wait_for(re.compile("port"))
    child.wait()


def ask(provider: FakeProvider, path: str = "/v1/chat/completions") -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a streamed answer. Raises `IncompleteRead` when it breaks."""
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    try:
        connection.request("POST", path, json.dumps(ASKED))
        response = connection.getresponse()
        return response.status, {name.lower(): v for name, v in response.getheaders()}, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("behaviour", [behaviours.cut_in_chunk(2), behaviours.no_last_chunk()])
def test_a_cut_in_the_framing_is_seen_by_the_client(behaviour: Behaviour) -> None:
    """A body that breaks in its framing raises in the client."""
    with FakeProvider(behaviour) as provider, pytest.raises(http.client.IncompleteRead):
        ask(provider)


def test_a_cut_without_framing_looks_like_a_good_end() -> None:
    """A body that ends with the connection can be cut without a sign of it but the missing event."""
    with FakeProvider(behaviours.cut_in_event(2)) as provider:
        _, headers, body = ask(provider)
    assert "transfer-encoding" not in headers
    assert body.endswith(b'data: {"par')


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_an_error_in_band_follows_some_events(path: str) -> None:
    """The status is 200, and the last event is an error in the form of the wire."""
    with FakeProvider(behaviours.error_in_band(3)) as provider:
        status, _, body = ask(provider, path)
    *before, last = body.decode().rstrip().split("\n\n")
    assert (status, len(before)) == (200, 3)
    data = json.loads(last[last.index("data: ") + 6 :])
    assert "error" in data
    assert path == "/v1/chat/completions" or data["type"] == "error"


def test_a_behaviour_can_be_for_one_request() -> None:
    """`on` counts generations of a path: the second is refused, the others are answered."""
    with FakeProvider(behaviours.on(2, behaviours.error(429, retry_after=7))) as provider:
        answers = [ask(provider) for _ in range(3)]
    assert [status for status, _, _ in answers] == [200, 429, 200]
    assert answers[1][1]["retry-after"] == "7"


def test_a_stalled_answer_ends_with_the_provider() -> None:
    """Stopping the provider ends what hangs in it."""
    provider = FakeProvider(behaviours.stall(1)).start()
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    connection.request("POST", "/v1/chat/completions", json.dumps(ASKED))
    response = connection.getresponse()
    assert response.read1(4096)
    provider.stop()
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()


def test_events_can_be_paced() -> None:
    """With a delay the events arrive one by one."""
    with FakeProvider(behaviours.paced(0.02)) as provider:
        begun = time.monotonic()
        _, _, body = ask(provider)
        took = time.monotonic() - begun
    assert took >= 0.02 * (body.count(b"\n\n") - 1)


def test_answers_can_be_compressed() -> None:
    """gzip and zstd bodies decode to events."""
    with FakeProvider(behaviours.encoded("gzip")) as provider:
        _, headers, body = ask(provider)
        assert headers["content-encoding"] == "gzip"
        assert zlib.decompress(body, wbits=31).endswith(b"data: [DONE]\n\n")
    with FakeProvider(behaviours.encoded("zstd")) as provider:
        _, headers, body = ask(provider)
        assert headers["content-encoding"] == "zstd"
        assert zstandard.ZstdDecompressor().decompressobj().decompress(body).endswith(b"data: [DONE]\n\n")


def test_the_command_of_a_checkout_may_be_linked_to(tmp_path: Path) -> None:
    """`scripts/rewind` finds its checkout from wherever a link to it, or to that, stands."""
    scripts, links, made = tmp_path / "checkout" / "scripts", tmp_path / "bin", tmp_path / "venv" / "bin"
    for folder in (scripts, links, made):
        folder.mkdir(parents=True)
    for name in ("rewind", "_env"):
        shutil.copy(Path(__file__).parents[1] / "scripts" / name, scripts / name)
    (scripts.parent / "pyproject.toml").write_text("")
    (made / "python").symlink_to(sys.executable)
    (made / "rewind").write_text("#!/bin/sh\necho it is $1\n")
    (made / "rewind").chmod(0o755)
    (links / "first").symlink_to("../checkout/scripts/rewind")
    (links / "rewind").symlink_to(links / "first")
    sums = subprocess.run(["cksum"], input=b"", capture_output=True, check=True).stdout.decode().strip()
    (made.parent / "installed").write_text(f"{scripts.parent} {sums}\n")
    ran = subprocess.run(
        [links / "rewind", "there"],
        env=environment(tmp_path, VENV=str(made.parent)),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (0, "it is there\n")


def test_an_environment_behind_a_link_is_left_alone(tmp_path: Path) -> None:
    """`scripts/client-env` empties no environment that a stale link leads to; it says what to do instead."""
    script = tmp_path / "scripts" / "client-env"
    requirements = tmp_path / "tests" / "clients" / "requirements.txt"
    theirs = tmp_path / "theirs"
    for folder in (script.parent, requirements.parent, theirs):
        folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[1] / "scripts" / "client-env", script)
    requirements.write_text("new==2\n")
    (theirs / "requirements.txt").write_text("old==1\n")
    (tmp_path / ".venv-clients").symlink_to(theirs)
    made = subprocess.run(
        [script],
        env=environment(tmp_path, PYTHON=sys.executable),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 1
    assert "is a link" in made.stderr
    assert (theirs / "requirements.txt").read_text() == "old==1\n"
