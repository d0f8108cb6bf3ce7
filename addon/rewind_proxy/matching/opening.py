"""A store made ready for a proxy: redacted by every rule in force, indexed for the settings in force."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rewind_proxy.canonical.fingerprint import settings_digest
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.reading import RequestReader
from rewind_proxy.matching.rewriting import run_rewriter, step_rewriter
from rewind_proxy.settings import Settings
from rewind_proxy.store import Log, Store
from rewind_proxy.wire import HostTable

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A store and its log, open, and the reader of requests that goes with them."""

    store: Store
    log: Log
    reader: RequestReader

    def close(self) -> None:
        """Close both."""
        self.log.close()
        self.store.close()


def open_ready(settings: Settings, hosts: HostTable, progress: Progress) -> Opened:
    """Open a store and log for a proxy. Raises `RewindError`, with nothing left open.

    The rules in force are the store's and the settings' together, the store's first (DESIGN §6). A longer
    list redacts everything stored again. A store that cannot be written is opened for reading in replay mode,
    and indexed in memory; its log goes to a temporary folder.
    """
    wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    digest = settings_digest(settings.match_settings)
    readonly = settings.mode == "replay" and not _can_write(settings.store)
    log_beside = Path(tempfile.mkdtemp(prefix="rewind-log-")) / "store" if readonly else settings.store
    with ExitStack() as opened:
        store = Store.open(settings.store, settings_digest=digest, redaction=wanted, readonly=readonly)
        opened.callback(store.close)
        log = Log.open(log_beside, redaction=wanted)
        opened.callback(log.close)
        rules = (*store.redaction, *(rule for rule in wanted if rule not in store.redaction))
        redactor = Redactor(rules)
        reader = RequestReader(hosts, redactor, settings.match_settings, settings.max_body)
        if readonly:
            logger.warning("rewind: %s cannot be written; this run's log is in %s", store.path, log_beside)
        if rules != store.redaction and store.count("model") + store.count("side"):
            if readonly:
                raise StoreError(
                    f"{store.path} was written under a shorter list of redaction rules and cannot be "
                    "written: run `rewind maintain` on it where it can be"
                )
            logger.warning("rewind: the redaction list has grown: everything stored is redacted again")
            store.rewrite(redactor.value, rules, redactor.text, progress)
        if not set(rules) <= set(log.redaction):
            log.rewrite(run_rewriter(redactor), step_rewriter(redactor, reader, store), rules)
        if store.needs_index():
            index = store.index(reader.keys_of, progress)
            logger.info("rewind: %d recordings are indexed for these settings", index.indexed)
        opened.pop_all()
    return Opened(store, log, reader)


def _can_write(store: Path) -> bool:
    """Whether the store can be written, or made where it is missing."""
    existing = next(folder for folder in (store, *store.parents) if folder.exists())
    inside = [path for path in existing.rglob("*") if path.is_dir()] if existing == store else []
    return all(os.access(folder, os.W_OK) for folder in (existing, *inside))
