"""How a client names its session, what wins when several names are given, and which names there can be."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from proxy.calls import CHAT, CHAT_PATH, OPENAI, fake_credential, new_prompt
from proxy.conftest import Stage, Start
from proxy.looking import run_of, steps_of, until
from proxy.naming import credentials, say_with_user
from rewind_proxy.cli.environment import proxy_url
from rewind_proxy.store import Log
from support.client import Client, tunnel
from support.proxies import Proxy


def heard_nothing_of_ours(stage: Stage, prompt: str) -> bool:
    """Whether the provider got the request without headers for us."""
    [request] = stage.heard(prompt)
    ours = ("x-rewind-session", "x-rewind-mode", "proxy-authorization")
    return not set(ours) & {name for name, _ in request.headers}


def test_a_header_names_the_session(live: Proxy, stage: Stage) -> None:
    """`x-rewind-session` is in the log, and does not reach the provider."""
    prompt, session = new_prompt(), new_prompt()
    headers = {"x-rewind-session": session, "x-rewind-mode": "", "user-agent": "tests/1"}
    CHAT.once(live, prompt, headers=headers)
    assert heard_nothing_of_ours(stage, prompt)
    run = run_of(live.store, session)
    assert (run.mode, run.client) == ("auto", "tests/1")


def test_the_user_name_at_the_proxy_names_the_session(live: Proxy, stage: Stage) -> None:
    """A name in the proxy's URL is enough, with any password."""
    prompt, session = new_prompt(), new_prompt()
    assert say_with_user(live, prompt, session).status == 200
    assert heard_nothing_of_ours(stage, prompt)
    [step] = steps_of(live.store, session)
    assert step.tier == "recorded"


def test_the_user_name_counts_without_tls_too(live: Proxy, stage: Stage) -> None:
    """On plain HTTP the credentials come with the request; they are for the proxy alone."""
    prompt, session = new_prompt(), new_prompt()
    with Client(live, OPENAI, tls=False) as client:
        got = CHAT.send(client, prompt, headers={"proxy-authorization": credentials(session)})
    assert got.status == 200
    assert heard_nothing_of_ours(stage, prompt)
    steps_of(live.store, session)


@pytest.mark.parametrize("value", ["Bearer x", "Basic !", "Basic", "Basic ICA6eA=="])
def test_other_credentials_for_the_proxy_name_nothing(live: Proxy, stage: Stage, value: str) -> None:
    """What is no user name, or a blank one, is taken out all the same, and harms nothing."""
    prompt = new_prompt()
    with Client(live, OPENAI, tls=False) as client:
        got = CHAT.send(client, prompt, headers={"proxy-authorization": value})
    assert got.status == 200
    assert heard_nothing_of_ours(stage, prompt)

    def found() -> bool:
        with Log.open(live.store, readonly=True) as log:
            unnamed = [run.id for run in log.runs() if not run.session]  # of other proxies on this store too
            return any(step.preview == prompt for run in unnamed for step in log.steps(run))

    assert until(found)


def test_a_proxy_with_a_password_asks_for_it_first(start: Start, stage: Stage) -> None:
    """mitmproxy's `proxyauth` works: 407 before anything else, then the user name is the session."""
    prompt, session = new_prompt(), new_prompt()
    with start(provider=stage.provider, options=["--proxyauth", "any"]) as running:
        status, connection = tunnel(running, OPENAI, 443)
        connection.close()
        assert status == 407
        with Client(running, OPENAI, tls=False) as client:
            assert CHAT.send(client, prompt).status == 407
        assert say_with_user(running, prompt, session).status == 200
        steps_of(running.store, session)
        assert heard_nothing_of_ours(stage, prompt)


def test_the_name_nearest_to_the_call_wins(start: Start, stage: Stage) -> None:
    """The header goes before the user name, and the user name before `--session`."""
    given = [("", ""), ("of the user", ""), ("of the user", "of the header")]
    with start(provider=stage.provider, settings={"session": " of the proxy "}) as running:
        for user, header in given:
            say_with_user(running, new_prompt(), user, {"x-rewind-session": header} if header else None)
        for name in ("of the proxy", "of the user", "of the header"):
            steps_of(running.store, name)


# Names

ODD = {
    "blanks": "two words  and two blanks",
    "marks": """a/b@c?d#e%41&f=g"h'i\\""",
    "letters": "Prüfung 日本語 🦊",
    "test id": "tests/test_agent.py::test_it[x-1]",
}


@pytest.mark.parametrize("name", [name for name in ODD.values() if ":" not in name])
def test_the_url_that_env_prints_carries_any_name(live: Proxy, name: str) -> None:
    """What `rewind env --session` puts into the proxy's URL arrives as it was, but for a colon."""
    name = f"{name} {new_prompt()}"
    handlers = (
        urllib.request.ProxyHandler({"https": proxy_url("127.0.0.1", live.port, name)}),
        urllib.request.HTTPSHandler(context=live.trust()),
    )
    body = json.dumps(CHAT.body(new_prompt(), "m1", 100)).encode()
    request = urllib.request.Request(
        f"https://{OPENAI}{CHAT_PATH}", body, {"content-type": "application/json"}
    )
    with urllib.request.build_opener(*handlers).open(request, timeout=30) as response:
        assert response.status == 200
    steps_of(live.store, name)


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_a_header_carries_any_name(live: Proxy, name: str) -> None:
    """UTF-8 in a header is read as what it is, and a colon is part of the name there."""
    name = f"{name} {new_prompt()}"
    CHAT.once(live, new_prompt(), headers={"x-rewind-session": name.encode().decode("latin-1")})
    steps_of(live.store, name)


def test_a_client_that_writes_latin_1_is_understood(live: Proxy) -> None:
    """`requests` sends names so; header and user name mean the same session then."""
    name = f"Prüfung {new_prompt()}"
    CHAT.once(live, new_prompt(), headers={"x-rewind-session": name})
    say_with_user(live, new_prompt(), name.encode("latin-1"))
    steps_of(live.store, name, 2)


def test_long_names_are_told_apart_and_kept_short(live: Proxy) -> None:
    """Of a long name the log has the beginning; two that differ at their ends are two sessions."""
    name = f"{new_prompt()} {'long ' * 1000}"
    for end in ("a", "b"):
        CHAT.once(live, new_prompt(), headers={"x-rewind-session": name + end})
    steps = steps_of(live.store, name[:200], 2)
    assert len({step.run for step in steps}) == 2


def files_with(folder: Path, text: str) -> list[Path]:
    """The files below a folder that hold a text."""
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


@pytest.mark.parametrize("by", ["header", "user", "setting"])
def test_a_name_that_is_a_credential_is_not_kept(start: Start, stage: Stage, tmp_path: Path, by: str) -> None:
    """A key that was given as a session's name is in no file that is written, and still names a session."""
    secret = fake_credential()
    settings: Mapping[str, str] = {"session": secret} if by == "setting" else {}
    flows = tmp_path / "flows"
    with start(provider=stage.provider, settings=settings, options=["-w", str(flows)]) as running:
        headers = {"x-rewind-session": f"my {secret}"} if by == "header" else None
        say_with_user(running, new_prompt(), secret if by == "user" else "", headers)
        steps_of(running.store, "my [REDACTED]" if by == "header" else "[REDACTED]")
        ended = running.stop()
    assert files_with(running.store.parent, secret) == []
    assert secret.encode() not in flows.read_bytes()
    assert secret not in ended.output
