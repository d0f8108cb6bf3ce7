"""The command as a whole: help, version, wrong calls, and how errors end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rewind_proxy
from rewind_proxy.cli.app import GROUPS, main
from rewind_proxy.cli.output import duration, plural, safe, safe_line, size, tokens
from rewind_proxy.cli.script import script_path
from rewind_proxy.errors import RewindError

Outcome = tuple[int, str, str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Outcome:
    monkeypatch.setattr(sys, "argv", ["rewind", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    return (stopped.value.code if isinstance(stopped.value.code, int) else 0), out, err


@pytest.mark.usefixtures("project")
class TestCommand:
    def test_alone_it_prints_help(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`rewind` alone is a question: it is answered by the help, in groups, with status 0."""
        status, out, err = call(capsys, monkeypatch)
        assert (status, err) == (0, "")
        assert "Usage: rewind" in out
        assert "Look" in out
        assert "script-path" in out

    @pytest.mark.parametrize("verb", [("--help",), ("-h",), ("ls", "--help"), ("show", "-h")])
    def test_help(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
    ) -> None:
        """Every verb has help under both spellings."""
        status, out, _ = call(capsys, monkeypatch, *verb)
        assert (status, "Usage: rewind" in out) == (0, True)

    def test_paragraphs_of_help_fill_the_screen(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are not broken where the source is; a setting names the words it takes, and its default."""
        monkeypatch.setenv("COLUMNS", "240")
        _, out, _ = call(capsys, monkeypatch, "run", "--help")
        assert "else 5 when a recording failed; else the command's own." in out
        assert "(auto | replay | record | passthrough; default auto, replay in CI)" in out

    def test_help_shows_no_type_where_no_value_is_taken(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A switch takes none; a setting's value has a word for what it is."""
        _, out, _ = call(capsys, monkeypatch, "run", "--help")
        assert "bool" not in out
        assert "str" not in [word.strip("<>") for word in out.partition("Settings")[2].split()]
        shown = {line.split()[1]: line.split()[2] for line in out.splitlines() if line.startswith("│ --")}
        assert (shown["--mode"], shown["--tail-n"], shown["--rebase"]) == ("WORD", "N", "true|false")
        assert "bool" not in call(capsys, monkeypatch)[1]

    @pytest.mark.parametrize("verb", ["canon", "test-match", "import"])
    def test_help_has_the_settings_that_a_verb_reads(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        """Those of a proxy are no flags of a verb that starts none."""
        _, out, _ = call(capsys, monkeypatch, verb, "--help")
        flags = {word for word in out.split() if word.startswith("--")}
        assert {"--store", "--hosts", "--scrub-off", "--redact-off"} <= flags
        assert not flags & {"--fault", "--pace", "--mode", "--upstream", "--from-step"}

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("ls", "--limit", "x"), "Invalid value for '--limit' / '-n': a whole number is needed."),
            (("ls", "--limit", "-1"), "'-n': it should be greater than or equal to 0"),
            (("env", "--shell", "tcsh"), "Invalid value for '--shell': 'tcsh' is not one of 'sh', 'fish'"),
        ],
    )
    def test_a_bad_value_is_told_in_our_words(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        arguments: tuple[str, ...],
        said: str,
    ) -> None:
        """Not in those of the library that reads it."""
        monkeypatch.setenv("COLUMNS", "200")
        status, _, err = call(capsys, monkeypatch, *arguments)
        assert (status, said in err) == (2, True)

    def test_version(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """`--version` prints the package's."""
        assert call(capsys, monkeypatch, "--version")[:2] == (0, f"rewind {rewind_proxy.__version__}\n")

    @pytest.mark.parametrize(
        "arguments", [("lss",), ("ls", "--jsn"), ("show",), ("ls", "--limit", "-1"), ("ls", "--limit", "x")]
    )
    def test_a_wrong_call_is_status_2(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
    ) -> None:
        """What cannot be understood prints usage on standard error and ends with 2."""
        status, out, err = call(capsys, monkeypatch, *arguments)
        assert (status, out) == (2, "")
        assert "Usage: rewind" in err

    def test_an_error_of_ours_is_one_line(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A misspelt variable ends with 1 and one line that names it, without a traceback."""
        monkeypatch.setenv("REWIND_MOD", "replay")
        status, out, err = call(capsys, monkeypatch, "ls")
        assert (status, out) == (1, "")
        assert err.startswith(
            "rewind: variable REWIND_MOD is not a setting of Rewind; did you mean REWIND_MODE?"
        )
        assert err.count("\n") == 1

    def test_a_store_that_cannot_be_read_is_one_line(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Path
    ) -> None:
        """A damaged store ends with 1 and names its place."""
        (project / "store" / "1").mkdir(parents=True)
        (project / "store" / "CURRENT").write_text("1\n")
        (project / "store" / "1" / "data.mdb").write_bytes(b"garbage" * 1000)
        status, _, err = call(capsys, monkeypatch, "ls", "--store", "store")
        assert (status, err.count("\n")) == (1, 1)
        assert str(project / "store") in err

    def test_an_error_cannot_act_on_the_terminal(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Control characters of an argument come back escaped."""
        _, _, err = call(capsys, monkeypatch, "steps", "\x1b[31m")
        assert "\x1b" not in err

    def test_groups_register_something(self) -> None:
        """Each module in the list brings verbs."""
        assert all(callable(group.register) for group in GROUPS)


class TestScriptPath:
    def test_checkout(self, tmp_path: Path) -> None:
        """In a checkout the script stands beside the package."""
        (tmp_path / "rewind_proxy").mkdir()
        (tmp_path / "rewind.py").touch()
        assert script_path(tmp_path / "rewind_proxy") == tmp_path / "rewind.py"

    def test_wheel(self, tmp_path: Path) -> None:
        """In a wheel it stands inside, and a module of the same name beside the package is another's."""
        inside = tmp_path / "rewind_proxy" / "script" / "rewind.py"
        inside.parent.mkdir(parents=True)
        inside.touch()
        (tmp_path / "rewind.py").touch()
        assert script_path(tmp_path / "rewind_proxy") == inside

    def test_neither(self, tmp_path: Path) -> None:
        """Where there is none, both places are named."""
        with pytest.raises(RewindError, match="neither in"):
            script_path(tmp_path / "rewind_proxy")

    @pytest.mark.usefixtures("project")
    def test_verb(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """The verb prints the path alone, in one line however long, for `$(…)`."""
        monkeypatch.setenv("COLUMNS", "10")
        assert call(capsys, monkeypatch, "script-path")[:2] == (0, f"{script_path()}\n")


class TestWords:
    @pytest.mark.parametrize(
        ("milliseconds", "text"),
        [(0, "0 ms"), (999, "999 ms"), (4200, "4.2 s"), (59_949, "59.9 s"), (59_960, "1 min 0 s"),
         (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min")],
    )  # fmt: skip
    def test_duration(self, milliseconds: int, text: str) -> None:
        """A time reads in the unit that fits it."""
        assert duration(milliseconds) == text

    @pytest.mark.parametrize(
        ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 * 2**30, "3.0 GiB")]
    )
    def test_size(self, count: int, text: str) -> None:
        """Bytes read in binary units."""
        assert size(count) == text

    @pytest.mark.parametrize(
        ("read", "written", "text"),
        [(0, 0, ""), (999, 1, "999→1"), (1200, 0, "1.2k→0"), (999_950, 1_000_000, "1.0M→1.0M")],
    )
    def test_tokens(self, read: int, written: int, text: str) -> None:
        """Tokens in and out read in three digits."""
        assert tokens(read, written) == text

    def test_plural(self) -> None:
        """One has no s."""
        assert (plural(1, "run"), plural(1200, "run")) == ("1 run", "1,200 runs")

    def test_safe(self) -> None:
        """Control characters become visible, tabs and line ends stay; in one line they become blanks."""
        assert safe("a\x1b[0m\tb\r\nc\rd\ud83d") == "a\\x1b[0m\tb\nc\\x0dd\\ud83d"
        assert safe_line("a \r\n\t b\x00") == "a b\\x00"
