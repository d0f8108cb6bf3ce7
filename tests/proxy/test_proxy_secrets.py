"""No credential of a request is at rest in a file of ours, in the output, or in a saved flow (promise 4)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from mitmproxy.io import FlowReader

from proxy.calls import ANTHROPIC, CHAT_PATH, GEMINI, OPENAI, fake_credential, new_prompt
from proxy.conftest import CONTROL, Start, tell
from proxy.looking import steps_of
from proxy.naming import credentials
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider import Exchange, FakeProvider
from support.children import Finished
from support.client import Client, Got, tunnel
from support.proxies import Proxy, proxy

_FRAME = b"\x28\xb5\x2f\xfd"
_PATH_BY_MITMDUMP = re.compile(r"^\S+: (?:GET|POST) [^ ?]*", re.MULTILINE)
"""mitmdump's own line of a flow, up to its query: what a user asks it to show is not ours to change."""
ASKED_TO_REPLAY = {"x-rewind-mode": "replay"}


def chat_saying(text: str) -> JsonObject:
    """A request whose prompt ends so; what an answer echoes are its first words."""
    said = f"Words that the answer of the provider echoes: {text}"
    return {"model": "m1", "messages": [{"role": "user", "content": said}]}


def tool_turn(arguments: str, result: str) -> JsonObject:
    """A request after a tool call; an answer quotes the first words of the result."""
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {
        "model": "m1",
        "messages": [
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ],
    }


def offering(description: str) -> JsonObject:
    """A request that offers a tool."""
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": description}}
    return chat_saying("use it") | {"tools": [tool]}


@dataclass(frozen=True)
class Sent:
    """A request with a credential in it."""

    body: JsonObject | bytes | None = field(default_factory=lambda: chat_saying("hello"))
    path: str = CHAT_PATH
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str = OPENAI
    tls: bool = True
    broken: bool = False
    """Whether ours fails on it."""


