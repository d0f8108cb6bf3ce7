"""What goes into a store, and what is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.store.recordings import Chunks
from rewind_proxy.store.records import AnswerRecord, CassetteRecord, PendingRecord, RequestRecord
from rewind_proxy.store.sketch import EMPTY, Sketched


@dataclass(frozen=True, slots=True)
class Exchange:
    """A finished exchange, redacted, ready to be stored."""

    request: RequestRecord
    body: JsonValue | None
    """The redacted wire body; None when it is opaque or nothing of it may be kept."""
    answer: AnswerRecord
    answer_body: bytes
    chunks: Chunks
    """(length, milliseconds since the request was sent) of each chunk, in order."""
    exact: str
    normalised: str
    """Under the settings digest that the store was opened with. For class `model` only, as `links` is."""
    links: tuple[str, ...]
    run: str
    recorded_at: float
    hash_version: int
    sketched: Sketched = EMPTY
    """What the links stand for, for finding it by what is alike."""
    told: bool = False
    """`CassetteRecord.told`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused miss, redacted, ready to be kept as a pending request."""

    pending: PendingRecord
    body: JsonValue
    """The redacted wire body; None of an opaque request."""
    sketched: Sketched
    threshold: float
    """Of its candidates (`rewind_review_threshold`)."""


class Nearest(NamedTuple):
    """The recording that is most like a request."""

    record: CassetteRecord
    shared: int
    """How many links of their chains are the same."""
    likeness: float
    """From 0 to 1, of the messages; of the parameters where neither has any."""


class Similar(NamedTuple):
    """A recording whose tokens are much like those of a request."""

    record: CassetteRecord
    score: float
    """From 0 to 1."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The size of a store."""

    cassettes: int
    blobs: int
    bytes_on_disk: int
    bytes_uncompressed: int
    """Of all blobs, each once."""
    generation: int
    format: int
