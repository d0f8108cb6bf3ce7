"""OpenAI Responses, as the API and Codex speak it (bodies of POSTs and of `response.create` frames alike)."""

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
    Volatile,
    Wire,
)
from rewind_proxy.wire import answers
from rewind_proxy.wire.address import add_address
from rewind_proxy.wire.conversation import (
    Conversation,
    custom_call,
    media_from_url,
    opaque,
    text_parts,
    tool_call,
    tool_result,
    with_rest,
    wrapped,
)
from rewind_proxy.wire.parameters import (
    known_tools,
    lift,
    openai_tool,
    openai_tool_choice,
    present,
    rename,
    take_list,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_NAMES = {"max_output_tokens": "max_tokens"}
_TEXTS = frozenset({"input_text", "output_text", "text"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"
# Beside these an item must hold something for its id to be mere noise.
_NO_SUBSTANCE = frozenset({"type", "id", "status", "role", "call_id", "name", _PASSTHROUGH})


class Responses:
    """The adapter of `…/responses`."""

    wire: Wire = "responses"
    volatile = Volatile(
        params=frozenset({"prompt_cache_key", "client_metadata", "metadata", "safety_identifier"}),
        members=frozenset({"item_id", _PASSTHROUGH, "cache_control"}),
    )

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`.

        A compaction (`…/responses/compact`) is told from a turn by the parameter `compact`.
        """
        fields = present(body)
        if fields.get("type") == "response.create":
            del fields["type"]  # the frame of a socket says what the path of a POST says
        conversation = Conversation()
        if "instructions" in fields:
            conversation.add("system", _content(fields.pop("instructions")))
        if isinstance(text := fields.get("input"), str):
            del fields["input"]
            conversation.add("user", text_parts(text))
        conversation.take(take_list(fields, "input"), _item)
        tools = (*conversation.tools, *known_tools(take_list(fields, "tools")))
        lift(fields, "text", {"format": "response_format", "verbosity": "verbosity"})
        lift(fields, "reasoning", {"effort": "reasoning_effort"})
        params = rename(fields, _NAMES)
        if "tool_choice" in params:
            params["tool_choice"] = openai_tool_choice(params["tool_choice"])
        add_address(params, self.wire, target)
        if _is_compaction(target.path):
            params["compact"] = True
        return CanonicalRequest(self.wire, operation, conversation.messages(), tools, params)

    def form(self, target: Target, body: JsonObject) -> Form:
        """See `Adapter.form`."""
        return "sse" if body.get("stream") is True and not _is_compaction(target.path) else "whole"

    def ending(
        self,
        form: Form,
        operation: Operation,
        body: bytes,
        choices: int = 1,  # noqa: ARG002  # this wire has one
    ) -> Ending:
        """See `Adapter.ending`: the first of `response.completed`, `.incomplete`, `.failed` and `error`."""
        if operation != "generate":
            return answers.plain(form, body)
        if form == "whole":
            answer = answers.load_object(body)
            return answers.CUT if answer is None else _response_ending(answer)
        for event in answers.events(body):
            data = answers.load_object(event.data)
            if data is None:
                continue
            kind = data.get("type", event.name)
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                response = data.get("response")
                ending = _response_ending(response if isinstance(response, dict) else {})
                return Ending(_TERMINAL[str(kind)], ending.model, ending.usage)
            if kind == "error":
                return Ending("error")
        return answers.CUT

    def error(self, status: int, message: str) -> JsonObject:  # noqa: ARG002  # the body does not name it
        """See `Adapter.error`."""
        return answers.openai_error(message)


_TERMINAL: dict[str, answers.Kind] = {
    "response.completed": "complete",
    "response.incomplete": "length",
    "response.failed": "error",
}
_STATUS: dict[str, answers.Kind] = {
    "completed": "complete",
    "incomplete": "length",
    "failed": "error",
    "cancelled": "error",
    # A background response: the answer is still to be asked for.
    "queued": "cut",
    "in_progress": "cut",
}


def _response_ending(response: JsonObject) -> Ending:
    model = answers.string(response.get("model"))
    usage = answers.usage(
        response.get("usage"), "input_tokens", "output_tokens", ("input_tokens_details", "cached_tokens")
    )
    if response.get("error") is not None:
        return Ending("error", model, usage)
    if "status" not in response:  # a compaction has none
        return Ending("complete" if isinstance(response.get("output"), list) else "cut", model, usage)
    return Ending(_STATUS.get(str(response["status"]), "cut"), model, usage)


def _is_compaction(path: str) -> bool:
    return path.rstrip("/").endswith("/compact")


def _additional_tools(item: JsonValue) -> list[JsonValue] | None:
    """The tools that Codex puts at the head of `input`; None for any other item."""
    if not isinstance(item, dict) or item.get("type") != "additional_tools":
        return None
    known = item.keys() <= {"type", "id", "role", "tools", _PASSTHROUGH}
    tools = item.get("tools")
    return (
        tools if known and item.get("role", "developer") == "developer" and isinstance(tools, list) else None
    )


def _item(conversation: Conversation, item: JsonValue) -> None:
    if isinstance(item, str):
        conversation.add("user", text_parts(item))
        return
    if not isinstance(item, dict):
        conversation.add("user", [opaque(item)])
        return
    if (tools := _additional_tools(item)) is not None and not conversation.spoken:
        conversation.tools += map(openai_tool, tools)
        return
    item = _without_noise(item)
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "message" and isinstance(role, str) and role in _ROLES:
        parts = wrapped(_content(item.get("content")), item, "type", "role", "content")
        conversation.add(_ROLES[role], parts)
    elif kind in _CALLS:
        conversation.add("assistant", [_call(item, kind)])
    elif kind in _RESULTS:
        call_id = "call_id" if "call_id" in item else "id"  # local_shell_call_output has only `id`
        result = tool_result(item.get(call_id), list(_content(item.get("output"))))
        conversation.add("tool", [with_rest(result, item, "type", call_id, "output")])
    elif kind == "reasoning":
        conversation.add("assistant", [_reasoning(item)])
    else:
        conversation.add(_opaque_role(kind), [opaque(item)])


def _without_noise(item: JsonObject) -> JsonObject:
    """The item with its id under a name of its own, so that it is known as noise.

    The id of an item that holds nothing else (`item_reference`, an image call or a stored reasoning by id
    alone) refers to what the provider keeps: that is meaning, and stays `id`.
    """
    kept: JsonObject = {
        name: value
        for name, value in item.items()
        if value is not None and not (name == "status" and value == "completed")
    }
    names_a_call = kept.get("type") == "local_shell_call_output" and "call_id" not in kept
    holds_something = any(
        value not in ("", [], {}) for name, value in kept.items() if name not in _NO_SUBSTANCE
    )
    if "id" in kept and holds_something and not names_a_call:
        kept["item_id"] = kept.pop("id")
    return kept


def _opaque_role(kind: JsonValue) -> Role:
    if isinstance(kind, str):
        if kind.endswith("_output"):
            return "tool"
        if kind.endswith("_call") or kind in ("compaction", "mcp_list_tools", "mcp_approval_request"):
            return "assistant"
    return "user"


def _call(item: JsonObject, kind: JsonValue) -> JsonObject:
    if kind == "custom_tool_call":
        return with_rest(
            custom_call(item.get("call_id"), item.get("name"), item.get("input")),
            item, "type", "call_id", "name", "input",
        )  # fmt: skip
    if kind == "local_shell_call":
        call = tool_call(item.get("call_id"), "local_shell", item.get("action"))
        call["call_type"] = "local_shell"
        return with_rest(call, item, "type", "call_id", "action")
    call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
    return with_rest(call, item, "type", "call_id", "name", "arguments")


def _reasoning(item: JsonObject) -> JsonObject:
    part: JsonObject = {"type": "reasoning"}
    known = ["type"]
    match item.get("content"):
        case [{"type": "reasoning_text", "text": str(text), **rest}] if not rest:
            part["text"] = text
            known.append("content")
    if item.get("summary") == []:  # the member is required, other wires leave it out
        known.append("summary")
    return with_rest(part, item, *known)


def _content(content: JsonValue) -> Iterator[JsonObject]:
    if isinstance(content, str):
        yield from text_parts(content)
    elif isinstance(content, list):
        for part in content:
            yield from _part(part)
    elif content is not None:
        yield opaque(content)


def _part(part: JsonValue) -> list[JsonObject]:
    if not isinstance(part, dict):
        return [opaque(part)]
    kind = part.get("type")
    if kind in _TEXTS and isinstance(text := part.get("text"), str):
        # An echoed answer carries these two empty, an input text does not have them.
        empty = [name for name in ("annotations", "logprobs") if not part.get(name)]
        made = with_rest({"type": "text", "text": text}, part, "type", "text", *empty)
        return [] if not text and len(made) == 2 else [made]
    if kind == "refusal" and (text := answers.string(part.get("refusal"))):
        return [with_rest({"type": "text", "text": text, "refusal": True}, part, "type", "refusal")]
    media = _media(part, kind)
    return [opaque(part) if media is None else media]


def _media(part: JsonObject, kind: JsonValue) -> JsonObject | None:
    if kind == "input_image":
        if isinstance(url := part.get("image_url"), str):
            return with_rest(media_from_url(url, "image"), part, "type", "image_url")
        return with_rest({"type": "media", "media_type": "image/*"}, part, "type")
    if kind == "input_file":
        for name in ("file_data", "file_url"):
            if isinstance(url := part.get(name), str):
                return with_rest(media_from_url(url, "application"), part, "type", name)
        return with_rest({"type": "media", "media_type": "application/*"}, part, "type")
    audio = part.get("input_audio")
    if kind == "input_audio" and isinstance(audio, dict) and isinstance(data := audio.get("data"), str):
        media: JsonObject = {"type": "media", "media_type": f"audio/{audio.get('format', '*')}", "data": data}
        return with_rest(with_rest(media, audio, "data", "format"), part, "type", "input_audio")
    return None
