"""Answers of ours on a socket: a recorded stream as frames, each in its time, or one error."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from rewind_proxy.decisions import Fail, Refuse, Replay
from rewind_proxy.errors import traceback_of
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.sockets.peer import Peer
from rewind_proxy.pace import Cue, cues, faulted
from rewind_proxy.recording import faulted_step, refused_step, replayed_step
from rewind_proxy.wire import sockets
from rewind_proxy.wire.socket_answers import (
    AnswerEvents,
    Player,
    error_frame,
    event_of,
    in_lane,
    warm_up_answer,
)

logger = logging.getLogger(__name__)


class Playing:
    """Gives the answers of ours on one socket.

    `over` is called with the lane of one that took its time and has ended.
    """

    def __init__(
        self, client: Peer, chain: sockets.Chain, host: str, over: Callable[[str | None], Awaitable[None]]
    ) -> None:
        self._client = client
        self._chain = chain
        self._host = host
        self._over = over
        self.tasks: dict[str | None, asyncio.Task[None]] = {}
        """The answers that take their time, by lane. Whoever hears that one is over takes it out."""

    async def warm_up(self, request: sockets.FullRequest) -> None:
        """Answer a warm-up at once: nothing was to be generated."""
        body = warm_up_answer()
        await self._give(request, _play(self._client, request.lane, body, ((0.0, len(body)),)), 0.0)

    async def replay(
        self, replay: Replay, request: sockets.FullRequest, runtime: Runtime, started: float
    ) -> None:
        """Answer a turn from the store, at its pace."""
        status, body = replay.cassette.answer.status, replay.answer.body
        due = cues(replay.answer.chunks, len(body), runtime.settings.pace)
        if replay.fault is not None:
            due = faulted(due, body, replay.fault, streamed=True)
        last = due[-1][0]
        if 200 <= status < 300:
            playing = _play(self._client, request.lane, body, due)
        else:
            frame = in_lane(error_frame(status, body, replay.headers), request.lane)
            playing = _play_error(self._client, frame, last)
        await self._give(request, playing, last)
        runtime.note(replayed_step(replay, round((time.monotonic() - started + last) * 1000)))

    async def fail(self, fail: Fail, request: sockets.FullRequest, runtime: Runtime, started: float) -> None:
        """Answer a turn with an error on purpose."""
        last = fail.fault.stall
        frame = in_lane(error_frame(fail.status, fail.body, fail.headers), request.lane)
        playing = _play_error(self._client, frame, last)
        await self._give(request, playing, last)
        runtime.note(faulted_step(fail, round((time.monotonic() - started + last) * 1000)))

    async def _give(
        self, request: sockets.FullRequest, playing: Coroutine[object, object, AnswerEvents], last: float
    ) -> None:
        """Give an answer of ours: at once, or beside what else arrives until its `last` second."""
        if last <= 0:
            self._chain.remember(request, await playing)
        else:
            task = asyncio.get_running_loop().create_task(self._give_on(request, playing))
            self.tasks[request.lane] = task

    async def _give_on(
        self, request: sockets.FullRequest, playing: Coroutine[object, object, AnswerEvents]
    ) -> None:
        try:
            self._chain.remember(request, await playing)
        except Exception as error:
            logger.error("rewind: failed on a paced answer\n%s", traceback_of(error))
        await self._over(request.lane)

    async def refuse(self, refuse: Refuse, lane: str | None, runtime: Runtime) -> None:
        """Refuse a turn. What could not be read is told by its host alone."""
        noted = refused_step(refuse, ("POST", self._host, "") if refuse.reading is None else ("", "", ""))
        runtime.refused(refuse, noted)
        await self._client.send(in_lane(error_frame(refuse.status, refuse.body), lane))


async def _play(client: Peer, lane: str | None, body: bytes, due: Sequence[Cue]) -> AnswerEvents:
    """Send a stream as frames; what its events say. Cues that end before the body cut the socket there."""
    events, player, begun, place = AnswerEvents(), Player(), time.monotonic(), 0
    for at, end in due:
        if at > 0:
            await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
        for frame in player.frames(body[place:end], last=end == len(body)):
            await client.send(in_lane(frame, lane))
            events.add(event_of(frame))
        place = end
    if place < len(body):
        client.abort()
    return events


async def _play_error(client: Peer, frame: str, stall: float) -> AnswerEvents:
    """Send an error after some seconds; it says nothing that a frame could go on from."""
    await asyncio.sleep(stall)
    await client.send(frame)
    return AnswerEvents()
