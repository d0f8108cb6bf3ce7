"""What a recording of our own text asks: read again from what is there, nothing taken on trust.

Only where the request is not there as it was sent (redacted, or kept as a digest) its exact fingerprint is
that which the text tells, and only if nobody edited the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from rewind_proxy.canonical.document import Document
from rewind_proxy.canonical.fingerprint import EXACT_END, HASH_VERSION, exact_lead, opaque_fingerprint
from rewind_proxy.canonical.model import JsonValue, Target
from rewind_proxy.canonical.redact import strip_query
from rewind_proxy.matching.reading import Reading, RequestReader, written_digest
from rewind_proxy.porting.document import Kept, hides_something
from rewind_proxy.store.records import AnswerRecord, CassetteRecord
from rewind_proxy.wire import Host, classify

_WITH_PORT = re.compile(r"(?P<name>.+):(?P<port>[0-9]{1,5})", re.DOTALL)
NEVER = {
    "telemetry": "telemetry is never recorded",
    "auth": "logins and tokens are never recorded",
    "socket": "WebSockets are not imported",
}
"""Why nothing is kept of a class."""


def read_kept(kept: Kept, host: Host, reader: RequestReader) -> Reading | str:
    """What a recording asks, redacted by the rules of `reader`; or why nobody can know."""
    asked = kept.request
    target = _target(kept, host.name)
    endpoint = classify(host, target, upgrade=False)
    if reason := NEVER.get(endpoint.cls):
        return reason
    exact = _exact(kept, target)
    if exact is None:
        return "its request is kept as a digest alone, and that was edited"
    redactor = reader.redactor
    record = asked.model_copy(
        update={
            "host": target.host,
            "path": redactor.text(asked.path),
            "query": redactor.query(asked.query),
            "content_type": redactor.text(asked.content_type),
            "user_agent": redactor.text(asked.user_agent),
            "cls": endpoint.cls,
            "wire": endpoint.wire,
            "operation": endpoint.operation,
            "opaque": kept.body is None and asked.opaque,
        }
    )
    body = redactor.value(kept.body)
    # As if it stood in the store: that is read without what only the live request had.
    stored = CassetteRecord(
        id="", seq=0, run="", recorded_at=0, hash_version=HASH_VERSION, exact=exact, request=record,
        answer=AnswerRecord(), answer_sha256="", answer_length=0, checksum="",
    )  # fmt: skip
    reading = reader.read_stored(stored, body)
    made = reading.record
    carried = kept.written if not kept.edited and hides_something(kept) else ""
    _, members = Document(kept.body).digests(b"")
    written = carried or written_digest(kept.body, members, made.params)
    update: dict[str, object] = {"written_digest": written}
    if endpoint.wire == "generic":
        update["form"] = asked.form  # a header may have asked for it
    return replace(reading, record=made.model_copy(update=update))


def is_told(kept: Kept, host: str, exact: str) -> bool:
    """Whether an exact fingerprint cannot be made of what is there of a request to a host."""
    return exact not in _exact_candidates(kept, _target(kept, host))


def _target(kept: Kept, host: str) -> Target:
    return Target(kept.request.method, host, kept.request.path, kept.request.query)


def _exact(kept: Kept, target: Target) -> str | None:
    """The exact fingerprint, made anew where all of the request is there, else the one that is told."""
    made = list(_exact_candidates(kept, target))
    if kept.exact and (kept.exact in made or (not kept.edited and hides_something(kept))):
        return kept.exact
    return made[0] if made else None


def _exact_candidates(kept: Kept, target: Target) -> Iterator[str]:
    clean = strip_query(target.query)
    if kept.body is not None:
        digest, _ = Document(kept.body).digests(exact_lead(target, clean))
        digest.update(EXACT_END)
        yield digest.hexdigest()
    elif kept.request.body_sha256:
        # One that was sent in a coding that does not decode is told by the digest of what was sent.
        for name in ("sha256", "encoded"):
            content: JsonValue = {name: kept.request.body_sha256}
            yield opaque_fingerprint(target, clean, content)


def address(host: str) -> tuple[str, int]:
    """Host and port of a host as it is stored: with its port where the table of hosts lists it so."""
    found = _WITH_PORT.fullmatch(host)
    return (found["name"], int(found["port"])) if found else (host, 443)
