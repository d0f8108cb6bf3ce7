"""JSON in and canonical JSON out: RFC 8785 (JCS), with a tag for what JCS cannot say.

`parse` reads one document strictly. What JSON can write but JCS cannot (an integer past 2^53, 1E400, NaN)
becomes `{"⟨number⟩": raw token}`, so that one odd leaf leaves the rest readable. `dumps` writes canonical
bytes; a lone surrogate becomes `{"⟨text⟩": escaped}`. A body that holds such a tag itself is opaque: nothing
a client sends can collide with a tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn, cast

import rfc8785

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError

NUMBER_TAG = "⟨number⟩"
TEXT_TAG = "⟨text⟩"
_TAGS = (NUMBER_TAG, TEXT_TAG)
MAX_DEPTH = 400
_MAX_SAFE = 2**53 - 1
_INFINITE = float("inf")
_CONTAINERS = (dict, list)
_SAID_ALIKE = (str, bool)
_SURROGATE = re.compile("[\ud800-\udfff]")

_encoder = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)
# What `JSONEncoder.encode` makes anew at each call, where the interpreter has it.
_make = getattr(json.encoder, "c_make_encoder", None)
_write: Callable[[JsonValue, int], tuple[str, ...]] | None = _make and _make(
    None, _encoder.default, json.encoder.encode_basestring, None, ":", ",", True, False, False
)


def _encode(value: JsonValue) -> str:
    if _write is None or isinstance(value, str):
        return _encoder.encode(value)
    return "".join(_write(value, 0))


def _number(token: str) -> JsonValue:
    return {NUMBER_TAG: token}


def _integer(token: str) -> JsonValue:
    # int() refuses more than 4300 digits; 17 digits are past 2^53 anyway.
    if len(token) > 17:
        return _number(token)
    value = int(token)
    return value if -_MAX_SAFE <= value <= _MAX_SAFE else _number(token)


def _float(token: str) -> JsonValue:
    value = float(token)
    if value in (_INFINITE, -_INFINITE):
        return _number(token)
    if value.is_integer() and -_MAX_SAFE <= value <= _MAX_SAFE:
        return int(value)  # RFC 8785 §3.2.2.3: 1.0 and 1 are one number
    return value


def _members(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise OpaqueBodyError("a member is repeated")
    if "⟨" in "".join(members) and any(name.startswith(_TAGS) for name in members):
        raise OpaqueBodyError("a member is named like a tag of ours")
    return members


_decoder = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_float, parse_constant=_number
)


scan: Callable[[str, int], tuple[JsonValue, int]] = _decoder.raw_decode
"""The value at a place in a text, and where it ends.

It raises `OpaqueBodyError`, `ValueError` and `RecursionError`; nesting is another matter (`check_depth`).
"""


def parse(body: bytes | str) -> JsonValue:
    """Read one JSON document strictly.

    Raises `OpaqueBodyError` for invalid UTF-8, duplicate members, text that is not JSON and nesting past
    `MAX_DEPTH`. A byte order mark is tolerated, as RFC 8259 §8.1 allows.
    """
    try:
        text = body.decode("utf-8-sig") if isinstance(body, bytes) else body
        value = cast("JsonValue", _decoder.decode(text))
    except OpaqueBodyError:
        raise
    except RecursionError:
        raise OpaqueBodyError("nested too deeply") from None
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError; their text quotes the body
        raise OpaqueBodyError(f"not JSON ({type(error).__name__})") from None
    check_depth(value, text, 0, len(text))
    return value


def check_depth(value: JsonValue, text: str, start: int, end: int, *, above: int = 0) -> None:
    """Raise `OpaqueBodyError` where a value is nested past `MAX_DEPTH`.

    It was read from `text[start:end]`, and `above` containers hold it.
    """
    most = MAX_DEPTH - above
    if end - start < most or text.count("{", start, end) + text.count("[", start, end) < most:
        return  # there are not even so many that open
    level: list[JsonValue] = [value]
    for _ in range(most):
        level = [
            child
            for node in level
            if isinstance(node, _CONTAINERS)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, _CONTAINERS)
        ]
        if not level:
            return
    raise OpaqueBodyError("nested too deeply")


def _plain(value: JsonValue) -> bool:
    """Whether Python's own encoder writes this value exactly as RFC 8785 says.

    It differs in the layout of floats (kept to those whose `repr` is the ECMAScript form), in the order of
    keys outside the basic plane, and takes integers past 2^53.
    """
    stack: list[JsonValue] = [value]
    while stack:
        node = stack.pop()
        if node is None or isinstance(node, _SAID_ALIKE):
            continue
        if isinstance(node, dict):
            names = "".join(node)
            if not names.isascii() and max(names) > "\ud7ff":
                return False
            stack.extend([child for child in node.values() if type(child) is not str])
        elif isinstance(node, list):
            stack.extend([child for child in node if type(child) is not str])
        elif isinstance(node, float):
            if not 1e-4 <= abs(node) < 1e16 or node.is_integer():
                return False
        elif not -_MAX_SAFE <= node <= _MAX_SAFE:
            return False
    return True


def _tag_text(text: str) -> str | None:
    """`text` with its lone surrogates escaped, or None when it has none."""
    if not _SURROGATE.search(text):
        return None
    return text.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _tagged(value: JsonValue) -> JsonValue:
    """`value` with every leaf that JCS cannot say put in a tag."""
    if isinstance(value, str):
        escaped = _tag_text(value)
        return value if escaped is None else {TEXT_TAG: escaped}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, dict):
        members: JsonObject = {}
        for name, item in value.items():
            escaped = _tag_text(name)
            members[name if escaped is None else TEXT_TAG + escaped] = _tagged(item)
        return members
    if isinstance(value, int) and not isinstance(value, bool) and not -_MAX_SAFE <= value <= _MAX_SAFE:
        return _number(str(value))
    if isinstance(value, float) and (value != value or value in (_INFINITE, -_INFINITE)):
        return _number(repr(value))
    return value


def dumps(value: JsonValue) -> bytes:
    """The canonical bytes of a value: RFC 8785, and the tags above where it has no word for a leaf."""
    if _plain(value):
        try:
            return _encode(value).encode("utf-8")
        except UnicodeEncodeError:
            pass  # a lone surrogate: the tagged path says it
    return rfc8785.dumps(_tagged(value))


def store_dumps(value: JsonValue) -> bytes:
    """JSON bytes that `store_loads` reads back to an equal value (member order kept, surrogates escaped)."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def store_loads(data: bytes) -> JsonValue:
    """Read what `store_dumps` wrote. Raises ValueError when it is not that."""
    return cast("JsonValue", json.loads(data, parse_constant=_refuse))


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is never stored")
