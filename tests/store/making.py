"""Exchanges as the proxy makes them, for the tests of the store and their child processes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from rewind_proxy.canonical.model import EndpointClass, JsonValue
from rewind_proxy.store import AnswerRecord, Exchange, RequestRecord, Sketched, StepRecord, Store

SETTINGS = "settings-a"


def digest(text: object) -> str:
    """A fingerprint that stands for `text`."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def chain(parts: Sequence[object]) -> tuple[str, ...]:
    """The links of a chain: each is the digest of all up to it."""
    return tuple(digest(list(parts[: at + 1])) for at in range(len(parts)))


def spelled(parts: Sequence[object], params: object = "") -> Sketched:
    """The sketches of a chain whose links stand for `parts` as they are spelled."""
    return Sketched(lambda at: str(parts[at]), lambda: str(params))


def make_exchange(
    asked: object = "hello",
    answer: bytes = b"hi",
    *,
    body: JsonValue | None = None,
    run: str = "run-1",
    cls: EndpointClass = "model",
    links: Sequence[object] | None = None,
    params: object = "",
    path: str = "/v1/responses",
) -> Exchange:
    """An exchange whose fingerprints stand for `asked`."""
    parts = ["system", asked, "params"] if links is None else links
    return Exchange(
        request=RequestRecord(
            method="POST",
            host="api.openai.com",
            path=path,
            query=(("key", "value"),),
            cls=cls,
            wire="responses",
            form="sse",
            user_agent="agent/1",
            params={"model": "m1", "max_tokens": 5},
        ),
        body={"model": "m1", "input": [{"role": "user", "content": str(asked)}]} if body is None else body,
        answer=AnswerRecord(content_type="text/event-stream", model="m1", output_tokens=3, latency_ms=7),
        answer_body=answer,
        chunks=((len(answer), 7),),
        exact=digest(("exact", asked)),
        normalised=digest(("normalised", asked)),
        links=chain(parts),
        sketched=spelled(parts, params),
        run=run,
        recorded_at=1_700_000_000.5,
        hash_version=1,
    )


def make_step(number: int = 1, *, run: str = "run-1", preview: str = "") -> StepRecord:
    """A step of a run."""
    return StepRecord(
        run=run,
        number=number,
        started_at=1_700_000_000.5 + number,
        method="POST",
        host="api.openai.com",
        path="/v1/responses",
        tier="recorded",
        preview=preview,
    )


def open_store(path: Path, **options: object) -> Store:
    """A store under `SETTINGS`, unless the options say otherwise."""
    return Store.open(path, **{"settings_digest": SETTINGS, **options})  # type: ignore[arg-type]  # as given


def content_of(folder: Path) -> dict[str, str]:
    """Every file below a folder with its digest; LMDB's lock file, a table of live readers, by name alone."""
    return {
        str(file.relative_to(folder)): "" if file.name == "lock.mdb" else digest(file.read_bytes().hex())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
