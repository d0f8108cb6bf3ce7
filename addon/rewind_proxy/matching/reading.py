"""From the bytes of a request to all that is known of it: class, meaning, fingerprints (DESIGN §4, §5).

One reader serves the proxy, `canon` and `test-match`, and stored requests go through the same steps from
their redacted body on: so a live request, its stored copy and a later re-key land on one fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qsl

from rewind_proxy.canonical.documents import Documents
from rewind_proxy.canonical.fingerprint import (
    EXACT_END,
    Normalised,
    Normaliser,
    exact_lead,
    opaque_fingerprint,
    settings_digest,
)
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    JsonObject,
    JsonValue,
    MatchSettings,
    Target,
    Volatile,
    Wire,
)
from rewind_proxy.canonical.redact import Redaction, Redactor, auth_values, query_values, strip_query
from rewind_proxy.canonical.text import whole_characters
from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.matching.rebasing.slots import slots_digest
from rewind_proxy.matching.similarity import signature
from rewind_proxy.matching.sketching import sketched
from rewind_proxy.presets import preset_for, presets
from rewind_proxy.store import EMPTY, Sketched
from rewind_proxy.store.records import CassetteRecord, RequestRecord
from rewind_proxy.wire import ADAPTERS, Endpoint, Host, HostTable, classify
from rewind_proxy.wire.body import canonical_multipart, decode
from rewind_proxy.wire.generic import asks_for_stream, part_asks_for_stream

PREVIEW_LENGTH = 120
_TOLD_LENGTH = 200
_SCALAR = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it came in. `headers` are in order, names in any case; `body` is as sent, encoded."""

    method: str
    host: str
    port: int
    path: str
    """With the query, as on the request line."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    upgrade: bool = False

    def header(self, name: str) -> str:
        """The first header of that name (lower case), or an empty string."""
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Reading:
    """All that is known of one request. Everything but `exact` and `target.query` is redacted.

    `normalised` is None for an opaque request: its exact fingerprint stands for both tiers.
    """

    target: Target
    endpoint: Endpoint
    record: RequestRecord
    body: JsonValue
    """The redacted wire body; None when the request is opaque or has none."""
    exact: str
    canonical: CanonicalRequest | None
    normalised: Normalised | None
    redactions: tuple[Redaction, ...] = ()
    preview: str = ""
    error_wire: Wire = "generic"
    """Whose error JSON the client understands: the endpoint's, or its host's where that is generic."""

    @property
    def fingerprint(self) -> str:
        """The normalised fingerprint, or what stands for it."""
        return self.normalised.fingerprint if self.normalised else self.exact

    @property
    def links(self) -> tuple[str, ...]:
        """The chain of message digests, of a generic request with its endpoint; empty for an opaque one."""
        if self.normalised is None:
            return ()
        links = self.normalised.links
        if not self._whole:
            return links
        return (*links, hashlib.sha256(dumps([*links, self._whole])).hexdigest())

    @property
    def sketched(self) -> Sketched:
        """What the links stand for."""
        if self.normalised is None:
            return EMPTY
        return sketched(self.normalised, self._whole, partial(signature, self.normalised, self._whole))

    @property
    def volatile(self) -> Volatile:
        """What its wire and its agent change on every request."""
        of_wire = ADAPTERS[self.endpoint.wire].volatile
        name = self.record.preset.partition("@")[0]
        return of_wire | presets()[name].volatile if name else of_wire

    @property
    def _whole(self) -> str:
        """The endpoint, of a request that is matched as a whole."""
        record = self.record
        return f"{record.method} {record.host} {record.path}" if self.endpoint.wire == "generic" else ""


class RequestReader:
    """Reads requests under one table of hosts, redaction list and set of match settings."""

    def __init__(self, hosts: HostTable, redactor: Redactor, match: MatchSettings, max_body: int) -> None:
        self.hosts = hosts
        self.redactor = redactor
        self._normaliser = Normaliser(match)
        self._documents = Documents()
        self._max_body = max_body

    @property
    def match(self) -> MatchSettings:
        """The match settings that it reads under."""
        return self._normaliser.settings

    def under(self, match: MatchSettings) -> RequestReader:
        """A reader that differs in its match settings alone."""
        reader = RequestReader(self.hosts, self.redactor, match, self._max_body)
        reader._normaliser = self._normaliser.under(match)
        return reader

    def again(self, reading: Reading) -> Reading:
        """What another reader read, live or stored, under the match settings of this one."""
        return self._understand(reading.target, reading.endpoint, reading.record, reading.body, reading.exact)

    @property
    def settings_digest(self) -> str:
        """What the normalised index of a store is kept under."""
        return settings_digest(self._normaliser.settings)

    def read(self, request: RawRequest, host: Host) -> Reading:
        """All that is known of a live request to a known host. Never raises on what a client sends."""
        reading = self._read(request, host)
        wire = reading.endpoint.wire
        if wire == "generic" and asks_for_stream(request.headers):
            reading = replace(reading, record=reading.record.model_copy(update={"form": "sse"}))
        return replace(reading, error_wire=host.wire if wire == "generic" else wire)

    def _read(self, request: RawRequest, host: Host) -> Reading:
        # Not `urlsplit`: it takes a path that starts with `//` for a host.
        path, _, query_text = request.path.partition("?")
        query = tuple(parse_qsl(query_text, keep_blank_values=True, errors="surrogateescape"))
        target = Target(request.method.upper(), host.name, path or "/", query)
        endpoint = classify(host, target, upgrade=request.upgrade)
        redactor = self.redactor.with_secrets(auth_values(request.headers) | query_values(query))
        content_type = request.header("content-type")
        record = RequestRecord(
            method=target.method,
            host=target.host,
            path=redactor.text(target.path),
            query=redactor.query(query),
            content_type=redactor.text(content_type),
            user_agent=redactor.text(request.header("user-agent")),
            cls=endpoint.cls,
            wire=endpoint.wire,
            form="whole",
            operation=endpoint.operation,
        )
        clean = strip_query(query)
        try:
            plain = decode(request.body, request.header("content-encoding"), self._max_body)
        except OpaqueBodyError:
            content: JsonValue = {"encoded": hashlib.sha256(request.body).hexdigest()}
            return self._opaque(target, endpoint, record, clean, content, request.body)
        record = record.model_copy(update={"body_length": len(plain)})
        try:
            document = self._documents.read(plain)
            body = document.value
            if endpoint.cls == "model" and not isinstance(body, dict):
                raise OpaqueBodyError("no request of any wire is JSON other than an object")
        except OpaqueBodyError:
            parts = canonical_multipart(plain, content_type)
            content = {"sha256": hashlib.sha256(plain).hexdigest()} if parts is None else {"parts": [*parts]}
            return self._opaque(target, endpoint, record, clean, content, plain)
        digest, members = document.digests(exact_lead(target, clean))
        digest.update(EXACT_END)
        exact = digest.hexdigest()
        found: list[Redaction] = []
        reading = self._understand(target, endpoint, record, document.redacted(redactor, found), exact)
        record = reading.record.model_copy(
            update={"written_digest": written_digest(body, members, reading.record.params)}
        )
        return replace(reading, record=record, redactions=tuple(found))

    def read_stored(self, cassette: CassetteRecord, body: JsonValue) -> Reading:
        """The same of the request of a recording, from its redacted body."""
        return self.read_kept(cassette.request, cassette.exact, body)

    def read_kept(self, record: RequestRecord, exact: str, body: JsonValue) -> Reading:
        """The same of any request that is stored, from its redacted body."""
        target = Target(record.method, record.host, record.path, record.query)
        endpoint = Endpoint(record.cls, record.wire, record.operation)
        if record.opaque or record.cls != "model":
            return Reading(target, endpoint, record, None, exact, None, None)
        return self._understand(target, endpoint, record, self._shared(body), exact)

    def _shared(self, body: JsonValue) -> JsonValue:
        """An equal body that shares its pieces, and what is known of them, with live requests."""
        try:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
            return self._documents.read(text.encode()).value
        except (OpaqueBodyError, UnicodeEncodeError):
            return body  # with a tag of `jcs`, or half a character

    def keys_of(self, cassette: CassetteRecord, body: JsonValue) -> tuple[str, tuple[str, ...], Sketched]:
        """The fingerprint of a stored request, its chain and what that stands for: what an index needs."""
        reading = self.read_stored(cassette, body)
        return reading.fingerprint, reading.links, reading.sketched

    def _opaque(
        self,
        target: Target,
        endpoint: Endpoint,
        record: RequestRecord,
        clean: Sequence[tuple[str, str]],
        content: JsonValue,
        plain: bytes,
    ) -> Reading:
        exact = opaque_fingerprint(target, clean, content)
        digest = hashlib.sha256(plain).hexdigest()
        form = "sse" if part_asks_for_stream(content) else record.form
        update = {"opaque": True, "body_length": len(plain), "body_sha256": digest, "form": form}
        return Reading(target, endpoint, record.model_copy(update=update), None, exact, None, None)

    def _understand(
        self, target: Target, endpoint: Endpoint, record: RequestRecord, body: JsonValue, exact: str
    ) -> Reading:
        if endpoint.cls != "model" or not isinstance(body, dict):
            return Reading(target, endpoint, record, None, exact, None, None)
        adapter = ADAPTERS[endpoint.wire]
        # The redacted target, as it is stored: a credential in a path must not tell a request from its copy.
        stored = Target(record.method, record.host, record.path, record.query)
        canonical = adapter.request(stored, endpoint.operation, body)
        preset = preset_for(self._normaliser.settings.preset, record.user_agent, canonical)
        normalised = self._normaliser.normalise(canonical, target.host, adapter.volatile, preset)
        record = record.model_copy(
            update={
                "form": adapter.form(stored, body),
                "params": scalar_params(canonical.params),
                "preset": preset.name if preset else "",
                "slots_digest": slots_digest(normalised.taken),
            }
        )
        return Reading(
            target,
            endpoint,
            record,
            body,
            exact,
            canonical,
            normalised,
            preview=preview(canonical),
        )


def scalar_params(params: JsonObject) -> dict[str, JsonValue]:
    """The parameters that choose among answers and stand in notes: scalars of a reasonable length."""
    return {
        name: whole_characters(value) if isinstance(value, str) else value
        for name, value in params.items()
        if _is_told(value)
    }


def _is_told(value: JsonValue) -> bool:
    return isinstance(value, _SCALAR) and not (isinstance(value, str) and len(value) > _TOLD_LENGTH)


def written_digest(body: JsonValue, members: Mapping[str, bytes], told: JsonObject) -> str:
    """Tells whether two bodies are written alike but for the parameters that are `told` elsewhere: hex.

    Of the body as sent, like the exact fingerprint, whose `members` have digests; empty for what is no model
    request.
    """
    if not isinstance(body, dict):
        return ""
    digest = hashlib.sha256()
    for name in sorted(body):
        # By its name alone: what is told is redacted, and more so under a longer list of rules.
        if name in told and _is_told(body[name]):
            continue
        digest.update(dumps(name))
        digest.update(members[name])
    return digest.hexdigest()[:32]


def preview(request: CanonicalRequest) -> str:
    """The first characters of the last message with text (already redacted as a whole)."""
    for message in reversed(request.messages):
        for part in reversed(message.parts):
            text = part.get("text")
            if isinstance(text, str) and text.strip():
                return whole_characters(" ".join(text[: PREVIEW_LENGTH * 4].split())[:PREVIEW_LENGTH])
    return ""
