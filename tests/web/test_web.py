"""mitmweb in a browser, as a person uses it: read the comment, open a call, run a command.

`REWIND_SCREENSHOTS` names a folder for what it looked like.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.calls import CHAT, CHAT_PATH, OPENAI, new_prompt
from proxy.looking import recorded
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.provider import FakeProvider
from support.browser import Page, chromium
from support.client import Client, Got
from support.web import Web, rewind_web

ROWS = "table tbody tr"
TABS = "nav.nav-tabs-sm a"
SHOWN = "(document.querySelector('.contentview') || document.body).innerText"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """`rewind web` before a provider."""
    with FakeProvider() as provider, rewind_web(tmp_path_factory.mktemp("web"), provider) as running:
        yield running


@pytest.fixture
def page(web: Web, tmp_path: Path) -> Iterator[Page]:
    """A browser at the address that `rewind web` printed."""
    web.command("rewind.mode", "auto")
    web.command("view.clear")
    with chromium(os.environ["CHROMIUM"], tmp_path) as page:
        page.open(web.url)
        page.wait_for("document.body && document.body.innerText.includes('connected')")
        yield page


def keep(page: Page, name: str) -> None:
    """Keep what the page looks like, if somebody wants it."""
    if folder := os.environ.get("REWIND_SCREENSHOTS"):
        page.screenshot(Path(folder) / f"{name}.png")


def ask(web: Web, prompt: str, folder: str, model: str = "m1") -> Got:
    """One turn of an agent: a conversation with a tool."""
    call: JsonValue = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "shell", "arguments": json.dumps({"command": "rg open", "workdir": folder})},
    }
    body: JsonObject = {
        "model": model,
        "messages": [
            {"role": "system", "content": f"You are a careful agent.\n<cwd>{folder}</cwd>"},
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": "I look for them first.", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": "call_1",
                "content": f"{folder}/a.py:12: f = open(p)\ntook 0.38s",
            },
        ],
    }
    with Client(web.proxy, OPENAI) as client:
        return client.post(CHAT_PATH, body)


def test_the_list_says_how_each_call_ended(web: Web, page: Page) -> None:
    """The comment column is there, and complete when the answer is stored."""
    prompt = new_prompt()
    ask(web, prompt, "/home/ann/app")
    [cassette] = recorded(web.proxy.store, prompt)
    ask(web, prompt, "/builds/7/app", "m2")
    for comment in ("recording · recorded", "replayed · normalised"):
        page.wait_for(f"document.body.innerText.includes('rewind: {comment} · {cassette.id[:8]}…')")
    keep(page, "list")


def test_a_call_opens_as_a_conversation_with_its_report(web: Web, page: Page) -> None:
    """The view is chosen by itself, on both sides; it can be left and chosen again."""
    prompt = new_prompt()
    ask(web, prompt, "/home/ann/app")
    recorded(web.proxy.store, prompt)
    ask(web, prompt, "/builds/7/app", "m2")
    page.click(ROWS, "replayed · normalised")
    page.wait_for(f"{SHOWN}.includes('I look for them first.')")
    request = page.evaluate(SHOWN)
    assert "Rewind" in request
    assert '→ shell(command="rg open", workdir="/builds/7/app")' in request
    keep(page, "request")
    page.click(TABS, "Response")
    page.wait_for(f"{SHOWN}.includes('replayed · normalised')")
    response = page.evaluate(SHOWN)
    assert "model m1->m2" in response
    assert "/home/ann/app → /builds/7/app" in response
    keep(page, "response")
    page.click(".contentview a, .contentview button", "View:")
    page.click(".dropdown-menu a", "json")
    page.wait_for(f"{SHOWN}.includes('\"choices\"')")
    page.click(".contentview a, .contentview button", "View:")
    page.click(".dropdown-menu a", "rewind")
    page.wait_for(f"{SHOWN}.includes('replayed · normalised')")


def test_a_command_is_run_from_the_command_bar(web: Web, page: Page) -> None:
    """Replay mode is set, and the next call that nobody recorded is refused, and explained."""
    prompt = new_prompt()
    CHAT.once(web.proxy, f"{prompt} Say hello.")
    recorded(web.proxy.store, prompt)
    page.click("nav.nav-tabs-lg a", "Options")
    page.click("label", "Display Command Bar")
    page.click(".command input")
    page.write("rewind.mode replay")
    page.press("Enter")
    page.wait_for("document.querySelector('.command-result').innerText.includes('[\"replay\"]')")
    keep(page, "command")
    assert CHAT.once(web.proxy, f"{prompt} Say goodbye.").status == 400
    page.click(ROWS, "refused · miss")
    page.wait_for(f"{SHOWN}.includes('- recorded')")
    assert f"+ live      {prompt} Say goodbye." in page.evaluate(SHOWN)
    keep(page, "miss")
