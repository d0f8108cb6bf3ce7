"""Flow files for `rewind import`: one JSON line a flow (`porting.flow_lines`) on standard output.

A child prints them, because no other part imports mitmproxy. A flow file may come from anywhere, and reading
one runs much of mitmproxy's code on it: what it raises ends the file there, whatever it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mitmproxy import exceptions, flow, http, io

from rewind_proxy.porting.flow_lines import to_line
from rewind_proxy.porting.heard import NOT_THERE


def print_flows(file: Path) -> None:
    """Print the lines of a file. `SystemExit` with the reason when not even its first flow can be read."""
    with file.open("rb") as opened:
        for line in lines(opened):
            print(line)


def lines(opened: BinaryIO) -> Iterator[str]:
    """The lines of an open file."""
    any_read = False
    try:
        for each in io.FlowReader(opened).stream():
            yield _line(each)
            any_read = True
    except exceptions.FlowReadException as error:
        why = str(error)
    except Exception as error:
        why = type(error).__name__
    else:
        return
    if not any_read:
        sys.exit(f"no flow file that this mitmproxy reads ({why})")
    yield to_line(left=f"the file cannot be read from here on ({why})")


def _line(each: flow.Flow) -> str:
    if not isinstance(each, http.HTTPFlow):
        return to_line(left=f"no HTTP, but {each.type}")
    request, response = each.request, each.response
    if response is None:
        return to_line(left="no answer came")
    if request.raw_content is None:
        return to_line(left=NOT_THERE.format("request"))
    if response.raw_content is None:
        return to_line(left=NOT_THERE.format("answer"))
    # In reverse mode the client names the host, and the address is where its calls were sent.
    moved = request.pretty_host != request.host
    ended = response.timestamp_end or request.timestamp_start
    return to_line(
        method=request.method,
        host=request.pretty_host,
        port=443 if moved else request.port,
        path=request.path,
        headers=tuple(request.headers.items(multi=True)),
        body=request.raw_content,
        upgrade=request.headers.get("upgrade", "").lower() == "websocket",
        status=response.status_code,
        answer_headers=tuple(response.headers.items(multi=True)),
        answer=response.raw_content,
        started_at=request.timestamp_start,
        milliseconds=max(0, round((ended - request.timestamp_start) * 1000)),
        broken=each.error.msg if each.error else "",
    )
