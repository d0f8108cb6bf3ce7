"""The looking verbs: what they show, what their JSON is, and that looking changes nothing."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.shelf import RUN, Call, Shelf, chat, chat_answer, step
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.errors import GoneError
from rewind_proxy.store import (
    CassetteRecord,
    RunRecord,
    StepRecord,
    Store,
)

pytestmark = pytest.mark.usefixtures("place")

ESC = "\x1b"
HOSTILE = (
    f"{ESC}[31mred{ESC}[0m {ESC}]0;title\x07 \x9b2J \x08\x7f [bold]markup[/bold] :smile: \u202eback\r\nnext"
)
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def sse(*events: JsonValue) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def snapshot(folder: Path) -> dict[str, str]:
    """Every file and its content, but for the tables of readers."""
    return {
        str(file.relative_to(folder)): ""
        if file.name == "lock.mdb"
        else hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


class TestMissingStore:
    @pytest.mark.parametrize("verb", ["ls", "runs", "stats"])
    def test_it_is_an_empty_one_and_says_how_to_record(self, rewind: Call, tmp_path: Path, verb: str) -> None:
        """Where nothing was recorded the verb says so, says how to record, and makes nothing."""
        status, out, _ = rewind(verb)
        assert status == 0
        assert str(tmp_path / ".rewind/store") in out
        assert "rewind run --" in out
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("verb", ["ls", "runs"])
    def test_json_of_nothing_is_an_empty_list(self, rewind: Call, verb: str) -> None:
        """A script gets a list in any case."""
        assert json.loads(rewind(verb, "--json")[1]) == []

    def test_json_of_stats_is_zeros(self, rewind: Call) -> None:
        """Numbers of an empty store are numbers."""
        told = json.loads(rewind("stats", "--json")[1])
        assert (told["store"]["cassettes"], told["runs"], told["steps"], told["tiers"]) == (0, 0, 0, {})

    @pytest.mark.parametrize("arguments", [("show", "abcd"), ("steps", "last"), ("show", "last.1")])
    def test_what_is_asked_for_by_name_is_missed(self, rewind: Call, arguments: tuple[str, ...]) -> None:
        """Asking for one recording or run of an empty store is an error of one line."""
        status, out, err = rewind(*arguments)
        assert (status, out) == (1, "")
        assert err.startswith("rewind: no ")
        assert err.count("\n") == 1


class TestLs:
    def test_newest_first_with_short_ids(self, rewind: Call, shelf: Shelf) -> None:
        """One line a recording: id, model, tokens, and what was said last."""
        old = shelf.record(chat("first", "older question"), chat_answer("a"))
        new = shelf.record(chat("newer question"), chat_answer("b"))
        lines = rewind("ls")[1].splitlines()[2:]
        assert [line.split()[0] for line in lines] == [new.id[:12], old.id[:12]]
        assert "newer question" in lines[0]
        assert "older question" in lines[1]
        assert "1.2k→34" in lines[0]
        assert "gpt-test" in lines[0]

    def test_json_is_the_records(self, rewind: Call, shelf: Shelf) -> None:
        """The JSON is what store/records.py says, read back without loss."""
        made = [shelf.record(chat(text), chat_answer(text)) for text in ("a", "b")]
        told = [CassetteRecord.model_validate(record) for record in json.loads(rewind("ls", "--json")[1])]
        assert told == made[::-1]

    def test_what_a_proxy_deletes_meanwhile_is_left_out(
        self, rewind: Call, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A recording that is replaced between two looks takes no other with it."""
        old, new = (shelf.record(chat(text), chat_answer("a")) for text in ("old", "new"))
        read = Store.request_body

        def body(store: Store, record: CassetteRecord) -> JsonValue:
            if record.id == old.id:
                raise GoneError("deleted")
            return read(store, record)

        monkeypatch.setattr(Store, "request_body", body)
        status, out, _ = rewind("ls")
        assert (status, new.id[:12] in out, old.id[:12] in out) == (0, True, False)

    def test_limit(self, rewind: Call, shelf: Shelf) -> None:
        """The newest N are shown, and how many are not."""
        for number in range(5):
            shelf.record(chat(f"q{number}"), chat_answer("a"))
        out = rewind("ls", "-n", "2")[1]
        assert "q4" in out
        assert "q3" in out
        assert "q2" not in out
        assert "3 older recordings not shown" in out
        assert "not shown" not in rewind("ls", "--limit", "0")[1]
        assert len(json.loads(rewind("ls", "--json", "-n", "2")[1])) == 2

    def test_another_store(self, rewind: Call, shelf: Shelf, tmp_path: Path) -> None:
        """`--store` looks elsewhere."""
        shelf.record(chat("here"), chat_answer("a"))
        assert "here" in rewind("ls", "--store", str(shelf.settings.store))[1]
        assert "No recordings" in rewind("ls", "--store", str(tmp_path / "other"))[1]

    def test_an_opaque_recording_has_its_endpoint_for_a_preview(self, rewind: Call, shelf: Shelf) -> None:
        """What has no text shows method and path."""
        shelf.record(None, b"\xff\xfb", wire="generic", opaque=True, answer_type="audio/mpeg")
        assert "POST /v1/audio/speech" in rewind("ls")[1]


