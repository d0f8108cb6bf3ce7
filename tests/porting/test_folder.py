"""A folder of recordings as text: the source of a store, merged by git, changed behind nobody's back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from porting.stores import CHAT, NOW, chat, export, heard, opened, put
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import PortingError
from rewind_proxy.porting import text
from rewind_proxy.porting.folder import ReadIn, Written, read_in, redact_again, write
from rewind_proxy.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the project."""
    return tmp_path / "cassettes"


def record(store: Path, folder: Path, *prompts: str, digest: str = "ab" * 32, whole: bool = False) -> Written:
    """Record some prompts into a store, and write it all into a folder."""
    with opened(store) as (into, chosen):
        entries = [heard(chat(prompt), at=NOW + at) for at, prompt in enumerate(prompts)]
        put(into, chosen, entries, digest=digest)
        return write(folder, export(into), whole=whole)


def read(store: Path, folder: Path) -> tuple[ReadIn, list[str]]:
    """Read a folder in; what that did, and the prompts that the store has then, in order."""
    with opened(store) as (into, chosen):
        done = read_in(folder, into, chosen, NOW, lambda _: lambda _done, _total: None)
        return done, [prompt_of(into.store.request_body(each)) for each in into.store.cassettes()]


def prompt_of(body: JsonValue) -> str:
    """What was asked."""
    match body:
        case {"messages": [{"content": str(prompt)}]}:
            return prompt
    raise AssertionError(body)


def files(folder: Path) -> list[Path]:
    """The files of a folder, in the order of their names."""
    return sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.name)


def reasons(orphans: Sequence[object]) -> list[str]:
    """What is said of files that are not used."""
    return [str(orphan) for orphan in orphans]


def test_a_fresh_store_has_what_the_folder_has(tmp_path: Path, folder: Path) -> None:
    """In recorded order, once, and nothing is written again."""
    record(tmp_path / "a", folder, "one", "two")
    done, prompts = read(tmp_path / "b", folder)
    assert (done.recordings, done.orphans, prompts) == (2, [], ["one", "two"])
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files(folder)}
    done, prompts = read(tmp_path / "b", folder)
    assert (done.recordings, prompts) == (0, ["one", "two"])
    again = record(tmp_path / "b", folder)
    assert (again.written, again.unchanged) == ([], 2)
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files(folder)} == before


