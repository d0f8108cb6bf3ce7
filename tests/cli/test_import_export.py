"""`rewind import` and `rewind export` as a person calls them: what they choose, say and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from case_tables import fake
from cli.shelf import Call
from porting.stores import CHAT, NOW, chat, heard, opened, put
from rewind_proxy.canonical.model import JsonObject

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two sessions: `mine` has two recordings, `yours` one."""
    with opened(tmp_path, session="mine") as (into, chosen):
        put(into, chosen, [heard(chat("one")), heard(chat("two"))], digest="ab" * 32)
    with opened(tmp_path, session="yours") as (into, chosen):
        put(into, chosen, [heard(chat("three"), at=NOW + 60)], digest="cd" * 32)
    return tmp_path / "store"


def har(*urls: str) -> JsonObject:
    """A HAR file with one good answer from each URL."""
    asked: JsonObject = {"text": json.dumps(chat("hello"))}
    content: JsonObject = {"mimeType": "application/json", "text": json.dumps(CHAT)}
    return {
        "log": {
            "entries": [
                {
                    "request": {"method": "POST", "url": url, "postData": asked},
                    "response": {
                        "status": 200 if "broken" not in url else 500,
                        "headers": [{"name": "content-type", "value": "application/json"}],
                        "content": content,
                    },
                }
                for url in urls
            ]
        }
    }


def prompts(lines: str) -> list[str]:
    """What the exported recordings ask, in order."""
    return [json.loads(line)["request"]["body"]["messages"][0]["content"] for line in lines.splitlines()]


def test_export_prints_a_line_a_recording(rewind: Call, store: Path) -> None:
    """In the order of their times, and twice the same bytes."""
    status, out, _ = rewind("export", "--store", store)
    assert (status, prompts(out)) == (0, ["one", "two", "three"])
    assert rewind("export", "--store", store)[1] == out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--session", "yours"], ["three"]),
        (["--run", "last"], ["three"]),
        (["--session", "mine", "--run", "last"], []),
    ],
)
def test_a_part_can_be_exported(options: list[str], expected: list[str], rewind: Call, store: Path) -> None:
    """By session, by run, or both."""
    status, out, _ = rewind("export", "--store", store, *options)
    assert status == (0 if expected else 1)
    assert not expected or prompts(out) == expected


def test_a_choice_without_recordings_says_why(rewind: Call, store: Path) -> None:
    """The store has some, so that nothing was recorded would be false."""
    status, out, err = rewind("export", "--store", store, "--session", "mine", "--run", "last")
    assert (status, out) == (1, "")
    assert "no such recording was made by run last of session 'mine'" in err
    assert "what it replayed another run recorded" in err


def test_a_cassette_can_be_exported_by_its_id(rewind: Call, store: Path) -> None:
    """The start of one will do; what is not there is an error."""
    first = json.loads(rewind("export", "--store", store)[1].splitlines()[1])
    status, out, _ = rewind("export", "--store", store, first["id"][:12])
    assert (status, prompts(out)) == (0, ["two"])
    assert rewind("export", "--store", store, "0000000000")[0] == 1
    status, _, err = rewind("export", "--store", store, "--session", "nobody")
    assert (status, "no run of a session 'nobody'" in err) == (1, True)


def test_a_folder_gets_a_folder_for_each_session(rewind: Call, store: Path, tmp_path: Path) -> None:
    """A second export writes nothing; a part of the store makes no orphans of the rest."""
    folder = tmp_path / "out"
    told = json.loads(rewind("export", "--store", store, "-o", folder, "--json")[1])
    assert (told["written"], told["unchanged"], told["orphans"]) == (3, 0, [])
    assert sorted(each.name for each in folder.iterdir()) == ["mine", "yours"]
    told = json.loads(rewind("export", "--store", store, "-o", folder, "--session", "mine", "--json")[1])
    assert (told["written"], told["unchanged"], told["replaced"], told["orphans"]) == (0, 2, [], [])
    (folder / "other.json").write_text("{}", encoding="utf-8")
    status, out, err = rewind("export", "--store", store, "-o", folder)
    assert status == 0
    assert "3" in out
    assert "other.json: no recording that `rewind export` wrote" in err.replace("\n", "")
    status, _, err = rewind("import", folder, "--store", tmp_path / "b")
    assert (status, "other.json" in err) == (1, True)


def test_a_file_of_lines_goes_out_and_in(rewind: Call, store: Path, tmp_path: Path) -> None:
    """Nothing is changed on the way; another kind of file is refused by name."""
    file, other = tmp_path / "all.jsonl", tmp_path / "b"
    assert rewind("export", "--store", store, "-o", file)[0] == 0
    status, out, _ = rewind("import", file, "--store", other)
    assert status == 0
    assert "3 recordings" in out
    assert rewind("export", "--store", other)[1].encode() == file.read_bytes()
    status, _, err = rewind("export", "--store", store, "-o", tmp_path / "all.json")
    assert (status, "name a folder, or a file that ends in .jsonl" in err.replace("\n", "")) == (1, True)


