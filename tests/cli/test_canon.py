"""`rewind canon` on a terminal and into a pipe: what is shown, and of what each place is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from case_tables import fake
from cli.shelf import Call
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli import canon

pytestmark = pytest.mark.usefixtures("place")

SECRET = fake("sk-proj-", 40)
UUID = "5f0c7c2e-8f4b-4a3e-9d76-0a9d0a9f4c11"


def write(body: JsonValue, host: str = "api.openai.com") -> str:
    """A request file of a chat; its name."""
    document: JsonObject = {"url": f"https://{host}/v1/chat/completions", "body": body}
    Path("r.json").write_text(json.dumps(document), encoding="utf-8")
    return "r.json"


def chat(*texts: str, **more: JsonValue) -> JsonObject:
    return {"model": "m1", "messages": [{"role": "user", "content": text} for text in texts], **more}


@pytest.fixture
def on_screen(rewind: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """As on a terminal, of 80 columns."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(canon, "at_screen", lambda: True)
        return rewind("canon", *arguments, columns=80)

    return call


def test_a_conversation_is_shown_as_one(on_screen: Call) -> None:
    """Who said what, the tools by name, parameters as a table; nothing is wider than the screen."""
    tool: JsonObject = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}
    body = chat("hello " * 40, tools=[tool], temperature=0.25, metadata={"a": 1})
    code, out, err = on_screen(write(body))
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert {"1 tool", "  shell", "user", "parameters"} <= set(lines)
    shown = {line.split()[0]: line.split()[1:] for line in lines[lines.index("parameters") + 1 :] if line}
    assert (shown["model"], shown["temperature"], shown["metadata"]) == (['"m1"'], ["0.25"], ['{"a":', "1}"])


def test_what_is_not_there_has_no_heading(on_screen: Call) -> None:
    """No tools, no slots, no redactions."""
    out = on_screen(write({"messages": [{"role": "user", "content": "hi"}]}))[1]
    assert not {"tool", "slot", "redaction", "parameters"} & set(out.replace("s ", " ").split())


def test_slots_and_redactions_say_where(on_screen: Call) -> None:
    """A slot in the canonical form, with its placeholder and value; a redaction in the body as sent."""
    out = on_screen(write(chat(f"key {SECRET}", f"id {UUID}")))[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "slot", *"taken out for matching; places in the canonical form".split()] in rows
    assert ["RS101", "⟨uuid:1⟩", f"{UUID[:25]}…", "$.messages[0].parts[1].text"] in rows
    assert ["1", "redaction", *"credentials; places in the body as it was sent".split()] in rows
    assert ["RW101", "$.messages[0].content"] in rows
    assert SECRET not in out


def test_long_lists_are_cut(on_screen: Call) -> None:
    """What is left out is counted; `--json` has all."""
    file = write(chat(" ".join(f"{UUID[:-3]}{number}" for number in range(100, 150))))
    assert "… and 10 more (--json shows all)" in on_screen(file)[1]
    assert len(json.loads(on_screen(file, "--json")[1])["slots"]) == 50


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("no JSON at all", "The request is kept as a digest only: 14 B"),
        (chat("\x1b[2J\u202eover"), "\\x1b[2J\\u202eover"),
        ({"x": "⟨id:1⟩"}, "⟨id:1⟩"),
    ],
)
def test_anything_can_be_shown(on_screen: Call, body: JsonValue, said: str) -> None:
    """Opaque bodies, control characters, what is no conversation."""
    code, out, _ = on_screen(write(body))
    assert (code, said in out, "\x1b[2J" in out) == (0, True, False)


def test_settings_are_flags(rewind: Call) -> None:
    """A host that the error names can be added as it says."""
    file = write(chat("hi"), "llm.corp.example")
    code, _, err = rewind("canon", file)
    assert (code, "add it with --hosts llm.corp.example=WIRE" in err) == (1, True)
    found = json.loads(rewind("canon", file, "--hosts", "llm.corp.example=chat_completions")[1])
    assert (found["wire"], found["class"]) == ("chat_completions", "model")
    said = json.loads(rewind("canon", write(chat(f"id {UUID}")), "--scrub-off", "RS101")[1])
    assert said["slots"] == []


@pytest.mark.parametrize("named", ["scrub_off", "redact_off"])
def test_a_rule_that_does_not_exist_is_named(rewind: Call, named: str) -> None:
    """By every verb that reads settings, though it needs no rules."""
    Path("rewind.toml").write_text(f'{named} = ["XX1"]\n', encoding="utf-8")
    for verb in (["ls"], ["canon", write(chat("hi"))], ["stats"], ["check"], ["pending"]):
        code, _, err = rewind(*verb)
        assert (code, f"rewind.toml: {named}: " in err, '"XX1" is not a ' in err) == (1, True, True)
