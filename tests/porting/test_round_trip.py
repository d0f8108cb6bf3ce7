"""Export and import are inverse: texts, fingerprints, ids and answers, whatever was recorded."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from porting.stores import CHAT, NOW, STREAM, chat, documents, export, heard, opened, put, spoil
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.cli.canon import as_canon
from rewind_proxy.engine import Decision, Engine, Refuse, Replay, Session, Step
from rewind_proxy.errors import PortingError
from rewind_proxy.matching.opening import Opened
from rewind_proxy.porting import text
from rewind_proxy.porting.document import from_document
from rewind_proxy.porting.exporting import Exporter
from rewind_proxy.porting.heard import Heard
from rewind_proxy.settings import Settings
from rewind_proxy.store.records import RunRecord

KEY = "sk-proj-" + secrets.token_hex(20)
MULTIPART = b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b--\r\n'
EVENTS = "text/event-stream"
HEARD: dict[str, Heard] = {
    "whole": heard(),
    "stream": heard(chat("hello", stream=True), STREAM.encode(), kind=EVENTS),
    "credential in the body": heard(chat(f"my key is {KEY}")),
    "credential in the query": heard(path=f"/v1/chat/completions?key={KEY}&alt=json&x=%20%ff&empty="),
    "odd leaves": heard(
        b'{"model":"m","messages":[],"n":1e999,"seed":123456789012345678901,"x":"\\ud800 \xe2\x80\xae"}'
    ),
    "floats": heard(b'{"model":"m","messages":[],"temperature":1.0,"top_p":1e-7}'),
    "no JSON": heard(b"\xff\xfe not JSON"),
    "repeated member": heard(b'{"model":1,"model":2}'),
    "in a coding that breaks": heard(b"zzz", headers=[("content-encoding", "zstd")]),
    "multipart": heard(
        MULTIPART,
        path="/v1/audio/transcriptions",
        headers=[("content-type", "multipart/form-data; boundary=b")],
    ),
    "side": heard(b"", [{"id": "m1"}], method="GET", path="/v1/models"),
    "side with a body": heard({"a": 1}, {"b": 2}, host="chatgpt.com", path="/backend-api/wham/x"),
    "generic stream by header": heard(
        {"a": 1},
        b"data: 1\n\n",
        host="api.cohere.com",
        path="/v2/x",
        headers=[("accept", EVENTS)],
        kind=EVENTS,
    ),
    "binary answer": heard({"input": "hi"}, b"\x00\xff\x01", path="/v1/audio/speech", kind="audio/mpeg"),
    "embedding": heard(
        {"input": "hi", "model": "e"}, {"data": [{"embedding": [0.1, -2e-05]}]}, path="/v1/embeddings"
    ),
    "port": heard(host="localhost", path="/v1/chat/completions"),
}
"""One exchange of each kind that a store can hold."""
HOSTS = {"localhost:443": "chat_completions"}


def known(of: Opened) -> list[tuple[object, ...]]:
    """All that decides whether and how a recording answers."""
    return [
        (
            record.id,
            record.exact,
            of.reader.keys_of(record, of.store.request_body(record))[:2],
            record.request,
            record.answer,
            of.store.answer(record),
            of.store.request_body(record),
            record.run,
            record.recorded_at,
        )
        for record in of.store.cassettes()
    ]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where nothing was recorded yet."""
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("kind", HEARD)
def test_a_recording_comes_back_as_it_was(kind: str, tmp_path: Path, elsewhere: Path) -> None:
    """Export, import into an empty store, export: the same bytes, fingerprints, ids, answer and times."""
    with opened(tmp_path, hosts=HOSTS) as (first, chosen):
        assert put(first, chosen, [HEARD[kind]]).recordings == 1
        before, texts = known(first), [each.text for each in export(first)]
        assert [each.text for each in export(first)] == texts
    with opened(elsewhere, hosts=HOSTS) as (second, chosen):
        kept = [from_document(json.loads(each), "file") for each in texts]
        assert not any(each.edited for each in kept)
        assert put(second, chosen, kept).recordings == 1
        assert known(second) == before
        assert [each.text for each in export(second)] == texts
        assert put(second, chosen, kept).known == 1


