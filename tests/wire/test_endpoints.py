"""The table of hosts and endpoints (DESIGN §4)."""

from __future__ import annotations

import pytest

from rewind_proxy.canonical.model import EndpointClass, Operation, Target, Wire
from rewind_proxy.errors import SettingsError
from rewind_proxy.wire import Endpoint, HostTable, classify

TABLE = HostTable()


@pytest.mark.parametrize(
    "host",
    """api.openai.com eu.api.openai.com chatgpt.com ab.chatgpt.com auth.openai.com my.openai.azure.com
    my.services.ai.azure.com api.anthropic.com generativelanguage.googleapis.com play.googleapis.com
    aiplatform.googleapis.com us-east1-aiplatform.googleapis.com cloudcode-pa.googleapis.com openrouter.ai
    api.mistral.ai api.groq.com api.deepseek.com api.x.ai api.together.xyz api.fireworks.ai api.perplexity.ai
    api.cerebras.ai dashscope.aliyuncs.com dashscope-intl.aliyuncs.com api.moonshot.ai api.githubcopilot.com
    api.individual.githubcopilot.com bedrock-runtime.eu-west-1.amazonaws.com api.cohere.com""".split(),
)
def test_known_hosts(host: str) -> None:
    """Every host of DESIGN §4 is known, in any case and with a trailing dot, by its own name."""
    found = TABLE.find(host.upper() + ".", 443)
    assert found is not None
    assert found.name == host


@pytest.mark.parametrize(
    "host",
    [
        *"""openai.com platform.openai.com azure.com notapi.openai.com api.openai.com.evil.example
    evilchatgpt.com github.com api.github.com claude.ai x.y.dashscope.aliyuncs.com
    api.a.b.githubcopilot.com
    bedrock.eu-west-1.amazonaws.com bedrock-runtime.amazonaws.com localhost 127.0.0.1 googleapis.com
    """.split(),
        "",
        ".",
        "::1",
        "api.openai.com:443",
    ],
)
def test_unknown_hosts(host: str) -> None:
    """Whatever is not in the table is unknown."""
    assert TABLE.find(host, 443) is None


@pytest.mark.parametrize(
    ("entry", "host", "port", "name"),
    [
        ("llm.corp.example", "LLM.corp.example", 8443, "llm.corp.example"),
        ("localhost:4000", "localhost", 4000, "localhost:4000"),
        ("127.0.0.1:4000", "127.0.0.1", 4000, "127.0.0.1:4000"),
        ("127.0.0.1", "127.0.0.1", 4000, "127.0.0.1"),
        ("[::1]:4000", "::1", 4000, "[::1]:4000"),
        ("[::1]:4000", "[0:0:0:0:0:0:0:1]", 4000, "[::1]:4000"),
        ("*.corp.example", "a.b.corp.example", 443, "a.b.corp.example"),
        ("LLM.Corp.Example.", "llm.corp.example", 443, "llm.corp.example"),
    ],
)
def test_own_hosts(entry: str, host: str, port: int, name: str) -> None:
    """`rewind_hosts` adds names, ports, addresses and patterns."""
    found = HostTable({entry: "anthropic"}).find(host, port)
    assert found is not None
    assert (found.name, found.wire) == (name, "anthropic")


def test_a_port_is_that_port_only() -> None:
    """An entry with a port matches no other, and a wildcard is no bare domain."""
    table = HostTable({"localhost:4000": "responses", "*.corp.example": "gemini"})
    assert table.find("localhost", 4001) is None
    assert table.find("corp.example", 443) is None


def test_own_hosts_go_first() -> None:
    """An own entry replaces the built-in one."""
    table = HostTable({"api.x.ai": "anthropic"})
    found = table.find("api.x.ai", 443)
    assert found is not None
    assert found.wire == "anthropic"
    assert table.patterns().count("api.x.ai") == 1


