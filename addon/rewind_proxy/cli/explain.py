"""`rewind explain` and `diff`: how a call was answered, or why not; where two runs part.

JSON (`--json`): `Explanation.to_json` (explain/step.py), `Parting.to_json` (explain/runs.py).
"""

from __future__ import annotations

from typing import Annotated

import typer

from rewind_proxy.cli.look import PANEL
from rewind_proxy.cli.opening import (
    JsonOption,
    StoreOption,
    open_log,
    open_store,
    reader_of,
    settings_for,
    step_named,
)
from rewind_proxy.cli.output import console, print_json, print_lines
from rewind_proxy.explain.runs import part
from rewind_proxy.explain.step import explain_step

_DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Add `explain` and `diff`."""
    app.command("explain", rich_help_panel=PANEL)(explain)
    app.command("diff", rich_help_panel=PANEL)(diff)


def explain(
    step: Annotated[
        str,
        typer.Argument(metavar="STEP", help="A step: RUN.NUMBER as x-rewind-step has it, or last.NUMBER."),
    ],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain how a call was answered, or why it was not: recording, rules needed, nearest miss."""
    settings = settings_for(store)
    reader = reader_of(settings)
    with open_log(settings) as log, open_store(settings, reader) as opened:
        explanation = explain_step(step_named(step, log, opened), opened, reader)
    if as_json:
        print_json(explanation.to_json())
    else:
        print_lines(console(), explanation.lines())


def diff(
    a: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, the start of one, or `last`.")],
    b: Annotated[str, typer.Argument(metavar="RUN", help="Another one.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where two runs part: the first model call whose requests differ, and where they do.

    Exit status 0 when they ask for the same, 1 when they part.
    """
    settings = settings_for(store)
    reader = reader_of(settings)
    with open_log(settings) as log, open_store(settings, reader) as opened:
        runs = [log.run(each) for each in (a, b)]
        ours, theirs = ((run, log.steps(run.id)) for run in runs)
        parting = part(ours, theirs, opened, log, reader, settings.match)
    if as_json:
        print_json(parting.to_json())
    else:
        print_lines(console(), parting.lines())
    if not parting.same:
        raise typer.Exit(_DIFFERENT)
