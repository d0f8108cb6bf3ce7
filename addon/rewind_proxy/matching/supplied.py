"""An answer that a person writes: a small JSON object, or plain text (DESIGN §12, `answer`).

    {"text": "…", "tool_calls": [{"name": "…", "arguments": {…}, "id"?: "…"}], "finish"?: "stop"}

Text comes before the calls. `arguments` is an object, or for a tool that takes free text a string. What is
no JSON object is the text of the answer itself. An object with neither `text` nor `tool_calls` in it is a
mistake, and so is broken JSON with one of these in it.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn, cast, get_args

from rewind_proxy.canonical.answer import AnswerUsage, CanonicalAnswer, Choice, Finish
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import RewindError
from rewind_proxy.wire.forms.rendering import derived_id, dump

_MEMBERS = ("text", "tool_calls", "finish")
_CALL_MEMBERS = ("name", "arguments", "id")
_OURS = re.compile(r'"(?:text|tool_calls)"[ \t\r\n]*:')
_FINISHES: tuple[Finish, ...] = get_args(Finish)


class SuppliedAnswerError(RewindError):
    """An answer by hand that cannot be read; the message names the member and what belongs there."""


def read_answer(
    content: str, place: str, *, as_text: bool = False, as_object: bool = False
) -> CanonicalAnswer:
    """The answer in a file; `place` names it in errors. `as_text`: all of it is the text of the answer.

    `as_object`: what begins as a JSON object is one of ours, or a mistake. Raises `SuppliedAnswerError`.
    """
    value = None if as_text else _object(content)
    if value is None or not ("text" in value or "tool_calls" in value):
        begins = content.lstrip().startswith("{") and not as_text
        if begins and (as_object or value is not None or _OURS.search(content)):
            raise SuppliedAnswerError(f"{place}: {_mistake(content)}")
        return _answer(content.removesuffix("\n"), [], None, place)
    if unknown := [name for name in value if name not in _MEMBERS]:
        raise SuppliedAnswerError(
            f"{place}: an answer has no {unknown[0]!r}; it has {', '.join(_MEMBERS)} "
            "(--text takes the file as the text of the answer, whatever it looks like)"
        )
    text, calls, finish = value.get("text", ""), value.get("tool_calls", []), value.get("finish")
    if not isinstance(text, str):
        raise SuppliedAnswerError(f'{place}: "text" is a text')
    if not isinstance(calls, list):
        raise SuppliedAnswerError(f'{place}: "tool_calls" is a list of {{"name", "arguments"}}')
    if finish is not None and finish not in _FINISHES:
        raise SuppliedAnswerError(f'{place}: "finish" is one of {", ".join(_FINISHES)}')
    return _answer(text, [_call(call, at, place) for at, call in enumerate(calls)], finish, place)


def written(answer: CanonicalAnswer) -> str:
    """An answer as a person edits it. What has no place in that form (reasoning) is left out."""
    parts = answer.choices[0].parts if answer.choices else ()
    texts = [str(part["text"]) for part in parts if part["type"] == "text"]
    calls: list[JsonValue] = [
        {"id": part.get("id"), "name": part.get("name"), "arguments": _arguments(part)}
        for part in parts
        if part["type"] == "tool_call"
    ]
    finish = answer.choices[0].finish if answer.choices else None
    value: JsonObject = {"text": "\n".join(texts), "tool_calls": calls, "finish": finish or "stop"}
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _object(content: str) -> JsonObject | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # then it is text
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _is_json(source: str) -> bool:
    """Whether what Python wrote is JSON: it reads 1e999, and writes it as Infinity."""
    try:
        json.loads(source, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(token: str) -> NoReturn:
    raise ValueError(token)


def _mistake(content: str) -> str:
    """What is wrong with something that begins as one of our objects and is none."""
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        return (
            f"{error.msg} (line {error.lineno}, column {error.colno}): it begins as JSON "
            "(--text takes a file as the text of the answer, whatever it looks like)"
        )
    except (ValueError, RecursionError):
        return "a number in it is too long, or it is nested too deeply"
    return (
        'neither "text" nor "tool_calls" is in it: an answer that is JSON itself is a string in "text" '
        "(or the whole file, with --text)"
    )


def _answer(text: str, calls: list[JsonObject], finish: JsonValue, place: str) -> CanonicalAnswer:
    if not text and not calls:
        raise SuppliedAnswerError(f"{place}: the answer is empty: give it text or tool calls")
    parts: list[JsonObject] = [{"type": "text", "text": text}] if text else []
    default: Finish = "tool_calls" if calls else "stop"
    # What ends a text does not end a call: clients wait for its result; and no call can end a text.
    wrong = "stop" if calls else "tool_calls"
    ending = cast("Finish", finish) if isinstance(finish, str) and finish != wrong else default
    return CanonicalAnswer(choices=(Choice((*parts, *calls), ending),), usage=AnswerUsage())


def _call(call: JsonValue, at: int, place: str) -> JsonObject:
    where = f'{place}: "tool_calls"[{at}]'
    if not isinstance(call, dict):
        raise SuppliedAnswerError(f'{where} is an object: {{"name", "arguments"}}')
    if unknown := [name for name in call if name not in _CALL_MEMBERS]:
        raise SuppliedAnswerError(f"{where} has no {unknown[0]!r}; it has {', '.join(_CALL_MEMBERS)}")
    name, arguments, identifier = call.get("name"), call.get("arguments", {}), call.get("id")
    if not isinstance(name, str) or not name:
        raise SuppliedAnswerError(f'{where}: "name" is the name of a tool')
    if not isinstance(arguments, dict | str):
        raise SuppliedAnswerError(f'{where}: "arguments" is an object, or a text for a tool that takes one')
    source = arguments if isinstance(arguments, str) else dump(arguments)
    if isinstance(arguments, dict) and not _is_json(source):
        raise SuppliedAnswerError(f'{where}: a number in "arguments" is none that JSON has')
    if identifier is not None and not isinstance(identifier, str):
        raise SuppliedAnswerError(f'{where}: "id" is a text')
    return {
        "type": "tool_call",
        "id": identifier or derived_id("call_", at, name, source),
        "name": name,
        "arguments": source,
    }


def _arguments(part: JsonObject) -> JsonValue:
    source = part.get("arguments")
    if isinstance(source, str) and part.get("call_type") != "custom":
        value = _object(source)
        return source if value is None else value
    return source
