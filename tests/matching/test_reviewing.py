"""What a person decided answers: by an alias, or by an answer of its own; whatever changes afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from case_tables import fake
from matching.recorded_projects import HOSTS, START, Project, read, request, settings_at, unseen
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.engine import Engine, Refuse, Replay, Session, Step
from rewind_proxy.matching import opening
from rewind_proxy.matching.opening import Opened, open_ready
from rewind_proxy.matching.pruning import never_replayed, uses
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.matching.reviewing import Review, ReviewError
from rewind_proxy.matching.scanning import alias_credentials, log_credentials
from rewind_proxy.matching.supplied import read_answer
from rewind_proxy.recording import refusal
from rewind_proxy.settings import Settings
from rewind_proxy.store import AliasRecord, PendingRecord, Recorder
from rewind_proxy.store.records import RunRecord
from rewind_proxy.wire.forms import FORMS
from store.making import content_of

SAID = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Done in /home/a/app/x."},
            }
        ],
    }
).encode()
RECORDED = "Rename the function that parses the header, in /home/a/app/src, and keep its callers working."
ASKED = RECORDED.replace("header", "trailer")


def ask(text: str, **more: Any) -> JsonObject:
    """A chat request of an agent in a folder."""
    folder = more.pop("folder", "/home/a/app")
    system: JsonObject = {"role": "system", "content": f"<cwd>{folder}</cwd>\nBe careful."}
    return {"model": "m1", "messages": [system, {"role": "user", "content": text}], **more}


class Person:
    """Somebody who runs a client in replay, and decides about what was refused."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.opened: Opened = open_ready(settings, HOSTS, lambda _: unseen)
        self._session = Session(RunRecord(id="20261130-100000-bbbb", mode="replay", started_at=START))

    def decide(self, live: RawRequest) -> Replay | Refuse:
        """What the proxy does with a request; a refusal is kept as the proxy keeps it."""
        store, log, reader = self.opened.store, self.opened.log, self.opened.reader
        self._session.calls += 1
        step = Step(self._session, self._session.calls, START + self._session.calls)
        decision = Engine(self.settings, reader, store).decide_read(read(reader, live), step, mode="replay")
        assert isinstance(decision, Replay | Refuse)
        if isinstance(decision, Refuse):
            kept = refusal(decision, self.settings.review_threshold)
            assert kept is not None
            with Recorder(store, log) as recorder:
                recorder.keep(kept)
            assert recorder.failures == []
        return decision

    @property
    def pending(self) -> PendingRecord:
        """What was refused last."""
        return self.opened.log.pending.find("last")

    @property
    def review(self) -> Review:
        """What carries out decisions."""
        opened = self.opened
        return Review(opened.store, opened.log, opened.reader, redact_answers=self.settings.redact_answers)

    def approve(self) -> AliasRecord:
        """Say yes to the best candidate."""
        [candidate, *_] = self.opened.log.pending.candidates(self.pending)
        return self.review.approve(self.pending, self.opened.store.cassette(candidate.cassette), START)

    def again(self, **settings: Any) -> Person:
        """The same person after a restart, under other settings perhaps."""
        self.opened.close()
        return Person(self.settings.model_copy(update=settings))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A person with one recording."""
    Project(settings_at(tmp_path)).record(request(ask(RECORDED)), SAID)
    return Person(settings_at(tmp_path, mode="replay"))


def replayed(decision: Replay | Refuse) -> Replay:
    """A decision that is a replay."""
    assert isinstance(decision, Replay), decision
    return decision


def test_an_approved_alias_answers(person: Person) -> None:
    """After the exact and the normalised tier, under its own name, re-based as a normalised hit is."""
    decision = person.decide(request(ask(ASKED)))
    assert isinstance(decision, Refuse)
    assert decision.miss.pending == person.pending.id
    assert f"rewind review {person.pending.id[:12]}" in decision.miss.text()
    alias = person.approve()
    assert person.opened.log.pending.all() == []
    hit = replayed(person.decide(request(ask(ASKED))))
    assert (hit.tier, hit.cassette.id, hit.answer.body) == ("alias", alias.cassette, SAID)
    assert hit.note == f"alias {alias.id[:12]}; scrubbed RS105"
    moved = ASKED.replace("/home/a/app", "/builds/7/app")
    there = replayed(person.decide(request(ask(moved, folder="/builds/7/app", model="m2"))))
    assert there.tier == "alias"
    assert b"Done in /builds/7/app/x." in there.answer.body
    assert there.note.startswith(f"alias {alias.id[:12]}; model m1->m2")
    assert "re-based 1" in there.note
    assert replayed(person.decide(request(ask(RECORDED)))).tier == "exact"
    person.opened.close()


def test_an_alias_answers_what_was_approved_and_nothing_else(person: Person) -> None:
    """One word more is another request; `match = exact` wants no alias."""
    person.decide(request(ask(ASKED)))
    person.approve()
    assert isinstance(person.decide(request(ask(ASKED + " Now."))), Refuse)
    exact = person.again(match="exact")
    assert isinstance(exact.decide(request(ask(ASKED))), Refuse)
    exact.opened.close()


@pytest.mark.parametrize(
    "changed", [{"tail_n": 1}, {"scrub_off": ("RS105",)}, {"ignore": ("model",)}, {"paths": "off"}]
)
def test_an_alias_outlives_other_match_settings(person: Person, changed: dict[str, Any]) -> None:
    """Its request is keyed under them as a recording is."""
    person.decide(request(ask(ASKED)))
    person.approve()
    other = person.again(**changed)
    assert replayed(other.decide(request(ask(ASKED)))).tier == "alias"
    other.opened.close()


def test_alias_and_pending_request_outlive_new_rules(person: Person, tmp_path: Path) -> None:
    """What a rule takes out is in no file afterwards; both still mean the same live request."""
    first, second = f"{ASKED} It is zebra-17.", f"{ASKED} It was zebra-18."
    person.decide(request(ask(first)))
    person.approve()
    person.decide(request(ask(second)))
    assert scan(tmp_path / ".rewind", ["zebra-1"]).found
    after = person.again(redact_patterns=("zebra-[0-9]+",))
    assert not scan(tmp_path / ".rewind", ["zebra-1"]).found
    redactor = after.opened.reader.redactor
    assert not [
        *alias_credentials(after.opened.store, redactor),
        *log_credentials(after.opened.log, redactor),
    ]
    assert after.pending.preview.endswith("It was [REDACTED].") or len(after.pending.preview) == 120
    assert replayed(after.decide(request(ask(first)))).tier == "alias"
    before = after.pending
    after.decide(request(ask(second)))
    assert (after.pending.id, after.pending.count) == (before.id, before.count + 1)
    after.approve()
    assert replayed(after.decide(request(ask(second)))).tier == "alias"
    assert after.opened.store.check() == after.opened.log.check() == []
    after.opened.close()


def test_a_credential_in_either_is_found(person: Person) -> None:
    """By the rules of today: named by its rule and its place, never shown."""
    person.decide(request(ask(f"{ASKED} It is zebra-17.")))
    person.approve()
    person.decide(request(ask(f"{ASKED} It was zebra-18.")))
    redactor = Redactor(("pattern:zebra-[0-9]+",))
    [of_alias] = alias_credentials(person.opened.store, redactor)
    assert (of_alias.rule, of_alias.where) == ("RW901", "$.body.messages[1].content")
    found = [each for each in log_credentials(person.opened.log, redactor) if each.pending]
    assert {each.where for each in found} == {"$.body.messages[1].content", "$.preview"}
    assert "zebra" not in json.dumps([each.to_json() for each in (of_alias, *found)])
    person.opened.close()


def test_a_read_only_store_has_its_log_beside_it(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused is pending there; the aliases that the store has answer."""
    person.decide(request(ask(ASKED)))
    person.approve()
    before = content_of(tmp_path / ".rewind" / "store")
    monkeypatch.setattr(opening, "_can_write", lambda path: path.name.endswith(".log"))
    for changed in ({}, {"tail_n": 1}):
        person = person.again(**changed)
        assert person.opened.store.readonly
        assert replayed(person.decide(request(ask(ASKED)))).tier == "alias"
        person.decide(request(ask(ASKED + " Now.")))
        assert person.pending.preview.endswith("Now.")
        assert len(person.opened.log.pending.candidates(person.pending)) == 1
    person.opened.close()
    assert content_of(tmp_path / ".rewind" / "store") == before


