"""The client of the proxy benches, in a process of its own: kept TLS tunnels, answered requests per second.

    bench_client.py PORT CA REQUESTS TUNNELS SECONDS LIMIT

`REQUESTS` is a file of whole HTTP requests, each after its length in eight bytes. Prints JSON: the answers,
the seconds they took, the count by `x-rewind-tier`, and the milliseconds to the first byte of each body.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from pathlib import Path

_TIMEOUT = 60.0


class Tunnel:
    """One kept TLS connection through the proxy."""

    def __init__(self, port: int, host: str, context: ssl.SSLContext) -> None:
        raw = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += raw.recv(1)
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ConnectionError(head.decode(errors="replace"))
        self._socket = context.wrap_socket(raw, server_hostname=host)
        self._rest = b""

    def ask(self, request: bytes) -> tuple[bytes, float]:
        """The head of the answer, whose body is read to its end, and milliseconds to the first body byte."""
        begun = time.perf_counter()
        self._socket.sendall(request)
        data = self._rest
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        lowered = head.lower()
        while not body:
            body = self._more()
        first = (time.perf_counter() - begun) * 1000
        at = lowered.find(b"content-length:")
        if at >= 0:
            length = int(lowered[at + 15 : (lowered + b"\r\n").index(b"\r\n", at)])
            while len(body) < length:
                body += self._more()
            self._rest = body[length:]
        else:
            while not body.endswith(b"0\r\n\r\n"):
                body += self._more()
            self._rest = b""
        return lowered, first

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the proxy closed the connection")
        return data


def main() -> None:
    """Ask until the time or the number of requests is over."""
    port, ca, path, tunnels, seconds, limit = sys.argv[1:]
    requests = read_requests(Path(path))
    host = requests[0].split(b"Host: ", 1)[1].split(b"\r\n", 1)[0].decode()
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["http/1.1"])
    opened = [Tunnel(int(port), host, context) for _ in range(int(tunnels))]
    opened[0].ask(requests[0])
    tiers: Counter[str] = Counter()
    firsts: list[float] = []
    errors: list[BaseException] = []
    left = int(limit)
    lock = threading.Lock()
    end = time.perf_counter() + float(seconds)

    def work(index: int) -> None:
        nonlocal left
        mine = requests[index * len(requests) // len(opened) : (index + 1) * len(requests) // len(opened)]
        number = 0
        try:
            while time.perf_counter() < end:
                with lock:
                    if left <= 0:
                        return
                    left -= 1
                number += 1
                head, first = opened[index].ask(mine[number % len(mine)])
                tier = head.partition(b"x-rewind-tier: ")[2].partition(b"\r\n")[0].decode()
                with lock:
                    tiers[head.split(b" ", 2)[1].decode() + " " + tier] += 1
                    firsts.append(first)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(opened))]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - begun
    if errors:
        raise errors[0]
    print(json.dumps({"answers": len(firsts), "seconds": taken, "tiers": tiers, "firsts": firsts}))


def read_requests(path: Path) -> list[bytes]:
    """The requests of a file."""
    data, requests, at = path.read_bytes(), [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "big")
        requests.append(data[at + 8 : at + 8 + length])
        at += 8 + length
    return requests


def write_requests(path: Path, requests: list[bytes]) -> None:
    """The opposite of `read_requests`."""
    path.write_bytes(b"".join(len(request).to_bytes(8, "big") + request for request in requests))


if __name__ == "__main__":
    main()