BODY_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from([KEY, f'{{"api_key": "{KEY}"}}', "\ud800", "⟨uuid:1⟩", "\u2028", "[REDACTED]"]),
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | BODY_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(BODY_TEXTS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    extras=st.lists(st.dictionaries(BODY_TEXTS, VALUES, max_size=3), min_size=1, max_size=4),
    prompt=BODY_TEXTS,
    answer=st.text(max_size=8),
)
def test_export_then_import_is_the_identity(extras: list[JsonObject], prompt: str, answer: str) -> None:
    """Of whole stores with any bodies, credentials in them or not; and no credential is in any text."""
    content = {**CHAT, "id": answer}
    entries = [heard({**extra, **chat(prompt)}, content) for extra in extras]
    with tempfile.TemporaryDirectory() as name:
        with opened(Path(name) / "a") as (first, chosen):
            put(first, chosen, entries)
            before, exported = known(first), export(first)
        assert len(before) == len(entries)
        assert not any(KEY in each.text for each in exported)
        with opened(Path(name) / "b") as (second, chosen):
            put(second, chosen, documents(exported))
            assert known(second) == before
            assert [each.text for each in export(second)] == [each.text for each in exported]


def test_sessions_come_back_with_their_names(tmp_path: Path, elsewhere: Path) -> None:
    """The session of a run is in the text and in the log of the store that takes it in."""
    with opened(tmp_path, session="nightly build") as (first, chosen):
        put(first, chosen, [heard()])
        [exported] = export(first)
        assert exported.folder == "nightly_build"
    with opened(elsewhere) as (second, chosen):
        put(second, chosen, documents([exported]))
        assert [run.session for run in second.log.runs()] == ["nightly build"]


def test_redacted_answers_leave_redacted(tmp_path: Path) -> None:
    """With `redact_answers` a credential in an answer is in no text; the id is that of what is there."""
    answer = {**CHAT, "system_fingerprint": f"my key is {KEY}"}
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard(answer=answer)])
        [plain], [masked] = export(first), export(first, answers=Redactor())
    assert KEY in plain.text
    assert KEY not in masked.text
    assert plain.document["id"] != masked.document["id"]


def test_a_credential_that_only_a_header_tells_is_redacted(tmp_path: Path) -> None:
    """Files of other tools have the headers; what authorises there is masked wherever else it stands."""
    secret = secrets.token_hex(12)
    headers = [("content-type", "application/json"), ("authorization", f"Bearer {secret}")]
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard(chat(f"I am {secret} today"), headers=headers)])
        [exported] = export(first)
    assert secret not in exported.text
    assert "I am [REDACTED] today" in exported.text
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_the_interoperable_hash_is_told(tmp_path: Path) -> None:
    """The same as `canon` gives for the request (DESIGN §13)."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard()])
        [exported] = export(first)
        asked = heard().request
        host = first.reader.hosts.find(asked.host, asked.port)
        assert host
        told = as_canon(first.reader.read(asked, host))
    assert (exported.document["core_v3"], exported.document["exact"]) == (told["core_v3"], told["exact"])


def test_the_name_of_a_file_tells_what_it_is(tmp_path: Path) -> None:
    """Time, first words, content: files sort as they were recorded, and equal content has one name."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard(chat("Say hello, please: Grüße an alle!"))])
        [exported] = export(first)
    digest = str(exported.document["sha256"])[:12]
    assert exported.name == f"20261130-114503-say-hello-please-gr-e-{digest}.json"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("request", "body", "messages", 0, "content"), "Something else.", None),
        (("exact",), "0" * 64, None),
        (("answer", "status"), 500, None),
        (("answer", "json"), {"error": {}}, "the answer holds an error"),
    ],
)
def test_what_was_edited_is_taken_for_what_it_says(
    path: tuple[str | int, ...], value: JsonValue, reason: str | None, tmp_path: Path, elsewhere: Path
) -> None:
    """No id or fingerprint is trusted: an edited text is a recording of its own, judged as a live one is."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard()])
        [record] = first.store.cassettes()
        [exported] = export(first)
    document = json.loads(exported.text)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    kept = from_document(document, "file")
    assert kept.edited
    with opened(elsewhere) as (second, chosen):
        outcome = put(second, chosen, [kept], digest="cd" * 32)
        if reason:
            assert dict(outcome.left) == {reason: 1}
            return
        assert (outcome.recordings, outcome.edited) == (1, 1)
        [found] = second.store.cassettes()
        assert found.run != record.run
        request_changed = path[0] == "request"
        assert (found.exact == record.exact) != request_changed
        assert put(second, chosen, [kept], digest="cd" * 32).known == 1


def test_a_digest_that_was_edited_cannot_be_checked(tmp_path: Path, elsewhere: Path) -> None:
    """Nothing else tells what a request was that is kept as a digest: it is left out and named."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [HEARD["side with a body"]])
        [exported] = export(first)
    document = json.loads(exported.text) | {"exact": "0" * 64}
    with opened(elsewhere) as (second, chosen):
        outcome = put(second, chosen, [from_document(document, "a.json")])
        assert outcome.places == ["a.json: its request is kept as a digest alone, and that was edited"]


