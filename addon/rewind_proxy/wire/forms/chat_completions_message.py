"""The message of a Chat Completions answer as canonical parts, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewind_proxy.canonical.answer import Asked
from rewind_proxy.canonical.model import JsonObject, JsonValue, Wire
from rewind_proxy.wire import answers
from rewind_proxy.wire.conversation import with_rest
from rewind_proxy.wire.forms.chat_completions_stream import REASONING_SEALS, REASONING_TEXTS, content_text
from rewind_proxy.wire.forms.rendering import Notes, custom_input, derived_id, source_text

_WIRE: Wire = "chat_completions"


def message_parts(rest: JsonObject) -> Iterator[JsonObject]:
    """The parts of a message, whose members are taken out of `rest` one by one."""
    reasoning = _reasoning(rest)
    if len(reasoning) > 1:
        yield reasoning
    citations = _citations(rest) if answers.string(rest.get("content")) else []
    yield from content_parts(rest.pop("content", None), citations)
    if refusal := answers.string(rest.get("refusal")):
        del rest["refusal"]
        yield {"type": "text", "text": refusal, "refusal": True}
    for call in answers.objects(rest.pop("tool_calls", None)):
        yield _call(call)
    if isinstance(function := rest.get("function_call"), dict):
        del rest["function_call"]
        call = _made("", function.get("name"), function.get("arguments"))
        yield with_rest({**call, "function_call": True}, function, "name", "arguments")
    said: JsonObject = {name: value for name, value in rest.items() if value not in ("", [])}
    if said:
        yield {"type": "opaque", "wire": _WIRE, "value": said}


def _reasoning(rest: JsonObject) -> JsonObject:
    part: JsonObject = {"type": "reasoning"}
    texts = {name: text for name in REASONING_TEXTS if (text := answers.string(rest.get(name)))}
    if texts:
        part["text"] = text = next(iter(texts.values()))
        names: list[JsonValue] = [name for name, said in texts.items() if said == text]
        for name in names:
            del rest[str(name)]
        if names != [REASONING_TEXTS[0]]:
            part["names"] = names
    for name in REASONING_SEALS:
        if rest.get(name):
            part[name] = rest.pop(name)
    return part


def _citations(rest: JsonObject) -> list[JsonValue]:
    annotations = answers.objects(rest.get("annotations"))
    sources = [annotation.get("url_citation") for annotation in annotations]
    if not annotations or not all(isinstance(source, dict) for source in sources):
        return []
    del rest["annotations"]
    names = {"start_index": "start", "end_index": "end"}
    return [
        {names.get(name, name): value for name, value in source.items() if value is not None}
        for source in sources
        if isinstance(source, dict)
    ]


def content_parts(content: JsonValue, citations: list[JsonValue]) -> Iterator[JsonObject]:
    """The parts of a content: a text with its citations, or Mistral's list of texts and thoughts."""
    if isinstance(content, str) and content:
        yield {"type": "text", "text": content, **({"citations": citations} if citations else {})}
    for part in content if isinstance(content, list) else []:
        text = content_text(part)
        if text is None or not isinstance(part, dict):
            yield {"type": "opaque", "wire": _WIRE, "value": {"content": [part]}}
        elif text:
            yield {"type": "text" if part["type"] == "text" else "reasoning", "text": text}


def _call(call: JsonObject) -> JsonObject:
    if call.get("type") == "custom" and isinstance(made := call.get("custom"), dict):
        part = {**_made(call.get("id"), made.get("name"), made.get("input")), "call_type": "custom"}
        with_rest(part, made, "name", "input")
        return with_rest(part, call, "index", "id", "type", "custom")
    function = call.get("function")
    if not isinstance(function, dict):
        sent: JsonObject = {name: value for name, value in call.items() if name != "index"}
        return {"type": "opaque", "wire": _WIRE, "value": {"tool_calls": [sent]}}
    part = _made(call.get("id"), function.get("name"), function.get("arguments"))
    with_rest(part, function, "name", "arguments")
    return with_rest(part, call, "index", "id", "type", "function")


