"""No credential of a request is at rest in any file of ours, in the output, or in a saved flow (promise 4)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from mitmproxy.io import FlowReader

from proxy.calls import ANTHROPIC, CHAT_PATH, GEMINI, OPENAI, fake_credential, new_prompt
from proxy.conftest import CONTROL, tell
from proxy.looking import steps_of
from proxy.test_proxy_sessions import credentials
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.provider import FakeProvider
from support.children import Finished
from support.client import Client, Got
from support.proxies import Proxy, proxy

PLACES = (
    "the authorization header",
    "the x-api-key header",
    "the x-goog-api-key header",
    "a cookie",
    "the proxy's password",
    "the user agent",
    "the session's name",
    "the query",
    "the path",
    "the system prompt",
    "the prompt",
    "the end of a long prompt",
    "tool arguments",
    "a tool result",
    "a tool's description",
    "an unknown field",
    "the model's name",
    "a body that is not JSON",
    "a compressed body",
    "a side request's query",
    "a side request's body",
    "a refused prompt",
    "a prompt while ours failed",
    "a path while ours failed",
    "telemetry",
    "a login",
)
_FRAME = b"\x28\xb5\x2f\xfd"


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
def kept(tmp_path_factory: pytest.TempPathFactory, confdir: Path) -> Iterator[Kept]:
    """Send a credential in every place, live and then in replay; end both proxies; read all files."""
    secrets = {place: fake_credential() for place in PLACES}
    flows, home = tmp_path_factory.mktemp("flows") / "flows", tmp_path_factory.mktemp("recording")
    answers: dict[str, Got] = {}
    with FakeProvider() as provider:
        options = [*CONTROL, "-w", str(flows)]
        with proxy(home, confdir, provider=provider, options=options) as running:
            send_all(running, secrets, answers)
            recording = running.stop()
    away = tmp_path_factory.mktemp("replaying")
    settings, store = {"mode": "replay"}, running.store
    with proxy(
        away, confdir, provider=provider, settings=settings, store=store, options=CONTROL
    ) as replaying:
        send_all(replaying, secrets, {})
        refused = replaying.stop()
    files = dict(everything_in(home / ".rewind"))
    assert any("data.mdb" in name for name in files)
    yield Kept(secrets, files, recording, refused, flows, answers)


def send_all(running: Proxy, secrets: Mapping[str, str], answers: dict[str, Got]) -> None:
    """One request for each place."""
    say = chat_saying
    with Client(running, OPENAI) as client:

        def post(place: str, body: JsonObject | bytes, path: str = CHAT_PATH, **headers: str) -> None:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            answers[place] = client.post(path, body, {"x-rewind-session": "secrets", **named})

        post(
            "the authorization header",
            say("a"),
            authorization=f"Bearer {secrets['the authorization header']}",
        )
        post("the x-api-key header", say("b"), x_api_key=secrets["the x-api-key header"])
        post("a cookie", say("c"), cookie=f"session={secrets['a cookie']}")
        post("the user agent", say("d"), user_agent=f"agent/{secrets['the user agent']}")
        key = secrets["the session's name"]
        answers["the session's name"] = client.post(CHAT_PATH, say("e"), {"x-rewind-session": key})
        key = secrets["the path"]
        post("the path", say("f"), f"/v1/deployments/{key}/chat/completions")
        key = secrets["the system prompt"]
        post("the system prompt", {"model": "m", "messages": [{"role": "system", "content": f"Use {key}."}]})
        post("the prompt", say(f"my key is {secrets['the prompt']}, keep it"))
        post("the end of a long prompt", say("word " * 5000 + secrets["the end of a long prompt"]))
        post("tool arguments", tool_turn(json.dumps({"env": {"KEY": secrets["tool arguments"]}}), "done"))
        post("a tool result", tool_turn("{}", f"OPENAI_API_KEY={secrets['a tool result']}\n"))
        description = f"Uses {secrets["a tool's description"]} to search."
        tool: JsonObject = {"type": "function", "function": {"name": "f", "description": description}}
        post("a tool's description", say("g") | {"tools": [tool]})
        post("an unknown field", say("h") | {"x_new": {"deep": [secrets["an unknown field"]]}})
        post("the model's name", say("i") | {"model": secrets["the model's name"]})
        post("a body that is not JSON", f"plain {secrets['a body that is not JSON']}".encode())
        packed = zstandard.compress(json.dumps(say(secrets["a compressed body"])).encode())
        post("a compressed body", packed, content_encoding="zstd")
        side = f"/v1/models?api_key={secrets["a side request's query"]}"
        answers["a side request's query"] = client.get(side)
        body = {"token": secrets["a side request's body"]}
        post("a side request's body", json.dumps(body).encode(), "/v1/initialize")
        post("a refused prompt", say(secrets["a refused prompt"]), x_rewind_mode="replay")
        post("telemetry", secrets["telemetry"].encode(), "/v1/traces/ingest")
        post("a login", secrets["a login"].encode(), "/v1/oauth/token")
        tell(running, "breaks", "engine.reader.read", "1")
        post("a prompt while ours failed", say(secrets["a prompt while ours failed"]))
        post("a path while ours failed", say("j"), f"/v1/x/{secrets['a path while ours failed']}")
        tell(running, "breaks", "all", "")
    with Client(running, OPENAI, tls=False) as client:
        user = credentials("secrets", secrets["the proxy's password"])
        answers["the proxy's password"] = client.post(CHAT_PATH, say("k"), {"proxy-authorization": user})
    with Client(running, GEMINI) as client:
        body = {"contents": [{"parts": [{"text": "l"}]}]}
        path = "/v1beta/models/m1:generateContent"
        goog = {"x-goog-api-key": secrets["the x-goog-api-key header"]}
        answers["the x-goog-api-key header"] = client.post(path, body, goog)
        answers["the query"] = client.post(f"{path}?key={secrets['the query']}", body)
    steps_of(running.store, "secrets", 20)


def chat_saying(text: str) -> JsonObject:
    """A request whose prompt ends so."""
    return {"model": "m1", "messages": [{"role": "user", "content": f"Words that the answer echoes: {text}"}]}


def tool_turn(arguments: str, result: str) -> JsonObject:
    """A request after a tool call."""
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {
        "model": "m1",
        "messages": [
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ],
    }


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
    """Neither proxy printed it: not in a URL, a warning, a traceback or a miss report."""
    for ended in (kept.recording, kept.replaying):
        assert not any(trace.decode() in ended.output for trace in traces(kept.secrets[place]))


MASKED = [
    "the authorization header",
    "the x-api-key header",
    "the x-goog-api-key header",
    "a cookie",
    "the proxy's password",
    "the query",
    "a side request's query",
]


@pytest.mark.parametrize("place", MASKED)
def test_a_saved_flow_does_not_hold_it(kept: Kept, place: str) -> None:
    """`mitmdump -w` saves finished flows with their auth headers and query credentials masked."""
    raw = kept.flows.read_bytes()
    assert (
        kept.secrets["the prompt"].encode() in raw
    )  # bodies are the user's own: the file is what it should be
    assert not any(trace in raw for trace in traces(kept.secrets[place]))


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
    assert kept.answers["the authorization header"].status == 200
    for place in ("the prompt", "tool arguments", "a tool result"):
        assert kept.answers[place].headers["x-rewind"] == "recording"


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
