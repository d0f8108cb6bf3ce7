"""The items of a Responses request: messages, calls and their results, reasoning, and the parts in them."""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue, Role
from rewind_proxy.wire.conversation import (
    Conversation,
    custom_call,
    media_from_data,
    media_from_url,
    odd_turn,
    opaque,
    own_call,
    parts_of,
    refusal,
    sent_text,
    text_parts,
    tool_call,
    tool_result,
    with_rest,
    wrapped,
)
from rewind_proxy.wire.parameters import openai_tool

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_TEXTS = frozenset({"input_text", "output_text", "text"})
_CALL, _OUTPUT = "_call", "_output"
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
"""Those that other wires have too, or clients answer under the type of another; all others tell their own."""
PASSTHROUGH = "internal_chat_message_metadata_passthrough"
"""The member of items in which Codex names turns."""
# Beside these all of a call's members say what is asked for.
_CALL_ENVELOPE = frozenset(
    {"type", "item_id", "id", "status", "call_id", "caller", "cache_control", PASSTHROUGH}
)
_SCREEN = "computer_screenshot"
# Beside these an item must hold something for its id to be mere noise.
_NO_SUBSTANCE = frozenset({"type", "id", "status", "role", "call_id", "name", PASSTHROUGH})


def _additional_tools(item: JsonValue) -> list[JsonValue] | None:
    """The tools that Codex puts at the head of `input`; None for any other item."""
    if not isinstance(item, dict) or item.get("type") != "additional_tools":
        return None
    known = item.keys() <= {"type", "id", "role", "tools", PASSTHROUGH}
    tools = item.get("tools")
    return (
        tools if known and item.get("role", "developer") == "developer" and isinstance(tools, list) else None
    )


def add_item(conversation: Conversation, item: JsonValue) -> None:
    """Add the turns of one item of `input`."""
    if isinstance(item, str):
        conversation.add("user", text_parts(item))
        return
    if not isinstance(item, dict):
        conversation.add("user", [odd_turn(item)])
        return
    if (tools := _additional_tools(item)) is not None and not conversation.spoken:
        conversation.tools += map(openai_tool, tools)
        return
    item = _without_noise(item)
    kind, role = item.get("type", "message"), item.get("role")
    if not isinstance(kind, str):
        conversation.add("user", [odd_turn(item)])
        return
    if kind == "message" and isinstance(role, str) and role in _ROLES:
        parts = wrapped(content_parts(item.get("content")), item, "type", "role", "content")
        conversation.add(_ROLES[role], parts)
    elif kind in _CALLS or (kind.endswith(_CALL) and "call_id" in item):
        conversation.add("assistant", [_call(item, kind)])
    elif kind in _RESULTS or (kind.endswith(_OUTPUT) and "call_id" in item):
        conversation.add("tool", [_result(item, kind)])
    elif kind == "mcp_approval_request" and "item_id" in item:
        call = own_call(item["item_id"], item.get("name"), item.get("arguments"), kind)
        conversation.add("assistant", [with_rest(call, item, "type", "item_id", "name", "arguments")])
    elif kind == "mcp_approval_response":
        answer = tool_result(item.get("approval_request_id"), ()) | {"result_type": kind}
        conversation.add("user", [with_rest(answer, item, "type", "approval_request_id")])
    elif kind == "reasoning":
        conversation.add("assistant", [_reasoning(item)])
    else:
        conversation.add(_opaque_role(kind), [odd_turn(_with_picture(item, kind))])


def _without_noise(item: JsonObject) -> JsonObject:
    """The item with its id under a name of its own, so that it is known as noise.

    The id of an item that holds nothing else (`item_reference`, an image call or a stored reasoning by id
    alone) refers to what the provider keeps: that is meaning, and stays `id`.
    """
    kept: JsonObject = {
        f"wire.{name}" if name == "item_id" else name: value
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


def _opaque_role(kind: str) -> Role:
    if kind.endswith(_OUTPUT):
        return "tool"
    if kind.endswith(_CALL) or kind in ("compaction", "mcp_list_tools", "mcp_approval_request"):
        return "assistant"
    return "user"


def _call(item: JsonObject, kind: str) -> JsonObject:
    if kind == "custom_tool_call":
        return with_rest(
            custom_call(item.get("call_id"), item.get("name"), item.get("input")),
            item, "type", "call_id", "name", "input",
        )  # fmt: skip
    if kind == "local_shell_call":
        call = tool_call(item.get("call_id"), "local_shell", item.get("action"))
        call["call_type"] = "local_shell"
        return with_rest(call, item, "type", "call_id", "action")
    if kind == "function_call":
        call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        return with_rest(call, item, "type", "call_id", "name", "arguments")
    # `computer_call`, `shell_call`, `apply_patch_call` …: what is asked for has a name of its own in each.
    asked: JsonObject = {name: value for name, value in item.items() if name not in _CALL_ENVELOPE}
    call = own_call(item["call_id"], kind.removesuffix(_CALL), asked, kind)
    return with_rest(call, item, "type", "call_id", *asked)


def _result(item: JsonObject, kind: str) -> JsonObject:
    call_id = "call_id" if "call_id" in item else "id"  # local_shell_call_output has only `id`
    output = item.get("output")
    screen = isinstance(output, dict) and output.get("type") == _SCREEN
    result = tool_result(item.get(call_id), _part(output) if screen else content_parts(output))
    if kind not in _RESULTS:
        result["result_type"] = kind
    return with_rest(result, item, "type", call_id, "output")


def _with_picture(item: JsonObject, kind: str) -> JsonObject:
    """The item with the picture that a call made, which is base64, as media."""
    if kind == "image_generation_call" and isinstance(picture := item.get("result"), str):
        return {**item, "result": media_from_data(f"image/{item.get('output_format', 'png')}", picture)}
    return item


def _reasoning(item: JsonObject) -> JsonObject:
    part: JsonObject = {"type": "reasoning"}
    known = ["type"]
    match item.get("content"):
        case [{"type": "reasoning_text", "text": str(text), **rest}] if not rest:
            part["text"] = text
            known.append("content")
        case []:
            known.append("content")
    if item.get("summary") == []:  # the member is required, other wires leave it out
        known.append("summary")
    return with_rest(part, item, *known)


def content_parts(content: JsonValue) -> Iterator[JsonObject]:
    """The parts of a message's content, of `instructions` or of a call's output."""
    return parts_of(content, _part)


def _part(part: JsonValue) -> list[JsonObject]:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return [opaque(part)]
    if kind in _TEXTS and isinstance(text := part.get("text"), str):
        # An echoed answer carries these two empty, an input text does not have them.
        return sent_text(part, text, *(name for name in ("annotations", "logprobs") if not part.get(name)))
    if refused := refusal(part):
        return refused
    media = _media(part, kind)
    return [opaque(part) if media is None else media]


def _media(part: JsonObject, kind: str) -> JsonObject | None:
    if kind in ("input_image", _SCREEN):
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
        media = media_from_data(f"audio/{audio.get('format', '*')}", data)
        return with_rest(with_rest(media, audio, "data", "format"), part, "type", "input_audio")
    return None
