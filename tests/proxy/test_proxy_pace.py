"""Replayed answers at the pace of their recording, and nothing left of one that is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from proxy import h2_client
from proxy.calls import CHAT, CHAT_SSE, GENERATE_ARRAY, MESSAGES_SSE, OPENAI, Ask, new_prompt
from proxy.conftest import CONTROL, Start, streaming, tell
from proxy.looking import record, recorded, steps_of, until
from rewind_proxy.cli.provider import Exchange, FakeProvider
from rewind_proxy.store import Store
from support.client import Client, Got
from support.proxies import Proxy, proxy

FIRST, GAP = 0.5, 0.15
"""Seconds that the provider takes for the first event, and for each of the others."""
ASKS = (CHAT_SSE, MESSAGES_SSE, CHAT, GENERATE_ARRAY)
FOLDER, LONGER = "/home/ann/app", "/builds/project-0/anns-own/app"
AT_ONCE = 0.5
"""What is faster than this, on a busy machine too, has waited for nothing; the recordings are far slower."""


def slowly(exchange: Exchange) -> None:
    """Answer as a model does."""
    time.sleep(FIRST)
    exchange.send(GAP)


class Recordings(NamedTuple):
    """What a slow provider said, which is gone."""

    store: Path
    provider: FakeProvider
    prompts: dict[Ask, str]

    def times(self, ask: Ask) -> list[tuple[float, int]]:
        """(seconds, bytes of the answer until then) of each recorded chunk."""
        [cassette] = recorded(self.store, self.prompts[ask])
        with Store.open(self.store, settings_digest="0", readonly=True) as store:
            lengths, times = zip(*store.answer(cassette).chunks, strict=True)
        return list(zip((at / 1000 for at in times), accumulate(lengths), strict=True))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Recordings:
    """One recording of each form."""
    prompts = {ask: f"{new_prompt()} <cwd>{FOLDER}</cwd> Add some more words." for ask in ASKS}
    with (
        FakeProvider(slowly) as provider,
        proxy(tmp_path_factory.mktemp("slow"), confdir, provider=provider) as live,
    ):
        for ask, prompt in prompts.items():
            record(live, ask, prompt)
    assert provider.failures == ()
    return Recordings(live.store, provider, prompts)


@pytest.fixture(scope="module")
def paced(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Iterator[Proxy]:
    """A replaying proxy at the recorded pace, whose clients leave it as idle as it was."""
    with proxy(
        tmp_path_factory.mktemp("paced"),
        confdir,
        provider=recordings.provider,
        settings={"mode": "replay", "pace": "recorded"},
        options=CONTROL,
        store=recordings.store,
    ) as running:
        CHAT.once(running, new_prompt())  # the first call of a process is slower
        yield running
        becomes_idle(running)
    assert "Traceback" not in running.child.output


def becomes_idle(running: Proxy) -> None:
    """No task and no socket of an answer is left soon."""

    def idle() -> bool:
        got = tell(running, "idle", "what", "all")
        last[0] = got.body
        return got.status == 200

    last = [b""]
    with suppress(AssertionError):
        until(idle, 5)
        return
    pytest.fail(f"still under way: {last[0]!r}")


Asking = Callable[[Proxy, Ask, str], Got]


def over_h1(running: Proxy, ask: Ask, prompt: str) -> Got:
    """Ask over HTTP/1.1."""
    return ask.once(running, prompt)


def over_h2(running: Proxy, ask: Ask, prompt: str) -> Got:
    """Ask over HTTP/2."""
    return h2_client.post(running, ask.host, ask.path.format(model="m1"), ask.body(prompt, "m1", 100))


BOTH = pytest.mark.parametrize("asking", [over_h1, over_h2])


@BOTH
@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.name)
def test_recorded(recordings: Recordings, paced: Proxy, asking: Asking, ask: Ask) -> None:
    """Every piece comes at its recorded time, the first one's wait included, within 20 % of the whole."""
    times = recordings.times(ask)

    def deviation() -> float:
        got = asking(paced, ask, recordings.prompts[ask])
        assert (got.status, got.headers["x-rewind"], got.cut) == (200, "replayed", False)
        assert len(got.body) == times[-1][1]
        came = [next(at for at, total in totals(got) if total >= place) for _, place in times]
        return max(abs(at - due) for at, (due, _) in zip(came, times, strict=True)) / times[-1][0]

    # Whatever else the machine does may disturb one answer, but not each of them.
    assert any(deviation() <= 0.2 for _ in range(3))


