"""A proxy that cannot start says why to whoever started it, in a sentence, and ends with 1.

mitmproxy itself prints log lines with times, advice that leads past Rewind, and tracebacks.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from mitmproxy import ctx, master
from mitmproxy.addons import errorcheck
from mitmproxy.proxy import mode_servers

from rewind_proxy.canonical.model import JsonObject

_OWN = "rewind: "

Tell = Callable[[JsonObject], None]


def tell_terminal(value: JsonObject) -> None:
    """Say it where nobody waits for a file or a line."""
    print(f"{_OWN}{value['error']}", file=sys.stderr)


class StartCheck(errorcheck.ErrorCheck):
    """Stands in for mitmproxy's `ErrorCheck`: the master asks it, by its name, at each point of the start."""

    name = "errorcheck"

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell
        self._master: master.Master | None = None
        self._listening: list[logging.LogRecord] = []

    @classmethod
    def put_into(cls, running: master.Master, tell: Tell) -> StartCheck:
        """Take the place of mitmproxy's own."""
        before: errorcheck.ErrorCheck = running.addons.get(cls.name)
        before.finish()
        running.addons.remove(before)
        check = cls(tell)
        check._master = running
        running.addons.add(check)
        running.options.errored.connect(check.option_refused)
        if termlog := running.addons.get("termlog"):
            termlog.logger.addFilter(check.shows)
        return check

    def shows(self, record: logging.LogRecord) -> bool:
        """Whether the terminal gets a line now.

        That a port is open is said when all is well, and errors are told at the end, but for faults of ours,
        which have a traceback.
        """
        if record.name == mode_servers.__name__ and record.levelno < logging.ERROR:
            self._listening.append(record)
            return False
        return record.levelno < logging.ERROR or bool(record.exc_info)

    def option_refused(self, exc: Exception) -> None:
        """An option has a value that mitmproxy or one of its add-ons does not take."""
        self.refuse(str(exc))

    async def shutdown_if_errored(self) -> None:
        """End the proxy when an error was logged so far."""
        await asyncio.sleep(0)  # as mitmproxy's own does: tasks may still be logging
        if self.logger.has_errored:
            ports = {str(server.last_exception): _of_port(server) for server in _servers()}
            said = [record.getMessage() for record in self.logger.has_errored]
            self.refuse("; ".join(ports.get(each, each) for each in said))

    def refuse(self, why: str) -> NoReturn:
        """Say why, and end."""
        self._tell({"error": why.removeprefix(_OWN)})
        sys.exit(1)

    def finish(self) -> None:
        """The proxy is up: from here on, errors are logged as ever."""
        super().finish()  # type: ignore[no-untyped-call]  # mitmproxy's
        assert self._master is not None
        self._master.options.errored.disconnect(self.option_refused)
        if termlog := self._master.addons.get("termlog"):
            termlog.logger.removeFilter(self.shows)
            for record in self._listening:
                termlog.logger.handle(record)


def port_taken(host: str, port: int, error: OSError, flag: str) -> str:
    """Why nothing can listen on a port, and the flag that names another."""
    place = f"{host or '*'}:{port}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{place} is taken by another program: choose another port with {flag}"
        case errno.EACCES:
            return f"{place} may not be used by you: choose a port above 1023 with {flag}"
        case _:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            return f"nothing can listen on {place} ({cause.strerror or cause}): choose another with {flag}"


def _servers() -> list[mode_servers.ServerInstance[Any]]:
    return [server for server in ctx.master.addons.get("proxyserver").servers if server.last_exception]


def _of_port(server: mode_servers.ServerInstance[Any]) -> str:
    error, options = server.last_exception, ctx.options
    if not isinstance(error, OSError):
        return str(error)
    host, port = server.mode.listen_host(options.listen_host), server.mode.listen_port(options.listen_port)
    return port_taken(host, port or 0, error, "--port")