GENERATE = "/v1beta/models/m1:generateContent"
GENERATED: JsonObject = {"contents": [{"parts": [{"text": "hello"}]}]}
PLACES: Mapping[str, Callable[[str], Sent]] = {
    "authorization": lambda key: Sent(headers={"authorization": f"Bearer {key}"}),
    "x-api-key": lambda key: Sent(headers={"x-api-key": key}),
    "x-goog-api-key": lambda key: Sent(GENERATED, GENERATE, {"x-goog-api-key": key}, GEMINI),
    "a cookie": lambda key: Sent(headers={"cookie": f"session={key}"}),
    "the proxy's password": lambda key: Sent(
        headers={"proxy-authorization": credentials("me", key)}, tls=False
    ),
    "the user agent": lambda key: Sent(headers={"user-agent": f"agent/{key}"}),
    "the session's name": lambda key: Sent(headers={"x-rewind-session": key}),
    "a gateway's header": lambda key: Sent(
        chat_saying(f"by a gateway: {key[8:]}"), headers={"x-gateway-auth": f"Bearer {key[8:]}"}
    ),
    "a subprotocol": lambda key: Sent(
        headers={"sec-websocket-protocol": f"realtime, openai-insecure-api-key.{key}"}
    ),
    "a lone subprotocol": lambda key: Sent(headers={"sec-websocket-protocol": f"token, {key}"}),
    "the page it comes from": lambda key: Sent(headers={"referer": f"https://page.example/?key={key}"}),
    "a function's header": lambda key: Sent(headers={"x-functions-key": key[8:]}),
    "a session that is named by its key": lambda key: Sent(
        headers={"x-rewind-session": key[8:], "authorization": f"Bearer {key[8:]}"}
    ),
    "a path that is named by its key": lambda key: Sent(
        path=f"/v1/deployments/{key[8:]}/chat/completions", headers={"authorization": f"Bearer {key[8:]}"}
    ),
    "a parameter": lambda key: Sent(path=f"{CHAT_PATH}?api_token={key[8:]}"),
    "the name of a parameter": lambda key: Sent(path=f"{CHAT_PATH}?{key}"),
    "a path with escapes": lambda key: Sent(path="/v1/deployments/{}/x".format(key.replace("-", "%2D"))),
    "the query": lambda key: Sent(GENERATED, f"{GENERATE}?key={key}", host=GEMINI),
    "the path": lambda key: Sent(path=f"/v1/deployments/{key}/chat/completions"),
    "a path that is refused": lambda key: Sent(
        path=f"/v1/deployments/{key}/chat/completions", headers=ASKED_TO_REPLAY
    ),
    "the system prompt": lambda key: Sent(
        {"model": "m1", "messages": [{"role": "system", "content": f"Use {key}."}]}
    ),
    "the prompt": lambda key: Sent(chat_saying(f"my key is {key}, keep it")),
    "the end of a long prompt": lambda key: Sent(chat_saying("word " * 5000 + key)),
    "the name of a member": lambda key: Sent(chat_saying("hi") | {"x_new": {key: 1}}),
    "the name of an argument": lambda key: Sent(tool_turn(json.dumps({key: 1}), "done")),
    "a prompt that is refused": lambda key: Sent(chat_saying(key), headers=ASKED_TO_REPLAY),
    "tool arguments": lambda key: Sent(tool_turn(json.dumps({"env": {"KEY": key}}), "done")),
    "a tool result": lambda key: Sent(tool_turn("{}", "word " * 500 + f"OPENAI_API_KEY={key}\n")),
    "a tool's description": lambda key: Sent(offering(f"Uses {key} to search.")),
    "an unknown field": lambda key: Sent(chat_saying("hi") | {"x_new": {"deep": [key]}}),
    "a user's name": lambda key: Sent(chat_saying("hi") | {"user": key}),
    "a body that is not JSON": lambda key: Sent(f"plain {key}".encode()),
    "a compressed body": lambda key: Sent(
        zstandard.compress(json.dumps(chat_saying(key)).encode()), headers={"content-encoding": "zstd"}
    ),
    "a side request's query": lambda key: Sent(None, f"/v1/models?api_key={key}"),
    "a side request's path": lambda key: Sent(None, f"/v1/files/{key}"),
    "a side request's body": lambda key: Sent({"token": key}, "/v1/initialize"),
    "telemetry": lambda key: Sent(key.encode(), "/v1/traces/ingest"),
    "a login": lambda key: Sent(key.encode(), "/v1/oauth/token"),
    "a prompt on which ours fails": lambda key: Sent(chat_saying(key), broken=True),
    "a path on which ours fails": lambda key: Sent(path=f"/v1/x/{key}", broken=True),
}


class Kept(NamedTuple):
    """What a recording and a replaying proxy left behind, after requests full of credentials."""

    secrets: Mapping[str, str]
    files: Mapping[str, bytes]
    """All files that Rewind wrote, and everything in them that decompresses."""
    recording: Finished
    replaying: Finished
    flows: Path
    answers: Mapping[str, Got]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Kept:
    """Send a credential in every place, live and then in replay; end both proxies; read all files."""
    secrets = {place: fake_credential() for place in PLACES}
    home, away = tmp_path_factory.mktemp("recording"), tmp_path_factory.mktemp("replaying")
    flows = tmp_path_factory.mktemp("flows") / "flows"
    with FakeProvider() as provider:
        saving = [*CONTROL, "-w", str(flows)]
        with proxy(home, confdir, provider=provider, options=saving) as running:
            answers = send_all(running, secrets)
            recording = running.stop()
    store, replay = running.store, {"mode": "replay"}
    with proxy(away, confdir, provider=provider, settings=replay, store=store, options=CONTROL) as running:
        send_all(running, secrets)
        replaying = running.stop()
    files = dict(everything_in(home / ".rewind"))
    assert any(name.endswith("data.mdb") for name in files)
    return Kept(secrets, files, recording, replaying, flows, answers)


