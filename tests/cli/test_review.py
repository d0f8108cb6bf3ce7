"""The review verbs: what they show, what they decide, and what they say when they cannot."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from case_tables import fake
from cli.shelf import Call
from matching.recorded_projects import Project, request, settings_at
from matching.test_reviewing import ASKED, RECORDED, SAID, Person, ask
from rewind_proxy.cli.review import QUESTION
from rewind_proxy.engine import Replay

pytestmark = pytest.mark.usefixtures("place")

ESC = "\x1b"


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits there."""
    monkeypatch.setattr("rewind_proxy.cli.review.at_terminal", lambda: True)


def refused(tmp_path: Path, *texts: str) -> list[str]:
    """The pending requests of a project with two recordings, oldest first."""
    project = Project(settings_at(tmp_path))
    project.record(request(ask(RECORDED)), SAID)
    project.record(request(ask(RECORDED + " Please.")), SAID.replace(b"Done", b"Gladly done"))
    person = Person(settings_at(tmp_path, mode="replay"))
    for text in texts:
        person.decide(request(ask(text)))
    held = person.opened.log.pending.all()
    person.opened.close()
    return [each.id for each in reversed(held)]


def replays(tmp_path: Path, text: str) -> str:
    """The tier that answers a request now; empty when it is refused."""
    person = Person(settings_at(tmp_path, mode="replay"))
    decision = person.decide(request(ask(text)))
    person.opened.close()
    return decision.tier if isinstance(decision, Replay) else ""


# -- looking


def test_nothing_is_pending(rewind: Call, tmp_path: Path) -> None:
    """Where nothing was refused, or there is no store at all, each verb says so and what would help."""
    for verb in ("pending", "review"):
        code, out, _ = rewind(verb)
        assert (code, "Nothing is pending" in out, "rewind run --mode replay" in out) == (0, True, True)
    assert "No aliases" in rewind("aliases")[1]
    for verb in ("pending", "review", "aliases"):
        assert json.loads(rewind(verb, "--json")[1]) == []
    for verb in ("review", "approve", "reject"):
        code, _, err = rewind(verb, "abcd1234")
        assert (code, err.strip()) == (
            1,
            "rewind: no pending request 'abcd1234': `rewind pending` lists them",
        )
    assert not (tmp_path / ".rewind").exists()


def test_pending_lists_the_newest_first(rewind: Call, tmp_path: Path) -> None:
    """With how near the best candidate is, and the command that shows it."""
    first, second = refused(tmp_path, ASKED, "Tell me a joke about frogs.")
    code, out, _ = rewind("pending")
    lines = out.splitlines()
    assert code == 0
    assert lines[2].startswith(second[:12])
    assert lines[3].startswith(first[:12])
    assert f"rewind review {second[:12]}" in out
    listed = json.loads(rewind("pending", "--json")[1])
    assert [each["id"] for each in listed] == [second, first]
    assert [len(each["candidates"]) for each in listed] == [0, 2]
    assert "body" not in listed[0]


def test_review_shows_both_sides(rewind: Call, tmp_path: Path) -> None:
    """Side by side where there is room: where they part, how near they are, and the answer it would get."""
    [pending] = refused(tmp_path, ASKED)
    wide = rewind("review", pending[:8], columns=160)[1]
    assert any("header" in line and "trailer" in line for line in wide.splitlines())
    narrow = rewind("review", pending[:8], columns=70)[1]
    assert not any("header" in line and "trailer" in line for line in narrow.splitlines())
    assert max(map(len, narrow.splitlines())) <= 90
    for out in (wide, narrow):
        assert "candidate 1 of 2" in out
        assert "1 message alike before" in out
        assert "$.messages[1].parts[0].text" in out
        assert "Done in" in out
        assert f"rewind approve {pending[:12]}" in out
        assert f"rewind answer {pending[:12]} --edit" in out
    best, other = json.loads(rewind("review", pending, "--json")[1])["candidates"]
    assert best["score"] > other["score"] > 0.85
    assert best["difference"]["path"] == "$.messages[1].parts[0].text"
    assert best["answer"][0]["text"].startswith("Done")


