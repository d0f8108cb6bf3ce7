"""Anthropic Messages, at Anthropic, on Vertex and at the providers that offer it beside their own wire."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from urllib.parse import unquote

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
    media_from_data,
    media_from_url,
    odd_turn,
    opaque,
    parts_of,
    sent,
    sent_text,
    text_parts,
    tool_result,
    with_rest,
    wrapped,
)
from rewind_proxy.wire.parameters import (
    BOOKKEEPING,
    all_tools,
    lift,
    name_bookkeeping,
    present,
    rename,
    string_list,
    take_list,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_NAMES = {"stop_sequences": "stop", "output_format": "response_format"}
_PREVIOUS = "diagnostics.previous_message_id"
_SAFEGUARDS, _CONTEXT = "safeguards", "classifier_context"
_OF_THE_MACHINE = ("platform", "case_insensitive_paths")
_VERTEX_STREAM = ":streamRawPredict"


class Anthropic:
    """The adapter of `…/v1/messages` and `…/v1/messages/count_tokens`."""

    wire: Wire = "anthropic"
    volatile = Volatile(
        # Vertex and Bedrock have the version in the body, Anthropic in a header, which is in no fingerprint.
        params=BOOKKEEPING | {"metadata", "cache_control", "anthropic_version", _PREVIOUS},
        members=frozenset({"cache_control"}),
        system_prefixes=BILLING_LINE,
    )

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`."""
        fields = present(body)
        conversation = Conversation()
        if "system" in fields:
            conversation.add("system", _blocks(fields.pop("system")))
        conversation.take(take_list(fields, "messages"), _message)
        tools = all_tools(take_list(fields, "tools"), _tool)
        lift(fields, "output_config", {"format": "response_format"})
        lift(fields, "diagnostics", {"previous_message_id": _PREVIOUS})
        _lift_machine(fields)
        _tool_choice(fields)
        name_bookkeeping(fields, target.host)
        params = rename(fields, _NAMES)
        if "stop" in params:
            params["stop"] = string_list(params["stop"])
        add_address(params, self.wire, target)
        return conversation.request(self.wire, operation, tools, params)

    def form(self, target: Target, body: JsonObject) -> Form:
        """See `Adapter.form`."""
        streamed = body.get("stream") is True or unquote(target.path).endswith(_VERTEX_STREAM)
        return "sse" if streamed else "whole"

    def ending(
        self,
        form: Form,
        operation: Operation,
        body: bytes,
        choices: int = 1,  # noqa: ARG002  # this wire has one
    ) -> Ending:
        """See `Adapter.ending`: a stream ends with `message_stop`, never before."""
        if operation != "generate":
            return answers.plain(form, body)
        if form == "whole":
            return _whole_ending(body)
        return _stream_ending(body)

    def error(self, status: int, message: str) -> JsonObject:
        """See `Adapter.error`."""
        error: JsonObject = {"type": _ERRORS.get(status, "invalid_request_error"), "message": message}
        return {"type": "error", "error": error}


_ERRORS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 500: "api_error"}
_LENGTH = ("max_tokens", "model_context_window_exceeded")


def _message(conversation: Conversation, message: JsonValue) -> None:
    if not isinstance(message, dict):
        conversation.add("user", [odd_turn(message)])
        return
    name = message.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        conversation.add("user", [odd_turn(message)])
        return
    parts = wrapped(_blocks(message.get("content")), message, "role", "content")
    if role != "user" or not parts:
        conversation.add(role, parts)
        return
    for is_result, group in groupby(parts, key=lambda part: part["type"] == "tool_result"):
        conversation.add("tool" if is_result else "user", group)


def _blocks(content: JsonValue) -> Iterator[JsonObject]:
    return parts_of(content, _block)


def _block(block: JsonValue) -> list[JsonObject]:
    if isinstance(block, str):
        return text_parts(block)
    if not isinstance(block, dict):
        return [opaque(block)]
    kind = block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str):
        return sent_text(block, text)
    if kind == "tool_use" or (_ends(kind, "_tool_use") and "id" in block):
        call: JsonObject = {
            "type": "tool_call",
            "id": sent(block.get("id")),
            "name": sent(block.get("name")),
            "arguments": block.get("input"),
        }
        if kind != "tool_use":  # of the provider's own tools: `server_tool_use`, `mcp_tool_use`
            call["call_type"] = kind
        return [with_rest(call, block, "type", "id", "name", "input")]
    if kind == "tool_result" or (_ends(kind, "_tool_result") and "tool_use_id" in block):
        result = tool_result(block.get("tool_use_id"), _blocks(block.get("content")))
        if kind != "tool_result":
            result["result_type"] = kind
        known = ["type", "tool_use_id", "content"]
        if block.get("is_error") is False:  # what other wires say by leaving it out
            known.append("is_error")
        return [with_rest(result, block, *known)]
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return [with_rest({"type": "reasoning", "text": block["thinking"]}, block, "type", "thinking")]
    if kind == "redacted_thinking":
        part: JsonObject = {"type": "reasoning", "encrypted_content": block.get("data")}
        return [with_rest(part, block, "type", "data")]
    media = _media(block, kind)
    return [opaque(block) if media is None else media]


