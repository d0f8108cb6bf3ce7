"""The parts of a Chat Completions answer."""

from __future__ import annotations

from typing import Literal

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.rebase_document import Path
from rewind_proxy.matching.rebase_parts import Parts, label, members

_REASONING = ("reasoning_content", "reasoning", "reasoning_text")
# Beside one of these the reasoning is what a signature covers: the provider checks it when it comes back.
_SEALS = ("reasoning_details", "thinking_blocks", "reasoning_opaque", "encrypted_content", "signature")


class ChatParts:
    """Reads whole answers and chunks: their members are the same, under `message` and `delta`."""

    def __init__(self, parts: Parts, *, streamed: bool) -> None:
        self._parts = parts
        self._member: Literal["delta", "message"] = "delta" if streamed else "message"

    def read(self, value: JsonObject, base: Path, name: str) -> None:  # noqa: ARG002  # its events have none
        """See `Reader.read`."""
        for place, choice in members(value.get("choices")):
            said = choice.get(self._member)
            if isinstance(said, dict):
                self._message(
                    said, (*base, "choices", place, self._member), label(choice.get("index", place))
                )

    def _message(self, said: JsonObject, path: Path, choice: object) -> None:
        parts, owner = self._parts, ("choice", choice)
        self._content((owner, "content"), (*path, "content"), said.get("content"))
        parts.add((owner, "refusal"), "text", (*path, "refusal"), said.get("refusal"), joined=True)
        reasoning = ("reasoning", choice)
        for member in _REASONING:
            parts.add((reasoning, member), "text", (*path, member), said.get(member), joined=True)
        if any(said.get(member) for member in _SEALS):
            parts.sealed.add(reasoning)
        for place, annotation in members(said.get("annotations")):
            citation = annotation.get("url_citation")
            if isinstance(citation, dict):
                for member in ("start_index", "end_index"):
                    at = (*path, "annotations", place, "url_citation", member)
                    parts.offset((owner, "content"), at, citation.get(member))
        for place, call in members(said.get("tool_calls")):
            called = ("call", choice, label(call.get("index", place)))
            self._call(called, (*path, "tool_calls", place), call)
        self._function((("function", choice),), (*path, "function_call"), said.get("function_call"))

    def _content(self, part: tuple[object, str], path: Path, content: JsonValue) -> None:
        self._parts.add(part, "text", path, content, joined=True)
        for place, chunk in members(content):  # Mistral's chunks of content
            if chunk.get("type") == "text":
                self._parts.add(part, "text", (*path, place, "text"), chunk.get("text"), joined=True)

    def _call(self, owner: tuple[object, ...], path: Path, call: JsonObject) -> None:
        self._function((owner, "function"), (*path, "function"), call.get("function"))
        custom = call.get("custom")
        if isinstance(custom, dict):
            self._parts.add(
                (owner, "custom"), "code", (*path, "custom", "input"), custom.get("input"), joined=True
            )

    def _function(self, part: tuple[object, ...], path: Path, function: JsonValue) -> None:
        if isinstance(function, dict):
            arguments = function.get("arguments")
            self._parts.add(part, "json", (*path, "arguments"), arguments, joined=True)
            self._parts.add_json(part, (*path, "arguments"), arguments)  # some servers send an object
