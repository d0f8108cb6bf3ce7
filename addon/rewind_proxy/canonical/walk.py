"""Steps 4, 5 and 10 on the values of a request: media to digests, text leaves to placeholders."""

from __future__ import annotations

import hashlib

from rewind_proxy.canonical.cache import TextCache
from rewind_proxy.canonical.linking import linking_id
from rewind_proxy.canonical.model import SEALS, JsonObject, JsonValue, MatchSettings, Message
from rewind_proxy.canonical.paths.roots import Root
from rewind_proxy.canonical.pointer import Pointer
from rewind_proxy.canonical.redaction.places import plain_bytes
from rewind_proxy.canonical.scrub import LINKING_ID, PLACE_OF_ROLE, Numbering, Place, Scrubber, Verbatim

# Members that are never scanned for noise: signatures are bytes, and what a provider keeps under an id is
# meaning (DESIGN §5).
_UNSCANNED = frozenset(
    (
        "signature thoughtSignature encrypted_content previous_response_id file_id file_ids vector_store_id "
        "vector_store_ids container_id cachedContent cached_content skill_id assistant_id knowledge_base_id "
        "knowledge_base_ids connector_id"
    ).split()
)
# The same in what a wire defines. In a tool's arguments and schema, where names are the tool's own, these are
# anything: there a `url` may be a file of the project.
_REFERENCES = _UNSCANNED | frozenset(
    (
        "id ids container conversation conversation_id thread_id response_id item_id prompt_id agent_id "
        "app_id project_id dataset_id dataset_ids collection_id corpus_id index_id document_id document_ids "
        "voice_id image_id cache_id url uri image_url file_url video_url audio_url server_url fileUri "
        "file_uri gcs_uri gcsUri s3Uri fileId fileIds vectorStoreIds knowledgeBaseId"
    ).split()
)
# An object of its own, for what stands below `arguments` is not folded (`text.composed`).
_ARGUMENTS = frozenset([*_UNSCANNED])
_TOOLS_OWN = {"arguments": _ARGUMENTS, "parameters": _UNSCANNED, "input_schema": _UNSCANNED}
# Where linking ids stand beside the `id` of a call or result: in what an adapter knows no better, and in the
# `caller` of a call that a program made (Anthropic).
_LINKS: dict[JsonValue, tuple[str, tuple[str, ...]]] = {
    "opaque": ("value", ("approval_request_id", "call_id", "tool_call_id", "tool_use_id")),
    "tool_call": ("caller", ("tool_id",)),
    "tool_result": ("caller", ("tool_id",)),
}
# Members of a part, and parameters, that name something or are kept byte for byte.
_NAMES = frozenset(
    (
        "type name model endpoint_path endpoint_query endpoint_model "
        "generic_method generic_host generic_path generic_query generic_body"
    ).split()
)

_AS_IT_IS = Verbatim(MatchSettings())

_MEDIA = 8_000_000
"""Characters of media that are kept: a screenshot may be some megabytes."""


class MediaDigests:
    """Digests of base64 media, kept in a bounded cache: an agent sends its pictures again on every turn."""

    def __init__(self) -> None:
        self._known: TextCache[str, str] = TextCache(_MEDIA)

    def digest(self, data: str) -> str | None:
        """sha256 of the bytes in base64 however it is spelt (`plain_bytes`), hex; None when it is broken."""
        digest = self._known.get(data)
        if digest is None:
            raw = plain_bytes(data)
            if raw is None:
                return None
            digest = hashlib.sha256(raw).hexdigest()
            self._known.put(data, digest, len(data))
        return digest


