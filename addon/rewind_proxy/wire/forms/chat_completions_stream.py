"""A Chat Completions answer and its stream: one `chat.completion` object to chunks and back.

OpenAI's reference ("Chat", the chunk object) and its SDK's `ChatCompletionStreamState` are the source: the
role first, then deltas, a chunk with the finish reason for each choice, usage in a chunk without choices,
`[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.chat_completions import counted
from rewind_proxy.wire.forms.growth import Growth
from rewind_proxy.wire.forms.pieces import pieces
from rewind_proxy.wire.forms.rendering import dump, joined

REASONING_TEXTS = ("reasoning_content", "reasoning", "reasoning_text")
"""DeepSeek and most others; OpenRouter, Groq and newer vLLM; Copilot."""
REASONING_SEALS = ("reasoning_details", "thinking_blocks", "reasoning_opaque")
"""OpenRouter, LiteLLM, Copilot."""
_NOT_OF_THE_ANSWER = ("choices", "object", "obfuscation")
_DONE = b"data: [DONE]\n\n"


def joined_chunks(body: bytes) -> JsonObject:
    """The `chat.completion` object that a stream of chunks adds up to."""
    answer: JsonObject = {"object": "chat.completion"}
    choices: dict[str, _Choice] = {}
    for event in answers.events(body):
        if event.data.strip() == "[DONE]":
            break
        chunk = answers.load_object(event.data) or {}
        for name, value in chunk.items():
            if value not in (None, "") and name not in _NOT_OF_THE_ANSWER:
                answer[name] = value
        if (usage := counted(chunk)) is not None:
            answer["usage"] = usage
        for choice in answers.objects(chunk.get("choices")):
            index = choice.get("index", 0)
            choices.setdefault(str(index), _Choice(index)).add(choice)
    answer["choices"] = [choice.value() for choice in choices.values()]
    return answer


class _Choice:
    """One choice, grown from its chunks."""

    def __init__(self, index: JsonValue) -> None:
        self._members: JsonObject = {"index": index}
        self._message = Growth()
        self._content: list[JsonValue] = []
        self._in_parts = False
        self._logprobs = Growth()

    def add(self, choice: JsonObject) -> None:
        for name, value in choice.items():
            if name == "delta" and isinstance(value, dict):
                self._message.add({key: member for key, member in value.items() if key != "content"})
                self._say(value.get("content"))
            elif name == "logprobs" and isinstance(value, dict):
                self._logprobs.add(value)
            elif value is not None:
                self._members[name] = value

    def _say(self, content: JsonValue) -> None:
        if isinstance(content, list):
            self._in_parts = True
            self._content.extend(content)
        elif isinstance(content, str) and (content or not self._content):
            self._content.append(content)

    def value(self) -> JsonObject:
        content: JsonValue = None
        if self._in_parts:
            content = _coalesced([piece for piece in self._content if piece != ""])
        elif self._content:
            content = joined(piece for piece in self._content if isinstance(piece, str))
        message: JsonObject = {"content": content, **self._message.value()}
        logprobs = self._logprobs.value()
        return {**self._members, "message": message, **({"logprobs": logprobs} if logprobs else {})}


def _coalesced(content: list[JsonValue]) -> list[JsonValue]:
    """Mistral's chunks of content: neighbours that hold text, or thoughts, are pieces of one."""
    runs: list[tuple[JsonObject, list[str]]] = []
    parts: list[JsonValue] = []
    for piece in content:
        part: JsonValue = {"type": "text", "text": piece} if isinstance(piece, str) else piece
        text = content_text(part)
        if text is None or not isinstance(part, dict):
            parts.append(part)
            continue
        if not (parts and runs and parts[-1] is runs[-1][0] and runs[-1][0]["type"] == part["type"]):
            runs.append((dict(part), []))
            parts.append(runs[-1][0])
        runs[-1][1].append(text)
    for part, texts in runs:
        text = joined(texts)
        if part["type"] == "text":
            part["text"] = text
        else:
            part["thinking"] = [{"type": "text", "text": text}]
    return parts


def content_text(part: JsonValue) -> str | None:
    """The text of a part of content, or of a thought; None when it is neither."""
    if not isinstance(part, dict):
        return None
    text, thinking = part.get("text"), part.get("thinking")
    if part.get("type") == "text" and isinstance(text, str):
        return text
    if part.get("type") == "thinking" and isinstance(thinking, list):
        return "".join(filter(None, map(content_text, thinking)))
    return None


