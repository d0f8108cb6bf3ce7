"""A store and log filled as a proxy fills them: requests read under a project's settings, then stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rewind_proxy.canonical.fingerprint import HASH_VERSION
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.settings import Settings
from rewind_proxy.store import AnswerRecord, CassetteRecord, Exchange, Log, RunRecord, StepRecord, Store
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
START = 1_796_039_103.0
WIRES = {
    "chat_completions": ("api.openai.com", "/v1/chat/completions"),
    "responses": ("api.openai.com", "/v1/responses"),
    "anthropic": ("api.anthropic.com", "/v1/messages"),
}


def unseen(done: int, total: int) -> None:
    """Progress that nobody watches."""


def reader_of(settings: Settings) -> RequestReader:
    """A reader by the rules of the settings alone."""
    rules = rule_list(settings.redact_defaults, settings.redact_patterns, settings.redact_off)
    return RequestReader(HOSTS, Redactor(rules), settings.match_settings, settings.max_body)


def request(
    body: JsonValue,
    *,
    wire: str = "chat_completions",
    query: str = "",
    headers: Sequence[tuple[str, str]] = (),
) -> RawRequest:
    """A live request."""
    host, path = WIRES[wire]
    all_headers = (("content-type", "application/json"), ("user-agent", "agent/1"), *headers)
    return RawRequest("POST", host, 443, path + query, all_headers, json.dumps(body).encode())


def read(reader: RequestReader, live: RawRequest) -> Reading:
    """What a reader makes of a live request."""
    host = HOSTS.find(live.host, live.port)
    assert host is not None
    return reader.read(live, host)


class Project:
    """A project whose proxy has recorded under some settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reader = reader_of(settings)
        self._made = 0

    def record(
        self,
        live: RawRequest,
        answer: bytes = b'{"choices": []}',
        *,
        run: str = "20261130-090000-aaaa",
        content_type: str = "application/json",
        chunks: Sequence[int] | None = None,
    ) -> CassetteRecord:
        """Record a call and log its step."""
        self._made += 1
        reading = read(self.reader, live)
        exchange = Exchange(
            request=reading.record,
            body=reading.body,
            answer=AnswerRecord(content_type=content_type, model="m1", latency_ms=7),
            answer_body=answer,
            chunks=tuple((length, 7) for length in chunks or [len(answer)]),
            exact=reading.exact,
            normalised=reading.fingerprint,
            links=reading.links,
            sketched=reading.sketched,
            run=run,
            recorded_at=START + self._made,
            hash_version=HASH_VERSION,
        )
        rules = self.reader.redactor.rules
        digest = self.reader.settings_digest
        with Store.open(self.settings.store, settings_digest=digest, redaction=rules) as store:
            record = store.put(exchange)
        self.log(self._made, cassette=record.id, preview=reading.preview, run=run)
        return record

    def log(
        self,
        number: int,
        *,
        cassette: str | None,
        run: str,
        preview: str = "",
        tier: str = "recorded",
        at: float = START,
    ) -> None:
        """Log a step, and the run it belongs to."""
        step = StepRecord.model_validate(
            {
                "run": run,
                "number": number,
                "started_at": at + number,
                "method": "POST",
                "host": "api.openai.com",
                "path": "/v1/chat/completions",
                "tier": tier,
                "cassette": cassette,
                "preview": preview,
            }
        )
        with Log.open(self.settings.store, redaction=self.reader.redactor.rules) as log:
            log.start_run(RunRecord(id=run, mode="auto", started_at=at, client="agent/1"))
            log.append([step])


def settings_at(folder: Path, **known: object) -> Settings:
    """The settings of a project in a folder."""
    return Settings.model_validate({"store": folder / ".rewind" / "store", **known})