class Walk:
    """Steps 4, 5 and 10 over one request: media to digests, text to placeholders, in canonical order."""

    __slots__ = ("_media_digests", "_numbering", "_rooted", "_roots", "_scrubber")

    def __init__(
        self,
        scrubber: Scrubber,
        media: MediaDigests,
        numbering: Numbering,
        roots: tuple[Root, ...],
        rooted: object = None,
    ) -> None:
        """`rooted` stands for the roots (`Scrubber.leaf`)."""
        self._scrubber = scrubber
        self._media_digests = media
        self._numbering = numbering
        self._roots = roots
        self._rooted = rooted

    def message(self, message: Message, at: Pointer) -> JsonObject:
        """A message, with the places of its parts below `at`."""
        place = PLACE_OF_ROLE[message.role]
        parts = at.member("parts")
        return {
            "role": message.role,
            "parts": [self.part(part, place, parts.item(index)) for index, part in enumerate(message.parts)],
        }

    def part(self, part: JsonObject, place: Place, at: Pointer) -> JsonObject:
        kind = part.get("type")
        if kind == "reasoning" and any(part.get(name) for name in SEALS):
            # Re-basing leaves it alone (DESIGN §8), so a session that was moved sends it back as it was.
            return Walk(_AS_IT_IS, self._media_digests, self._numbering, ()).named(part, place, at)
        if kind not in _LINKS:
            return self.named(part, place, at)
        member, names = _LINKS[kind]
        holder = part.get(member)
        ids: JsonObject = {}
        if isinstance(holder, dict) and isinstance(holder.get("type"), str):
            ids = {name: holder[name] for name in names if holder.get(name)}
        rest: JsonObject = {name: value for name, value in part.items() if name != "id"}
        if ids and isinstance(holder, dict):
            rest[member] = {name: value for name, value in holder.items() if name not in ids}
        shown = self.named(rest, place, at)
        if kind != "opaque":
            shown["id"] = self._linking_id(part.get("id"), at.member("id"))
        if ids and isinstance(inner := shown[member], dict):
            inner |= {
                name: self._linking_id(value, at.member(member).member(name)) for name, value in ids.items()
            }
        return shown

    def named(self, value: JsonObject, place: Place, at: Pointer) -> JsonObject:
        """An envelope object of ours: members that name something are left as they are."""
        if value.get("type") == "media":
            value = self._media(value)
        return {
            name: value[name]
            if name in _NAMES
            else self._below(value[name], name, place, at, name, _REFERENCES)
            for name in in_order(value)
        }

    def value(
        self,
        value: JsonObject | list[JsonValue],
        member: str,
        place: Place,
        at: Pointer,
        unscanned: frozenset[str] = _REFERENCES,
    ) -> JsonValue:
        """`value` with its text leaves scrubbed, in canonical order, so that equal JSON is numbered alike.

        `unscanned` are names of members that are left as they are.
        """
        if isinstance(value, dict):
            if value.get("type") == "media":
                value = self._media(value)
            return {
                name: self._below(value[name], name, place, at, name, unscanned) for name in in_order(value)
            }
        return [self._below(item, member, place, at, index, unscanned) for index, item in enumerate(value)]

    def _below(
        self,
        value: JsonValue,
        member: str,
        place: Place,
        above: Pointer,
        step: str | int,
        unscanned: frozenset[str],
    ) -> JsonValue:
        """The same of what stands at a step below `above`: places are made for containers and slots alone."""
        if isinstance(value, str):
            if member in unscanned:
                return value
            as_written = unscanned is _ARGUMENTS or (member == "arguments" and unscanned is _REFERENCES)
            leaf = self._scrubber.leaf(value, member, place, self._roots, self._rooted, as_written=as_written)
            captured = self._numbering.captured
            if captured.by_word and self._scrubber.follows:
                leaf = captured.follow(leaf)
            return self._numbering.render(leaf, Pointer(above, step) if leaf.spans else above)
        if isinstance(value, dict | list):
            below = _TOOLS_OWN.get(member, unscanned) if unscanned is _REFERENCES else unscanned
            return self.value(value, member, place, Pointer(above, step), below)
        return value

    def _linking_id(self, sent: JsonValue, at: Pointer) -> str:
        return self._numbering.take(LINKING_ID, "id", linking_id(sent), at)

    def _media(self, part: JsonObject) -> JsonObject:
        """Step 4: media become the digest of their bytes, in an object, which no text of a wire can be."""
        data = part.get("data")
        if data is None:
            return part
        if not isinstance(data, str):
            return {**part, "data": [data]}  # so that none is taken for the digest of another
        digest = self._media_digests.digest(data)
        return part if digest is None else {**part, "data": {"sha256": digest}}


def in_order(members: JsonObject) -> list[str]:
    """Member names in JCS order: by UTF-16 code units (RFC 8785 §3.2.3)."""
    names = list(members)
    if all(map(str.isascii, names)):
        names.sort()
    else:
        names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return names
