"""Anthropic Messages: answers read from, and written in, the forms of `…/v1/messages`.

The shapes are those of the API reference ("Messages", "Streaming messages"). A stream is the whole message
told step by step (`anthropic_stream`), so both forms share one reading of it.
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
from rewind_proxy.wire.forms import anthropic_blocks, anthropic_stream
from rewind_proxy.wire.forms.rendering import Notes, note_own, streamed, whole
from rewind_proxy.wire.forms.single import Ids, covers, finish_of, only_choice, refuses

_NEUTRAL = frozenset("id type role model content stop_reason stop_sequence usage".split())
_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
}


def parse(form: Form, body: bytes) -> CanonicalAnswer | None:
    """The meaning of an answer; None when it is not a complete success of this wire."""
    if form == "whole":
        message = answers.load_object(body)
    else:
        message = anthropic_stream.assembled(body) if form == "sse" else None
    if message is None or message.get("type") == "error" or message.get("error") is not None:
        return None
    content, reason = message.get("content"), message.get("stop_reason")
    if not isinstance(content, list):
        return None
    own: JsonObject = {
        name: value for name, value in message.items() if name not in _NEUTRAL and value is not None
    }
    usage = _usage(message.get("usage"))
    if isinstance(counted := message.get("usage"), dict) and usage is not None:
        known = _usage_json(usage)
        if rest := {name: value for name, value in counted.items() if not covers(known.get(name), value)}:
            own["usage"] = rest
    choice = Choice(
        parts=tuple(anthropic_blocks.part(block) for block in answers.objects(content)),
        finish=_FINISHES.get(reason) if isinstance(reason, str) else None,
        stop_sequence=answers.string(message.get("stop_sequence")),
    )
    if isinstance(reason, str) and reason != _reason(choice):
        choice.own["stop_reason"] = reason
    return CanonicalAnswer(
        choices=(choice,),
        usage=usage,
        model=answers.string(message.get("model")) or "",
        id=answers.string(message.get("id")) or "",
        wire="anthropic",
        own=own,
    )


def render(answer: CanonicalAnswer, asked: Asked) -> Rendered:
    """The answer as this wire gives it, whole or as events."""
    notes = Notes()
    ids = Ids(answer, notes)
    choice = only_choice(answer, notes)
    note_own(answer, "anthropic", notes)
    same_wire = answer.wire == "anthropic"
    own = dict(answer.own) if same_wire else {}
    counted = own.pop("usage", None)
    if answer.usage is None:
        notes.add("usage unknown")
    message: JsonObject = {
        "id": ids.take(answer.id, "msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model or asked.model,
        "content": list(anthropic_blocks.blocks(choice, same_wire, notes, ids)),
        "stop_reason": _reason(choice, notes),
        "stop_sequence": choice.stop_sequence,
        "usage": _usage_json(answer.usage or AnswerUsage()) | (counted if isinstance(counted, dict) else {}),
        **own,
    }
    if same_wire and "stop_reason" in choice.own:
        message["stop_reason"] = choice.own["stop_reason"]
    if asked.form == "whole":
        return whole(anthropic_blocks.decoded(message), notes)
    return streamed(anthropic_stream.events(message), notes)


def _reason(choice: Choice, notes: Notes | None = None) -> str:
    """`stop_reason`, with a note where it says something else than the answer did."""
    finish = finish_of(choice)
    if finish == "stop" and choice.stop_sequence is not None:
        return "stop_sequence"
    said = "refusal" if finish == "content_filter" or (finish == "stop" and refuses(choice)) else finish
    if said != finish and notes is not None:
        notes.add(f"finish {finish}->refusal")
    return _REASONS[said]


def _usage(value: JsonValue) -> AnswerUsage | None:
    """Anthropic counts what was not cached, what was read from the cache and what was written to it apart."""
    if not isinstance(value, dict):
        return None
    cached = answers.count(value.get("cache_read_input_tokens"))
    written = answers.count(value.get("cache_creation_input_tokens"))
    details = value.get("output_tokens_details")
    return AnswerUsage(
        input=answers.count(value.get("input_tokens")) + cached + written,
        output=answers.count(value.get("output_tokens")),
        cached=cached,
        cache_written=written,
        reasoning=answers.count(details.get("thinking_tokens") if isinstance(details, dict) else None),
    )


def _usage_json(usage: AnswerUsage) -> JsonObject:
    found: JsonObject = {
        "input_tokens": max(0, usage.input - usage.cached - usage.cache_written),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        found["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return found