def test_a_credential_written_by_hand_is_redacted(tmp_path: Path) -> None:
    """What somebody pasted into a text never reaches the store."""
    with opened(tmp_path / "a") as (first, chosen):
        put(first, chosen, [heard()])
        [exported] = export(first)
    document = json.loads(exported.text)
    document["request"]["body"]["messages"][0]["content"] = f"the key {KEY}"
    with opened(tmp_path / "b") as (second, chosen):
        put(second, chosen, [from_document(document, "file")])
        [again] = export(second)
    assert KEY not in again.text
    assert "[REDACTED]" in again.text
    files = [file for file in (tmp_path / "b").rglob("*") if file.is_file()]
    assert files
    assert not any(re.search(KEY.encode(), file.read_bytes()) for file in files)


@pytest.mark.parametrize("own", [True, False])
def test_an_older_answer_to_a_side_request_pushes_no_newer_one_out(
    own: bool, tmp_path: Path, elsewhere: Path
) -> None:
    """The store keeps the newest run's; an older one, of whatever file, is left out and says so."""
    older = heard(b"", [], method="GET", path="/v1/models", at=NOW - 1000)
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [older])
        texts = documents(export(first))
    with opened(elsewhere) as (second, chosen):
        put(second, chosen, [HEARD["side"]], digest="cd" * 32)
        left = put(second, chosen, texts if own else [older], digest="ef" * 32).left
        assert dict(left) == {"the store has a newer answer to this side request": 1}
        [record] = second.store.cassettes()
        assert second.store.answer(record).body == b'[{"id": "m1"}]'


@pytest.mark.parametrize("at", [-1.0, 1e12, float("nan"), float("inf"), None])
def test_a_time_that_is_none_is_now(at: float | None, tmp_path: Path) -> None:
    """Whatever a file says of its times, there is a run, and it can be exported."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [replace(heard(at=at), milliseconds=10**20)])
        [exported] = export(first)
    assert exported.document["recorded_at"] == NOW


@pytest.mark.parametrize("run", ["../../out", ".hidden", "a/b", "x\x00", "\ud800", "r" * 200])
def test_a_run_s_name_never_leads_out_of_the_folder(run: str, tmp_path: Path) -> None:
    """A text from elsewhere that names its run so is refused."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard()])
        [exported] = export(first)
    with pytest.raises(PortingError, match='"run" is no name of a run'):
        from_document(json.loads(exported.text) | {"run": run}, "file")


@pytest.mark.parametrize("session", ["../../out", "..", "/etc", "a\x00b", "tests/a.py::test[x]"])
def test_a_session_s_name_never_leads_out_of_the_folder(session: str, tmp_path: Path) -> None:
    """Whatever a session is called, its folder is one below."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen.model_copy(update={"session": session}), [heard()])
        [exported] = export(first)
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", exported.folder)


@cache
def texts() -> list[str]:
    """The text of one recording of each kind."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (store, chosen):
        put(store, chosen, HEARD.values())
        return [each.text for each in export(store)]


