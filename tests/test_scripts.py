"""The scripts of the checkout, as they are called from elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def test_a_link_to_the_command_leads_to_its_checkout(tmp_path: Path) -> None:
    """`ln -s …/scripts/rewind ~/bin` works, through a second and a relative link too."""
    (checkout := tmp_path / "checkout" / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPTS / "rewind", checkout / "rewind")
    (checkout / "_env").write_text('install() { :; }\nvenv="$(dirname "${BASH_SOURCE[0]}")/venv"\n')
    (checkout / "venv" / "bin").mkdir(parents=True)
    command = checkout / "venv" / "bin" / "rewind"
    command.write_text('#!/bin/sh\necho "ran $*"\n')
    command.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "own").symlink_to("../checkout/scripts/rewind")
    (tmp_path / "rewind").symlink_to(tmp_path / "bin" / "own")
    for called in (checkout / "rewind", tmp_path / "bin" / "own", tmp_path / "rewind"):
        ran = subprocess.run([called, "ls", "--json"], cwd="/", capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.stderr) == ("ran ls --json\n", "")
