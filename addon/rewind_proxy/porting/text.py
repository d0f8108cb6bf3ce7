"""JSON as text that people read and diff, and the digest that tells whether somebody changed it.

One value has one text: two spaces a level, one member or item a line, a list within a list on one line.
Characters that an editor does not show, or that reorder what it shows, are escaped: what a reviewer sees is
what is there.
"""

from __future__ import annotations

import hashlib
import json
import re
from json.encoder import encode_basestring
from typing import NoReturn, cast

from rewind_proxy.canonical import jcs
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import OpaqueBodyError, PortingError

_UNSEEN = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_STEP = "  "
_LEVELS = 8
"""In which the deepest body stands, in any of our texts."""


def pretty(value: JsonValue) -> str:
    """The text of a value, without a line end after it."""
    out: list[str] = []
    _write(value, out, "\n")
    return "".join(out)


def line(value: JsonValue) -> str:
    """The value on one line, its members in their order."""
    return _shown(json.dumps(value, ensure_ascii=False, allow_nan=False))


def digest(document: JsonObject) -> str:
    """sha256 of a document's text, in hex. However it is laid out in a file, it stays the same."""
    return hashlib.sha256(pretty(document).encode()).hexdigest()


def load(text: str, place: str) -> JsonValue:
    """The value of a JSON text. Raises `PortingError`, which names the place."""
    try:
        value = cast("JsonValue", json.loads(text, object_pairs_hook=_members, parse_constant=_refuse))
        jcs.check_depth(value, text, 0, len(text), above=-_LEVELS)
    except json.JSONDecodeError as error:
        raise PortingError(f"{place}: not JSON (line {error.lineno}, column {error.colno})") from None
    except _OddError as error:
        raise PortingError(f"{place}: {error}") from None
    except ValueError:
        raise PortingError(f"{place}: a number in it is too long") from None
    except (RecursionError, OpaqueBodyError):
        raise PortingError(f"{place}: nested too deeply") from None
    return value


class _OddError(Exception):
    """What JSON's grammar allows and no honest file has."""


def _members(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _OddError("a member is given twice in one object")
    return members


def _refuse(token: str) -> NoReturn:
    raise _OddError(f"{token} is no JSON")


def _write(value: JsonValue, out: list[str], newline: str) -> None:
    # One frame a level: a body may be nested as deeply as `jcs.MAX_DEPTH`.
    deeper = newline + _STEP
    if isinstance(value, dict) and value:
        mark = "{"
        for name, item in value.items():
            out.append(f"{mark}{deeper}{_string(name)}: ")
            _write(item, out, deeper)
            mark = ","
        out.append(newline + "}")
    elif isinstance(value, list) and value:
        mark = "["
        for item in value:
            out.append(mark + deeper)
            if isinstance(item, list):
                out.append(line(item))
            else:
                _write(item, out, deeper)
            mark = ","
        out.append(newline + "]")
    elif isinstance(value, str):
        out.append(_string(value))
    else:
        out.append(json.dumps(value, allow_nan=False))


def _string(text: str) -> str:
    return _shown(encode_basestring(text))


def _shown(text: str) -> str:
    return _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