NODES = st.one_of(
    VALUES,
    st.sampled_from(
        [-1, 2**70, 10**12, True, "", "a\r\nset-cookie: b", "https://x:²/", [], {}, [[-1, -1]], 600]
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_text_from_elsewhere_is_more_than_refused(data: st.DataObject) -> None:
    """Whatever is put in whatever place of a text: it is taken in, or left out, or refused by its name."""
    document = json.loads(data.draw(st.sampled_from(texts())))
    spoil(document, data.draw(NODES), data)
    try:
        kept = from_document(document, "file")
    except PortingError as error:
        said = str(error)
    else:
        said = ""
    assert not said or said.startswith("file: ")
    if said:
        return
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (store, chosen):
        outcome = put(store, chosen, [kept])
        assert outcome.recordings + outcome.left.total() + outcome.unknown_hosts.total() == 1
        for each in export(store):
            assert from_document(json.loads(each.text), "again").edited is False
        for record in store.store.cassettes():
            assert not any("\n" in value for _, value in record.answer.headers)


def test_an_answer_by_hand_stays_one(tmp_path: Path, elsewhere: Path) -> None:
    """What no model said is marked so in its text, and in every store that takes it in."""
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [heard()])
        [exported] = export(first)
    document = json.loads(exported.text)
    answer = document.pop("answer")
    status, headers, took = (answer.pop(name) for name in ("status", "headers", "latency_ms"))
    document["answer"] = {"status": status, "headers": headers, "latency_ms": took, "by_hand": True, **answer}
    rest = {name: value for name, value in document.items() if name not in ("rewind", "sha256")}
    document["sha256"] = text.digest(rest)
    with opened(elsewhere) as (second, chosen):
        put(second, chosen, [from_document(document, "file")])
        [record] = second.store.cassettes()
        assert record.answer.by_hand
        [again] = export(second)
        assert again.document["sha256"] == document["sha256"]


@pytest.mark.parametrize("errors", [False, True])
def test_a_part_of_an_answer_is_none(tmp_path: Path, *, errors: bool) -> None:
    """No header is in a fingerprint: what came for a range would answer whoever asks for the whole."""
    with opened(tmp_path, record_errors=errors) as (into, chosen):
        part = heard(b"", [{"id": "m1"}], method="GET", path="/v1/models", status=206)
        done = put(into, chosen, [part, heard({"a": 1}, b"12", path="/v1/audio/speech", status=206)])
        assert (done.recordings, done.left) == (
            0,
            {"status 206: a part is no answer to the whole request": 2},
        )


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        (("x-rewind", "recording"), 1),
        (("X-Rewind", "passed"), 1),
        (("X-Rewind", "replayed"), 0),
        (("x-rewind", "refused"), 0),
        (("x-rewind-note", "fault turn=1:429"), 0),
    ],
)
def test_an_answer_of_our_own_is_no_recording(tmp_path: Path, header: tuple[str, str], kept: int) -> None:
    """What a rule made a hit, or a refusal, would come back as what a provider said to just this request."""
    told = heard(status=200 if kept else 400)
    with opened(tmp_path, record_errors=True) as (into, chosen):
        done = put(into, chosen, [replace(told, headers=(*told.headers, header))])
    assert done.recordings == kept
    assert done.left == ({} if kept else {"Rewind gave this answer itself, not a provider": 1})


@pytest.mark.parametrize("side", [False, True])
def test_a_forged_fingerprint_answers_nothing_else(tmp_path: Path, elsewhere: Path, *, side: bool) -> None:
    """A text that hides a credential tells its exact fingerprint: what it says besides must agree."""
    honest, other = heard(chat(f"my key is {KEY}")), heard(chat("delete everything"))
    if side:
        honest, other = HEARD["side with a body"], HEARD["side"]
    with opened(tmp_path) as (first, chosen):
        put(first, chosen, [other])
        [target] = first.store.cassettes()
    with opened(tmp_path / "honest") as (first, chosen):
        put(first, chosen, [honest])
        [text_of_it] = export(first)
    document = {**text_of_it.document, "exact": target.exact}
    rest = {name: value for name, value in document.items() if name not in ("rewind", "sha256")}
    document["sha256"] = text.digest(rest)
    with opened(elsewhere, mode="replay") as (second, chosen):
        put(second, chosen, [from_document(document, "forged")])
        assert isinstance(ask(second, chosen, other), Refuse)
    with opened(tmp_path / "b", mode="replay", match="exact") as (second, chosen):
        put(second, chosen, [from_document(text_of_it.document, "honest")])
        assert isinstance(ask(second, chosen, honest), Replay)


def ask(of: Opened, chosen: Settings, asked: Heard) -> Decision:
    """What a proxy does with the request of an exchange, in replay."""
    request = asked.request
    host = of.reader.hosts.find(request.host, request.port)
    assert host is not None
    session = Session(RunRecord(id="20261130-100000-bbbb", mode="replay", started_at=NOW))
    return Engine(chosen, of.reader, of.store).decide(request, host, Step(session, 1, NOW), mode="replay")


def test_what_is_deleted_while_it_is_exported_is_left_out(tmp_path: Path) -> None:
    """A proxy that replaces a recording meanwhile costs the export nothing but that one."""
    with opened(tmp_path) as (ready, chosen):
        put(ready, chosen, [heard(chat(prompt)) for prompt in ("one", "two")])
        gone, kept = ready.store.cassettes()
        exported = Exporter(ready.store, ready.log, ready.reader, None).export([gone, kept])
        ready.store.delete([gone.id])
        assert ["-two-" in each.name for each in exported] == [True]
