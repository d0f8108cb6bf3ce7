"""The mitmproxy addon: hooks that read a flow, ask the engine and carry out its decision.

mitmproxy logs an exception in a hook and then sends the request upstream. So everything between a request and
its decision stands inside one boundary (`request`), which refuses in replay and forwards untouched elsewhere.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Callable

from mitmproxy import connection, ctx, exceptions, hooks, http
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.decisions import unread
from rewind_proxy.engine import Fail, Forward, Refuse, Replay, Serve, Step, refuse_failed, refuse_mode
from rewind_proxy.errors import RewindError, traceback_of
from rewind_proxy.journal import Journal
from rewind_proxy.mitm import contentview, labels, options, traffic
from rewind_proxy.mitm.commands import Commands
from rewind_proxy.mitm.connections import Connections
from rewind_proxy.mitm.faulting import Faulting
from rewind_proxy.mitm.forwarding import NO_LINE, Forwarding
from rewind_proxy.mitm.guard import Guard
from rewind_proxy.mitm.pacing import Pacing
from rewind_proxy.mitm.runtime import RequestLine, Runtime
from rewind_proxy.mitm.sockets.serving import Sockets
from rewind_proxy.mitm.upstreams import Upstreams
from rewind_proxy.mitm.views import Seen, Views
from rewind_proxy.recording import faulted_step, refused_step, replayed_step
from rewind_proxy.report import Report
from rewind_proxy.settings import Settings
from rewind_proxy.store.records import StepRecord
from rewind_proxy.wire import Host, HostTable

_GARBAGE = (5_000, 10, 10)
"""Objects, and rounds of a younger generation, before the collector looks (`gc.set_threshold`).

