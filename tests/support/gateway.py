"""A gateway that translates: it asks another provider, in other words, what its client asks in its own.

So do LiteLLM, claude-code-router and their like. What comes back is converted as a replay converts it, so
that the client goes on from the same answer in both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from rewind_proxy.canonical.answer import Asked
from rewind_proxy.canonical.model import Form, Target, Wire
from rewind_proxy.canonical.volatile import Meaning
from rewind_proxy.cli.provider import Exchange
from rewind_proxy.wire import ADAPTERS
from rewind_proxy.wire.forms import convert
from support.client import Client
from support.other_words import Said, body_of
from support.proxies import Proxy

_MODEL = "model-of-the-gateway"
_OPENAI, _ANTHROPIC, _GOOGLE = "api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"
_ADDRESSES: dict[tuple[Wire, Form], tuple[str, str]] = {
    ("chat_completions", "whole"): (_OPENAI, "/v1/chat/completions"),
    ("chat_completions", "sse"): (_OPENAI, "/v1/chat/completions"),
    ("responses", "whole"): (_OPENAI, "/v1/responses"),
    ("responses", "sse"): (_OPENAI, "/v1/responses"),
    ("anthropic", "whole"): (_ANTHROPIC, "/v1/messages"),
    ("anthropic", "sse"): (_ANTHROPIC, "/v1/messages"),
    ("gemini", "whole"): (_GOOGLE, f"/v1beta/models/{_MODEL}:generateContent"),
    ("gemini", "sse"): (_GOOGLE, f"/v1beta/models/{_MODEL}:streamGenerateContent?alt=sse"),
    ("gemini", "json-array"): (_GOOGLE, f"/v1beta/models/{_MODEL}:streamGenerateContent"),
}


@dataclass(frozen=True, slots=True)
class Gateway:
    """Speaks `own` to its client; asks in `wire` for an answer in `form`, through a proxy that records."""

    proxy: Proxy
    own: Wire
    wire: Wire
    form: Form

    def behave(self, exchange: Exchange) -> None:
        """Answer a model call of the client by asking the other provider; it has nothing else to offer."""
        if exchange.answer.dialect is None or exchange.request.is_model_socket:
            status = 426 if exchange.request.is_model_socket else 404
            exchange.whole(status, "application/json", b'{"error": {"message": "not offered here"}}')
            return
        adapter, target = ADAPTERS[self.own], Target("POST", "gateway", exchange.request.path)
        body = json.loads(exchange.request.decoded)
        request = adapter.request(target, "generate", body)
        said = Said(
            tuple(Meaning(adapter.volatile).messages(request.messages)), request.tools, request.params
        )
        host, path = _ADDRESSES[self.wire, self.form]
        sent = body_of(self.wire, said)
        if self.wire != "gemini":  # there the path says both
            sent |= {"model": _MODEL, "stream": self.form == "sse"}
        with Client(self.proxy, host) as client:
            got = client.post(path, sent, {"user-agent": exchange.request.header("user-agent")})
        assert got.status == 200, got.body
        asked = Asked(self.own, adapter.form(target, body), custom_tools=frozenset({"exec"}))
        answer = convert(got.body, self.wire, self.form, asked)
        assert answer is not None, got.body
        exchange.whole(200, answer.content_type, answer.body)
