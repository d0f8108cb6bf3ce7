"""What a request on a known host is: its class, wire format and operation (DESIGN §4).

One table, read from the top, decides by method and path. Model endpoints go by the end of their path, since
every provider and gateway puts the same ends under prefixes of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from rewind_proxy.canonical.model import EndpointClass, Operation, Target, Wire
from rewind_proxy.wire.hosts import Host


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a request is. `model_socket`: a WebSocket on which a model's turns would go (DESIGN §9).

    `realtime`: one that is a conversation with a model, and has no POST in its place.
    """

    cls: EndpointClass
    wire: Wire
    operation: Operation = "generate"
    model_socket: bool = False
    realtime: bool = False


@dataclass(frozen=True, slots=True)
class _ModelPath:
    path: re.Pattern[str]
    wire: Wire
    operation: Operation = "generate"


_GEMINI = r"(?:/(?:models|tunedModels|endpoints)/[^/:]+|/v1internal):"

_MODEL_PATHS = (
    # Perplexity's /async/chat/completions answers with a job, not with a completion: generic.
    _ModelPath(re.compile(r"(?:(?!/async/).)*/chat/completions"), "chat_completions"),
    _ModelPath(re.compile(r".*/responses(?:/compact)?"), "responses"),
    _ModelPath(re.compile(r".*/responses/input_tokens"), "responses", "count_tokens"),
    # Not OpenAI's /v1/threads/{id}/messages.
    _ModelPath(re.compile(r".*/v1/messages"), "anthropic"),
    _ModelPath(re.compile(r".*/v1/messages/count_tokens"), "anthropic", "count_tokens"),
    _ModelPath(
        re.compile(r".*/publishers/anthropic/models/count-tokens(?:@[^/:]*)?:rawPredict"),
        "anthropic",
        "count_tokens",
    ),
    _ModelPath(re.compile(r".*/publishers/anthropic/models/[^/:]+:(?:streamR|r)awPredict"), "anthropic"),
    _ModelPath(re.compile(rf".*{_GEMINI}(?:streamGenerateContent|generateContent)"), "gemini"),
    _ModelPath(re.compile(rf".*{_GEMINI}countTokens"), "gemini", "count_tokens"),
    _ModelPath(re.compile(rf".*{_GEMINI}(?:embedContent|batchEmbedContents)"), "gemini", "embed"),
    _ModelPath(re.compile(r".*/(?:embeddings|v[12]/embed)"), "generic", "embed"),
)

# Logins, tokens, and whatever answers with a credential.
_AUTH = re.compile(
    r".*/(?:oauth2?|deviceauth)/(?:.*/)?(?:token|authorize|revoke|introspect|code|usercode|create_api_key)"
    r"|.*/(?:login|logout|signin|signout)(?:/.*)?"
    r"|.*/device/code"
    r"|.*/api/auth/.*"
    r"|.*/copilot_internal/.*token"
    r"|.*/models/session"  # Copilot's token for its automatic choice of a model
    r"|.*/realtime(?:api)?/(?:.*/)?(?:client_secrets|(?:transcription_|translation_)?sessions)"
    r"|.*/client_secrets?"  # whatever it is for
    r"|.*/chatkit/sessions(?:/[^/]*/cancel)?"
    r"|.*/(?:auth_tokens|authTokens)(?:[:/].*)?"  # Gemini's tokens for one session
    r"|.*/auth/keys(?:/.*)?|.*/api/v1/(?:keys|management-keys)(?:/.*)?"  # OpenRouter
    r"|.*/(?:admin_)?api[_-]keys?(?:/.*)?|.*/(?:apiKeys?|apikeys?)(?:[:/].*)?|.*/create_api_key"
    r"|.*/(?:service_accounts|serviceAccounts)(?:[:/].*)?"
    r"|.*/(?:ephemeral|access|auth|session|refresh|id|bearer|temporary|short_lived)[_-]?tokens?(?:[:/].*)?"
    r"|.*/(?:generate|create|issue|mint|get|exchange|refresh|revoke)[_-](?:\w+[_-])?(?:token|key|credential)s?"
    r"|.*/(?:issueToken|generateAccessToken|generateIdToken|signJwt|signBlob)"  # Azure, Google
    r"|.*:(?:generateAccessToken|generateIdToken|signJwt|signBlob|exchangeToken|issueToken)"
    r"|.*/api/v1/(?:tokens|uploads)"  # DashScope's short-lived keys, and its signed uploads
    r"|.*/(?:oauth2?|oidc)/.*(?:token|authorize|revoke|register)"
    r"|.*/(?:token|tokens)/(?:exchange|refresh|revoke|issue|create)"
    r"|.*/backend-api/(?:sentinel/.*|register-websocket)"  # ChatGPT's tokens against robots and for sockets
    # Azure AI Foundry: connections, data sets and uploads with the keys to them; Fireworks' secrets
    r"|.*/(?:getConnectionWithCredentials|credentials|startPendingUpload)|.*/accounts/[^/]+/secrets(?:/.*)?"
)