def test_branches_merge_without_conflicts(tmp_path: Path, folder: Path) -> None:
    """What two branches recorded, even one call with one answer, has files of different names."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    record(tmp_path / "a", ours, "same", "mine", digest="ab" * 32)
    record(tmp_path / "b", theirs, "same", "yours", digest="cd" * 32)
    names = [file.name for branch in (ours, theirs) for file in files(branch)]
    assert len(set(names)) == 4
    for branch in (ours, theirs):
        shutil.copytree(branch, folder, dirs_exist_ok=True)
    done, prompts = read(tmp_path / "c", folder)
    assert (done.recordings, done.orphans, sorted(prompts)) == (4, [], ["mine", "same", "same", "yours"])


def test_a_broken_merge_is_named_and_the_rest_is_used(tmp_path: Path, folder: Path) -> None:
    """A file with the marks of a conflict in it is left as it is."""
    record(tmp_path / "a", folder, "one", "two")
    broken, _ = files(folder)
    whole = broken.read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    conflict = "".join(["<<<<<<< ours\n", *lines[3:5], "=======\n", *lines[3:5], ">>>>>>> theirs\n"])
    broken.write_text("".join(lines[:3]) + conflict + "".join(lines[5:]), encoding="utf-8")
    done, prompts = read(tmp_path / "b", folder)
    assert prompts == ["two"]
    assert reasons(done.orphans) == [
        f"{broken}: not JSON (line 4, column 1): a conflict of a merge stands in it"
    ]
    assert "<<<<<<<" in broken.read_text(encoding="utf-8")


@pytest.mark.parametrize("warm", [True, False])
def test_an_edited_file_is_named_and_not_used(warm: bool, tmp_path: Path, folder: Path) -> None:
    """Whether the store has the recording that it was or not: the same on every machine."""
    record(tmp_path / "a", folder, "one", "two")
    edited, _ = files(folder)
    edited.write_text(edited.read_text(encoding="utf-8").replace("one", "three"), encoding="utf-8")
    done, prompts = read(tmp_path / ("a" if warm else "b"), folder)
    assert "three" not in prompts
    [said] = reasons(done.orphans)
    assert said.startswith(f"{edited}: it was edited")


def test_the_layout_of_a_file_does_not_matter(tmp_path: Path, folder: Path) -> None:
    """Line ends that git changed, and another name, leave a recording what it is."""
    record(tmp_path / "a", folder, "one")
    [file] = files(folder)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    file.rename(folder / "renamed.json")
    done, prompts = read(tmp_path / "b", folder)
    assert (done.orphans, prompts) == ([], ["one"])


def test_files_of_others_are_named(tmp_path: Path, folder: Path) -> None:
    """What is no recording, or to a host that the settings do not know, is not used and says why."""
    record(tmp_path / "a", folder, "one")
    [file] = files(folder)
    (folder / "package.json").write_text("{}", encoding="utf-8")
    (folder / "README.md").write_text("text", encoding="utf-8")
    with opened(tmp_path / "c", hosts={"llm.corp.example": "chat_completions"}) as (into, chosen):
        put(into, chosen, [heard(host="llm.corp.example")])
        write(folder, export(into), whole=False)
    done, prompts = read(tmp_path / "b", folder)
    assert prompts == ["one"]
    assert file.exists()
    unknown, other = sorted(reasons(done.orphans), key=lambda said: "package.json" in said)
    assert unknown.endswith("'llm.corp.example' is no known host: add it to `hosts`")
    assert other == f"{folder / 'package.json'}: no recording that `rewind export` wrote"


def test_a_forged_name_of_a_run_is_an_orphan(tmp_path: Path, folder: Path) -> None:
    """Even where the digest fits: it is named, and the rest is used."""
    record(tmp_path / "a", folder, "one", "two")
    forged, _ = files(folder)
    document = json.loads(forged.read_text(encoding="utf-8")) | {"run": ".."}
    rest = {name: value for name, value in document.items() if name not in ("rewind", "sha256")}
    forged.write_text(
        text.pretty({"rewind": 1, "sha256": text.digest(rest), **rest}) + "\n", encoding="utf-8"
    )
    done, prompts = read(tmp_path / "b", folder)
    assert prompts == ["two"]
    assert reasons(done.orphans) == [f'{forged}: "run" is no name of a run']


def test_two_that_read_in_at_once_keep_each_recording_once(tmp_path: Path, folder: Path) -> None:
    """The second waits for the first, and finds it done."""
    record(tmp_path / "a", folder, *(f"prompt {number}" for number in range(20)))
    with opened(tmp_path / "b") as (into, chosen), ThreadPoolExecutor(4) as pool:
        watch = lambda _: lambda _done, _total: None  # noqa: E731  # nobody looks
        done = [pool.submit(read_in, folder, into, chosen, NOW, watch) for _ in range(4)]
        assert sum(each.result().recordings for each in done) == 20
        assert into.store.count() == 20


def test_a_name_that_is_no_text_can_be_told(tmp_path: Path, folder: Path) -> None:
    """Logs and reports are UTF-8 on one line, whatever a file is called."""
    folder.mkdir()
    (folder / os.fsdecode(b"\xff\x1b[31m\n.json")).write_text("{}", encoding="utf-8")
    done, _ = read(tmp_path / "a", folder)
    [said] = reasons(done.orphans)
    assert said.encode().startswith(f"{folder}/??[31m?.json: ".encode())


def test_what_was_redacted_anew_takes_its_file_s_place(tmp_path: Path, folder: Path) -> None:
    """A longer list of rules leaves no credential behind, and says which file went."""
    secret = "corp-" + "0123456789abcdef" * 2
    record(tmp_path / "a", folder, f"my key is {secret}")
    [old] = files(folder)
    assert secret in old.read_text(encoding="utf-8")
    with opened(tmp_path / "a", redact_patterns=("corp-[0-9a-f]{32}",)) as (into, _):
        done = write(folder, export(into), whole=True)
    [new] = files(folder)
    assert (done.replaced, done.written, done.orphans) == ([old], [new], [])
    assert secret not in new.read_text(encoding="utf-8")


def test_a_longer_list_of_rules_reaches_the_folder(tmp_path: Path, folder: Path) -> None:
    """What the store was redacted by again, its files are; a folder that its name gave goes, others stay."""
    secret = "corp-" + "0123456789abcdef" * 2
    with opened(tmp_path / "a", session=secret) as (into, chosen):
        put(into, chosen, [heard(chat(f"my key is {secret}"))])
        write(folder, export(into), whole=False)
    record(tmp_path / "a", folder, "harmless", digest="cd" * 32)
    with opened(tmp_path / "a", redact_patterns=("corp-[0-9a-f]{32}",)) as (into, _):
        [gone] = redact_again(folder, into, None)
        assert secret in str(gone)
        assert redact_again(folder, into, None) == []
    assert len(files(folder)) == 2
    assert not any(secret in f"{each} {each.read_text()}" for each in files(folder))
    assert not any(secret in str(each) for each in folder.rglob("*"))


def test_a_link_never_leads_out_of_the_folder(tmp_path: Path, folder: Path) -> None:
    """A folder of a session that is a link to somewhere else gets nothing."""
    with opened(tmp_path / "a", session="s1") as (into, chosen):
        put(into, chosen, [heard()])
        (tmp_path / "outside").mkdir()
        folder.mkdir()
        (folder / "s1").symlink_to(tmp_path / "outside")
        with pytest.raises(PortingError, match="leads out of"):
            write(folder, export(into), whole=False)
    assert files(tmp_path / "outside") == []


def test_a_file_that_claims_a_size_is_not_read(tmp_path: Path, folder: Path) -> None:
    """It is named, and the rest is used."""
    record(tmp_path / "a", folder, "one")
    with (folder / "huge.json").open("wb") as huge:
        huge.truncate(2**33)
    done, prompts = read(tmp_path / "b", folder)
    assert (reasons(done.orphans), prompts) == ([f"{folder}/huge.json: larger than 512 MiB"], ["one"])


def test_a_file_that_the_store_does_not_have_is_named(tmp_path: Path, folder: Path) -> None:
    """When everything is exported, what is left in the folder is an orphan, and stays."""
    record(tmp_path / "a", folder, "one", "two")
    one, two = files(folder)
    done = record(tmp_path / "b", folder, "three", digest="cd" * 32, whole=True)
    assert sorted(each.file for each in done.orphans) == sorted([one, two])
    assert all(file.exists() for file in (one, two))


def test_a_store_that_cannot_be_written_must_have_it_all(tmp_path: Path, folder: Path) -> None:
    """Else the folder would not be what answers: the start stops and says so."""
    record(tmp_path / "a", folder, "one")
    with opened(tmp_path / "a") as (into, chosen):
        path, digest = into.store.path, into.reader.settings_digest
    for missing in (False, True):
        if missing:
            record(tmp_path / "b", folder, "two", digest="cd" * 32)
        with opened(tmp_path / "c") as (other, chosen):
            readonly = Store.open(path, settings_digest=digest, readonly=True)
            with readonly:
                ready = type(other)(readonly, other.log, other.reader)
                watch = lambda _: lambda _done, _total: None  # noqa: E731  # nobody looks
                if missing:
                    with pytest.raises(PortingError, match="has 1 recordings that are not in"):
                        read_in(folder, ready, chosen, NOW, watch)
                else:
                    assert read_in(folder, ready, chosen, NOW, watch).recordings == 0


def test_a_folder_that_is_missing_is_empty_and_a_file_is_none(tmp_path: Path, folder: Path) -> None:
    """Nothing is made before there is something to write."""
    assert read(tmp_path / "a", folder) == (ReadIn(), [])
    assert not folder.exists()
    folder.write_text("", encoding="utf-8")
    with pytest.raises(PortingError, match="is no folder"):
        read(tmp_path / "a", folder)


def test_a_repeated_call_keeps_its_answers_in_order(tmp_path: Path, folder: Path) -> None:
    """Several answers to one request come back in recorded order."""
    with opened(tmp_path / "a") as (into, chosen):
        entries = [heard(answer={**CHAT, "id": name}, at=NOW) for name in ("first", "second", "third")]
        put(into, chosen, entries)
        write(folder, export(into), whole=True)
    with opened(tmp_path / "b") as (into, chosen):
        read_in(folder, into, chosen, NOW, lambda _: lambda _done, _total: None)
        bodies = [into.store.answer(each).body for each in into.store.cassettes()]
    assert [name for body in bodies for name in ("first", "second", "third") if name.encode() in body] == [
        "first",
        "second",
        "third",
    ]
