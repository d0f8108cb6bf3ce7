"""A function call of Vertex whose arguments arrive in pieces (`streamFunctionCallArguments`).

Google's reference of `FunctionCall` and `PartialArg`: the first part has the name, those that follow have
`partialArgs`, each the next piece of the value at its JSON Path (RFC 9535). Another part follows as long as
`willContinue` is true; the last may be an empty call, or hold the last pieces.
"""

from __future__ import annotations

import copy
import re
from itertools import pairwise
from typing import TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers
from rewind_proxy.wire.forms.rendering import joined

_Place: TypeAlias = tuple[str | int, ...]
_SEGMENT = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>\d{1,9})\]"""
    r"""|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]"""
)
_QUOTING = re.compile(r"\\.|\"")
_REQUOTED = {"\\'": "'", '"': '\\"'}
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


def is_partial(part: JsonObject) -> bool:
    """Whether a part holds a call, or the piece of one, that is not whole."""
    call = part.get("functionCall")
    return isinstance(call, dict) and ("partialArgs" in call or call.get("willContinue") is True)


class PartialCall:
    """Puts one call together from its parts, the first of which `is_partial`."""

    def __init__(self) -> None:
        self._part: JsonObject = {}
        self._call: JsonObject = {}
        self._said: dict[_Place, list[str] | JsonValue] = {}
        self._understood = True
        self.open = True
        """Whether another part is to follow."""

    def goes_on_in(self, part: JsonObject) -> bool:
        """Whether `part` is the next of this call: it names no other, and has nothing but pieces."""
        call = part.get("functionCall")
        if not (self.open and isinstance(call, dict)):
            return False
        same = all(call.get(name) in (None, "", self._call.get(name)) for name in ("name", "id"))
        return same and "args" not in call

    def add(self, part: JsonObject) -> None:
        """The next part."""
        call = part["functionCall"]
        assert isinstance(call, dict)
        self._part |= part
        self._call |= {
            name: value for name, value in call.items() if name not in ("partialArgs", "willContinue")
        }
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else []:
            self._understood = self._understood and isinstance(piece, dict) and self._take(piece)
        self.open = call.get("willContinue") is True

    def _take(self, piece: JsonObject) -> bool:
        path = piece.get("jsonPath")
        place = _place(path) if isinstance(path, str) else None
        given = [name for name in _VALUES if name in piece]
        if place is None or len(given) > 1:
            return False
        if not given:  # only says that there is more to come
            return piece.get("willContinue") is True
        value = piece[given[0]]
        if given[0] == "stringValue" and isinstance(value, str):
            known = self._said.setdefault(place, [])
            if not isinstance(known, list):
                return False
            known.append(value)
            return True
        first = place not in self._said
        self._said[place] = None if given[0] == "nullValue" else value
        return first

    def value(self) -> JsonObject:
        """The part with the whole call; still a partial one where it was cut, or cannot be understood."""
        given = self._call.get("args")
        arguments: JsonObject = copy.deepcopy(given) if isinstance(given, dict) else {}
        understood = self._understood and not self.open
        for place, said in self._said.items():
            value = joined(map(str, said)) if isinstance(said, list) else said
            understood = understood and _put(arguments, place, value)
        call: JsonObject = {**self._call, "args": arguments}
        return {**self._part, "functionCall": call if understood else {**call, "willContinue": True}}


def _place(path: str) -> _Place | None:
    """The steps of a path from `$` to one value; None for any other path."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _SEGMENT.match(path, at)
        if found is None:
            return None
        at = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["name"] is not None:
            steps.append(found["name"])
        else:
            name = _quoted(found["double"] if found["single"] is None else found["single"])
            if name is None:
                return None
            steps.append(name)
    return tuple(steps) if path.startswith("$") and steps else None


def _quoted(source: str) -> str | None:
    """The name in quotes of either kind, whose escapes are those of JSON."""
    requoted = _QUOTING.sub(lambda found: _REQUOTED.get(found[0], found[0]), source)
    name = answers.load(f'"{requoted}"')
    return name if isinstance(name, str) else None


def _put(root: JsonObject, place: _Place, value: JsonValue) -> bool:
    """Put a value in its place, and what leads to it; False where something else is in the way."""
    at: JsonValue = root
    for step, following in pairwise(place):
        at = _member(at, step, [] if isinstance(following, int) else {})
    last = place[-1]
    if isinstance(last, str) and isinstance(at, dict) and last not in at:
        at[last] = value
        return True
    if isinstance(last, int) and isinstance(at, list) and last == len(at):
        at.append(value)
        return True
    return False


def _member(at: JsonValue, step: str | int, empty: JsonValue) -> JsonValue:
    """The member at a step, made when it is not there yet; None when there can be none."""
    if isinstance(step, str):
        return at.setdefault(step, empty) if isinstance(at, dict) else None
    if not isinstance(at, list) or step > len(at):
        return None
    if step == len(at):
        at.append(empty)
    return at[step]
