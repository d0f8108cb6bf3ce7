"""The parts of a Responses answer: each text comes as deltas, and again in up to four events after them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.rebasing.document import Path
from rewind_proxy.matching.rebasing.parts import UNCOUNTED, Part, Parts, label, members
from rewind_proxy.matching.rebasing.text import Kind

# What an item holds as a string, and as JSON.
_STRINGS: Mapping[str, Mapping[str, Kind]] = {
    "function_call": {"arguments": "json"},
    "mcp_call": {"arguments": "json", "output": "text"},
    "mcp_approval_request": {"arguments": "json"},
    "custom_tool_call": {"input": "code"},
    "code_interpreter_call": {"code": "code"},
}
_VALUES: Mapping[str, str] = {
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
}
# Events that stream a member of an item: `response.<name>.delta` and `.done`, whose member has that name.
_MEMBER_EVENTS: Mapping[str, tuple[str, Kind]] = {
    "function_call_arguments": ("arguments", "json"),
    "mcp_call_arguments": ("arguments", "json"),
    "custom_tool_call_input": ("input", "code"),
    "code_interpreter_call_code": ("code", "code"),
}
# Events that stream the text of a part: its item's family, the list and index it is under, member of `.done`.
_TEXT_EVENTS: Mapping[str, tuple[str, str, str, str]] = {
    "output_text": ("item", "content", "content_index", "text"),
    "refusal": ("item", "content", "content_index", "refusal"),
    "reasoning_text": ("reasoning", "content", "content_index", "text"),
    "reasoning_summary_text": ("reasoning", "summary", "summary_index", "text"),
}
_PART_EVENTS: Mapping[str, tuple[str, str]] = {
    "content_part": ("content", "content_index"),
    "reasoning_summary_part": ("summary", "summary_index"),
}


class ResponsesParts:
    """Reads whole answers and events."""

    def __init__(self, parts: Parts, *, streamed: bool) -> None:
        self._parts = parts
        self._streamed = streamed

    def read(self, value: JsonObject, base: Path, name: str) -> None:
        """See `Reader.read`."""
        if not self._streamed:
            self._response(value, base)
            return
        kind = value.get("type", name)
        if not isinstance(kind, str) or not kind.startswith("response."):
            return
        stem, _, phase = kind.removeprefix("response.").rpartition(".")
        output = label(value.get("output_index", value.get("item_id")))
        response, item, part = value.get("response"), value.get("item"), value.get("part")
        if isinstance(response, dict):
            self._response(response, (*base, "response"))
        elif stem == "output_item" and isinstance(item, dict):
            self._item(item, (*base, "item"), output, joined=phase == "added")
        elif stem in _PART_EVENTS and isinstance(part, dict):
            container, index = _PART_EVENTS[stem]
            family = "reasoning" if part.get("type") in ("reasoning_text", "summary_text") else "item"
            key = ((family, output), container, label(value.get(index)))
            self._part(key, (*base, "part"), part, joined=phase == "added")
        elif stem in _TEXT_EVENTS:
            family, container, index, member = _TEXT_EVENTS[stem]
            key = ((family, output), container, label(value.get(index)))
            self._text_event(key, "text", base, value, member, phase)
        elif stem in _MEMBER_EVENTS:
            member, text_kind = _MEMBER_EVENTS[stem]
            self._text_event((("item", output), member), text_kind, base, value, member, phase)
        elif stem == "output_text.annotation":
            key = (("item", output), "content", label(value.get("content_index")))
            self._annotation(key, (*base, "annotation"), value.get("annotation"))

    def _text_event(
        self, part: Part, kind: Kind, base: Path, value: JsonObject, member: str, phase: str
    ) -> None:
        member = "delta" if phase == "delta" else member
        self._parts.add(part, kind, (*base, member), value.get(member), joined=phase == "delta")

    def _response(self, response: JsonObject, path: Path) -> None:
        # The request's own instructions, said back.
        self._parts.add(UNCOUNTED, "text", (*path, "instructions"), response.get("instructions"))
        for place, item in members(response.get("output")):
            self._item(item, (*path, "output", place), place, joined=False)

    def _item(self, item: JsonObject, path: Path, output: Hashable, *, joined: bool) -> None:
        kind = item.get("type", "message")
        family = "reasoning" if kind == "reasoning" else "item"
        owner = (family, output)
        if family == "reasoning" and item.get("encrypted_content"):
            self._parts.sealed.add(owner)
        if kind in ("message", "reasoning"):
            for container in ("content", "summary"):
                for place, part in members(item.get(container)):
                    self._part((owner, container, place), (*path, container, place), part, joined=joined)
        elif isinstance(kind, str):
            for member, text_kind in _STRINGS.get(kind, {}).items():
                self._parts.add((owner, member), text_kind, (*path, member), item.get(member), joined=joined)
            if (value := _VALUES.get(kind)) is not None:
                self._parts.add_json((owner, value), (*path, value), item.get(value))

    def _part(self, key: Part, path: Path, part: JsonObject, *, joined: bool) -> None:
        for member in ("text", "refusal"):
            self._parts.add(key, "text", (*path, member), part.get(member), joined=joined)
        for place, annotation in members(part.get("annotations")):
            self._annotation(key, (*path, "annotations", place), annotation)

    def _annotation(self, key: Part, path: Path, annotation: JsonValue) -> None:
        if isinstance(annotation, dict):
            for member in ("start_index", "end_index", "index"):
                self._parts.offset(key, (*path, member), annotation.get(member))
