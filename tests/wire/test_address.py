"""What path and query mean beside the wire's own endpoint (DESIGN §4, §5)."""

from __future__ import annotations

import json

import pytest

from rewind_proxy.canonical.model import JsonObject, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

HOSTS = HostTable({"gw.example": "chat_completions"})
VERTEX = "aiplatform.googleapis.com/v1/projects/p/locations/l"

CHAT: JsonObject = {"model": "m1", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: JsonObject = {**CHAT, "max_tokens": 9}
INPUT: JsonObject = {"model": "m1", "input": "Hi"}
CONTENTS: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def read(url: str, body: JsonObject, **settings: object) -> Reading:
    """The reading of a POST."""
    host, _, path = url.partition("/")
    known = HOSTS.find(host, 443)
    assert known is not None, host
    reader = RequestReader(HOSTS, Redactor(), MatchSettings.model_validate(settings), 2**20)
    return reader.read(RawRequest("POST", host, 443, f"/{path}", (), json.dumps(body).encode()), known)


STANDARD = [
    *(
        (url, CHAT)
        for url in (
            "api.openai.com/v1/chat/completions",
            "api.openai.com//v1/chat/completions/",
            "api.deepseek.com/chat/completions",
            "api.groq.com/openai/v1/chat/completions",
            "openrouter.ai/api/v1/chat/completions",
            "api.fireworks.ai/inference/v1/chat/completions",
            "dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
            "api.cohere.com/compatibility/v1/chat/completions",
            "api.githubcopilot.com/chat/completions",
            "generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "r.openai.azure.com/openai/v1/chat/completions?api-version=preview",
            "r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            "r.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
            "bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions",
            f"{VERTEX}/endpoints/openapi/chat/completions",
            f"{VERTEX}/endpoints/123/chat/completions",
        )
    ),
    *(
        (url, INPUT)
        for url in (
            "api.openai.com/v1/responses",
            "chatgpt.com/backend-api/codex/responses",
            "r.openai.azure.com/openai/responses?api-version=2025-03-01-preview",
            "api.githubcopilot.com/responses",
            "dashscope.aliyuncs.com/api/v2/apps/protocols/compatible-mode/v1/responses",
        )
    ),
    *(
        (url, MESSAGES)
        for url in (
            "api.anthropic.com/v1/messages",
            "api.anthropic.com/v1/messages?beta=true",
            "api.deepseek.com/anthropic/v1/messages",
            "dashscope-intl.aliyuncs.com/apps/anthropic/v1/messages",
            "openrouter.ai/api/v1/messages",
            f"{VERTEX}/publishers/anthropic/models/c@1:rawPredict",
            f"{VERTEX}/publishers/anthropic/models/c@1:streamRawPredict",
        )
    ),
    *(
        (url, CONTENTS)
        for url in (
            "generativelanguage.googleapis.com/v1beta/models/g:generateContent",
            "generativelanguage.googleapis.com/v1/models/g:generateContent?key=abc&prettyPrint=false",
            "generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse",
            "generativelanguage.googleapis.com/v1beta/models/g%3AstreamGenerateContent?%24alt=sse",
            "generativelanguage.googleapis.com/v1beta/tunedModels/t:generateContent",
            f"{VERTEX}/publishers/google/models/g:generateContent",
            f"{VERTEX}/endpoints/123:generateContent",
            "aiplatform.googleapis.com/v1/publishers/google/models/g:generateContent",
        )
    ),
]


@pytest.mark.parametrize(("url", "body"), STANDARD, ids=lambda value: value if isinstance(value, str) else "")
def test_where_an_api_lives_means_nothing(url: str, body: JsonObject) -> None:
    """A provider's own layout, its version, project and location, and the model it names share one answer."""
    assert read(url, body).fingerprint == read("api.openai.com/v1/chat/completions", CHAT).fingerprint


OTHER: list[tuple[str, JsonObject]] = [
    ("dashscope.aliyuncs.com/api/v2/apps/agent/A/compatible-mode/v1/responses", INPUT),
    ("dashscope.aliyuncs.com/api/v2/apps/agent/B/compatible-mode/v1/responses", INPUT),
    ("r.services.ai.azure.com/api/projects/p/applications/lawyer/protocols/openai/responses", INPUT),
    ("r.services.ai.azure.com/api/projects/p/applications/joker/protocols/openai/responses", INPUT),
    ("api.openai.com/v1/responses/compact", INPUT),
    ("generativelanguage.googleapis.com/v1beta/models/g:generateContent?fields=candidates", CONTENTS),
    ("generativelanguage.googleapis.com/v1beta/models/g:generateContent?alt=proto", CONTENTS),
    ("generativelanguage.googleapis.com/v1beta/models/g:generateContent?callback=f", CONTENTS),
    ("gw.example/team-a/v1/chat/completions", CHAT),
    ("gw.example/team-b/v1/chat/completions", CHAT),
    ("gw.example/team%2Fa/v1/chat/completions", CHAT),
    ("gw.example/v1/chat/completions?kb=legal", CHAT),
    ("gw.example/v1/chat/completions?kb=cook", CHAT),
    ("gw.example/v1/chat/completions?kb=legal&kb=cook", CHAT),
    ("gw.example/v1/chat/completions?beta=yes", CHAT),
    ("gw.example/runs/3f2504e0-4f89-41d3-9a0c-0305e82c3301/v1/chat/completions", CHAT),
    ("gw.example/runs/3f2504e0-4f89-41d3-9a0c-0305e82c3302/v1/chat/completions", CHAT),
    ("gw.example/v1/chat/completions?doc=3f2504e0-4f89-41d3-9a0c-0305e82c3301", CHAT),
    ("gw.example/v1/chat/completions?doc=3f2504e0-4f89-41d3-9a0c-0305e82c3302", CHAT),
    ("gw.example/v1/chat/completions", {**CHAT, "endpoint_path": "/team-a"}),
    ("gw.example/v1/chat/completions", {**CHAT, "wire.endpoint_path": "/team-a"}),
    ("gw.example/v1/chat/completions", {**CHAT, "endpoint_query": [["kb", "legal"]]}),
    ("api.openai.com/v1/responses", {**INPUT, "compact": True}),
]


def test_all_else_in_a_path_and_query_counts() -> None:
    """An app, a team, a knowledge base, a field mask: each is another request, and no body poses as one."""
    found = {read(url, body).fingerprint for url, body in OTHER}
    assert len(found) == len(OTHER)
    assert read("api.openai.com/v1/chat/completions", CHAT).fingerprint not in found


def test_a_gateway_has_all_wires_below_one_path() -> None:
    """What stands before a layout is the same parameter in each wire."""
    chat = read("gw.example/team-a/v1/chat/completions", CHAT)
    assert chat.fingerprint == read("gw.example/team-a/anthropic/v1/messages", MESSAGES).fingerprint
    assert chat.canonical is not None
    assert chat.canonical.params["endpoint_path"] == "/team-a"


def test_no_ignore_list_of_hosts_and_wires_takes_the_address() -> None:
    """`host` and `wire` in the ignore list leave path and query; their own names in it take them out."""
    a, b = "gw.example/team-a/v1/chat/completions?kb=1", "gw.example/v1/chat/completions"
    ignore = ("host", "wire", "model")
    assert read(a, CHAT, ignore=ignore).fingerprint != read(b, CHAT, ignore=ignore).fingerprint
    own = ("endpoint_path", "endpoint_query")
    assert read(a, CHAT, ignore=own).fingerprint == read(b, CHAT, ignore=own).fingerprint


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        ("r.openai.azure.com/openai/deployments/d/chat/completions", {"messages": []}, "d"),
        (f"{VERTEX}/publishers/google/models/g:generateContent", CONTENTS, "g"),
        (f"{VERTEX}/publishers/meta/models/l:generateContent", CONTENTS, "meta/models/l"),
        (f"{VERTEX}/endpoints/123:generateContent", CONTENTS, "endpoints/123"),
        (f"{VERTEX}/publishers/anthropic/models/c@1:rawPredict", {"messages": []}, "c@1"),
        ("generativelanguage.googleapis.com/v1beta/tunedModels/t:generateContent", CONTENTS, "tunedModels/t"),
    ],
)
def test_the_model_in_a_path(url: str, body: JsonObject, model: str) -> None:
    """A deployment, an endpoint and a publisher's model are the model of the request."""
    canonical = read(url, body).canonical
    assert canonical is not None
    assert canonical.params["model"] == model
    assert not {name for name in canonical.params if name.startswith("endpoint_")}


def test_a_model_in_path_and_body() -> None:
    """Where both name one, both count when models count, and neither when they do not."""
    url = "r.openai.azure.com/openai/deployments/{}/chat/completions"
    a, b = (read(url.format(each), CHAT) for each in "de")
    assert a.fingerprint == b.fingerprint
    a, b = (read(url.format(each), CHAT, ignore=()) for each in "de")
    assert a.fingerprint != b.fingerprint


def test_rotated_query_credentials_still_match() -> None:
    """A credential in the query is no part of the key."""
    url = "gw.example/v1/chat/completions?kb=1&api_key="
    assert read(url + "a" * 30, CHAT).fingerprint == read(url + "b" * 30, CHAT).fingerprint