def totals(got: Got) -> list[tuple[float, int]]:
    """(seconds, bytes until then) of what arrived."""
    moments, lengths = zip(*got.arrivals, strict=True)
    return list(zip(moments, accumulate(lengths), strict=True))


def test_a_rebased_answer(recordings: Recordings, paced: Proxy) -> None:
    """Where live values make an answer longer, its pieces are still its events, at their times."""
    times = recordings.times(MESSAGES_SSE)
    prompt = recordings.prompts[MESSAGES_SSE].replace(FOLDER, LONGER)
    got = over_h1(paced, MESSAGES_SSE, prompt)
    assert "re-based" in got.headers["x-rewind-note"]
    assert LONGER.encode() in got.body
    assert len(got.body) > times[-1][1]
    assert all(got.body[:place].endswith(b"\n\n") for _, place in totals(got))
    assert len(got.arrivals) > len(times) / 2


@pytest.mark.parametrize("factor", [0.25, 2.0])
def test_a_factor_of_the_recorded_times(recordings: Recordings, start: Start, factor: float) -> None:
    """A number says how long the answer takes in times of its recording: 2 is twice as long."""
    settings = {"mode": "replay", "pace": str(factor)}
    with start(provider=recordings.provider, store=recordings.store, settings=settings) as running:
        wanted = factor * recordings.times(CHAT_SSE)[-1][0]
        for _ in range(3):  # a busy machine can be late, never early
            took = CHAT_SSE.once(running, recordings.prompts[CHAT_SSE]).arrivals[-1][0]
            assert took >= wanted * 0.8
            if took <= wanted * 1.2 + 0.2:
                return
    pytest.fail(f"{took:.2f} s, not {wanted:.2f} s")


def test_instant(recordings: Recordings, start: Start) -> None:
    """Without a pace the answer is there at once, and no connection is opened for it."""
    settings = {"mode": "replay"}
    with start(provider=recordings.provider, store=recordings.store, settings=settings) as running:
        got = CHAT_SSE.once(running, recordings.prompts[CHAT_SSE])
        assert "server connect" not in running.child.output
    assert got.arrivals[-1][0] < AT_ONCE < recordings.times(CHAT_SSE)[-1][0]


def test_twenty_at_once_over_one_connection(recordings: Recordings, paced: Proxy) -> None:
    """Streams of one HTTP/2 connection do not wait for each other."""
    body = CHAT_SSE.body(recordings.prompts[CHAT_SSE], "m1", 100)
    [alone] = h2_client.posts(paced, OPENAI, CHAT_SSE.path, [body])
    together = h2_client.posts(paced, OPENAI, CHAT_SSE.path, [body] * 20)
    assert [got.body for got in together] == [alone.body] * 20
    longest = max(got.arrivals[-1][0] for got in together)
    assert longest <= 1.5 * alone.arrivals[-1][0]


def test_a_kept_connection(recordings: Recordings, paced: Proxy) -> None:
    """A client's connection is kept from one paced answer to the next, and to a refusal between them."""
    prompt = recordings.prompts[CHAT]
    with Client(paced, OPENAI) as client:
        answers = [CHAT.send(client, each) for each in (prompt, new_prompt(), prompt)]
    assert [got.status for got in answers] == [200, 400, 200]
    assert answers[0].body == answers[2].body


def test_nothing_is_dialled(recordings: Recordings, paced: Proxy) -> None:
    """The one thing that is connected to is the proxy itself."""
    paced.sockets.clear()
    over_h1(paced, CHAT_SSE, recordings.prompts[CHAT_SSE])
    assert paced.sockets.outward(recordings.provider.port) == []


def test_a_corporate_proxy_is_not_asked(recordings: Recordings, start: Start) -> None:
    """With an upstream proxy set, an answer of our own does not go through it."""
    with start(
        provider=recordings.provider,
        store=recordings.store,
        settings={"mode": "replay", "pace": "recorded"},
        options=("--mode", f"upstream:http://127.0.0.1:{recordings.provider.port}"),
    ) as running:
        got = over_h1(running, CHAT, recordings.prompts[CHAT])
        assert running.sockets.outward(recordings.provider.port) == []
    assert (got.status, got.headers["x-rewind"]) == (200, "replayed")


