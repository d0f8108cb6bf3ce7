"""Looking into a store and its log while a proxy uses them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from proxy.calls import Ask
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.errors import GoneError
from rewind_proxy.store import Log, Store
from rewind_proxy.store.records import CassetteRecord, RunRecord, StepRecord
from support.client import Got
from support.proxies import Proxy

T = TypeVar("T")
_POLL = 0.02
_NEWEST = 60


def until(look: Callable[[], T | None], seconds: float = 15.0) -> T:
    """Look again and again until there is something, and return that; what was seen last fails the test."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(_POLL)
    return found


def steps_of(store: Path, session: str, count: int = 1) -> list[StepRecord]:
    """The steps of a session, once there are as many; fails when there are more."""

    def look() -> list[StepRecord] | None:
        with Log.open(store, readonly=True) as log:
            runs = [run for run in log.runs(newest_first=False) if run.session == session]
            found = [step for run in runs for step in log.steps(run.id)]
        return found if len(found) >= count else None

    steps = until(look)
    assert len(steps) == count, f"{len(steps)} steps instead of {count}: {steps}"
    return steps


def run_of(store: Path, session: str) -> RunRecord:
    """The run of a session, once it is there."""

    def look() -> RunRecord | None:
        with Log.open(store, readonly=True) as log:
            return next((run for run in log.runs() if run.session == session), None)

    return until(look)


def cassettes(store: Path, prompt: str) -> list[CassetteRecord]:
    """The recordings whose request holds a text, in recorded order, among the newest of the store."""
    needle = prompt.encode()
    with Store.open(store, settings_digest="0", readonly=True) as opened:
        found = []
        for each in islice(opened.cassettes(newest_first=True), _NEWEST):
            with suppress(GoneError):  # the proxy has replaced it since it was listed
                if needle in dumps(opened.request_body(each)):
                    found.append(each)
    return found[::-1]


def record(live: Proxy, ask: Ask, prompt: str, *, session: str = "recording") -> Got:
    """Ask a live proxy, and wait until the answer can be looked up."""
    before = len(cassettes(live.store, prompt))
    got = ask.once(live, prompt, headers={"x-rewind-session": session})
    recorded(live.store, prompt, before + 1)
    return got


def recorded(store: Path, prompt: str, count: int = 1) -> list[CassetteRecord]:
    """The same, once there are as many."""
    return until(lambda: found if len(found := cassettes(store, prompt)) >= count else None)
