"""Why a request has no answer: the nearest recording, the first difference, what would have matched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.matching.comparison import MANY, compare
from rewind_proxy.matching.difference import Difference
from rewind_proxy.matching.reading import Reading, RequestReader
from rewind_proxy.store import Nearest, Store
from rewind_proxy.store.records import CassetteRecord
from rewind_proxy.visible import safe

NEVER = "Nothing like it was ever recorded"
ALIKE = 0.3
"""The likeness of messages from which on a recording is near: a third of their words, about."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A miss, ready for a person: `reason` is one sentence, everything in it is redacted."""

    reason: str
    nearest: str | None = None
    difference: Difference | None = None
    would_match_with: tuple[str, ...] = ()
    shared: int = 0
    """How many messages at its start are those of the nearest recording: the longest common prefix."""
    messages: int = 0
    """Of how many."""
    pending: str | None = field(default=None, compare=False)
    """The id of the pending request that it becomes."""

    def to_json(self) -> JsonObject:
        """`{"reason", "nearest", "difference", "would_match_with", "shared", "messages", "pending"}`."""
        return {
            "reason": self.reason,
            "nearest": self.nearest,
            "difference": self.difference.to_json() if self.difference else None,
            "would_match_with": list(self.would_match_with),
            "shared": self.shared,
            "messages": self.messages,
            "pending": self.pending,
        }

    def text(self) -> str:
        """What the client's screen and the proxy's log show after `rewind: no recording`."""
        lines = [self.reason]
        if self.nearest:
            lines.append(f"Nearest recording: {self.nearest[:12]}.")
        if self.difference:
            lines.append(
                f"First difference: {self.difference.path}\n"
                f"  recorded: {self.difference.a}\n"
                f"  live:     {self.difference.b}"
            )
        if self.would_match_with:
            lines.append(f"Would match with: {'; '.join(self.would_match_with)}.")
        if self.pending:
            lines.append(f"To answer it: rewind review {self.pending[:12]}")
        return safe("\n".join(lines))


def explain_miss(
    reading: Reading,
    reader: RequestReader,
    store: Store,
    weakest: Literal["normalised", "exact"] = "normalised",
) -> Miss:
    """The miss report of a request that nothing in the store answers; `weakest` is the setting `match`."""
    if reading.normalised is None:
        return Miss(
            "Nothing with the same body was recorded for this endpoint (it is matched byte for byte)."
        )
    found = store.nearest(reading.links, reading.sketched)
    if found is None or not _alike(found, reading):
        return Miss(NEVER + ".")
    cassette = found.record
    stored = reader.read_stored(cassette, store.request_body(cassette))
    if stored.normalised is None:
        return Miss(NEVER + ".")
    comparison = compare(stored, reading, reader, weakest)
    if comparison.tier is not None:
        return Miss(
            "The nearest recording is the same under these settings, but is not in their index.",
            cassette.id,
            would_match_with=("rewind maintain",),
        )
    return Miss(
        _reason(found, stored, reading, len(comparison.differences)),
        cassette.id,
        comparison.differences[0] if comparison.differences else None,
        comparison.would_match_with,
        *shared_messages(found.shared, reading),
    )


def shared_messages(links: int, reading: Reading) -> tuple[int, int]:
    """How many messages at its start another shares that has so many `links` of its chain; of how many."""
    kept = reading.normalised.shown.kept().messages if reading.normalised else ()
    # The first link stands for the tools and the leading system message, each other one for a message.
    leading = bool(kept and kept[0].role == "system")
    return links - 1 + leading if links else 0, len(kept)


def _alike(found: Nearest, reading: Reading) -> bool:
    """Whether the nearest recording is one that a person would call near."""
    if found.shared > 1:
        return True
    if reading.endpoint.wire == "generic":
        return False  # another endpoint
    return found.likeness >= ALIKE or (found.shared == 1 and _has_head(reading))


def _has_head(reading: Reading) -> bool:
    """Whether the first link of the chain stands for anything: a system prompt, tools."""
    request = reading.canonical
    return request is not None and bool(
        request.tools or (request.messages and request.messages[0].role == "system")
    )


def _reason(found: Nearest, stored: Reading, reading: Reading, count: int) -> str:
    if found.shared == 1 and found.likeness < ALIKE:
        return f"{NEVER}: the nearest recording shares its system prompt and tools, and no message."
    recorded, asked = stored.endpoint.operation, reading.endpoint.operation
    if recorded != asked:
        return f"The nearest recording was recorded as {recorded}, and is asked for as {asked}."
    places = f"{count} places or more" if count >= MANY else f"{count} places" if count > 1 else "one place"
    return f"The nearest recording differs in {places}."


def unusable(reason: str, candidates: tuple[CassetteRecord, ...], reading: Reading) -> Miss:
    """The miss of a request that was recorded, but whose recordings cannot answer it."""
    last = candidates[-1]
    if reason == "format":
        recorded, asked = last.request, reading.record
        return Miss(
            f"format: it was recorded as {recorded.wire} ({recorded.form}), "
            f"and is asked for as {asked.wire} ({asked.form}).",
            last.id,
            would_match_with=(f"a request for {recorded.wire} ({recorded.form})",),
        )
    if reason == "length":
        limit = last.request.params.get("max_tokens")
        return Miss(
            "length: the recorded answer was cut at its token limit, and this request allows more.",
            last.id,
            would_match_with=(f"max_tokens = {limit} or less",),
        )
    return Miss(
        f"exhausted: it was recorded {len(candidates)} times, and each was used in this session.",
        last.id,
        would_match_with=("exhausted = last",),
    )