@pytest.mark.parametrize(
    ("entry", "wire"),
    [
        ("llm.corp.example", "openai"),
        ("llm.corp.example", ""),
        ("http://llm.corp.example", "responses"),
        ("llm.corp.example/v1", "responses"),
        ("llm.corp.example:0", "responses"),
        ("llm.corp.example:99999", "responses"),
        ("*", "responses"),
        ("*.com", "responses"),
        ("a..b", "responses"),
        ("", "responses"),
        ("[::g]", "responses"),
    ],
)
def test_bad_entries(entry: str, wire: str) -> None:
    """A bad entry is refused by name."""
    with pytest.raises(SettingsError) as raised:
        HostTable({entry: wire})
    assert repr(entry) in str(raised.value)


def test_names_for_the_ca() -> None:
    """A wildcard counts as its parent, a name covers what is below it, an address is no name."""
    names = HostTable(
        {"127.0.0.1:4000": "responses", "[::1]": "gemini", "gw.corp.example:9": "gemini"}
    ).dns_names()
    assert {"aliyuncs.com", "amazonaws.com", "googleapis.com", "githubcopilot.com", "gw.corp.example"} <= set(
        names
    )
    assert {"api.openai.com", "chatgpt.com", "auth.openai.com", "openai.azure.com"} <= set(names)
    assert not {"generativelanguage.googleapis.com", "ab.chatgpt.com", "127.0.0.1", "[::1]"} & set(names)
    assert list(names) == sorted(names)
    assert not any("*" in name or ":" in name for name in names)


def at(method: str, url: str, *, upgrade: bool = False) -> Endpoint:
    host, slash, path = url.partition("/")
    found = TABLE.find(host, 443)
    assert found is not None, host
    return classify(found, Target(method, found.name, slash + path), upgrade=upgrade)


@pytest.mark.parametrize(
    ("url", "wire", "operation"),
    [
        ("api.openai.com/v1/chat/completions", "chat_completions", "generate"),
        ("api.openai.com//v1/chat/completions/", "chat_completions", "generate"),
        ("api.openai.com/v1/responses", "responses", "generate"),
        ("api.openai.com/v1/responses/compact", "responses", "generate"),
        ("api.openai.com/v1/responses/input_tokens", "responses", "count_tokens"),
        ("api.openai.com/v1/embeddings", "generic", "embed"),
        ("api.openai.com/v1/completions", "generic", "generate"),
        ("api.openai.com/v1/images/generations", "generic", "generate"),
        ("api.openai.com/v1/audio/transcriptions", "generic", "generate"),
        ("api.openai.com/v1/threads/t_1/messages", "generic", "generate"),
        ("api.openai.com/v1/brand/new", "generic", "generate"),
        ("chatgpt.com/backend-api/codex/responses", "responses", "generate"),
        ("chatgpt.com/backend-api/codex/memories/trace_summarize", "generic", "generate"),
        ("my.openai.azure.com/openai/deployments/d/chat/completions", "chat_completions", "generate"),
        ("my.openai.azure.com/openai/v1/responses", "responses", "generate"),
        ("my.openai.azure.com/openai/responses", "responses", "generate"),
        ("my.services.ai.azure.com/anthropic/v1/messages", "anthropic", "generate"),
        ("my.services.ai.azure.com/models/chat/completions", "chat_completions", "generate"),
        ("openrouter.ai/api/v1/chat/completions", "chat_completions", "generate"),
        ("api.groq.com/openai/v1/chat/completions", "chat_completions", "generate"),
        ("api.deepseek.com/chat/completions", "chat_completions", "generate"),
        ("api.deepseek.com/anthropic/v1/messages", "anthropic", "generate"),
        ("api.x.ai/v1/messages", "anthropic", "generate"),
        ("api.githubcopilot.com/chat/completions", "chat_completions", "generate"),
        ("api.individual.githubcopilot.com/responses", "responses", "generate"),
        ("api.githubcopilot.com/v1/messages", "anthropic", "generate"),
        ("dashscope.aliyuncs.com/compatible-mode/v1/chat/completions", "chat_completions", "generate"),
        ("api.fireworks.ai/inference/v1/chat/completions", "chat_completions", "generate"),
        ("api.perplexity.ai/async/chat/completions", "generic", "generate"),
        ("api.anthropic.com/v1/messages", "anthropic", "generate"),
        ("api.anthropic.com/v1/messages/count_tokens", "anthropic", "count_tokens"),
        ("api.anthropic.com/v1/complete", "generic", "generate"),
        ("generativelanguage.googleapis.com/v1beta/models/g:generateContent", "gemini", "generate"),
        ("generativelanguage.googleapis.com/v1beta/models/g%3AstreamGenerateContent", "gemini", "generate"),
        ("generativelanguage.googleapis.com/v1beta/models/g:countTokens", "gemini", "count_tokens"),
        ("generativelanguage.googleapis.com/v1beta/models/g:batchEmbedContents", "gemini", "embed"),
        ("generativelanguage.googleapis.com/v1beta/openai/chat/completions", "chat_completions", "generate"),
        ("cloudcode-pa.googleapis.com/v1internal:streamGenerateContent", "gemini", "generate"),
        ("cloudcode-pa.googleapis.com/v1internal:countTokens", "gemini", "count_tokens"),
        (
            "us-east1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "gemini",
            "generate",
        ),
        (
            "aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c@1:streamRawPredict",
            "anthropic",
            "generate",
        ),
        (
            "aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
            "anthropic",
            "count_tokens",
        ),
        ("bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse", "generic", "generate"),
        ("api.cohere.com/v2/chat", "generic", "generate"),
        ("api.cohere.com/v2/embed", "generic", "embed"),
        ("api.cohere.com/v1/tokenize", "generic", "generate"),
        ("api.openai.com/v1/threads/runs", "generic", "generate"),
        ("api.openai.com/v1/uploads", "generic", "generate"),
        ("api.openai.com/v1/realtime/calls", "generic", "generate"),
    ],
)
def test_model_endpoints(url: str, wire: Wire, operation: Operation) -> None:
    """A POST to a model endpoint is `model` in its wire, and one that nobody listed is so through generic."""
    assert at("POST", url) == Endpoint("model", wire, operation)


