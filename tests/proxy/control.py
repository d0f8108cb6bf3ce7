"""A mitmproxy script that does to a running proxy what a test asks of it: `http://control.invalid/…`.

It is loaded after the add-on, so it finds it in place. Each request is a GET with one query parameter.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mitmproxy import ctx, exceptions, http

from rewind_proxy.mitm.addon import Rewind
from rewind_proxy.store import recorder

HOST = "control.invalid"


class FaultError(Exception):
    """What a broken method raises, as a subclass that names it."""


class Control:
    """Answers 200 with what was done, 409 with the words of a refused change."""

    def __init__(self) -> None:
        self._mended: list[tuple[object, str, Any]] = []

    def running(self) -> None:
        """Steps are logged at once: most tests wait for theirs."""
        recorder.FLUSH_SECONDS = 0.01

    def request(self, flow: http.HTTPFlow) -> None:
        """Do what is asked."""
        if flow.request.host != HOST:
            return
        split = urlsplit(flow.request.path)
        [(name, [value])] = parse_qs(split.query, keep_blank_values=True).items()
        try:
            getattr(self, split.path.strip("/"))(name, value)
        except (exceptions.OptionsError, exceptions.CommandError) as error:
            flow.response = http.Response.make(409, str(error))
            return
        flow.response = http.Response.make(200, "done")

    def set(self, name: str, value: str) -> None:
        """Change an option as the web interface does. A sequence has its items between blanks."""
        kind = ctx.options._options[name].typespec
        ctx.options.update(**{name: value if kind in (str, str | None) else value.split()})

    def breaks(self, path: str, value: str) -> None:
        """Let a method raise: `engine.decide_read=1`. With an empty value all are mended."""
        if not value:
            while self._mended:
                setattr(*self._mended.pop())
            return
        *owners, name = path.split(".")
        target: Any = _addon().runtime
        for owner in owners:
            target = getattr(target, owner)
        self._mended.append((target, name, getattr(target, name)))

        # A type of its own, since that is all a log tells of it: its words quote what it choked on.
        fault = type(f"FaultError in {path}", (FaultError,), {})

        def broken(*given: object, **__: object) -> None:
            raise fault(given)

        setattr(target, name, broken)

    def delays(self, path: str, value: str) -> None:
        """Let a method take so many seconds longer, on whatever thread it runs."""
        *owners, name = path.split(".")
        target: Any = _addon().runtime
        for owner in owners:
            target = getattr(target, owner)
        before = getattr(target, name)

        def delayed(*given: object, **named: object) -> object:
            time.sleep(float(value))
            return before(*given, **named)

        setattr(target, name, delayed)

    def command(self, name: str, value: str) -> None:
        """Call a command as a script does, natively."""
        ctx.master.commands.call(name, *value.split())

    def idle(self, _name: str, _value: str) -> None:
        """Refused while an answer is made or held back, or a socket but the clients' is open."""
        # When a client leaves just as many of its answers end, mitmproxy drops connections without closing
        # them (a second cancellation reaches `handle_connection`); they go with its handler.
        gc.collect()
        running = [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}]
        tasks = [name for name in running if name.startswith(("rewind", "handle_hook(responseheaders"))]
        clients = {address[1] for address in ctx.master.addons.get("proxyserver").listen_addrs()}
        opened = [each for each in gc.get_objects() if type(each) is socket.socket and each.fileno() != -1]
        names = [each.getsockname() for each in opened if each.family == socket.AF_INET]
        others = [name for name in names if name[1] not in clients]
        if tasks or others:
            raise exceptions.OptionsError(f"{tasks} {others}")

    def limit(self, _name: str, value: str) -> None:
        """Let no file grow past so many bytes, as on a full disk; an empty value lifts the limit."""
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(value) if value else hard, hard))


def _addon() -> Rewind:
    found = ctx.master.addons.get(Rewind.name)
    assert isinstance(found, Rewind)
    return found


addons = [Control()]