def test_what_is_left_out_is_named(rewind: Call, tmp_path: Path) -> None:
    """Hosts, with the flag that takes them in, and the rest by reason and place."""
    file = tmp_path / "x.har"
    good, broken = "https://api.openai.com/v1/chat/completions", "https://api.openai.com/broken"
    unknown = "https://llm.corp.example/v1/chat/completions"
    file.write_text(json.dumps(har(good, broken, unknown)), encoding="utf-8")
    status, out, _ = rewind("import", file, "--store", tmp_path / "a")
    said = out.replace("\n", "")
    assert status == 0
    assert "1 recording" in said
    assert "1 × status 500: only complete answers are recorded" in said
    assert f"{file}, entry 2: status 500" in said
    assert "llm.corp.example is no known host" in said
    assert "--hosts llm.corp.example=WIRE" in said
    more = ("--json", "--hosts", "llm.corp.example=chat_completions")
    told = json.loads(rewind("import", file, "--store", tmp_path / "a", *more)[1])
    assert (told["recordings"], told["known"], told["unknown_hosts"]) == (1, 1, {})
    assert told["files"][0]["format"] == "har"
    file.write_text(json.dumps(har(unknown)), encoding="utf-8")
    assert rewind("import", file, "--store", tmp_path / "b")[0] == 1


def test_a_file_without_exchanges_is_named(rewind: Call, tmp_path: Path) -> None:
    """Nothing imported and nothing left out needs a reason."""
    file = tmp_path / "x.har"
    file.write_text(json.dumps(har()), encoding="utf-8")
    status, out, _ = rewind("import", file, "--store", tmp_path / "a")
    assert (status, f"{file} has no exchange in it (har)" in out) == (1, True)


def test_what_is_left_out_is_named_without_credentials(rewind: Call, tmp_path: Path) -> None:
    """A host, the text of an error, an address with a login in it: a file may hold anything anywhere."""
    secret = fake("sk-proj-", 40)
    document: Any = har("https://api.openai.com/broken", f"https://{secret}.example/v1/chat/completions")
    document["log"]["entries"][0]["response"]["_error"] = f"{secret} " * 100
    file = tmp_path / "x.har"
    file.write_text(json.dumps(document), encoding="utf-8")
    kept = {"method": "POST", "url": f"https://me:{secret}@llm.corp.example/v1", "body": {}}
    document = {"rewind": 1, "run": "a", "request": kept, "answer": {"status": 200, "lines": []}}
    (tmp_path / "y.json").write_text(json.dumps(document), encoding="utf-8")
    for name in ("x.har", "y.json"):
        for more in ([], ["--json"]):
            _, out, err = rewind("import", tmp_path / name, "--store", tmp_path / "a", *more)
            said = (out + err).replace("\n", "")
            assert secret.lower() not in said.lower()
            assert len(said) < 2000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("hello", " is none of what Rewind reads"),
        ('{"log": {"entries": 1}}', ": no HAR file"),
        ("interactions: []\nversion: 9", ": a cassette of vcrpy in format 9"),
    ],
)
def test_a_bad_file_stops_before_anything_is_stored(
    rewind: Call, store: Path, tmp_path: Path, content: str, said: str
) -> None:
    """What is given together goes in together, as far as that can be told at once."""
    lines, bad, other = tmp_path / "all.jsonl", tmp_path / "bad", tmp_path / "b"
    rewind("export", "--store", store, "-o", lines)
    bad.write_text(content, encoding="utf-8")
    status, _, err = rewind("import", lines, bad, "--store", other)
    assert (status, f"{bad}{said}" in err.replace("\n", "")) == (1, True)
    assert not other.exists()


def test_a_store_under_fewer_rules_is_not_exported(
    rewind: Call, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading verbs redact nothing: `maintain` goes first, and the text has what it masked."""
    monkeypatch.setenv("REWIND_REDACT_PATTERNS", '["thr[e]{2}"]')
    status, out, err = rewind("export", "--store", store)
    assert (status, out) == (1, "")
    assert "run `rewind maintain` first" in err.replace("\n", " ")
    assert rewind("maintain", "--store", store)[0] == 0
    status, out, _ = rewind("export", "--store", store)
    assert (status, "three" in out, "[REDACTED]" in out) == (0, False, True)


def test_an_empty_store_has_nothing_to_export(rewind: Call, tmp_path: Path) -> None:
    """It says so on standard error, since standard output is for recordings, and ends with 1."""
    status, out, err = rewind("export", "--store", tmp_path / "none")
    assert (status, out, "No recordings" in err) == (1, "", True)


def test_a_fresh_checkout_says_where_its_recordings_are(
    rewind: Call, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its store is empty until the first run; `maintain` fills it from the folder `cassettes`, too."""
    rewind("export", "--store", store, "-o", tmp_path / "kept")
    monkeypatch.setenv("REWIND_CASSETTES", "kept")
    _, out, _ = rewind("ls", "--store", "new")
    assert f"{tmp_path / 'kept'} has 3 recordings: the next run reads in what is there" in out
    assert rewind("maintain", "--store", "new")[0] == 0
    assert len(json.loads(rewind("ls", "--store", "new", "--json")[1])) == 3
