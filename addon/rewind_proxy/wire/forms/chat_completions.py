"""Chat Completions answers to canonical answers and back (OpenAI's reference, "Chat", and its dialects)."""

from __future__ import annotations

from collections.abc import Mapping

from rewind_proxy.canonical.answer import AnswerUsage, Asked, CanonicalAnswer, Choice, Finish, Rendered
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers
from rewind_proxy.wire.chat_completions import ChatCompletions
from rewind_proxy.wire.forms.chat_completions_message import Message, content_parts, message_parts
from rewind_proxy.wire.forms.chat_completions_stream import chunks, joined_chunks
from rewind_proxy.wire.forms.rendering import Notes, answer_id, dump, note_own, streamed, whole

_WIRE: Wire = "chat_completions"
_ADAPTER = ChatCompletions()
_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",  # Mistral
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_REASONS: Mapping[Finish, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "stop",
}


def parse(form: Form, body: bytes) -> CanonicalAnswer | None:
    """The answer in a decoded 2xx body; None when it is no complete success of this wire. Never raises."""
    if form == "json-array" or _ADAPTER.ending(form, "generate", body).kind not in ("complete", "length"):
        return None
    try:
        return _canonical(joined_chunks(body) if form == "sse" else answers.load_object(body) or {})
    except RecursionError:  # JSON nested deeper than it can be walked
        return None


def _canonical(answer: JsonObject) -> CanonicalAnswer:
    usage = _usage(answer.get("usage"))
    own = _rest(answer, "id", "object", "created", "model", "choices", "usage")
    if usage is not None and answer["usage"] != _usage_object(usage):
        own["usage"] = answer["usage"]
    return CanonicalAnswer(
        choices=tuple(_choice(choice) for choice in _in_order(answers.objects(answer.get("choices")))),
        usage=usage,
        model=answers.string(answer.get("model")) or "",
        id=answers.string(answer.get("id")) or "",
        created=answers.count(answer.get("created")),
        own=own,
        wire=_WIRE,
    )


def _rest(value: JsonObject, *known: str) -> JsonObject:
    """The members that say something and have no neutral name."""
    return {name: member for name, member in value.items() if name not in known and member is not None}


def _in_order(choices: list[JsonObject]) -> list[JsonObject]:
    return sorted(choices, key=lambda choice: answers.count(choice.get("index")))


def _usage(value: JsonValue) -> AnswerUsage | None:
    if not isinstance(value, dict):
        return None
    read, written, total = (
        answers.count(value.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    read_details, written_details = (
        details if isinstance(details := value.get(name), dict) else {}
        for name in ("prompt_tokens_details", "completion_tokens_details")
    )
    reasoning = answers.count(written_details.get("reasoning_tokens"))
    if reasoning and total == read + written + reasoning:
        written += reasoning  # xAI counts them apart
    return AnswerUsage(
        input=read,
        output=written,
        cached=answers.count(read_details.get("cached_tokens")),
        cache_written=answers.count(read_details.get("cache_write_tokens")),
        reasoning=reasoning,
    )


def _usage_object(usage: AnswerUsage) -> JsonObject:
    cached: JsonObject = {"cached_tokens": usage.cached}
    if usage.cache_written:
        cached["cache_write_tokens"] = usage.cache_written
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": cached,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _choice(choice: JsonObject) -> Choice:
    message, reason = choice.get("message"), choice.get("finish_reason")
    own = _rest(choice, "index", "message", "finish_reason")
    finish = _FINISHES.get(reason, "stop") if isinstance(reason, str) else None
    if finish is not None and _REASONS[finish] != reason:
        own["finish_reason"] = reason
    rest = _rest(message, "role") if isinstance(message, dict) else {}
    if isinstance(rest.get("content"), list):
        own["content"] = rest["content"]  # this wire has two spellings, and its client asked for this one
    return Choice(parts=tuple(message_parts(rest)), finish=finish, own=own)


def render(answer: CanonicalAnswer, asked: Asked) -> Rendered:
    """The answer as one `chat.completion` object or as its stream; the same bytes for the same answer."""
    notes = Notes()
    same = answer.wire == _WIRE
    rendered: JsonObject = {
        "id": answer_id("chatcmpl-", answer),
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model or asked.model,
        "choices": [
            _choice_object(index, choice, asked, notes, same=same)
            for index, choice in enumerate(answer.choices)
        ],
    }
    if answer.usage is not None:
        rendered["usage"] = _usage_object(answer.usage)
    elif asked.include_usage or asked.form == "whole":
        notes.add("usage unknown")
    if same:
        rendered |= answer.own
    note_own(answer, _WIRE, notes)
    if asked.form == "sse":
        return streamed(chunks(rendered, include_usage=asked.include_usage), notes)
    return whole(rendered, notes)


def _choice_object(index: int, choice: Choice, asked: Asked, notes: Notes, *, same: bool) -> JsonObject:
    finish = choice.finish or "stop"
    reason = _REASONS[finish]
    if _FINISHES[reason] != finish:
        notes.add("finish", f"{finish}->{reason}")
    if choice.stop_sequence is not None:
        notes.add("stop_sequence")
    own = dict(choice.own) if same else {}
    content = own.pop("content", None)
    spelt = {dump(part) for part in content_parts(content, [])}
    message = Message(asked, notes, same=same)
    for part in choice.parts:
        if not spelt or dump(part) not in spelt:
            message.add(part)
    said = message.value()
    if content is not None:
        said["content"] = content
    return {"index": index, "message": said, "logprobs": None, "finish_reason": reason, **own}
