"""`rewind test-match`: two request files, or a table of pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from case_tables import CASES, fake
from cli.shelf import Call
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.case_table import expand

pytestmark = pytest.mark.usefixtures("place")

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def chat(text: str, **more: JsonValue) -> JsonObject:
    """A request file."""
    body: JsonObject = {"model": "m1", "messages": [{"role": "user", "content": text}], **more}
    return {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "body": body}


def write(name: str, document: JsonValue) -> str:
    """A file in the project; its name."""
    Path(name).write_text(json.dumps(document), encoding="utf-8")
    return name


def test_a_match_is_one_document_and_status_0(rewind: Call) -> None:
    """The JSON of DESIGN §12 where nobody reads on a terminal."""
    a, b = write("a.json", chat("hi", seed=1)), write("b.json", chat("hi", seed=2))
    assert rewind("test-match", a, a) == (0, rewind("test-match", a, a, "--json")[1], "")
    code, out, _ = rewind("test-match", a, b)
    assert code == 0
    assert json.loads(out) == {
        "match": "normalised",
        "differences": [],
        "rules": ["ignore:seed"],
        "would_match_with": [],
    }


def test_no_match_is_status_1_and_says_why(rewind: Call) -> None:
    """With every place, and what would make it match."""
    a, b = write("a.json", chat("hi", x_new=1)), write("b.json", chat("hi", x_new=2))
    code, out, _ = rewind("test-match", a, b)
    assert code == 1
    assert json.loads(out) == {
        "match": None,
        "differences": [{"path": "$.params.x_new", "a": "1", "b": "2"}],
        "rules": [],
        "would_match_with": ["ignore += x_new"],
    }


def test_what_would_match_does(rewind: Call) -> None:
    """Every setting is a flag here."""
    a, b = write("a.json", chat("hi", x_new=1)), write("b.json", chat("hi", x_new=2))
    code, out, _ = rewind("test-match", a, b, "--ignore", "x_new", "--ignore", "model")
    assert (code, json.loads(out)["rules"]) == (0, ["ignore:x_new"])
    assert rewind("test-match", a, a, "--match", "exact")[0] == 0
    code, out, _ = rewind("test-match", a, b, "--match", "exact")
    assert json.loads(out)["would_match_with"] == ["match = normalised and ignore += x_new"]


def test_on_a_terminal_it_reads_as_a_report(rewind: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first places, both sides of each, and the way out; control characters are shown."""
    monkeypatch.setattr("rewind_proxy.cli.test_match.sys.stdout.isatty", lambda: True, raising=False)
    many: JsonObject = {f"x{number}": number for number in range(9)}
    a, b = write("a.json", chat("one\x1b[2J")), write("b.json", chat("two", **many))
    out = STYLE.sub("", rewind("test-match", a, b)[1])
    assert out.startswith("no match\n  at $.messages[0].parts[0].text\n    - recorded  one\\x1b[2J\n")
    assert "… and 5 more places (--json lists them)" in out
    out = STYLE.sub("", rewind("test-match", a, write("c.json", chat("one\x1b[2J", seed=3)))[1])
    assert out == "match normalised\n  through ignore:seed\n"
    login = {**chat("hi"), "url": "https://api.openai.com/v1/realtime/client_secrets"}
    out = STYLE.sub("", rewind("test-match", write("l.json", login), "l.json")[1])
    assert "auth requests are never recorded" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "two request files"),
        (["a.json"], "two request files"),
        (["a.json", "a.json", "a.json"], "two request files"),
        (["a.json", "a.json", "--cases", "a.json"], "not both"),
    ],
)
def test_a_wrong_call_is_status_2(rewind: Call, arguments: list[str], said: str) -> None:
    """It says what is missing."""
    write("a.json", chat("hi"))
    code, _, err = rewind("test-match", *arguments)
    assert code == 2
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], 'not a request file: write {"url": "https://api.openai.com/v1/responses", "body": {…}}'),
        ({"model": "m"}, 'not a request file: "url" is missing or has no host: write {"url": '),
        (
            {"url": "https://unknown.test/x", "body": {}},
            "no known host, Rewind would tunnel it; add it with --hosts unknown.test=WIRE",
        ),
        ({"url": "https://api.openai.com/v1/responses", "body_base64": "%"}, "not base64"),
        ({"url": "https://api.openai.com/v1/responses", "body_base64": "é"}, "not base64"),
        (
            {"url": "https://api.openai.com/v1/responses", "boddy": {}},
            'a request file has no "boddy"; did you mean body? (it has method, url, ',
        ),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(rewind: Call, document: JsonValue, said: str) -> None:
    """With status 1 and nothing on standard output."""
    a, bad = write("a.json", chat("hi")), write("bad.json", document)
    code, out, err = rewind("test-match", a, bad)
    assert (code, out) == (1, "")
    assert "bad.json" in err
    assert said in err
    assert rewind("test-match", a, "missing.json")[0] == 1


def test_the_handed_table_agrees(rewind: Call) -> None:
    """Every line of it, read by the command itself."""
    code, out, err = rewind("test-match", "--cases", str(CASES / "match.jsonl"))
    assert (code, err) == (0, "")
    assert out.endswith(" cases, 0 differ\n")


def test_the_table_of_credentials_is_green(rewind: Call) -> None:
    """Each credential of the handed table is gone from all that is stored, and what is none is kept."""
    code, out, err = rewind("test-match", "--cases", str(CASES / "redact.jsonl"))
    assert (code, err) == (0, "")
    assert out.endswith(" cases, 0 differ\n")


