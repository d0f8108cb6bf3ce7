"""Reads answers with OpenAI's or Anthropic's SDK in every way it has; prints what it returned, as JSON.

Runs in the environment of the SDKs: `read_typed_sdk.py openai|anthropic ADDRESS CASE…`. For each case:
`whole`, `events` (of `create(stream=True)`) and `helper` (the last answer that `.stream()` tells), the same
as `async_…`, `final` (what the helper returns when asked), and `invalid` (what the SDK's own types reject).
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from pydantic import TypeAdapter, ValidationError

Asked = dict[str, Any]


def invalid(kind: Any, values: list[Any]) -> list[str]:
    """What the type does not accept of these values."""
    adapter = TypeAdapter(kind)
    found = []
    for value in values:
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            found.append(f"{value}: {error}")
    return found


def dumped(value: Any) -> Any:
    """JSON of what the SDK returned, as it was sent."""
    return value.model_dump(mode="json", exclude_unset=True, by_alias=True, warnings=False)


def openai_case(address: str) -> dict[str, Any]:
    import openai
    from openai.types.responses import Response, ResponseStreamEvent

    options: Asked = {"base_url": f"{address}/v1", "api_key": "none", "max_retries": 0}
    asked: Asked = {"model": "m", "input": "hello"}
    client = openai.OpenAI(**options)
    whole = dumped(client.responses.create(**asked))
    events = [dumped(event) for event in client.responses.create(**asked, stream=True)]
    helper = None
    with client.responses.stream(**asked) as stream:
        for event in stream:
            if event.type in ("response.completed", "response.incomplete"):
                helper = dumped(event.response)
        final = dumped(stream.get_final_response()) if helper and helper["status"] == "completed" else helper

    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(**options) as later:
            one = dumped(await later.responses.create(**asked))
            told = [dumped(event) async for event in await later.responses.create(**asked, stream=True)]
            async with later.responses.stream(**asked) as stream:
                seen = [event async for event in stream]
            return [one, told, dumped(seen[-1].response)]

    async_whole, async_events, async_helper = asyncio.run(ask())
    return {
        "whole": whole,
        "events": events,
        "helper": helper,
        "final": final,
        "async_whole": async_whole,
        "async_events": async_events,
        "async_helper": async_helper,
        "invalid": invalid(Response, [whole]) + invalid(ResponseStreamEvent, events),
    }


def anthropic_case(address: str) -> dict[str, Any]:
    import anthropic
    from anthropic.types import Message, RawMessageStreamEvent

    options: Asked = {"base_url": address, "api_key": "none", "max_retries": 0}
    asked: Asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    client = anthropic.Anthropic(**options)
    whole = dumped(client.messages.create(**asked))
    events = [dumped(event) for event in client.messages.create(**asked, stream=True)]
    with client.messages.stream(**asked) as stream:
        list(stream)
        helper = final = dumped(stream.get_final_message())

    async def ask() -> list[Any]:
        async with anthropic.AsyncAnthropic(**options) as later:
            one = dumped(await later.messages.create(**asked))
            told = [dumped(event) async for event in await later.messages.create(**asked, stream=True)]
            async with later.messages.stream(**asked) as stream:
                return [one, told, dumped(await stream.get_final_message())]

    async_whole, async_events, async_helper = asyncio.run(ask())
    return {
        "whole": whole,
        "events": events,
        "helper": helper,
        "final": final,
        "async_whole": async_whole,
        "async_events": async_events,
        "async_helper": async_helper,
        "invalid": invalid(Message, [whole]) + invalid(RawMessageStreamEvent, events),
    }


if __name__ == "__main__":
    sdk, server, *cases = sys.argv[1:]
    read = {"openai": openai_case, "anthropic": anthropic_case}[sdk]
    print(json.dumps({case: read(f"{server}/{case}") for case in cases}))
