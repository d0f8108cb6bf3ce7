"""What the fake provider's model decides to say: a small, honest script instead of a language model.

It does what the user's last words ask for: each `` run `command` `` in them becomes one tool call, if the
client offers tools, and when all results are in, the answer quotes the last one. Anything else is echoed in
part (eight words: a secret further on in a prompt stays out of the answer). So an answer tells which request
it belongs to.

Nothing here uses the wire adapters: what they misread must not be misread here as well.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue

_COMMAND = re.compile(r"\brun `([^`\n]+)`", re.IGNORECASE)
_PIECE = re.compile(r"\s*\S+(?:\s+\S+){0,2}\s*$|\s*\S+(?:\s+\S+){0,2}")
_SHELL_TOOLS = ("exec_command", "exec", "shell", "Bash", "run_shell_command", "bash")
"""By preference: Codex (function, custom JavaScript, older function), Claude Code, Gemini CLI and Qwen Code,
opencode and Copilot CLI."""
_TAGGED = re.compile(r"\s*<([\w-]+)>.*?</\1>", re.DOTALL)
"""What agents add as the user, before the words or in a text of its own: `<system-reminder>`,
`<environment_context>`, `<current_datetime>`."""
_ECHOED_WORDS = 8
_QUOTED_CHARACTERS = 2000

Speaker: TypeAlias = Literal["user", "assistant", "tool"]
Entry: TypeAlias = tuple[Speaker, str]
"""Something said so far: who, and what."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the client offers; without a schema it takes free text."""

    name: str
    schema: JsonObject | None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: `arguments` is an object, or the free text of a custom tool."""

    name: str
    arguments: JsonObject | str
    namespace: str | None = None

    @property
    def text(self) -> str:
        """The arguments as the wires of OpenAI carry them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says to one request, whatever the wire."""

    model: str
    text: str
    call: Call | None
    thinks: bool
    input_tokens: int

    @property
    def output_tokens(self) -> int:
        """A plausible count that depends on the answer."""
        return len(self.text.split()) + (len(self.call.text) // 4 if self.call else 0)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire format, as the provider sees it."""

    entries: Callable[[JsonObject], Iterator[Entry]]
    offers: Callable[[JsonObject], Iterator[Offer]]
    thinks: Callable[[JsonObject], bool]
    schema: Callable[[JsonObject], JsonObject]
    """The JSON schema that the text of the answer must follow; empty for free text."""
    whole: Callable[[Turn], JsonObject]
    events: Callable[[Turn, JsonObject], Iterator[JsonObject | None]]
    """The events of a stream; None is the `[DONE]` of Chat Completions."""
    sse: Callable[[JsonObject | None], bytes]
    error: Callable[[int, str], JsonObject]


def decide(dialect: Dialect, body: JsonObject, model: str) -> Turn:
    """The turn that answers `body`, a generation request."""
    entries = list(dialect.entries(body))
    said = [_users_words(entry) for entry in entries]
    asked = max((i for i, words in enumerate(said) if words), default=-1)
    words = said[asked] if asked >= 0 else ""
    results = [text for speaker, text in entries[asked + 1 :] if speaker == "tool"]
    commands = _COMMAND.findall(words)
    offers = list(dialect.offers(body))
    call = None
    if len(results) < len(commands) and offers:
        call = _call(offers, commands[len(results)])
        text = "I will run that."
    elif results:
        text = f"The tool answered: {results[-1].strip()[:_QUOTED_CHARACTERS]}"
    else:
        echo = " ".join(words.split()[:_ECHOED_WORDS])
        messages = "1 message" if len(entries) == 1 else f"{len(entries)} messages"
        text = f"You said: {echo} ({len(words)} characters, {messages})"
    schema = dialect.schema(body)
    if schema and not call:
        text = json.dumps(_filled(schema, text))
    return Turn(model, text, call, dialect.thinks(body), input_tokens(body))


def input_tokens(body: JsonObject) -> int:
    """A plausible count that depends on the request."""
    return max(1, len(json.dumps(body)) // 4)


def _users_words(entry: Entry) -> str:
    """What the user says in it: nothing in what an agent added, as it stands in tags."""
    speaker, text = entry
    if speaker != "user":
        return ""
    while tagged := _TAGGED.match(text):
        text = text[tagged.end() :]
    words = text.strip()
    return "" if words.startswith("<") else words


def _call(offers: Sequence[Offer], command: str) -> Call:
    ranks = {name: rank for rank, name in enumerate(_SHELL_TOOLS)}
    offer = min(offers, key=lambda offer: ranks.get(offer.name, len(ranks)))
    if offer.schema is None:
        code = (
            f"const result = await tools.exec_command({json.dumps({'cmd': command})});\ntext(result.output);"
        )
        return Call(offer.name, code, offer.namespace)
    return Call(offer.name, _filled(offer.schema, command), offer.namespace)


def _filled(schema: JsonObject, text: str) -> JsonObject:
    """An object that follows the schema: what is required, else its first member; `text` in each string."""
    properties = as_object(schema.get("properties"))
    required = schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else list(properties)[:1]
    return {name: _value(as_object(properties.get(name)).get("type"), text) for name in names}


def _value(kind: JsonValue, text: str) -> JsonValue:
    match str(kind).lower():
        case "array":
            return ["bash", "-lc", text]
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case "object":
            return {}
    return text


# What the dialects share.


def fresh_id(prefix: str) -> str:
    """A new id: no two answers have one in common."""
    return prefix + uuid.uuid4().hex


def now() -> int:
    """Seconds since the epoch, as the answers of OpenAI carry them."""
    return int(time.time())


def pieces(text: str) -> list[str]:
    """What the deltas of a stream carry: three words each."""
    return _PIECE.findall(text)


def speaker(role: JsonValue) -> Speaker | None:
    """Who speaks under that role; None for instructions."""
    match role:
        case "user":
            return "user"
        case "assistant" | "model":
            return "assistant"
        case "tool":
            return "tool"
    return None


def as_object(value: JsonValue) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(content: JsonValue) -> list[str]:
    """The texts of a content: a string, or blocks that have a `text`."""
    if isinstance(content, str):
        return [content]
    return [str(block["text"]) for block in objects(content) if isinstance(block.get("text"), str)]


def typed_sse(event: JsonObject | None) -> bytes:
    """An event of a wire that names the type in the `event` line too."""
    assert event is not None
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
