"""Every connection and look-up of a Python process, so that "nothing was dialled" is counted, not assumed."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterator
from pathlib import Path

AUDIT = Path(__file__).parent / "audit"
"""The folder whose `sitecustomize` writes the log; see there."""


class SocketLog:
    """What the processes that ran with `environment` did on the network."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def environment(self, python_path: str) -> dict[str, str]:
        """The variables that make a Python process, and all its Python children, write the log."""
        return {"PYTHONPATH": f"{AUDIT}{os.pathsep}{python_path}", "SOCKET_LOG": str(self._file)}

    def clear(self) -> None:
        """Forget what was logged, but not that logging was on."""
        kept = [json.dumps(line) for line in self._lines() if line[1] == "started"]
        self._file.write_text("".join(f"{line}\n" for line in kept))

    def outward(self, provider_port: int | None = None) -> list[str]:
        """Connections past loopback or to the provider, and look-ups of any name but localhost.

        Fails when no process has logged at all: then an empty list would prove nothing.
        """
        lines = list(self._lines())
        assert any(event == "started" for _, event, _ in lines), "no process wrote the socket log"
        return [
            f"{event} {address}" for _, event, address in lines if _is_outward(event, address, provider_port)
        ]

    def _lines(self) -> Iterator[tuple[int, str, object]]:
        for line in self._file.read_text().splitlines():
            process, event, address = json.loads(line)
            yield process, event, address


def _is_outward(event: str, address: object, provider_port: int | None) -> bool:
    if event == "started" or address is None:
        return False
    if event.startswith("socket.get"):
        return address != "localhost" and not _is_loopback(str(address))
    if not isinstance(address, list):
        return False  # a Unix socket
    host, port = address[:2]
    return port == provider_port or not _is_loopback(str(host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