def test_the_lean_proxy_paces_too(recordings: Recordings, start: Start) -> None:
    """So does the master that `rewind run` starts."""
    settings = {"mode": "replay", "pace": "recorded"}
    with start(
        provider=recordings.provider, store=recordings.store, settings=settings, tool="proxy"
    ) as running:
        got = over_h1(running, CHAT, recordings.prompts[CHAT])
    assert got.arrivals[-1][0] >= 0.8 * recordings.times(CHAT)[-1][0]


def test_a_client_that_leaves(recordings: Recordings, start: Start) -> None:
    """When the client is gone, so are the task and the sockets of its answer, long before its end."""
    settings = {"mode": "replay", "pace": "200"}
    with start(
        provider=recordings.provider, store=recordings.store, settings=settings, options=CONTROL
    ) as running:
        with streaming(running, CHAT_SSE, recordings.prompts[CHAT_SSE]):
            until(lambda: tell(running, "idle", "what", "all").status == 409)
        becomes_idle(running)
        assert "Traceback" not in running.child.output


def test_a_client_that_resets_its_streams(recordings: Recordings, start: Start) -> None:
    """The same holds for a stream of HTTP/2 that is given up in its middle."""
    settings = {"mode": "replay", "pace": "3"}
    body = CHAT_SSE.body(recordings.prompts[CHAT_SSE], "m1", 100)
    with start(
        provider=recordings.provider, store=recordings.store, settings=settings, options=CONTROL
    ) as running:
        h2_client.posts(running, OPENAI, CHAT_SSE.path, [body] * 5, left=lambda: becomes_idle(running))
        assert "Traceback" not in running.child.output


def test_a_proxy_that_stops(recordings: Recordings, start: Start) -> None:
    """A proxy ends at once, whatever is on its way, and its report has the step."""
    settings = {"mode": "replay", "pace": "200"}
    with start(provider=recordings.provider, store=recordings.store, settings=settings) as running:
        headers = {"x-rewind-session": "stopped"}
        with streaming(running, CHAT_SSE, recordings.prompts[CHAT_SSE], headers):
            [step] = steps_of(recordings.store, "stopped")
            finished = running.stop()
    assert step.tier == "exact"
    assert (finished.status, "/rewind_proxy/" in finished.output) == (0, False)
    assert "1 exact" in finished.output


def is_call(flow: Flow) -> bool:
    """Whether a saved flow is that of a call, not of a tunnel."""
    return isinstance(flow, HTTPFlow) and flow.request.method == "POST"


def test_the_flow_is_the_clients(recordings: Recordings, start: Start, tmp_path: Path) -> None:
    """What mitmproxy saves of a paced flow is what the client sent and got, and its provider's address."""
    file = tmp_path / "flows"
    settings = {"mode": "replay", "pace": "recorded"}
    prompt = recordings.prompts[CHAT_SSE]
    with start(
        provider=recordings.provider,
        store=recordings.store,
        settings=settings,
        options=("--save-stream-file", str(file)),
    ) as running:
        got = CHAT_SSE.once(running, prompt, headers={"authorization": "Bearer no-key-at-all"})
    with file.open("rb") as saved:
        [flow] = [each for each in FlowReader(saved).stream() if is_call(each)]
    assert isinstance(flow, HTTPFlow)
    assert flow.response is not None
    assert (flow.request.pretty_url, flow.request.host) == (f"https://{OPENAI}{CHAT_SSE.path}", OPENAI)
    assert prompt in (flow.request.text or "")
    assert flow.request.headers["authorization"] == "[REDACTED]"
    assert (flow.response.content, flow.comment.partition(" · ")[0]) == (got.body, "rewind: replayed")
    assert flow.server_conn.peername is None


def test_the_flow_of_a_client_that_left_was_replayed(
    recordings: Recordings, start: Start, tmp_path: Path
) -> None:
    """Its label says how it was answered, not that it was sent on."""
    file = tmp_path / "flows"
    with start(
        provider=recordings.provider,
        store=recordings.store,
        settings={"mode": "replay", "pace": "200"},
        options=(*CONTROL, "--save-stream-file", str(file)),
    ) as running:
        with streaming(running, CHAT_SSE, recordings.prompts[CHAT_SSE]):
            until(lambda: tell(running, "idle", "what", "all").status == 409)
        becomes_idle(running)
        running.stop()
    with file.open("rb") as saved:
        [flow] = [each for each in FlowReader(saved).stream() if is_call(each)]
    assert flow.comment.startswith("rewind: replayed · exact")
