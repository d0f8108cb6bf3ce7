"""A store and a log that are filled without a proxy, for the verbs that look at them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from rewind_proxy.canonical.model import EndpointClass, Form, JsonObject, JsonValue, Tier, Wire
from rewind_proxy.cli.opening import reader_of
from rewind_proxy.settings import Settings
from rewind_proxy.store import (
    AnswerRecord,
    CassetteRecord,
    Exchange,
    Log,
    RequestRecord,
    RunRecord,
    StepRecord,
    Store,
)

RUN = "20261130-114503-ab12"
START = 1_796_039_103.0

Call = Callable[..., tuple[int, str, str]]


class Shelf:
    """Fills the project's store and log the way a proxy does."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(store=folder / ".rewind" / "store")
        self._digest = reader_of(self.settings).settings_digest
        self._made = 0

    def record(
        self,
        body: JsonValue,
        answer: bytes,
        *,
        wire: Wire = "chat_completions",
        form: Form = "whole",
        cls: EndpointClass = "model",
        answer_type: str = "application/json",
        model: str = "gpt-test",
        **request: object,
    ) -> CassetteRecord:
        self._made += 1
        exact = hashlib.sha256(str(self._made).encode()).hexdigest()
        host, path = {
            "chat_completions": ("api.openai.com", "/v1/chat/completions"),
            "responses": ("api.openai.com", "/v1/responses"),
            "anthropic": ("api.anthropic.com", "/v1/messages"),
            "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/g:generateContent"),
            "generic": ("api.openai.com", "/v1/audio/speech"),
        }[wire]
        known = {
            "method": "POST",
            "host": host,
            "path": path,
            "content_type": "application/json",
            "user_agent": "test-client/1.0",
            "cls": cls,
            "wire": wire,
            "form": form,
            "params": {"model": model, "temperature": 0.5},
        }
        exchange = Exchange(
            request=RequestRecord.model_validate(known | request),
            body=body,
            answer=AnswerRecord(
                content_type=answer_type, model=model, input_tokens=1200, output_tokens=34, latency_ms=4200
            ),
            answer_body=answer,
            chunks=((len(answer), 4200),),
            exact=exact,
            normalised=exact,
            links=(exact,),
            run=RUN,
            recorded_at=START + self._made,
            hash_version=1,
        )
        with Store.open(self.settings.store, settings_digest=self._digest) as store:
            return store.put(exchange)

    def log(
        self,
        *steps: StepRecord,
        run: str = RUN,
        session: str = "",
        started_at: float = START,
        ended_at: float = START + 90,
    ) -> None:
        record = RunRecord(
            id=run,
            session=session,
            mode="auto",
            started_at=started_at,
            ended_at=ended_at,
            client="test-client/1.0",
        )
        with Log.open(self.settings.store) as log:
            log.start_run(record)
            log.append(steps)


def step(number: int, tier: Tier, **known: object) -> StepRecord:
    base = {
        "run": RUN,
        "number": number,
        "started_at": START + number,
        "method": "POST",
        "host": "api.openai.com",
        "path": "/v1/chat/completions",
        "wire": "chat_completions",
        "model": "gpt-test",
        "tier": tier,
        "status": 200,
        "input_tokens": 1200,
        "output_tokens": 34,
        "latency_ms": 200,
        "saved_ms": 4200,
        "preview": f"question {number}",
    }
    return StepRecord.model_validate(base | known)


def chat(*texts: str) -> JsonObject:
    return {"model": "gpt-test", "messages": [{"role": "user", "content": text} for text in texts]}


def chat_answer(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
