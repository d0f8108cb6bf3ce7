"""Cassettes and the call log in LMDB: the only place that imports lmdb."""

from rewind_proxy.store.cassettes import Store
from rewind_proxy.store.checking import Damage
from rewind_proxy.store.current import is_store
from rewind_proxy.store.exchange import Exchange, Nearest, StoreStats
from rewind_proxy.store.log import Log, log_path
from rewind_proxy.store.recorder import Recorder
from rewind_proxy.store.recordings import Answer
from rewind_proxy.store.records import (
    FORMAT_VERSION,
    AnswerRecord,
    CassetteRecord,
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
    "Answer",
    "AnswerRecord",
    "CassetteRecord",
    "Damage",
    "Exchange",
    "IndexReport",
    "Log",
    "Nearest",
    "Recorder",
    "Redaction",
    "RequestRecord",
    "RewriteReport",
    "RunRecord",
    "Sketched",
    "StepRecord",
    "Store",
    "StoreStats",
    "is_store",
    "log_path",
]
