"""Answers of ours on a socket: a recorded stream as frames, each in its time, or one error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewind_proxy.mitm.socket_peer import Peer
from rewind_proxy.pace import Cue
from rewind_proxy.wire.socket_answers import AnswerEvents, Player, event_of

AT_ONCE = None
"""The cues of an answer that is due as a whole and now."""


async def play(client: Peer, body: bytes, due: Sequence[Cue] | None) -> AnswerEvents:
    """Send a stream as frames; what its events say. Cues that end before the body cut the socket there."""
    events, player, begun, place = AnswerEvents(), Player(), time.monotonic(), 0
    for at, end in due or ((0.0, len(body)),):
        if at > 0:
            await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
        for frame in player.frames(body[place:end], last=end == len(body)):
            await client.send(frame)
            events.add(event_of(frame))
        place = end
    if place < len(body):
        client.abort()
    return events


async def play_error(client: Peer, frame: str, stall: float) -> AnswerEvents:
    """Send an error after some seconds; it says nothing that a frame could go on from."""
    await asyncio.sleep(stall)
    await client.send(frame)
    return AnswerEvents()