class TestUnused:
    def test_what_a_run_did_not_touch(self, rewind: Call, shelf: Shelf) -> None:
        """`--unused RUN` lists the model recordings that the run neither replayed nor made; `last` is one."""
        used, unused = (
            shelf.record(chat("used"), chat_answer("a")),
            shelf.record(chat("un"), chat_answer("b")),
        )
        shelf.record(None, b"{}", wire="generic", cls="side")
        shelf.log(step(1, "exact", cassette=used.id), step(2, "miss"))
        for run in ("last", RUN):
            out = rewind("ls", "--unused", run)[1]
            assert unused.id[:12] in out
            assert used.id[:12] not in out
        (told,) = json.loads(rewind("ls", "--unused", "last", "--json")[1])
        assert told["id"] == unused.id
        assert "older" not in out

    def test_what_was_not_there_yet_is_not_unused(self, rewind: Call, shelf: Shelf) -> None:
        """A run cannot have used what was recorded after its end."""
        used, later = (shelf.record(chat(text), chat_answer(text)) for text in ("a", "b"))
        shelf.log(step(1, "exact", cassette=used.id), ended_at=later.recorded_at - 0.5)
        assert "used every recording" in rewind("ls", "--unused", "last")[1]
        assert json.loads(rewind("ls", "--unused", "last", "--json")[1]) == []

    def test_the_limit_counts_among_the_unused(self, rewind: Call, shelf: Shelf) -> None:
        """What is not shown is counted among what was asked for."""
        used, *_ = [shelf.record(chat(f"q{n}"), chat_answer("a")) for n in range(4)]
        shelf.log(step(1, "exact", cassette=used.id))
        assert "2 older recordings not shown" in rewind("ls", "--unused", "last", "-n", "1")[1]

    def test_a_run_that_is_not_there_is_said(self, rewind: Call, shelf: Shelf) -> None:
        """A wrong id is an error of one line, not an empty list."""
        shelf.record(chat("q"), chat_answer("a"))
        status, out, err = rewind("ls", "--unused", "nope")
        assert (status, out, err.count("\n")) == (1, "", 1)


