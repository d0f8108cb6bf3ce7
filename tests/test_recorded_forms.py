"""Which form a recording is of, and whether its stream was whole: told from what came (DESIGN §7, §8)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from matching.recorded_projects import HOSTS, START, settings_at, unseen
from rewind_proxy.engine import Decision, Forward, Replay
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.recording import Captured

DASHSCOPE = ("dashscope.aliyuncs.com", "/api/v1/services/aigc/text-generation/generation")
EVENTS = b'id:1\nevent:result\ndata:{"output":{"text":"a"}}\n\n'
FORM = b'--b\r\nContent-Disposition: form-data; name="stream"\r\n\r\n%s\r\n--b--\r\n'


def request(host: str, path: str, body: object, headers: tuple[tuple[str, str], ...] = ()) -> RawRequest:
    """A POST."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return RawRequest("POST", host, 443, path, headers, data)


class Proxy:
    """A store, and the proxies that write and read it."""

    def __init__(self, folder: Path) -> None:
        self.settings = settings_at(folder)

    def answered(self, live: RawRequest, body: bytes, content_type: str, broken: str = "") -> None:
        """A request passed, and its answer with it."""
        runtime = Runtime(self.settings, HOSTS, unseen)
        forward = self._decide(runtime, live)
        assert isinstance(forward, Forward)
        headers = (("content-type", content_type),)
        runtime.keep(forward, Captured(200, headers, ((body, 1),), START, broken))
        runtime.close(START)

    def decide(self, live: RawRequest) -> Decision:
        """What becomes of a request now."""
        runtime = Runtime(self.settings, HOSTS, unseen)
        decision = self._decide(runtime, live)
        runtime.close(START)
        return decision

    @staticmethod
    def _decide(runtime: Runtime, live: RawRequest) -> Decision:
        host = HOSTS.find(live.host, live.port)
        assert host is not None
        return asyncio.run(runtime.decide(live, host, runtime.step("s", "agent/1", START), "auto"))


@pytest.mark.parametrize(
    "header", [("X-DashScope-SSE", "enable"), ("Accept", "text/event-stream"), ("X-Unheard-Of", "stream")]
)
def test_a_stream_that_a_header_asked_for(tmp_path: Path, header: tuple[str, str]) -> None:
    """It answers who asks for one again, and never a request that did not, be the header known or not."""
    proxy = Proxy(tmp_path)
    asking = request(*DASHSCOPE, {"model": "q"}, (header,))
    plain = request(*DASHSCOPE, {"model": "q"})
    proxy.answered(asking, EVENTS, "text/event-stream;charset=UTF-8")
    assert isinstance(proxy.decide(plain), Forward)
    again = proxy.decide(asking)
    assert isinstance(again, Replay) == (header[0] != "X-Unheard-Of")
    proxy.answered(plain, b'{"output":{}}', "application/json")
    answer = proxy.decide(plain)
    assert isinstance(answer, Replay)
    assert answer.answer.body == b'{"output":{}}'


def test_who_accepts_both_did_not_ask_for_a_stream(tmp_path: Path) -> None:
    """A stream among other types that are accepted is no request for one."""
    proxy = Proxy(tmp_path)
    either = request(*DASHSCOPE, {"model": "q"}, (("accept", "application/json, text/event-stream"),))
    proxy.answered(either, b"{}", "application/json")
    assert isinstance(proxy.decide(request(*DASHSCOPE, {"model": "q"})), Replay)


def test_a_stream_that_a_form_asked_for(tmp_path: Path) -> None:
    """The field `stream` of a multipart body asks for one."""
    proxy = Proxy(tmp_path)
    multipart = (("content-type", "multipart/form-data; boundary=b"),)
    for value in (b"true", b"false"):
        live = request("api.openai.com", "/v1/audio/transcriptions", FORM % value, multipart)
        proxy.answered(live, EVENTS, "text/event-stream")
        assert isinstance(proxy.decide(live), Replay) == (value == b"true")


CHAT = {"choices": [{"index": 0, "delta": {"content": "A"}, "finish_reason": "stop"}]}
GEMINI = {"candidates": [{"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize(
    ("live", "event"),
    [
        (request("api.openai.com", "/v1/chat/completions", {"n": 2, "stream": True, "messages": []}), CHAT),
        (
            request(
                "generativelanguage.googleapis.com",
                "/v1beta/models/g:streamGenerateContent?alt=sse",
                {"contents": [], "generationConfig": {"candidateCount": 2}},
            ),
            GEMINI,
        ),
    ],
)
def test_a_stream_of_two_that_was_cut_after_one(tmp_path: Path, live: RawRequest, event: object) -> None:
    """Where two alternatives were asked for and one came, nothing is recorded."""
    proxy = Proxy(tmp_path)
    proxy.answered(live, b"data: %b\n\n" % json.dumps(event).encode(), "text/event-stream", "cut")
    assert isinstance(proxy.decide(live), Forward)
