"""Gemini's two spellings of names, and of schemas, as one."""

from __future__ import annotations

import re

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.parameters import rename

# Protobuf JSON takes the names of the .proto file too.
_CAMEL = re.compile(r"_([a-z])")
_PROTO_NAMES = frozenset(
    [
        "system_instruction", "generation_config", "tool_config", "safety_settings", "cached_content",
        "inline_data", "file_data", "mime_type", "file_uri", "function_call", "function_response",
        "thought_signature", "function_declarations", "function_calling_config", "allowed_function_names",
        "max_output_tokens", "stop_sequences", "top_p", "top_k", "candidate_count", "presence_penalty",
        "frequency_penalty", "response_mime_type", "response_schema", "response_json_schema",
        "response_logprobs", "thinking_config", "parameters_json_schema", "generate_content_request",
        "google_search", "google_search_retrieval", "code_execution", "url_context", "display_name",
        "tool_call", "tool_response", "tool_type",
    ]
)  # fmt: skip

_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_SCHEMA = frozenset({"items", "additionalProperties"})
_SCHEMAS = frozenset({"anyOf", "prefixItems"})
_NAMED_SCHEMAS = frozenset({"properties", "$defs"})


def camel(value: JsonObject) -> JsonObject:
    """`value` with the known names of the .proto file as JSON spells them."""
    if _PROTO_NAMES.isdisjoint(value):
        return value
    return rename(
        value,
        {
            name: _CAMEL.sub(lambda found: found[1].upper(), name)
            for name in sorted(_PROTO_NAMES & value.keys())
        },
    )


def as_json_schema(holder: JsonObject, name: str) -> JsonObject:
    """`holder` with the schema in its member `name` spelt as JSON Schema does: types in lower case.

    Only where a schema stands: a property, a default or an example that is called `type` is left alone.
    """
    return holder | {name: _schema(holder[name])} if name in holder else holder


def _schema(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    schema: JsonObject = {}
    for name, member in value.items():
        if name == "type" and isinstance(member, str) and member in _TYPES:
            schema[name] = member.lower()
        elif name in _SCHEMA:
            schema[name] = _schema(member)
        elif name in _SCHEMAS and isinstance(member, list):
            schema[name] = [_schema(item) for item in member]
        elif name in _NAMED_SCHEMAS and isinstance(member, dict):
            schema[name] = {key: _schema(item) for key, item in member.items()}
        else:
            schema[name] = member
    return schema