def chunks(answer: JsonObject, *, include_usage: bool) -> Iterator[bytes]:
    """The events of a `chat.completion` object, in order, `[DONE]` included."""
    shared: JsonObject = {"id": answer["id"], "object": "chat.completion.chunk"}
    first: JsonObject = {}
    for name, value in answer.items():
        if name not in ("id", "object", "choices", "usage"):
            # A list of sources or of filter results is not for each chunk.
            (first if isinstance(value, dict | list) else shared)[name] = value
    usage: JsonObject = {"usage": None} if include_usage else {}
    for choice in answers.objects(answer["choices"]):
        for said in _choice_chunks(choice):
            yield _event({**shared, **first, "choices": [said], **usage})
            first = {}
    if include_usage and answer.get("usage") is not None:
        yield _event({**shared, "choices": [], "usage": answer["usage"]})
    yield _DONE


def _event(value: JsonObject) -> bytes:
    return f"data: {dump(value)}\n\n".encode()


def _choice_chunks(choice: JsonObject) -> Iterator[JsonObject]:
    index, message = choice["index"], choice["message"]
    assert isinstance(message, dict)
    logprobs = choice.get("logprobs")
    for delta, tokens in _deltas(message, logprobs if isinstance(logprobs, dict) else {}):
        yield {"index": index, "delta": delta, "logprobs": tokens or None, "finish_reason": None}
    rest: JsonObject = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    yield {**rest, "delta": {}, "logprobs": None}


def _deltas(message: JsonObject, logprobs: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    content, calls = message.get("content"), message.get("tool_calls")
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}, {}
    thoughts = [name for name in REASONING_TEXTS if isinstance(message.get(name), str)]
    for piece in pieces(str(message[thoughts[0]]) if thoughts else ""):
        yield dict.fromkeys(thoughts, piece), {}
    seals = [name for name in REASONING_SEALS if name in message]
    for name in seals:
        yield {name: message[name]}, {}
    if isinstance(content, list):
        for part in content:
            yield {"content": [part]}, {}
    for name in ("content", "refusal"):
        yield from _text_deltas(name, message.get(name), logprobs)
    for number, call in enumerate(answers.objects(calls)):
        for delta in _call_deltas(number, call):
            yield {"tool_calls": [delta]}, {}
    if isinstance(function := message.get("function_call"), dict):
        for delta in _made_deltas(function, "arguments"):
            yield {"function_call": delta}, {}
    spoken = {"role", "content", "refusal", "tool_calls", "function_call", *thoughts, *seals}
    for name, value in message.items():
        if name not in spoken:
            yield {name: value}, {}


def _text_deltas(name: str, text: JsonValue, logprobs: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """The pieces of a text; where the tokens are known, pieces of whole tokens, each with its own."""
    tokens = logprobs.get(name)
    if not isinstance(text, str):
        if tokens:
            yield {}, {name: tokens}
    elif not tokens:
        for piece in pieces(text):
            yield {name: piece}, {}
    elif isinstance(tokens, list):
        ends = _token_ends(text, answers.objects(tokens))
        if len(ends) != len(tokens):
            yield {name: text}, {name: tokens}
            return
        start = first = end = 0
        for piece in pieces(text):
            end += len(piece)
            last = first
            while last < len(ends) and ends[last] <= end:
                last += 1
            if last > first:
                yield {name: text[start : ends[last - 1]]}, {name: tokens[first:last]}
                start, first = ends[last - 1], last


def _token_ends(text: str, tokens: list[JsonObject]) -> list[int]:
    """Where each token ends in `text`; empty when they are not that text."""
    ends: list[int] = []
    end = 0
    for token in tokens:
        said = token.get("token")
        if not isinstance(said, str) or not text.startswith(said, end):
            return []
        end += len(said)
        ends.append(end)
    return ends if end == len(text) else []


def _call_deltas(number: int, call: JsonObject) -> Iterator[JsonObject]:
    kind = "custom" if call.get("type") == "custom" else "function"
    made, place = call.get(kind), {"index": number}
    call = place | call | place
    if not isinstance(made, dict):  # of a type that is not known here
        yield call
        return
    for position, delta in enumerate(_made_deltas(made, "input" if kind == "custom" else "arguments")):
        yield {**(place if position else call), kind: delta}


def _made_deltas(made: Mapping[str, JsonValue], member: str) -> Iterator[JsonObject]:
    yield {**made, member: ""}
    for piece in pieces(str(made[member])):
        yield {member: piece}
