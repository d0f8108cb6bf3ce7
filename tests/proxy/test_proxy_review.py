"""From a miss to an alias to a hit, and from a miss to an answer by hand, as a new user goes (CASES 65)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from proxy.calls import CHAT_PATH
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.cli.provider import FakeProvider
from support.children import Finished, environment, rewind
from support.runs import Place, Run, rewind_run

CLIENT = """
import json, sys, urllib.error, urllib.request

body = {"model": "m1", "messages": [{"role": "user", "content": sys.argv[2]}]}
request = urllib.request.Request(
    sys.argv[1], json.dumps(body).encode(), {"content-type": "application/json"}
)
try:
    answer = urllib.request.urlopen(request)
    print(json.dumps([dict(answer.headers), json.load(answer)]))
except urllib.error.HTTPError as error:
    print(json.dumps([dict(error.headers), json.load(error)]))
    sys.exit(3)
"""
RECORDED = "Rename the function that parses the header of a request, and keep its callers working."
ASKED = RECORDED.replace("header", "trailer")
COMMAND = re.compile(r"rewind review ([0-9a-f]{12})")


class User:
    """A person with a project, who types commands and looks at what they print."""

    def __init__(self, place: Place, provider: FakeProvider) -> None:
        self._place = place
        self._provider = provider
        self.store = place.notes / ".rewind" / "store"

    def run(self, mode: str, prompt: str, path: str = CHAT_PATH) -> Run:
        """`rewind run` around a client."""
        argv = [sys.executable, "-c", CLIENT, f"https://api.openai.com{path}", prompt]
        return rewind_run(argv, self._place, mode=mode, store=self.store, provider=self._provider)

    def type(self, *words: str) -> Finished:
        """Another verb, with no terminal."""
        return rewind(*words, "--store", self.store, env=environment(self._place.home), cwd=self._place.work)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME: our CA is made once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def user(tmp_path: Path, home: Path) -> User:
    """A user with one recording; the provider is gone since."""
    place = Place(tmp_path / "work", home, tmp_path / "notes")
    for folder in (place.work, place.notes):
        folder.mkdir()
    with FakeProvider() as provider:
        made = User(place, provider)
        assert made.run("auto", RECORDED).report["recorded"] == 1
    return made


def answered(run: Run) -> tuple[dict[str, str], Any]:
    """The headers and the body that the client got."""
    headers, body = json.loads(run.finished.stdout.splitlines()[0])
    return {name.lower(): value for name, value in headers.items()}, body


def test_from_miss_to_alias_to_hit(user: User) -> None:
    """Each screen names the next command; the same request replays, and misses again without the alias."""
    refused = user.run("replay", ASKED)
    assert refused.finished.status == 4
    _, error = answered(refused)
    [pending] = {*COMMAND.findall(error["error"]["message"]), *COMMAND.findall(refused.finished.stderr)}
    assert refused.report["misses"][0]["pending"].startswith(pending)

    listed = user.type("pending").stdout
    assert pending in listed
    assert f"rewind review {pending}" in listed
    shown = user.type("review", pending).stdout
    for said in (RECORDED, ASKED, "$.messages[0].parts[0].text", "You said: Rename the function"):
        assert said in shown
    command = re.search(r"rewind (approve \S+ \S+)", shown)
    assert command

    approved = user.type(*command[1].split())
    assert (approved.status, "tier alias" in approved.stdout) == (0, True)
    assert json.loads(user.type("pending", "--json").stdout) == []
    hit = user.run("replay", ASKED)
    headers, body = answered(hit)
    assert (hit.finished.status, hit.report["alias"], hit.report["refused"]) == (0, 1, 0)
    assert (headers["x-rewind"], headers["x-rewind-tier"]) == ("replayed", "alias")
    assert headers["x-rewind-note"] == f"alias {pending}"
    assert body["choices"][0]["message"]["content"].startswith(
        "You said: Rename the function that parses the header"
    )
    assert user.run("replay", RECORDED).report["exact"] == 1

    [alias] = json.loads(user.type("aliases", "--json").stdout)
    assert headers["x-rewind-cassette"] == alias["cassette"]
    assert user.type("aliases", "--remove", alias["id"][:12]).status == 0
    assert user.run("replay", ASKED).finished.status == 4
    assert user.type("verify").status == 0


def test_an_answer_by_hand_replays(user: User) -> None:
    """In the wire and form that was asked for; it is marked as no model's."""
    prompt = "What is the capital of Atlantis?"
    assert user.run("replay", prompt).finished.status == 4
    [pending] = json.loads(user.type("pending", "--json").stdout)
    assert pending["candidates"] == []
    assert "rewind answer" in user.type("review", "last").stdout
    file = user.store.parent / "answer.txt"
    file.write_text("It has none any more.\n")
    stored = user.type("answer", pending["id"][:8], str(file))
    assert (stored.status, "by hand" in stored.stdout) == (0, True)
    hit = user.run("replay", prompt)
    headers, body = answered(hit)
    assert (hit.report["exact"], headers["x-rewind-tier"]) == (1, "exact")
    assert headers["content-type"] == "application/json"
    message = body["choices"][0]
    assert (message["message"]["content"], message["finish_reason"]) == ("It has none any more.", "stop")
    [record] = [each for each in json.loads(user.type("ls", "--json").stdout) if each["answer"]["by_hand"]]
    assert record["id"] == headers["x-rewind-cassette"]


def test_a_refused_request_is_kept_without_its_credentials(user: User) -> None:
    """Neither pending request nor alias has one in any file."""
    secret = "sk-proj-" + "Ab1" * 14
    assert (
        user.run("replay", f"{ASKED} The key is {secret}.", f"{CHAT_PATH}?key={secret}").finished.status == 4
    )
    assert json.loads(user.type("pending", "--json").stdout)[0]["preview"].endswith("[REDACTED].")
    assert not scan(user.store.parent, [secret]).found
    found = user.type("ls", "--json").json
    assert isinstance(found, list)
    assert isinstance(found[0], dict)
    assert user.type("approve", "last", str(found[0]["id"])).status == 0
    assert not scan(user.store.parent, [secret]).found
    assert (
        user.run("replay", f"{ASKED} The key is {secret}.", f"{CHAT_PATH}?key={secret}").report["alias"] == 1
    )


def test_live_modes_leave_nothing_pending(user: User) -> None:
    """What goes live is recorded, or fails with the provider: nobody has to answer it."""
    user.run("auto", ASKED)
    assert json.loads(user.type("pending", "--json").stdout) == []
