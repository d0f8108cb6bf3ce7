"""Python imports this at start where this folder is on PYTHONPATH: it logs every connection and look-up.

Audit hooks see what the whole process does, in every thread, whatever library asks for it: asyncio's
`loop.getaddrinfo` and `loop.sock_connect` end in the same two C functions. `support.sockets` reads the log.
"""

from __future__ import annotations

import json
import os
import sys

_PLACE_OF_ADDRESS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
_log = os.open(os.environ["SOCKET_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _note(event: str, address: object) -> None:
    line = json.dumps([os.getpid(), event, address], default=repr)
    os.write(_log, line.encode() + b"\n")


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event in _PLACE_OF_ADDRESS:
        _note(event, arguments[_PLACE_OF_ADDRESS[event]])


_note("started", sys.argv)
sys.addaudithook(_hear)