_TELEMETRY = re.compile(
    r".*/event_logging(?:/.*)?"
    r"|.*/analytics-events(?:/.*)?"
    r"|.*/otlp(?:/.*)?"
    r"|.*/v1/(?:metrics|logs|traces(?:/ingest)?)"  # OpenTelemetry, and the OpenAI agents' traces
    r"|.*/rgstr"  # Statsig
    r"|/ces/.*"
    r"|.*/telemetry(?:/.*)?"
    r"|.*/claude_code/metrics"
    r"|.*/claude_(?:cli_feedback|code_shared_session_transcripts)"
    r"|/v1internal:record[A-Z].*"
)

# POSTs that are no model call: settings, flags and quotas of the known clients (CLIENTS.md).
_SIDE_POSTS = re.compile(
    r"/api/(?:eval|claude_code|claude_cli|claude_code_[a-z_]+|web|oauth|organizations|hello)(?:/.*)?"
    r"|/mcp(?:/.*)?"
    r"|/backend-api/(?:wham|ps|plugins|connectors|accounts|settings|me)(?:/.*)?"
    r"|/v1/initialize"
    r"|/v1internal:(?:loadCodeAssist|onboardUser|listExperiments|retrieveUserQuota\w*|fetchAdminControls"
    r"|fetchAvailableModels|[gs]etCodeAssistGlobalUserSetting|listCloudAICompanionProjects)"
)

_MODEL_SOCKET = "/responses"
# OpenAI's Realtime API and those made after it; Gemini's Live API (`…GenerativeService.BidiGenerateContent`).
_REALTIME = re.compile(r"/realtime(?:/|$)|[/.]BidiGenerate\w*$")
_SLASHES = re.compile(r"/{2,}")
# No listed path comes near it; it bounds what the patterns above can cost on a hostile one.
_LONGEST = 2048


def classify(host: Host, target: Target, *, upgrade: bool) -> Endpoint:
    """What `target` on `host` is; `upgrade` says that it asks for a WebSocket.

    Any POST that the table does not list is `model` through `generic`, any other such request is `side`.
    """
    return _classify(host.wire, host.telemetry, host.auth_only, target.method.upper(), target.path, upgrade)


@lru_cache(maxsize=1024)
def _classify(
    wire: Wire, telemetry: bool, auth_only: bool, method: str, raw_path: str, upgrade: bool
) -> Endpoint:
    path = _SLASHES.sub("/", unquote(raw_path)).rstrip("/")
    if upgrade:
        if auth_only:
            return Endpoint("socket", wire)
        realtime = _REALTIME.search(path) is not None
        return Endpoint("socket", wire, model_socket=path.endswith(_MODEL_SOCKET), realtime=realtime)
    if auth_only:
        return Endpoint("auth", wire)
    if telemetry:
        return Endpoint("telemetry", wire)
    if len(path) > _LONGEST:
        return Endpoint("model", "generic") if method == "POST" else Endpoint("side", wire)
    if method == "POST":
        for model in _MODEL_PATHS:
            if model.path.fullmatch(path):
                return Endpoint("model", model.wire, model.operation)
    if _AUTH.fullmatch(path):
        return Endpoint("auth", wire)
    if _TELEMETRY.fullmatch(path):
        return Endpoint("telemetry", wire)
    if method != "POST" or _SIDE_POSTS.fullmatch(path):
        return Endpoint("side", wire)
    return Endpoint("model", "generic")
