"""`rewind maintain`, `verify` and `prune`: a store brought up to date, looked over, and made smaller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from case_tables import fake
from cli.shelf import Call, Shelf
from matching.recorded_projects import START, Project, read, request, settings_at
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.store import CassetteRecord, Store

pytestmark = pytest.mark.usefixtures("place")

KEY = fake("sk-proj-", 40)
DAY = 86_400


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project under the default settings."""
    return Project(settings_at(tmp_path))


def ask(text: str, **more: object) -> JsonObject:
    """The body of a chat request."""
    return {"model": "m1", "messages": [{"role": "user", "content": text}], **more}  # type: ignore[dict-item]


def said(text: str) -> bytes:
    """A chat answer."""
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def stored(project: Project, **changed: object) -> Store:
    """The project's store, to look at."""
    settings = project.settings.model_copy(update=changed)
    digest = Project(settings).reader.settings_digest
    return Store.open(settings.store, settings_digest=digest, readonly=True)


def result(answer: tuple[int, str, str]) -> JsonObject:
    """The JSON of a call that went well."""
    assert answer[0] == 0
    document: JsonObject = json.loads(answer[1])
    return document


# -- maintain


def test_maintain_redacts_what_new_rules_name(rewind: Call, project: Project, tmp_path: Path) -> None:
    """The rules of `rewind.toml` are in force afterwards; what they take out is in no file."""
    project.record(request(ask("it is zebra-17")))
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra-[0-9]+"]\n')
    done = result(rewind("maintain", "--json"))
    assert (done["rules_added"], done["rewritten"], done["indexed"], done["left_out"]) == (1, 1, 1, [])
    assert not scan(tmp_path / ".rewind", ["zebra-17"]).found
    again = result(rewind("maintain", "--json"))
    assert (again["rules_added"], again["rewritten"], again["recordings"]) == (0, 0, 1)


def test_maintain_indexes_for_the_settings_in_force(rewind: Call, project: Project) -> None:
    """Beside what is there: both find the recording."""
    live = request(ask("hi"))
    project.record(live)
    done = result(rewind("maintain", "--json", "--tail-n", "1"))
    assert done["indexed"] == 1
    for changed in ({}, {"tail_n": 1}):
        with stored(project, **changed) as store:
            reader = Project(project.settings.model_copy(update=changed)).reader
            assert not store.needs_index()
            assert len(store.lookup_normalised(read(reader, live).fingerprint)) == 1


def test_maintain_compacts_what_was_deleted(rewind: Call, project: Project) -> None:
    """The disk gets its room back, and nothing of it is left in freed pages."""
    for number in range(30):
        project.record(request(ask(f"q {number}")), said(f"SECRET-{number} " * 3000))
    with Store.open(project.settings.store, settings_digest="any") as store:
        store.delete([record.id for record in store.cassettes()][1:])
    done = result(rewind("maintain", "--json"))
    assert isinstance(done["bytes_before"], int)
    assert isinstance(done["bytes_after"], int)
    assert done["bytes_after"] < done["bytes_before"]
    assert not scan(project.settings.store, ["SECRET-7 "]).found
    assert rewind("verify")[0] == 0


def test_maintain_masks_answers_when_asked_to(rewind: Call, project: Project) -> None:
    """With `redact_answers` those that are there, too; ids and fingerprints stay."""
    record = project.record(request(ask("what is my key?")), said(f"It is {KEY}."))
    result(rewind("maintain", "--json"))
    with stored(project) as store:
        assert KEY.encode() in store.answer(record).body
    done = result(rewind("maintain", "--json", "--redact-answers", "true"))
    assert (done["answers_redacted"], done["rewritten"]) == (1, 1)
    with stored(project) as store:
        (found,) = store.lookup_exact(record.exact)
        assert found.id == record.id
        assert store.answer(found).body == said("It is [REDACTED].")
        assert not store.needs_index()
        assert store.check() == []
    assert not scan(project.settings.store, [KEY]).found
    assert result(rewind("maintain", "--json", "--redact-answers", "true"))["answers_redacted"] == 0


