"""The command in a project of its own, with a shelf of recordings to look at."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from cli.shelf import Call, Shelf
from rewind_proxy.cli.app import main

_OF_THE_SHELL = ("COLUMNS", "CI", "VISUAL", "EDITOR")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of its own, and nothing that the shell set."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REWIND_") or name in _OF_THE_SHELL]:
        monkeypatch.delenv(name)


@pytest.fixture
def rewind(place: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command in this process, in the project: (exit status, standard output, standard error).

    `typed` is standard input, `columns` how wide the screen is.
    """

    def call(
        *arguments: object, typed: str | None = None, columns: int | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rewind", *map(str, arguments)])
        if typed is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capfd.readouterr()
        code = stopped.value.code
        return (code if isinstance(code, int) else 0), out, err

    return call


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)
