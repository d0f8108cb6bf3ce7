"""What the store keeps, as pydantic models in JSON. Bodies are blobs beside them.

The pace of an answer (lengths and times of its chunks) is kept with its bytes, not in these records, so that
reading a record costs the same for a long stream as for a short one.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from rewind_proxy.canonical.model import EndpointClass, Form, Mode, Operation, Tier, Wire

FORMAT_VERSION = 1


class Record(BaseModel):
    """Frozen, and strict about unknown members: a newer format is refused by its version, not guessed."""

    # Errors do not quote what they choked on: a traceback in a log must not hold a credential.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        hide_input_in_errors=True,
    )

    def to_json(self) -> bytes:
        """Its JSON. Half a character (a lone surrogate, from a cut emoji) is no UTF-8 and becomes `?`."""
        try:
            return self.model_dump_json().encode()
        except PydanticSerializationError:
            return json.dumps(self.model_dump(), ensure_ascii=False).encode("utf-8", "replace")


class RequestRecord(Record):
    """A request as stored: redacted, not scrubbed, the body apart (as blobs)."""

    method: str
    host: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    """Decoded pairs, credentials already `[REDACTED]`."""
    content_type: str = ""
    user_agent: str = ""
    """Kept because it chooses the preset; redacted."""
    cls: EndpointClass = "model"
    wire: Wire
    form: Form
    operation: Operation = "generate"
    preset: str = ""
    """`id@version` of the agent preset the request was recognised as, or empty."""
    opaque: bool = False
    body_length: int = 0
    """Bytes of the decoded body as sent."""
    body_sha256: str = ""
    """Of the decoded body as sent, for an opaque one only; else empty."""
    slots_digest: str = ""
    """Tells whether a live request has the same folders, ids and times (`matching.rebasing.slots`)."""
    written_digest: str = ""
    """Tells whether a live request is written alike but for `params` (`matching.reading`)."""
    params: dict[str, Any] = Field(default_factory=dict)
    """The scalar canonical parameters (`model`, `temperature`, `max_tokens` …): choice and notes."""


class AnswerRecord(Record):
    """An answer as stored: the decoded bytes the client saw are a blob."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    """By allow-list only (DESIGN §6), names in lower case."""
    content_type: str = ""
    ending: str = "complete"
    """`complete`, `length` or (with `record_errors`) `error`."""
    model: str | None = None
    input_tokens: int = 0
    """What a cache had to do with included, on every wire (`canonical.model.Usage`)."""
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    latency_ms: int = 0
    """From the request being sent to the last byte."""
    by_hand: bool = False
    """A person supplied it to a pending request; no model said it."""


class CassetteRecord(Record):
    """One recorded exchange: immutable, addressed by its content."""

    id: str
    """`sha256(exact fingerprint ‖ answer bytes)`, hex. The same answer recorded again has the same id."""
    seq: int
    """Grows by one for each recording of a store, and names it: recorded order."""
    run: str
    recorded_at: float
    """Seconds since the epoch, UTC."""
    format_version: int = FORMAT_VERSION
    hash_version: int
    exact: str
    """Exact fingerprint, hex: of the live request, kept for ever."""
    told: bool = False
    """A file told it, and what is there of the request, redacted, cannot prove it."""
    request: RequestRecord
    answer: AnswerRecord
    answer_sha256: str
    """Of the answer's bytes, which are stored once under it."""
    answer_length: int
    checksum: str
    """sha256 over the stored structure (which names every blob of the request by its digest) and
    `answer_sha256`; guards the stored bytes."""


class StepRecord(Record):
    """One intercepted call in a run."""

    run: str
    number: int
    """From 1, in the order the calls arrived."""
    started_at: float
    cls: EndpointClass = "model"
    method: str
    host: str
    path: str
    wire: Wire = "generic"
    operation: Operation = "generate"
    form: Form = "whole"
    model: str | None = None
    tier: Tier
    status: int | None = None
    exact: str = ""
    normalised: str = ""
    cassette: str | None = None
    latency_ms: int = 0
    saved_ms: int = 0
    """Latency of the recording that a hit did not wait for."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    preview: str = ""
    """The first 120 characters of the last message with text, redacted before the cut."""
    note: str = ""
    """As in `x-rewind-note`."""
    reason: str = ""
    """Why it was refused, or failed to be recorded."""
    slots: tuple[str, ...] = ()
    """What scrubbing took out of the request of a normalised hit: the first values, in canonical order."""
    miss: dict[str, Any] | None = None
    """The miss report, JSON as DESIGN §12 gives for `misses` (redacted)."""


class RunRecord(Record):
    """One client session through the proxy."""

    id: str
    """Sorts by start."""
    session: str = ""
    mode: Mode
    started_at: float
    ended_at: float | None = None
    client: str = ""
    """The user agent of its first model call."""
    tunnelled: tuple[str, ...] = ()
    """Hosts that passed through undecrypted."""


class PendingRecord(Record):
    """A refused miss, kept so that an answer can be supplied later. The body is kept apart."""

    id: str
    """The normalised fingerprint when it was refused first, hex: the name of it, for ever."""
    normalised: str
    """The normalised fingerprint now: another one once more is redacted."""
    exact: str
    request: RequestRecord
    session: str = ""
    run: str
    """Where it was refused last, as `step` and `last_at`."""
    step: int
    first_at: float
    last_at: float
    count: int = 1
    """How often it was refused."""
    preview: str = ""
    """As in `StepRecord`."""
    reason: str = ""
    nearest: str | None = None
    """The recording that its miss report named."""
    put_away: bool = False
    """A person said no to all of its candidates; that holds until it is refused again."""


class CandidateRecord(Record):
    """A recording that is close to a pending request, waiting for a person's yes or no."""

    cassette: str
    score: float
    """From 0 to 1."""
    rejected: bool = False


class AliasRecord(Record):
    """An approved pairing: the request is answered by the cassette. The body is kept as those of recordings.

    It holds the request itself, so that its fingerprint can be computed under any match settings and after
    more was redacted.
    """

    id: str
    """That of the pending request it was approved for."""
    cassette: str
    exact: str
    request: RequestRecord
    approved_at: float
    score: float | None = None
    step: str = ""
    """Where it was refused: `RUN.NUMBER`."""
