"""Flow files as the child of `rewind import` prints them: what is no whole exchange says why."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from mitmproxy import flow, http, io
from mitmproxy.test import tflow, tutils

from rewind_proxy.mitm.flows import lines
from rewind_proxy.porting.flow_lines import entries
from rewind_proxy.porting.heard import Entry, Heard, Left


def read(*flows: flow.Flow, cut: int = 0) -> list[Entry]:
    """What is told of a file with these flows, cut short by some bytes."""
    file = BytesIO()
    writer = io.FlowWriter(file)
    for each in flows:
        writer.add(each)
    content = file.getvalue()
    return list(entries(lines(BytesIO(content[: len(content) - cut])), "x"))


def whole(**response: object) -> http.HTTPFlow:
    """A flow with an answer."""
    made = tflow.tflow(resp=tutils.tresp(**response))
    made.request.headers["x-odd"] = "\udcff"
    return made


def without_body(part: str) -> http.HTTPFlow:
    """A flow of which one body was streamed past."""
    made = whole()
    getattr(made, part).raw_content = None
    return made


def broken() -> http.HTTPFlow:
    """A flow that an error ended."""
    made = whole()
    made.error = flow.Error("connection lost")
    return made


def test_a_flow_is_an_exchange() -> None:
    """Its bytes still coded, its times in milliseconds; a header that is no UTF-8 costs a character."""
    [found] = read(whole(content=b"hi", timestamp_start=946681202, timestamp_end=946681203))
    assert isinstance(found, Heard)
    assert (found.request.host, found.request.port, found.request.path) == ("address", 22, "/path")
    assert (found.request.body, found.body, found.status) == (b"content", b"hi", 200)
    assert (found.started_at, found.milliseconds) == (946681200, 3000)
    assert ("x-odd", "?") in found.request.headers


def test_the_host_that_the_client_named_counts() -> None:
    """In reverse mode the address is only where the call was sent."""
    made = whole()
    made.request.headers["host"] = "api.openai.com"
    [found] = read(made)
    assert isinstance(found, Heard)
    assert (found.request.host, found.request.port) == ("api.openai.com", 443)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (tflow.ttcpflow, "no HTTP, but tcp"),
        (tflow.tflow, "no answer came"),
        (lambda: without_body("request"), "the body of its request is not in the file"),
        (lambda: without_body("response"), "the body of its answer is not in the file"),
    ],
)
def test_what_is_no_whole_exchange_says_why(make: Callable[[], flow.Flow], reason: str) -> None:
    """And the flows after it are read."""
    first, second = read(make(), whole())
    assert first == Left("x, flow 1", reason)
    assert isinstance(second, Heard)


def test_what_an_error_ended_is_told_as_broken() -> None:
    """Whether it was whole all the same is judged as with a live call."""
    [found] = read(broken())
    assert isinstance(found, Heard)
    assert found.broken == "connection lost"


def test_a_cut_file_ends_with_what_is_missing() -> None:
    """What was whole is there."""
    first, second = read(whole(), whole(), cut=10)
    assert isinstance(first, Heard)
    assert isinstance(second, Left)
    assert second.reason.startswith("the file cannot be read from here on")


def test_a_file_of_something_else_is_refused() -> None:
    """With the reason, which quotes nothing of it."""
    with pytest.raises(SystemExit, match=r"^no flow file that this mitmproxy reads \("):
        list(lines(BytesIO(b"12:5:hello;,garbage")))
