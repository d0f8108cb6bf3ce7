"""A proxy that is led by lines: it answers on standard output what it is asked on standard input.

For a test process, which has to know of each test's refused calls for certain, and at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import IO

from mitmproxy import ctx

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.explain.miss import miss_lines
from rewind_proxy.explain.words import safe_line
from rewind_proxy.handover import REPORT_QUESTION
from rewind_proxy.journal import Journal, report_of
from rewind_proxy.mitm.addon import Rewind

_SETTLE_LIMIT = 5.0
"""Seconds that a report waits for calls under way: a client may have left a stream open for good."""
_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def take_standard_output() -> IO[str]:
    """Standard output for answers alone; what anybody else prints goes to standard error from here on."""
    answers = os.dup(_STANDARD_OUTPUT)
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    return os.fdopen(answers, "w", encoding="ascii")


class Questions:
    """The add-on that listens and answers. It stands after ours, so that its last report has everything."""

    def __init__(self, rewind: Rewind, journal: Journal, answers: IO[str]) -> None:
        self._rewind = rewind
        self._journal = journal
        self._answers = answers

    def tell(self, value: JsonObject) -> None:
        """Say something, in one line."""
        self._answers.write(json.dumps(value) + "\n")
        self._answers.flush()

    def running(self) -> None:
        """Listen on a thread: the loop of some platforms cannot read a pipe."""
        loop, shutdown = asyncio.get_running_loop(), ctx.master.shutdown

        def listen() -> None:
            # Not `sys.stdin`: its lock, held by a thread that waits, stops the interpreter from ending.
            rest = b""
            while received := os.read(_STANDARD_INPUT, 4096):
                *questions, rest = (rest + received).split(b"\n")
                for question in questions:
                    asyncio.run_coroutine_threadsafe(self._answer(question.decode()), loop).result()
            loop.call_soon_threadsafe(shutdown)

        threading.Thread(target=listen, name="rewind-questions", daemon=True).start()

    async def _answer(self, question: str) -> None:
        if question != REPORT_QUESTION:
            self.tell({"error": f"{question!r} is no question: ask for {REPORT_QUESTION}"})
            return
        await self._settle()
        self.tell(self._report())

    async def _settle(self) -> None:
        """Wait until the calls under way are over, and then until they are counted.

        mitmproxy says that an answer is over only after its last byte has reached the client.
        """
        runtime = self._rewind.runtime
        if runtime is not None:
            await self._rewind.forwarding.settle(_SETTLE_LIMIT)
            await asyncio.get_running_loop().run_in_executor(None, runtime.settle)

    def done(self) -> None:
        """Say what nobody has asked for yet."""
        self.tell(self._report())

    def _report(self) -> JsonObject:
        report = report_of(self._journal.take(), self._rewind.mode)
        misses = report["misses"] if isinstance(report["misses"], list) else []
        told: list[JsonValue] = [
            {**miss, "text": _text_of(miss)} for miss in misses if isinstance(miss, dict)
        ]
        return {**report, "misses": told}


def _text_of(miss: JsonObject) -> str:
    """A miss as a person reads it, on whatever screen."""
    asked = safe_line(f"{miss['method']} {miss['url']}")
    return "\n".join((f"rewind: no recording for {asked}", *(each.text for each in miss_lines(miss))))
