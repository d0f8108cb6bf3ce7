"""OpenAI Chat Completions, as OpenAI and the many that speak its dialect have it."""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Ending,
    Form,
    JsonObject,
    JsonValue,
    Operation,
    Role,
    Target,
    Usage,
    Volatile,
    Wire,
)
from rewind_proxy.wire import answers
from rewind_proxy.wire.address import add_address
from rewind_proxy.wire.conversation import (
    BILLING_LINE,
    Conversation,
    custom_call,
    media_from_data,
    media_from_url,
    odd_turn,
    opaque,
    parts_of,
    refusal,
    sent_text,
    text_parts,
    tool_call,
    tool_result,
    with_rest,
    wrapped,
)
from rewind_proxy.wire.parameters import (
    BOOKKEEPING,
    OPENAI_CACHE,
    flatten,
    known_tools,
    lift,
    name_bookkeeping,
    openai_tool_choice,
    present,
    rename,
    string_list,
    take_list,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_NAMES = {"max_completion_tokens": "max_tokens", "random_seed": "seed"}  # the latter is Mistral's
# Where a call stood in the stream that it was put together from, as some clients send it back.
_CALL_INDEX = "call_index"


class ChatCompletions:
    """The adapter of `…/chat/completions`."""

    wire: Wire = "chat_completions"
    volatile = Volatile(
        params=BOOKKEEPING | OPENAI_CACHE | {"metadata", "safety_identifier"},
        members=frozenset({"cache_control", "copilot_cache_control", "prompt_cache_breakpoint", _CALL_INDEX}),
        system_prefixes=BILLING_LINE,
    )

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`."""
        fields = present(body)
        conversation = Conversation()
        conversation.take(take_list(fields, "messages"), _message)
        tools = known_tools(take_list(fields, "tools"))
        lift(fields, "reasoning", {"effort": "reasoning_effort"})
        name_bookkeeping(fields, target.host)
        params = rename(fields, _NAMES)
        if "stop" in params:
            params["stop"] = string_list(params["stop"])
        if "tool_choice" in params:
            params["tool_choice"] = openai_tool_choice(params["tool_choice"])
        if isinstance(response_format := params.get("response_format"), dict):
            params["response_format"] = flatten(response_format, "json_schema")
        add_address(params, self.wire, target)
        return conversation.request(self.wire, operation, tools, params)

    def form(self, target: Target, body: JsonObject) -> Form:  # noqa: ARG002  # Gemini's is in the path
        """See `Adapter.form`."""
        return "sse" if body.get("stream") is True else "whole"

    def ending(self, form: Form, operation: Operation, body: bytes, choices: int = 1) -> Ending:
        """See `Adapter.ending`.

        A stream is complete at `[DONE]`, or when every choice asked for has its finish reason: several
        providers of this dialect never send `[DONE]`. Where the chunks announce a usage chunk
        (`"usage": null` in each) and it did not come, a stream without `[DONE]` was cut before it.
        """
        if operation != "generate":
            return answers.plain(form, body)
        if form == "whole":
            return _whole_ending(body)
        return _stream_ending(body, choices)

    def error(self, status: int, message: str) -> JsonObject:  # noqa: ARG002  # the body does not name it
        """See `Adapter.error`."""
        return answers.openai_error(message)


def _message(conversation: Conversation, message: JsonValue) -> None:
    if not isinstance(message, dict):
        conversation.add("user", [odd_turn(message)])
        return
    name = message.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        conversation.add("user", [odd_turn(message)])
    elif role == "tool":
        result = tool_result(message.get("tool_call_id"), _content(message.get("content")))
        conversation.add(role, [with_rest(result, message, "role", "tool_call_id", "content")])
    elif role == "assistant":
        conversation.add(role, _assistant(message))
    else:
        conversation.add(role, wrapped(_content(message.get("content")), message, "role", "content"))


def _assistant(message: JsonObject) -> list[JsonObject]:
    rest = present(message)
    parts = list(_said(rest))
    return wrapped(parts, rest, "role")


def _said(rest: JsonObject) -> Iterator[JsonObject]:
    """The parts of an assistant's message, whose members are taken out of `rest`."""
    yield from _reasoning(rest)
    yield from _content(rest.pop("content", None))
    if isinstance(refusal := rest.pop("refusal", None), str):
        if refusal:
            yield {"type": "text", "text": refusal, "refusal": True}
    elif refusal is not None:
        rest["refusal"] = refusal
    for call in take_list(rest, "tool_calls"):
        yield _call(call)
    if isinstance(function := rest.get("function_call"), dict):
        del rest["function_call"]
        call = tool_call("", function.get("name"), function.get("arguments"))
        yield with_rest(call, function, "name", "arguments")
    if images := take_list(rest, "images"):  # as OpenRouter's models draw them
        rest["images"] = [part for image in images for part in _part(image)]
    for name in ("tool_calls", "annotations"):
        if rest.get(name) == []:  # as SDKs echo a message that has none
            del rest[name]


def _reasoning(rest: JsonObject) -> Iterator[JsonObject]:
    """DeepSeek, Qwen and Moonshot say `reasoning_content`, OpenRouter `reasoning` and `reasoning_details`."""
    part: JsonObject = {"type": "reasoning"}
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := rest.get(name), str) and "text" not in part:
            del rest[name]
            if text:
                part["text"] = text
    if details := take_list(rest, "reasoning_details"):
        part["reasoning_details"] = details
    if len(part) > 1:
        yield part


def _call(call: JsonValue) -> JsonObject:
    if isinstance(call, dict):
        if call.get("type", "function") == "function" and isinstance(made := call.get("function"), dict):
            part = tool_call(call.get("id"), made.get("name"), made.get("arguments"))
            with_rest(part, made, "name", "arguments")
            return _with_call(part, call, "function")
        if call.get("type") == "custom" and isinstance(made := call.get("custom"), dict):
            part = custom_call(call.get("id"), made.get("name"), made.get("input"))
            with_rest(part, made, "name", "input")
            return _with_call(part, call, "custom")
    return opaque(call, "tool_calls")


def _with_call(part: JsonObject, call: JsonObject, made: str) -> JsonObject:
    known = ["id", "type", made]
    if isinstance(index := call.get("index"), int):
        part[_CALL_INDEX] = index
        known.append("index")
    return with_rest(part, call, *known)


def _content(content: JsonValue) -> Iterator[JsonObject]:
    return parts_of(content, _part)


def _part(part: JsonValue) -> list[JsonObject]:
    if isinstance(part, str):
        return text_parts(part)
    if not isinstance(part, dict):
        return [opaque(part)]
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return sent_text(part, text)
    if refused := refusal(part):
        return refused
    media = _media(part, kind)
    return [opaque(part) if media is None else media]


def _media(part: JsonObject, kind: JsonValue) -> JsonObject | None:
    image = part.get("image_url")
    if kind == "image_url":
        if isinstance(image, str):
            return with_rest(media_from_url(image, "image"), part, "type", "image_url")
        if isinstance(image, dict) and isinstance(url := image.get("url"), str):
            media = with_rest(media_from_url(url, "image"), image, "url")
            return with_rest(media, part, "type", "image_url")
    audio = part.get("input_audio")
    if kind == "input_audio" and isinstance(audio, dict) and isinstance(data := audio.get("data"), str):
        media = media_from_data(f"audio/{audio.get('format', '*')}", data)
        return with_rest(with_rest(media, audio, "data", "format"), part, "type", "input_audio")
    file = part.get("file")
    if kind == "file" and isinstance(file, dict):
        if isinstance(data := file.get("file_data"), str):
            media = with_rest(media_from_url(data, "application"), file, "file_data")
        else:
            media = with_rest({"type": "media", "media_type": "application/*"}, file)
        return with_rest(media, part, "type", "file")
    return None


def counted(chunk: JsonObject) -> JsonValue:
    """The usage that a chunk tells: its own, or where Groq (`x_groq`) and Moonshot (the choice) have it."""
    for place in (chunk, chunk.get("x_groq"), *answers.objects(chunk.get("choices"))):
        if isinstance(place, dict) and isinstance(usage := place.get("usage"), dict):
            return usage
    return None


def _usage(value: JsonValue) -> Usage | None:
    return answers.usage(value, "prompt_tokens", "completion_tokens", "prompt_tokens_details")


def _whole_ending(body: bytes) -> Ending:
    answer = answers.load_object(body)
    if answer is None:
        return answers.CUT
    model, usage = answers.string(answer.get("model")), _usage(answer.get("usage"))
    if answer.get("error") is not None or answer.get("object") == "error":
        return Ending("error", model, usage)
    choices = answers.objects(answer.get("choices"))
    if not choices:
        return Ending("cut", model, usage)
    return Ending(_kind([choice.get("finish_reason") for choice in choices]), model, usage)


def _kind(reasons: list[JsonValue]) -> answers.Kind:
    if "error" in reasons:  # as OpenRouter ends a choice that broke
        return "error"
    return "length" if "length" in reasons else "complete"


def _stream_ending(body: bytes, choices: int) -> Ending:
    model: str | None = None
    usage: Usage | None = None
    reasons: dict[str, JsonValue] = {}
    done = announced = False
    for event in answers.events(body):
        if event.data.strip() == "[DONE]":
            done = True
            break
        chunk = answers.load_object(event.data)
        if chunk is None:
            continue
        if event.name == "error" or chunk.get("error") is not None:
            return Ending("error", model, usage)
        model = answers.string(chunk.get("model")) or model
        announced = announced or ("usage" in chunk and chunk["usage"] is None)
        usage = _usage(counted(chunk)) or usage
        for choice in answers.objects(chunk.get("choices")):
            index = str(choice.get("index", 0))
            reasons[index] = choice.get("finish_reason") or reasons.get(index)
    ended = len(reasons) >= choices and all(reasons.values())
    finished = ended and (usage is not None or not announced)
    if not reasons or not (done or finished):
        return Ending("cut", model, usage)
    return Ending(_kind(list(reasons.values())), model, usage)
