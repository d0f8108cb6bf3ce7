"""What the wires with one choice and typed events (Responses, Anthropic Messages) share in rendering."""

from __future__ import annotations

from rewind_proxy.canonical.answer import CanonicalAnswer, Choice, Finish
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire.forms.rendering import (
    Notes,
    answer_id,
    arguments_object,
    derived_id,
    dump,
    source_text,
)


class Ids:
    """Ids that the recording has not, or has twice, derived from the answer: always the same."""

    def __init__(self, answer: CanonicalAnswer, notes: Notes) -> None:
        self._seed = answer_id("", answer)
        self._notes = notes
        self._used: set[tuple[str, str]] = set()

    def take(self, recorded: JsonValue, prefix: str) -> str:
        """The recorded id, or one of ours where it is missing or something of the same kind has it."""
        taken = text_of(recorded)
        if taken and (prefix, taken) in self._used:
            self._notes.add("repeated id")
            taken = ""
        if not taken:
            taken = derived_id(prefix, self._seed, len(self._used))
        self._used.add((prefix, taken))
        return taken


def only_choice(answer: CanonicalAnswer, notes: Notes) -> Choice:
    """The first choice."""
    if len(answer.choices) > 1:
        notes.add(f"choices {len(answer.choices)}->1")
    return answer.choices[0] if answer.choices else Choice()


def finish_of(choice: Choice) -> Finish:
    """How the choice ended; one with calls waits for results, even when it says `stop` (Gemini)."""
    if choice.finish is not None and choice.finish != "stop":
        return choice.finish
    return "tool_calls" if any(part["type"] == "tool_call" for part in choice.parts) else "stop"


def refuses(choice: Choice) -> bool:
    """Whether the model refused in words."""
    return any(part["type"] == "text" and part.get("refusal") for part in choice.parts)


def function_arguments(part: JsonObject, notes: Notes) -> str:
    """The arguments of a call as text that spells an object: as the model wrote them, where they do."""
    text = source_text(part.get("arguments"))
    made = arguments_object(part, notes)
    if not text.strip() or made == {"input": text}:  # wrapped: no text can spell itself
        return dump(made)
    return text


def covers(ours: JsonValue, said: JsonValue) -> bool:
    """Whether our counts say all that the provider's say; what it leaves out or nulls is none."""
    if isinstance(said, dict):
        return all(covers(ours.get(name) if isinstance(ours, dict) else None, said[name]) for name in said)
    return (ours or 0) == (said or 0)


def text_of(value: JsonValue) -> str:
    """A member that should be a string."""
    return value if isinstance(value, str) else ""


def typed_event(event: JsonObject) -> bytes:
    """An event that names its type in the `event` line too."""
    return f"event: {event['type']}\ndata: {dump(event)}\n\n".encode()
