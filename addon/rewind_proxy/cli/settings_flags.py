"""Every setting as a flag, from the one table of settings (DESIGN §12)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from rewind_proxy.settings import FIELDS, Field

_PANEL = "Settings"


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each setting; it gets those that were given as `flags`, by field name.

    Lists repeat their flag. Every other parameter of the command stays as it is.
    """

    @functools.wraps(command)
    def called(**arguments: Any) -> None:  # what typer parsed, handed on
        given = {field.name: arguments.pop(field.name) for field in FIELDS}
        command(**arguments, flags={name: value for name, value in given.items() if value})

    own = inspect.signature(command, eval_str=True)
    parameters = [each for each in own.parameters.values() if each.name != "flags"]
    for field in FIELDS:
        option = typer.Option(field.flag, help=_help(field), rich_help_panel=_PANEL, show_default=False)
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
    """The line of the table, with the words that a closed list takes."""
    words = field.kind.label.split(" / ")
    return f"{field.help} ({' | '.join(words)})" if len(words) > 1 else field.help


def as_options(flags: dict[str, object]) -> list[str]:
    """The same flags as `--set rewind_…` arguments of mitmproxy, for a child."""
    arguments: list[str] = []
    for field in FIELDS:
        value = flags.get(field.name)
        entries = value if isinstance(value, list) else [] if value is None else [value]
        for entry in entries:
            arguments += ["--set", f"{field.option}={entry}"]
    return arguments
