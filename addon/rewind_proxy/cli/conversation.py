"""A canonical conversation for reading: who said what, which tools were called with what, in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, JsonValue, Message
from rewind_proxy.cli.output import number, plural, safe, safe_line, size

ROLE_STYLES = {
    "system": "bold magenta",
    "user": "bold green",
    "assistant": "bold cyan",
    "tool": "bold yellow",
}
CUT_LINES = 24
CUT_CHARACTERS = 2_000
_ARGUMENT = 200
_INDENT = (0, 0, 0, 2)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Renders messages; `full` shows long texts to their end.

    `noise` names members that say nothing: a part of nothing else is left out.
    """

    full: bool = False
    noise: frozenset[str] = frozenset()

    def messages(self, messages: Sequence[Message]) -> Iterator[RenderableType]:
        """Each message: a line with its role, its parts below, a blank line after it."""
        calls = [part for message in messages for part in message.parts if part.get("type") == "tool_call"]
        names = {_string(call, "id"): _string(call, "name") for call in calls}
        for message in messages:
            yield Text(message.role, style=ROLE_STYLES[message.role])
            # A result names its call by id only: the call's own name says more.
            named = ({"name": names.get(_string(part, "id"), ""), **part} for part in message.parts)
            yield from self.parts(named if message.role == "tool" else message.parts)
            yield Text()

    def parts(self, parts: Iterable[JsonObject]) -> Iterator[RenderableType]:
        """The parts of one message, indented."""
        for part in parts:
            for line in self.part(part):
                yield Padding(line, _INDENT, expand=False)

    def text(self, text: str) -> RenderableType:
        """A text of no role, indented."""
        return Padding(self._cut(text), _INDENT, expand=False)

    def tools(self, tools: Sequence[JsonObject]) -> Iterator[RenderableType]:
        """The names of the tools on offer, in one paragraph."""
        if not tools:
            return
        names = ", ".join(safe_line(_tool_name(tool)) for tool in tools)
        yield Text(plural(len(tools), "tool"), style="bold")
        yield Padding(Text(names, style="dim"), _INDENT, expand=False)
        yield Text()

    def part(self, part: JsonObject) -> Iterator[RenderableType]:
        """One canonical part; what has no words of its own is one line of JSON."""
        kind = part.get("type")
        if kind == "text" and isinstance(text := part.get("text"), str):
            yield self._cut(text)
        elif kind == "tool_call":
            yield from self._tool_call(part)
        elif kind == "tool_result":
            yield from self._tool_result(part)
        elif kind == "reasoning":
            yield self._cut("\n".join(_words(part)) or "(reasoning, not readable)", style="dim italic")
        elif kind == "media":
            yield Text(_media(part), style="blue")
        else:
            value = part.get("value", part)
            if isinstance(value, dict) and value.keys() <= self.noise:
                return
            yield Text(_short(value, _ARGUMENT * 2), style="dim")

    def _tool_call(self, part: JsonObject) -> Iterator[RenderableType]:
        name, arguments = safe_line(_string(part, "name")), part.get("arguments")
        line = Text("→ ").append(name, style="bold")
        if isinstance(arguments, str):
            yield line
            yield Padding(self._cut(arguments), _INDENT, expand=False)
            return
        if isinstance(arguments, dict):
            shown = [f"{safe_line(key)}={_short(value, self._argument)}" for key, value in arguments.items()]
            yield line.append(f"({', '.join(shown)})")
        else:
            yield line.append("()" if arguments is None else f"({_short(arguments, self._argument)})")

    def _tool_result(self, part: JsonObject) -> Iterator[RenderableType]:
        line = Text("← ").append(safe_line(_string(part, "name") or _string(part, "id")), style="dim")
        if part.get("is_error"):
            line.append(" error", style="bold red")
        yield line
        content = part.get("content")
        parts = content if isinstance(content, list) else [content]
        for item in parts:
            yield from self.part(item if isinstance(item, dict) else {"type": "opaque", "value": item})

    @property
    def _argument(self) -> int | None:
        return None if self.full else _ARGUMENT

    def _cut(self, text: str, style: str = "") -> RenderableType:
        shown = safe(text.strip("\n"))
        if self.full:
            return Text(shown, style=style)
        lines = shown.split("\n")
        kept = "\n".join(lines[:CUT_LINES])[:CUT_CHARACTERS]
        left = len(shown) - len(kept)
        if left <= CUT_CHARACTERS // 10:
            return Text(shown, style=style)
        more = Text(f"… {number(left)} more characters (--full)", style="dim")
        return Group(Text(kept, style=style), more)


def _string(part: JsonObject, name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


def _tool_name(tool: JsonObject) -> str:
    return _string(tool, "name") or _string(tool, "type") or "(unnamed)"


def _words(part: JsonValue) -> Iterator[str]:
    """The readable texts of a reasoning part, wherever its wire keeps them."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for item in part:
            yield from _words(item)
    elif isinstance(part, dict):
        for name in ("text", "thinking", "summary", "content"):
            if name in part:
                yield from _words(part[name])


def _media(part: JsonObject) -> str:
    kind = safe_line(_string(part, "media_type") or "media")
    if url := _string(part, "url"):
        return f"[{kind} at {safe_line(url)}]"
    return f"[{kind}, {size(len(_string(part, 'data')) * 3 // 4)}]"


def _short(value: JsonValue, limit: int | None) -> str:
    text = safe_line(json.dumps(value, ensure_ascii=False))
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
