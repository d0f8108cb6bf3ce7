"""The interoperable hash of `rewind-core` 0.1.1 (DESIGN §13): its recordings and ours can be compared.

`canonical`, `request_hash`, `state_hash` and `normalize_text` take that library's own requests;
`core_request` makes one of a request seen on the wire. Where JSON says what RFC 8785 cannot, the rule is: a
number is the double that JavaScript reads (an integer past 2^53 is rounded), and what is no finite double, or
no Unicode (a lone surrogate), has no hash. Members are visited in the order of RFC 8785, so that the order in
which they were sent never changes which id is numbered first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import rfc8785

from rewind_proxy.canonical.core_v3_text import normalize_text
from rewind_proxy.canonical.jcs import NUMBER_TAG
from rewind_proxy.canonical.model import CanonicalRequest, JsonObject, JsonValue, Message, Wire
from rewind_proxy.errors import CoreHashError

__all__ = [
    "HASH_VERSION",
    "canonical",
    "core_request",
    "core_request_hash",
    "normalize_text",
    "request_hash",
    "state_hash",
]

HASH_VERSION = 3

_DOMAIN = f"{HASH_VERSION}\0".encode()
_SHA = "sha256:"
_MAX_SAFE = 2**53 - 1
_TOO_DEEP = "no interoperable hash: nested too deeply"

# The members of each kind, in the order in which their ids are numbered.
_PARAMETERS = ("response_format", "temperature", "top_p", "top_k", "seed", "max_tokens", "tool_choice")
_MODEL = ("kind", "provider", "model_id", "messages", "system_prompt_sha", "tool_schemas", *_PARAMETERS)
_OTHER = ("kind", "counter")
_MEMBERS = {
    "model": _MODEL,
    "tool": ("kind", "tool_name", "args"),
    "clock": _OTHER,
    "rng": _OTHER,
    "human": _OTHER,
    "env": _OTHER,
}
_RAW = frozenset("kind provider model_id system_prompt_sha tool_name".split())
_DROPPED = frozenset(
    (
        "request_id idempotency_key timestamp created created_at latency_ms traceparent tracestate trace_id "
        "span_id user-agent user_agent retry_count sdk_version x-api-key api_key apikey authorization stream"
    ).split()
)
_IDS = frozenset("id message_id tool_call_id tool_use_id call_id correlation_id".split())

# A host that belongs to none of these is a gateway: what it speaks says whose client was in use.
_PROVIDER_OF_DOMAIN = {
    "openai.com": "openai",
    "chatgpt.com": "openai",
    "anthropic.com": "anthropic",
    "googleapis.com": "google",
}
_PROVIDER_OF_WIRE: Mapping[Wire, str] = {
    "chat_completions": "openai",
    "responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
}


def request_hash(request: JsonObject) -> str:
    """`sha256("3" ‖ 0x00 ‖ jcs(canonical(request)))` as bare hex. Raises `CoreHashError`."""
    return _hash(canonical(request))


def state_hash(value: JsonValue) -> str:
    """The same over any value, normalised as `canonical` does its members: `sha256:` and hex.

    Raises `CoreHashError`.
    """
    return _SHA + _hash(_Normaliser().entry(value))


def canonical(request: JsonObject) -> JsonObject:
    """What is hashed of a request: the members of its kind, normalised; all other members are left out.

    Raises `CoreHashError` for an unknown kind, nesting past Python's limit and an integer past every double.
    """
    kind = request.get("kind")
    members = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if members is None:
        raise CoreHashError(f'"kind" must be one of {", ".join(_MEMBERS)}')
    normaliser = _Normaliser()
    result: JsonObject = {}
    for name in members:
        value = request.get(name)
        if value is None:
            continue
        if name == "tool_schemas" and isinstance(value, list):
            value = sorted(value, key=_raw_name)
        result[name] = value if name in _RAW else normaliser.entry(value)
    return result


def core_request(request: CanonicalRequest, host: str) -> JsonObject | None:
    """The request that `rewind-core` would have been given; None when this is no generation of a known wire.

    The provider goes by `host` (`Target.host`), for other hosts by the wire. The text of the leading system
    message, its parts joined by line ends, becomes `system_prompt_sha`, a digest of the text as it is; what
    else that message holds stays in it. The content of a message is a string for one plain text (empty when
    there are no parts), else its parts. Raises `CoreHashError` for a system prompt with a lone surrogate and
    for nesting past Python's limit.
    """
    provider = _provider(host, request.wire)
    if request.operation != "generate" or provider is None:
        return None
    messages = list(request.messages)
    system = ""
    if messages and messages[0].role == "system":
        leading = messages.pop(0)
        texts = [text for part in leading.parts if isinstance(text := _text(part), str)]
        system = "\n".join(texts)
        if rest := tuple(part for part in leading.parts if _text(part) is None):
            messages.insert(0, Message("system", rest))
    core: JsonObject = {
        "kind": "model",
        "provider": provider,
        "model_id": request.params.get("model"),
        "messages": [{"role": message.role, "content": _content(message)} for message in messages],
    }
    if system:
        core["system_prompt_sha"] = _system_prompt_sha(system)
    if request.tools:
        core["tool_schemas"] = [*request.tools]
    core |= {name: request.params[name] for name in _PARAMETERS if name in request.params}
    try:
        return {name: _untagged(value) for name, value in core.items() if value is not None}
    except RecursionError:
        raise CoreHashError(_TOO_DEEP) from None


def core_request_hash(request: CanonicalRequest, host: str) -> str | None:
    """The hash of a request seen on the wire; None when it is no generation, or holds what has no hash."""
    try:
        core = core_request(request, host)
        return None if core is None else request_hash(core)
    except CoreHashError:
        return None


class _Normaliser:
    """Normalises the values of one request, which share one count of ids."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def entry(self, value: JsonValue) -> JsonValue:
        try:
            return self._value(value)
        except RecursionError:
            raise CoreHashError(_TOO_DEEP) from None

    # Loops: a comprehension is a frame of its own in Python 3.11, and what `jcs.parse` takes must fit.
    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return normalize_text(value)
        if isinstance(value, list):
            items: list[JsonValue] = []
            for item in value:
                items.append(self._value(item))
            return items
        if isinstance(value, dict):
            members: JsonObject = {}
            for name in sorted(value, key=_utf_16):
                member = value[name]
                if member is None or name.lower() in _DROPPED:
                    continue
                if name in _IDS and isinstance(member, str):
                    members[name] = self._numbers.setdefault(member, f"call_{len(self._numbers)}")
                else:
                    members[name] = self._value(member)
            return members
        if isinstance(value, int) and not -_MAX_SAFE <= value <= _MAX_SAFE:
            return _double(value)
        return value


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise CoreHashError("no interoperable hash: a number past the range of a double") from None


