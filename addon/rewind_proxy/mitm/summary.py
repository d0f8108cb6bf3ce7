"""The summary at the end of a proxy, and the exit status of a plain mitmdump."""

from __future__ import annotations

import logging
import sys

from mitmproxy import ctx
from mitmproxy.log import ALERT

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.report import REFUSED_EXIT
from rewind_proxy.settings import Settings

logger = logging.getLogger(__name__)


def summary(report: JsonObject) -> str:
    """One line of a report: `rewind (replay): 3 calls · 2 exact · 1 refused · 5 side · 812 tokens saved`."""
    words = [f"{report['steps']} calls"]
    for name in ("exact", "normalised", "alias", "recorded", "passed", "refused", "failed", "side", "unused"):
        if report[name]:
            words.append(f"{report[name]} {name}")
    if report["tokens_saved"]:
        words.append(f"{report['tokens_saved']} tokens saved")
    if isinstance(tunnelled := report["tunnelled"], list) and tunnelled:
        words.append("tunnelled " + ", ".join(map(str, tunnelled)))
    return f"rewind ({report['mode']}): " + " · ".join(words)


class ExitStatus:
    """Ends mitmdump with 4 when a model call was refused in replay mode.

    It is appended last while running, so that every other add-on is done first: a `SystemExit` from `done`
    ends the process (MITMPROXY.md).
    """

    name = "rewind_exit_status"

    def __init__(self) -> None:
        self.status = 0

    @classmethod
    def attached(cls) -> ExitStatus:
        """The one of this process, appended when there is none yet: a live reload keeps it."""
        known = ctx.master.addons.get(cls.name)
        if isinstance(known, cls):
            return known
        added = cls()
        ctx.master.addons.add(added)
        return added

    def report(self, report: JsonObject, settings: Settings) -> None:
        """Print the summary and remember what the process shall end with."""
        logger.log(ALERT, "%s", summary(report))
        if settings.mode == "replay" and report["refused"]:
            self.status = REFUSED_EXIT

    def done(self) -> None:
        if self.status:
            sys.exit(self.status)