@pytest.mark.parametrize(
    ("cls", "method", "url"),
    [
        ("side", "GET", "api.openai.com/v1/models"),
        ("side", "GET", "api.openai.com/v1/responses/resp_1"),
        ("side", "GET", "api.openai.com/v1/responses"),
        ("side", "DELETE", "api.openai.com/v1/files/f"),
        ("side", "OPTIONS", "api.openai.com/v1/chat/completions"),
        ("side", "HEAD", "api.anthropic.com/"),
        ("side", "GET", "chatgpt.com/backend-api/wham/accounts/check"),
        ("side", "POST", "chatgpt.com/backend-api/ps/x"),
        ("side", "GET", "chatgpt.com/backend-api/codex/models"),
        ("side", "GET", "api.anthropic.com/api/claude_code/settings"),
        ("side", "POST", "api.anthropic.com/api/eval/sdk-1"),
        ("side", "POST", "cloudcode-pa.googleapis.com/v1internal:loadCodeAssist"),
        ("side", "POST", "api.githubcopilot.com/mcp/readonly"),
        ("telemetry", "POST", "api.anthropic.com/api/event_logging/v2/batch"),
        ("telemetry", "POST", "chatgpt.com/backend-api/codex/analytics-events/events"),
        ("telemetry", "POST", "ab.chatgpt.com/otlp/v1/metrics"),
        ("telemetry", "POST", "api.openai.com/v1/traces/ingest"),
        ("telemetry", "POST", "play.googleapis.com/log"),
        ("telemetry", "GET", "play.googleapis.com/v1/models"),
        ("telemetry", "POST", "cloudcode-pa.googleapis.com/v1internal:recordCodeAssistMetrics"),
        ("auth", "POST", "auth.openai.com/oauth/token"),
        ("auth", "GET", "auth.openai.com/anything"),
        ("auth", "POST", "api.openai.com/v1/realtime/client_secrets"),
        ("auth", "POST", "api.openai.com/v1/realtime/sessions"),
        ("auth", "POST", "api.openai.com/v1/chatkit/sessions"),
        ("auth", "POST", "api.anthropic.com/v1/oauth/token"),
        ("auth", "POST", "api.anthropic.com/api/oauth/claude_cli/create_api_key"),
        ("auth", "GET", "chatgpt.com/api/auth/session"),
        ("auth", "POST", "generativelanguage.googleapis.com/v1alpha/auth_tokens"),
        ("auth", "POST", "openrouter.ai/api/v1/auth/keys"),
        ("auth", "POST", "openrouter.ai/api/v1/auth/keys/code"),
        ("auth", "POST", "openrouter.ai/api/v1/keys"),
        ("auth", "PATCH", "openrouter.ai/api/v1/keys/0a1b"),
        ("auth", "POST", "api.githubcopilot.com/models/session"),
        ("auth", "POST", "dashscope.aliyuncs.com/api/v1/tokens"),
        ("auth", "GET", "dashscope.aliyuncs.com/api/v1/uploads"),
        ("auth", "POST", "api.perplexity.ai/generate_auth_token"),
        ("auth", "POST", "api.perplexity.ai/revoke_auth_token"),
        ("auth", "POST", "my.services.ai.azure.com/sts/v1.0/issueToken"),
        (
            "auth",
            "POST",
            "my.services.ai.azure.com/api/projects/p/connections/c/getConnectionWithCredentials",
        ),
        ("auth", "POST", "my.services.ai.azure.com/api/projects/p/datasets/d/versions/1/credentials"),
        ("auth", "POST", "my.openai.azure.com/openai/v1/realtime/client_secrets"),
        ("auth", "POST", "my.openai.azure.com/openai/realtimeapi/sessions"),
        ("auth", "POST", "api.openai.com/v1/realtime/translations/client_secrets"),
        ("auth", "POST", "api.openai.com/v1/realtime/transcription_sessions"),
        ("auth", "POST", "api.openai.com/v1/organization/admin_api_keys"),
        ("auth", "GET", "api.openai.com/v1/organization/projects/p/api_keys"),
        ("auth", "POST", "api.openai.com/v1/organization/projects/p/service_accounts"),
        ("auth", "POST", "api.x.ai/v1/realtime/client_secrets"),
        ("auth", "POST", "generativelanguage.googleapis.com/v1alpha/authTokens"),
        ("auth", "POST", "generativelanguage.googleapis.com/v1beta/authTokens:create"),
        ("auth", "POST", "api.fireworks.ai/v1/users/u/apiKeys"),
        ("auth", "POST", "api.fireworks.ai/v1/accounts/a/secrets"),
        ("auth", "POST", "chatgpt.com/backend-api/sentinel/chat-requirements"),
        ("auth", "POST", "chatgpt.com/backend-api/register-websocket"),
    ],
)
def test_other_endpoints(cls: EndpointClass, method: str, url: str) -> None:
    """Catalogues, telemetry and logins are no model calls."""
    assert at(method, url).cls == cls


