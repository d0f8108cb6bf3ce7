"""YAML 1.1 as PyYAML writes it, read as plain data: no object is ever made, and no size explodes.

Mappings with text keys, lists, texts, bytes, numbers, truth values and null come out. A tag of Python's that
is no plain text or tuple, a merge key and a second document are refused; an alias costs what it stands for.
"""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

import yaml  # type: ignore[import-untyped]  # it has no stubs

from rewind_proxy.errors import PortingError

Value: TypeAlias = "None | bool | int | float | str | bytes | list[Value] | dict[str, Value]"

MAX_BYTES = 64 * 2**20
_MAX_NODES = 2_000_000
"""Aliases counted by what they stand for."""
_MAX_DEPTH = 50

_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({f"{_TAG}str", f"{_TAG}python/str", f"{_TAG}python/unicode"})
_LISTS = frozenset({f"{_TAG}seq", f"{_TAG}python/tuple"})
_BYTES = f"{_TAG}binary"
# Where PyYAML was built without libyaml, its own reader does the same, some ten times slower.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(data: bytes, file: str) -> Value:
    """The value of a YAML text. Raises `PortingError`, which names file and line."""
    if len(data) > MAX_BYTES:
        raise PortingError(f"{file}: larger than {MAX_BYTES >> 20} MiB, which is no cassette of vcrpy")
    try:
        loader = _Loader(data)
    except (yaml.YAMLError, UnicodeDecodeError):
        raise PortingError(f"{file}: not YAML") from None
    try:
        return _Reader(loader, file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise PortingError(f"{file}: not YAML ({_at(mark)})") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise PortingError(f"{file}: not YAML (a character that is not allowed in it)") from None
    finally:
        loader.dispose()


def _at(mark: Any) -> str:
    return f"line {mark.line + 1}" if mark else "somewhere"


class _Reader:
    """Builds the value from the parser's events, so that nothing is built that was not counted."""

    def __init__(self, loader: Any, file: str) -> None:
        self._loader = loader
        self._file = file
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._nodes = 0

    def document(self) -> Value:
        loader = self._loader
        loader.get_event()  # the stream begins
        if loader.check_event(yaml.StreamEndEvent):
            return None
        loader.get_event()  # the document begins
        value = self._value(0)
        loader.get_event()  # the document ends
        if not loader.check_event(yaml.StreamEndEvent):
            raise self._error(loader.peek_event(), "a second document follows")
        return value

    def _value(self, depth: int) -> Value:
        event = self._loader.get_event()
        if depth > _MAX_DEPTH:
            raise self._error(event, "nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._error(event, "an alias of what is not there yet")
            value, size = self._anchors[event.anchor]
            self._count(event, size)
            return value
        before = self._nodes
        self._count(event, 1)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(event, depth)
        else:
            value = self._mapping(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = value, self._nodes - before
        return value

    def _list(self, event: Any, depth: int) -> list[Value]:
        self._only(event, _LISTS)
        items: list[Value] = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            items.append(self._value(depth + 1))
        self._loader.get_event()
        return items

    def _mapping(self, event: Any, depth: int) -> dict[str, Value]:
        self._only(event, frozenset({f"{_TAG}map"}))
        members: dict[str, Value] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            place = self._loader.peek_event()
            name = self._value(depth + 1)
            if not isinstance(name, str) or name in members:
                raise self._error(place, "a key that is no text, or stands there twice")
            members[name] = self._value(depth + 1)
        self._loader.get_event()
        return members

    def _scalar(self, event: Any) -> Value:
        tag, text = event.tag, str(event.value)
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit)
        if tag in _TEXTS:
            return text
        if tag == _BYTES:
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except ValueError:
                raise self._error(event, "it is no base64") from None
        try:
            if tag == f"{_TAG}null":
                return None
            if tag == f"{_TAG}bool":
                return text.lower() in ("yes", "true", "on")
            if tag == f"{_TAG}int":
                return int(text.replace("_", ""), 10)
            if tag == f"{_TAG}float":
                return float(text.replace("_", ""))
        except ValueError:
            return text  # octal, base sixty, infinity: nothing of them stands where a cassette is read
        if tag == f"{_TAG}timestamp":
            return text
        raise self._error(event, f"the tag {tag[:80]!r} is not read")

    def _only(self, event: Any, allowed: frozenset[str]) -> None:
        if event.tag is not None and event.tag not in allowed:
            raise self._error(event, f"the tag {event.tag[:80]!r} is not read")

    def _count(self, event: Any, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _MAX_NODES:
            raise self._error(
                event, "more values than any cassette has (aliases count for what they stand for)"
            )

    def _error(self, event: Any, why: str) -> PortingError:
        return PortingError(f"{self._file}: {_at(event.start_mark)}: {why}")
