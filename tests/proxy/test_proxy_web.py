"""What mitmweb shows of a call, and what its command bar does: comments, markers, the view, the commands."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.calls import CHAT, CHAT_PATH, CHAT_SSE, MESSAGES, OPENAI, fake_credential, new_prompt
from proxy.conftest import CONTROL, Stage, tell
from proxy.looking import cassettes, recorded, until
from rewind_proxy.canonical.model import JsonObject, JsonValue
from support import behaviours
from support.client import Client, Got
from support.proxies import Proxy
from support.web import Web, mitmweb

CHATGPT = "chatgpt.com"
QUICK = 1.5
"""Seconds for a view of a request of 1 MB; it takes a quarter of one on an idle machine."""


@pytest.fixture(scope="module")
def _web(_the_stage: Stage, tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    settings = [f"redact_patterns={INTERNAL}", "unknown=refuse"]
    with mitmweb(
        folder, confdir, provider=_the_stage.provider, settings=settings, options=CONTROL
    ) as running:
        yield running


@pytest.fixture
def web(_web: Web, stage: Stage) -> Web:
    """A mitmweb in mode `auto` before the provider of `stage`."""
    _web.command("rewind.mode", "auto")
    return _web


INTERNAL = "INTERNAL-[0-9]+"


def flow_of(web: Web, got: Got) -> dict[str, Any]:
    """The flow of an answer."""
    return flow_of_step(web, got.headers["x-rewind-step"])


def flow_of_step(web: Web, step: str) -> dict[str, Any]:
    """The flow of a step."""

    def look() -> dict[str, Any] | None:
        return next((flow for flow in web.flows() if _step(flow) == step), None)

    return until(look)


def _step(flow: dict[str, Any]) -> str:
    headers = dict((flow.get("response") or {}).get("headers", ()))
    return str(headers.get("x-rewind-step", ""))


def labelled(web: Web, got: Got, start: str) -> dict[str, Any]:
    """The flow of an answer, once its comment starts so."""

    def look() -> dict[str, Any] | None:
        flow = flow_of(web, got)
        return flow if flow["comment"].startswith(start) else None

    return until(look)


def record(web: Web, prompt: str) -> Got:
    """Record the answer to a prompt."""
    got = CHAT.once(web.proxy, prompt)
    recorded(web.proxy.store, prompt)
    return got


def chosen(flow: dict[str, Any]) -> str:
    """How the command bar names a flow."""
    return f"@{flow['id']}"


class TestLabels:
    """Each flow says how it ended."""

    def test_a_recorded_call_names_its_recording(self, web: Web) -> None:
        """The comment is complete once the answer is stored."""
        prompt = new_prompt()
        got = record(web, prompt)
        [cassette] = cassettes(web.proxy.store, prompt)
        flow = labelled(web, got, f"rewind: recording · recorded · {cassette.id[:8]}…")
        assert flow["marked"] == "🔴"

    @pytest.mark.parametrize(("model", "tier"), [("m1", "exact"), ("m2", "normalised")])
    def test_a_replayed_call_names_tier_and_recording(self, web: Web, model: str, tier: str) -> None:
        """As DESIGN has it: `rewind: replayed · normalised · 3f9a…`."""
        prompt = new_prompt()
        record(web, prompt)
        got = CHAT.once(web.proxy, prompt, model=model)
        flow = flow_of(web, got)
        cassette = got.headers["x-rewind-cassette"]
        assert flow["comment"] == f"rewind: replayed · {tier} · {cassette[:8]}…"
        assert flow["marked"] == "♻"

    def test_a_refused_call(self, web: Web) -> None:
        """A miss in replay mode."""
        web.command("rewind.mode", "replay")
        flow = flow_of(web, CHAT.once(web.proxy, new_prompt()))
        assert (flow["comment"], flow["marked"]) == ("rewind: refused · miss", "⛔")

    def test_a_call_that_is_not_recorded(self, web: Web, stage: Stage) -> None:
        """A provider's error is passed on, and labelled so when that is known."""
        stage.behaviour = behaviours.on(0, behaviours.error(503))
        got = CHAT.once(web.proxy, new_prompt())
        flow = labelled(web, got, "rewind: passed")
        assert flow["marked"] == "➡"

    def test_a_side_call_has_its_class_for_a_tier(self, web: Web) -> None:
        """Its tier says little."""
        with Client(web.proxy, CHATGPT) as client:
            got = client.get(f"/backend-api/flags/{secrets.token_hex(8)}")
        labelled(web, got, "rewind: recording · side · ")
        web.command("rewind.mode", "replay")
        with Client(web.proxy, CHATGPT) as client:
            got = client.get(f"/backend-api/flags/{secrets.token_hex(8)}")
        assert flow_of(web, got)["comment"] == "rewind: refused · side"

    @pytest.mark.parametrize(
        ("mode", "comment"), [("auto", "rewind: passed · failed"), ("replay", "rewind: refused · failed")]
    )
    def test_a_failure_of_ours(self, web: Web, mode: str, comment: str) -> None:
        """It is no miss, and no decision to pass a call on."""
        web.command("rewind.mode", mode)
        tell(web.proxy, "breaks", "engine.decide_read", "1")
        try:
            got = CHAT.once(web.proxy, new_prompt())
        finally:
            tell(web.proxy, "breaks", "engine.decide_read", "")
        flow = labelled(web, got, comment)
        assert flow["marked"] == "⚠"
        assert "failed" in web.command("rewind.explain", chosen(flow))[0]

    def test_a_fault_on_purpose_is_named(self, stage: Stage, tmp_path: Path, confdir: Path) -> None:
        """It is neither a refusal nor the provider's doing."""
        settings = ["fault=turn=1:429"]
        with mitmweb(tmp_path, confdir, provider=stage.provider, settings=settings) as faulty:
            flow = flow_of(faulty, CHAT.once(faulty.proxy, new_prompt()))
        assert (flow["comment"], flow["marked"]) == ("rewind: passed · fault turn=1:429", "⚡")

    def test_they_can_be_filtered_by(self, web: Web) -> None:
        """`~comment` and `~marker` find them."""
        prompt = new_prompt()
        record(web, prompt)
        got = CHAT.once(web.proxy, prompt, model="m2")
        for spec in (
            f'~comment "replayed . normalised" & ~b {prompt[11:27]}',
            f"~marker :recycle: & ~b {prompt[11:27]}",
        ):
            lines = web.command("rewind.explain", spec)
            assert got.headers["x-rewind-step"] in lines[0]