def test_what_was_approved_is_not_pruned(person: Person) -> None:
    """No run replayed it yet, but a person wants it replayed."""
    person.decide(request(ask(ASKED)))
    alias = person.approve()
    store, log = person.opened.store, person.opened.log
    assert alias.cassette not in never_replayed(uses(store.readable(), store.aliases.all(), log))
    store.delete([alias.cassette])
    assert isinstance(person.decide(request(ask(ASKED))), Refuse)
    assert store.aliases.all() == []
    person.opened.close()


def test_a_recording_that_cannot_answer_is_not_approved(person: Person) -> None:
    """Another operation: the message says what it is."""
    live = RawRequest("POST", "api.openai.com", 443, "/v1/embeddings", (), b'{"model": "e", "input": "x"}')
    person.decide(live)
    [cassette] = person.opened.store.cassettes()
    with pytest.raises(ReviewError, match="recorded as generate, and is asked for as embed"):
        person.review.approve(person.pending, cassette, START)
    with pytest.raises(ReviewError, match="no answer can be written"):
        person.review.answer(person.pending, read_answer("x", "f"), START)
    person.opened.close()


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_by_hand_is_one_of_its_wire(person: Person, wire: str, *, stream: bool) -> None:
    """In the form that was asked for; in another it is converted like a recording."""
    body: JsonObject = {
        "model": "m1",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Atlantis?"}],
    }
    if wire == "responses":
        body = {"model": "m1", "input": "Atlantis?"}
    live = request({**body, "stream": stream}, wire=wire)
    person.decide(live)
    content = {"text": "It is gone.", "tool_calls": [{"name": "dive", "arguments": {"depth": 3}}]}
    supplied = person.review.answer(person.pending, read_answer(json.dumps(content), "f"), START)
    assert supplied.cassette.answer.by_hand
    assert supplied.notes == ("the request offers no tool 'dive'",)
    hit = replayed(person.decide(live))
    assert (hit.tier, hit.cassette.id) == ("exact", supplied.cassette.id)
    for asked_stream in (stream, not stream):
        hit = replayed(person.decide(request({**body, "stream": asked_stream}, wire=wire)))
        form = hit.reading.record.form
        answer = FORMS[hit.reading.record.wire].parse(form, hit.answer.body)
        assert answer is not None
        [choice] = answer.choices
        said = [
            (part.get("text"), part.get("name"), json.loads(str(part.get("arguments", "null"))))
            for part in choice.parts
        ]
        assert said == [("It is gone.", None, None), (None, "dive", {"depth": 3})]
        assert choice.finish == "tool_calls"
    assert person.opened.store.check() == []
    person.opened.close()


