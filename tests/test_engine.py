"""The engine: for each class of request and each mode a decision (DESIGN §4, §8, §9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewind_proxy.canonical.fingerprint import HASH_VERSION, settings_digest
from rewind_proxy.canonical.model import Mode
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.engine import Decision, Engine, Fail, Forward, Refuse, Replay, Session, Step, header_safe
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.recording import refusal, refused_step
from rewind_proxy.settings import Settings
from rewind_proxy.store import AnswerRecord, Exchange, Store
from rewind_proxy.store.records import RunRecord
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
MODES: tuple[Mode, ...] = ("auto", "replay", "record", "passthrough")


class Desk:
    """An engine on a real store, and what a test does with it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = Settings(store=folder / "store", **settings)
        match = self.settings.match_settings
        self.store = Store.open(self.settings.store, settings_digest=settings_digest(match))
        self.reader = RequestReader(HOSTS, Redactor(rule_list(True, (), ())), match, 2**26)
        self.engine = Engine(self.settings, self.reader, self.store)
        self.session = self.new_session()

    def new_session(self) -> Session:
        """A session that was answered nothing yet."""
        return Session(RunRecord(id="run-live", mode="auto", started_at=0.0))

    def request(
        self, body: object, path: str = "/v1/chat/completions", host: str = "api.openai.com", **more: Any
    ) -> RawRequest:
        """A request with a JSON body."""
        data = b"" if body is None else json.dumps(body).encode()
        return RawRequest(
            more.pop("method", "POST"), host, 443, path, (("content-type", "application/json"),), data, **more
        )

    def read(self, request: RawRequest) -> Reading:
        """What is known of a request."""
        host = HOSTS.find(request.host, 443)
        assert host is not None
        return self.reader.read(request, host)

    def decide(self, request: RawRequest, mode: Mode = "auto", session: Session | None = None) -> Decision:
        """The decision for a request."""
        host = HOSTS.find(request.host, 443)
        assert host is not None
        session = session or self.session
        session.calls += 1
        return self.engine.decide(request, host, Step(session, session.calls, 0.0), mode=mode)

    def record(
        self, request: RawRequest, answer: bytes = b'{"ok":1}', run: str = "run-1", **facts: Any
    ) -> None:
        """Put a recording of a request into the store."""
        host = HOSTS.find(request.host, 443)
        assert host is not None
        reading = self.reader.read(request, host)
        self.store.put(
            Exchange(
                request=reading.record,
                body=reading.body,
                answer=AnswerRecord(status=200, content_type="application/json", **facts),
                answer_body=answer,
                chunks=((len(answer), 1),),
                exact=reading.exact,
                normalised=reading.fingerprint,
                links=reading.links,
                sketched=reading.sketched,
                run=run,
                recorded_at=1.0,
                hash_version=HASH_VERSION,
            )
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with an empty store."""
    made = Desk(tmp_path)
    yield made
    made.store.close()


def chat(text: str = "Hi", **more: Any) -> dict[str, Any]:
    """A chat request."""
    return {"model": "m1", "messages": [{"role": "user", "content": text}], **more}


@pytest.mark.parametrize(
    ("mode", "hit", "miss"),
    [
        ("auto", Replay, Forward),
        ("replay", Replay, Refuse),
        ("record", Forward, Forward),
        ("passthrough", Forward, Forward),
    ],
)
def test_modes(desk: Desk, mode: Mode, hit: type[Decision], miss: type[Decision]) -> None:
    """Each mode does with a hit and with a miss what the table of DESIGN §8 says."""
    desk.record(desk.request(chat()))
    known, unknown = desk.decide(desk.request(chat()), mode), desk.decide(desk.request(chat("Other")), mode)
    assert (type(known), type(unknown)) == (hit, miss)
    for decision in (known, unknown):
        if isinstance(decision, Forward):
            assert decision.record == (mode != "passthrough")


def test_a_fork_follows_the_recorded_run_and_then_leaves_it(tmp_path: Path) -> None:
    """Before `from_step` model calls are replayed or refused, never live; from it on they are recorded."""
    desk = Desk(tmp_path, from_step=3)
    for text in ("one", "two", "three"):
        desk.record(desk.request(chat(text)))
    desk.decide(desk.request(None, "/v1/models", method="GET"))  # no model call: it does not count
    one, unknown, three = (desk.decide(desk.request(chat(text))) for text in ("one", "unknown", "three"))
    assert isinstance(one, Replay)
    assert isinstance(unknown, Refuse)
    assert isinstance(three, Forward)
    assert three.record
    assert three.after_replay
    again = desk.decide(desk.request(chat("one")), session=desk.new_session())
    assert isinstance(again, Replay)  # each session is followed from its start
    late = desk.new_session()
    late.steps = 2
    assert isinstance(desk.decide(desk.request(chat("one")), "replay", late), Replay)
    assert isinstance(desk.decide(desk.request(chat("one")), "passthrough", late), Forward)
    desk.store.close()


@pytest.mark.parametrize("fault", ["turn=1:429", "turn=1:cut-after=1"])
def test_a_call_that_fails_on_purpose_is_none_of_the_recorded_run(tmp_path: Path, fault: str) -> None:
    """A fork leaves the recorded run at its own call, however often one before it had to be asked again."""
    desk = Desk(tmp_path, from_step=3, fault=fault)
    for text in ("one", "two"):
        desk.record(desk.request(chat(text)))
    failed, again, two, three = (
        desk.decide(desk.request(chat(text))) for text in ("one", "one", "two", "three")
    )
    assert isinstance(failed, Replay | Fail)
    assert "fault" in dict(failed.headers)["x-rewind-note"]
    assert isinstance(again, Replay)
    assert isinstance(two, Replay)
    assert isinstance(three, Forward)
    desk.store.close()


def test_exact_before_normalised_and_the_note(desk: Desk) -> None:
    """An equal request hits exactly; another model hits normalised, and the note names both models."""
    desk.record(desk.request(chat(max_tokens=64)))
    exact = desk.decide(desk.request(chat(max_tokens=64)))
    other = desk.decide(desk.request({**chat(max_tokens=32), "model": "m2"}))
    assert isinstance(exact, Replay)
    assert isinstance(other, Replay)
    assert (exact.tier, exact.note) == ("exact", "")
    assert (other.tier, other.note) == ("normalised", "model m1->m2; max_tokens 64->32")
    assert dict(other.headers)["x-rewind-cassette"] == other.cassette.id


def test_scrub_rules_are_named_on_the_hit(desk: Desk) -> None:
    """A hit that scrubbing made possible names the rules."""
    desk.record(desk.request(chat("id 3f2504e0-4f89-41d3-9a0c-0305e82c3301")))
    found = desk.decide(desk.request(chat("id 3f2504e0-4f89-41d3-9a0c-0305e82c3302")))
    assert isinstance(found, Replay)
    assert found.note == "scrubbed RS101"


def test_an_answer_names_the_live_folder(desk: Desk) -> None:
    """On a normalised hit elsewhere the answer has the live folder in it, and the note counts it."""

    def asked(folder: str) -> RawRequest:
        return desk.request(chat(f"<cwd>{folder}</cwd> where am I?"))

    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "In /home/a/app/src."}}]}
    desk.record(asked("/home/a/app"), json.dumps(answer).encode())
    moved, here = desk.decide(asked("/builds/7/app")), desk.decide(asked("/home/a/app"))
    assert isinstance(moved, Replay)
    assert isinstance(here, Replay)
    assert json.loads(moved.answer.body)["choices"][0]["message"]["content"] == "In /builds/7/app/src."
    assert moved.note == "scrubbed RS105; re-based 1"
    assert json.loads(here.answer.body) == answer


def test_a_background_task_of_another_user(desk: Desk) -> None:
    """A replayed call reads the live user's file of a task, so that the session goes on."""

    def asked(user: int, task: str) -> RawRequest:
        told = f"Running in background with ID: {task}. Output: /tmp/claude-{user}/-app/tasks/{task}.output"
        call = {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        messages = [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": told},
        ]
        return desk.request({"model": "m1", "messages": messages})

    said = {"role": "assistant", "content": "cat /tmp/claude-1000/-app/tasks/b1a2b3c4d.output"}
    desk.record(asked(1000, "b1a2b3c4d"), json.dumps({"choices": [{"index": 0, "message": said}]}).encode())
    found = desk.decide(asked(0, "bz9y8x7w6"))
    assert isinstance(found, Replay)
    message = json.loads(found.answer.body)["choices"][0]["message"]
    assert message["content"] == "cat /tmp/claude-0/-app/tasks/bz9y8x7w6.output"


def test_a_session_goes_on_the_day_after(desk: Desk) -> None:
    """A date that the model wrote comes back as it was recorded, and the next step is a hit all the same."""

    def asked(today: str, wrote: str) -> RawRequest:
        arguments = json.dumps({"path": "a.md", "content": f"---\ndate: {wrote}\n---", "date": wrote})
        call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": arguments}}
        messages = [
            {"role": "system", "content": f"Today's date: {today}"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ]
        return desk.request({"model": "m1", "messages": messages})

    desk.record(asked("2026-11-30", "2026-11-30"))
    assert isinstance(desk.decide(asked("2026-12-01", "2026-11-30")), Replay)


def test_rebase_off_serves_the_recorded_bytes(tmp_path: Path) -> None:
    """With `rebase = false` the recorded bytes are served as they are."""
    desk = Desk(tmp_path, rebase=False)
    desk.record(
        desk.request(chat("<cwd>/home/a/app</cwd>")), b'{"choices":[{"message":{"content":"/home/a/app"}}]}'
    )
    moved = desk.decide(desk.request(chat("<cwd>/builds/7/app</cwd>")))
    assert isinstance(moved, Replay)
    assert b"/home/a/app" in moved.answer.body
    desk.store.close()


def test_match_exact_switches_the_normalised_tier_off(tmp_path: Path) -> None:
    """With `match = exact` another model is a miss."""
    desk = Desk(tmp_path, match="exact")
    desk.record(desk.request(chat()))
    assert isinstance(desk.decide(desk.request({**chat(), "model": "m2"}), "replay"), Refuse)
    desk.store.close()


CHAT_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_another_form_is_converted(desk: Desk, mode: Mode) -> None:
    """What was recorded whole is served as a stream to whoever asks for one, on its wire and on another."""
    desk.record(desk.request(chat()), json.dumps(CHAT_ANSWER).encode())
    stream = desk.decide(desk.request(chat(stream=True)), mode)
    assert isinstance(stream, Replay)
    assert dict(stream.headers)["content-type"].startswith("text/event-stream")
    assert "converted chat_completions whole->chat_completions sse" in stream.note
    assert stream.answer.body.endswith(b"data: [DONE]\n\n")
    anthropic = {"model": "m1", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}
    message = desk.decide(desk.request(anthropic, "/v1/messages", "api.anthropic.com"), mode)
    assert isinstance(message, Replay)
    assert json.loads(message.answer.body)["content"][0]["text"] == "Hello"
    assert dict(message.headers)["content-type"].startswith("application/json")


def test_another_form_is_never_served_as_it_is(desk: Desk) -> None:
    """An answer that cannot be converted is refused in replay, and recorded anew in auto."""
    desk.record(desk.request(chat()))
    asked = desk.request(chat(stream=True))
    refused = desk.decide(asked, "replay")
    assert isinstance(refused, Refuse)
    assert refused.miss.reason.startswith("format:")
    assert isinstance(desk.decide(asked, "auto"), Forward)


def test_a_refusal(desk: Desk) -> None:
    """A refusal is a 400 that no SDK retries; it names the nearest and the first difference."""
    desk.record(desk.request(chat("read the file")))
    refused = desk.decide(desk.request(chat("read the book")), "replay")
    assert isinstance(refused, Refuse)
    headers = dict(refused.headers)
    message = json.loads(refused.body)["error"]["message"]
    assert (refused.status, refused.tier, headers["x-should-retry"]) == (400, "miss", "false")
    assert message.startswith("rewind: no recording")
    assert refused.miss.difference is not None
    assert refused.miss.difference.path == "$.messages[0].parts[0].text"
    assert "read the file" in message
    assert "read the book" in message


@pytest.mark.parametrize(
    ("host", "path", "wanted"),
    [
        ("api.anthropic.com", "/v1/messages", {"type": "error"}),
        ("generativelanguage.googleapis.com", "/v1beta/models/m:generateContent", {}),
        ("api.anthropic.com", "/v1/unheard-of", {"type": "error"}),
    ],
)
def test_the_error_is_the_providers(desk: Desk, host: str, path: str, wanted: dict[str, str]) -> None:
    """Each provider's clients get an error of their own shape, on endpoints without an adapter too."""
    refused = desk.decide(desk.request({}, path, host), "replay")
    assert isinstance(refused, Refuse)
    error = json.loads(refused.body)
    assert error.items() >= wanted.items()
    assert error["error"]["message"].startswith("rewind: no recording")


def test_what_would_have_matched(desk: Desk) -> None:
    """A difference in one parameter only names the setting that would ignore it."""
    desk.record(desk.request(chat(reasoning_effort="low")))
    refused = desk.decide(desk.request(chat(reasoning_effort="high")), "replay")
    assert isinstance(refused, Refuse)
    assert refused.miss.would_match_with == ("ignore += reasoning_effort",)


def test_nothing_alike(desk: Desk) -> None:
    """An empty store says that nothing like it was recorded."""
    refused = desk.decide(desk.request(chat()), "replay")
    assert isinstance(refused, Refuse)
    assert refused.miss.nearest is None
    assert "ever recorded" in refused.miss.reason


def test_side_requests(desk: Desk) -> None:
    """Replay answers side requests in recorded order, then the last again; unknown ones get 404."""
    models = desk.request(None, "/v1/models", method="GET")
    desk.record(models, b"one")
    desk.record(models, b"two")
    bodies = [desk.decide(models, "replay") for _ in range(3)]
    assert [each.answer.body for each in bodies if isinstance(each, Replay)] == [b"one", b"two", b"two"]
    unknown = desk.decide(desk.request(None, "/v1/models/x", method="GET"), "replay")
    assert isinstance(unknown, Refuse)
    assert (unknown.status, unknown.cls) == (404, "side")
    live = desk.decide(models, "auto")
    assert isinstance(live, Forward)
    assert live.record


@pytest.mark.parametrize("mode", MODES)
def test_telemetry_and_logins(desk: Desk, mode: Mode) -> None:
    """Neither is ever recorded; in replay telemetry gets 404 and a login is refused by name."""
    telemetry = desk.decide(desk.request({}, "/api/event_logging/v2/batch", "api.anthropic.com"), mode)
    login = desk.decide(desk.request({}, "/v1/realtime/client_secrets"), mode)
    if mode == "replay":
        assert isinstance(telemetry, Refuse)
        assert isinstance(login, Refuse)
        assert (telemetry.status, telemetry.cls) == (404, "telemetry")
        assert (login.status, login.cls) == (400, "auth")
        assert "/v1/realtime/client_secrets" in login.miss.reason
    else:
        assert isinstance(telemetry, Forward)
        assert isinstance(login, Forward)
        assert not telemetry.record
        assert not login.record


@pytest.mark.parametrize("mode", MODES)
def test_sockets(desk: Desk, mode: Mode) -> None:
    """A model socket gets 426 but in passthrough; another passes in live modes and is refused in replay."""
    model = desk.decide(desk.request(None, "/v1/responses", method="GET", upgrade=True), mode)
    other = desk.decide(desk.request(None, "/v1/realtime", method="GET", upgrade=True), mode)
    assert isinstance(model, Forward if mode == "passthrough" else Refuse)
    assert not isinstance(model, Refuse) or model.status == 426
    assert isinstance(other, Refuse if mode == "replay" else Forward)


@pytest.mark.parametrize(("path", "cls"), [("/v1/realtime", "model"), ("/v1/notes", "socket")])
def test_a_realtime_socket_is_a_model_call_that_is_refused(desk: Desk, path: str, cls: str) -> None:
    """Nothing else is asked in its place, and no answer can be supplied; another socket is reported alone."""
    refuse = desk.decide(desk.request(None, path, method="GET", upgrade=True), "replay")
    assert isinstance(refuse, Refuse)
    assert refused_step(refuse, ("", "", "")).cls == cls
    assert refusal(refuse, 0.85) is None


def test_two_sessions_have_each_their_own_sequence(desk: Desk) -> None:
    """What one session was given counts for that session alone."""
    for answer in (b"r1", b"r2"):
        desk.record(desk.request(chat()), answer)
    first, second = desk.new_session(), desk.new_session()
    got = [desk.decide(desk.request(chat()), "replay", session) for session in (first, second, first, second)]
    assert [each.answer.body for each in got if isinstance(each, Replay)] == [b"r1", b"r1", b"r2", b"r2"]


def test_a_live_turn_after_replayed_ones_is_marked(desk: Desk) -> None:
    """In auto a live turn after replayed ones is told apart: the provider never saw its ids."""
    desk.record(desk.request(chat()))
    fresh = desk.decide(desk.request(chat("x")), "auto", desk.new_session())
    desk.decide(desk.request(chat()))
    after = desk.decide(desk.request(chat("x")))
    assert isinstance(fresh, Forward)
    assert isinstance(after, Forward)
    assert (fresh.after_replay, after.after_replay) == (False, True)


def test_notes_are_header_safe() -> None:
    """A note is printable ASCII on one line, of a length that servers take."""
    safe = header_safe("model a\r\nb\u00e9->\x1b[31m" + "x" * 2000)
    assert safe.isascii()
    assert safe.isprintable()
    assert len(safe) <= 900