def _ends(kind: JsonValue, ending: str) -> bool:
    return isinstance(kind, str) and kind.endswith(ending)


def _media(block: JsonObject, kind: JsonValue) -> JsonObject | None:
    source = block.get("source")
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    general = "image" if kind == "image" else "application"
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            media = media_from_data(media_type, data)
        case {"type": "text", "media_type": str(media_type), "data": str(data)}:
            media = {"type": "media", "media_type": media_type.lower(), "text": data}
        case {"type": "url", "url": str(url)}:
            media = media_from_url(url, general)
        case {"type": "file", "file_id": file_id}:
            media = {"type": "media", "media_type": f"{general}/*", "file_id": file_id}
        case _:
            return None
    known = ("type", "url", "file_id") if "data" not in source else ("type", "media_type", "data")
    with_rest(media, source, *known)
    return with_rest(media, block, "type", "source")


def _tool(tool: JsonValue) -> JsonObject:
    """A tool with its schema as `parameters`; a built-in one, which has a type of its own, as it is."""
    if not isinstance(tool, dict):
        return opaque(tool)
    if tool.get("type", "custom") != "custom" or "parameters" in tool:
        return tool
    return {
        "parameters" if name == "input_schema" else name: value
        for name, value in tool.items()
        if name != "type"
    }


def _lift_machine(fields: JsonObject) -> None:
    """Name what Claude Code tells its safeguards of its machine (`safeguards.platform`) apart from the rest.

    Only what all of them are told alike: else it would be lost which one was told it.
    """
    safeguards = fields.get(_SAFEGUARDS)
    if not isinstance(safeguards, list):
        return
    left = [{**each} if isinstance(each, dict) else each for each in safeguards]
    contexts: list[JsonObject] = []
    for safeguard in left:
        if isinstance(safeguard, dict) and isinstance(told := safeguard.get(_CONTEXT), dict):
            safeguard[_CONTEXT] = context = {**told}
            contexts.append(context)
    for name in _OF_THE_MACHINE:
        neutral, values = f"{_SAFEGUARDS}.{name}", [context.get(name) for context in contexts]
        alike = len({repr(value) for value in values}) == 1  # `1 == True` in Python
        if alike and values[0] is not None and neutral not in fields:
            fields[neutral] = values[0]
            for context in contexts:
                del context[name]
    fields[_SAFEGUARDS] = left


def _tool_choice(fields: JsonObject) -> None:
    """The neutral choice, and `parallel_tool_calls`, which this wire says the other way round."""
    choice = fields.get("tool_choice")
    if not isinstance(choice, dict):
        return
    rest = present(choice)
    if (
        isinstance(alone := rest.get("disable_parallel_tool_use"), bool)
        and "parallel_tool_calls" not in fields
    ):
        del rest["disable_parallel_tool_use"]
        fields["parallel_tool_calls"] = not alone
    match rest:
        case {"type": ("auto" | "none") as kind, **more} if not more:
            fields["tool_choice"] = kind
        case {"type": "any", **more} if not more:
            fields["tool_choice"] = "required"
        case {"type": "tool", "name": name, **more} if not more:
            fields["tool_choice"] = {"type": "function", "name": name}
        case _:
            fields["tool_choice"] = rest


def _usage(*values: JsonValue) -> Usage | None:
    """The counts of the start and the end of a message: the later one wins where it has one.

    `input_tokens` of this wire are only those that no cache had to do with.
    """
    merged: JsonObject = {}
    for value in values:
        if isinstance(value, dict):
            merged |= present(value)
    if not merged:
        return None
    plain, written, cached, cache_written = (
        answers.count(merged.get(f"{name}_tokens"))
        for name in ("input", "output", "cache_read_input", "cache_creation_input")
    )
    return Usage(plain + cached + cache_written, written, cached, cache_written)


def _whole_ending(body: bytes) -> Ending:
    answer = answers.load_object(body)
    if answer is None:
        return answers.CUT
    model, usage = answers.string(answer.get("model")), _usage(answer.get("usage"))
    if answer.get("type") == "error" or answer.get("error") is not None:
        return Ending("error", model, usage)
    if not isinstance(answer.get("content"), list):
        return Ending("cut", model, usage)
    return Ending("length" if answer.get("stop_reason") in _LENGTH else "complete", model, usage)


def _stream_ending(body: bytes) -> Ending:
    model: str | None = None
    first: JsonValue = None
    last: JsonValue = None
    reason: JsonValue = None
    for event in answers.events(body):
        data = answers.load_object(event.data)
        if data is None:
            continue
        kind = data.get("type", event.name)
        if kind == "message_start" and isinstance(message := data.get("message"), dict):
            model, first = answers.string(message.get("model")), message.get("usage")
        elif kind == "message_delta":
            last = data.get("usage", last)
            delta = data.get("delta")
            reason = delta.get("stop_reason") if isinstance(delta, dict) else reason
        elif kind == "error":
            return Ending("error", model, _usage(first, last))
        elif kind == "message_stop":
            return Ending("length" if reason in _LENGTH else "complete", model, _usage(first, last))
    return Ending("cut", model, _usage(first, last))
