"""What the command does with the files that it is told to write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rewind_proxy.cli.output import make_way
from rewind_proxy.errors import RewindError


def test_what_an_earlier_command_wrote_goes(tmp_path: Path) -> None:
    """Its folder is made where it is missing, and nothing is left in it."""
    for file in (tmp_path / "old.json", tmp_path / "new" / "report.json"):
        if file.parent == tmp_path:
            file.write_text("old")
        make_way(file, "the report")
        assert (file.parent.is_dir(), file.exists()) == (True, False)


def test_what_is_no_plain_file_stays(tmp_path: Path) -> None:
    """`--report /dev/stdout` is a link to a pipe: neither is removed, nor waited for."""
    os.mkfifo(pipe := tmp_path / "pipe")
    (link := tmp_path / "link").symlink_to(pipe)
    (target := tmp_path / "target").write_text("kept")
    (other := tmp_path / "other").symlink_to(target)
    for file in (pipe, link, other, Path("/dev/null")):
        make_way(file, "the report")
    assert (pipe.is_fifo(), link.is_symlink(), other.read_text()) == (True, True, "kept")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder, or a file for a folder: with the reason, before anything is run."""
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "report.json"):
        with pytest.raises(
            RewindError, match=rf"the report {place} cannot be written \(.+\): name another place"
        ):
            make_way(place, "the report")
