"""The command in a project of its own, with a shelf of recordings to look at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cli.shelf import Call, Shelf
from rewind_proxy.cli.app import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of its own, and no width that the shell set."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REWIND_") or name in ("COLUMNS", "CI")]:
        monkeypatch.delenv(name)


@pytest.fixture
def rewind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command in this process: (exit status, standard output, standard error)."""

    def call(*arguments: str, columns: int | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rewind", *arguments])
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        code = stopped.value.code
        return (code if isinstance(code, int) else 0), out, err

    return call


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)
