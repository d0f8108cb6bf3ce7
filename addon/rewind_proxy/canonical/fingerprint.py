"""Fingerprints: the exact one of a live request, the normalised one of its meaning (DESIGN §5).

The order of the steps is DESIGN's; redaction (step 2) was done on the wire body before the adapter read it,
so that a live request and its stored copy are the same from there on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.item import of_item
from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    JsonObject,
    JsonValue,
    MatchSettings,
    Message,
    Operation,
    Target,
    Volatile,
)
from rewind_proxy.canonical.preset import Preset
from rewind_proxy.canonical.resume import Chain, Chains, signs_of
from rewind_proxy.canonical.roots import Found, Root, discover, find_roots
from rewind_proxy.canonical.scrub import LINKING_ID, Place, Scrubber, Slot, Verbatim
from rewind_proxy.canonical.shown import PLACES, Shown, Taken
from rewind_proxy.canonical.volatile import Meaning
from rewind_proxy.canonical.walk import MediaDigests

HASH_VERSION = 1
"""Raised whenever a request could get another normalised fingerprint than before."""

_EXACT = b"rewind-exact/1\0"
_OPAQUE = b"rewind-opaque/1\0"
_NORM = b"rewind-norm/1\0"

_VERBATIM = "⟨verbatim⟩"
"""Where presets have their names."""
_MOST_ROOTS = 256
_SHORTEST_CHAIN = 4
"""Messages that make it worth while to go on from an earlier request."""

# Options that go with a parameter of the ignore list.
_GOES_WITH = {"stream": ("stream_options",), "model": ("endpoint_model",)}


def exact_fingerprint(target: Target, query: Sequence[tuple[str, str]], body: bytes) -> str:
    """Hex of the exact fingerprint; `query` is the target's less its credentials, `body` canonical JSON."""
    head = dumps([target.method, target.host, target.path, [[k, v] for k, v in query]])
    return hashlib.sha256(b"%b%b,%b]" % (_EXACT, head[:-1], body)).hexdigest()


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


@dataclass(frozen=True)
class Normalised:
    """A request after all ten steps.

    `links` is the chain of digests: after the leading system message and the tools, then after each message.
    """

    fingerprint: str
    links: tuple[str, ...]
    ignored: JsonObject
    """The parameters that the ignore list took out, with their values."""
    operation: Operation
    shown: Shown

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """Ids of the scrub rules that took something out, in order of appearance."""
        return tuple(dict.fromkeys(each.rule for each in self.taken if each.rule != LINKING_ID))

    @cached_property
    def taken(self) -> tuple[Taken, ...]:
        """What was taken out, in canonical order: a numbered value once, others each time."""
        return tuple(self.shown.taken())

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What was taken out, in canonical order."""
        return self.shown.slots()

    @cached_property
    def view(self) -> JsonObject:
        """What was hashed, for comparing two requests: `{"operation", "messages", "tools", "params"}`."""
        return {"operation": self.operation, **self.shown.view()}


class Normaliser:
    """Normalises canonical requests under one set of match settings."""

    def __init__(self, settings: MatchSettings) -> None:
        self.settings = settings
        self._scrubbers: dict[str, Scrubber] = {}
        self._verbatim = Verbatim(settings)
        self._found: TextCache[tuple[str, str], Found] = TextCache()
        self._media = MediaDigests()
        self._chains = Chains()
        self._meanings: dict[tuple[Volatile, str], Meaning] = {}
        self._places: dict[tuple[str, tuple[Root, ...]], dict[Place, object]] = {}

    def under(self, settings: MatchSettings) -> Normaliser:
        """One for other settings, which shares what is known of texts where these leave it true."""
        other = Normaliser(settings)
        other._found, other._media = self._found, self._media
        others = {"ignore": settings.ignore, "tail_n": settings.tail_n}
        if self.settings.model_copy(update=others) == settings:
            other._scrubbers = self._scrubbers
        return other

    def normalise(
        self, request: CanonicalRequest, host: str, volatile: Volatile, preset: Preset | None = None
    ) -> Normalised:
        """The normalised fingerprint of a redacted canonical request, and what was taken out on the way.

        `volatile` is the wire's; `preset` is of the agent that the request was recognised as.
        """
        meaning = self._meaning(volatile, preset)
        messages = list(meaning.messages(request))
        # What is embedded counts byte for byte.
        roots = () if request.operation == "embed" else self._roots(messages, preset)
        shown, link, links = self._chain(request.operation, messages, meaning.tools(request), preset, roots)
        params, ignored = self._params(request, host, meaning.volatile)
        last = hashlib.sha256(shown.params(params)).digest()
        fingerprint = hashlib.sha256(_NORM + link + last).hexdigest()
        return Normalised(fingerprint, tuple(links), ignored, request.operation, shown)

    def _chain(
        self,
        operation: Operation,
        messages: list[Message],
        tools: list[JsonObject],
        preset: Preset | None,
        roots: tuple[Root, ...],
    ) -> tuple[Shown, bytes, list[str]]:
        """The chain of digests over head and messages: what was shown, the last link, and all of them."""
        verbatim = operation == "embed"
        keys = self._keys(_VERBATIM if verbatim else preset.name if preset else "", roots)
        leading = messages[0] if messages and messages[0].role == "system" else None
        rest = self._tail(messages[1:] if leading else messages)
        whole = operation == "generate" and len(rest) + bool(leading) == len(messages) >= _SHORTEST_CHAIN
        signs = signs_of(messages) if whole else ()
        known = self._chains.find(keys, tools, signs) if whole else None
        if known is not None:
            shown, link, links = known.shown.fork(), known.link, [*known.links]
            done = len(known.signs)
        else:
            scrubber = self._verbatim if verbatim else self._scrubber(preset)
            shown = Shown(scrubber, self._media, roots, keys)
            system = shown.message(leading) if leading else b"null"
            shown_tools = shown.tools(sorted(tools, key=_tool_order))
            head = b'{"operation":%b,"system":%b,"tools":%b}' % (dumps(operation), system, shown_tools)
            link = hashlib.sha256(_NORM + head).digest()
            links = [link.hex()]
            done = 1 if leading else 0
        left = messages[done:] if whole else rest
        for index, message in enumerate(left, start=done):
            if whole and index == len(messages) - 1 and (known is None or index > done):
                chain = Chain(shown.fork(), link, tuple(links), signs[:index], (messages[:index], tools))
                self._chains.keep(keys, tools, chain)
            link = hashlib.sha256(link + hashlib.sha256(shown.message(message)).digest()).digest()
            links.append(link.hex())
        return shown, link, links

    def _meaning(self, volatile: Volatile, preset: Preset | None) -> Meaning:
        key = (volatile, preset.name if preset else "")
        known = self._meanings.get(key)
        if known is None:
            known = self._meanings[key] = Meaning(volatile | preset.volatile if preset else volatile)
        return known

    def _keys(self, name: str, roots: tuple[Root, ...]) -> Mapping[Place, object]:
        key = (name, roots)
        known = self._places.get(key)
        if known is None:
            if len(self._places) >= _MOST_ROOTS:
                self._places.clear()
            known = self._places[key] = {place: object() for place in PLACES}
        return known

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
    return of_item(tool, _tool_order, _order_of)


def _order_of(tool: JsonValue) -> tuple[str, bytes]:
    assert isinstance(tool, dict)
    name = tool.get("name")
    return (name if isinstance(name, str) else str(tool.get("type", "")), dumps(tool))
