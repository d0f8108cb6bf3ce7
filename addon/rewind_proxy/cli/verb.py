"""What all verbs have beyond typer's commands: help without types at switches, errors in our own words."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

_FOREIGN_WORDS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer.*"), "a whole number is needed."),
    (re.compile(r"^Input should be "), "it should be "),
)


class Verb(TyperCommand):
    """A command whose switches have no type in help, as they take no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer has a click of its own
        """As typer's. Raises `typer.BadParameter`, without the words of the library that reads its values."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            for pattern, words in _FOREIGN_WORDS:
                error.message = pattern.sub(words, error.message)
            raise

    def get_params(self, *arguments: Any) -> list[Any]:  # what it is given depends on typer's version
        """As typer's."""
        return _without_types(super().get_params(*arguments))


class FlagsAfterDashes(Verb):
    """A verb whose words are all flags of mitmproxy's: a word before `--` is a mistake."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As a verb's. Ends as a wrong call does when there is a word."""
        own = args[: args.index("--")] if "--" in args else args
        given, _, _ = self.make_parser(ctx).parse_args([*own])
        if words := given.get("words"):
            ctx.fail(f"{words[0]!r} is no flag of this verb; flags of mitmproxy go after `--`")
        return super().parse_args(ctx, args)


class Root(TyperGroup):
    """The same of the command itself."""

    def get_params(self, *arguments: Any) -> list[Any]:
        """As typer's."""
        return _without_types(super().get_params(*arguments))


def _without_types(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
            each.metavar = ""
    return parameters