class TestRuns:
    def test_calls_by_tier(self, rewind: Call, shelf: Shelf) -> None:
        """A run shows its model calls by tier, misses first, and other calls apart."""
        shelf.log(
            step(1, "exact"),
            step(2, "exact"),
            step(3, "miss"),
            step(4, "passed", cls="side"),
            session="night",
        )
        (line,) = rewind("runs", columns=140)[1].splitlines()[2:]
        assert line.split()[0] == RUN
        assert "1 miss, 2 exact" in line
        assert "night" in line
        assert "1 min 30 s" in line

    def test_newest_first(self, rewind: Call, shelf: Shelf) -> None:
        """The last run stands first."""
        shelf.log(run="20261129-000000-aaaa")
        shelf.log(run="20261130-000000-bbbb")
        told = json.loads(rewind("runs", "--json")[1])
        assert [run["id"] for run in told] == ["20261130-000000-bbbb", "20261129-000000-aaaa"]
        assert "1 older run not shown" in rewind("runs", "-n", "1")[1]

    def test_json_is_the_record_with_its_counts(self, rewind: Call, shelf: Shelf) -> None:
        """The JSON adds counts by tier and model, and what was saved, to the run's record."""
        shelf.log(step(1, "exact"), step(2, "failed"), step(3, "passed", cls="telemetry"), session="s")
        (run,) = json.loads(rewind("runs", "--json")[1])
        assert (run.pop("tiers"), run.pop("side")) == ({"failed": 1, "exact": 1}, 1)
        assert run.pop("models") == {"gpt-test": 2}
        assert (run.pop("tokens_saved"), run.pop("saved_ms")) == (1234, 4000)
        assert RunRecord.model_validate(run).session == "s"


class TestSteps:
    def test_each_call_in_order(self, rewind: Call, shelf: Shelf) -> None:
        """Number, tier, model, tokens, latency, preview; calls that are no model calls show what they are."""
        shelf.log(
            step(1, "recorded", cassette="c" * 64),
            step(2, "miss", reason="nothing like it"),
            step(
                3, "passed", cls="side", preview="", model=None, path="/v1/models", method="GET", status=404
            ),
        )
        lines = rewind("steps", "last")[1].splitlines()
        assert lines[0].startswith(RUN)
        first, second, third = (line.split() for line in lines[-3:])
        assert first[0] == "1"
        assert first[2:8] == ["recorded", "gpt-test", "1.2k→34", "200", "ms", "c" * 12]
        assert second[2] == "miss"
        assert lines[-2].rstrip().endswith("nothing like it")
        assert third[2] == "side"
        assert "GET api.openai.com/v1/models 404" in lines[-1]

    def test_json_is_the_records(self, rewind: Call, shelf: Shelf) -> None:
        """The JSON is what store/records.py says, found by the start of the run's id."""
        made = [step(1, "exact"), step(2, "miss", miss={"reason": "r"})]
        shelf.log(*made)
        told = json.loads(rewind("steps", RUN[:8], "--json")[1])
        assert [StepRecord.model_validate(record) for record in told] == made


CHAT_TOOL_CALL: JsonObject = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "/x/y", "limit": 10}'},
}
CONVERSATION: JsonObject = {
    "model": "gpt-test",
    "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {}}}],
    "messages": [
        {"role": "system", "content": "You are terse."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is in y?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4096}},
            ],
        },
        {"role": "assistant", "reasoning_content": "Better look.", "tool_calls": [CHAT_TOOL_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "nothing at all"},
    ],
}


