"""Cassettes and the call log in LMDB: the only place that imports lmdb."""

from rewind_proxy.store.cassettes import Store
from rewind_proxy.store.checking import Damage
from rewind_proxy.store.current import is_store
from rewind_proxy.store.exchange import Exchange, Nearest, Refusal, Similar, StoreStats
from rewind_proxy.store.log import Log, log_path
from rewind_proxy.store.recorder import Recorder, failed_step
from rewind_proxy.store.recordings import Answer
from rewind_proxy.store.records import (
    FORMAT_VERSION,
    AliasRecord,
    AnswerRecord,
    CandidateRecord,
    CassetteRecord,
    PendingRecord,
    RequestRecord,
    RunRecord,
    StepRecord,
)
from rewind_proxy.store.reindex import IndexReport
from rewind_proxy.store.rewrite import Redaction, RewriteReport
from rewind_proxy.store.sketch import EMPTY, Sketched

__all__ = [
    "EMPTY",
    "FORMAT_VERSION",
    "AliasRecord",
    "Answer",
    "AnswerRecord",
    "CandidateRecord",
    "CassetteRecord",
    "Damage",
    "Exchange",
    "IndexReport",
    "Log",
    "Nearest",
    "PendingRecord",
    "Recorder",
    "Redaction",
    "Refusal",
    "RequestRecord",
    "RewriteReport",
    "RunRecord",
    "Similar",
    "Sketched",
    "StepRecord",
    "Store",
    "StoreStats",
    "failed_step",
    "is_store",
    "log_path",
]