def _hash(value: JsonValue) -> str:
    try:
        text = rfc8785.dumps(value)
    except (ValueError, RecursionError) as error:  # the names of its errors tell, their texts may quote
        raise CoreHashError(f"no interoperable hash: RFC 8785 refuses it ({type(error).__name__})") from None
    return hashlib.sha256(_DOMAIN + text).hexdigest()


def _utf_16(text: str) -> bytes:
    """Sorts as JavaScript compares strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _raw_name(tool: JsonValue) -> bytes:
    """The sort key of a tool; those without a name come first, in the order sent."""
    name = tool.get("name") if isinstance(tool, dict) else None
    return _utf_16(name) if isinstance(name, str) else b""


def _provider(host: str, wire: Wire) -> str | None:
    if wire == "generic":
        return None
    name = "." + host.partition(":")[0]
    for domain, provider in _PROVIDER_OF_DOMAIN.items():
        if name.endswith(f".{domain}"):
            return provider
    return _PROVIDER_OF_WIRE[wire]


def _text(part: JsonObject) -> str | None:
    text = part.get("text")
    return text if part.get("type") == "text" and isinstance(text, str) else None


def _content(message: Message) -> JsonValue:
    if not message.parts:
        return ""
    first = message.parts[0]
    text = first.get("text")
    if len(message.parts) == 1 and first.keys() == {"type", "text"} and first["type"] == "text":
        return text
    return [*message.parts]


def _system_prompt_sha(system: str) -> str:
    try:
        return _SHA + hashlib.sha256(system.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise CoreHashError("no interoperable hash: a lone surrogate in the system prompt") from None


def _untagged(value: JsonValue) -> JsonValue:
    """`value` with the numbers that `jcs.parse` put in a tag as JavaScript reads them."""
    if isinstance(value, list):
        items: list[JsonValue] = []
        for item in value:
            items.append(_untagged(item))
        return items
    if isinstance(value, dict):
        token = value.get(NUMBER_TAG)
        if isinstance(token, str):
            return float(token)
        members: JsonObject = {}
        for name, member in value.items():
            members[name] = _untagged(member)
        return members
    return value