A flow is a cycle that holds its bodies: with ten times as much a proxy took half as much memory again.
"""

OnReport = Callable[[JsonObject, Settings], None]
logger = logging.getLogger(__name__)


class Rewind:
    """The addon. `on_report` gets the report when the proxy ends, `journal` each model step that is over."""

    name = "rewind"

    def __init__(self, on_report: OnReport | None = None, journal: Journal | None = None) -> None:
        self.settings: Settings | None = None
        self.runtime: Runtime | None = None
        self.hosts = HostTable({})
        self._guard: Guard | None = None
        self._report: Report | None = None
        """Counts go on when the settings change."""
        self._on_report = on_report
        self._journal = journal
        self.upstreams = Upstreams({}, self.hosts)
        self.seen = Seen()
        self._views = Views(self)
        self.forwarding = Forwarding(self)
        self._connections = Connections(self)
        self._sockets = Sockets(self)
        self._pacing = Pacing()
        self._faulting = Faulting()
        self.addons = [
            self._connections,
            self.forwarding,
            self._sockets,
            self._pacing,
            self._faulting,
            Commands(self, self._views),
        ]

    # -- life ----------------------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        """Add our options. They are checked in `configure`: here an error would only be logged."""
        options.bind(loader)
        contentview.add(self._views)

    def configure(self, updated: set[str]) -> None:
        """Read the settings again when any option changed; a bad one stops the start or the change."""
        try:
            settings = options.settings_from(ctx.options)
            hosts = HostTable(settings.hosts)
            upstreams = Upstreams(settings.upstream, hosts)
        except RewindError as error:
            raise exceptions.OptionsError(f"rewind: {error}") from error
        in_the_way = options.bypasses(ctx.options)
        if in_the_way and settings.mode == "replay":
            raise exceptions.OptionsError(
                "rewind: replay mode and these mitmproxy options do not go together: " + "; ".join(in_the_way)
            )
        changed = settings != self.settings
        if in_the_way and (changed or not all(name.startswith(options.PREFIX) for name in updated)):
            for each in in_the_way:
                logger.warning("rewind: calls may go unrecorded: %s", each)
        before = self.settings, self.hosts, self.upstreams
        self.hosts, self.upstreams = hosts, upstreams
        if changed and self.runtime is not None:
            self._close("the settings were changed meanwhile")
            try:
                self.runtime = self._opened(settings)
            except RewindError as error:
                self.settings, self.hosts, self.upstreams = before
                self._open()
                raise exceptions.OptionsError(f"rewind: {error}") from error
        self.settings = settings

    def running(self) -> None:
        """Open the store. Synchronous, as live reload needs (MITMPROXY.md)."""
        pacing, sockets = self._pacing, self._sockets
        self._guard = Guard.attached(
            lambda flow: pacing.strayed(flow) or sockets.strayed(flow), self.forwarding.give_back
        )
        self._open()
        gc.collect()
        gc.freeze()  # looking through what is loaded by now took a quarter of a first request's time
        gc.set_threshold(*_GARBAGE)

    def _opened(self, settings: Settings) -> Runtime:
        return Runtime(settings, self.hosts, _log_progress, self._report, self._journal)

    def _open(self) -> None:
        assert self.settings is not None
        try:
            self.runtime = self._opened(self.settings)
        except RewindError as error:
            logger.error("rewind: %s", error)  # an error while starting makes mitmdump exit with 1
            ctx.master.shutdown()

    def _close(self, why: str) -> None:
        self.forwarding.end(why)
        runtime, self.runtime = self.runtime, None
        if runtime is None or self.settings is None:
            return
        self._sockets.end(why)
        self._report = runtime.report
        report = runtime.close(time.time())
        if self._guard:
            self._guard.report(report, self.settings)
        if self._on_report:
            self._on_report(report, self.settings)

    def done(self) -> None:
        """Write what is left and report."""
        self.forwarding.finish_all(shutdown=ctx.master.should_exit.is_set())
        self._close("the proxy ended first")
        if self._guard:
            self._guard.orphan(self.mode)

    @property
    def mode(self) -> Mode:
        """The mode in force; before the settings are read, the safe one."""
        return self.settings.mode if self.settings else "replay"

    # -- requests ------------------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Plain HTTP to unknown hosts passes unbuffered; a known host's body is read whole."""
        if flow.response is not None or flow.error is not None:
            return
        self._connections.note_user(flow)
        if traffic.known_host(self.hosts, flow) is not None:
            flow.request.stream = False
            _, asked_mode = traffic.take_own_headers(flow)
            if asked_mode and ctx.options.stream_large_bodies:
                # mitmproxy sends a body that grows past the limit before it calls `request`.
                logger.error("rewind: x-rewind-mode and stream_large_bodies do not go together: closed")
                flow.kill()
        elif self.refuses_unknown(flow.request.pretty_host):
            traffic.refuse_host(flow, flow.request.pretty_host)
        else:
            flow.request.stream = True
            self.note_tunnel(flow.request.pretty_host)

    async def request(self, flow: http.HTTPFlow) -> None:
        """The boundary: a known host's request is decided here, and no fault sends it on in replay."""
        if flow.response is not None or flow.error is not None:
            return
        mode: Mode = self.mode
        step: Step | None = None
        host: Host | None = None
        try:
            host = traffic.known_host(self.hosts, flow)
            if host is None:
                return
            if self.runtime is None:
                flow.kill()  # the store did not open: the proxy is on its way down
                return
            session, asked_mode = traffic.take_own_headers(flow)
            if asked_mode:
                mode = "replay"  # whatever else the header says, it does not ask for a live call
            # The nearest to the call counts: its header, its client's proxy URL, the proxy's own setting.
            session = (
                session
                or self._connections.session_of(flow.client_conn)
                or self.runtime.settings.session.strip()
            )
            headers = tuple(flow.request.headers.items(multi=True))
            agent = flow.request.headers.get("user-agent", "")
            step = self.runtime.step(session, agent, time.time(), headers)
            flow.metadata[labels.STEP] = step.id
            if asked_mode.strip().lower() not in ("", "replay"):
                self._refuse(flow, refuse_mode(step, asked_mode))
                return
            if flow.request.stream:
                self._forward_unread(flow, step)
                return
            started = time.monotonic()
            decision = await self.runtime.decide(traffic.raw_request(flow), host, step, mode)
            if flow.error is not None:
                return  # the client left while its request was read
            match decision:
                case Replay():
                    started -= self._pacing.replay(
                        flow, decision, decision.headers, self.runtime.settings.pace
                    )
                    self._done(flow, replayed_step(decision, round((time.monotonic() - started) * 1000)))
                case Fail():
                    started -= self._pacing.fail(flow, decision)
                    self._done(flow, faulted_step(decision, round((time.monotonic() - started) * 1000)))
                case Refuse():
                    self._refuse(flow, decision)
                case Forward():
                    self._forward(flow, decision, host)
                case Serve():
                    self._sockets.serve(flow, decision, host, session, replay_only=bool(asked_mode))
        except Exception as error:
            self._failed(flow, mode, step, host, error)

    def _refuse(self, flow: http.HTTPFlow, refuse: Refuse) -> None:
        assert self.runtime is not None
        traffic.answer(flow, refuse.status, refuse.headers, refuse.body)
        noted = refused_step(refuse, self._line(flow) if refuse.reading is None else NO_LINE)
        self.runtime.refused(refuse, noted)
        self.finish(flow, noted)

    def _done(self, flow: http.HTTPFlow, step: StepRecord) -> None:
        """A call was answered by us: note its step."""
        assert self.runtime is not None
        self.runtime.note(step)
        self.finish(flow, step)

    def _line(self, flow: http.HTTPFlow) -> RequestLine:
        """What may be told of a request that was not read: its path is redacted, or left out."""
        request = flow.request
        path = ""
        if self.runtime is not None:
            # Where the redactor is what failed, that was said already.
            with contextlib.suppress(Exception):
                path = self.runtime.redact(request.path.partition("?")[0], request.headers.items(multi=True))
        return request.method, request.host, path

    def _forward(self, flow: http.HTTPFlow, forward: Forward, host: Host) -> None:
        if self.mode == "replay":
            raise RewindError("replay mode was set while the request was read")
        if forward.after_replay:
            logger.warning(
                "rewind: %s goes live after replayed steps: it carries ids that the provider has never seen.",
                forward.step.id,
            )
        self.forwarding.send(flow, forward, host)
        if forward.fault is not None:
            self._faulting.expect(flow, forward.fault)

    def _forward_unread(self, flow: http.HTTPFlow, step: Step) -> None:
        """mitmproxy has sent the body already, by `stream_large_bodies`, and kept nothing of it."""
        reason = "stream_large_bodies sent the body on before it was read"
        self.forwarding.send(flow, unread(step, "passed"), None, line=self._line(flow), reason=reason)

    def _failed(
        self, flow: http.HTTPFlow, mode: Mode, step: Step | None, host: Host | None, error: Exception
    ) -> None:
        """DESIGN §14: an exception of ours refuses in replay; elsewhere the request goes on, not recorded."""
        line = self._line(flow)
        logger.error("rewind: failed on %s\n%s", labels.call(*line), traceback_of(error))
        if flow.response is not None or self._pacing.answers(flow):
            return  # decided and answered; only the bookkeeping failed
        if "replay" in (mode, self.mode):  # it may have been set meanwhile
            if self.runtime is None or step is None:
                flow.kill()
            else:
                self._refuse(flow, refuse_failed(step, "model", error))
            return
        if step is None:
            self.forwarding.direct(flow, host)
        else:
            reason = f"Rewind failed ({type(error).__name__})"
            self.forwarding.send(flow, unread(step, "failed"), host, line=line, reason=reason, failed=True)

    def finish(self, flow: http.HTTPFlow, step: StepRecord | None) -> None:
        """Label a flow that is over, and mask its credentials.

        Without a step: its answer is being written down, and it is labelled again when that is over.
        """
        if step is None:
            labels.label_under_way(flow, "recorded")
        else:
            labels.label(flow, step)
        self.mask(flow)

    def finish_unread(self, flow: http.HTTPFlow) -> None:
        """Label and mask a flow of a known host whose request or answer never became whole."""
        if traffic.known_host(self.hosts, flow) is not None and not labels.labelled(flow):
            labels.label_under_way(flow, "passed")
            self.mask(flow)

    def label_again(self, flow: http.HTTPFlow, step: StepRecord) -> None:
        """What became of the answer of a flow is known now: tell whoever shows the flow."""
        labels.label(flow, step)
        ctx.master.addons.trigger(hooks.UpdateHook([flow]))

    def mask(self, flow: http.HTTPFlow) -> None:
        """Mask the credentials of a flow, and remember them: nothing of ours shall show them elsewhere."""
        self.seen.update(flow)
        if self.settings is None or self.settings.mask_flow:
            traffic.mask(flow, self.runtime.redact if self.runtime else None)

    def note_tunnel(self, name: str) -> None:
        """A host passes undecrypted, or unread: it is in the report."""
        if self.runtime is not None:
            self.runtime.report.tunnelled[name] = None

    def answers_itself(self, server: connection.Server) -> bool:
        """Whether a connection leads to an answer of our own, and nowhere else."""
        return self._pacing.owns(server) or self._sockets.owns(server)

    def refuses_unknown(self, name: str) -> bool:
        """Whether an unknown host is to be kept out; it is reported then."""
        if self.settings is None or self.settings.unknown != "refuse":
            return False
        if self.runtime is not None:
            self.runtime.report.refused_hosts[name] = None
        return True


def _log_progress(done: int, total: int) -> None:
    if done == total or done % 1000 == 0:
        logger.log(ALERT, "rewind: indexing %d of %d recordings", done, total)
