"""`rewind run` around a client: what a person types to record, and later to replay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewind_proxy.cli.provider import FakeProvider
from support.children import PYTHON_PATH, Finished, environment, rewind
from support.sockets import SocketLog


@dataclass(frozen=True, slots=True)
class Run:
    """A finished `rewind run`."""

    finished: Finished
    report: dict[str, Any]
    """As DESIGN §12 gives it."""
    sockets: SocketLog


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client works: its files, its HOME, and beside them what Rewind writes for the test."""

    work: Path
    home: Path
    notes: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        """Make the three folders in `folder`."""
        place = cls(folder / "work", folder / "home", folder / "notes")
        for made in (place.work, place.home, place.notes):
            made.mkdir(parents=True)
        return place


def rewind_run(
    argv: Sequence[str | Path],
    place: Place,
    *,
    mode: str,
    store: Path,
    provider: FakeProvider,
    variables: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    seconds: float = 90.0,
) -> Run:
    """Run a client under `rewind run`. `provider` may be stopped: then its port is known, and closed.

    Hosts that Rewind does not know are refused, so that no test talks to the Internet.
    """
    sockets = SocketLog(place.notes / "sockets.jsonl")
    report = place.notes / "report.json"
    env = environment(place.home, **(variables or {})) | sockets.environment(PYTHON_PATH)
    env |= {"REWIND_UPSTREAM": provider.upstream, "REWIND_UNKNOWN": "refuse"}
    flags: list[str | Path] = ["--mode", mode, "--store", store, "--report", report, *options]
    finished = rewind("run", *flags, "--", *argv, env=env, cwd=place.work, seconds=seconds)
    assert report.is_file(), f"no report was written:\n{finished.output}"
    return Run(finished, json.loads(report.read_text()), sockets)
