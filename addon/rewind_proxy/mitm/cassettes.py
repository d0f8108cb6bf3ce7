"""The folder of the setting `cassettes`, beside a running proxy: read in at start, written to at the end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.opening import Opened
from rewind_proxy.porting.exporting import Exporter, in_order
from rewind_proxy.porting.folder import Orphan, read_in, redact_again, remove, write
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord

logger = logging.getLogger(__name__)


class Cassettes:
    """What the report tells of the folder, as `{"read", "written", "orphans": [{"file", "why"}, …]}`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        self._written = 0
        self._orphans: list[Orphan] = []
        self._gone: list[CassetteRecord] = []

    def read_in(self, opened: Opened, settings: Settings, now: float) -> None:
        """Put into the store what it does not have of the folder. Raises `RewindError`."""
        result = read_in(self._folder, opened, settings, now, lambda _: _untold)
        self._read = result.recordings
        self._orphans = result.orphans
        if opened.prepared.rules_added or result.redacted:
            self._redact_again(opened, settings)
        if result.recordings:
            logger.info("rewind: %d recordings were read in from %s", result.recordings, self._folder)
        for orphan in result.orphans:
            logger.warning("rewind: a recording is not used: %s", orphan)

    def _redact_again(self, opened: Opened, settings: Settings) -> None:
        try:
            for file in redact_again(self._folder, opened, _of_answers(opened, settings)):
                logger.info("rewind: written again, redacted by a longer list: %s", Orphan(file, "").name)
        except (RewindError, OSError) as error:
            logger.warning("rewind: recordings in the folder are not redacted by the longer list: %s", error)

    def forget(self, gone: Iterable[CassetteRecord]) -> None:
        """Recordings were deleted: their files go at the end, or they would be read in again."""
        self._gone += gone

    def write(self, opened: Opened, settings: Settings, runs: Iterable[str]) -> bool:
        """Write what some runs recorded into the folder, delete what was; whether that went well."""
        try:
            records = [record for run in runs for record in opened.store.cassettes(run=run)]
            if self._gone:
                remove(self._folder, self._gone)
            if not records:
                return True
            exporter = Exporter(opened.store, opened.log, opened.reader, _of_answers(opened, settings))
            result = write(self._folder, exporter.export(in_order(records)), whole=False)
        except (RewindError, OSError) as error:
            logger.warning("rewind: what was recorded is in the store alone: %s", error)
            return False
        self._written = len(result.written)
        if result.written:
            logger.info("rewind: %d recordings were written into %s", self._written, self._folder)
        return True

    def to_json(self) -> JsonObject:
        """See the class."""
        orphans: list[JsonValue] = [{"file": each.name, "why": each.why} for each in self._orphans]
        return {"read": self._read, "written": self._written, "orphans": orphans}


def _of_answers(opened: Opened, settings: Settings) -> Redactor | None:
    return Redactor(opened.reader.redactor.rules) if settings.redact_answers else None


def _untold(*_: int) -> None:
    """A log has no progress bar."""
