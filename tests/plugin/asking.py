"""What a user's tests look like, for a run that records and one that replays. `WORD` is part of some prompts.

Each test's docstring says how it must end in replay where that is not a success.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

ASK = """
import json, sys, urllib.request
body = json.dumps({"model": "m1", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
request = urllib.request.Request(sys.argv[2], body, {"content-type": "application/json"})
json.load(urllib.request.urlopen(request))
"""
URL = "https://api.openai.com/v1/chat/completions"
WORD = os.environ.get("WORD", "now")


def ask(prompt: str, url: str = URL) -> Any:
    """Ask as any client does that knows of proxies by its environment alone."""
    body = json.dumps({"model": "m1", "messages": [{"role": "user", "content": prompt}]}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))


@pytest.mark.rewind
def test_marked() -> None:
    assert ask("marked")["choices"]
    assert os.environ["SSL_CERT_FILE"] == os.environ["REQUESTS_CA_BUNDLE"]


def test_left_alone() -> None:
    assert "HTTPS_PROXY" not in os.environ
    assert "SSL_CERT_FILE" not in os.environ
    assert os.environ["NO_PROXY"] == "mine.example"


@pytest.mark.parametrize("kind", ["a::b"])
def test_fixture(rewind: Any, kind: str) -> None:
    assert rewind.session.startswith("test_asking.py/test_fixture[a/b]")
    assert os.environ["HTTPS_PROXY"] == os.environ["https_proxy"] == rewind.url
    assert rewind.env["HTTPS_PROXY"] == rewind.url
    assert rewind.report()["steps"] == 0
    ask("fixture")
    subprocess.run([sys.executable, "-c", ASK, "fixture of a child", URL], env=rewind.env, check=True)
    report = rewind.report()
    assert (report["steps"], report["misses"]) == (2, [])
    assert report["recorded"] + report["exact"] == 2


def test_counts_at_once(rewind: Any) -> None:
    for number in range(1, 21):
        ask(f"at once {number}")
        assert rewind.report()["steps"] == number


@pytest.mark.rewind(session="one name")
def test_session(rewind: Any) -> None:
    assert rewind.session == "one name"
    ask("session")


@pytest.fixture
def base_url(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://llm.corp.example/v1")
    return os.environ["OPENAI_BASE_URL"]


@pytest.mark.rewind(
    hosts={"llm.corp.example": "chat_completions"},
    upstream={"llm.corp.example": os.environ["CORP"]},
    tail_n=1,
)
def test_settings(base_url: str) -> None:
    ask("settings", f"{base_url}/chat/completions")


class TestOfUnittest(unittest.TestCase):
    @pytest.mark.rewind
    def test_case(self) -> None:
        assert ask("unittest")["choices"]

    @pytest.mark.rewind
    def test_case_swallows(self) -> None:
        """Fails."""
        try:
            ask(f"unittest {WORD}")
        except urllib.error.HTTPError as error:
            error.close()


@pytest.mark.rewind
def test_swallows() -> None:
    """Fails."""
    try:
        ask(f"swallowed {WORD}")
    except urllib.error.HTTPError as error:
        error.close()


@pytest.mark.rewind
def test_skips() -> None:
    """Fails."""
    try:
        ask(f"skipped {WORD}")
    except urllib.error.HTTPError as error:
        error.close()
        raise unittest.SkipTest("no model here") from None


@pytest.mark.rewind
def test_raises() -> None:
    """Fails, by itself."""
    ask(f"raised {WORD}")


@pytest.fixture
def saying_goodbye(rewind: Any) -> Iterator[None]:
    yield
    try:
        ask(f"goodbye {WORD}")
    except urllib.error.HTTPError as error:
        error.close()


def test_teardown(saying_goodbye: None) -> None:
    """Succeeds, and is an error at its end."""
    ask("hello")


@pytest.mark.rewind
def test_asks_nothing() -> None:
    """Succeeds, with a warning."""


@pytest.mark.rewind(allow_empty=True)
def test_may_ask_nothing() -> None:
    pass


@pytest.mark.rewind(tail_m=4)
def test_misspelt() -> None:
    """An error, which names the setting."""
