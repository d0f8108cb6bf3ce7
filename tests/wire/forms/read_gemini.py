"""Reads answers with Google's SDK in every way it has, and prints what a user of it sees.

Runs in the environment of the SDKs: `read_gemini.py gemini ADDRESS CASE…`, a case being `<name>.<form>`.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any

from google import genai
from google.genai import types

ARGUMENTS: dict[str, Any] = {"model": "m", "contents": "Go on."}


def seen(responses: list[Any]) -> Any:
    """What a user puts together from the responses of a stream, or from one."""
    candidates: dict[int, dict[str, Any]] = {}
    usage = None
    for response in responses:
        counts = response.usage_metadata
        if counts is not None:
            thought = counts.thoughts_token_count or 0
            usage = [
                counts.prompt_token_count,
                counts.candidates_token_count + thought,
                counts.cached_content_token_count or 0,
                thought,
            ]
        for candidate in response.candidates:
            empty: dict[str, Any] = {
                "text": "",
                "reasoning": "",
                "signatures": [],
                "calls": [],
                "sources": [],
                "finish": None,
            }
            found = candidates.setdefault(candidate.index or 0, empty)
            for part in candidate.content.parts or []:
                add(found, part)
            grounding = candidate.grounding_metadata
            for support in (grounding.grounding_supports or []) if grounding else []:
                source = grounding.grounding_chunks[support.grounding_chunk_indices[0]].web
                place = support.segment
                found["sources"].append([source.uri, place.start_index, place.end_index, place.text])
            found["finish"] = candidate.finish_reason or found["finish"]
    return [{**found, "usage": usage} for found in candidates.values()]


def add(found: dict[str, Any], part: Any) -> None:
    """One part."""
    if part.text is not None:
        found["reasoning" if part.thought else "text"] += part.text
    if part.thought_signature is not None:
        found["signatures"].append(base64.b64encode(part.thought_signature).decode())
    if part.function_call is not None:
        call = part.function_call
        found["calls"].append([call.id, call.name, call.args])


def read(client: Any, at: Any, streams: bool) -> dict[str, Any]:
    """Every synchronous way."""
    models = client.models
    if not streams:
        return {"generate": seen([models.generate_content(**ARGUMENTS, config=at)])}
    responses = list(models.generate_content_stream(**ARGUMENTS, config=at))
    texts = "".join(response.text or "" for response in responses)
    chat = list(client.chats.create(model="m", config=at).send_message_stream("Go on."))
    return {"stream": seen(responses), "texts": texts, "chat": seen(chat)}


async def read_later(client: Any, at: Any, streams: bool) -> dict[str, Any]:
    """Every asynchronous way."""
    models = client.models
    if not streams:
        return {"async generate": seen([await models.generate_content(**ARGUMENTS, config=at)])}
    stream = await models.generate_content_stream(**ARGUMENTS, config=at)
    responses = [response async for response in stream]
    chat = await client.chats.create(model="m", config=at).send_message_stream("Go on.")
    return {"async stream": seen(responses), "async chat": seen([response async for response in chat])}


async def main(address: str, cases: list[str]) -> None:
    """Read every case, and print what was seen."""
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=address))
    found = {}
    for case in cases:
        options = types.HttpOptions(base_url=f"{address}/{case}")
        at, streams = types.GenerateContentConfig(http_options=options), case.endswith(".sse")
        found[case] = read(client, at, streams) | await read_later(client.aio, at, streams)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2], sys.argv[3:]))
