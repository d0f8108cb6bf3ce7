"""One served socket: its frames in, recorded answers or the provider's frames out (DESIGN §9).

Each turn is a step of its own: its full request is looked up, recorded or refused as the POST that it stands
for. All that arrives passes one queue, and a turn at a time is under way in each lane, as the provider has it
too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass

from rewind_proxy.canonical.model import Mode
from rewind_proxy.decisions import Fail, Forward, Refuse, Replay, Serve, Step
from rewind_proxy.engine import NO_RECORDING, refuse_failed
from rewind_proxy.errors import RewindError, traceback_of
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.sockets.dial import Declined, Opened, dial
from rewind_proxy.mitm.sockets.live import Live, LiveTurn, Opening, Owner
from rewind_proxy.mitm.sockets.peer import ABNORMAL, Closed, Message, Peer
from rewind_proxy.mitm.sockets.play import Playing
from rewind_proxy.wire import sockets
from rewind_proxy.wire.socket_answers import error_frame, in_lane, refusal_frame

logger = logging.getLogger(__name__)

_GOING_AWAY, _UNSUPPORTED, _POLICY, _RESTART = 1001, 1003, 1008, 1012
"""Close codes: the proxy ends, binary in replay, too many turns at once, ask for a new socket."""
NO_SOCKETS = frozenset({404, 405, 426, 501})
"""How a server answers that has no WebSocket at that path, or none at all."""
_MOST_WAITING = 64
_REPLAY_SET = "rewind: replay mode was set"


@dataclass(frozen=True, slots=True)
class _Played:
    """An answer of ours has ended."""

    lane: str | None


class SocketTurns:
    """The life of one socket, from its acceptance on."""

    def __init__(
        self,
        client: Peer,
        opening: Opening,
        owner: Owner,
        upstream: Peer | None,
        without: set[tuple[str, int]],
    ) -> None:
        """`without` gets the provider's address when that turns out to have no sockets."""
        self._client = client
        self._opening = opening
        self._owner = owner
        self._without = without
        self._chain = sockets.Chain()
        self._inbox: asyncio.Queue[tuple[Peer, Message] | _Played] = asyncio.Queue(64)
        """Who said what, and what we have said."""
        self._gone = asyncio.Event()
        """The client has left, whatever else is still to be handled."""
        self._pumps: list[asyncio.Task[None]] = []
        self._upstream: Peer | None = None
        self._live = Live(self._chain)
        self._playing = Playing(client, self._chain, opening.upgrade.host, self._played)
        self._waiting: deque[tuple[str, sockets.Create]] = deque()
        """Frames that ask for a response while one is under way in their lane."""
        self._listen(client)
        if upstream is not None:
            self._open(upstream)

    def _busy(self, lane: str | None) -> bool:
        """Whether a turn is under way in a lane."""
        return lane in self._live.turns or lane in self._playing.tasks

    def _offline(self) -> bool:
        """Whether nothing may go to the provider now: the mode can change while a socket is open."""
        return self._opening.mode(self._owner) == "replay"

    # -- what arrives --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until either side closes."""
        try:
            while await self._next():
                pass
        finally:
            for task in (*self._pumps, *self._playing.tasks.values()):
                task.cancel()
            self._live.end("the socket was closed")
            self.abort()

    def end(self, why: str) -> None:
        """The store is about to be closed: what is under way is not recorded."""
        self._live.end(why)

    def abort(self) -> None:
        """Break off both sides, with not another word to the provider."""
        for peer in filter(None, (self._upstream, self._client)):
            peer.abort()

    def _listen(self, peer: Peer) -> None:
        self._pumps.append(asyncio.get_running_loop().create_task(self._pump(peer)))

    async def _pump(self, peer: Peer) -> None:
        message: Message = ""
        while not isinstance(message, Closed):
            try:
                message = await peer.receive()
            except Exception as error:
                logger.error("rewind: a socket broke\n%s", traceback_of(error))
                message = Closed(ABNORMAL, "")
            if peer is self._client and isinstance(message, Closed):
                self._gone.set()
            await self._inbox.put((peer, message))

    async def _played(self, lane: str | None) -> None:
        await self._inbox.put(_Played(lane))

    def _open(self, upstream: Peer) -> None:
        self._upstream = upstream
        self._listen(upstream)

    async def _next(self) -> bool:
        """Handle one message; whether there will be more."""
        arrived = await self._inbox.get()
        if isinstance(arrived, _Played):
            del self._playing.tasks[arrived.lane]
            await self._go_on()
            return True
        peer, message = arrived
        if self._upstream is not None and self._offline():
            # The mode was changed while the socket was open: the provider hears no more of it.
            self._upstream.abort()
            self._upstream = None
            self._live.end(_REPLAY_SET)
            await self._client.close(_RESTART, _REPLAY_SET)
            return False
        if isinstance(message, Closed):
            await self._closed(peer, message)
            return False
        if peer is not self._client:
            await self._from_provider(message)
            return True
        return await self._from_client(message)

    async def _closed(self, peer: Peer, closed: Closed) -> None:
        """One side closed: the turn under way is not recorded, and the other side is closed alike."""
        side = "client" if peer is self._client else "provider"
        self._live.end(f"the {side} closed the socket ({closed.code})")
        for other in filter(None, (self._client, self._upstream)):
            if other is not peer:
                await other.close(closed.code, closed.reason)

    async def _from_provider(self, message: str | bytes) -> None:
        if not await self._live.passes(message, self._gone):
            self._live.end("a fault on purpose")
            self._client.abort()
            return
        await self._client.send(message)
        self._live.take(message)
        await self._go_on()

    async def _go_on(self) -> None:
        for _ in range(len(self._waiting)):
            text, create = self._waiting.popleft()
            if self._busy(create.lane):
                self._waiting.append((text, create))
            else:
                await self._create(text, create)

    async def _from_client(self, message: str | bytes) -> bool:
        if isinstance(message, str):
            await self._read(message)
        elif self._offline():
            logger.warning("rewind: a binary frame was refused in replay mode")
            await self._client.close(_UNSUPPORTED, "rewind: no recording of binary frames")
            return False
        else:
            await self._relay_unread(message, "a binary frame was sent")
        return True

    async def _read(self, text: str) -> None:
        frame = sockets.read_frame(text)
        if isinstance(frame, sockets.Create):
            if len(self._waiting) == _MOST_WAITING:
                await self._client.close(_POLICY, "rewind: too many turns at once")
            elif self._busy(frame.lane):
                self._waiting.append((text, frame))
            else:
                await self._create(text, frame)
        elif not self._offline():
            if isinstance(frame, sockets.UnreadableFrame):
                await self._relay_unread(text, "a frame was sent that cannot be read")
            elif frame.type not in sockets.UNANSWERED:
                await self._relay_unread(text, "a frame of an unknown type was sent")
            elif self._upstream is not None:
                await self._relay(text)
        elif isinstance(frame, sockets.UnreadableFrame):
            await self._refuse_frame(f"A frame could not be read: {frame.reason}.")
        elif frame.type not in sockets.UNANSWERED:
            await self._refuse_frame("Frames of this type are not replayed.")

    async def _refuse_frame(self, text: str) -> None:
        logger.warning("rewind: refused a frame of a socket: %s", text)
        await self._client.send(refusal_frame(f"{NO_RECORDING}. {text}"))

    # -- turns ---------------------------------------------------------------------------------------------

    async def _create(self, text: str, create: sockets.Create) -> None:
        """The boundary of a turn: no fault of ours sends it on in replay (DESIGN §14)."""
        runtime, mode = self._owner.runtime, self._opening.mode(self._owner)
        if runtime is None:
            await self._client.close(_GOING_AWAY, "rewind: the proxy is ending")
            return
        step: Step | None = None
        try:
            request = self._chain.full(create)
            if create.warm_up:
                await self._warm_up(text, request, runtime, mode)
                return
            started = time.monotonic()
            upgrade = self._opening.upgrade
            step = runtime.step(
                self._opening.session, upgrade.header("user-agent"), time.time(), upgrade.headers
            )
            decision = await runtime.decide(
                self._opening.request(request.encoded()), self._opening.host, step, mode
            )
            match decision:
                case Replay():
                    await self._playing.replay(decision, request, runtime, started)
                case Fail():
                    await self._playing.fail(decision, request, runtime, started)
                case Refuse():
                    await self._playing.refuse(decision, create.lane, runtime)
                case Forward():
                    await self._forward(text, request, decision, runtime)
                case Serve():
                    raise RewindError("a turn of a socket cannot be a socket")
        except Exception as error:
            await self._failed(text, create.lane, runtime, step, mode, error)

    async def _warm_up(self, text: str, request: sockets.FullRequest, runtime: Runtime, mode: Mode) -> None:
        """A warm-up generates nothing, so there is nothing to record.

        The provider hears of it where every turn goes to it anyway.
        """
        if mode in ("record", "passthrough"):
            await self._send_live(text, request, LiveTurn(None, request, time.monotonic(), runtime))
        else:
            await self._playing.warm_up(request)

    async def _forward(
        self, text: str, request: sockets.FullRequest, forward: Forward, runtime: Runtime
    ) -> None:
        if forward.after_replay:
            logger.warning(
                "rewind: %s goes live after replayed steps: it carries ids that the provider has never seen.",
                forward.step.id,
            )
        await self._send_live(text, request, LiveTurn(forward, request, time.monotonic(), runtime))

    async def _send_live(self, text: str, request: sockets.FullRequest, live: LiveTurn) -> None:
        """Relay a frame; where it goes on from an answer that we gave, what it stands for.

        The provider knows its own responses, and of those that nobody here knows it will say so itself.
        """
        if request.previous is not None and request.known and request.previous not in self._live.made:
            text = request.frame()
        self._live.turns[request.lane] = live
        await self._relay(text)

    async def _failed(
        self,
        text: str,
        lane: str | None,
        runtime: Runtime,
        step: Step | None,
        mode: Mode,
        error: Exception,
    ) -> None:
        host, why = self._opening.upgrade.host, traceback_of(error)
        logger.error("rewind: failed on a turn of a socket to %s\n%s", host, why)
        if lane in self._live.turns:
            return  # it is on its way; only what follows failed
        if mode == "replay":
            if step is None:
                await self._refuse_frame("Rewind failed while it looked for one; its log has the traceback.")
            else:
                await self._playing.refuse(refuse_failed(step, "model", error), lane, runtime)
            return
        if step is not None:
            forward = Forward(None, step, "model", record=False, headers=())
            self._live.turns[lane] = LiveTurn(forward, None, time.monotonic(), runtime)
        await self._relay(text)

    # -- the provider --------------------------------------------------------------------------------------

    async def _relay_unread(self, message: str | bytes, doubt: str) -> None:
        """Relay what may or may not have an answer of its own."""
        self._live.doubt(f"{doubt} on this socket before")
        await self._relay(message)

    async def _relay(self, message: str | bytes) -> None:
        """Send a message to the provider, whose socket is opened when it is first needed."""
        if self._upstream is None and not self._offline():
            answer = await dial(self._opening.provider)
            match answer:
                case Declined():
                    await self._declined(answer)
                    return
                case Opened():
                    self._open(answer.peer)
        # The mode may have changed while the provider's socket was opened.
        if self._upstream is None or self._offline():
            await self._client.close(_RESTART, _REPLAY_SET)
        else:
            await self._upstream.send(message)

    async def _declined(self, answer: Declined) -> None:
        """The provider opens no socket: the client gets the answer as the error of its turn.

        Where it has none at all the client asks anew, and is sent to POST then.
        """
        logger.warning("rewind: the provider answered %d to a WebSocket", answer.status)
        lane = next(iter(self._live.turns), None)  # nothing else is under way without the provider's socket
        self._live.end(f"the provider answered {answer.status} to the WebSocket")
        if answer.status in NO_SOCKETS:
            self._without.add(self._opening.provider.address)
            await self._client.close(_RESTART, "rewind: the provider has no WebSockets")
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers]
        await self._client.send(in_lane(error_frame(answer.status, answer.body, headers), lane))
