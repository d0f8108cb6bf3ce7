"""What makes a mitmproxy tool the child of a `rewind` verb: our add-on in place, a ready file, a report."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from mitmproxy import ctx, master
from mitmproxy.log import ALERT

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.explain.words import safe_line
from rewind_proxy.journal import Journal
from rewind_proxy.mitm import labels
from rewind_proxy.mitm.addon import Rewind
from rewind_proxy.mitm.questions import Questions
from rewind_proxy.mitm.starting import StartCheck, tell_terminal
from rewind_proxy.settings import Settings
from rewind_proxy.store.records import RunRecord, StepRecord

logger = logging.getLogger(__name__)

_POLL = 0.01
_PARENT_POLL = 0.5


class Ready:
    """Tells `{"port": …, "url": …}` once the proxy listens; `url` is mitmweb's, token included.

    A proxy whose store did not open is on its way down, and is never ready.
    """

    def __init__(self, tell: Callable[[JsonObject], None], rewind: Rewind) -> None:
        self._tell = tell
        self._rewind = rewind
        self._task: asyncio.Task[None] | None = None

    def running(self) -> None:
        if self._rewind.runtime is None:
            return
        self._task = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        server = ctx.master.addons.get("proxyserver")
        while not (addresses := server.listen_addrs()):  # noqa: ASYNC110  # mitmproxy tells nobody
            await asyncio.sleep(_POLL)
        # mitmproxy 12 has a token in it; 11.0 has neither token nor attribute.
        url = getattr(ctx.master, "web_url", None)
        if url is None and "web_port" in ctx.options:
            url = f"http://{ctx.options.web_host}:{ctx.options.web_port}/"
        self._tell({"port": addresses[0][1], "url": url})


class Steps:
    """Writes every model step when the proxy has ended. It stands after our add-on."""

    def __init__(self, file: Path, journal: Journal) -> None:
        self._file = file
        self._journal = journal

    def done(self) -> None:
        write_json(self._file, [each.to_json() for each in self._journal.take()])


class Orphan:
    """Ends the proxy when the verb that started it is gone, however it went (`kill -9` tells nobody)."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._task: asyncio.Task[None] | None = None

    def running(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while os.getppid() == self._parent:  # noqa: ASYNC110  # no event says that a parent died
            await asyncio.sleep(_PARENT_POLL)
        ctx.master.shutdown()


class CallLines(Journal):
    """Says of each model call that was answered how that was done; a refused one is a warning already."""

    def begin(self, run: RunRecord) -> None:
        """A line names no session."""

    def add(self, step: StepRecord) -> None:
        if step.cls == "model" and step.tier not in ("miss", "failed"):
            model = f" · {safe_line(step.model)}" if step.model else ""
            call = labels.call(step.method, step.host, step.path)
            logger.log(ALERT, "%s · %s%s", labels.said(step), call, model)


def write_json(file: Path, value: JsonValue) -> None:
    """Write a JSON file that a waiting reader sees whole or not at all."""
    part = file.with_name(file.name + ".part")
    # Escaped: half a character, which text of a client may hold, is no UTF-8.
    part.write_text(json.dumps(value), encoding="ascii")
    part.replace(file)


@dataclass(frozen=True, slots=True)
class Orders:
    """What whoever started the proxy wants to be told, by the flags of `handover`."""

    ready: Path | None = None
    report: Path | None = None
    steps: Path | None = None
    answers: IO[str] | None = None
    """Where to answer questions."""
    calls: bool = False
    """Whether each answered call is a line of the log."""


def equip(running: master.Master, before: type[Any], orders: Orders) -> StartCheck:
    """Put our add-on before the first add-on of type `before`: hooks go in the order of the chain.

    It stands where mitmproxy loads scripts: before what saves flows and before `TlsConfig`, which would ask
    the provider for its certificate. Returns what ends a proxy that cannot start.
    """

    def on_report(result: JsonObject, _: Settings) -> None:
        if orders.report is not None:
            write_json(orders.report, result)

    chain = running.addons.chain
    place = next(index for index, addon in enumerate(chain) if isinstance(addon, before))
    journal = CallLines() if orders.calls else Journal()
    wanted = orders.calls or orders.steps is not None or orders.answers is not None
    rewind = Rewind(on_report, journal if wanted else None)
    chain.insert(place, running.addons.register(rewind))
    running.addons.add(Orphan())
    tell = tell_terminal
    if orders.ready is not None:
        tell = partial(write_json, orders.ready)
        running.addons.add(Ready(tell, rewind))
    if orders.steps is not None:
        running.addons.add(Steps(orders.steps, journal))
    if orders.answers is not None:
        questions = Questions(rewind, journal, orders.answers)
        tell = questions.tell
        running.addons.add(questions, Ready(tell, rewind))
    return StartCheck.put_into(running, tell)
