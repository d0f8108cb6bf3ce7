"""What is shown of flows that no honest client makes: cut, coded, large; quick, and without credentials."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from mitmproxy import http
from mitmproxy.test import tflow

from case_tables import fake
from rewind_proxy.mitm.contentview import RewindView
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.views import Seen, Views
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable

SSE = "text/event-stream"
QUICK = 2.5
"""Seconds for a flow of 20 MB, which took eleven to read."""


@pytest.fixture(name="view")
def _view(tmp_path: Path) -> Iterator[RewindView]:
    hosts = HostTable({})
    runtime = Runtime(Settings(store=tmp_path / "store"), hosts, lambda _done, _total: None)
    yield RewindView(Views(SimpleNamespace(runtime=runtime, hosts=hosts, seen=Seen())))
    runtime.close(0.0)


def flow(
    body: bytes, answer: bytes = b"{}", kind: str = "application/json", coding: str = ""
) -> http.HTTPFlow:
    """A call of the Chat Completions API."""
    made = tflow.tflow(req=http.Request.make("POST", "https://api.openai.com/v1/chat/completions"))
    made.request.headers["content-type"] = "application/json"
    if coding:
        made.request.headers["content-encoding"] = coding
    made.request.raw_content = body
    made.response = http.Response.make(200, answer, {"content-type": kind})
    return made


def shown(view: RewindView, of: http.HTTPFlow, message: http.Message | None) -> str:
    """The text of a message's view."""
    _, lines = view(b"", flow=of, http_message=message)
    return "\n".join("".join(text for _, text in spans) for spans in lines)


def chat(content: str, count: int = 1) -> bytes:
    """The body of a request."""
    return json.dumps({"model": "m1", "messages": [{"role": "user", "content": content}] * count}).encode()


@pytest.mark.parametrize("tail", [b"", b'data: {"choices":[{"delta":{"content":"and'])
def test_a_stream_that_was_cut_shows_no_credential(view: RewindView, tail: bytes) -> None:
    """Not even one that went over several of its events."""
    secret = fake("sk-proj-", 48)
    pieces = ["Your key: ", secret[:20], secret[20:], " it was."]
    events = [b"data: %s\n\n" % json.dumps({"choices": [{"delta": {"content": p}}]}).encode() for p in pieces]
    of = flow(chat("hello"), b"".join(events) + tail, SSE)
    said = shown(view, of, of.response)
    assert "Your key: " in said
    assert secret[:20] not in said
    assert secret[20:] not in said


@pytest.mark.parametrize("coding", ["", "zstd"])
def test_what_is_too_large_is_said_at_once(view: RewindView, coding: str) -> None:
    """mitmproxy makes its views where calls pass: nobody waits for one."""
    large = chat("word " * 400, 10_000)
    of = flow(zstandard.compress(large) if coding else large, coding=coding)
    answered = flow(
        chat("hello"), json.dumps({"choices": [{"message": {"content": "x y " * 5_000_000}}]}).encode()
    )
    began = time.process_time()
    for side in (of.request, of.response):
        assert "too large to be read while calls pass: rewind explain" in shown(view, of, side)
    assert "The answer is too large to be shown here: 19.1 MiB" in shown(view, answered, answered.response)
    assert time.process_time() - began < QUICK


def test_a_coding_that_is_broken_is_not_called_large(view: RewindView) -> None:
    """It is shown as the digest that is kept of it."""
    of = flow(b"no such frame", coding="zstd")
    assert "kept as a digest only: 13 B" in shown(view, of, of.request)
