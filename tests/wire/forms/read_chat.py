"""Reads answers with OpenAI's SDK in every way it has, and prints what a user of it sees.

Runs in the environment of the SDKs: `read_chat.py openai ADDRESS CASE…`, a case being `<name>.<form>`.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

ARGUMENTS: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Go on."}]}
KEY: dict[str, Any] = {"api_key": "none", "max_retries": 0}
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def seen(completion: Any) -> Any:
    """A completion as it is typed, validated strictly."""
    hidden = {"choices": {"__all__": {"message": {"parsed": True}}}}  # of the helper
    known = ChatCompletion.model_validate(completion.model_dump(exclude=hidden, warnings=False))
    return [
        {
            "text": choice.message.content,
            "refusal": choice.message.refusal,
            "reasoning": getattr(choice.message, "reasoning_content", None),
            "calls": [told(call) for call in choice.message.tool_calls or []],
            "sources": [
                [source.url_citation.url, source.url_citation.start_index, source.url_citation.end_index]
                for source in choice.message.annotations or []
            ],
            "finish": choice.finish_reason,
            "usage": counted(known.usage),
        }
        for choice in known.choices
    ]


def told(call: Any) -> Any:
    """A call: its id, name and arguments."""
    if call.type == "custom":
        made = call.custom if isinstance(call.custom, dict) else call.custom.model_dump()
        return [call.id, made["name"], made["input"]]
    return [call.id, call.function.name, call.function.arguments]


def counted(usage: Any) -> Any:
    """The tokens."""
    if usage is None:
        return None
    details = usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens
    return [usage.prompt_tokens, usage.completion_tokens, *details]


def joined(chunks: list[Any]) -> Any:
    """What a user puts together from the chunks of `create(stream=True)`, each validated strictly."""
    choices: dict[int, dict[str, Any]] = {}
    usage = None
    for chunk in chunks:
        usage = counted(chunk.usage) or usage
        custom = False
        for choice in chunk.choices:
            found = choices.setdefault(choice.index, {**EMPTY, "calls": [], "sources": []})
            custom |= add(found, choice.delta)
            found["finish"] = choice.finish_reason or found["finish"]
        if not custom:  # which the SDK's types of chunks do not know yet
            ChatCompletionChunk.model_validate(chunk.model_dump())
    return [{**found, "usage": usage} for found in choices.values()]


EMPTY: dict[str, Any] = {"text": None, "refusal": None, "reasoning": None, "finish": None}


def add(found: dict[str, Any], delta: Any) -> bool:
    """One delta; tells whether it is of a custom call."""
    said = {"text": delta.content, "refusal": delta.refusal}
    said["reasoning"] = getattr(delta, "reasoning_content", None)
    for name, piece in said.items():
        if piece:
            found[name] = (found[name] or "") + piece
    for source in getattr(delta, "annotations", None) or []:
        cited = source["url_citation"]
        found["sources"].append([cited["url"], cited["start_index"], cited["end_index"]])
    custom = False
    for call in delta.tool_calls or []:
        if call.index == len(found["calls"]):
            found["calls"].append([call.id, "", ""])
        made = getattr(call, "custom", None)
        custom |= made is not None
        name, source = ("name", "input") if made else ("name", "arguments")
        made = made or call.function.model_dump()
        found["calls"][call.index][1] += made.get(name) or ""
        found["calls"][call.index][2] += made.get(source) or ""
    return custom


def read(client: Any, streams: bool) -> dict[str, Any]:
    """Every synchronous way."""
    if not streams:
        return {"create": seen(client.chat.completions.create(**ARGUMENTS))}
    stream = list(client.chat.completions.create(**ARGUMENTS, **USAGE, stream=True))
    with client.chat.completions.stream(**ARGUMENTS, **USAGE) as helper:
        events = list(helper)
        snapshot = helper.current_completion_snapshot
        final = snapshot if refused(snapshot) else helper.get_final_completion()
    kinds = sorted({event.type for event in events})
    return {"stream": joined(stream), "helper": seen(final), "events": kinds}


async def read_later(client: Any, streams: bool) -> dict[str, Any]:
    """Every asynchronous way."""
    if not streams:
        return {"async create": seen(await client.chat.completions.create(**ARGUMENTS))}
    stream = await client.chat.completions.create(**ARGUMENTS, **USAGE, stream=True)
    chunks = [chunk async for chunk in stream]
    async with client.chat.completions.stream(**ARGUMENTS, **USAGE) as helper:
        await helper.until_done()
        snapshot = helper.current_completion_snapshot
        final = snapshot if refused(snapshot) else await helper.get_final_completion()
    return {"async stream": joined(chunks), "async helper": seen(final)}


def refused(completion: Any) -> bool:
    """Whether the helper gives no final completion: one that was cut or filtered, or has custom calls."""
    return any(
        choice.finish_reason in ("length", "content_filter")
        or any(call.type == "custom" for call in choice.message.tool_calls or [])
        for choice in completion.choices
    )


async def main(address: str, cases: list[str]) -> None:
    """Read every case, and print what was seen."""
    client = openai.OpenAI(**KEY)
    found = {}
    async with openai.AsyncOpenAI(**KEY) as later:
        for case in cases:
            at, streams = {"base_url": f"{address}/{case}"}, case.endswith(".sse")
            found[case] = read(client.with_options(**at), streams)
            found[case] |= await read_later(later.with_options(**at), streams)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2], sys.argv[3:]))
