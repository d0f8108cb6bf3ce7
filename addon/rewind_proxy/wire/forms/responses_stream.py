"""A Responses answer as events: the whole object told step by step, and put together again.

Source: API reference of OpenAI, "Streaming events". Codex acts on `response.output_item.done` and needs
`response.completed` with `response.id`; the SDK's `.stream()` wants all of it, in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms.pieces import pieces
from rewind_proxy.wire.forms.rendering import joined
from rewind_proxy.wire.forms.single import text_of, typed_event

_BEGUN = ("response.created", "response.queued", "response.in_progress")
_ENDED = {"response.completed": "completed", "response.incomplete": "incomplete"}
_FAILED = ("response.failed", "error")
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"

# Where the pieces of an item belong: list, name of the index, type of the part, member.
_IN_PARTS = {
    "response.output_text": ("content", "content_index", "output_text", "text"),
    "response.refusal": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary", "summary_index", "summary_text", "text"),
}
_IN_ITEM = {
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.code_interpreter_call_code": "code",
}

# What a provider's own tools report between `added` and `done`.
_PROGRESS = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "mcp_call": ("in_progress", "completed"),
    "mcp_list_tools": ("in_progress", "completed"),
}


def assembled(body: bytes) -> JsonObject | None:
    """The response object that a stream tells; None when no terminal event of a success was parsed."""
    begun: JsonObject = {}
    output = _Output()
    for event in answers.events(body):
        data = answers.load_object(event.data)
        if data is None:
            continue
        kind = data.get("type", event.name)
        response = data.get("response")
        if kind in _FAILED:
            return None
        if kind in _BEGUN and isinstance(response, dict):
            begun |= response
        elif isinstance(kind, str) and kind in _ENDED:
            last = response if isinstance(response, dict) else {}
            ended = begun | {"status": _ENDED[kind]} | last
            # ChatGPT's backend leaves the items out of the last event: they were told before.
            if not ended.get("output"):
                ended["output"] = output.items()
            return ended
        elif isinstance(kind, str):
            output.add(kind, data)
    return None


class _Output:
    """The items of a stream by their index, whatever order their events come in."""

    def __init__(self) -> None:
        self._done: dict[int, JsonObject] = {}
        self._begun: dict[int, JsonObject] = {}
        self._parts: dict[int, dict[tuple[str, int], JsonObject]] = {}
        self._pieces: dict[tuple[int, str, int], dict[str, list[str]]] = {}
        self._at = 0

    def add(self, kind: str, data: JsonObject) -> None:
        """Take in one event between the first and the last."""
        item, part = data.get("item"), data.get("part")
        index = self._place(kind, data.get("output_index"))
        if kind == _ADDED and isinstance(item, dict):
            self._begun[index] = item
        elif kind == _DONE and isinstance(item, dict):
            self._done[index] = item
        elif kind == "response.content_part.done" and isinstance(part, dict):
            place = "content", _index(data.get("content_index"))
            self._parts.setdefault(index, {})[place] = part
        elif kind.endswith(".delta"):
            self._piece(index, kind.removesuffix(".delta"), data)

    def _place(self, kind: str, index: JsonValue) -> int:
        """The index of an event's item; where it has none, that of the item under way, or of a new one."""
        if isinstance(index, int):
            self._at = index
        elif kind == _ADDED or (kind == _DONE and self._at in self._done):
            self._at = len(self._begun.keys() | self._done.keys())
        return self._at

    def _piece(self, index: int, kind: str, data: JsonObject) -> None:
        delta = text_of(data.get("delta"))
        if kind in _IN_ITEM:
            self._pieces.setdefault((index, "", 0), {}).setdefault(_IN_ITEM[kind], []).append(delta)
        elif kind in _IN_PARTS:
            name, where, part, member = _IN_PARTS[kind]
            position = _index(data.get(where))
            self._parts.setdefault(index, {}).setdefault((name, position), {"type": part})
            self._pieces.setdefault((index, name, position), {}).setdefault(member, []).append(delta)

    def items(self) -> list[JsonValue]:
        """The items, finished or as far as they came."""
        found = {index: self._unfinished(index) for index in self._begun if index not in self._done}
        return [item for _, item in sorted((found | self._done).items(), key=lambda entry: entry[0])]

    def _unfinished(self, index: int) -> JsonObject:
        filled: dict[str, list[JsonValue]] = {}
        for place, part in sorted(self._parts.get(index, {}).items(), key=lambda entry: entry[0]):
            # A part that was done says all by itself.
            filled.setdefault(place[0], []).append({**self._said(index, *place), **part})
        return {**self._begun[index], **self._said(index, "", 0), **filled}

    def _said(self, index: int, name: str, position: int) -> JsonObject:
        pieces_of = self._pieces.get((index, name, position), {})
        return {member: joined(found) for member, found in pieces_of.items()}


