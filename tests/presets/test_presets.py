"""Presets: what each agent says of its machine is noise, what it says of the project is not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import ValidationError

from presets.agent_excerpts import (
    CLAUDE_CODE,
    CODEX,
    COPILOT_CLI,
    EXCERPTS,
    GEMINI_CLI,
    OPENCODE,
    Change,
    Excerpt,
)
from rewind_proxy.canonical.fingerprint import HASH_VERSION, Normaliser, settings_digest
from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, MatchSettings, Message, Volatile
from rewind_proxy.canonical.preset import Preset
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.canonical.scrub import Scrubber
from rewind_proxy.errors import SettingsError
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.presets import choices, in_force, presets
from rewind_proxy.settings import load
from rewind_proxy.store.records import AnswerRecord, CassetteRecord
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
each_agent = pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.preset)
MACHINE = [(excerpt, change) for excerpt in EXCERPTS for change in excerpt.machine]
PROJECT = [(excerpt, change) for excerpt in EXCERPTS for change in excerpt.project]
# Qwen Code is a fork of Gemini CLI and kept some of its words.
SHARED_WORDS = {("gemini-cli", "qwen-code"), ("qwen-code", "gemini-cli")}


def reader(preset: str = "auto", **settings: Any) -> RequestReader:
    """A reader under a value of the setting `preset`."""
    match = MatchSettings(preset=preset, presets=in_force(preset), **settings)
    return RequestReader(HOSTS, Redactor(rule_list(True, (), ())), match, 2**26)


AUTO, WITHOUT = reader(), reader("none")


def changed(excerpt: Excerpt, changes: Iterable[Change]) -> JsonObject:
    """The excerpt's body after some changes, each of which must apply."""
    text = json.dumps(excerpt.body, ensure_ascii=False)
    for old, new in changes:
        assert json.dumps(old, ensure_ascii=False)[1:-1] in text or old in text, old
        text = text.replace(old, new)
    body: JsonObject = json.loads(text)
    return body


def read(
    excerpt: Excerpt, *changes: Change, using: RequestReader = AUTO, agent: str | None = None
) -> Reading:
    """The reading of an excerpt after some changes; `agent` replaces its user agent."""
    known = HOSTS.find(excerpt.host, 443)
    assert known is not None
    headers = (
        ("content-type", "application/json"),
        ("user-agent", excerpt.user_agent if agent is None else agent),
    )
    body = json.dumps(changed(excerpt, changes)).encode()
    return using.read(RawRequest("POST", excerpt.host, 443, excerpt.path, headers, body), known)


def rules_of(reading: Reading) -> set[str]:
    """The scrub rules of presets that took something out."""
    assert reading.normalised is not None
    return {rule for rule in reading.normalised.rules if rule.startswith("preset:")}


# Recognition.


@each_agent
def test_an_agent_is_recognised(excerpt: Excerpt) -> None:
    """The preset of its agent is kept with the request, by id and version."""
    assert read(excerpt).record.preset == presets()[excerpt.preset].name


@each_agent
def test_an_agent_behind_a_gateway_is_recognised_by_its_shape(excerpt: Excerpt) -> None:
    """Another user agent hides no agent whose prompt says what it is."""
    assert read(excerpt, agent="gateway/1.0").record.preset == presets()[excerpt.preset].name


def test_the_user_agent_goes_before_the_prompt() -> None:
    """opencode may send the prompt of Claude Code, and is opencode all the same."""
    spoken = (
        "You are OpenCode, the best",
        "You are Claude Code, Anthropic's official CLI for Claude, the best",
    )
    assert read(OPENCODE, spoken).record.preset == presets()["opencode"].name
    assert read(OPENCODE, spoken, agent="").record.preset == presets()["claude-code"].name


def test_an_agent_is_recognised_by_its_tools() -> None:
    """A tool that only one agent has tells it when neither user agent nor prompt does."""
    assert read(COPILOT_CLI, ("You are the GitHub Copilot CLI", "You are my bot")).record.preset == ""
    tool: JsonObject = {"type": "function", "function": {"name": "fetch_copilot_cli_documentation"}}
    body: JsonObject = {"messages": [{"role": "user", "content": "Hello"}], "tools": [tool]}
    known = HOSTS.find("api.openai.com", 443)
    assert known
    request = RawRequest("POST", known.name, 443, "/v1/chat/completions", (), json.dumps(body).encode())
    assert AUTO.read(request, known).record.preset == presets()["copilot-cli"].name


