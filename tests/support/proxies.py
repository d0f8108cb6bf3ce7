"""A proxy with the addon, started as users start it."""

from __future__ import annotations

import re
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewind_proxy.cli.provider import HOSTS, FakeProvider
from support.children import PYTHON_PATH, Child, Finished, environment
from support.sockets import SocketLog

LISTENING = re.compile(r"listening at (?:http://)?\S*?:(\d+)")
SCRIPT = Path(PYTHON_PATH) / "rewind.py"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy. All that it keeps is in folders of the test."""

    child: Child
    port: int
    confdir: Path
    store: Path
    sockets: SocketLog

    @property
    def url(self) -> str:
        """For `HTTPS_PROXY`."""
        return f"http://127.0.0.1:{self.port}"

    def trust(self) -> ssl.SSLContext:
        """What a client needs to trust it, and nothing else."""
        return ssl.create_default_context(cafile=str(self.confdir / "mitmproxy-ca-cert.pem"))

    def stop(self) -> Finished:
        """Stop it as a service manager would, and say how it ended."""
        return self.child.stop()


@contextmanager
def proxy(
    folder: Path,
    confdir: Path,
    *,
    provider: FakeProvider | None = None,
    settings: Mapping[str, str | Sequence[str]] | None = None,
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    store: Path | None = None,
    tool: Literal["script", "proxy", "dump"] = "script",
) -> Iterator[Proxy]:
    """A `mitmdump -s addon/rewind.py`, or one of the proxies that the verbs of `rewind` start.

    `folder` is its working directory and HOME; `confdir` holds its CA. `settings` are given as
    `--set rewind_<name>=…`, a sequence one by one; `options` are mitmproxy's own arguments. With a
    `provider`, the live traffic of its hosts goes there.
    """
    store = store or folder / ".rewind" / "store"
    sockets = SocketLog(folder / "sockets.jsonl")
    wanted: dict[str, str | Sequence[str]] = {"store": str(store), **(settings or {})}
    if provider:
        wanted.setdefault("upstream", [f"{host}={provider.url}" for host in HOSTS])
    argv = [str(Path(sys.executable).with_name("mitmdump")), "-s", str(SCRIPT)]
    if tool != "script":
        argv = [sys.executable, "-m", "rewind_proxy.mitm", tool]
    argv += ["--listen-host", "127.0.0.1", "--listen-port", "0", "--set", f"confdir={confdir}"]
    for name, value in wanted.items():
        for one in [value] if isinstance(value, str) else value:
            argv += ["--set", f"rewind_{name}={one}"]
    env = environment(folder, **(variables or {})) | sockets.environment(PYTHON_PATH)
    child = Child([*argv, *options], env, folder)
    try:
        port = int(child.wait_for(LISTENING)[1])
        yield Proxy(child, port, confdir, store, sockets)
    except BaseException as error:
        error.add_note(f"The proxy printed:\n{child.output}")
        raise
    finally:
        child.stop()
