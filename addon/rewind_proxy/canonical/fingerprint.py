"""Fingerprints: the exact one of a live request, the normalised one of its meaning (DESIGN §5).

The order of the steps is DESIGN's; redaction (step 2) was done on the wire body before the adapter read it,
so that a live request and its stored copy are the same from there on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
from rewind_proxy.canonical.pointer import ROOT, Pointer
from rewind_proxy.canonical.roots import Found, Root, discover, find_roots
from rewind_proxy.canonical.scrub import LINKING_ID, PLACE_OF_ROLE, Numbering, Place, Scrubber, Slot

HASH_VERSION = 1
"""Raised whenever a request could get another normalised fingerprint than before."""

_EXACT = b"rewind-exact/1\0"
_OPAQUE = b"rewind-opaque/1\0"
_NORM = b"rewind-norm/1\0"

# Members that are never scanned for noise: references are meaning (DESIGN §5), signatures are bytes.
_UNSCANNED = frozenset(
    ["signature", "thoughtSignature", "encrypted_content", "previous_response_id", "file_id", "cachedContent"]
)
# Members of a part, and parameters, that name something.
_NAMES = frozenset(["type", "name", "container", "conversation"])
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
        self._scrubber = Scrubber(settings)
        self._found: TextCache[str, Found] = TextCache()
        self._media: TextCache[str, str] = TextCache()

    def normalise(self, request: CanonicalRequest, host: str, volatile: Volatile) -> Normalised:
        """The normalised fingerprint of a redacted canonical request, and what was taken out on the way."""
        messages = [kept for message in _without_volatile(request, volatile) if (kept := message).parts]
        roots = self._roots(messages)
        numbering = Numbering()
        leading = messages[0] if messages and messages[0].role == "system" else None
        rest = self._tail(messages[1:] if leading else messages)
        scrub = _Walk(self, numbering, roots)

        messages_at, tools_at = ROOT.member("messages"), ROOT.member("tools")
        shown: list[JsonValue] = []
        if leading:
            shown.append(scrub.message(leading, messages_at.item(0)))
        tools = [
            scrub.value(tool, "tools", "tools", tools_at.item(index))
            for index, tool in enumerate(sorted(request.tools, key=_tool_order))
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

    def _roots(self, messages: Sequence[Message]) -> tuple[Root, ...]:
        if self.settings.paths == "off":
            return ()
        # What a tool or the model says names no root: the client's own words do, and come first.
        told = [
            self._discover(text)
            for message in messages
            if message.role in ("system", "user")
            for part in message.parts
            if isinstance(text := part.get("text"), str)
        ]
        return find_roots(told, self.settings.roots)

    def _discover(self, text: str) -> Found:
        found = self._found.get(text)
        if found is None:
            found = discover(text)
            self._found.put(text, found, len(text))
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
        params: JsonObject = {"host": host, "wire": request.wire}
        params |= {
            name: value
            for name, value in request.params.items()
            if value is not None and name not in volatile.params
        }
        ignored: JsonObject = {}
        for name in self.settings.ignore:
            if name == "model" and request.operation != "generate":
                continue  # another model's vectors or counts are another answer
            for each in (name, *_GOES_WITH.get(name, ())):
                if each in params:
                    ignored[each] = params.pop(each)
        return params, ignored

    def media_digest(self, data: str) -> str | None:
        """sha256 of the decoded bytes of a base64 text, or None when it is not base64."""
        digest = self._media.get(data)
        if digest is None:
            try:
                raw = base64.b64decode(data + "=" * (-len(data) % 4), validate=True)
            except (binascii.Error, ValueError):
                return None
            digest = hashlib.sha256(raw).hexdigest()
            self._media.put(data, digest, len(data))
        return digest

    def render(
        self, text: str, member: str, place: Place, roots: tuple[Root, ...], at: Pointer, numbering: Numbering
    ) -> str:
        """A text leaf with its noise replaced by placeholders."""
        return numbering.render(self._scrubber.leaf(text, member, place, roots), at)


def _without_volatile(request: CanonicalRequest, volatile: Volatile) -> Iterator[Message]:
    """Step 1: messages without what means nothing, emptied parts included; nulls go too (step 6)."""
    leading = True
    for message in request.messages:
        system = leading and message.role == "system"
        leading = False
        parts: list[JsonObject] = []
        for part in message.parts:
            kept: JsonObject = {
                name: value
                for name, value in part.items()
                if value is not None and name not in volatile.members
            }
            if kept.get("type") == "opaque" and isinstance(inner := kept.get("value"), dict):
                kept["value"] = {
                    name: value
                    for name, value in inner.items()
                    if value is not None and name not in volatile.members
                }
                if not kept["value"]:
                    continue
            if (
                system
                and isinstance(text := kept.get("text"), str)
                and text.startswith(volatile.system_prefixes)
            ):
                _, _, text = text.partition("\n")
                if not text.strip():
                    continue
                kept["text"] = text
            parts.append(kept)
        yield Message(message.role, tuple(parts))


def _tool_order(tool: JsonObject) -> tuple[str, bytes]:
    name = tool.get("name")
    return (name if isinstance(name, str) else str(tool.get("type", "")), dumps(tool))


class _Walk:
    """Steps 4, 5 and 10 over one request: media to digests, text to placeholders, in canonical order."""

    __slots__ = ("_calls", "_normaliser", "_numbering", "_roots")

    def __init__(self, normaliser: Normaliser, numbering: Numbering, roots: tuple[Root, ...]) -> None:
        self._normaliser = normaliser
        self._numbering = numbering
        self._roots = roots
        self._calls: list[tuple[str, str]] = []
        """(name, stand-in id) of calls sent without an id, not yet answered (Gemini)."""

    def message(self, message: Message, at: Pointer) -> JsonObject:
        place = PLACE_OF_ROLE[message.role]
        parts = at.member("parts")
        return {
            "role": message.role,
            "parts": [self.part(part, place, parts.item(index)) for index, part in enumerate(message.parts)],
        }

    def part(self, part: JsonObject, place: Place, at: Pointer) -> JsonObject:
        if part.get("type") not in ("tool_call", "tool_result"):
            return self.named(part, place, at)
        shown = self.named({name: value for name, value in part.items() if name != "id"}, place, at)
        shown["id"] = self._linking_id(part, at)
        return shown

    def named(self, value: JsonObject, place: Place, at: Pointer) -> JsonObject:
        """An envelope object of ours: members that name something are left as they are."""
        if value.get("type") == "media":
            value = self._media(value)
        return {
            name: value[name] if name in _NAMES else self.value(value[name], name, place, at.member(name))
            for name in in_order(value)
        }

    def value(self, value: JsonValue, member: str, place: Place, at: Pointer) -> JsonValue:
        """`value` with its text leaves scrubbed, in canonical order, so that equal JSON is numbered alike."""
        if isinstance(value, str):
            if member in _UNSCANNED:
                return value
            return self._normaliser.render(value, member, place, self._roots, at, self._numbering)
        if isinstance(value, dict):
            if value.get("type") == "media":
                value = self._media(value)
            return {name: self.value(value[name], name, place, at.member(name)) for name in in_order(value)}
        if isinstance(value, list):
            return [self.value(item, member, place, at.item(index)) for index, item in enumerate(value)]
        return value

    def _linking_id(self, part: JsonObject, at: Pointer) -> str:
        raw = part.get("id")
        if isinstance(raw, str) and raw:
            return self._numbering.take(LINKING_ID, "id", raw, at.member("id"))
        # Gemini pairs calls and results by name and order when it sends no id.
        name = str(part.get("name", ""))
        if part["type"] == "tool_call":
            stand_in = f"⟨{len(self._calls)}⟩{name}"
            self._calls.append((name, stand_in))
        else:
            waiting = next((call for call in self._calls if call[0] == name), None)
            if waiting:
                self._calls.remove(waiting)
            stand_in = waiting[1] if waiting else f"⟨unpaired⟩{name}"
        return self._numbering.placeholder("id", stand_in)

    def _media(self, part: JsonObject) -> JsonObject:
        """Steps 0 and 4: text in base64 is read as text, other media become the digest of their bytes."""
        data, url = part.get("data"), part.get("url")
        media_type = part.get("media_type")
        shown = dict(part)
        if isinstance(url, str) and url.startswith("data:") and ";base64," in url[:200]:
            prefix, _, data = url.partition(";base64,")
            media_type = prefix.removeprefix("data:").partition(";")[0]
            del shown["url"]
            shown["media_type"] = media_type
        digest = self._normaliser.media_digest(data) if isinstance(data, str) else None
        if digest is None or not isinstance(data, str):
            return shown
        shown["data"] = f"sha256:{digest}"
        if isinstance(media_type, str) and media_type.startswith("text/"):
            with suppress(UnicodeDecodeError):  # not text after all: its digest says what it is
                shown["data"] = base64.b64decode(data + "=" * (-len(data) % 4)).decode("utf-8")
        return shown


def in_order(members: JsonObject) -> list[str]:
    """Member names in JCS order: by UTF-16 code units (RFC 8785 §3.2.3)."""
    names = list(members)
    if all(map(str.isascii, names)):
        names.sort()
    else:
        names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return names
