"""Gemini answers to canonical answers and back (Google's reference of `generateContent`)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping

from rewind_proxy.canonical.answer import AnswerUsage, Asked, CanonicalAnswer, Choice, Finish, Rendered
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers
from rewind_proxy.wire.conversation import with_rest
from rewind_proxy.wire.forms.gemini_grounding import Cited, citations, grounding
from rewind_proxy.wire.forms.gemini_partial import is_partial
from rewind_proxy.wire.forms.gemini_stream import (
    array_pieces,
    joined_responses,
    responses,
    split_response,
    sse_events,
)
from rewind_proxy.wire.forms.rendering import (
    Notes,
    answer_id,
    arguments_object,
    dump,
    note_own,
    streamed,
    whole,
)
from rewind_proxy.wire.gemini import Gemini
from rewind_proxy.wire.gemini_names import camel
from rewind_proxy.wire.parameters import rename

_WIRE: Wire = "gemini"
_ADAPTER = Gemini()
_JSON_TYPE = "application/json; charset=UTF-8"
_SSE_TYPE = "text/event-stream"
_FINISHES: Mapping[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    **dict.fromkeys(
        (
            "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII ESCALATION MODEL_ARMOR "
            "IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"
        ).split(),
        "content_filter",
    ),
}
_REASONS: Mapping[Finish, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "STOP",  # a client that sees CONTINUATION wants a token to go on with
}


def parse(form: Form, body: bytes) -> CanonicalAnswer | None:
    """The answer in a decoded 2xx body; None when it is no complete success of this wire. Never raises.

    Nor is a call one whose pieces (`gemini_partial`) do not add up to it.
    """
    if _ADAPTER.ending(form, "generate", body).kind not in ("complete", "length"):
        return None
    try:
        found = responses(form, body)
        return _canonical(found[0] if form == "whole" else joined_responses(found))
    except RecursionError:  # JSON nested deeper than it can be walked
        return None


def _canonical(answer: JsonObject) -> CanonicalAnswer | None:
    candidates = sorted(
        answers.objects(answer.get("candidates")), key=lambda choice: answers.count(choice.get("index"))
    )
    if any(is_partial(part) for candidate in candidates for part in _raw_parts(candidate)):
        return None
    usage = _usage(answer.get("usageMetadata"))
    own = _rest(answer, "candidates", "usageMetadata", "modelVersion", "responseId")
    if usage is not None and answer["usageMetadata"] != _usage_object(usage):
        own["usageMetadata"] = answer["usageMetadata"]
    return CanonicalAnswer(
        choices=tuple(map(_choice, candidates)) or (Choice(finish="content_filter"),),
        usage=usage,
        model=answers.string(answer.get("modelVersion")) or "",
        id=answers.string(answer.get("responseId")) or "",
        own=own,
        wire=_WIRE,
    )


def _rest(value: JsonObject, *known: str) -> JsonObject:
    """The members that say something and have no neutral name."""
    return {
        name: member
        for name, member in value.items()
        if name not in known and member is not None and member != {}
    }


def _raw_parts(candidate: JsonObject) -> list[JsonObject]:
    content = candidate.get("content")
    found = answers.objects(content.get("parts")) if isinstance(content, dict) else []
    return [camel(part) for part in found]


def _usage(value: JsonValue) -> AnswerUsage | None:
    if not isinstance(value, dict):
        return None
    read, used, written, thought, cached = (
        answers.count(value.get(f"{name}TokenCount"))
        for name in ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
    )
    return AnswerUsage(input=read + used, output=written + thought, cached=cached, reasoning=thought)


def _usage_object(usage: AnswerUsage) -> JsonObject:
    counts: JsonObject = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cached:
        counts["cachedContentTokenCount"] = usage.cached
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts


def _choice(candidate: JsonObject) -> Choice:
    parts = [part for part in map(_part, _raw_parts(candidate)) if part is not None]
    texts = {index: str(part["text"]) for index, part in enumerate(parts) if part["type"] == "text"}
    own = _rest(candidate, "content", "finishReason", "index")
    for index, found in citations(own.get("groundingMetadata"), texts).items():
        parts[index]["citations"] = found
    if own.get("groundingMetadata") == grounding(_cited(parts)):
        del own["groundingMetadata"]
    reason = answers.string(candidate.get("finishReason"))
    finish = _FINISHES.get(reason, "stop") if reason else None
    if finish is not None and _REASONS[finish] != reason:
        own["finishReason"] = reason
    if finish == "stop" and any(part["type"] == "tool_call" for part in parts):
        finish = "tool_calls"  # this wire has no reason of its own for it
    return Choice(parts=tuple(parts), finish=finish, own=own)


def _cited(parts: Iterable[JsonObject]) -> list[Cited]:
    return [
        (index, str(part["text"]), [cited for cited in found if isinstance(cited.get("url"), str)])
        for index, part in enumerate(parts)
        if (found := answers.objects(part.get("citations")))
    ]


def _part(part: JsonObject) -> JsonObject | None:
    """A canonical part; None for a piece of no text that says nothing else."""
    part = rename(part, {"thoughtSignature": "signature"}) if "thoughtSignature" in part else part
    match part:
        case {"functionCall": dict(call)}:
            arguments = call.get("args")
            made: JsonObject = {
                "type": "tool_call",
                "id": answers.string(call.get("id")) or "",
                "name": answers.string(call.get("name")) or "",
                "arguments": dump({} if arguments is None else arguments),
            }
            with_rest(made, call, "id", "name", "args")
            return with_rest(made, part, "functionCall")
        case {"text": str(text), **rest}:
            kind = "reasoning" if rest.pop("thought", None) is True else "text"
            return with_rest({"type": kind, "text": text}, rest) if text or rest else None
    return {"type": "opaque", "wire": _WIRE, "value": rename(part, {"signature": "thoughtSignature"})}


def render(answer: CanonicalAnswer, asked: Asked) -> Rendered:
    """The answer as one response, as events or as an array; the same bytes for the same answer."""
    notes = Notes()
    same = answer.wire == _WIRE
    own = dict(answer.own) if same else {}
    wrapper = own.pop("codeAssist", None)
    rendered: JsonObject = {}
    if not ("promptFeedback" in own and not any(choice.parts for choice in answer.choices)):
        rendered["candidates"] = [
            _candidate(index, choice, notes, same=same) for index, choice in enumerate(answer.choices)
        ]
    if answer.usage is not None:
        rendered["usageMetadata"] = _usage_object(answer.usage)
        if answer.usage.cache_written:
            notes.add("usage cache_written")
    else:
        notes.add("usage unknown")
    rendered |= {"modelVersion": answer.model or asked.model, "responseId": answer_id("", answer), **own}
    note_own(answer, _WIRE, notes)

    def wrapped(response: JsonObject) -> JsonObject:
        if not asked.wrapped:
            return response
        return {"response": response, **(wrapper if isinstance(wrapper, dict) else {})}

    if asked.form == "whole":
        return whole(wrapped(rendered), notes, _JSON_TYPE)
    stream = map(wrapped, split_response(rendered))
    if asked.form == "sse":
        return streamed(sse_events(stream), notes, _SSE_TYPE)
    return streamed(array_pieces(stream), notes, _JSON_TYPE)


def _candidate(index: int, choice: Choice, notes: Notes, *, same: bool) -> JsonObject:
    finish = choice.finish or "stop"
    reason = _REASONS[finish]
    called = any(part["type"] == "tool_call" for part in choice.parts)
    told = "tool_calls" if called and reason == "STOP" else _FINISHES[reason]
    if told != finish:
        notes.add("finish", f"{finish}->{reason}")
    if choice.stop_sequence is not None:
        notes.add("stop_sequence")
    own = choice.own if same else {}
    made: list[JsonObject] = []
    cited: list[Cited] = []
    for part in _with_ids_once(choice.parts, notes):
        said = _wire_part(part, notes, same=same)
        if said is None:
            continue
        cited.extend((len(made), text, found) for _, text, found in _cited([part]))
        made.append(said)
        _note_citations(part, notes)
    candidate: JsonObject = {"content": {"parts": list(made), "role": "model"}, "finishReason": reason}
    if any(found for _, _, found in cited):
        candidate["groundingMetadata"] = grounding(cited)
    return {**candidate, "index": index, **own}


def _with_ids_once(parts: Iterable[JsonObject], notes: Notes) -> Iterator[JsonObject]:
    """The parts; a call with the id of one before it has none, as this wire allows."""
    used: set[str] = set()
    for part in parts:
        call_id = answers.string(part.get("id")) if part["type"] == "tool_call" else None
        if call_id is None:
            yield part
        elif call_id in used:
            notes.add("repeated id")
            yield {**part, "id": ""}
        else:
            used.add(call_id)
            yield part


def _note_citations(part: JsonObject, notes: Notes) -> None:
    for citation in answers.objects(part.get("citations")):
        if isinstance(citation.get("url"), str):
            notes.members("citation", citation, "url", "title", "start", "end")
        else:
            notes.add("citations")


def _wire_part(part: JsonObject, notes: Notes, *, same: bool) -> JsonObject | None:
    """A part of this wire; None where nothing of it can be said."""
    kind = part["type"]
    if kind == "opaque":
        value = part.get("value")
        if part.get("wire") == _WIRE and isinstance(value, dict):
            return value
        notes.opaque(part)
        return None
    known = _KNOWN[str(kind)]
    rest: JsonObject = {}
    if same:
        rest = {name.removeprefix("wire."): part[name] for name in part if name not in known}
    else:
        notes.members(str(kind), part, *known)
    if (signature := part.get("signature")) is not None:
        if isinstance(signature, str) and _is_base64(signature):
            rest["thoughtSignature"] = signature
        else:
            notes.add(str(kind), "signature")
    if kind == "tool_call":
        call_id: JsonObject = {"id": part["id"]} if part.get("id") else {}
        call: JsonObject = {**call_id, "name": part.get("name"), "args": arguments_object(part, notes)}
        return {"functionCall": call, **rest}
    if kind == "text":
        if part.get("refusal") is True:
            notes.add("refusal")
        return {"text": part["text"], **rest}
    text, summary = part.get("text"), part.get("summary")
    if summary:
        notes.add("reasoning summary")
    if not isinstance(text, str):
        text = "\n\n".join(map(str, summary)) if isinstance(summary, list) else ""
    return {"text": text, "thought": True, **rest} if text or rest else None


_KNOWN: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "refusal", "citations", "signature"}),
    "tool_call": frozenset({"type", "id", "name", "arguments", "call_type", "signature"}),
    "reasoning": frozenset({"type", "text", "summary", "signature"}),
}
"""Members of a part that this wire has a word for."""


def _is_base64(text: str) -> bool:
    """Whether the SDK of this wire can read it: signatures are bytes there, padded or not."""
    bare = text.rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    return text in (bare, padded) and any(_spells_bytes(padded, alphabet) for alphabet in (b"+/", b"-_"))


def _spells_bytes(text: str, alphabet: bytes) -> bool:
    try:
        return base64.b64encode(base64.b64decode(text, alphabet), alphabet).decode() == text
    except ValueError:  # other characters, or too few: another provider's
        return False