def test_what_a_user_quotes_makes_no_agent() -> None:
    """The start of a prompt in the words of a user, or further on in a prompt, is no sign."""
    for place in ("system", "user"):
        quoted: JsonObject = {"role": place, "content": "Explain: You are Codex, an agent based on GPT-6."}
        body = json.dumps({"messages": [quoted]}).encode()
        known = HOSTS.find("api.openai.com", 443)
        assert known
        request = RawRequest("POST", known.name, 443, "/v1/chat/completions", (), body)
        assert AUTO.read(request, known).record.preset == ""


def test_a_preset_can_be_forced_and_switched_off() -> None:
    """`preset = "<id>"` gives every request that preset, `none` gives none."""
    assert read(CODEX, using=reader("opencode")).record.preset == presets()["opencode"].name
    assert read(CODEX, using=WITHOUT).record.preset == ""


# What is noise and what is not.


@pytest.mark.parametrize(("excerpt", "change"), MACHINE, ids=lambda value: getattr(value, "preset", None))
def test_what_an_agent_says_of_its_machine_is_noise(excerpt: Excerpt, change: Change) -> None:
    """The same session on another machine has the same normalised fingerprint, by the preset alone."""
    here, there = read(excerpt), read(excerpt, change)
    assert here.exact != there.exact
    assert here.fingerprint == there.fingerprint
    assert read(excerpt, using=WITHOUT).fingerprint != read(excerpt, change, using=WITHOUT).fingerprint


@each_agent
def test_all_of_the_machine_may_differ_at_once(excerpt: Excerpt) -> None:
    """Everything of the environment changed together is still the same session."""
    assert read(excerpt).fingerprint == read(excerpt, *excerpt.machine).fingerprint


@pytest.mark.parametrize(("excerpt", "change"), PROJECT, ids=lambda value: getattr(value, "preset", None))
def test_what_an_agent_says_of_the_project_is_meaning(excerpt: Excerpt, change: Change) -> None:
    """Another branch, file, instruction or question is another request."""
    assert read(excerpt).fingerprint != read(excerpt, change).fingerprint


@each_agent
def test_every_rule_of_a_preset_is_shown_at_work(excerpt: Excerpt) -> None:
    """Each scrub rule takes something out of the excerpt, and is named by its id."""
    preset = presets()[excerpt.preset]
    assert rules_of(read(excerpt)) == {preset.rule_id(rule) for rule in preset.scrub}


def test_the_agents_of_codex_are_named_alike_in_every_home() -> None:
    """In the home of root `/root` is still the name of an agent."""
    at_root = ("/home/ann", "/root")
    assert read(CODEX).fingerprint == read(CODEX, at_root).fingerprint
    other = ('\\"sender\\":\\"/root/check', '\\"sender\\":\\"/root/build')
    assert read(CODEX).fingerprint != read(CODEX, other).fingerprint


def test_the_temp_folder_that_gemini_names_is_a_root() -> None:
    """What the model writes there is put into the folder of the live project."""
    normalised = read(GEMINI_CLI).normalised
    assert normalised is not None
    assert ("root", "/home/ann/.gemini/tmp/app") in {(slot.kind, slot.value) for slot in normalised.slots}


@each_agent
@pytest.mark.parametrize("other", presets())
def test_a_preset_leaves_the_text_of_other_agents_alone(excerpt: Excerpt, other: str) -> None:
    """Forced on another agent's request, a preset finds nothing to take out."""
    if other != excerpt.preset and (other, excerpt.preset) not in SHARED_WORDS:
        assert rules_of(read(excerpt, using=reader(other))) == set()


def test_a_rule_can_be_switched_off() -> None:
    """`scrub_off` takes a rule of a preset by the id that it is shown under."""
    using = reader(scrub_off=("preset:claude-code:git-user",))
    change = ("Git user: Ann", "Git user: ci-bot")
    assert read(CLAUDE_CODE, using=using).fingerprint != read(CLAUDE_CODE, change, using=using).fingerprint


@each_agent
def test_a_stored_copy_gets_the_same_fingerprint(excerpt: Excerpt) -> None:
    """The preset is chosen from what is stored, so a re-key lands where the live request did."""
    live = read(excerpt)
    cassette = CassetteRecord(
        id="id",
        seq=1,
        run="run",
        recorded_at=0.0,
        hash_version=HASH_VERSION,
        exact=live.exact,
        request=live.record,
        answer=AnswerRecord(),
        answer_sha256="",
        answer_length=0,
        checksum="",
    )
    assert AUTO.keys_of(cassette, live.body)[:2] == (live.fingerprint, live.links)


def test_a_secret_in_the_user_agent_changes_no_choice() -> None:
    """A user agent is redacted before it is looked at, as its stored copy is."""
    key = "sk-" + "proj-" + "Ab3dE6gH9kLmN2pQ" * 3
    reading = read(CODEX, agent=f"codex_exec/0.171.0 ({key})")
    assert key not in reading.record.user_agent
    assert reading.record.preset == presets()["codex"].name