def chat(prompt: str, secret: str = "") -> JsonObject:
    """A conversation with tools, and perhaps a secret in it."""
    call: JsonValue = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "shell", "arguments": json.dumps({"command": "ls /srv", "key": secret})},
    }
    tools: JsonValue = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
    return {
        "model": "m1",
        "messages": [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": f"{prompt} {secret}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": f"took 0.41s\na.txt {secret}"},
        ],
        "tools": tools,
    }


class TestView:
    """The `Rewind` content view."""

    def test_the_conversation_comes_first(self, web: Web) -> None:
        """Who said what, which tool was called with what, and what it gave; then how it was answered."""
        prompt = new_prompt()
        with Client(web.proxy, OPENAI) as client:
            got = client.post(CHAT_PATH, chat(prompt))
        recorded(web.proxy.store, prompt)
        text = web.view(labelled(web, got, "rewind: recording · recorded · "), "request")
        told = [line.rstrip() for line in text.splitlines()]
        assert told[:12] == [
            "1 tool",
            "  shell",
            "",
            "system",
            "  You are terse.",
            "",
            "user",
            f"  {prompt}",
            "",
            "assistant",
            '  → shell(command="ls /srv", key="")',
            "",
        ]
        assert told[12:16] == ["tool", "  ← shell", "  took 0.41s", "  a.txt"]
        assert "recording · recorded" in text
        assert "RS201" in text

    def test_the_answer_is_a_turn_whatever_its_form(self, web: Web) -> None:
        """A stream is read as the message that it makes."""
        prompt = new_prompt()
        got = CHAT_SSE.once(web.proxy, prompt)
        recorded(web.proxy.store, prompt)
        text = web.view(flow_of(web, got), "response")
        assert text.startswith("answer\n  ")
        assert prompt[:20] in text
        assert "data:" not in text

    def test_it_is_what_mitmproxy_chooses_for_a_model_call(self, web: Web) -> None:
        """Nobody has to look for it."""
        prompt = new_prompt()
        flow = flow_of(web, record(web, prompt))
        assert web.view(flow, "request", "auto") == web.view(flow, "request")
        assert web.view(flow, "request", "json") != web.view(flow, "request")

    def test_it_is_not_offered_for_other_hosts(self, web: Web) -> None:
        """A host that Rewind does not know has nothing to do with it."""
        with Client(web.proxy, "other.invalid", tls=False) as client:
            client.get(f"/{secrets.token_hex(4)}")
        flow = next(flow for flow in web.flows() if flow["request"]["host"] == "other.invalid")
        assert "rewind_unknown" in web.view(flow, "response", "auto")
        assert web.view(flow, "response").startswith("Nothing to show: ")

    def test_a_hit_names_what_was_left_aside(self, web: Web) -> None:
        """The parameter with both values, and each scrubbed value in its place."""
        prompt = new_prompt()
        record(web, f"{prompt} <cwd>/home/ann/app</cwd>")
        got = CHAT.once(web.proxy, f"{prompt} <cwd>/home/bob/app</cwd>", model="m2")
        assert got.headers["x-rewind-tier"] == "normalised"
        text = web.view(flow_of(web, got), "response")
        assert "model m1->m2" in text
        assert "RS105 $.messages[0].parts[0].text  /home/ann/app → /home/bob/app" in text
        assert "at $.messages[0].parts[0].text" in text

    def test_a_refusal_has_its_miss_report(self, web: Web) -> None:
        """The nearest recording, and the first difference on both sides."""
        prompt = new_prompt()
        record(web, f"{prompt} Say hello.")
        web.command("rewind.mode", "replay")
        flow = flow_of(web, CHAT.once(web.proxy, f"{prompt} Say goodbye."))
        for side in ("request", "response"):
            text = web.view(flow, side)
            assert "differs in one place" in text
            assert f"- recorded  {prompt} Say hello." in text
            assert f"+ live      {prompt} Say goodbye." in text

    def test_credentials_are_not_shown(self, web: Web) -> None:
        """Not the key of the auth header, wherever it stands, nor what a rule knows: place and rule are."""
        prompt, key, number = new_prompt(), secrets.token_urlsafe(32), f"INTERNAL-{secrets.randbelow(10**9)}"
        known = fake_credential("sk-ant-api03-")
        body = chat(prompt, f"{key} {number} {known}")
        with Client(web.proxy, OPENAI) as client:
            got = client.post(CHAT_PATH, body, {"authorization": f"Bearer {key}"})
        recorded(web.proxy.store, prompt)
        flow = flow_of(web, got)
        web.command("rewind.mode", "replay")
        web.command("rewind.mode", "auto")
        explained = "\n".join(web.command("rewind.explain", chosen(flow)))
        for text in (web.view(flow, "request"), web.view(flow, "response"), explained):
            assert not any(secret in text for secret in (key, number, known))
        assert "[REDACTED]" in web.view(flow, "request")
        assert "RW001 $.messages[1].content" in web.view(flow, "request")

    @pytest.mark.parametrize(
        "body",
        [b"", b"not json", b'{"messages": ', b'{"messages": 7}', b"[" * 100_000, b"\xff\xfe\x00", b"null"],
        ids=["empty", "text", "half", "no list", "deep", "bytes", "null"],
    )
    def test_what_is_no_conversation_is_shown_all_the_same(self, web: Web, body: bytes) -> None:
        """A bad body, half a body, nothing: no traceback."""
        with Client(web.proxy, OPENAI) as client:
            got = client.post(CHAT_PATH, body)
        flow = flow_of(web, got)
        for side in ("request", "response") if body else ("response",):
            text = web.view(flow, side)
            assert f"step {got.headers['x-rewind-step']}" in text or "Its step is not over" in text
            assert "cannot show" not in text

    def test_an_answer_that_does_not_decode(self, web: Web, stage: Stage) -> None:
        """A broken coding is said, not raised."""
        stage.behaviour = behaviours.on(
            0,
            lambda exchange: exchange.whole(200, "application/json", b"{}", (("content-encoding", "gzip"),)),
        )
        got = CHAT.once(web.proxy, new_prompt())
        assert web.view(flow_of(web, got), "response").startswith("Nothing to show: ")

    def test_a_megabyte_is_shown_at_once(self, web: Web) -> None:
        """Long texts are cut with a count, long conversations folded; time grows as the request does."""
        once, twice = (min(_first_view(web, count) for _ in range(2)) for count in (1, 2))
        assert once < QUICK
        assert twice < 3 * once + 0.1


