"""From a forwarded call and the answer that passed by to what the store keeps of it. Pure.

Only complete answers are recorded (DESIGN §7): 2xx, and a stream once its wire's terminal event was parsed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from rewind_proxy.canonical.fingerprint import HASH_VERSION
from rewind_proxy.canonical.model import Ending, Usage
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.engine import Fail, Forward, Header, Refuse, Replay, Step
from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.matching.answer_redaction import answer_form, moved_chunks, redact_answer
from rewind_proxy.matching.reading import Reading
from rewind_proxy.store import Exchange, Refusal
from rewind_proxy.store.records import AnswerRecord, CassetteRecord, PendingRecord, RequestRecord, StepRecord
from rewind_proxy.wire import ADAPTERS
from rewind_proxy.wire.body import decode

MAX_ANSWER = 256 * 2**20
"""Bytes of one decoded answer that are kept; a longer one is passed on and not recorded."""

# DESIGN §6: what clients echo or obey, never cookies or what tells who the account is.
_KEPT_HEADERS = frozenset(
    "content-type retry-after retry-after-ms x-should-retry request-id x-request-id anthropic-request-id "
    "x-ms-request-id apim-request-id x-oai-request-id".split()
)
_KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


_MOST_SLOTS = 32
_LONGEST_SLOT = 200


@dataclass(frozen=True, slots=True)
class Captured:
    """An answer that passed by: `chunks` are (bytes as sent, milliseconds since the request was sent)."""

    status: int
    headers: tuple[Header, ...]
    chunks: tuple[tuple[bytes, int], ...]
    ended_at: float
    """Seconds since the epoch."""
    broken: str = ""
    """What broke it off before its end, if something did."""

    def header(self, name: str) -> str:
        """The first header of that name (lower case), or an empty string."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def latency_ms(self) -> int:
        """Until the last byte."""
        return self.chunks[-1][1] if self.chunks else 0


@dataclass(frozen=True, slots=True)
class NotRecorded:
    """Why an answer that passed by is not kept; the client has it all the same."""

    reason: str


def exchange(
    forward: Forward, captured: Captured, *, record_errors: bool, redactor: Redactor | None = None
) -> Exchange | NotRecorded:
    """What the store keeps of a forwarded call, or why it keeps nothing.

    With a `redactor` the answer is kept without credentials (`redact_answers`); the client had it as it was.
    """
    reading = forward.reading
    if reading is None:
        return NotRecorded("the request could not be read")
    success = 200 <= captured.status < 300
    if not success and captured.broken:
        return NotRecorded(captured.broken)
    if captured.status == HTTPStatus.PARTIAL_CONTENT:
        # A header asked for a part, and no header is in a fingerprint: it would answer for the whole.
        return NotRecorded("status 206: a part is no answer to the whole request")
    if not success and not record_errors:
        return NotRecorded(f"status {captured.status}: only complete answers are recorded")
    encoding = captured.header("content-encoding")
    sent = b"".join(piece for piece, _ in captured.chunks)
    try:
        # A client leaves once it has read the terminal event, and that is not the end of a coding.
        body = decode(sent, encoding, MAX_ANSWER, cut=bool(captured.broken))
    except OpaqueBodyError as error:
        return NotRecorded(f"the answer does not decode: {error}")
    ending = _ending(reading, captured, body) if success else Ending("error")
    if ending.kind == "cut":
        return NotRecorded(captured.broken or "the answer ended before its terminal event")
    if ending.kind == "error" and success:
        return NotRecorded("the answer holds an error")
    encoded = encoding.strip().lower() not in ("", "identity")
    # A coded stream has no piece of its own for each chunk: it is kept as one.
    chunks: tuple[tuple[int, int], ...] = ((len(body), captured.latency_ms),)
    if not encoded:
        chunks = tuple((len(piece), ms) for piece, ms in captured.chunks if piece)
    if redactor is not None:
        form = answer_form(captured.header("content-type"), reading.record.form)
        redacted = redact_answer(body, reading.endpoint.wire, form, redactor)
        body, chunks = redacted.body, moved_chunks(chunks, redacted)
    usage = ending.usage or Usage()
    return Exchange(
        request=_as_answered(reading.record, captured.header("content-type")),
        body=reading.body,
        answer=AnswerRecord(
            status=captured.status,
            headers=kept_headers(captured.headers),
            content_type=captured.header("content-type"),
            ending=ending.kind,
            model=ending.model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cache_written_tokens=usage.cache_written_tokens,
            latency_ms=captured.latency_ms,
        ),
        answer_body=body,
        chunks=chunks,
        exact=reading.exact,
        normalised=reading.fingerprint,
        links=reading.links,
        sketched=reading.sketched,
        run=forward.step.session.run.id,
        recorded_at=captured.ended_at,
        hash_version=HASH_VERSION,
    )


def _ending(reading: Reading, captured: Captured, body: bytes) -> Ending:
    streamed = answer_form(captured.header("content-type"), "whole") == "sse"
    known = reading.endpoint.cls == "model" and reading.endpoint.wire != "generic"
    if captured.broken and not (streamed and known):
        return Ending("cut")  # only a terminal event tells that what came before the break was all
    if reading.endpoint.cls != "model":
        return Ending("complete")
    form = reading.record.form
    if streamed:
        form = "sse"  # what came counts, not what was asked for
    elif form == "sse" and not known:
        form = "whole"  # it asked by a header, or streams are of another kind there
    elif form == "sse":
        return Ending("error")  # a stream was asked for and something else came: not this request's answer
    endpoint = reading.endpoint
    return ADAPTERS[endpoint.wire].ending(form, endpoint.operation, body, _choices(reading))


