"""Fingerprints: the exact one of a live request, the normalised one of its meaning (DESIGN §5).

The order of the steps is DESIGN's; redaction (step 2) was done on the wire body before the adapter read it,
so that a live request and its stored copy are the same from there on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    JsonObject,
    JsonValue,
    MatchSettings,
    Message,
    Target,
    Volatile,
)
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.preset import Preset
from rewind_proxy.canonical.roots import Found, Root, discover, find_roots
from rewind_proxy.canonical.scrub import LINKING_ID, Numbering, Scrubber, Slot
from rewind_proxy.canonical.volatile import kept_members, without_volatile
from rewind_proxy.canonical.walk import MediaDigests, Walk

HASH_VERSION = 1
"""Raised whenever a request could get another normalised fingerprint than before."""

_EXACT = b"rewind-exact/1\0"
_OPAQUE = b"rewind-opaque/1\0"
_NORM = b"rewind-norm/1\0"

# Options that go with a parameter of the ignore list.
_GOES_WITH = {"stream": ("stream_options",)}


def exact_fingerprint(target: Target, query: Sequence[tuple[str, str]], body: JsonValue) -> str:
    """Hex of the exact fingerprint; `query` is the target's less its credentials."""
    value: JsonValue = [target.method, target.host, target.path, [[k, v] for k, v in query], body]
    return hashlib.sha256(_EXACT + dumps(value)).hexdigest()


def opaque_fingerprint(target: Target, query: Sequence[tuple[str, str]], content: JsonValue) -> str:
    """Hex of the fingerprint of a body that is not read as JSON; it stands for both tiers.

    `content` tells the body byte for byte: `{"sha256": …}` of it, or the parts of a multipart body.
    """
    value: JsonValue = [target.method, target.host, target.path, [[k, v] for k, v in query], content]
    return hashlib.sha256(_OPAQUE + dumps(value)).hexdigest()


def settings_digest(settings: MatchSettings) -> str:
    """What the normalised index of a store is kept under, so that other settings live side by side: hex."""
    match: JsonValue = settings.model_dump(mode="json")
    return hashlib.sha256(dumps([HASH_VERSION, match])).hexdigest()


@dataclass(frozen=True, slots=True)
class Normalised:
    """A request after all ten steps.

    `links` is the chain of digests: after the leading system message and the tools, then after each message.
    `view` is what was hashed, for comparing two requests: `{"operation", "messages", "tools", "params"}`.
    """

    fingerprint: str
    links: tuple[str, ...]
    slots: tuple[Slot, ...]
    view: JsonObject
    ignored: JsonObject
    """The parameters that the ignore list took out, with their values."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the scrub rules that took something out, in order of appearance."""
        return tuple(dict.fromkeys(slot.rule for slot in self.slots if slot.rule != LINKING_ID))


class Normaliser:
    """Normalises canonical requests under one set of match settings."""

    def __init__(self, settings: MatchSettings) -> None:
        self.settings = settings
        self._scrubbers: dict[str, Scrubber] = {}
        self._found: TextCache[tuple[str, str], Found] = TextCache()
        self._media = MediaDigests()

    def normalise(
        self, request: CanonicalRequest, host: str, volatile: Volatile, preset: Preset | None = None
    ) -> Normalised:
        """The normalised fingerprint of a redacted canonical request, and what was taken out on the way.

        `volatile` is the wire's; `preset` is of the agent that the request was recognised as.
        """
        if preset:
            volatile |= preset.volatile
        messages = list(without_volatile(request, volatile))
        roots = self._roots(messages, preset)
        numbering = Numbering()
        leading = messages[0] if messages and messages[0].role == "system" else None
        rest = self._tail(messages[1:] if leading else messages)
        scrub = Walk(self._scrubber(preset), self._media, numbering, roots)

        messages_at, tools_at = ROOT.member("messages"), ROOT.member("tools")
        shown: list[JsonValue] = []
        if leading:
            shown.append(scrub.message(leading, messages_at.item(0)))
        tools = [
            scrub.value(tool, "tools", "tools", tools_at.item(index))
            for index, tool in enumerate(
                sorted((kept_members(tool, volatile) for tool in request.tools), key=_tool_order)
            )
        ]
        head: JsonObject = {
            "operation": request.operation,
            "system": shown[0] if shown else None,
            "tools": tools,
        }
        link = hashlib.sha256(_NORM + dumps(head)).digest()
        links = [link]
        for index, message in enumerate(rest, start=len(shown)):
            value = scrub.message(message, messages_at.item(index))
            shown.append(value)
            link = hashlib.sha256(link + hashlib.sha256(dumps(value)).digest()).digest()
            links.append(link)
        params, ignored = self._params(request, host, volatile)
        shown_params = scrub.named(params, "params", ROOT.member("params"))
        last = hashlib.sha256(dumps(shown_params)).digest()
        return Normalised(
            fingerprint=hashlib.sha256(_NORM + link + last).hexdigest(),
            links=tuple(each.hex() for each in links),
            slots=tuple(numbering.slots),
            view={
                "operation": request.operation,
                "messages": shown,
                "tools": tools,
                "params": shown_params,
            },
            ignored=ignored,
        )

    def _scrubber(self, preset: Preset | None) -> Scrubber:
        name = preset.name if preset else ""
        known = self._scrubbers.get(name)
        if known is None:
            known = self._scrubbers[name] = Scrubber(self.settings, preset)
        return known

    def _roots(self, messages: Sequence[Message], preset: Preset | None) -> tuple[Root, ...]:
        if self.settings.paths == "off":
            return ()
        # What a tool or the model says names no root: the client's own words do, and come first.
        told = [
            self._discover(text, preset)
            for message in messages
            if message.role in ("system", "user")
            for part in message.parts
            if isinstance(text := part.get("text"), str)
        ]
        return find_roots(told, self.settings.roots)

    def _discover(self, text: str, preset: Preset | None) -> Found:
        key = (preset.name if preset else "", text)
        found = self._found.get(key)
        if found is None:
            found = discover(text, preset.cues if preset else None)
            self._found.put(key, found, len(text))
        return found

    def _tail(self, messages: list[Message]) -> list[Message]:
        count = self.settings.tail_n
        if count <= 0 or count >= len(messages):
            return messages
        start = len(messages) - count
        while start > 0 and messages[start].role == "tool":
            start -= 1  # a result never loses its call
        return messages[start:]

    def _params(
        self, request: CanonicalRequest, host: str, volatile: Volatile
    ) -> tuple[JsonObject, JsonObject]:
        params: JsonObject = {
            name: value
            for name, value in request.params.items()
            if value is not None and name not in volatile.params
        }
        # Of the request, not of its body: a body may have a `host` of its own, and that counts.
        params |= {
            f"⟨{name}⟩": value
            for name, value in (("host", host), ("wire", request.wire))
            if name not in self.settings.ignore
        }
        ignored: JsonObject = {}
        for name in self.settings.ignore:
            if name in ("host", "wire"):
                continue
            if name == "model" and request.operation != "generate":
                continue  # another model's vectors or counts are another answer
            for each in (name, *_GOES_WITH.get(name, ())):
                if each in params:
                    ignored[each] = params.pop(each)
        return params, ignored


def _tool_order(tool: JsonObject) -> tuple[str, bytes]:
    name = tool.get("name")
    return (name if isinstance(name, str) else str(tool.get("type", "")), dumps(tool))
