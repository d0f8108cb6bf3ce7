"""mitmweb with the addon, and its API: what its page shows and does."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rewind_proxy.cli.provider import HOSTS, FakeProvider
from support.children import ENTRY_POINT, PYTHON_PATH, Child, environment, rewind
from support.proxies import Proxy
from support.sockets import SocketLog

_POLL = 0.02
_PAGE = re.compile(r"Web server listening at (http://\S+)")
_XSRF = "1234"
_XSRF_COOKIES = ("_xsrf", "_mitmproxy_xsrf")
"""Of mitmproxy 11 and 12."""


@dataclass(frozen=True, slots=True)
class Web:
    """A running mitmweb."""

    proxy: Proxy
    url: str
    """Of its page; from mitmproxy 12 on with a token."""

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        split = urlsplit(self.url)
        token = parse_qs(split.query).get("token", [""])[0]
        headers = {
            "Authorization": f"Bearer {token}",
            "Cookie": "; ".join(f"{name}={_XSRF}" for name in _XSRF_COOKIES),
            "X-XSRFToken": _XSRF,
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection(split.netloc, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            assert response.status == 200, f"{path}: {response.status} {content[:200]!r}"
            return json.loads(content)
        finally:
            connection.close()

    def flows(self) -> list[dict[str, Any]]:
        """All flows as the page gets them."""
        found: list[dict[str, Any]] = self._ask("GET", "/flows")
        return found

    def view(self, flow: Mapping[str, Any], side: str, name: str = "rewind") -> str:
        """The text that a content view shows of one side of a flow."""
        shown = self._ask("GET", f"/flows/{flow['id']}/{side}/content/{name}.json")
        if "text" in shown:
            return str(shown["text"])
        return "\n".join("".join(text for _, text in line) for line in shown["lines"])

    def command(self, name: str, *arguments: str) -> Any:
        """What a command of the command bar gives. An error is raised as `AssertionError`."""
        answer = self._ask("POST", f"/commands/{name}", {"arguments": arguments})
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def commands(self) -> dict[str, Any]:
        """The commands on offer, with their help."""
        found: dict[str, Any] = self._ask("GET", "/commands")
        return found


@contextmanager
def mitmweb(
    folder: Path,
    confdir: Path,
    *,
    provider: FakeProvider,
    store: Path | None = None,
    settings: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Iterator[Web]:
    """A mitmweb whose live traffic goes to a provider.

    `settings` are `name=value`, `options` are mitmproxy's own arguments.
    """
    store = store or folder / ".rewind" / "store"
    ready = folder / "ready.json"
    sockets = SocketLog(folder / "sockets.jsonl")
    argv = [sys.executable, "-m", "rewind_proxy.mitm", "web", "--ready", str(ready)]
    argv += ["--listen-host", "127.0.0.1", "--listen-port", "0", "--web-port", str(_free_port())]
    argv += ["--no-web-open-browser", "--set", f"confdir={confdir}"]
    wanted = [f"store={store}", *(f"upstream={host}={provider.url}" for host in HOSTS), *settings]
    for setting in wanted:
        argv += ["--set", f"rewind_{setting}"]
    child = Child([*argv, *options], environment(folder) | sockets.environment(PYTHON_PATH), folder)
    try:
        deadline = time.monotonic() + 30
        while not ready.exists():
            assert time.monotonic() < deadline, "mitmweb was never ready"
            time.sleep(_POLL)
        told = json.loads(ready.read_text())
        yield Web(Proxy(child, told["port"], confdir, store, sockets), told["url"])
    except BaseException as error:
        error.add_note(f"mitmweb printed:\n{child.output}")
        raise
    finally:
        child.stop()


@contextmanager
def rewind_web(folder: Path, provider: FakeProvider, *flags: str) -> Iterator[Web]:
    """`rewind web`, as a person starts it, in a folder of its own, and the page whose address it prints."""
    store = folder / ".rewind" / "store"
    env = environment(folder) | {"REWIND_UPSTREAM": provider.upstream, "REWIND_UNKNOWN": "refuse"}
    ca = Path(rewind("ca", "path", env=env, cwd=folder).stdout.strip())
    port, web_port = _free_port(), _free_port()
    argv = [sys.executable, "-c", ENTRY_POINT, "web", "--port", str(port), "--store", str(store), *flags]
    child = Child([*argv, "--", "--web-port", str(web_port)], env, folder)
    try:
        page = child.wait_for(_PAGE)[1]
        yield Web(Proxy(child, port, ca.parent, store, SocketLog(folder / "sockets.jsonl")), page)
    except BaseException as error:
        error.add_note(f"rewind web printed:\n{child.output}")
        raise
    finally:
        child.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
