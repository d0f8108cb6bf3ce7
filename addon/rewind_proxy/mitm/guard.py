"""What stands behind all add-ons and stays when ours goes: mitmdump's exit status, and a lock on replay."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

from mitmproxy import ctx, http
from mitmproxy.flow import Flow
from mitmproxy.log import ALERT
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.explain.summary import headline
from rewind_proxy.report import REFUSED_EXIT
from rewind_proxy.settings import Settings

logger = logging.getLogger(__name__)

_GONE = (
    "rewind: the add-on is gone (its script was removed, or does not load): refused, as replay mode was on"
)
_MOVED = "rewind: another add-on has moved a call that is answered here (%s to %s): closed"

Strayed = Callable[[http.HTTPFlow], bool]
GiveBack = Callable[[http.HTTPFlow], None]


class Guard:
    """Ends mitmdump with 4 when a model call was refused in replay mode, and keeps a proxy without us shut.

    mitmproxy loads a script again when its file changes; when that fails, it goes on without the add-on, and
    calls would go live. It is appended last while running, so that every other add-on is done first: a
    `SystemExit` from `done` ends the process (MITMPROXY.md).
    """

    name = "rewind_guard"

    def __init__(self) -> None:
        self.status = 0
        self._orphaned = False
        self._strayed: Strayed | None = None
        self._give_back: GiveBack | None = None

    @classmethod
    def attached(cls, strayed: Strayed, give_back: GiveBack) -> Guard:
        """The one of this process, appended when there is none yet: a live reload keeps it.

        `strayed` tells whether a flow that leads to an answer of ours was turned somewhere else; `give_back`
        takes from a flow what was only for the other add-ons.
        """
        known = ctx.master.addons.get(cls.name)
        if not isinstance(known, cls):
            known = cls()
            ctx.master.addons.add(known)
        known._orphaned, known._strayed, known._give_back = False, strayed, give_back
        return known

    def orphan(self, mode: Mode) -> None:
        """The add-on goes; unless another one attaches itself, nothing passes if replay mode was on."""
        self._orphaned = mode == "replay"

    def report(self, report: JsonObject, settings: Settings) -> None:
        """Print the summary and remember what the process shall end with."""
        logger.log(ALERT, "%s", headline(report).text)
        if settings.mode == "replay" and report["refused"]:
            self.status = REFUSED_EXIT

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """No connection is opened once the add-on is gone."""
        if self._orphaned:
            data.server.error = _GONE
            self._say()

    def request(self, flow: http.HTTPFlow) -> None:
        """No request passes once the add-on is gone, on connections that were open before either.

        Nor does one whose answer another add-on (a script that moves hosts) would have somebody else give.
        """
        if self._strayed is not None and self._strayed(flow):
            flow.kill()
            self.status = REFUSED_EXIT
            logger.error(_MOVED, flow.request.method, flow.request.host)
        elif self._orphaned and flow.response is None:
            flow.kill()
            self._say()

    def update(self, flows: Sequence[Flow]) -> None:
        """What mitmproxy calls when a hook of a flow is over, before it goes on."""
        for flow in flows:
            if self._give_back is not None and isinstance(flow, http.HTTPFlow):
                self._give_back(flow)

    def _say(self) -> None:
        self.status = REFUSED_EXIT
        logger.error(_GONE)

    def done(self) -> None:
        if self.status:
            sys.exit(self.status)