def test_without_a_candidate_the_nearest_is_shown(rewind: Call, tmp_path: Path) -> None:
    """Below the threshold, which is named; it may be approved all the same."""
    [pending] = refused(tmp_path, "Rename it, and then write a poem about frogs, rivers and the sea.")
    out = rewind("review")[1]
    assert "No recording is near enough (review_threshold = 0.85)" in out
    assert "nearest recording" in out
    code, _, err = rewind("approve", "last")
    assert (code, "has no candidate" in err, "--edit" in err) == (1, True, True)
    found = json.loads(rewind("ls", "--json")[1])[0]["id"]
    assert rewind("approve", "last", found[:12])[0] == 0
    assert json.loads(rewind("aliases", "--json")[1])[0]["id"] == pending


def test_what_a_client_sent_does_not_reach_the_terminal(rewind: Call, tmp_path: Path) -> None:
    """Its control characters are shown, not obeyed; markup is text."""
    refused(tmp_path, ASKED + f" {ESC}[31mred [bold]x[/bold]")
    rewind("approve", "last")
    refused_too = f"{ASKED}\n{ESC}]0;title\x07 twice"
    person = Person(settings_at(tmp_path, mode="replay"))
    person.decide(request(ask(refused_too)))
    person.opened.close()
    for words in (["pending"], ["review"], ["aliases"]):
        out = rewind(*words)[1]
        assert ESC not in out
        assert "\x07" not in out
    assert "[bold]x[/bold]" in rewind("aliases")[1]


# -- deciding


def test_approve_takes_the_best(rewind: Call, tmp_path: Path) -> None:
    """Or the one that is named; how to undo it is said."""
    [pending] = refused(tmp_path, ASKED)
    code, out, _ = rewind("approve", pending[:6])
    assert (code, f"rewind aliases --remove {pending[:12]}" in out) == (0, True)
    assert replays(tmp_path, ASKED) == "alias"
    listed = rewind("aliases")[1]
    assert pending[:12] in listed
    assert "Rename the function" in listed
    assert rewind("aliases", "--remove", pending[:6])[0] == 0
    assert replays(tmp_path, ASKED) == ""
    assert rewind("aliases", "--remove", pending[:6])[0] == 1


def test_prune_says_that_an_alias_goes_too(rewind: Call, tmp_path: Path) -> None:
    """What a person approved is not deleted without a word."""
    [pending] = refused(tmp_path, ASKED)
    assert ASKED[:20] in rewind("approve", pending)[1]
    [alias] = json.loads(rewind("aliases", "--json")[1])
    assert "1 recording and 1 alias, " in rewind("prune", alias["cassette"])[1]
    assert "1 recording and 1 alias deleted" in rewind("prune", alias["cassette"], "--yes")[1]
    assert json.loads(rewind("aliases", "--json")[1]) == []


def test_reject_takes_candidates_away(rewind: Call, tmp_path: Path) -> None:
    """One, or all of them: then the request is not listed until it is refused again."""
    [pending] = refused(tmp_path, ASKED)
    candidates = json.loads(rewind("pending", "--json")[1])[0]["candidates"]
    best = candidates[0]["cassette"]
    assert rewind("reject", pending, best[:12])[0] == 0
    assert best[:12] not in rewind("review", pending)[1]
    assert rewind("reject", pending)[0] == 0
    assert json.loads(rewind("pending", "--json")[1]) == []
    assert len(json.loads(rewind("pending", "--all", "--json")[1])) == 1
    assert "rejected" in rewind("pending", "--all")[1]
    assert rewind("approve", pending)[0] == 1
    assert replays(tmp_path, ASKED) == ""
    assert json.loads(rewind("pending", "--json")[1])[0]["count"] == 2


def test_what_is_put_away_is_not_the_last(rewind: Call, tmp_path: Path) -> None:
    """`last` is the first that `pending` lists."""
    first, second = refused(tmp_path, ASKED, "Tell me a joke about frogs.")
    assert rewind("reject", "last")[1].startswith(second[:12])
    assert rewind("approve", "last")[1].startswith(f"approved: {first[:12]}")
    assert "no pending request 'last'" in rewind("approve", "last")[2]