def send_all(running: Proxy, secrets: Mapping[str, str]) -> dict[str, Got]:
    """One request for each place."""
    answers: dict[str, Got] = {}
    for place, make in PLACES.items():
        sent = make(secrets[place])
        if sent.broken:
            tell(running, "breaks", "engine.reader.read", "1")
        with Client(running, sent.host, tls=sent.tls) as client:
            if sent.body is None:
                answers[place] = client.get(sent.path, sent.headers)
            else:
                answers[place] = client.post(sent.path, sent.body, sent.headers)
        if sent.broken:
            tell(running, "breaks", "all", "")
    return answers


def everything_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file as it is, and every zstd frame in it decompressed, freed pages included."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        raw = file.read_bytes()
        yield str(file), raw
        for found in re.finditer(re.escape(_FRAME), raw):
            try:
                text = zstandard.ZstdDecompressor().decompressobj().decompress(raw[found.start() :])
            except zstandard.ZstdError:
                continue  # the magic number by chance, or a page that was written over
            yield f"{file} at {found.start()}", text


def traces(secret: str) -> list[bytes]:
    """A credential in the writings that a file could have it in: as it is, and in base64 at any offset."""
    plain = secret.encode()
    return [plain[:24], plain[8:32], base64.b64encode(plain)[:24], plain[8:32].hex().encode()]


@pytest.mark.parametrize("place", PLACES)
def test_no_file_of_ours_holds_it(kept: Kept, place: str) -> None:
    """Store and log: raw, and with every zstd frame decompressed."""
    found = [
        (name, trace)
        for name, content in kept.files.items()
        for trace in traces(kept.secrets[place])
        if trace in content
    ]
    assert found == []


@pytest.mark.parametrize("place", PLACES)
def test_the_output_does_not_show_it(kept: Kept, place: str) -> None:
    """Neither proxy printed it: not in a warning, a traceback or a miss report, nor in a query."""
    for ended in (kept.recording, kept.replaying):
        ours = _PATH_BY_MITMDUMP.sub("", ended.output)
        assert not any(trace.decode() in ours for trace in traces(kept.secrets[place]))


MASKED = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "a cookie",
    "the proxy's password",
    "the query",
    "a side request's query",
    "a function's header",
    "a subprotocol",
    "a lone subprotocol",
    "the page it comes from",
    "a session that is named by its key",
    "a parameter",
]


@pytest.mark.parametrize("place", MASKED)
def test_a_saved_flow_does_not_hold_it(kept: Kept, place: str) -> None:
    """`mitmdump -w` saves finished flows with their auth headers and query credentials masked."""
    raw = kept.flows.read_bytes()
    assert (
        kept.secrets["the prompt"].encode() in raw
    )  # bodies are the user's own: the file is what it should be
    assert not any(trace in raw for trace in traces(kept.secrets[place]))


@pytest.mark.parametrize("place", PLACES)
def test_the_address_of_a_saved_flow_does_not_hold_it(kept: Kept, place: str) -> None:
    """Path and query of a flow are masked; what a provider says of them in its answer is the user's own."""
    with kept.flows.open("rb") as file:
        paths = [flow.request.path for flow in FlowReader(file).stream()]  # type: ignore[attr-defined]
    assert len(paths) >= len(PLACES) // 2
    assert not any(trace.decode() in path for path in paths for trace in traces(kept.secrets[place]))


def test_a_saved_flow_is_marked(kept: Kept) -> None:
    """Comments and markers say how each was answered; the address is the one the client asked for."""
    with kept.flows.open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if "rewind" in flow.comment]
    comments = {flow.comment.partition(" · ")[0] for flow in flows}
    assert comments >= {"rewind: recording", "rewind: refused", "rewind: passed"}
    assert {flow.marked for flow in flows} >= {":red_circle:", ":no_entry:", ":arrow_right:"}
    hosts = {flow.request.pretty_host for flow in flows}  # type: ignore[attr-defined]
    assert hosts == {OPENAI, GEMINI}


