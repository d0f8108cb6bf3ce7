"""One neutral name for what several wires have: parameters, tools, tool choice and response format.

Everything else keeps its own name. A field that cannot take its neutral name, because the body uses that for
another value, keeps its own too: nothing is dropped, and the order of members never matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rewind_proxy.canonical.history import fold
from rewind_proxy.canonical.model import JsonObject, JsonValue

OPENAI_CACHE = frozenset(
    {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "prompt_cache_isolation_key"}
)
"""Names of OpenAI's parameters that say where and how long a prompt is cached; the last one is Fireworks'."""
_OPENROUTER = "openrouter.ai"
_BOOKS = {"session_id": "openrouter.session_id", "trace": "openrouter.trace"}
BOOKKEEPING = frozenset(_BOOKS.values())
"""Names of parameters that only group requests for the provider's books and traces."""


def present(body: JsonObject) -> JsonObject:
    """A copy of `body` without its null members: null and absent are one (DESIGN §5, step 6)."""
    return {name: value for name, value in body.items() if value is not None}


def rename(fields: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """`fields` under their neutral names; where two claim one, the first in `names` gets it."""
    renamed: JsonObject = {name: value for name, value in fields.items() if name not in names}
    for own, neutral in names.items():
        if own in fields:
            renamed[own if neutral in renamed else neutral] = fields[own]
    return renamed


def lift(fields: JsonObject, wrapper: str, names: Mapping[str, str]) -> None:
    """Move the members `names` of the object `wrapper` to the top, under their neutral names.

    What is left of the wrapper stays under its name; a wrapper emptied so goes.
    """
    value = fields.get(wrapper)
    if not isinstance(value, dict):
        return
    rest = dict(value)
    for own, neutral in names.items():
        if rest.get(own) is not None and neutral not in fields:
            fields[neutral] = rest.pop(own)
    if value and not any(member is not None for member in rest.values()):
        del fields[wrapper]
    else:
        fields[wrapper] = rest


def name_bookkeeping(fields: JsonObject, host: str) -> None:
    """Give what OpenRouter takes for its own books a name that is known as volatile (`BOOKKEEPING`).

    Elsewhere a `session_id` may be a conversation that the provider keeps.
    """
    if host == _OPENROUTER:
        for own, name in _BOOKS.items():
            if own in fields:
                fields[name] = fields.pop(own)


def take_list(fields: JsonObject, name: str) -> list[JsonValue]:
    """Take the list `name` out of `fields`. An empty list, or what is no list, stays there as a parameter."""
    value = fields.get(name)
    if not isinstance(value, list) or not value:
        return []
    del fields[name]
    return value


def flatten(value: JsonObject, inner: str) -> JsonObject:
    """`value` with the members of its object `inner` in place of it, unless two would share a name."""
    nested = value.get(inner)
    if not isinstance(nested, dict):
        return value
    outer: JsonObject = {name: member for name, member in value.items() if name != inner}
    return value if outer.keys() & nested.keys() else outer | nested


def string_list(value: JsonValue) -> JsonValue:
    """A string as a list of one: both spell one stop sequence."""
    return [value] if isinstance(value, str) else value


def known_tools(tools: list[JsonValue]) -> tuple[JsonObject, ...]:
    """The tools of Chat Completions or Responses."""
    return all_tools(tools, openai_tool)


def all_tools(tools: list[JsonValue], read: Callable[[JsonValue], JsonObject]) -> tuple[JsonObject, ...]:
    """What `read` makes of the tools; the very same tools, sent again, give the same objects."""
    return fold(tools, read, tuple, lambda done, all_, first: (*done, *map(read, all_[first:])))


def openai_tool(tool: JsonValue) -> JsonObject:
    """A tool of Chat Completions or Responses: functions lose their wrapping, others stay as they are."""
    if not isinstance(tool, dict):
        return {"type": "opaque", "value": tool}
    kind = tool.get("type")
    if kind == "function":
        flat = flatten(tool, "function")
        if isinstance(flat.get("name"), str):
            return {name: value for name, value in flat.items() if name != "type"}
    if kind == "custom":
        flat = flatten(tool, "custom")
        form = flat.get("format")
        return flat | {"format": flatten(form, "grammar")} if isinstance(form, dict) else flat
    return tool


def openai_tool_choice(choice: JsonValue) -> JsonValue:
    """`auto`, `none`, `required`, `{"type": "function", "name"}` or the wire's own object."""
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    flat = flatten(choice, kind) if kind in ("function", "custom", "allowed_tools") else choice
    tools = flat.get("tools")
    if kind == "allowed_tools" and isinstance(tools, list):
        return flat | {"tools": [openai_tool_choice(tool) for tool in tools]}
    return flat