@pytest.mark.usefixtures("at_terminal")
def test_review_asks(rewind: Call, tmp_path: Path) -> None:
    """No to one, yes to the next; skip and quit change nothing."""
    refused(tmp_path, ASKED, ASKED + " Now.")
    before = rewind("pending", "--json")[1]
    rewind("review", typed="what?\ns\ns\ns\ns\n")
    rewind("review", typed="q\n")
    assert rewind("pending", "--json")[1] == before
    newest = json.loads(before)[0]
    code, out, _ = rewind("review", newest["id"], typed="n\ny\n")
    assert (code, "approved" in out) == (0, True)
    [alias] = json.loads(rewind("aliases", "--json")[1])
    assert alias["cassette"] == newest["candidates"][1]["cassette"]
    assert len(json.loads(rewind("pending", "--json")[1])) == 1


@pytest.mark.usefixtures("at_terminal")
def test_what_is_no_decision_is_told_the_choices(rewind: Call, tmp_path: Path) -> None:
    """The question comes again with a hint, on a line of its own that fits the screen."""
    refused(tmp_path, ASKED)
    out = rewind("review", typed="x\nq\n", columns=80)[1]
    assert out.count("Does this recording answer it?") == 2
    assert "One of y, n, a, s and q: s leaves it undecided, q ends the review." in out
    assert len(QUESTION) < 76


@pytest.mark.usefixtures("at_terminal")
def test_no_to_the_last_candidate_says_what_is_left(rewind: Call, tmp_path: Path) -> None:
    """The request stays pending; how to put it away or answer it is said, once."""
    [pending] = refused(tmp_path, ASKED)
    out = rewind("review", typed="n\nn\n")[1]
    assert out.count(f"That was the last: {pending[:12]} stays pending.") == 1
    assert f"rewind reject {pending[:12]}\n" in out
    assert len(json.loads(rewind("pending", "--json")[1])) == 1


# -- answering


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_answer_from_a_file(rewind: Call, tmp_path: Path, how: str) -> None:
    """Or from standard input; it says which cassette it is, and `show` says that a person wrote it."""
    refused(tmp_path, "Tell me a joke about frogs.")
    file = tmp_path / "answer.md"
    file.write_text("# A joke\n")
    words = ["answer", "last", str(file)] if how == "file" else ["answer", "last", "-"]
    code, out, _ = rewind(*words, typed="# A joke\n" if how == "stdin" else None)
    assert (code, "by hand" in out) == (0, True)
    assert replays(tmp_path, "Tell me a joke about frogs.") == "exact"
    [made] = [each for each in json.loads(rewind("ls", "--json")[1]) if each["answer"]["by_hand"]]
    shown = rewind("show", made["id"])[1]
    assert "# A joke" in shown
    assert "by hand" in shown


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """An editor that runs some Python on the file, whose text is `text`."""
    script = tmp_path / "editor.py"
    script.write_text(
        f"import sys, pathlib, json\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n{code}\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")


