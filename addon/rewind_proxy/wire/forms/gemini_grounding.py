"""Citations as Gemini has them: sources of the whole candidate, and segments of its parts that rest on them.

Google's reference of `GroundingMetadata`: a segment's places count bytes of UTF-8 in the part `partIndex`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.wire import answers

Cited: TypeAlias = tuple[int, str, list[JsonObject]]
"""A part: its index in the content, its text, and its citations (with a `url`)."""


def grounding(cited: list[Cited]) -> JsonObject:
    """The `groundingMetadata` that says these citations; one without a place is a source nothing rests on."""
    sources: dict[tuple[str, str], int] = {}
    supports: list[JsonValue] = []
    for index, text, citations in cited:
        ends = _ends(text)
        for citation in citations:
            source = (str(citation["url"]), str(citation.get("title") or ""))
            number = sources.setdefault(source, len(sources))
            start, end = citation.get("start"), citation.get("end")
            if isinstance(start, int) and isinstance(end, int):
                start, end = max(0, start), max(0, end)
                segment: JsonObject = {
                    "partIndex": index,
                    "startIndex": ends[min(start, len(text))],
                    "endIndex": ends[min(end, len(text))],
                    "text": text[start:end],
                }
                supports.append({"segment": segment, "groundingChunkIndices": [number]})
    chunks: list[JsonValue] = [
        {"web": {"uri": url, **({"title": title} if title else {})}} for url, title in sources
    ]
    return {"groundingChunks": chunks, **({"groundingSupports": supports} if supports else {})}


def _ends(text: str) -> Sequence[int]:
    """How many bytes the first 0, 1, 2 … characters of a text take, up to all of them."""
    if text.isascii():
        return range(len(text) + 1)
    sizes = (len(character.encode("utf-8", "surrogatepass")) for character in text)
    return tuple(accumulate(sizes, initial=0))


def citations(metadata: JsonValue, texts: dict[int, str]) -> dict[int, list[JsonValue]]:
    """The citations of each text by its part's index; `texts` are the candidate's, without its thoughts."""
    if not isinstance(metadata, dict) or not texts:
        return {}
    sources = [_source(chunk) for chunk in answers.objects(metadata.get("groundingChunks"))]
    found: dict[int, list[JsonValue]] = {}
    used: set[int] = set()
    measured = {index: (text, _ends(text)) for index, text in texts.items()}
    for support in answers.objects(metadata.get("groundingSupports")):
        segment, numbers = support.get("segment"), support.get("groundingChunkIndices")
        place = _place(segment, measured) if isinstance(segment, dict) else None
        for number in numbers if isinstance(numbers, list) and place else []:
            if isinstance(number, int) and 0 <= number < len(sources) and place:
                used.add(number)
                index, start, end = place
                if source := sources[number]:
                    found.setdefault(index, []).append({**source, "start": start, "end": end})
    for number, source in enumerate(sources):
        if source and number not in used:
            found.setdefault(max(texts), []).append(source)
    return found


def _source(chunk: JsonObject) -> JsonObject:
    web = chunk.get("web")
    if not isinstance(web, dict) or not isinstance(url := web.get("uri"), str):
        return {}
    title = answers.string(web.get("title"))
    return {"url": url, "title": title} if title else {"url": url}


def _place(segment: JsonObject, texts: dict[int, tuple[str, Sequence[int]]]) -> tuple[int, int, int] | None:
    """The part and the characters of a segment: in the part it names, else where its words stand."""
    first, last = answers.count(segment.get("startIndex")), answers.count(segment.get("endIndex"))
    named = answers.count(segment.get("partIndex"))
    words = segment.get("text")
    for index in (named, *(index for index in texts if index != named)):
        text, ends = texts.get(index, ("", ()))
        start, end = _character(ends, first), _character(ends, last)
        # A place past the text, or inside a character, is none of this text.
        if start is None or end is None or start > end:
            continue
        if words in (None, "", text[start:end]):
            return index, start, end
    return None


def _character(ends: Sequence[int], place: int) -> int | None:
    """The character that begins at a byte; None when none does."""
    index = bisect_left(ends, place)
    return index if index < len(ends) and ends[index] == place else None
