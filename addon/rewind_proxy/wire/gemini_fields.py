"""The other fields of a Gemini request: tools, generation config, tool choice, and the wrapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.conversation import opaque, with_rest
from rewind_proxy.wire.gemini_names import as_json_schema, camel
from rewind_proxy.wire.parameters import lift, present, rename, string_list, take_list

_FUNCTION = {"parametersJsonSchema": "parameters"}
_CONFIG = {
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "candidateCount": "n",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "responseLogprobs": "logprobs",
    "logprobs": "top_logprobs",
}
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


def unwrapped(fields: JsonObject, wrapper: str) -> JsonObject:
    """The members of the request that `wrapper` holds beside those around it, which come first."""
    inner = fields.get(wrapper)
    if not isinstance(inner, dict):
        return fields
    merged: JsonObject = {name: value for name, value in fields.items() if name != wrapper}
    return with_rest(merged, camel(present(inner)))


def name_model(fields: JsonObject) -> None:
    """Spell a `model` in the body as the path does: Code Assist and counts have it there."""
    if isinstance(model := fields.get("model"), str):
        fields["model"] = model.removeprefix("models/")


def function_tools(tools: list[JsonValue]) -> Iterator[JsonObject]:
    """The tools: each function declaration by itself, a built-in tool as its own object."""
    for tool in tools:
        if not isinstance(tool, dict):
            yield opaque(tool)
            continue
        rest = dict(camel(tool))
        for declaration in take_list(rest, "functionDeclarations"):
            if isinstance(declaration, dict):
                yield as_json_schema(rename(camel(declaration), _FUNCTION), "parameters")
            else:
                yield opaque(declaration)
        if rest or not tool:
            yield rest


def name_fields(fields: JsonObject) -> None:
    """Give the fields beside contents and tools their neutral names."""
    _response_format(fields)
    lift(fields, "generationConfig", _CONFIG)
    _tool_choice(fields)
    if "stop" in fields:
        fields["stop"] = string_list(fields["stop"])


def _response_format(fields: JsonObject) -> None:
    """`responseMimeType` with or without a schema as the other wires' `response_format`."""
    config = fields.get("generationConfig")
    if not isinstance(config, dict):
        return
    config = camel(config)
    fields["generationConfig"] = config
    if config.get("responseMimeType") != "application/json" or "response_format" in fields:
        return
    rest = present(config)
    del rest["responseMimeType"]
    schemas = [name for name in ("responseJsonSchema", "responseSchema") if name in rest]
    response_format: JsonObject = {"type": "json_object"}
    if schemas:
        response_format = {"type": "json_schema", "schema": rest.pop(schemas[0])}
        response_format = as_json_schema(response_format, "schema")
    fields["response_format"] = response_format
    fields["generationConfig"] = rest
    if not rest:
        del fields["generationConfig"]


def _tool_choice(fields: JsonObject) -> None:
    """The neutral choice out of `toolConfig.functionCallingConfig`, where it has the same meaning."""
    config = fields.get("toolConfig")
    if not isinstance(config, dict) or "tool_choice" in fields:
        return
    config = camel(config)
    calling = config.get("functionCallingConfig")
    choice = _choice(camel(calling)) if isinstance(calling, dict) else None
    rest: JsonObject = {name: value for name, value in config.items() if name != "functionCallingConfig"}
    if choice is None:
        fields["toolConfig"] = config
        return
    fields["tool_choice"] = choice
    fields["toolConfig"] = rest
    if not rest:
        del fields["toolConfig"]


def _choice(calling: Mapping[str, JsonValue]) -> JsonValue:
    match calling:
        case {"mode": ("AUTO" | "ANY" | "NONE") as mode, **rest} if not rest:
            return _MODES[mode]
        case {"mode": "ANY", "allowedFunctionNames": [str(name)], **rest} if not rest:
            return {"type": "function", "name": name}
        case {"mode": "ANY", "allowedFunctionNames": [str(), str(), *_] as names, **rest} if not rest:
            tools: list[JsonValue] = [{"type": "function", "name": name} for name in names]
            return {"type": "allowed_tools", "mode": "required", "tools": tools}
    return None