class TestShow:
    def test_a_conversation(self, rewind: Call, shelf: Shelf) -> None:
        """Roles, texts, media as a line, reasoning, calls as name(arguments), results by tool."""
        record = shelf.record(CONVERSATION, chat_answer("It is empty."))
        status, out, _ = rewind("show", record.id[:6])
        assert status == 0
        told = [line.rstrip() for line in out.splitlines()]
        at = told.index("1 tool")
        assert told[at:] == [
            "1 tool",
            "  read_file",
            "",
            "system",
            "  You are terse.",
            "",
            "user",
            "  What is in y?",
            "  [image/png, 3.0 KiB]",
            "",
            "assistant",
            "  Better look.",
            '  → read_file(path="/x/y", limit=10)',
            "",
            "tool",
            "  ← read_file",
            "  nothing at all",
            "",
            "answer",
            "  It is empty.",
        ]

    def test_facts(self, rewind: Call, shelf: Shelf) -> None:
        """The head has id, time, run, endpoint, model, tokens, latency and both fingerprints."""
        record = shelf.record(CONVERSATION, chat_answer("a"), preset="codex@3")
        out = rewind("show", record.id)[1]
        facts = dict(re.split(r"\s{2,}", line.rstrip(), maxsplit=1) for line in out.splitlines()[:10])
        assert facts["recording"] == record.id
        assert RUN in facts["recorded"]
        assert facts["endpoint"] == "POST https://api.openai.com/v1/chat/completions"
        assert facts["model"] == "gpt-test"
        assert facts["tokens"] == "1,200 in, 34 out"
        assert facts["parameters"] == "temperature=0.5"
        assert "4.2 s" in facts["answer"]
        assert facts["exact"] == record.exact
        assert re.fullmatch("[0-9a-f]{64}", facts["normalised"])
        assert "codex@3" in out

    @pytest.mark.parametrize(
        ("wire", "form", "body", "answer"),
        [
            (
                "chat_completions",
                "sse",
                chat("q"),
                sse(
                    {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
                    {"choices": [{"index": 0, "delta": {"content": "lo"}}]},
                    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **CHAT_TOOL_CALL}]}}]},
                    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
                ),
            ),
            (
                "responses",
                "sse",
                {"input": "q"},
                sse(
                    {
                        "type": "response.output_item.done",
                        "item": {
                            "type": "message",
                            "id": "msg_1",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": "Hello"}],
                        },
                    },
                    {
                        "type": "response.output_item.done",
                        "item": {
                            "type": "function_call",
                            "call_id": "c",
                            "name": "read_file",
                            "arguments": '{"path": "/x/y", "limit": 10}',
                        },
                    },
                    {"type": "response.completed", "response": {"id": "resp_1"}},
                ),
            ),
            (
                "anthropic",
                "whole",
                {"messages": [{"role": "user", "content": "q"}]},
                json.dumps(
                    {
                        "content": [
                            {"type": "text", "text": "Hello"},
                            {
                                "type": "tool_use",
                                "id": "c",
                                "name": "read_file",
                                "input": {"path": "/x/y", "limit": 10},
                            },
                        ]
                    }
                ).encode(),
            ),
            (
                "gemini",
                "sse",
                {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
                sse(
                    {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
                    {"candidates": [{"content": {"parts": [{"text": "lo"}]}}]},
                    {
                        "candidates": [
                            {
                                "content": {
                                    "parts": [
                                        {
                                            "functionCall": {
                                                "name": "read_file",
                                                "args": {"path": "/x/y", "limit": 10},
                                            }
                                        }
                                    ]
                                },
                                "finishReason": "STOP",
                            }
                        ]
                    },
                ),
            ),
        ],
    )
    def test_the_answer_is_read_on_every_wire(
        self, rewind: Call, shelf: Shelf, wire: Wire, form: Form, body: JsonValue, answer: bytes
    ) -> None:
        """Streams are joined, and text and calls read the same whatever the wire."""
        kind = "text/event-stream; charset=utf-8" if form == "sse" else "application/json"
        record = shelf.record(body, answer, wire=wire, form=form, answer_type=kind)
        out = rewind("show", record.id)[1]
        told = [line.rstrip() for line in out.splitlines()]
        assert told[-6:] == ["user", "  q", "", "answer", "  Hello", '  → read_file(path="/x/y", limit=10)']

    def test_long_texts_are_cut_unless_asked_for(self, rewind: Call, shelf: Shelf) -> None:
        """A long prompt shows its beginning and how much is left; `--full` shows it all."""
        text = "\n".join(f"line {number}" for number in range(500))
        record = shelf.record(chat(text), chat_answer("a"))
        out = rewind("show", record.id)[1]
        assert "line 10" in out
        assert "line 499" not in out
        assert "more characters (--full)" in out
        full = rewind("show", record.id, "--full")[1]
        assert "line 499" in full
        assert "--full" not in full

    def test_an_opaque_request_is_a_digest(self, rewind: Call, shelf: Shelf) -> None:
        """Of what was kept as a digest only, the digest and the kind are shown; a binary answer is a line."""
        record = shelf.record(
            None,
            b"\xff\xfb\x90" * 1000,
            wire="generic",
            opaque=True,
            content_type="multipart/form-data",
            body_length=2048,
            body_sha256="d" * 64,
            answer_type="audio/mpeg",
        )
        out = rewind("show", record.id)[1]
        assert "2.0 KiB, multipart/form-data" in out
        assert "d" * 64 in out
        assert out.rstrip().endswith("[audio/mpeg, 2.9 KiB]")

    def test_an_answer_that_is_no_turn_is_pretty_printed(self, rewind: Call, shelf: Shelf) -> None:
        """Counts, embeddings and lists are shown as JSON."""
        record = shelf.record(
            {"input": "q"}, b'{"data":[{"embedding":[1,2]}]}', wire="generic", operation="embed"
        )
        assert '        "embedding": [' in rewind("show", record.id)[1]

    def test_a_side_call_shows_its_body(self, rewind: Call, shelf: Shelf) -> None:
        """A recording of no model call shows request and answer as they are."""
        record = shelf.record({"flag": "x"}, b'{"on":true}', wire="generic", cls="side")
        out = rewind("show", record.id)[1]
        assert '"flag": "x"' in out
        assert '"on": true' in out

    def test_by_step(self, rewind: Call, shelf: Shelf) -> None:
        """The id in `x-rewind-step` leads to the recording that answered it."""
        record = shelf.record(chat("q"), chat_answer("by step"))
        shelf.log(step(1, "exact", cassette=record.id), step(2, "miss"))
        assert "by step" in rewind("show", f"{RUN}.1")[1]
        status, _, err = rewind("show", f"{RUN}.2")
        assert (status, "its tier is miss" in err) == (1, True)
        assert rewind("show", "a.b")[0] == 1

    def test_json(self, rewind: Call, shelf: Shelf) -> None:
        """The JSON has the record, the canonical request, the answer's parts and its bytes."""
        record = shelf.record(CONVERSATION, chat_answer("It is empty."))
        told = json.loads(rewind("show", record.id, "--json")[1])
        assert CassetteRecord.model_validate(told["cassette"]) == record
        assert [message["role"] for message in told["canonical"]["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
        ]
        assert told["answer"] == {
            "parts": [{"type": "text", "text": "It is empty."}],
            "body": chat_answer("It is empty.").decode(),
            "body_base64": None,
        }

    def test_json_of_bytes_that_are_no_text(self, rewind: Call, shelf: Shelf) -> None:
        """A binary answer is given in base64."""
        record = shelf.record(None, b"\xff\xfb", wire="generic", opaque=True, answer_type="audio/mpeg")
        told = json.loads(rewind("show", record.id, "--json")[1])
        assert told["canonical"] is None
        assert told["answer"] == {"parts": None, "body": None, "body_base64": "//s="}

    @pytest.mark.parametrize("prefix", ["zz", "abc", "nothex"])
    def test_what_is_no_id_is_said(self, rewind: Call, shelf: Shelf, prefix: str) -> None:
        """A name that cannot be an id fails in one line."""
        shelf.record(chat("q"), chat_answer("a"))
        status, _, err = rewind("show", prefix)
        assert (status, err.count("\n")) == (1, 1)


class TestOutput:
    @pytest.fixture
    def hostile(self, shelf: Shelf) -> str:
        """A store in which every text that a client or provider chooses is hostile."""
        body: JsonObject = {
            "model": HOSTILE,
            "tools": [{"type": "function", "function": {"name": HOSTILE, "parameters": {}}}],
            "messages": [
                {"role": "user", "content": HOSTILE},
                {
                    "role": "user",
                    "content": [{"type": HOSTILE, "x": HOSTILE}, {"type": "image_url", "image_url": HOSTILE}],
                },
                {
                    "role": "assistant",
                    "reasoning_content": HOSTILE,
                    "tool_calls": [
                        {
                            "id": HOSTILE,
                            "type": "function",
                            "function": {"name": HOSTILE, "arguments": json.dumps({HOSTILE: HOSTILE})},
                        },
                        {"id": "2", "type": "custom", "custom": {"name": HOSTILE, "input": HOSTILE}},
                    ],
                },
                {"role": "tool", "tool_call_id": "unknown" + HOSTILE, "content": HOSTILE + "\ud83d"},
            ],
        }
        record = shelf.record(
            body,
            chat_answer(HOSTILE),
            model=HOSTILE,
            user_agent=HOSTILE,
            preset=HOSTILE,
            path="/v1/chat/completions/" + HOSTILE,
            query=(("a", HOSTILE),),
        )
        shelf.log(
            step(1, "miss", preview=HOSTILE, model=HOSTILE, reason=HOSTILE, note=HOSTILE),
            step(2, "passed", cls="side", preview="", path=HOSTILE, method=HOSTILE, host=HOSTILE),
            session=HOSTILE,
        )
        return record.id

    @pytest.mark.parametrize("columns", [40, 80, 200, None])
    @pytest.mark.parametrize("verb", ["ls", "runs", "steps", "stats", "show"])
    def test_stored_text_cannot_act_on_the_terminal(
        self, rewind: Call, hostile: str, verb: str, columns: int | None
    ) -> None:
        """No control character of a stored text reaches the terminal, and no markup is read."""
        arguments = {"steps": ("last",), "show": (hostile, "--full")}.get(verb, ())
        status, out, err = rewind(verb, *arguments, columns=columns)
        assert (status, err) == (0, "")
        assert CONTROLS.findall(out) == []
        if verb in ("show", "steps") and columns is None:
            assert r"\x1b[31mred\x1b[0m" in out
            assert "[bold]markup[/bold] :smile:" in out

    @pytest.mark.parametrize("verb", ["ls", "runs", "steps", "show"])
    def test_json_escapes_them_and_says_the_same(self, rewind: Call, hostile: str, verb: str) -> None:
        """The JSON of a hostile text is harmless on a terminal, and is that text."""
        arguments = {"steps": ("last",), "show": (hostile,)}.get(verb, ())
        out = rewind(verb, "--json", *arguments)[1]
        assert CONTROLS.findall(out) == []
        told = json.dumps(json.loads(out))
        assert json.dumps(HOSTILE)[1:-1] in told

    @pytest.mark.parametrize("columns", [60, 80, 140])
    @pytest.mark.parametrize("verb", ["ls", "runs", "steps"])
    def test_a_listing_fits_its_console(self, rewind: Call, shelf: Shelf, verb: str, columns: int) -> None:
        """One line a row, none longer than the console, also with wide characters."""
        wide = "日本語のとても長い質問です" * 10
        for number in range(3):
            shelf.record(
                chat(f"{wide}{number}"), chat_answer("a"), model="a-model-with-a-very-long-name-" * 3
            )
        shelf.log(*(step(n, "miss", preview=wide, model="m" * 60) for n in range(1, 4)), session=wide)
        out = rewind(verb, *(["last"] if verb == "steps" else []), columns=columns)[1]
        rows = out.splitlines()[-3:] if verb != "runs" else out.splitlines()[-1:]
        assert max(cell_len(row.rstrip()) for row in rows) <= columns
        assert all("…" in row for row in rows)

    def test_a_wider_console_shows_more(self, rewind: Call, shelf: Shelf) -> None:
        """Columns that do not fit 80 characters appear where there is room."""
        shelf.record(chat("q"), chat_answer("a"))
        assert "api.openai.com" not in rewind("ls", columns=80)[1]
        assert "api.openai.com" in rewind("ls", columns=140)[1]

    def test_a_pipe_gets_whole_texts(self, rewind: Call, shelf: Shelf) -> None:
        """Where there is no screen nothing is cut."""
        shelf.log(step(1, "miss", preview="p" * 120))
        assert "p" * 120 in rewind("steps", "last")[1]

    @pytest.mark.parametrize("verb", ["ls", "runs", "steps", "stats", "show"])
    def test_looking_changes_nothing(self, rewind: Call, shelf: Shelf, tmp_path: Path, verb: str) -> None:
        """No file of the project is made, changed or removed by looking."""
        record = shelf.record(CONVERSATION, chat_answer("a"))
        shelf.log(step(1, "exact", cassette=record.id))
        before = snapshot(tmp_path)
        arguments = {"steps": ("last",), "show": (record.id,)}.get(verb, ())
        assert rewind(verb, *arguments)[0] == 0
        assert rewind(verb, *arguments, "--json")[0] == 0
        assert snapshot(tmp_path) == before