def _first_view(web: Web, megabytes: int) -> float:
    """Seconds that the view of a request takes which nobody has looked at."""
    prompt = new_prompt()
    messages: list[JsonValue] = [
        {"role": role, "content": f"{prompt} {index} " + "word " * 1000}
        for index in range(100 * megabytes)
        for role in ("user", "assistant")
    ]
    with Client(web.proxy, OPENAI) as client:
        got = client.post(CHAT_PATH, {"model": "m1", "messages": messages})
    recorded(web.proxy.store, prompt)
    flow = flow_of(web, got)
    started = time.monotonic()
    text = web.view(flow, "request")
    seconds = time.monotonic() - started
    assert "more characters" in text
    assert "messages between" in text
    assert len(text) < 50_000
    return seconds


def _approved(web: Web, flow: dict[str, Any]) -> list[str] | None:
    """What approving a call says, once the call is pending."""
    try:
        said: list[str] = web.command("rewind.approve", chosen(flow))
    except AssertionError:
        return None
    return said


class TestCommands:
    """The commands of the command bar."""

    def test_they_have_types_and_help(self, web: Web) -> None:
        """The command bar completes them and says what they do."""
        found = {name: each for name, each in web.commands().items() if name.startswith("rewind.")}
        assert {name: each["signature_help"] for name, each in found.items()} == {
            "rewind.mode": "rewind.mode mode -> str[]",
            "rewind.mode.options": "rewind.mode.options  -> str[]",
            "rewind.explain": "rewind.explain flow -> str[]",
            "rewind.approve": "rewind.approve flow -> str[]",
            "rewind.forget": "rewind.forget flows -> str[]",
            "rewind.rerecord": "rewind.rerecord flows -> str[]",
        }
        assert all(each["help"] for each in found.values())

    def test_mode_is_shown_and_set(self, web: Web) -> None:
        """What it says is what counts from then on."""
        assert web.command("rewind.mode") == ["auto"]
        assert web.command("rewind.mode", "replay") == ["replay"]
        assert web.command("rewind.mode") == ["replay"]
        assert CHAT.once(web.proxy, new_prompt()).status == 400

    def test_a_script_calls_them(self, live: Proxy) -> None:
        """Natively, in mitmdump too, which has no command bar."""
        prompt = new_prompt()
        assert tell(live, "command", "rewind.mode", "replay").status == 200
        try:
            assert CHAT.once(live, prompt).headers["x-rewind-tier"] == "miss"
            assert tell(live, "command", "rewind.mode", "now and then").status == 409
        finally:
            tell(live, "command", "rewind.mode", "auto")

    def test_an_unknown_mode_is_refused(self, web: Web) -> None:
        """And the one in force stays."""
        with pytest.raises(AssertionError, match="Invalid choice"):
            web.command("rewind.mode", "sometimes")
        assert web.command("rewind.mode") == ["auto"]

    def test_what_is_forgotten_is_a_miss(self, web: Web) -> None:
        """All that would answer the call goes, of whatever run."""
        prompt = new_prompt()
        record(web, prompt)
        web.command("rewind.mode", "record")
        got = CHAT.once(web.proxy, prompt)
        recorded(web.proxy.store, prompt, 2)
        assert web.command(
            "rewind.forget", chosen(labelled(web, got, "rewind: recording · recorded · "))
        ) == ["2 recordings deleted"]
        web.command("rewind.mode", "replay")
        assert CHAT.once(web.proxy, prompt).headers["x-rewind-tier"] == "miss"
        assert cassettes(web.proxy.store, prompt) == []

    def test_what_answered_is_forgotten_by_the_call_that_it_answered(self, web: Web) -> None:
        """A replayed flow leads to the recording as well."""
        prompt = new_prompt()
        record(web, prompt)
        got = CHAT.once(web.proxy, prompt, model="m2")
        web.command("rewind.forget", chosen(flow_of(web, got)))
        assert cassettes(web.proxy.store, prompt) == []

    @pytest.mark.parametrize("mode", ["auto", "replay"])
    def test_a_call_that_was_never_read_has_nothing_to_forget(self, web: Web, mode: str) -> None:
        """It has no fingerprint, so nothing in the store is its."""
        prompt = new_prompt()
        record(web, prompt)
        web.command("rewind.mode", mode)
        tell(web.proxy, "breaks", "engine.reader.read", "1")
        try:
            got = CHAT.once(web.proxy, new_prompt())
        finally:
            tell(web.proxy, "breaks", "engine.reader.read", "")
        flow = flow_of(web, got)
        until(lambda: flow_of(web, got)["comment"].endswith("failed"))
        assert web.command("rewind.forget", chosen(flow)) == ["0 recordings deleted"]
        assert len(cassettes(web.proxy.store, prompt)) == 1

    def test_a_refused_call_is_approved(self, web: Web) -> None:
        """Its best candidate answers it from then on, until the alias is forgotten; the recording stays."""
        told = f"{new_prompt()} Rename the function that parses the header of a request, for all its callers."
        asked = told.replace("header", "trailer")
        first = record(web, told)
        web.command("rewind.mode", "replay")
        refused = flow_of(web, CHAT.once(web.proxy, asked))
        said = until(lambda: _approved(web, refused))
        assert said[0].endswith("(tier alias)")
        got = CHAT.once(web.proxy, asked)
        assert (got.headers["x-rewind-tier"], got.body) == ("alias", first.body)
        flow = flow_of(web, got)
        assert flow["comment"].startswith("rewind: replayed · alias · ")
        assert web.command("rewind.forget", chosen(flow)) == ["0 recordings deleted", "1 alias removed"]
        assert CHAT.once(web.proxy, asked).headers["x-rewind-tier"] == "miss"
        assert CHAT.once(web.proxy, told).body == first.body

    def test_only_a_refused_call_can_be_approved(self, web: Web) -> None:
        """Another one has its answer, and one without candidates says what else can be done."""
        flow = flow_of(web, record(web, new_prompt()))
        with pytest.raises(AssertionError, match="only a model call that was refused"):
            web.command("rewind.approve", chosen(flow))

    def test_a_call_is_recorded_anew_once(self, web: Web, stage: Stage) -> None:
        """It goes live when it is asked next; the new answer takes the place of the old one."""
        prompt = new_prompt()
        before = record(web, prompt)
        web.command("rewind.rerecord", chosen(flow_of(web, before)))
        [old] = cassettes(web.proxy.store, prompt)
        anew = CHAT.once(web.proxy, prompt, model="m2")
        assert anew.headers["x-rewind"] == "recording"
        until(lambda: [each.id for each in cassettes(web.proxy.store, prompt)] not in ([old.id], []) and 1)
        until(lambda: len(cassettes(web.proxy.store, prompt)) == 1 and 1)
        again = CHAT.once(web.proxy, prompt, model="m2")
        assert (again.headers["x-rewind-tier"], again.body) == ("exact", anew.body)
        assert len(stage.heard(prompt)) == 2

    def test_nothing_is_lost_when_it_cannot_be_recorded(self, web: Web, stage: Stage) -> None:
        """A provider that fails leaves the old answer in the store, and the call still to be recorded."""
        prompt = new_prompt()
        before = record(web, prompt)
        web.command("rewind.rerecord", chosen(flow_of(web, before)))
        stage.behaviour = behaviours.on(0, behaviours.error(500))
        failed = CHAT.once(web.proxy, prompt)
        labelled(web, failed, "rewind: passed")
        assert (failed.status, len(cassettes(web.proxy.store, prompt))) == (500, 1)
        web.command("rewind.mode", "replay")
        assert CHAT.once(web.proxy, prompt).body == before.body

    @pytest.mark.parametrize("mode", ["replay", "passthrough"])
    def test_where_nothing_is_recorded_nothing_is_recorded_anew(self, web: Web, mode: str) -> None:
        """In replay mode nothing goes live, and the command says why."""
        prompt = new_prompt()
        flow = flow_of(web, record(web, prompt))
        web.command("rewind.mode", mode)
        with pytest.raises(AssertionError, match=f"mode {mode} records nothing"):
            web.command("rewind.rerecord", chosen(flow))

    def test_replay_mode_forgets_what_was_to_be_recorded_anew(self, web: Web, stage: Stage) -> None:
        """Nothing goes live in replay mode, whatever was asked for before."""
        prompt = new_prompt()
        before = record(web, prompt)
        web.command("rewind.rerecord", chosen(flow_of(web, before)))
        asked = CHAT.once(web.proxy, prompt, headers={"x-rewind-mode": "replay"})
        web.command("rewind.mode", "replay")
        assert CHAT.once(web.proxy, prompt).body == asked.body == before.body
        assert len(stage.heard(prompt)) == 1

    def test_what_is_no_call_is_said(self, web: Web) -> None:
        """A flow that is none of ours has nothing to explain or forget."""
        with Client(web.proxy, "other.invalid", tls=False) as client:
            client.get(f"/{secrets.token_hex(4)}")
        flow = next(flow for flow in web.flows() if flow["request"]["host"] == "other.invalid")
        for name in ("rewind.explain", "rewind.forget", "rewind.rerecord"):
            with pytest.raises(AssertionError, match="rewind: "):
                web.command(name, chosen(flow))

    def test_other_wires_are_explained_alike(self, web: Web) -> None:
        """The report speaks of messages, whatever was sent."""
        prompt = new_prompt()
        got = MESSAGES.once(web.proxy, prompt)
        recorded(web.proxy.store, prompt)
        lines = web.command("rewind.explain", chosen(labelled(web, got, "rewind: recording · recorded · ")))
        assert lines[0].startswith("recording · recorded · step ")
        assert any("api.anthropic.com/v1/messages" in line for line in lines)
