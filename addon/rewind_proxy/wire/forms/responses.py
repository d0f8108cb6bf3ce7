"""OpenAI Responses: answers read from, and written in, the forms of `…/responses`.

The shapes are those of the API reference ("The response object", "Streaming events"). A stream is the whole
object told step by step (`responses_stream`), so both forms share one reading of it.
"""

from __future__ import annotations

from rewind_proxy.canonical.answer import (
    AnswerUsage,
    Asked,
    CanonicalAnswer,
    Choice,
    Finish,
    Rendered,
)
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms import responses_items, responses_stream
from rewind_proxy.wire.forms.rendering import Notes, note_own, streamed, whole
from rewind_proxy.wire.forms.single import Ids, covers, finish_of, only_choice, refuses

_NEUTRAL = frozenset("id object created_at status error incomplete_details model output usage".split())
# What the SDK's types require, and what the API sends for a request that says nothing about it.
_REQUIRED: JsonObject = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
_DEFAULTS: JsonObject = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "previous_response_id": None,
    "temperature": 1.0,
    "top_p": 1.0,
}
# The items that a token limit cuts.
_CUT = ("message", "function_call", "custom_tool_call")
_SUCCESS = ("completed", "incomplete")


def parse(form: Form, body: bytes) -> CanonicalAnswer | None:
    """The meaning of an answer; None when it is not a complete success of this wire."""
    if form == "whole":
        response = answers.load_object(body)
    else:
        response = responses_stream.assembled(body) if form == "sse" else None
    if response is None or response.get("error") is not None:
        return None
    # A compaction has no status (`…/responses/compact`).
    status, output = response.get("status", "completed"), response.get("output")
    if status not in _SUCCESS or not isinstance(output, list):
        return None
    parts = tuple(part for item in answers.objects(output) for part in responses_items.parts(item))
    own: JsonObject = {name: value for name, value in response.items() if name not in _NEUTRAL}
    usage = _usage(response.get("usage"))
    if usage is not None and not covers(_usage_json(usage), response["usage"]):
        own["usage"] = response["usage"]
    created = response.get("created_at")
    return CanonicalAnswer(
        choices=(Choice(parts, _finish(status, response.get("incomplete_details"), parts)),),
        usage=usage,
        model=answers.string(response.get("model")) or "",
        id=answers.string(response.get("id")) or "",
        created=int(created) if isinstance(created, int | float) and 0 < created < 2**53 else 0,
        wire="responses",
        own=own,
    )


def render(answer: CanonicalAnswer, asked: Asked) -> Rendered:
    """The answer as this wire gives it, whole or as events."""
    notes = Notes()
    ids = Ids(answer, notes)
    choice = only_choice(answer, notes)
    note_own(answer, "responses", notes)
    items = responses_items.items(answer, choice, asked, notes, ids)
    status, details = _status(choice, notes)
    if status == "incomplete" and items and items[-1].get("type") in _CUT:
        items[-1] = items[-1] | {"status": "incomplete"}
    own = answer.own if answer.wire == "responses" else _DEFAULTS
    response: JsonObject = {
        "id": ids.take(answer.id, "resp_"),
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": details,
        "model": answer.model or asked.model,
        "output": list(items),
        "usage": None if answer.usage is None else _usage_json(answer.usage),
        **_REQUIRED,
        **own,
    }
    if asked.form == "whole":
        return whole(response, notes)
    return streamed(responses_stream.events(response), notes)


def _finish(status: JsonValue, details: JsonValue, parts: tuple[JsonObject, ...]) -> Finish:
    if status == "incomplete":
        filtered = isinstance(details, dict) and details.get("reason") == "content_filter"
        return "content_filter" if filtered else "length"
    return "tool_calls" if any(part["type"] == "tool_call" for part in parts) else "stop"


def _status(choice: Choice, notes: Notes) -> tuple[str, JsonValue]:
    """`status` and `incomplete_details`."""
    if choice.stop_sequence is not None:
        notes.add("stop_sequence")
    match finish_of(choice):
        case "length":
            return "incomplete", {"reason": "max_output_tokens"}
        case "content_filter":
            return "incomplete", {"reason": "content_filter"}
        case "refusal" if not refuses(choice):
            notes.add("finish refusal->content_filter")
            return "incomplete", {"reason": "content_filter"}
        case "pause":
            notes.add("finish pause->completed")
    return "completed", None


def _usage(value: JsonValue) -> AnswerUsage | None:
    if not isinstance(value, dict):
        return None
    read, written = value.get("input_tokens_details"), value.get("output_tokens_details")
    read, written = read if isinstance(read, dict) else {}, written if isinstance(written, dict) else {}
    return AnswerUsage(
        input=answers.count(value.get("input_tokens")),
        output=answers.count(value.get("output_tokens")),
        cached=answers.count(read.get("cached_tokens")),
        cache_written=answers.count(read.get("cache_write_tokens")),
        reasoning=answers.count(written.get("reasoning_tokens")),
    )


def _usage_json(usage: AnswerUsage) -> JsonObject:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
