"""Progress bars on standard error, so that they never mix with what a verb prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rewind_proxy.cli.output import console
from rewind_proxy.matching.opening import Progress as Tell
from rewind_proxy.matching.opening import Watch


@contextmanager
def progress_bars() -> Iterator[Watch]:
    """A bar for each thing that takes a while, once it has begun; nothing where nobody looks at a screen."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bars = Progress(
        *columns, TimeRemainingColumn(), console=screen, transient=True, disable=not screen.is_terminal
    )

    def watch(what: str) -> Tell:
        task = bars.add_task(what, total=None, visible=False)

        def tell(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, visible=True)

        return tell

    with bars:
        yield watch
