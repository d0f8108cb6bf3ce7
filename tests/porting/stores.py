"""Stores that files are read into and exported from, and exchanges as other tools would tell them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.matching.opening import Opened, open_ready
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.porting import text
from rewind_proxy.porting.document import Kept, from_document
from rewind_proxy.porting.exporting import Exported, Exporter, in_order
from rewind_proxy.porting.heard import Entry, Heard
from rewind_proxy.porting.keeping import Keeper, Outcome
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable

NOW = 1_796_039_103.25
CHAT: JsonObject = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m1",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Grüße, 世界 🌍"}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5},
}
STREAM = (
    'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Grüße"}}]}\n\n'
    'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n\n"
)


def chat(prompt: str, **more: JsonValue) -> JsonObject:
    """A request for a completion."""
    return {"model": "m1", "messages": [{"role": "user", "content": prompt}], **more}


def heard(
    body: bytes | JsonObject | None = None,
    answer: bytes | JsonValue = CHAT,
    *,
    method: str = "POST",
    host: str = "api.openai.com",
    path: str = "/v1/chat/completions",
    headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),),
    kind: str = "application/json",
    status: int = 200,
    at: float | None = NOW,
) -> Heard:
    """An exchange as a foreign file would tell it."""
    sent = body if isinstance(body, bytes) else json.dumps(chat("hello") if body is None else body).encode()
    got = answer if isinstance(answer, bytes) else json.dumps(answer, ensure_ascii=False).encode()
    return Heard(
        place="here",
        request=RawRequest(method, host, 443, path, tuple(headers), sent),
        status=status,
        headers=(("content-type", kind), ("set-cookie", "a=b"), ("x-request-id", "r1")),
        body=got,
        started_at=at,
        milliseconds=250,
    )


@contextmanager
def opened(folder: Path, **settings: Any) -> Iterator[tuple[Opened, Settings]]:
    """The store in a folder, ready for writing."""
    chosen = Settings(store=folder / "store", **settings)
    ready = open_ready(chosen, HostTable(chosen.hosts), lambda _: lambda _done, _total: None)
    try:
        yield ready, chosen
    finally:
        ready.close()


def put(
    into: Opened, settings: Settings, entries: Iterable[Entry | Kept], digest: str = "ab" * 32
) -> Outcome:
    """Import some entries of one file."""
    keeper, outcome = Keeper(into, settings, NOW), Outcome()
    run = keeper.file_run(digest, "file")
    for entry in entries:
        keeper.keep(entry, run, outcome)
    keeper.finish()
    return outcome


def export(out_of: Opened, *, answers: Redactor | None = None) -> list[Exported]:
    """Everything in a store."""
    exporter = Exporter(out_of.store, out_of.log, out_of.reader, answers)
    return list(exporter.export(in_order(out_of.store.cassettes())))


def documents(exported: Iterable[Exported]) -> list[Kept]:
    """What the text of some recordings says, read back."""
    return [from_document(text.load(each.text, each.name), each.name) for each in exported]


def spoil(document: Any, value: object, data: st.DataObject) -> None:
    """Put a value in some place of a parsed document."""
    place, steps = document, data.draw(st.integers(1, 6))
    while True:
        name = data.draw(st.sampled_from([*place] if isinstance(place, dict) else [*range(len(place))]))
        steps -= 1
        if not steps or not isinstance(place[name], dict | list) or not place[name]:
            place[name] = value
            return
        place = place[name]
