"""`rewind demo`: its claims are measured, it leaves nothing behind, and fails when a claim does not hold."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import typer
import zstandard
from rich.console import Console

from rewind_proxy.cli import demo
from rewind_proxy.cli.demo_run import DemoError, Session, run_agent
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.cli.demo_screen import Screen
from support.children import PYTHON_PATH, Finished, environment, rewind
from support.sockets import SocketLog

ESCAPE = "\x1b["


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def sockets(folder: Path) -> SocketLog:
    return SocketLog(folder / "sockets.jsonl")


@pytest.fixture(scope="module")
def played(folder: Path, sockets: SocketLog) -> Finished:
    """The demo, played to its end on a pipe, in a shell whose settings would spoil it."""
    (folder / "tmp").mkdir()
    spoilers = {"CI": "true", "REWIND_MODE": "passthrough", "HTTPS_PROXY": "http://127.0.0.1:9"}
    env = environment(folder, TMPDIR=str(folder / "tmp"), NO_PROXY="*", **spoilers)
    return rewind("demo", env=env | sockets.environment(PYTHON_PATH), cwd=folder, seconds=120)


def test_it_holds_what_it_claims(played: Finished) -> None:
    """Every claim is marked as true, and the status is 0."""
    assert played.status == 0, played.output
    assert played.stdout.count("✓") == 9
    assert "✗" not in played.stdout
    assert played.stderr == ""


def test_it_shows_the_four_acts_in_order(played: Finished) -> None:
    """Recording, replay, a miss and redaction come in this order, then what to do next."""
    assert re.findall(r"^━━ (.*?) ━+$", played.stdout, re.MULTILINE) == [
        "1  Record",
        "2  Replay, with the provider gone",
        "3  A miss, explained",
        "4  What is not in the store",
        "What next",
    ]


def test_it_shows_both_tiers_and_an_explained_miss(played: Finished) -> None:
    """An exact and a normalised hit are shown, and misses with path, values and the setting that helps."""
    for line in (
        r"title +\d.*  exact",
        r"turn 1 +\d.*  normalised",
        r"at \$\.messages\[1\]\.parts\[0\]\.text",
        r"- recorded +run `cat todo\.txt`: what is left\?",
        r"\+ live +run `cat todo\.txt`: what is done\?",
        r"would match with: ignore \+= reasoning_effort",
    ):
        assert re.search(line, played.stdout), line


def test_it_is_plain_and_narrow_on_a_pipe(played: Finished) -> None:
    """Without a terminal there are no colours, and no line is wider than 80 columns."""
    assert ESCAPE not in played.stdout
    assert max(len(line) for line in played.stdout.splitlines()) <= 80


def test_it_leaves_nothing_behind(played: Finished, folder: Path) -> None:
    """The temporary folder is gone, and the working directory holds nothing of it."""
    assert played.status == 0
    assert list((folder / "tmp").iterdir()) == []
    assert not (folder / ".rewind").exists()


def test_it_needs_no_network(played: Finished, sockets: SocketLog) -> None:
    """Nothing past loopback is dialled, and no name is looked up."""
    assert played.status == 0
    assert sockets.outward() == []


@pytest.fixture
def screen() -> tuple[Screen, io.StringIO]:
    output = io.StringIO()
    return Screen(Console(file=output, width=40, highlight=False, markup=False), is_terminal=True), output


def test_a_claim_that_does_not_hold_ends_in_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A demo in which something went otherwise says so and fails."""
    monkeypatch.setattr(demo.Demo, "play", lambda self: self.screen.check(False, "the sky is green"))
    with pytest.raises(typer.Exit) as ended:
        demo.demo_command()
    assert ended.value.exit_code == 1
    assert "✗ the sky is green" in capsys.readouterr().out


def test_a_credential_that_was_stored_is_noticed(screen: tuple[Screen, io.StringIO], tmp_path: Path) -> None:
    """The fourth act fails when a credential is in a file, also inside a compressed frame."""
    credentials = ("k" * 40, "t" * 40)
    body = zstandard.compress(f"[REDACTED] and {credentials[1]}".encode())
    (tmp_path / "data").write_bytes(b"before" + body + b"after")
    session = Session(0, "", {}, [], [], credentials)
    demo.Demo(screen[0], tmp_path).keep_secrets(session)
    assert len(screen[0].failures) == 1


def test_the_scan_looks_into_every_frame(tmp_path: Path) -> None:
    """Files are read raw and frames decompressed wherever they start; what only looks like one is skipped."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"raw-text" + zstandard.FRAME_HEADER + b"no frame at all")
    (tmp_path / "b").write_bytes(b"\0" * 17 + zstandard.compress(b"framed-text " * 9))
    (tmp_path / "empty").touch()
    found = scan(tmp_path, ["raw-text", "framed-text", "absent-text"])
    assert found.files == 2
    assert found.found == {"raw-text", "framed-text"}


def test_a_run_without_a_report_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When `rewind run` does not get as far as a report, the demo says what it said."""
    monkeypatch.setenv("PYTHONPATH", PYTHON_PATH)
    with pytest.raises(DemoError, match=r"ended with [12].*bogus"):
        run_agent(tmp_path, tmp_path, ["--mode", "bogus"], ["Hi"], print)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_output_is_wrapped_behind_a_bar_however_it_comes(
    screen: tuple[Screen, io.StringIO], size: int
) -> None:
    """A client's paragraphs are broken at blanks within the width, whatever the pieces they arrive in."""
    text = "\nyou     run it\nmodel   The quick brown fox jumps over the lazy dog \x1b[2J"
    gutter = screen[0].gutter()
    for start in range(0, len(text), size):
        gutter.write(text[start : start + size])
    gutter.end()
    assert [line.rstrip() for line in screen[1].getvalue().splitlines()] == [
        "  │ you     run it",
        "  │ model   The quick brown fox jumps",
        "  │         over the lazy dog \\x1b[2J",
    ]


def test_a_command_is_broken_as_a_shell_takes_it(screen: tuple[Screen, io.StringIO]) -> None:
    """A long command line goes on after a backslash."""
    screen[0].command(["rewind", "run", "--", "./agent", "a question of some length", "and another"])
    assert screen[1].getvalue().splitlines() == [
        "",
        "  $ rewind run -- ./agent \\",
        "        'a question of some length' \\",
        "        'and another'",
    ]
