"""Options of mitmproxy that go past our hooks, and settings that do not exist."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.calls import CHAT, OPENAI, new_prompt
from proxy.conftest import CONTROL, Stage, Start, tell
from proxy.looking import cassettes, steps_of, until
from rewind_proxy.settings import FIELDS
from support.children import Finished, environment, run
from support.client import Client
from support.proxies import SCRIPT, Proxy

IN_THE_WAY = {
    "stream_large_bodies": "1",
    "ignore_hosts": r"example\.org",
    "allow_hosts": r"api\.openai\.com",
    "tcp_hosts": r"example\.org",
    "udp_hosts": r"example\.org",
    "server_replay": "{flows}",
    "client_replay": "{flows}",
    "map_remote": "|http://a.invalid|http://b.invalid",
    "map_local": "|http://a.invalid|{flows}",
}
"""Each with a harmless value: it is the option that is refused, not what it would do."""


def not_started(
    folder: Path, *arguments: str, variables: dict[str, str] | None = None, tool: Sequence[str] | None = None
) -> Finished:
    """What a proxy printed that does not start; one that starts fails the test after a while."""
    argv = [*(tool or [str(Path(sys.executable).with_name("mitmdump")), "-s", str(SCRIPT)])]
    argv += ["--listen-host", "127.0.0.1", "--listen-port", "0", *arguments]
    return run(argv, environment(folder, **(variables or {})), folder, seconds=20)


def test_replay_does_not_start_with_options_in_the_way(tmp_path: Path) -> None:
    """mitmdump exits with 1, and says of each option that it does not go together with replay, and why.

    A reverse proxy is among them: it connects before a request is seen, unless its strategy is lazy. It is
    one of HTTP here: one of HTTPS listens for QUIC too, and mitmproxy, stopping in that moment, now and then
    dies of SIGSEGV after its last word (measured with an add-on of two lines on 11.0.2 and 12.3.1).
    """
    (tmp_path / "flows").touch()
    values = [f"{option}={value.format(flows=tmp_path / 'flows')}" for option, value in IN_THE_WAY.items()]
    sets = [word for value in values for word in ("--set", value)]
    reverse = ["--mode", "reverse:http://api.openai.com"]
    ended = not_started(tmp_path, "--set", "rewind_mode=replay", *sets, *reverse)
    assert ended.status == 1
    *_, said = re.findall(r"rewind: replay mode .* do not go together: (.*)", ended.output)
    *reasons, reverse_reason = re.split(r"; (?!add )", said)
    assert [reason.partition(": ")[0] for reason in reasons] == list(IN_THE_WAY)
    assert reverse_reason.endswith("; add --set connection_strategy=lazy")


def test_the_child_of_our_verbs_does_not_start_either(tmp_path: Path) -> None:
    """`rewind proxy` and `rewind run` refuse the same options."""
    argv = [sys.executable, "-m", "rewind_proxy.mitm", "proxy"]
    ended = not_started(tmp_path, "--set", "rewind_mode=replay", "--set", "ignore_hosts=example", tool=argv)
    assert (ended.status, "do not go together: ignore_hosts" in ended.output) == (1, True)


@pytest.mark.parametrize("option", IN_THE_WAY)
def test_a_running_replay_refuses_the_change(offline: Proxy, tmp_path: Path, option: str) -> None:
    """The change is refused by the same words, the option keeps its value, and the proxy goes on."""
    (tmp_path / "flows").touch()
    got = tell(offline, "set", option, IN_THE_WAY[option].format(flows=tmp_path / "flows"))
    assert (got.status, f"do not go together: {option}".encode() in got.body) == (409, True)
    assert CHAT.once(offline, new_prompt()).status == 400
    assert tell(offline, "set", "rewind_repeat", "sequence").status == 200


def test_a_live_proxy_warns_and_cannot_turn_to_replay(start: Start, stage: Stage) -> None:
    """What mitmproxy is told not to decrypt Rewind cannot see: a live proxy says so, and live it stays."""
    passing = {"ignore_hosts": r"example\.org", "allow_hosts": r"api\.openai\.com", "tcp_hosts": "example"}
    options = [word for name, value in passing.items() for word in ("--set", f"{name}={value}")]
    with start(provider=stage.provider, options=[*CONTROL, *options]) as running:
        for option in passing:
            assert re.search(rf"calls may go unrecorded: {option}: connections .*", running.child.output)
        assert tell(running, "set", "rewind_mode", "replay").status == 409
        assert CHAT.once(running, new_prompt()).headers["x-rewind"] == "recording"


GATEWAY = "/v1/chat/completions"


def test_a_body_that_was_streamed_past_us_is_not_recorded(start: Start, stage: Stage) -> None:
    """`stream_large_bodies` sends bodies on unread: they pass, two of them never share an answer."""
    stage_of = f"localhost:{stage.port}"
    settings = {"hosts": f"{stage_of}=chat_completions"}
    options = ["--set", "stream_large_bodies=10"]
    prompts = new_prompt(), new_prompt()
    with start(settings=settings, options=options) as running:
        until(lambda: "calls may go unrecorded: stream_large_bodies" in running.child.output)
        with Client(running, "localhost", tls=False, port=stage.port) as client:
            got = [client.post(GATEWAY, CHAT.body(prompt, "m1", 9)) for prompt in prompts]
        answers = [answer.body for answer in got]
        assert [prompt.encode() in body for prompt, body in zip(prompts, answers, strict=True)] == [True] * 2
        assert {answer.headers["x-rewind"] for answer in got} == {"passed"}
        steps = steps_of(running.store, "", 2)
        assert {(step.tier, step.cls) for step in steps} == {("passed", "model")}
        assert {"stream_large_bodies" in step.reason for step in steps} == {True}
        assert not cassettes(running.store, prompts[0])


ASKED_TO_REPLAY = {"x-rewind-mode": "replay"}


@pytest.mark.parametrize(
    "options",
    [
        ["stream_large_bodies=10"],
        ["map_remote=|api.openai.com|localhost:{port}", "server_replay={flows}"],
    ],
)
def test_a_client_that_asks_for_replay_stays_offline(
    start: Start, stage: Stage, tmp_path: Path, options: list[str]
) -> None:
    """`x-rewind-mode: replay` holds in a live proxy, whatever the user's options do to other requests."""
    (tmp_path / "flows").touch()
    values = [option.format(port=stage.port, flows=tmp_path / "flows") for option in options]
    words = [word for value in values for word in ("--set", value)]
    settings = {"hosts": f"localhost:{stage.port}=chat_completions"}
    prompt = new_prompt()
    with start(settings=settings, provider=stage.provider, options=words) as running:
        for host, tls, port in ((OPENAI, True, None), ("localhost", False, stage.port)):
            with Client(running, host, tls=tls, port=port) as client:
                try:
                    got = client.post(GATEWAY, CHAT.body(prompt, "m1", 9), ASKED_TO_REPLAY)
                except ConnectionError:
                    continue  # a clear stop
            assert (got.status, got.headers["x-rewind"]) == (400, "refused")
        assert running.sockets.outward(stage.port) == []
    assert not stage.heard(prompt)