# The files.


def test_the_settings_know_the_presets(tmp_path: Any) -> None:
    """An unknown preset fails at start and lists the choices."""
    assert load(environ={"REWIND_PRESET": "Codex"}, cwd=tmp_path).preset == "codex"
    with pytest.raises(SettingsError, match=r"is not one of auto, none, claude-code, codex, .*mean codex"):
        load(environ={"REWIND_PRESET": "codexx"}, cwd=tmp_path)


def test_a_new_version_is_another_index() -> None:
    """The versions of the presets in force are part of the digest of the match settings."""
    digests = {
        settings_digest(MatchSettings(preset=choice, presets=names))
        for choice, names in (
            *((choice, in_force(choice)) for choice in choices()),
            ("codex", ("codex@0",)),
        )
    }
    assert len(digests) == len(choices()) + 1


MINE: JsonObject = {"id": "mine", "version": 1, "recognise": {}}
RULE: JsonObject = {"name": "a", "hint": "aaa", "pattern": "aaa"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"scrub": [RULE | {"pattern": "(a)(b)"}]},
        {"scrub": [RULE | {"pattern": "a*"}]},
        {"scrub": [RULE | {"pattern": "(a"}]},
        {"scrub": [RULE | {"pattern": "[[a]"}]},
        {"scrub": [RULE | {"hint": ""}]},
        {"scrub": [RULE | {"where": ["tool"]}]},
        {"scrub": [RULE | {"name": "RS101"}]},
        {"scrub": [RULE, RULE]},
        {"cues": {"cwd": [{"hint": "aaa", "pattern": "no group"}]}},
        {"cues": {"tmp": [{"hint": "aaa", "pattern": "(a)"}]}},
        {"volatile": {"param": ["a"]}},
        {"version": 0},
        {"more": 1},
    ],
    ids=str,
)
def test_a_mistake_in_a_preset_is_refused(wrong: JsonObject) -> None:
    """A file that says something else than a preset can fails when it is read."""
    Preset.model_validate(MINE | {"scrub": [RULE]})
    with pytest.raises(ValidationError):
        Preset.model_validate(MINE | wrong)


def test_volatile_fields_of_a_preset_are_dropped() -> None:
    """Parameters and members that an agent changes every time are left out, beside those of the wire."""
    volatile: JsonObject = {"params": ["nonce"], "members": ["turn"], "system_prefixes": ["bill:"]}
    preset = Preset.model_validate(MINE | {"volatile": volatile})
    normaliser = Normaliser(MatchSettings())

    def fingerprint(number: int, preset: Preset | None) -> str:
        system = Message("system", ({"type": "text", "text": f"bill: {number}"},))
        user = Message("user", ({"type": "text", "text": "Hello", "turn": number, "wires": number},))
        request = CanonicalRequest("responses", "generate", (system, user), params={"nonce": number})
        wire = Volatile(members=frozenset({"wires"}))
        return normaliser.normalise(request, "api.openai.com", wire, preset).fingerprint

    assert fingerprint(1, preset) == fingerprint(2, preset)
    assert fingerprint(1, None) != fingerprint(2, None)


# Time.

_HOSTILE = (
    "\n - Platform: ",
    "\n* Operating System: ",
    "<shell>a",
    "Today's date is ",
    "Context from: ",
    "/.gemini/tmp/",
    "/claude-1",
    "<task-id>abcdef",
    '"session_id":',
    "- `r0` = `/a/skills/",
    "memory at `/a/projects/",
    "**Workspace Directories:**\n - /",
    "a",
    " ",
    "\n",
)


@pytest.mark.parametrize("preset", presets().values(), ids=lambda preset: preset.id)
@pytest.mark.parametrize("piece", _HOSTILE)
def test_the_rules_take_linear_time(preset: Preset, piece: str) -> None:
    """A megabyte of the worst beginnings costs less than two seconds."""
    text = piece * (2**20 // len(piece))
    begun = time.thread_time()
    for finder in (*preset.scrub, *preset.cues.cwd, *preset.cues.home, *preset.cues.root):
        for _ in finder.pattern.finditer(text):
            pass
    assert time.thread_time() - begun < 2


def test_a_scrubber_without_a_preset_has_no_rules_of_one() -> None:
    """What an agent's rule finds stays where no agent was recognised."""
    text = "<shell>bash</shell>"
    assert Scrubber(MatchSettings()).leaf(text, "text", "user", ()).spans == ()
    assert Scrubber(MatchSettings(), presets()["codex"]).leaf(text, "text", "user", ()).spans
