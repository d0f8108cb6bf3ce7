"""Fingerprints: the exact one of a live request, the normalised one of its meaning (DESIGN §5).

The order of the steps is DESIGN's; redaction (step 2) was done on the wire body before the adapter read it,
so that a live request and its stored copy are the same from there on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from rewind_proxy.canonical.cache import TextCache
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
from rewind_proxy.canonical.paths.roots import NOTHING, Found, Root, discover, find_roots
from rewind_proxy.canonical.preset import Preset
from rewind_proxy.canonical.resume import Chain, Chains
from rewind_proxy.canonical.scrub import LINKING_ID, Scrubber, Slot, Taken, Verbatim
from rewind_proxy.canonical.shown import Shown
from rewind_proxy.canonical.tail import tail
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


def exact_lead(target: Target, query: Sequence[tuple[str, str]]) -> bytes:
    """What is hashed before the canonical body; `query` is the target's less its credentials."""
    head = dumps([target.method, target.host, target.path, [[k, v] for k, v in query]])
    return b"%b%b," % (_EXACT, head[:-1])


EXACT_END = b"]"
"""What is hashed after the canonical body."""


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


class _Piece(NamedTuple):
    """What is new in the first `sent` messages of a request, and what it tells of roots."""

    sent: int
    messages: list[Message]
    told: tuple[Found, ...]


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
        self._rooted: dict[tuple[str, tuple[Root, ...]], object] = {}

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
        chain = self._chain(request, meaning, preset)
        params, ignored = self._params(request, host, meaning.volatile)
        last = hashlib.sha256(chain.shown.params(params)).digest()
        fingerprint = hashlib.sha256(_NORM + chain.link + last).hexdigest()
        return Normalised(fingerprint, chain.links, ignored, request.operation, chain.shown)

    def _chain(self, request: CanonicalRequest, meaning: Meaning, preset: Preset | None) -> Chain:
        """The chain of digests over head and messages; where a request starts as another did, it goes on."""
        sent = request.messages
        resumed = request.operation == "generate" and not self._cuts(sent) and len(sent) >= _SHORTEST_CHAIN
        known = self._chains.find(meaning, sent, request.tools) if resumed else None
        while True:
            pieces = self._pieces(request, meaning, preset, known, resumed=resumed)
            told = known.told if known else ()
            new = [found for piece in pieces for found in piece.told]
            roots = self._roots((*told, *new), request.operation)
            if known is None or known.roots == roots:
                break
            known = None  # it was scrubbed by other roots
        # What ends where the next request is likely to go on stays, for others that go on from there.
        passed = known if known and len(known.messages) != request.settled else None
        chain = known or self._head(request, meaning, preset, roots, pieces)
        for piece in pieces:
            told += piece.told
            messages = piece.messages if resumed else tail(piece.messages, self.settings.tail_n)
            chain = self._extended(chain, messages, sent[: piece.sent], told)
            if piece.sent < len(sent):
                self._chains.keep(meaning, chain, passed)
        return chain

    def _pieces(
        self,
        request: CanonicalRequest,
        meaning: Meaning,
        preset: Preset | None,
        known: Chain | None,
        *,
        resumed: bool,
    ) -> list[_Piece]:
        """What comes after the known messages, up to each place where the next request may go on."""
        sent = request.messages
        ends = [len(sent)]
        if resumed:
            ends = sorted({min(request.settled, len(sent)), len(sent) - 1, len(sent)})
        start = len(known.messages) if known else 0
        pieces: list[_Piece] = []
        for end in ends:
            if end > start or (end == len(sent) and not pieces):
                messages = [*meaning.messages(sent[:end], start)]
                pieces.append(_Piece(end, messages, self._told(messages, preset)))
                start = end
        return pieces

    def _head(
        self,
        request: CanonicalRequest,
        meaning: Meaning,
        preset: Preset | None,
        roots: tuple[Root, ...],
        pieces: Sequence[_Piece],
    ) -> Chain:
        """The chain that holds the leading system message, which is taken out of its piece, and the tools."""
        verbatim = request.operation == "embed"
        rooted = self._standing_for(_VERBATIM if verbatim else preset.name if preset else "", roots)
        shown = Shown(self._verbatim if verbatim else self._scrubber(preset), self._media, roots, rooted)
        first = next((piece.messages for piece in pieces if piece.messages), [])
        leads = bool(first) and first[0].role == "system"
        system = shown.message(first.pop(0)) if leads else b"null"
        tools = shown.tools(sorted(meaning.tools(request.tools), key=_tool_order))
        head = b'{"operation":%b,"system":%b,"tools":%b}' % (dumps(request.operation), system, tools)
        link = hashlib.sha256(_NORM + head).digest()
        return Chain((), request.tools, (), roots, shown, link, (link.hex(),))

    def _extended(
        self, chain: Chain, messages: Sequence[Message], sent: Sequence[Message], told: tuple[Found, ...]
    ) -> Chain:
        """The chain with more messages; those `sent` so far told so much of roots."""
        if not messages:
            return replace(chain, messages=sent, told=told)
        shown, link, links = chain.shown.fork(), chain.link, [*chain.links]
        for message in messages:
            link = hashlib.sha256(link + hashlib.sha256(shown.message(message)).digest()).digest()
            links.append(link.hex())
        return Chain(sent, chain.tools, told, chain.roots, shown, link, tuple(links))

    def _meaning(self, volatile: Volatile, preset: Preset | None) -> Meaning:
        key = (volatile, preset.name if preset else "")
        known = self._meanings.get(key)
        if known is None:
            known = self._meanings[key] = Meaning(volatile | preset.volatile if preset else volatile)
        return known

    def _standing_for(self, name: str, roots: tuple[Root, ...]) -> object:
        """What stands for an agent's rules and roots where leaves are looked up: it is quicker to hash."""
        key = (name, roots)
        known = self._rooted.get(key)
        if known is None:
            if len(self._rooted) >= _MOST_ROOTS:
                self._rooted.clear()
            known = self._rooted[key] = object()
        return known

    def _scrubber(self, preset: Preset | None) -> Scrubber:
        name = preset.name if preset else ""
        known = self._scrubbers.get(name)
        if known is None:
            known = self._scrubbers[name] = Scrubber(self.settings, preset)
        return known

    def _told(self, messages: Sequence[Message], preset: Preset | None) -> tuple[Found, ...]:
        """What messages tell of roots: not what a tool or the model says, but the client's own words do."""
        return tuple(
            found
            for message in messages
            if message.role in ("system", "user")
            for part in message.parts
            if isinstance(text := part.get("text"), str)
            and (found := self._discover(text, preset)) != NOTHING
        )

    def _roots(self, told: Sequence[Found], operation: Operation) -> tuple[Root, ...]:
        # What is embedded counts byte for byte.
        if self.settings.paths == "off" or operation == "embed":
            return ()
        return find_roots(told, self.settings.roots)

    def _discover(self, text: str, preset: Preset | None) -> Found:
        key = (preset.name if preset else "", text)
        found = self._found.get(key)
        if found is None:
            found = discover(text, preset.cues if preset else None)
            self._found.put(key, found, len(text))
        return found

    def _cuts(self, messages: Sequence[Message]) -> bool:
        """Whether only some of the messages may count."""
        return 0 < self.settings.tail_n < len(messages)

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
