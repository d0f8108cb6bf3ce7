"""`rewind check`: what keeps a store from being fit for CI, each with the command that mends it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.shelf import Call
from matching.recorded_projects import START, Project, request, settings_at
from porting.stores import CHAT
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.app import main
from rewind_proxy.store import Store

pytestmark = pytest.mark.usefixtures("place")

Run = Callable[..., tuple[int, str]]
FIRST, SECOND = "20261130-090001-aaaa", "20261130-090002-aaaa"


@pytest.fixture
def rewind(rewind: Call) -> Run:
    """Runs the command in this process: exit status, and standard output."""

    def call(*arguments: str) -> tuple[int, str]:
        status, out, _ = rewind(*arguments)
        return status, out

    return call


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project under the default settings."""
    return Project(settings_at(tmp_path))


def ask(text: str) -> JsonObject:
    """The body of a chat request."""
    return {"model": "m1", "messages": [{"role": "user", "content": text}]}


def checked(rewind: Run) -> JsonObject:
    """The JSON of a check, whose status agrees with it."""
    code, out = rewind("check", "--json")
    found: JsonObject = json.loads(out)
    assert code == (0 if found["ok"] else 1)
    return found


def findings(rewind: Run) -> list[tuple[object, object, object]]:
    """(kind, cassette, mend) of what a check finds."""
    found = checked(rewind)["findings"]
    assert isinstance(found, list)
    return [(each["kind"], each.get("cassette"), each["mend"]) for each in found if isinstance(each, dict)]


def test_a_store_as_it_should_be_passes(rewind: Run, project: Project) -> None:
    """What the newest run recorded is used: nobody had the occasion to replay it yet."""
    project.record(request(ask("a")))
    assert checked(rewind) == {
        "store": str(project.settings.store),
        "recordings": 1,
        "findings": [],
        "notes": [],
        "ok": True,
    }
    assert rewind("check") == (0, "1 recording\nnothing unused, secret or stale\n")


def test_a_store_that_is_missing_has_nothing_wrong(rewind: Run) -> None:
    """It is empty, and that is said."""
    assert checked(rewind)["ok"] is True
    assert rewind("check")[1].startswith("No recordings in ")


@pytest.mark.parametrize("verb", ["check", "verify"])
@pytest.mark.parametrize("named", ["flag --store", "variable REWIND_STORE", "rewind.toml"])
def test_a_store_that_is_named_has_to_be_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    named: str,
) -> None:
    """A misspelt one would pass as an empty store: it is an error with its path, from whatever source."""
    flags = ["--store", "typo"] if named.startswith("flag") else []
    if named.startswith("variable"):
        monkeypatch.setenv("REWIND_STORE", "typo")
    if named == "rewind.toml":
        (tmp_path / named).write_text('store = "typo"\n')
    monkeypatch.setattr(sys, "argv", ["rewind", verb, *flags])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (1, "")
    assert f"{named}: there is no store at {tmp_path / 'typo'}: " in err
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("verb", ["check", "verify"])
def test_a_store_that_is_there_and_empty_passes(rewind: Run, tmp_path: Path, verb: str) -> None:
    """Nothing in it is unused, secret or stale; that it has nothing is said."""
    with Store.open(tmp_path / "empty", settings_digest="ab" * 8):
        pass
    code, out = rewind(verb, "--store", "empty")
    assert (code, out.startswith("No recordings in ")) == (0, True)


def test_what_no_run_replayed_is_unused(rewind: Run, project: Project) -> None:
    """It is named with the command that deletes just that."""
    used = project.record(request(ask("a")), b'{"choices": [1]}', run=FIRST)
    unused = project.record(request(ask("b")), b'{"choices": [2]}', run=FIRST)
    project.log(1, cassette=used.id, run=SECOND, tier="exact", at=START + 100)
    assert findings(rewind) == [("unused", unused.id, "rewind prune --unused --yes")]
    code, out = rewind("check")
    assert code == 1
    assert "1 unused · rewind prune --unused --yes" in out
    assert f"{unused.id[:12]}  POST api.openai.com/v1/chat/completions, recorded " in out


