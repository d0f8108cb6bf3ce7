"""`rewind proxy` and `rewind web`: what they print, how they end, and why they do not start."""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.calls import CHAT, new_prompt
from proxy.conftest import Stage
from proxy.looking import cassettes, record
from rewind_proxy.cli.doctor import listener_is_mitmproxy
from support.children import ENTRY_POINT, Child, Finished, environment, rewind
from support.proxies import Proxy
from support.sockets import SocketLog

BANNER = re.compile(r"rewind proxy · mode auto · store (\S+)\nIn the shell of the client: eval \"(.+)\"\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME for all: our CA is made once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def free_port() -> int:
    """A port that nothing listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def not_started(home: Path, folder: Path, *argv: str) -> Finished:
    """What a verb printed that does not start."""
    return rewind(*argv, env=environment(home), cwd=folder)


@pytest.mark.parametrize("flags", [(), ("--", "--flow-detail", "1")], ids=["proxy", "mitmdump"])
def test_a_proxy_in_the_foreground(home: Path, tmp_path: Path, stage: Stage, flags: tuple[str, ...]) -> None:
    """It says where it is, a line for each answered call, and ends with its summary on a Ctrl-C of its own.

    A look of `rewind doctor` at its port is no call, and leads nowhere.
    """
    env = environment(home) | {"REWIND_UPSTREAM": stage.provider.upstream, "REWIND_UNKNOWN": "refuse"}
    ca = Path(rewind("ca", "path", env=env, cwd=tmp_path).stdout.strip())
    port, store = free_port(), tmp_path / "store"
    argv = [sys.executable, "-c", ENTRY_POINT, "proxy", "--port", str(port), "--store", str(store), *flags]
    child = Child(argv, env, tmp_path)
    try:
        banner = child.wait_for(BANNER)
        assert banner.groups() == (str(store), f"$(rewind env --port {port})")
        proxy = Proxy(child, port, ca.parent, store, SocketLog(tmp_path / "sockets.jsonl"))
        assert listener_is_mitmproxy(port)
        prompt = new_prompt()
        record(proxy, CHAT, prompt)
        CHAT.once(proxy, prompt)
        [cassette] = cassettes(store, prompt)
        for how in ("recording · recorded", "replayed · exact"):
            called = f"rewind: {how} · {cassette.id[:8]}… · POST api.openai.com/v1/chat/completions · m1"
            child.wait_for(re.compile(re.escape(called)))
    finally:
        ended = child.stop(signal.SIGINT)
    assert ended.status == 0
    assert re.search(r"rewind · auto · 2 calls: 1 exact, 1 recorded · [\d,]+ tokens saved\n", ended.output)
    assert "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (("proxy", "--port", "{taken}"), "--port"),
        (("proxy", "--port", "{taken}", "--", "--flow-detail", "0"), "--port"),
        (("web", "--port", "{free}", "--web-port", "{taken}"), "--web-port"),
    ],
    ids=["proxy", "mitmdump", "page"],
)
def test_a_port_that_is_taken_is_one_sentence(
    home: Path, tmp_path: Path, taken: int, argv: tuple[str, ...], flag: str
) -> None:
    """It names the port and the flag for another; nothing else says that the proxy was there."""
    words = (word.format(taken=taken, free=free_port()) for word in argv)
    ended = not_started(home, tmp_path, *words)
    assert ended.status == 1
    assert ended.stderr == (
        f"rewind: 127.0.0.1:{taken} is taken by another program: choose another port with {flag}\n"
    )
    assert "mode auto" not in ended.output


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--store", "file/store"), "file/store cannot be used (Not a directory): name another place"),
        (("--", "--mode", "nonsense"), "Invalid proxy mode specification: nonsense (unknown mode)"),
        (
            ("--mode", "replay", "--", "--set", "stream_large_bodies=1"),
            "replay mode and these mitmproxy options do not go together: stream_large_bodies: ",
        ),
    ],
)
def test_a_proxy_that_does_not_start_says_only_why(
    home: Path, tmp_path: Path, argv: tuple[str, ...], said: str
) -> None:
    """No line of a log, no traceback: one sentence in Rewind's name."""
    (tmp_path / "file").write_text("")
    ended = not_started(home, tmp_path, "proxy", "--port", str(free_port()), *argv)
    assert (ended.status, ended.stdout) == (1, "")
    assert ended.stderr.startswith("rewind: ")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("argv", [("proxy", "extra"), ("web", "extra", "--", "--anticache")])
def test_a_word_that_is_no_flag_is_refused(home: Path, tmp_path: Path, argv: tuple[str, ...]) -> None:
    """It is a slip of the pen; flags of mitmproxy's stand after `--`."""
    ended = not_started(home, tmp_path, *argv)
    assert ended.status == 2
    assert "'extra' is no flag of this verb" in ended.stderr
