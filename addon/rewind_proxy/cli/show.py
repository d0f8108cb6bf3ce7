"""`rewind show`: one recording as a conversation.

JSON (`--json`): `{"cassette", "normalised", "canonical", "answer": {"parts", "body", "body_base64"}}`: the
record as in store/records.py, the normalised fingerprint under the settings in force, the canonical request
(null for an opaque one), the answer's canonical parts (null where it has none) and its bytes,
as text or else in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.cli.look import PANEL
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    open_store,
    reader_of,
    settings_for,
    step_named,
)
from rewind_proxy.cli.output import (
    console,
    duration,
    exact_time,
    facts,
    number,
    print_json,
    print_lines,
    safe_line,
    size,
)
from rewind_proxy.errors import StoreError
from rewind_proxy.explain.conversation import Conversation
from rewind_proxy.explain.exchange import answer_lines, answer_parts, decoded, request_lines
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.matching.reading import Reading
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord
from rewind_proxy.wire import ADAPTERS

_RULE_WIDTH = 72


def register(app: typer.Typer) -> None:
    """Add `show`."""
    app.command("show", rich_help_panel=PANEL)(show)


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of a recording, its first digits, or a step (RUN.NUMBER, last.3)."
        ),
    ],
    store: StoreOption = None,
    full: Annotated[bool, typer.Option("--full", help="Show long texts to their end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a recording as a conversation: what was asked, with which tools, and what was answered."""
    settings = settings_for(store)
    reader = reader_of(settings)
    with open_store(settings, reader) as opened:
        record = opened.cassette(_cassette_of_step(name, settings) if "." in name else name)
        body, answer = opened.request_body(record), opened.answer(record).body
    reading = reader.read_stored(record, body)
    form = answer_form(record.answer.content_type, record.request.form)
    parts = answer_parts(record.request.wire, form, answer)
    if as_json:
        print_json(_to_json(reading, record, parts, answer))
        return
    out = console()
    out.print(facts(_facts(reading, record, form)))
    out.print(Text("─" * min(_RULE_WIDTH, out.width), style="dim"))
    view = Conversation(full=full, noise=ADAPTERS[reading.record.wire].volatile.members)
    print_lines(out, request_lines(view, reading, body))
    print_lines(out, answer_lines(view, parts, answer, record.answer.content_type))


def _cassette_of_step(name: str, settings: Settings) -> str:
    with open_log(settings) as log:
        step = step_named(name, log)
    if step.cassette is None:
        what = f"its tier is {step.tier}" if step.cls == "model" else f"it is a {step.cls} call"
        shown = safe_line(name)
        raise StoreError(f"step {shown} has no recording, {what}: `rewind explain {shown}` says more")
    return step.cassette


def _to_json(
    reading: Reading, record: CassetteRecord, parts: list[JsonObject] | None, answer: bytes
) -> JsonValue:
    text = decoded(answer)
    return {
        "cassette": record.model_dump(mode="json"),
        "normalised": reading.fingerprint,
        "canonical": reading.canonical.to_json() if reading.canonical else None,
        "answer": {
            "parts": None if parts is None else [*parts],
            "body": text,
            "body_base64": base64.b64encode(answer).decode() if text is None else None,
        },
    }


def _facts(reading: Reading, record: CassetteRecord, form: Form) -> Iterator[tuple[str, str | Text]]:
    request, answer = record.request, record.answer
    params = dict(request.params)
    asked = params.pop("model", None)
    models = [model for model in (asked, answer.model) if isinstance(model, str) and model]
    counted = [
        f"{number(count)} {what}"
        for count, what in (
            (answer.input_tokens, "in"),
            (answer.output_tokens, "out"),
            (answer.cached_tokens, "cached"),
        )
        if count
    ]
    yield "recording", Text(record.id, style="cyan")
    made = "answered by hand" if answer.by_hand else "recorded"
    yield made, f"{exact_time(record.recorded_at)}, run {safe_line(record.run)}"
    yield "endpoint", safe_line(f"{request.method} https://{request.host}{request.path}")
    yield "wire", f"{request.wire}, {form}"
    yield "model", safe_line(" → ".join(dict.fromkeys(models)))
    yield (
        "answer",
        f"{answer.status}, {answer.ending}, {size(record.answer_length)} in {duration(answer.latency_ms)}",
    )
    yield "tokens", ", ".join(counted)
    yield "parameters", safe_line(", ".join(f"{k}={json.dumps(v)}" for k, v in params.items()))
    yield "exact", record.exact
    yield "normalised", reading.fingerprint
    yield "preset", safe_line(request.preset)
    yield "client", safe_line(request.user_agent)
