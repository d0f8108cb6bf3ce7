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
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.cli.conversation import ROLE_STYLES, Conversation
from rewind_proxy.cli.look import PANEL
from rewind_proxy.cli.opening import JsonOption, StoreOption, open_log, open_store, reader_of, settings_for
from rewind_proxy.cli.output import console, duration, exact_time, facts, number, print_json, safe_line, size
from rewind_proxy.errors import StoreError
from rewind_proxy.matching.reading import Reading
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord
from rewind_proxy.wire import ADAPTERS
from rewind_proxy.wire.conversation import tool_call
from rewind_proxy.wire.forms import parsed

_RULE_WIDTH = 72


def register(app: typer.Typer) -> None:
    """Add `show`."""
    app.command("show", rich_help_panel=PANEL)(show)


def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a recording, its first digits, or a step (RUN.NUMBER).")
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
    parts = answer_parts(record, answer)
    if as_json:
        print_json(_to_json(reading, record, parts, answer))
        return
    out = console()
    out.print(facts(_facts(reading, record)))
    out.print(Text("─" * min(_RULE_WIDTH, out.width), style="dim"))
    view = Conversation(full=full, noise=ADAPTERS[reading.record.wire].volatile.members)
    for line in (*_request(view, reading, body), *_answer(view, record, parts, answer)):
        out.print(line)


def answer_parts(record: CassetteRecord, answer: bytes) -> list[JsonObject] | None:
    """The parts of an answer, of all its choices; None where it has none, or cannot be read as such."""
    found = parsed(answer, record.request.wire, answer_form(record))
    choices = found.choices if found else ()
    return [_spoken(part) for choice in choices for part in choice.parts] or None


def _spoken(part: JsonObject) -> JsonObject:
    """A part as a request holds it: arguments are the JSON they are, but for free text."""
    if part["type"] != "tool_call" or "call_type" in part:
        return part
    return {**part, **tool_call(part["id"], part["name"], part["arguments"])}


def answer_form(record: CassetteRecord) -> Form:
    """The form that came, which need not be the one asked for."""
    if "text/event-stream" in record.answer.content_type.lower():
        return "sse"
    return "whole" if record.request.form == "sse" else record.request.form


def _cassette_of_step(name: str, settings: Settings) -> str:
    run, _, step_number = name.rpartition(".")
    if not step_number.isdecimal():
        raise StoreError(f"{safe_line(name)} is neither a recording nor a step: a step is RUN.NUMBER")
    with open_log(settings) as log:
        step = log.step(log.run(run).id, int(step_number))
    if step.cassette is None:
        raise StoreError(f"step {safe_line(name)} has no recording: its tier is {step.tier}")
    return step.cassette


def _to_json(
    reading: Reading, record: CassetteRecord, parts: list[JsonObject] | None, answer: bytes
) -> JsonValue:
    text = _decoded(answer)
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


def _facts(reading: Reading, record: CassetteRecord) -> Iterator[tuple[str, str | Text]]:
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
    yield "wire", f"{request.wire}, {answer_form(record)}"
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


def _request(view: Conversation, reading: Reading, body: JsonValue) -> Iterator[RenderableType]:
    record = reading.record
    if reading.canonical is not None:
        yield from view.tools(reading.canonical.tools)
        yield from view.messages(reading.canonical.messages)
        return
    if record.opaque:
        kind = safe_line(record.content_type or "no content type")
        yield Text(f"The request is kept as a digest only: {size(record.body_length)}, {kind},", style="dim")
        yield Text(f"sha256 {record.body_sha256}", style="dim")
        yield Text()
    elif body is not None:
        yield Text("request", style=ROLE_STYLES["user"])
        yield view.text(json.dumps(body, ensure_ascii=False, indent=2))
        yield Text()


def _answer(
    view: Conversation, record: CassetteRecord, parts: list[JsonObject] | None, answer: bytes
) -> Iterator[RenderableType]:
    yield Text("answer", style=ROLE_STYLES["assistant"])
    if parts is not None:
        yield from view.parts(parts)
        return
    text = _decoded(answer)
    if text is None:
        kind = safe_line(record.answer.content_type or "no content type")
        yield Padding(Text(f"[{kind}, {size(len(answer))}]", style="blue"), (0, 0, 0, 2), expand=False)
    else:
        yield view.text(_pretty(text))


def _decoded(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _pretty(text: str) -> str:
    """JSON with indentation; what is none as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