def test_an_answer_by_hand_is_redacted_where_answers_are(person: Person, tmp_path: Path) -> None:
    """`redact_answers` goes for it too."""
    person = person.again(redact_answers=True)
    live = request(ask("What is the key?"))
    person.decide(live)
    secret = fake("sk-proj-", 40)
    person.review.answer(person.pending, read_answer(f"It is {secret}.", "f"), START)
    assert b"It is [REDACTED]." in replayed(person.decide(live)).answer.body
    assert not scan(tmp_path / ".rewind", [secret]).found
    person.opened.close()


def test_an_alias_follows_a_correction(person: Person) -> None:
    """What is said anew by hand is said to whoever was led there; the same words again change nothing."""
    by_hand, led = request(ask("What is the key?")), request(ask("Which is the key?"))
    person.decide(by_hand)
    first = person.review.answer(person.pending, read_answer("It is blue.", "f"), START).cassette
    person.decide(led)
    person.review.approve(person.pending, first, START)
    count = person.opened.store.count()
    same = person.review.correct(first, read_answer("It is blue.", "f"), START + 1)
    assert (same.cassette, person.opened.store.count()) == (first, count)
    made = person.review.correct(first, read_answer("It is red.", "f"), START + 2).cassette
    assert person.opened.store.count() == count
    hit = replayed(person.decide(led))
    assert (hit.tier, hit.cassette.id, b"It is red." in hit.answer.body) == ("alias", made.id, True)
    assert person.opened.store.check() == []
    again = person.again(tail_n=1)
    assert replayed(again.decide(led)).tier == "alias"
    again.opened.close()