def test_answer_in_an_editor(rewind: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens with the answer of the best candidate."""
    refused(tmp_path, ASKED)
    editor(
        tmp_path, monkeypatch, "assert 'Done in' in text; file.write_text(text.replace('Done', 'All done'))"
    )
    assert rewind("answer", "last", "--edit")[0] == 0
    assert replays(tmp_path, ASKED) == "exact"
    newest = json.loads(rewind("ls", "--json")[1])[0]["id"]
    assert "All done in" in rewind("show", newest)[1]


def test_an_answer_by_hand_can_be_changed(
    rewind: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the id of its recording, which is another one then; what a model said cannot."""
    refused(tmp_path, ASKED)
    (tmp_path / "answer.txt").write_text("Frist answer.")
    out = rewind("answer", "last", "answer.txt")[1]
    found = re.search(r"rewind answer (\w+) --edit", out)
    assert found
    editor(tmp_path, monkeypatch, "file.write_text(text.replace('Frist', 'First'))")
    assert rewind("answer", found[1], "--edit")[0] == 0
    hand = [each["id"] for each in json.loads(rewind("ls", "--json")[1]) if each["answer"]["by_hand"]]
    assert len(hand) == 1
    assert "First answer." in rewind("show", hand[0])[1]
    assert replays(tmp_path, ASKED) == "exact"
    models = json.loads(rewind("ls", "--json")[1])[-1]["id"]
    assert "what a model said is kept" in rewind("answer", models, "answer.txt")[2]
    assert "no pending request" in rewind("answer", "0" * 12, "answer.txt")[2]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("file.write_text('')", "nothing is stored"),
        ("sys.exit(3)", "the editor ended with 3"),
        ("file.write_text('{\"text\": 1}')", '"text" is a text'),
        ('file.write_text(\'{"text": "x",}\')', "line 1"),
        ('file.write_text(\'{"tex": "x"}\')', 'neither "text" nor "tool_calls"'),
        ("file.write_bytes(bytes([255]))", "not UTF-8"),
    ],
)
def test_an_editor_that_gives_no_answer(
    rewind: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    """The request stays pending."""
    refused(tmp_path, ASKED)
    editor(tmp_path, monkeypatch, code)
    status, _, err = rewind("answer", "last", "--edit")
    assert (status, said in err) == (1, True)
    assert len(json.loads(rewind("pending", "--json")[1])) == 1


def test_what_is_no_answer(rewind: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is missing or no text, no file at all, an editor that is none."""
    refused(tmp_path, ASKED)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "cannot be read" in rewind("answer", "last", "missing.txt")[2]
    assert "not UTF-8" in rewind("answer", "last", "binary")[2]
    assert rewind("answer", "last")[0] == 2
    monkeypatch.setenv("EDITOR", str(tmp_path / "no-editor"))
    assert "set EDITOR" in rewind("answer", "last", "--edit")[2]
    monkeypatch.setenv("EDITOR", 'vim "')
    assert "EDITOR or VISUAL is no command" in rewind("answer", "last", "--edit")[2]
    (tmp_path / "broken.json").write_text('{"text": "x", "tool_calls": [{"name": "f"]}')
    assert "line 1, column 42" in rewind("answer", "last", "broken.json")[2]
    assert len(json.loads(rewind("pending", "--json")[1])) == 1


def test_a_file_may_begin_with_a_byte_order_mark(rewind: Call, tmp_path: Path) -> None:
    """As some editors write it: it is no part of the answer, and hides no JSON."""
    refused(tmp_path, ASKED)
    (tmp_path / "answer.json").write_bytes(b'\xef\xbb\xbf{"text": "Marked."}')
    assert rewind("answer", "last", "answer.json")[0] == 0
    newest = json.loads(rewind("ls", "--json")[1])[0]["id"]
    assert rewind("show", newest)[1].rstrip().endswith("\n  Marked.")


def test_answers_go_to_the_folder_of_cassettes(
    rewind: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recordings come from there: a correction takes its file's place; an alias cannot go there."""
    refused(tmp_path, ASKED, "Tell me a joke about frogs.")
    (tmp_path / "rewind.toml").write_text('cassettes = "cassettes"\n')
    (tmp_path / "answer.txt").write_text("Frist answer.")
    out = rewind("answer", "last", "answer.txt")[1]
    found = re.search(r"rewind answer (\w+) --edit", out)
    assert found
    [first] = (tmp_path / "cassettes").rglob("*.json")
    assert "Frist answer." in first.read_text()
    editor(tmp_path, monkeypatch, "file.write_text(text.replace('Frist', 'First'))")
    assert rewind("answer", found[1], "--edit")[0] == 0
    [second] = (tmp_path / "cassettes").rglob("*.json")
    assert (second != first, "First answer." in second.read_text()) == (True, True)
    assert "in this store alone" in rewind("approve", "last")[1]


# -- keeping the store in order


def test_verify_and_prune_know_of_them(rewind: Call, tmp_path: Path) -> None:
    """A credential in a pending request is named; a deleted cassette takes aliases and candidates along."""
    secret = fake("zebra", 12)
    first, _ = refused(tmp_path, ASKED, f"{ASKED} It is {secret}.")
    assert rewind("approve", first)[0] == 0
    assert rewind("verify")[0] == 0
    (tmp_path / "rewind.toml").write_text('redact_patterns = ["zebra[A-Za-z0-9]+"]\n')
    code, out, _ = rewind("verify")
    assert (code, "pending request" in out, secret in out) == (1, True, False)
    assert rewind("maintain")[0] == 0
    assert rewind("verify")[0] == 0
    assert json.loads(rewind("pending", "--json")[1])[0]["preview"].endswith("[REDACTED].")
    assert len(json.loads(rewind("prune", "--unused-since", "0", "--yes", "--json")[1])["recordings"]) == 2
    assert json.loads(rewind("aliases", "--json")[1]) == []
    assert json.loads(rewind("pending", "--json")[1])[0]["candidates"] == []
    assert rewind("verify")[0] == 0
