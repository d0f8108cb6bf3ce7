"""Requests by URL and body, read as a proxy reads them: whether two of them share an answer."""

from __future__ import annotations

import json

from rewind_proxy.canonical.model import JsonObject, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

CHAT = "api.openai.com/v1/chat/completions"
RESPONSES = "api.openai.com/v1/responses"
MESSAGES = "api.anthropic.com/v1/messages"
GEMINI = "generativelanguage.googleapis.com/v1beta/models/g:generateContent"

HOSTS = HostTable({})
READER = RequestReader(HOSTS, Redactor(), MatchSettings(), 2**20)


def read(url: str, body: JsonObject) -> Reading:
    """The reading of a POST."""
    host, _, path = url.partition("/")
    known = HOSTS.find(host, 443)
    assert known is not None, host
    return READER.read(RawRequest("POST", host, 443, f"/{path}", (), json.dumps(body).encode()), known)


def same(url: str, a: JsonObject, b: JsonObject, other: str = "") -> bool:
    """Whether two requests share an answer; `other` is the address of the second, if it is another."""
    return read(url, a).fingerprint == read(other or url, b).fingerprint
