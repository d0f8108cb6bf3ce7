"""What the path and the query of a model call say beside the wire's own endpoint (DESIGN §4, §5).

One API lives under many addresses: `/v1/messages`, `/anthropic/v1/messages`, a Vertex project and location.
Such a layout means nothing, and what in it names the model is the model. All else in a path (an app, a
gateway's team, a knowledge base) and in a query may change the answer, and is a parameter of the request.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from rewind_proxy.canonical.model import JsonObject, JsonValue, Target, Wire
from rewind_proxy.canonical.redaction.auth import strip_query

PATH, QUERY, MODEL = "endpoint_path", "endpoint_query", "endpoint_model"
"""Names of the parameters. `endpoint_model` is a model in the path beside another one in the body; it goes
with `model`."""

# A body that has a parameter of such a name itself keeps it under one more `wire.`, so that none is confused.
_TAKEN = re.compile(
    r"(?:wire\.)*(?:endpoint_(?:path|query|model)|compact|generic_(?:method|host|path|query|body))"
)

# Where providers put OpenAI's dialect, each from its own documentation.
_OPENAI = (
    "/v1",
    "/openai/v1",  # Azure, Groq, Bedrock
    "/openai",  # Azure with `api-version`
    r"/openai/deployments/(?P<deployment>[^/]+)",  # Azure: a deployment is a name for a model
    "/models",  # Azure AI model inference
    "/api/v1",  # OpenRouter
    "/inference/v1",  # Fireworks
    "(?:/api/v2/apps/protocols)?/compatible-mode/v1",  # DashScope
    "/compatibility/v1",  # Cohere
    "/backend-api/codex",  # ChatGPT
    "/v1(?:alpha|beta)/openai",  # Gemini
    "/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/endpoints/(?:openapi|(?P<endpoint>[^/]+))",  # Vertex
)
_MESSAGES = (
    "/v1",
    "/anthropic/v1",  # Azure, DeepSeek, Moonshot
    "/api/v1",  # OpenRouter
    "/inference/v1",  # Fireworks
    "/apps/anthropic/v1",  # DashScope
)
_VERTEX = "/v1(?:beta1)?(?:/projects/[^/]+/locations/[^/]+)?"
"""Project and location say who pays and where the machines stand."""

# The first that matches counts. What stands before the layout is `rest`; it is as short as can be.
_LAYOUTS: dict[Wire, tuple[re.Pattern[str], ...]] = {
    "chat_completions": (re.compile(rf"(?P<rest>.*?)(?:{'|'.join(_OPENAI)})?/chat/completions"),),
    "responses": (
        re.compile(rf"(?P<rest>.*?)(?:{'|'.join(_OPENAI)})?/responses(?:/compact|/input_tokens)?"),
    ),
    "anthropic": (
        re.compile(rf"(?P<rest>.*?)(?:{'|'.join(_MESSAGES)})/messages(?:/count_tokens)?"),
        re.compile(
            rf"(?P<rest>.*?)(?:{_VERTEX})?/publishers/anthropic/models/"
            r"(?:count-tokens(?:@[^/:]*)?|(?P<model>[^/:]+)):(?:streamR|r)awPredict"
        ),
    ),
    "gemini": (
        re.compile(r"(?P<rest>.*?)/v1internal:\w+"),  # Code Assist: the model is in the body
        re.compile(rf"(?P<rest>.*?)(?:{_VERTEX})?/publishers/google/models/(?P<model>[^/:]+):\w+"),
        re.compile(rf"(?P<rest>.*?)(?:{_VERTEX})?/publishers/(?P<other>[^/]+/models/[^/:]+):\w+"),
        re.compile(rf"(?P<rest>.*?)(?:{_VERTEX})?/(?P<deployed>endpoints/[^/:]+):\w+"),
        re.compile(r"(?P<rest>.*?)(?:/v1(?:alpha|beta)?)?/models/(?P<model>[^/:]+):\w+"),
        re.compile(r"(?P<rest>.*?)(?:/v1(?:alpha|beta)?)?/(?P<tuned>tunedModels/[^/:]+):\w+"),
    ),
    "generic": (),
}

_HARMLESS: dict[str, re.Pattern[str]] = {
    # The form of the answer, which is served as asked for; others (`media`, `proto`) are no JSON and count.
    "alt": re.compile("sse|json"),
    "$alt": re.compile("sse|json"),
    # White space in the answer's JSON.
    "prettyprint": re.compile(".*"),
    "$prettyprint": re.compile(".*"),
    # Which revision of its grammar Azure reads the body by: the body is in the key.
    "api-version": re.compile(".*"),
    # Anthropic's SDKs mark the calls of their `beta` name space; what is asked for is in header and body.
    "beta": re.compile("true"),
    # Whose quota is charged (Google's standard parameters).
    "quotauser": re.compile(".*"),
    "$userproject": re.compile(".*"),
}
"""Query parameters that change nothing, in lower case, with the values of which that is true."""

_SLASHES = re.compile(r"/{2,}")
# As in the table of endpoints: it bounds what a hostile path costs.
_LONGEST = 2048


def add_address(params: JsonObject, wire: Wire, target: Target) -> None:
    """Add to the parameters of a canonical request what its address means: model, rest of path, query."""
    for name in [name for name in params if _TAKEN.fullmatch(name)]:
        params[f"wire.{name}"] = params.pop(name)
    rest, model = _read(wire, target.path)
    if model and params.setdefault("model", model) != model:
        params[MODEL] = model
    if rest:
        params[PATH] = rest
    if target.query and (query := meant_query(target)):
        params[QUERY] = query


def meant_query(target: Target) -> list[JsonValue]:
    """The pairs of the query that may change the answer, sorted by name: no credential, nothing harmless."""
    return [
        [name, value]
        for name, value in sorted(strip_query(target.query), key=lambda pair: pair[0])
        if not ((harmless := _HARMLESS.get(name.lower())) and harmless.fullmatch(value))
    ]


@lru_cache(maxsize=1024)
def _read(wire: Wire, raw_path: str) -> tuple[str, str]:
    """What is no layout in a path, and the model that it names. An escaped path stays as it was sent."""
    if len(raw_path) > _LONGEST:
        return raw_path, ""
    path = _SLASHES.sub("/", unquote(raw_path)).rstrip("/")
    for layout in _LAYOUTS[wire]:
        if found := layout.fullmatch(path):
            named = found.groupdict()
            model = next((value for name, value in named.items() if name != "rest" and value), "")
            return found["rest"] and (raw_path if "%" in raw_path else found["rest"]), model
    return raw_path, ""
