"""A canonical conversation for reading: who said what, which tools were called with what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonObject, JsonValue, Message
from rewind_proxy.explain.lines import BLANK, Line, Style, deeper, line, lines_of
from rewind_proxy.explain.words import number, plural, safe, safe_line, size

CUT_LINES = 24
CUT_CHARACTERS = 2_000
_ARGUMENT = 200
_FIRST_SHOWN, _LAST_SHOWN = 3, 12
"""Messages at both ends of a conversation of which the middle is left out."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Renders messages; `full` shows long texts to their end.

    `noise` names members that say nothing: a part of nothing else is left out. `how` tells how to see what
    was cut. With `folded`, the middle of a long conversation is left out, and counted.
    """

    full: bool = False
    noise: frozenset[str] = frozenset()
    how: str = "--full"
    folded: bool = False

    def messages(self, messages: Sequence[Message]) -> Iterator[Line]:
        """Each message: a line with its role, its parts below, a blank line after it."""
        calls = [part for message in messages for part in message.parts if part.get("type") == "tool_call"]
        names = {_string(call, "id"): _string(call, "name") for call in calls}
        left = len(messages) - _FIRST_SHOWN - _LAST_SHOWN
        if not self.folded or left < 2:
            left = 0
        for index, message in enumerate(messages):
            if left and index == _FIRST_SHOWN:
                yield line(("faint", f"… {plural(left, 'message')} between ({self.how})"))
                yield BLANK
            if left and _FIRST_SHOWN <= index < len(messages) - _LAST_SHOWN:
                continue
            yield line((message.role, message.role))
            # A result names its call by id only: the call's own name says more.
            named = ({"name": names.get(_string(part, "id"), ""), **part} for part in message.parts)
            yield from self.parts(named if message.role == "tool" else message.parts)
            yield BLANK

    def parts(self, parts: Iterable[JsonObject]) -> Iterator[Line]:
        """The parts of one message, indented."""
        for part in parts:
            yield from deeper(self.part(part))

    def text(self, text: str) -> Iterator[Line]:
        """A text of no role, indented."""
        return deeper(self._cut(text))

    def tools(self, tools: Sequence[JsonObject]) -> Iterator[Line]:
        """The names of the tools on offer, in one paragraph."""
        if not tools:
            return
        yield line(("strong", plural(len(tools), "tool")))
        yield line(("faint", ", ".join(safe_line(_tool_name(tool)) for tool in tools))).deeper()
        yield BLANK

    def part(self, part: JsonObject) -> Iterator[Line]:
        """One canonical part; what has no words of its own is one line of JSON."""
        kind = part.get("type")
        if kind == "text" and isinstance(text := part.get("text"), str):
            yield from self._cut(text)
        elif kind == "tool_call":
            yield from self._tool_call(part)
        elif kind == "tool_result":
            yield from self._tool_result(part)
        elif kind == "reasoning":
            yield from self._cut("\n".join(_words(part)) or "(reasoning, not readable)", "thought")
        elif kind == "media":
            yield line(("media", _media(part)))
        else:
            value = part.get("value", part)
            if isinstance(value, dict) and value.keys() <= self.noise:
                return
            yield line(("faint", _short(value, _ARGUMENT * 2)))

    def _tool_call(self, part: JsonObject) -> Iterator[Line]:
        name, arguments = safe_line(_string(part, "name")), part.get("arguments")
        if isinstance(arguments, str):
            yield line("→ ", ("strong", name))
            yield from deeper(self._cut(arguments))
            return
        if isinstance(arguments, dict):
            shown = [f"{safe_line(key)}={_short(value, self._argument)}" for key, value in arguments.items()]
            yield line("→ ", ("strong", name), f"({', '.join(shown)})")
        else:
            value = "" if arguments is None else _short(arguments, self._argument)
            yield line("→ ", ("strong", name), f"({value})")

    def _tool_result(self, part: JsonObject) -> Iterator[Line]:
        error = (("bad", " error"),) if part.get("is_error") else ()
        yield line("← ", ("faint", safe_line(_string(part, "name") or _string(part, "id"))), *error)
        content = part.get("content")
        parts = content if isinstance(content, list) else [content]
        for item in parts:
            yield from self.part(item if isinstance(item, dict) else {"type": "opaque", "value": item})

    @property
    def _argument(self) -> int | None:
        return None if self.full else _ARGUMENT

    def _cut(self, text: str, style: Style = "plain") -> Iterator[Line]:
        shown = safe(text.strip("\n"))
        lines = shown.split("\n", -1 if self.full else CUT_LINES)
        kept = shown if self.full else "\n".join(lines[:CUT_LINES])[:CUT_CHARACTERS]
        left = len(shown) - len(kept)
        if left <= CUT_CHARACTERS // 10:
            yield from lines_of(shown, style)
            return
        yield from lines_of(kept, style)
        yield line(("faint", f"… {number(left)} more characters ({self.how})"))


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
