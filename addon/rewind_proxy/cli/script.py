"""`rewind script-path`: where the script is that `mitmdump -s` loads."""

from __future__ import annotations

from pathlib import Path

import typer

import rewind_proxy
from rewind_proxy.errors import RewindError

SCRIPT_NAME = "rewind.py"


def register(app: typer.Typer) -> None:
    """Add `script-path`."""
    app.command("script-path", rich_help_panel="Set up")(script_path_command)


def script_path_command() -> None:
    """Print the path of the script for `mitmdump -s "$(rewind script-path)"`."""
    typer.echo(str(script_path()))


def script_path(package: Path | None = None) -> Path:
    """The script: inside the package in a wheel, beside it in a checkout. `RewindError` if neither is."""
    folder = package or Path(rewind_proxy.__file__).parent
    # The wheel's place first: beside an installed package, `rewind.py` would be another project's module.
    for candidate in (folder / "script" / SCRIPT_NAME, folder.parent / SCRIPT_NAME):
        if candidate.is_file():
            return candidate
    raise RewindError(
        f"{SCRIPT_NAME} is neither in {folder / 'script'} nor in {folder.parent}: install Rewind anew"
    )
