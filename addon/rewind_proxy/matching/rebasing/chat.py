"""The parts of a Chat Completions answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal

from rewind_proxy.canonical.model import SEALS, JsonObject, JsonValue
from rewind_proxy.matching.rebasing.document import Path
from rewind_proxy.matching.rebasing.parts import Part, Parts, label, members

_TEXTS: Mapping[str, str] = {
    "content": "choice",
    "refusal": "choice",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "reasoning_text": "reasoning",
}
"""Members that hold text, and whose it is."""


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

    def _message(self, said: JsonObject, path: Path, choice: Hashable) -> None:
        for member, value in said.items():
            at = (*path, member)
            if not value:
                continue
            if (owner := _TEXTS.get(member)) is not None:
                self._text(((owner, choice), member), at, value)
            elif member in SEALS:
                self._parts.sealed.add(("reasoning", choice))
            elif member == "tool_calls":
                for place, call in members(value):
                    self._call(("call", choice, label(call.get("index", place))), (*at, place), call)
            elif member == "function_call":
                self._function((("function", choice),), at, value)
            elif member == "annotations":
                for place, annotation in members(value):
                    self._citation((("choice", choice), "content"), (*at, place), annotation)

    def _text(self, part: Part, path: Path, value: JsonValue) -> None:
        self._parts.add(part, "text", path, value, joined=True)
        for place, chunk in members(value):  # Mistral's chunks of content
            if chunk.get("type") == "text":
                self._parts.add(part, "text", (*path, place, "text"), chunk.get("text"), joined=True)

    def _citation(self, part: Part, path: Path, annotation: JsonObject) -> None:
        citation = annotation.get("url_citation")
        if isinstance(citation, dict):
            for member in ("start_index", "end_index"):
                self._parts.offset(part, (*path, "url_citation", member), citation.get(member))

    def _call(self, owner: Part, path: Path, call: JsonObject) -> None:
        self._function((owner, "function"), (*path, "function"), call.get("function"))
        custom = call.get("custom")
        if isinstance(custom, dict):
            self._parts.add(
                (owner, "custom"), "code", (*path, "custom", "input"), custom.get("input"), joined=True
            )

    def _function(self, part: Part, path: Path, function: JsonValue) -> None:
        if isinstance(function, dict):
            arguments = function.get("arguments")
            self._parts.add(part, "json", (*path, "arguments"), arguments, joined=True)
            self._parts.add_json(part, (*path, "arguments"), arguments)  # some servers send an object