def _choices(reading: Reading) -> int:
    """How many alternatives were asked for."""
    asked = reading.canonical.params.get("n") if reading.canonical else None
    return int(asked) if isinstance(asked, int | float) and asked > 1 else 1


def _as_answered(request: RequestRecord, content_type: str) -> RequestRecord:
    """The request, as one for a stream if one came and no adapter can tell what was asked for.

    So a stream never answers a request that did not ask for one.
    """
    if request.wire == "generic" and answer_form(content_type, "whole") == "sse":
        return request.model_copy(update={"form": "sse"})
    return request


def kept_headers(headers: Iterable[Header]) -> tuple[Header, ...]:
    """The response headers that are stored, by allow-list, names in lower case."""
    lower = ((name.lower(), value) for name, value in headers)
    return tuple((n, v) for n, v in lower if n in _KEPT_HEADERS or n.startswith(_KEPT_PREFIXES))


def _step(step: Step, reading: Reading | None, **known: object) -> StepRecord:
    facts: dict[str, object] = {}
    if reading is not None:
        model = reading.record.params.get("model")
        facts = {
            "cls": reading.endpoint.cls,
            "method": reading.target.method,
            "host": reading.target.host,
            "path": reading.record.path,
            "wire": reading.endpoint.wire,
            "operation": reading.endpoint.operation,
            "form": reading.record.form,
            "model": model if isinstance(model, str) else None,
            "exact": reading.exact,
            "normalised": reading.fingerprint,
            "preview": reading.preview,
        }
    identity = {"run": step.session.run.id, "number": step.number, "started_at": step.started_at}
    return StepRecord.model_validate(identity | facts | known)


def faulted_step(fail: Fail, latency_ms: int) -> StepRecord:
    """The step of a call that got an error on purpose: it is no refusal, and nothing of it is recorded."""
    return _step(
        fail.step,
        fail.reading,
        tier="passed",
        status=fail.status,
        latency_ms=latency_ms,
        note=fail.fault.note,
        reason="a fault on purpose",
    )


def replayed_step(replay: Replay, latency_ms: int) -> StepRecord:
    """The step of a call answered from the store."""
    answer = replay.cassette.answer
    return _step(
        replay.step,
        replay.reading,
        tier=replay.tier,
        status=answer.status,
        cassette=replay.cassette.id,
        latency_ms=latency_ms,
        saved_ms=answer.latency_ms,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        cache_written_tokens=answer.cache_written_tokens,
        note=replay.note,
        slots=_slots(replay),
    )


def _slots(replay: Replay) -> tuple[str, ...]:
    """What the log keeps of the live request's slots, where the recording has others.

    A value of a length that is no id, path or time counts, and is left out.
    """
    normalised, recorded = replay.reading.normalised, replay.cassette.request
    same = recorded.slots_digest == replay.reading.record.slots_digest
    if replay.tier == "exact" or normalised is None or same:
        return ()
    return tuple(
        each.value if len(each.value) <= _LONGEST_SLOT else "" for each in normalised.taken[:_MOST_SLOTS]
    )


def refused_step(refuse: Refuse, request_line: tuple[str, str, str]) -> StepRecord:
    """The step of a refused call; `request_line` is (method, host, path) for one that could not be read."""
    method, host, path = request_line
    return _step(
        refuse.step,
        refuse.reading,
        **({} if refuse.reading else {"method": method, "host": host, "path": path}),
        cls=refuse.cls,
        tier=refuse.tier,
        status=refuse.status,
        reason=refuse.miss.reason,
        miss=refuse.miss.to_json(),
    )


def refusal(refuse: Refuse, threshold: float) -> Refusal | None:
    """What is kept of a refused call, so that it can be answered later; None for what is no miss.

    `threshold` is that of its candidates.
    """
    reading, step = refuse.reading, refuse.step
    if reading is None or reading.endpoint.cls != "model" or refuse.tier != "miss":
        return None
    record = PendingRecord(
        id=reading.fingerprint,
        normalised=reading.fingerprint,
        exact=reading.exact,
        request=reading.record,
        session=step.session.run.session,
        run=step.session.run.id,
        step=step.number,
        first_at=step.started_at,
        last_at=step.started_at,
        preview=reading.preview,
        reason=refuse.miss.reason,
        nearest=refuse.miss.nearest,
    )
    return Refusal(record, reading.body, reading.sketched, threshold)


def recorded_step(forward: Forward, cassette: CassetteRecord | Exchange, status: int) -> StepRecord:
    """The step of a call whose answer is kept."""
    answer = cassette.answer
    return _step(
        forward.step,
        forward.reading,
        tier="recorded",
        status=status,
        cassette=cassette.id if isinstance(cassette, CassetteRecord) else None,
        latency_ms=answer.latency_ms,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        cache_written_tokens=answer.cache_written_tokens,
        note=_live_note(forward),
    )


def passed_step(
    forward: Forward,
    request_line: tuple[str, str, str],
    *,
    status: int | None,
    latency_ms: int,
    reason: str,
    failed: bool = False,
) -> StepRecord:
    """The step of a call that was sent on and not recorded; `failed`: the fault was ours."""
    method, host, path = request_line
    return _step(
        forward.step,
        forward.reading,
        **({} if forward.reading else {"method": method, "host": host, "path": path, "cls": forward.cls}),
        tier="failed" if failed else "passed",
        status=status,
        latency_ms=latency_ms,
        reason=reason,
        note=_live_note(forward),
    )


def _live_note(forward: Forward) -> str:
    notes = [forward.fault.note] if forward.fault else []
    if forward.after_replay:
        notes.append("live after replayed steps")
    return "; ".join(notes)
