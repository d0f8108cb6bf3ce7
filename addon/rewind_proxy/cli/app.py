"""The `rewind` command: the verb groups put together, and how it ends.

Exit status: 0 done, 1 a `RewindError` (one line on standard error), 2 a wrong call; `run` has its own
(DESIGN §12).
"""

from __future__ import annotations

import inspect
import sys
from typing import Annotated

import typer

from rewind_proxy import __version__
from rewind_proxy.cli import (
    canon,
    check,
    demo,
    environment,
    explain,
    look,
    maintain,
    porting,
    review,
    run,
    script,
    show,
    stats,
    test_match,
)
from rewind_proxy.cli.output import print_error, tolerate_narrow_encodings
from rewind_proxy.cli.verb import Root, Verb
from rewind_proxy.errors import RewindError

# In the order in which `rewind --help` shows them.
GROUPS = (
    run,
    demo,
    look,
    stats,
    show,
    explain,
    canon,
    test_match,
    review,
    maintain,
    check,
    porting,
    environment,
    script,
)


def make_app() -> typer.Typer:
    """The application with all its verbs."""
    app = typer.Typer(
        name="rewind",
        cls=Root,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for group in GROUPS:
        group.register(app)
    for command in app.registered_commands:
        if not (command.cls and issubclass(command.cls, Verb)):
            command.cls = Verb
        command.help = _paragraphs(inspect.getdoc(command.callback) or "")
    return app


def _paragraphs(text: str) -> str:
    """A docstring with one line for each paragraph: the screen's width breaks it, not the source's."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def main() -> None:
    """Run the command and exit. An error of ours is one line; a traceback is a fault in the code."""
    tolerate_narrow_encodings()
    try:
        make_app()(prog_name="rewind")
    except RewindError as error:
        print_error(str(error))
        sys.exit(1)


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Record any LLM client once and replay it for ever, offline, with no change but HTTPS_PROXY."""
    if version:
        typer.echo(f"rewind {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