def _index(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def events(response: JsonObject) -> Iterator[bytes]:
    """The stream that tells this response, numbered."""
    for number, event in enumerate(_events(response)):
        yield typed_event({**event, "sequence_number": number})


def _events(response: JsonObject) -> Iterator[JsonObject]:
    begun: JsonObject = {
        **response,
        "status": "in_progress",
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    if "completed_at" in begun:
        begun["completed_at"] = None
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(answers.objects(response["output"])):
        place: JsonObject = {"item_id": text_of(item.get("id")), "output_index": index}
        yield {"type": _ADDED, "output_index": index, "item": _begun(item)}
        yield from _item_events(item, place)
        yield {"type": _DONE, "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _begun(item: JsonObject) -> JsonObject:
    """The item as `output_item.added` shows it: nothing said yet."""
    begun = dict(item)
    match item.get("type"):
        case "message":
            begun["content"] = []
        case "reasoning":
            begun["summary"] = []
            for name in ("content", "encrypted_content"):
                begun.pop(name, None)
        case "function_call" | "mcp_call":
            begun["arguments"] = ""
        case "custom_tool_call":
            begun["input"] = ""
        case "code_interpreter_call":
            begun["code"] = ""
    return begun | {"status": "in_progress"} if "status" in item else begun


def _item_events(item: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    """What stands between `added` and `done` of one item."""
    kind = text_of(item.get("type"))
    match kind:
        case "message":
            for index, part in enumerate(answers.objects(item.get("content"))):
                yield from _part_events(part, {**place, "content_index": index})
        case "reasoning":
            for index, part in enumerate(answers.objects(item.get("summary"))):
                yield from _summary_events(part, {**place, "summary_index": index})
            for index, part in enumerate(answers.objects(item.get("content"))):
                yield from _part_events(part, {**place, "content_index": index})
        case "function_call":
            named: JsonObject = {**place, "name": text_of(item.get("name"))}
            yield from _said("response.function_call_arguments", "arguments", item, place, named)
        case "custom_tool_call":
            yield from _said("response.custom_tool_call_input", "input", item, place, place)
    for step in _PROGRESS.get(kind, ()):
        if step == "completed":
            yield from _tool_events(kind, item, place)
        yield {"type": f"response.{kind}.{step}", **place}


def _tool_events(kind: str, item: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    if kind == "mcp_call":
        yield from _said("response.mcp_call_arguments", "arguments", item, place, place)
    elif kind == "code_interpreter_call":
        yield from _said("response.code_interpreter_call_code", "code", item, place, place)


def _said(
    kind: str, member: str, source: JsonObject, place: JsonObject, done: JsonObject
) -> Iterator[JsonObject]:
    """The deltas of one text, and the event that repeats it whole."""
    text = text_of(source.get(member))
    for piece in pieces(text):
        yield {"type": f"{kind}.delta", "delta": piece, **place}
    yield {"type": f"{kind}.done", member: text, **done}


def _part_events(part: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    kind = part.get("type")
    if kind == "output_text":
        empty: JsonObject = {**part, "text": "", "annotations": [], "logprobs": []}
        yield {"type": "response.content_part.added", "part": empty, **place}
        # Log probabilities are told once, with the whole text.
        none, known = {**place, "logprobs": []}, {**place, "logprobs": part.get("logprobs", [])}
        *deltas, done = _said("response.output_text", "text", part, none, known)
        yield from deltas
        annotations = part.get("annotations")
        for number, annotation in enumerate(annotations if isinstance(annotations, list) else []):
            event: JsonObject = {"type": "response.output_text.annotation.added", **place}
            yield event | {"annotation_index": number, "annotation": annotation}
        yield done
    elif kind == "refusal":
        yield {"type": "response.content_part.added", "part": {**part, "refusal": ""}, **place}
        yield from _said("response.refusal", "refusal", part, place, place)
    elif kind == "reasoning_text":
        yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **place}
        yield from _said("response.reasoning_text", "text", part, place, place)
    else:
        yield {"type": "response.content_part.added", "part": part, **place}
    yield {"type": "response.content_part.done", "part": part, **place}


def _summary_events(part: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **place}
    yield from _said("response.reasoning_summary_text", "text", part, place, place)
    yield {"type": "response.reasoning_summary_part.done", "part": part, **place}