def test_maintain_writes_where_ci_would_only_replay(
    rewind: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is called for counts, not the mode that proxies would have."""
    project.record(request(ask("it is zebra-17")))
    monkeypatch.setenv("CI", "true")
    done = result(rewind("maintain", "--json", "--redact-patterns", "zebra-[0-9]+"))
    assert done["rewritten"] == 1


def test_maintain_says_what_it_left_out(rewind: Call, project: Project) -> None:
    """A recording that cannot be read cannot be redacted: it is named and counted, now and by `verify`."""
    project.record(request(ask("a")))
    damaged = project.record(request(ask("b")))
    with Store.open(project.settings.store, settings_digest="any") as store, store._place.write() as txn:
        txn.put("cassettes", b"s" + damaged.seq.to_bytes(8, "big"), b"0garbage")
    assert rewind("verify")[0] == 1
    code, out, _ = rewind("maintain", "--redact-patterns", "zebra")
    assert code == 0
    assert "1 record could not be read" in out
    assert damaged.id in out
    code, out, _ = rewind("verify", "--json")
    verified = json.loads(out)
    assert (code, verified["recordings"], len(verified["left_out"])) == (0, 1, 1)


@pytest.mark.parametrize("verb", [["maintain"], ["verify"], ["prune", "--unused"]])
def test_a_missing_store_is_an_empty_one(rewind: Call, tmp_path: Path, verb: list[str]) -> None:
    """Nothing to do is no error, and nothing is made."""
    code, out, _ = rewind(*verb)
    assert code == 0
    assert "No recordings in" in out
    result(rewind(*verb, "--json"))
    assert not (tmp_path / ".rewind").exists()


def test_maintain_reads_as_a_report(rewind: Call, project: Project) -> None:
    """Names and numbers, those that say nothing left out."""
    project.record(request(ask("hi")))
    code, out, _ = rewind("maintain")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["store", "recordings", "indexed", "store"]
    assert out.splitlines()[2].split() == ["indexed", "1"]


def test_maintain_says_which_recordings_have_no_index(rewind: Call, tmp_path: Path) -> None:
    """Side calls are found by method and path."""
    shelf = Shelf(tmp_path)
    shelf.record(ask("hi"), said("hello"))
    shelf.record(None, b"{}", cls="side", method="GET")
    told = dict(line.split(maxsplit=1) for line in map(str.strip, rewind("maintain")[1].splitlines()))
    assert (told["recordings"], told["indexed"]) == ("2", "1 (1 side call beside: no index)")


def test_stats_and_maintain_agree_on_the_disk(rewind: Call, project: Project) -> None:
    """The store and its log are told apart in the one, and summed up in the other."""
    project.record(request(ask("hi")))
    done = result(rewind("maintain", "--json"))
    held = result(rewind("stats", "--json"))["store"]
    assert isinstance(held, dict)
    parts = [held["bytes_on_disk"], held["bytes_of_log"]]
    assert sum(part for part in parts if isinstance(part, int)) == done["bytes_after"]
    lines = {line.split("  ")[0]: line for line in rewind("stats")[1].splitlines()}
    assert {"on disk", "log on disk"} <= lines.keys()


# -- verify


def test_a_sound_store_is_said_to_be_sound(rewind: Call, project: Project) -> None:
    """With what was looked at."""
    project.record(request(ask(f"my key is {KEY}")))
    code, out, _ = rewind("verify")
    assert (code, out) == (0, "1 recording, 1 run\nsound, and no credential in any request\n")
    assert result(rewind("verify", "--json")) == {
        "store": str(project.settings.store),
        "recordings": 1,
        "runs": 1,
        "damaged": [],
        "credentials": [],
        "answers": [],
        "quarantined": 0,
        "left_out": [],
        "ok": True,
    }


def test_verify_names_credentials_by_the_rules_of_today(
    rewind: Call, project: Project, tmp_path: Path
) -> None:
    """Recording, rule and path; the log too; never the credential. `maintain` mends it."""
    record = project.record(request(ask("it is zebra-17", x_new=["zebra-18"]), query="?a=zebra-19"))
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra-[0-9]+"]\n')
    code, out, _ = rewind("verify", "--json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    assert {(each.get("cassette"), each["where"]) for each in found["credentials"]} == {
        (record.id, "$.query[0][1]"),
        (record.id, "$.body.messages[0].content"),
        (record.id, "$.body.x_new[0]"),
        (None, "$.preview"),
    }
    assert {each["rule"] for each in found["credentials"]} == {"RW901"}
    assert "zebra" not in out
    code, out, _ = rewind("verify")
    assert code == 1
    assert f"{record.id[:12]}  RW901  $.body.messages[0].content" in out
    assert "step 1  RW901  $.preview" in out
    rewind("maintain")
    assert rewind("verify")[0] == 0


def test_verify_names_answers_that_repeat_a_credential_apart(rewind: Call, project: Project) -> None:
    """They were kept on purpose: no failure, unless `redact_answers` is on."""
    record = project.record(request(ask("a")), said(f"It is {KEY}."))
    stream = "".join(
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
        for piece in ("It is ", KEY[:12], KEY[12:], " ok")
    )
    streamed = project.record(request(ask("b")), stream.encode(), content_type="text/event-stream")
    code, out, _ = rewind("verify", "--json")
    found = json.loads(out)
    assert (code, found["credentials"]) == (0, [])
    assert [(each["cassette"], each["rule"]) for each in found["answers"]] == [
        (record.id, "RW101"),
        (streamed.id, "RW101"),
    ]
    assert found["answers"][0]["where"] == "$.choices[0].message.content"
    assert found["answers"][1]["where"].startswith("byte ")
    assert KEY[12:] not in out
    Path("rewind.toml").write_text("redact_answers = true\n")
    assert rewind("verify")[0] == 1
    rewind("maintain")
    assert rewind("verify")[0] == 0


def test_verify_finds_what_was_changed_on_disk(rewind: Call, project: Project) -> None:
    """One changed byte, and it names the cassette; nothing is changed by looking."""
    record = project.record(request(ask("a")), said("x" * 50))
    with Store.open(project.settings.store, settings_digest="any") as store, store._place.write() as txn:
        key = b"b" + bytes.fromhex(record.answer_sha256)
        value = txn.get("blobs", key)
        assert value is not None
        txn.put("blobs", key, value[:-1] + bytes([value[-1] ^ 1]))
    code, out, _ = rewind("verify", "--json")
    found = json.loads(out)
    assert code == 1
    assert record.id in {each.get("cassette") for each in found["damaged"]}
    assert "damaged" in rewind("verify")[1]


# -- prune


def recorded(project: Project, name: str, run: str) -> CassetteRecord:
    """A recording of a run."""
    return project.record(request(ask(name)), said(name), run=run)


RUNS = ("20261101-090000-aaaa", "20261102-090000-bbbb", "20261103-090000-cccc", "20261104-090000-dddd")


@pytest.fixture
def used(project: Project) -> dict[str, CassetteRecord]:
    """Four runs that recorded; the last also replayed what the first had."""
    names = ("one", "two", "three", "new")
    found = {name: recorded(project, name, run) for name, run in zip(names, RUNS, strict=True)}
    project.log(90, cassette=found["one"].id, run=RUNS[3], tier="normalised")
    return found


def listed(answer: tuple[int, str, str]) -> set[str]:
    """The ids that prune lists."""
    return {record["id"] for record in json.loads(answer[1])["recordings"]}


def left(project: Project) -> set[str]:
    """The ids that are still there."""
    with stored(project) as store:
        return {record.id for record in store.cassettes()}


def test_prune_lists_and_deletes_nothing_unasked(
    rewind: Call, project: Project, used: dict[str, CassetteRecord]
) -> None:
    """It says how to go on; the store is not touched."""
    before = scan(project.settings.store, [])
    code, out, _ = rewind("prune", "--unused")
    assert code == 0
    assert used["two"].id[:12] in out
    assert used["three"].id[:12] in out
    assert used["one"].id[:12] not in out
    assert "2 recordings" in out
    assert "Nothing was deleted: --yes deletes them." in out
    assert len(left(project)) == 4
    assert scan(project.settings.store, []) == before


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["--unused"], {"one", "new"}),
        (["--keep-runs", "1"], {"one", "new"}),
        (["--keep-runs", "2"], {"one", "new", "three"}),
        (["--keep-runs", "9"], {"one", "two", "three", "new"}),
        (["--unused-since", "36500"], {"one", "two", "three", "new"}),
    ],
)
def test_prune_deletes_what_is_not_needed(
    rewind: Call, project: Project, used: dict[str, CassetteRecord], arguments: list[str], kept: set[str]
) -> None:
    """What a kept run replayed stays, however old; the disk gets the room back at once."""
    done = result(rewind("prune", *arguments, "--yes", "--json"))
    assert isinstance(done["recordings"], list)
    assert left(project) == {used[name].id for name in kept}
    assert len(done["recordings"]) == 4 - len(kept)
    assert done["deleted"] == (len(kept) < 4)
    with stored(project) as store:
        assert store.check() == []
    for name in set(used) - kept:
        assert not scan(project.settings.store, [json.dumps({"content": name})[1:-1]]).found


def test_prune_takes_ids(rewind: Call, project: Project, used: dict[str, CassetteRecord]) -> None:
    """Those that are named are listed and deleted, used or not; one that is not there stops it."""
    one, two = used["one"].id, used["two"].id
    assert listed(rewind("prune", one[:12], two, "--json")) == {one, two}
    assert rewind("prune", one, "0000", "--yes")[0] == 1
    assert rewind("prune", one, "--unused")[0] == 2
    assert len(left(project)) == 4
    result(rewind("prune", one[:12], "--yes", "--json"))
    assert left(project) == {used[name].id for name in ("two", "three", "new")}


def test_prune_goes_by_the_last_use(rewind: Call, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that was replayed since is not old."""
    old, replayed = recorded(project, "old", RUNS[0]), recorded(project, "replayed", RUNS[0])
    project.log(9, cassette=replayed.id, run=RUNS[1], tier="exact", at=START + 8 * DAY)
    monkeypatch.setattr("rewind_proxy.cli.prune.time.time", lambda: START + 10 * DAY)
    assert listed(rewind("prune", "--unused-since", "11", "--json")) == set()
    assert listed(rewind("prune", "--unused-since", "5", "--json")) == {old.id}
    assert listed(rewind("prune", "--unused-since", "1", "--json")) == {old.id, replayed.id}


def test_equal_recordings_go_together_or_stay(rewind: Call, project: Project) -> None:
    """The same answer recorded again in a kept run keeps the older one: they are one cassette."""
    first, again = recorded(project, "same", RUNS[0]), recorded(project, "same", RUNS[3])
    assert first.id == again.id
    recorded(project, "other", RUNS[0])
    result(rewind("prune", "--keep-runs", "1", "--yes", "--json"))
    assert left(project) == {first.id}


@pytest.mark.parametrize(
    "arguments", [[], ["--unused", "--keep-runs", "1"], ["--keep-runs", "0"], ["--unused-since", "-1"]]
)
def test_prune_wants_one_criterion(rewind: Call, arguments: list[str]) -> None:
    """None, two, or one that would take everything is a wrong call."""
    assert rewind("prune", *arguments)[0] == 2


@pytest.mark.parametrize("arguments", [["--unused"], ["--unused-since", "1"]])
def test_without_a_log_nothing_tells_what_is_used(
    rewind: Call, project: Project, tmp_path: Path, arguments: list[str]
) -> None:
    """A committed store in a fresh checkout is not pruned for that."""
    recorded(project, "a", RUNS[0])
    (tmp_path / ".rewind" / "store.log").rename(tmp_path / "elsewhere")
    code, _, err = rewind("prune", *arguments, "--yes")
    assert code == 1
    assert "the log has no runs" in err
    assert len(left(project)) == 1


def test_nothing_to_prune_is_said(rewind: Call, project: Project) -> None:
    """And is no error."""
    recorded(project, "a", RUNS[0])
    assert rewind("prune", "--unused", "--yes")[:2] == (0, "Nothing to delete.\n")
