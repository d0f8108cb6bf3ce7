"""Every setting as a flag, from the one table of settings (DESIGN §12)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from rewind_proxy.settings import FIELDS, Field

_PANEL = "Settings"
_NOT_GIVEN: tuple[object, ...] = (None, [])
_METAVARS = {
    "path": "DIR",
    "text": "TEXT",
    "number": "N",
    "size": "SIZE",
    "0 … 1": "0…1",
    "true / false": "true|false",
    "list": "NAME",
    "list of patterns": "REGEX",
    "list of rules": "RULE",
    "host=value list": "HOST=VALUE",
}
"""What stands for the value of a flag in help, by the kind of its setting; a closed list takes a word."""
_READING = (
    "store hosts max_body ignore tail_n scrub scrub_off roots paths preset redact_defaults redact_patterns "
    "redact_off"
).split()
READING = tuple(field for field in FIELDS if field.name in _READING)
"""The settings that decide how a request is read. (Every verb takes `--store`.)"""


def reading_and(*names: str) -> tuple[Field, ...]:
    """`READING` and some more, in the order of the table."""
    return tuple(field for field in FIELDS if field in READING or field.name in names)


def with_settings(command: Callable[..., None], fields: Sequence[Field] = FIELDS) -> Callable[..., None]:
    """Give a command a flag for each of `fields`; it gets those that were given as `flags`, by field name.

    Lists repeat their flag. Every other parameter of the command stays as it is.
    """

    @functools.wraps(command)
    def called(**arguments: Any) -> None:  # what typer parsed, handed on
        given = {field.name: arguments.pop(field.name) for field in fields}
        command(**arguments, flags={name: value for name, value in given.items() if value not in _NOT_GIVEN})

    own = inspect.signature(command, eval_str=True)
    parameters = [each for each in own.parameters.values() if each.name != "flags"]
    for field in fields:
        option = typer.Option(
            field.flag,
            help=_help(field),
            metavar=_METAVARS.get(field.kind.label, "WORD"),
            rich_help_panel=_PANEL,
            show_default=False,
        )
        kind = (list[str] if field.is_list else str) | None
        parameters.append(
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
            )
        )
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _help(field: Field) -> str:
    """The line of the table, with the words that a closed list takes and the default."""
    words = field.kind.label.split(" / ")
    closed = len(words) > 1 and field.kind.label not in _METAVARS
    # What `0 (all)` means is in the line.
    default = field.default_text.partition(" (")[0].replace("; ", ", ")
    more = ["" if not closed else " | ".join(words), default and f"default {default}"]
    told = "; ".join(filter(None, more))
    return f"{field.help} ({told})" if told else field.help


def as_options(flags: dict[str, object]) -> list[str]:
    """The same flags as `--set rewind_…` arguments of mitmproxy, for a child."""
    arguments: list[str] = []
    for field in FIELDS:
        value = flags.get(field.name)
        entries = value if isinstance(value, list) else [] if value is None else [value]
        for entry in entries:
            arguments += ["--set", f"{field.option}={entry}"]
    return arguments