def test_a_misspelt_option_is_named_with_the_choices(tmp_path: Path) -> None:
    """`--set rewind_mod=replay` does not start, and lists every option that there is."""
    ended = not_started(tmp_path, "--set", "rewind_mod=replay")
    assert ended.status == 1
    assert "did you mean rewind_mode?" in ended.output
    assert "Traceback" not in ended.output
    assert all(field.option in ended.output for field in FIELDS)


def test_a_misspelt_key_is_named_with_its_file_and_the_choices(tmp_path: Path) -> None:
    """`mod = "replay"` in `rewind.toml` does not start, and lists every key that there is."""
    (tmp_path / "rewind.toml").write_text('mod = "replay"\n')
    ended = not_started(tmp_path)
    assert ended.status == 1
    assert f"{tmp_path / 'rewind.toml'}: key mod" in ended.output
    assert all(field.key in ended.output for field in FIELDS)


def test_an_unknown_mode_is_named_with_the_choices(tmp_path: Path) -> None:
    """A mode that does not exist does not start: a typo must not go live."""
    ended = not_started(tmp_path, "--set", "rewind_mode=replya")
    assert ended.status == 1
    assert "replya" in ended.output
    assert all(mode in ended.output for mode in ("auto", "replay", "record", "passthrough"))


def test_in_ci_a_proxy_replays(start: Start, stage: Stage) -> None:
    """With `CI` set to a true value, a proxy that is not told otherwise makes no live call."""
    prompt = new_prompt()
    with start(provider=stage.provider, variables={"CI": "true"}) as running:
        assert CHAT.once(running, prompt).headers["x-rewind"] == "refused"
    assert not stage.heard(prompt)
