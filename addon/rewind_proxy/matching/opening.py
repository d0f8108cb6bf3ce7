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
from rewind_proxy.matching.rewriting import answer_rewriter, pending_rewriter, run_rewriter, step_rewriter
from rewind_proxy.settings import Settings
from rewind_proxy.store import IndexReport, Log, Redaction, RewriteReport, Store, log_path
from rewind_proxy.wire import HostTable

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
Watch = Callable[[str], Progress]
"""Given what is about to be done, in a few words, whom to tell how far it is: (done, of how many)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What it took to make a store ready."""

    rules_added: int = 0
    rewritten: int = 0
    dropped: tuple[str, ...] = ()
    """Why each record of store or log that could not be read, and so not be redacted, was left out."""
    indexed: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A store and its log, open, and the reader of requests that goes with them."""

    store: Store
    log: Log
    reader: RequestReader
    prepared: Prepared = Prepared()
    log_elsewhere: Path | None = None
    """Where the log is, if it cannot be beside the store: nobody looks for pending requests there."""

    def close(self) -> None:
        """Close both."""
        self.log.close()
        self.store.close()


def open_ready(settings: Settings, hosts: HostTable, watch: Watch) -> Opened:
    """Open a store and log for a proxy. Raises `RewindError`, with nothing left open.

    The rules in force are the store's and the settings' together, the store's first (DESIGN §6). A longer
    list redacts everything stored again. A store that cannot be written is opened for reading in replay mode,
    and indexed in memory; its log goes to a temporary folder where it cannot be beside it.
    """
    wanted = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    digest = settings_digest(settings.match_settings)
    readonly = settings.mode == "replay" and not _can_write(settings.store)
    log_beside = settings.store
    if readonly and not _can_write(log_path(settings.store)):
        log_beside = Path(tempfile.mkdtemp(prefix="rewind-log-")) / "store"
    with ExitStack() as opened:
        store = Store.open(settings.store, settings_digest=digest, redaction=wanted, readonly=readonly)
        opened.callback(store.close)
        log = Log.open(log_beside, redaction=wanted)
        opened.callback(log.close)
        before = store.redaction
        rules = (*before, *(rule for rule in wanted if rule not in before))
        redactor = Redactor(rules)
        reader = RequestReader(hosts, redactor, settings.match_settings, settings.max_body)
        if log_beside != settings.store:
            logger.warning(
                "rewind: %s cannot be written; this run's log is in %s", store.path, log_path(log_beside)
            )
        rewritten, dropped = 0, []
        if rules != before and store.count("model") + store.count("side"):
            if readonly:
                raise StoreError(
                    f"{store.path} was written under a shorter list of redaction rules and cannot be "
                    "written: run `rewind maintain` on it where it can be"
                )
            logger.warning("rewind: the redaction list has grown: everything stored is redacted again")
            report = rewrite_store(store, reader, watch, answers=settings.redact_answers)
            rewritten, dropped = report.rewritten, [*report.dropped]
        if not set(rules) <= set(log.redaction):
            steps = step_rewriter(redactor, reader, store)
            tell, refused = watch("redacting the log"), pending_rewriter(redactor, reader)
            dropped += log.rewrite(run_rewriter(redactor), steps, rules, tell, refused=refused)
        for why in dropped:
            logger.warning("rewind: left out, since it could not be redacted: %s", why)
        index = index_store(store, reader, watch)
        opened.pop_all()
    prepared = Prepared(len(rules) - len(before), rewritten, tuple(dropped), index.indexed, index.quarantined)
    elsewhere = None if log_beside == settings.store else log_path(log_beside)
    return Opened(store, log, reader, prepared, elsewhere)


def rewrite_store(store: Store, reader: RequestReader, watch: Watch, *, answers: bool) -> RewriteReport:
    """Redact everything stored again, by the rules of `reader`; recorded answers too, if asked to."""
    redactor = reader.redactor
    redaction = Redaction(
        redactor.value,
        redactor.text,
        lambda record, body: reader.read_stored(record, body).record,
        answer_rewriter(redactor) if answers else None,
    )
    return store.rewrite(redaction, redactor.rules, watch("redacting the recordings"))


def index_store(store: Store, reader: RequestReader, watch: Watch) -> IndexReport:
    """Index what is not indexed for the settings in force, and say what cannot be."""
    store.aliases.index(lambda alias, body: reader.read_kept(alias.request, alias.exact, body).fingerprint)
    if not store.needs_index():
        return store.index_report()
    index = store.index(reader.keys_of, watch("indexing for these settings"))
    logger.info("rewind: %d recordings are indexed for these settings", index.indexed)
    if index.quarantined:
        logger.warning(
            "rewind: %d recordings cannot be matched under these settings (`rewind verify` says why)",
            index.quarantined,
        )
    return index


def _can_write(store: Path) -> bool:
    """Whether the store can be written, or made where it is missing."""
    try:
        existing = next(folder for folder in (store, *store.parents) if folder.exists())
    except PermissionError:  # not even that may be looked at; opening it says so
        return False
    inside = [path for path in existing.rglob("*") if path.is_dir()] if existing == store else []
    return all(os.access(folder, os.W_OK) for folder in (existing, *inside))