def test_a_table_of_credentials_names_what_is_wrong(rewind: Call) -> None:
    """What stays and what is lost is named by its place in the table; no credential is shown."""
    body: JsonObject = {"messages": [{"role": "user", "content": "use <<FAKE:sk-proj-:40>> now"}]}
    request: JsonObject = {"url": "https://api.openai.com/v1/chat/completions", "body": body}
    good: JsonObject = {"id": "g", "request": request, "gone": ["<<FAKE:sk-proj-:40>>"], "kept": ["now"]}
    off: JsonObject = {"settings": {"redact_defaults": False}, "id": "off"}
    lost: JsonObject = {"kept": ["use", "<<FAKE:sk-proj-:40>>"], "gone": [], "id": "lost"}
    code, out, _ = rewind("test-match", "--cases", table(good, good | off, good | lost), "--json")
    found = {each["id"]: each["got"] for each in json.loads(out)["differ"]}
    assert (code, found) == (1, {"off": "gone[0] stays", "lost": "kept[1] is gone"})
    code, _, err = rewind("test-match", "--cases", table(good | {"gone": "x"}))
    assert (code, "line 1" in err, '"gone" is a list of texts' in err) == (1, True, True)


def table(*cases: JsonValue) -> str:
    """A table of cases in the project."""
    Path("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return "cases.jsonl"


def test_lines_that_differ_are_printed_with_what_was_got(rewind: Call) -> None:
    """Id, expected, got, the first difference, a count; status 1."""
    pair: JsonObject = {"a": chat("one"), "b": chat("two")}
    file = table(
        {"id": "good", **pair, "expect": "different"},
        {"id": "bad-1", **pair, "expect": "normalised"},
        {"id": "bad-2", "a": chat("one"), "b": chat("one"), "expect": "different"},
    )
    code, out, _ = rewind("test-match", "--cases", file)
    assert code == 1
    assert out == (
        "bad-1  expected normalised, got different\n"
        "  at $.messages[0].parts[0].text\n"
        "    - recorded  one\n"
        "    + live      two\n"
        "bad-2  expected different, got exact\n"
        "3 cases, 2 differ\n"
    )
    code, out, _ = rewind("test-match", "--cases", file, "--json")
    assert code == 1
    assert json.loads(out) == {
        "cases": 3,
        "differ": [
            {
                "id": "bad-1",
                "expected": "normalised",
                "got": "different",
                "difference": {"path": "$.messages[0].parts[0].text", "a": "one", "b": "two"},
            },
            {"id": "bad-2", "expected": "different", "got": "exact", "difference": None},
        ],
    }


def test_a_case_has_settings_of_its_own(rewind: Call) -> None:
    """They are keys of `rewind.toml`, and hold for that line alone."""
    pair: JsonObject = {"a": chat("hi", seed=1), "b": chat("hi", seed=2)}
    file = table(
        {"id": "1", **pair, "expect": "different", "settings": {"ignore": []}},
        {"id": "2", **pair, "expect": "normalised"},
        {"id": "3", **pair, "expect": "different", "settings": {"match": "exact"}},
        {
            "id": "4",
            "a": chat("see zebra-1"),
            "b": chat("see zebra-2"),
            "expect": "normalised",
            "settings": {"scrub": [{"name": "zebra", "pattern": "zebra-\\d"}]},
        },
        {
            "id": "5",
            "a": chat("see zebra-1"),
            "b": chat("see zebra-2"),
            "expect": "normalised",
            "settings": {"redact_patterns": ["zebra-\\d"]},
        },
    )
    assert rewind("test-match", "--cases", file) == (0, "5 cases, 0 differ\n", "")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"expect": "maybe"}, "one of exact, normalised, different"),
        ({"expect": "exact", "settings": {"ignor": []}}, "ignore"),
        ({"expect": "exact", "settings": {"tail_n": "many"}}, "tail_n"),
        ({"expect": "exact", "settings": []}, "settings"),
        ({"expect": "exact", "a": None}, "not a request file"),
    ],
)
def test_a_bad_line_is_named(rewind: Call, case: JsonObject, said: str) -> None:
    """By file and number."""
    good: JsonObject = {"id": "1", "a": chat("hi"), "b": chat("hi"), "expect": "exact"}
    code, _, err = rewind("test-match", "--cases", table(good, good | case))
    assert code == 1
    assert "cases.jsonl, line 2" in err
    assert said in err


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "line 1: not JSON"), (b"[]", "object"), (b"\xff", "UTF-8")]
)
def test_a_table_that_is_none_is_refused(rewind: Call, content: bytes, said: str) -> None:
    """In one sentence."""
    Path("t.jsonl").write_bytes(content)
    code, _, err = rewind("test-match", "--cases", "t.jsonl")
    assert code == 1
    assert said in err


def test_marks_become_the_same_credential_every_time() -> None:
    """The prefix, then characters drawn by a generator seeded with the whole mark."""
    mark = "<<FAKE:sk-proj-:40>>"
    assert expand(mark) == expand(f"a {mark} b")[2:-2] == fake("sk-proj-", 40)
    assert len(expand(mark)) == len("sk-proj-") + 40
    assert expand("<<FAKE:sk-proj-:40:2>>") != expand(mark)
    assert expand("<<FAKE:AKIA:16>>").isupper()
    assert expand("<<FAKE:x>> <<OTHER:a:1>>") == "<<FAKE:x>> <<OTHER:a:1>>"