def _made(call_id: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonObject:
    return {
        "type": "tool_call",
        "id": call_id if isinstance(call_id, str) else "",
        "name": name if isinstance(name, str) else "",
        "arguments": "" if arguments is None else source_text(arguments),
    }


class Message:
    """The message of a choice: the wire has one text, one refusal, one reasoning, and calls after them."""

    _ORDER: Mapping[JsonValue, int] = {"reasoning": 0, "text": 1, "tool_call": 2}

    def __init__(self, asked: Asked, notes: Notes, *, same: bool) -> None:
        self._asked = asked
        self._notes = notes
        self._same = same
        self._last = 0
        self._texts: list[str] = []
        self._length = 0
        self._refusals: list[str] = []
        self._thoughts: list[str] = []
        self._thought_names: list[str] = []
        self._annotations: list[JsonValue] = []
        self._calls: list[JsonValue] = []
        self._call_ids: set[str] = set()
        self._rest: JsonObject = {}

    def add(self, part: JsonObject) -> None:
        place = self._ORDER.get(part["type"], self._last)
        if place < self._last:
            self._notes.add("order of parts")
        self._last = max(place, self._last)
        match part["type"]:
            case "text":
                self._text(part)
            case "reasoning":
                self._reasoning(part)
            case "tool_call":
                self._call(part)
            case _:
                value = part.get("value")
                if part.get("wire") == _WIRE and isinstance(value, dict):
                    self._keep(value)
                else:
                    self._notes.opaque(part)

    def _keep(self, value: JsonObject) -> None:
        """Members of the message as they were; each call of an unknown type is a part of its own."""
        for name, member in value.items():
            known = self._rest.get(name)
            if isinstance(known, list) and isinstance(member, list):
                self._rest[name] = [*known, *member]
            else:
                self._rest[name] = member

    def _text(self, part: JsonObject) -> None:
        text = str(part["text"])
        self._notes.members("text", part, "text", "refusal", "citations")
        if part.get("refusal") is True:
            self._refusals.append(text)
            if part.get("citations"):
                self._notes.add("citations")
            return
        for citation in answers.objects(part.get("citations")):
            self._cite(citation, len(text))
        self._texts.append(text)
        self._length += len(text)

    def _cite(self, citation: JsonObject, length: int) -> None:
        """A citation in the part that follows `_length` characters; of all of it when it names no place."""
        url = citation.get("url")
        if not isinstance(url, str):
            self._notes.add("citations")
            return
        start, end = citation.get("start"), citation.get("end")
        known = ["url", "title", "start", "end"]
        source: JsonObject = {
            "type": "url_citation",
            "url_citation": {
                "start_index": self._length + (start if isinstance(start, int) else 0),
                "end_index": self._length + (end if isinstance(end, int) else length),
                "url": url,
                "title": title if isinstance(title := citation.get("title"), str) else "",
                **({name: citation[name] for name in citation if name not in known} if self._same else {}),
            },
        }
        if not self._same:
            self._notes.members("citation", citation, *known)
        self._annotations.append(source)

    def _reasoning(self, part: JsonObject) -> None:
        summary = part.get("summary")
        if summary:
            self._notes.add("reasoning summary")
        text = part.get("text")
        if not isinstance(text, str) and isinstance(summary, list):
            text = "\n\n".join(str(item) for item in summary)
        if isinstance(text, str) and text:
            self._thoughts.append(text)
        names = part.get("names")
        if isinstance(names, list):
            self._thought_names = [str(name) for name in names]
        kept = REASONING_SEALS if self._same else ()
        self._rest |= {name: part[name] for name in kept if name in part}
        self._notes.members("reasoning", part, "text", "summary", "names", *kept)

    def _call(self, part: JsonObject) -> None:
        name, arguments = part.get("name"), source_text(part.get("arguments"))
        known = ("type", "id", "name", "arguments", "call_type", "function_call")
        rest: JsonObject = {}
        if self._same:
            rest = {key.removeprefix("wire."): value for key, value in part.items() if key not in known}
        else:
            self._notes.members("tool_call", part, *known)
        if self._same and part.get("function_call") is True:
            self._rest["function_call"] = {"name": name, "arguments": arguments}
            return
        source = arguments if part.get("call_type") == "custom" else custom_input(part, self._asked)
        call: JsonObject = {"id": self._call_id(part.get("id"), name, arguments)}
        if source is None:
            call |= {"type": "function", "function": {"name": name, "arguments": arguments}}
        else:
            call |= {"type": "custom", "custom": {"name": name, "input": source}}
        self._calls.append(call | rest)

    def _call_id(self, recorded: JsonValue, name: JsonValue, arguments: str) -> str:
        """The recorded id, or one of ours where there is none or another call has it."""
        call_id = recorded if isinstance(recorded, str) else ""
        if call_id and call_id in self._call_ids:
            self._notes.add("repeated id")
            call_id = ""
        call_id = call_id or derived_id("call_", len(self._calls), name, arguments)
        self._call_ids.add(call_id)
        return call_id

    def value(self) -> JsonObject:
        """The message."""
        message: JsonObject = {"role": "assistant"}
        message["content"] = "".join(self._texts) if self._texts else None
        message["refusal"] = "".join(self._refusals) if self._refusals else None
        if self._thoughts:
            names = self._thought_names or [REASONING_TEXTS[0]]
            message |= dict.fromkeys(names, "\n\n".join(self._thoughts))
        if self._calls:
            message["tool_calls"] = self._calls
        if self._annotations:
            message["annotations"] = self._annotations
        extra = self._rest.pop("tool_calls", None)  # calls of an unknown type
        if isinstance(extra, list):
            message["tool_calls"] = [*self._calls, *extra]
        return message | self._rest