def test_the_file_of_an_unused_recording_is_named(rewind: Run, project: Project, tmp_path: Path) -> None:
    """A folder of recordings as text gives back what is pruned: the file goes first."""
    project.record(request(ask("a")), run=FIRST)
    assert rewind("export", "-o", "cassettes")[0] == 0
    project.log(1, cassette=None, run=SECOND, tier="miss", at=START + 100)
    used = project.record(request(ask("b")), b'{"choices": [2]}', run=SECOND)
    assert used.run == SECOND
    (tmp_path / "rewind.toml").write_text('cassettes = "cassettes"\n')
    ((kind, _, mend),) = findings(rewind)
    assert (kind, mend) == ("unused", "delete its file, then rewind prune --unused --yes")
    (file,) = tmp_path.glob("cassettes/**/*.json")
    assert str(file) in rewind("check")[1]
    file.write_text("{}")
    assert [kind for kind, _, _ in findings(rewind)] == ["unused", "damaged"]
    file.unlink()
    assert [mend for _, _, mend in findings(rewind)] == ["rewind prune --unused --yes"]


def test_without_a_run_in_the_log_use_is_not_known(rewind: Run, project: Project, tmp_path: Path) -> None:
    """A fresh checkout has recordings and no log: that is said, and the rest is checked."""
    project.record(request(ask("a")))
    moved = tmp_path / "committed"
    project.settings.store.rename(moved)
    code, out = rewind("check", "--store", str(moved))
    assert code == 0
    assert "which recordings are used is not known" in out
    assert "nothing secret or stale" in out


def test_a_credential_by_the_rules_of_today_is_found(rewind: Run, project: Project, tmp_path: Path) -> None:
    """In request and log; that the list has grown is named, too; the value never is."""
    record = project.record(request(ask("it is zebra-17")))
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra-[0-9]+"]\n')
    found = findings(rewind)
    assert ("secret", record.id, "rewind maintain") in found
    assert ("stale", None, "rewind maintain") in found
    assert "zebra" not in rewind("check")[1]


def test_a_credential_in_the_folder_of_cassettes_is_found(
    rewind: Run, project: Project, tmp_path: Path
) -> None:
    """By the rules of today, whatever the store knows of the file; the command that is named mends it."""
    project.record(request(ask("it is zebra-17")), json.dumps(CHAT).encode())
    assert rewind("export", "-o", "cassettes")[0] == 0
    shutil.rmtree(project.settings.store.parent)
    [file] = (tmp_path / "cassettes").rglob("*.json")
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra-[0-9]+"]\ncassettes = "cassettes"\n')
    assert findings(rewind) == [("secret", None, "rewind maintain")]
    assert f"{file}" in rewind("check")[1].replace("\n", "")
    assert rewind("maintain")[0] == 0
    assert findings(rewind) == []
    assert not file.exists()
    assert [*(tmp_path / "cassettes").rglob("*.json")]


def test_what_is_not_indexed_for_these_settings_is_stale(
    rewind: Run, project: Project, tmp_path: Path
) -> None:
    """A committed store under other settings is indexed anew at each start."""
    project.record(request(ask("a")))
    (tmp_path / "rewind.toml").write_text("tail_n = 1\n")
    assert findings(rewind) == [("stale", None, "rewind maintain")]
    assert "1 recording not indexed under the settings in force" in rewind("check")[1]


def test_what_another_version_wrote_is_stale(
    rewind: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both versions are named."""
    record = project.record(request(ask("a")))
    monkeypatch.setattr("rewind_proxy.cli.check.HASH_VERSION", 2)
    assert findings(rewind) == [("stale", record.id, "rewind maintain")]
    assert "hash version 1, this Rewind's is 2" in rewind("check")[1]


def test_what_is_damaged_is_found(rewind: Run, project: Project) -> None:
    """As `verify` finds it."""
    record = project.record(request(ask("a")), b"x" * 50)
    with Store.open(project.settings.store, settings_digest="any") as store, store._place.write() as txn:
        key = b"b" + bytes.fromhex(record.answer_sha256)
        value = txn.get("blobs", key)
        assert value is not None
        txn.put("blobs", key, value[:-1] + bytes([value[-1] ^ 1]))
    assert ("damaged", record.id) in [(kind, cassette) for kind, cassette, _ in findings(rewind)]


def test_the_commands_that_are_named_mend_what_is_found(
    rewind: Run, project: Project, tmp_path: Path
) -> None:
    """Typed as they are printed, one after another, they leave nothing to find."""
    project.record(request(ask("it is zebra-17")), b'{"choices": [1]}', run=FIRST)
    used = project.record(request(ask("it is zebra-18")), b'{"choices": [2]}', run=FIRST)
    project.log(1, cassette=used.id, run=SECOND, tier="exact", at=START + 100)
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra-[0-9]+"]\ntail_n = 1\n')
    named = dict.fromkeys(str(mend) for _, _, mend in findings(rewind))
    assert list(named) == ["rewind prune --unused --yes", "rewind maintain"]
    for command in named:
        rewind(*shlex.split(command)[1:])
    assert findings(rewind) == []
