"""The parts of a Gemini answer: each response in a stream holds the next pieces of the parts."""

from __future__ import annotations

from collections.abc import Hashable

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.rebasing.document import Path
from rewind_proxy.matching.rebasing.parts import UNCOUNTED, Part, Parts, label, members


class GeminiParts:
    """Reads whole responses, and those of a stream one after another."""

    def __init__(self, parts: Parts, *, streamed: bool) -> None:
        self._parts = parts
        self._streamed = streamed
        self._runs: dict[Hashable, list[str]] = {}
        """Of each candidate, what its parts are (`text`, `thought`, `call`, `other`).

        Pieces of one are one part. Vertex sends a call in pieces as well: only the first has the name.
        """

    def read(self, value: JsonObject, base: Path, name: str) -> None:  # noqa: ARG002  # its events have none
        """See `Reader.read`."""
        inner = value.get("response")  # Code Assist wraps it
        if isinstance(inner, dict):
            value, base = inner, (*base, "response")
        for place, candidate in members(value.get("candidates")):
            index = label(candidate.get("index", place))
            path = (*base, "candidates", place)
            content = candidate.get("content")
            if isinstance(content, dict):
                for number, part in members(content.get("parts")):
                    self._part(part, (*path, "content", "parts", number), index)
            self._grounding(candidate.get("groundingMetadata"), (*path, "groundingMetadata"), index)
            self._citations(candidate.get("citationMetadata"), (*path, "citationMetadata"), index)

    def _part(self, part: JsonObject, path: Path, candidate: Hashable) -> None:
        runs = self._runs.setdefault(candidate, [])
        call = part.get("functionCall")
        kind = "call" if isinstance(call, dict) else "other"
        if "text" in part:
            kind = "thought" if part.get("thought") is True else "text"
        begins = kind == "other" or (isinstance(call, dict) and "name" in call)
        if begins or not (self._streamed and runs and runs[-1] == kind):
            runs.append(kind)
        owner = (kind, candidate, len(runs) - 1)
        if kind == "thought" and part.get("thoughtSignature"):
            self._parts.sealed.add(owner)
        self._parts.add((owner,), "text", (*path, "text"), part.get("text"), joined=True)
        code, result = part.get("executableCode"), part.get("codeExecutionResult")
        if isinstance(call, dict):
            self._parts.add_json((owner,), (*path, "functionCall", "args"), call.get("args"))
            for place, piece in members(call.get("partialArgs")):
                at = (*path, "functionCall", "partialArgs", place, "stringValue")
                argument = (owner, label(piece.get("jsonPath")))
                self._parts.add(argument, "text", at, piece.get("stringValue"), joined=True)
        if isinstance(code, dict):
            self._parts.add((owner,), "code", (*path, "executableCode", "code"), code.get("code"))
        if isinstance(result, dict):
            at = (*path, "codeExecutionResult", "output")
            self._parts.add((owner,), "text", at, result.get("output"))

    def _grounding(self, grounding: JsonValue, path: Path, candidate: Hashable) -> None:
        """Segments of a part's text: their places count bytes in it."""
        supports = grounding.get("groundingSupports") if isinstance(grounding, dict) else None
        for place, support in members(supports):
            segment = support.get("segment")
            if not isinstance(segment, dict):
                continue
            at = (*path, "groundingSupports", place, "segment")
            number = segment.get("partIndex", 0)
            self._parts.add(UNCOUNTED, "text", (*at, "text"), segment.get("text"))
            for member in ("startIndex", "endIndex"):
                part: Part = (("text", candidate, number if isinstance(number, int) else 0),)
                self._parts.offset(part, (*at, member), segment.get(member), "bytes")

    def _citations(self, citations: JsonValue, path: Path, candidate: Hashable) -> None:
        """Sources of the answer's text, which starts after the thoughts."""
        runs = self._runs.get(candidate, [])
        part: Part = (("text", candidate, runs.index("text") if "text" in runs else 0),)
        for name in ("citationSources", "citations"):
            for place, source in members(citations.get(name) if isinstance(citations, dict) else None):
                for member in ("startIndex", "endIndex"):
                    self._parts.offset(part, (*path, name, place, member), source.get(member), "bytes")