def test_the_provider_got_what_was_sent(kept: Kept) -> None:
    """Redaction is for what is kept: the request itself goes on unchanged."""
    assert kept.answers["authorization"].status == 200
    for place in ("the prompt", "tool arguments", "a tool result"):
        assert kept.answers[place].headers["x-rewind"] == "recording"


@pytest.mark.parametrize("mode", ["auto", "passthrough"])
def test_the_client_gets_the_headers_of_an_answer_without_a_body(
    start: Start, tmp_path: Path, mode: str
) -> None:
    """They are masked in what others save of the flow, and not on their way to the client."""
    secrets = [fake_credential() for _ in range(3)]
    named = [("set-cookie", f"a={secrets[0]}"), ("set-cookie", f"b={secrets[1]}")]
    named += [("location", f"https://page.example/?key={secrets[2]}"), ("x-plain", "1")]

    def bodiless(exchange: Exchange) -> None:
        exchange.whole(302 if "models" in exchange.request.path else 200, "text/plain", b"", tuple(named))

    saved = tmp_path / "flows"
    settings = {"mode": mode}
    with (
        FakeProvider(bodiless) as provider,
        start(provider=provider, settings=settings, options=["-w", str(saved)]) as running,
    ):
        for path in ("/v1/models", CHAT_PATH):
            _, raw = tunnel(running, OPENAI, 443)
            with raw, running.trust().wrap_socket(raw, server_hostname=OPENAI) as connection:
                connection.sendall(
                    b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" % path.encode()
                )
                answer = HTTPResponse(connection)
                answer.begin()
                got = [(name.lower(), value) for name, value in answer.getheaders()]
                assert [pair for pair in got if pair in named] == named
        running.stop()
    assert b"x-plain" in saved.read_bytes()
    assert not any(secret.encode() in saved.read_bytes() for secret in secrets)


def test_a_rotated_key_still_replays(live: Proxy, offline: Proxy) -> None:
    """A credential in the prompt is redacted before matching: the next one's request is the same."""
    prompt = new_prompt()
    bodies = [chat_saying(f"{prompt} with key {fake_credential('sk-ant-api03-')}") for _ in range(2)]
    with Client(live, OPENAI) as client:
        recording = client.post(CHAT_PATH, bodies[0], {"x-rewind-session": prompt})
    steps_of(live.store, prompt)
    with Client(offline, OPENAI) as client:
        got = client.post(CHAT_PATH, bodies[1])
    assert (got.headers["x-rewind-tier"], got.body) == ("normalised", recording.body)


def test_a_key_in_the_query_is_not_part_of_the_request(live: Proxy, offline: Proxy) -> None:
    """`?key=…` may change or go: the exact fingerprint leaves it out."""
    prompt = new_prompt()
    body: JsonObject = {"contents": [{"parts": [{"text": prompt}]}]}
    path = "/v1beta/models/m1:generateContent"
    with Client(live, GEMINI) as client:
        recording = client.post(f"{path}?key={fake_credential('AIza')}", body, {"x-rewind-session": prompt})
    steps_of(live.store, prompt)
    with Client(offline, GEMINI) as client:
        for query in ("", f"?key={fake_credential('AIza')}"):
            got = client.post(path + query, body)
            assert (got.headers["x-rewind-tier"], got.body) == ("exact", recording.body)


def test_headers_are_in_no_fingerprint(live: Proxy, offline: Proxy) -> None:
    """Another key, another agent, another version header: the same request."""
    prompt = new_prompt()
    with Client(live, ANTHROPIC) as client:
        body = chat_saying(prompt)
        recording = client.post("/v1/messages", body, {"x-api-key": "one", "x-rewind-session": prompt})
    steps_of(live.store, prompt)
    with Client(offline, ANTHROPIC) as client:
        got = client.post("/v1/messages", body, {"authorization": "Bearer two", "user-agent": "else/2"})
    assert (got.headers["x-rewind-tier"], got.body) == ("exact", recording.body)
