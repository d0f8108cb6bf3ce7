"""The official SDKs reading rendered answers from a loopback server, in their own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rewind_proxy.canonical.answer import Rendered

_HERE = Path(__file__).parent
_CLIENT_ENV = _HERE.parents[2] / "scripts" / "client-env"

Bodies = Mapping[str, Mapping[bool, Rendered]]
"""By case, and by whether the request asks for a stream."""


@contextmanager
def serving(bodies: Bodies) -> Iterator[str]:
    """A server on loopback that answers `POST /<case>/…` with the body of that case; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            rendered = bodies[self.path.split("/")[1]][bool(asked.get("stream"))]
            self.send_response(200)
            self.send_header("content-type", rendered.content_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            start = 0
            for length in rendered.chunks:
                piece = rendered.body[start : start + length]
                self.wfile.write(b"%x\r\n%b\r\n" % (length, piece))
                start += length
            self.wfile.write(b"0\r\n\r\n")

        def log_request(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read_by_sdk(sdk: str, bodies: Bodies, script: str = "read_typed_sdk.py") -> dict[str, Any]:
    """What the SDK makes of each case: see `script`, which stands beside this file."""
    env = {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run([_CLIENT_ENV], env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    with serving(bodies) as address:
        found = subprocess.run(
            [made.stdout.strip(), _HERE / script, sdk, address, *bodies],
            check=False,
            env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert found.returncode == 0, found.stderr
    read = json.loads(found.stdout)
    assert isinstance(read, dict)
    return read