@pytest.mark.parametrize(
    ("url", "model_socket"),
    [
        ("api.openai.com/v1/responses", True),
        ("chatgpt.com/backend-api/codex/responses", True),
        ("api.openai.com/v1/realtime", False),
        ("api.anthropic.com/api/ws/speech_to_text/voice_stream", False),
    ],
)
def test_sockets(url: str, model_socket: bool) -> None:
    """An upgrade is a socket, and only the model's turns make it a model socket (CASES 57)."""
    endpoint = at("GET", url, upgrade=True)
    assert (endpoint.cls, endpoint.model_socket) == ("socket", model_socket)


@pytest.mark.parametrize(
    ("url", "realtime"),
    [
        ("api.openai.com/v1/realtime", True),
        ("my.openai.azure.com/openai/realtime", True),
        ("generativelanguage.googleapis.com/ws/google.ai.v1beta.GenerativeService.BidiGenerateContent", True),
        ("aiplatform.googleapis.com/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent", True),
        ("api.openai.com/v1/responses", False),
        ("api.anthropic.com/api/ws/speech_to_text/voice_stream", False),
        ("chatgpt.com/backend-api/realtimes", False),
    ],
)
def test_realtime_sockets(url: str, realtime: bool) -> None:
    """Conversations that have no other way than a socket."""
    assert at("GET", url, upgrade=True).realtime == realtime


def test_hostile_path() -> None:
    """A very long path costs nothing and is still a model call."""
    assert at("POST", "api.openai.com" + "/oauth" * 100_000) == Endpoint("model", "generic")
    assert at("POST", "api.openai.com/v1/chat/completions%0A") == Endpoint("model", "generic")
