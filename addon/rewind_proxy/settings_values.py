"""How one value of a setting is read: from text (variable, option, flag) or from TOML.

A `Kind` turns what a source holds into the value that `Settings` keeps, or raises `BadValueError` with the
reason. Reasons quote the value, but never one that may hold a secret (patterns, URLs).
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

Origin = Literal["flag", "option", "variable", "file"]
Reader = Callable[[object], object]

_TRUE_WORDS = frozenset({"true", "1", "yes", "on"})
_FALSE_WORDS = frozenset({"false", "0", "no", "off"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WHOLE = re.compile(r"\d{1,12}")
_SIZE = re.compile(r"(\d{1,12}) ?(B|KiB|MiB|GiB|KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_HOST = re.compile(r"(?:[a-z0-9*][a-z0-9_.*-]*|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?")
_USERINFO = re.compile(r"//[^/@\s]*@")
_QUOTED = 80


class BadValueError(ValueError):
    """Why a value is refused. The text never holds what may be secret."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of one kind are written and read.

    `label` is what the reference calls it. For lists, `written` shows how a file writes one, and `commas`
    says where text is split at commas: in every source, in variables only (entries of repeated flags may hold
    commas), or nowhere (patterns).
    """

    label: str
    read: Reader
    is_list: bool = False
    written: str = ""
    commas: Literal["always", "variable", "never"] = "always"

    def parse(self, value: object, origin: Origin) -> object:
        """The value a source holds, read and checked. Raises `BadValueError`."""
        return self.read(self._entries(value, origin) if self.is_list else value)

    def _entries(self, value: object, origin: Origin) -> object:
        if isinstance(value, str):
            if origin == "file":
                raise BadValueError(f"write {self.written}, not one text")
            return self._from_text(value, origin)
        if isinstance(value, Sequence) and origin in ("flag", "option"):
            entries: list[object] = []
            for item in value:
                more = self._from_text(item, origin) if isinstance(item, str) else [item]
                entries.extend([more] if isinstance(more, dict) else more)
            return entries
        return value

    def _from_text(self, text: str, origin: Origin) -> list[object] | dict[str, object]:
        document = _json(text)
        if isinstance(document, dict):
            return cast("dict[str, object]", document)
        # `[0-9]` and `[0]` are patterns; only a list of texts or objects is meant as a list.
        if isinstance(document, list) and all(isinstance(item, str | dict) for item in document):
            return cast("list[object]", document)
        if self.commas == "always" or (self.commas == "variable" and origin == "variable"):
            return [item.strip() for item in text.split(",") if item.strip()]
        if origin == "variable":
            raise BadValueError('write a JSON list here, as ["…", "…"]: its entries may hold commas')
        return [text]


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`; did you mean X?` for the choice nearest to a misspelt word, or nothing when none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), list(by_lower), n=1)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""


def is_true_word(text: str) -> bool:
    """Whether a variable like `CI` is set to something that does not say no."""
    return bool(text.strip()) and text.strip().lower() not in _FALSE_WORDS


def one_of(*choices: str, synonyms: Mapping[str, str] | None = None) -> Kind:
    """A word of a closed list, or a synonym of one."""
    others = dict(synonyms or {})

    def read(value: object) -> object:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in choices:
            return word
        if word in others:
            return others[word]
        also = f" (also {', '.join(others)})" if others else ""
        guess = did_you_mean(word, (*choices, *others))
        raise BadValueError(f"{quote(value)} is not one of {', '.join(choices)}{also}{guess}")

    return Kind(label=" / ".join(choices), read=read)


def yes_or_no() -> Kind:
    """A truth value: itself, or a word for it."""

    def read(value: object) -> object:
        word = str(value).strip().lower() if isinstance(value, bool | int | str) else ""
        if word in _TRUE_WORDS:
            return True
        if word in _FALSE_WORDS:
            return False
        raise BadValueError(f"{quote(value)} is not true or false (also 1/0, yes/no, on/off)")

    return Kind(label="true / false", read=read)


def count() -> Kind:
    """A whole number from 0."""

    def read(value: object) -> object:
        text = str(value).strip() if isinstance(value, int | str) else ""
        if _WHOLE.fullmatch(text):
            return int(text)
        raise BadValueError(f"{quote(value)} is not a whole number from 0")

    return Kind(label="number", read=read)


def byte_size() -> Kind:
    """A number of bytes, plain or with a unit."""

    def read(value: object) -> object:
        match = _SIZE.fullmatch(str(value).strip()) if isinstance(value, int | str) else None
        size = int(match[1]) * _UNITS[(match[2] or "B").lower()] if match else 0
        if size:
            return size
        raise BadValueError(f"{quote(value)} is not a size such as 67108864, 512KiB or 64MiB")

    return Kind(label="size", read=read)


def fraction() -> Kind:
    """A number from 0 to 1."""

    def read(value: object) -> object:
        number = _number(value)
        if number is not None and 0 <= number <= 1:
            return number
        raise BadValueError(f"{quote(value)} is not a number from 0 to 1")

    return Kind(label="0 … 1", read=read)


def word_or_factor(*words: str) -> Kind:
    """A word, or a number above 0."""

    def read(value: object) -> object:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in words:
            return word
        number = _number(value)
        if number is not None and number > 0:
            return number
        choices = f"{', '.join(words)} or a number above 0"
        raise BadValueError(f"{quote(value)} is not one of {choices}{did_you_mean(word, words)}")

    return Kind(label=" / ".join((*words, "factor")), read=read)


def plain_text() -> Kind:
    """Text without control characters, as it also goes into headers and on screens."""

    def read(value: object) -> object:
        return read_text(value)

    return Kind(label="text", read=read)


def checked_text(check: Callable[[str], object]) -> Kind:
    """Text in a form of its own: `check` raises `ValueError` with the reason where it is not in that form."""

    def read(value: object) -> object:
        text = read_text(value)
        try:
            check(text)
        except ValueError as error:
            raise BadValueError(str(error)) from None
        return text

    return Kind(label="text", read=read)


def folder() -> Kind:
    """A path with a name at its end (the log stands beside the store, named after it)."""

    def read(value: object) -> object:
        text = read_text(str(value) if isinstance(value, Path) else value)
        try:
            path = Path(text).expanduser()
        except RuntimeError:
            raise BadValueError(f"{quote(value)}: there is no home folder to put for ~") from None
        if not text.strip() or path.name in ("", ".."):
            raise BadValueError(f"{quote(text)} does not name a folder")
        return path

    return Kind(label="path", read=read)


def within(place: str, read: Reader, value: object) -> object:
    try:
        return read(value)
    except BadValueError as error:
        raise BadValueError(f"{place}: {error}") from None


def quote(value: object) -> str:
    """A value for a message: escaped, cut, and what may be a password in a URL masked."""
    spelt = isinstance(value, str | bool)  # `true`, as it is written
    text = json.dumps(value, ensure_ascii=False) if spelt else repr(value)
    text = _USERINFO.sub("//…@", text)
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def read_text(value: object) -> str:
    if not isinstance(value, str):
        raise BadValueError(f"{quote(value)} is not a text")
    if _CONTROL.search(value):
        raise BadValueError("a control character stands in it")
    return value


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _json(text: str) -> object:
    """The list or object a text holds, or None when it is no JSON: then it is read as it stands."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return cast("object", json.loads(text, object_pairs_hook=_members))
    except BadValueError:
        raise
    except (ValueError, RecursionError):
        return None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadValueError("a key is given twice in one object")
    return members
