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
Addresses = dict[str, str]
Read = dict[str, dict[str, Any]]


def invalid(adapter: TypeAdapter[Any], values: list[Any]) -> list[str]:
    """What the type does not accept of these values."""
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


def of_openai(addresses: Addresses) -> Read:
    import openai
    from openai.types.responses import Response, ResponseStreamEvent

    options: Asked = {"api_key": "none", "max_retries": 0}
    asked: Asked = {"model": "m", "input": "hello"}
    client = openai.OpenAI(**options)
    whole: TypeAdapter[Any] = TypeAdapter(Response)
    events: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    found: Read = {}
    for case, address in addresses.items():
        at = client.with_options(base_url=f"{address}/v1").responses
        read = found[case] = {"whole": dumped(at.create(**asked))}
        read["events"] = [dumped(event) for event in at.create(**asked, stream=True)]
        with at.stream(**asked) as stream:
            for event in stream:
                if event.type in ("response.completed", "response.incomplete"):
                    read["helper"] = read["final"] = dumped(event.response)
            if read["helper"]["status"] == "completed":
                read["final"] = dumped(stream.get_final_response())
        read["invalid"] = invalid(whole, [read["whole"]]) + invalid(events, read["events"])

    async def ask() -> None:
        async with openai.AsyncOpenAI(**options) as client:
            for case, address in addresses.items():
                at, read = client.with_options(base_url=f"{address}/v1").responses, found[case]
                read["async_whole"] = dumped(await at.create(**asked))
                read["async_events"] = [
                    dumped(event) async for event in await at.create(**asked, stream=True)
                ]
                async with at.stream(**asked) as stream:
                    seen = [event async for event in stream]
                read["async_helper"] = dumped(seen[-1].response)

    asyncio.run(ask())
    return found


def of_anthropic(addresses: Addresses) -> Read:
    import anthropic
    from anthropic.types import Message, RawMessageStreamEvent

    options: Asked = {"api_key": "none", "max_retries": 0}
    asked: Asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    client = anthropic.Anthropic(**options)
    whole: TypeAdapter[Any] = TypeAdapter(Message)
    events: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    found: Read = {}
    for case, address in addresses.items():
        at = client.with_options(base_url=address).messages
        read = found[case] = {"whole": dumped(at.create(**asked))}
        read["events"] = [dumped(event) for event in at.create(**asked, stream=True)]
        with at.stream(**asked) as stream:
            list(stream)
            read["helper"] = read["final"] = dumped(stream.get_final_message())
        read["invalid"] = invalid(whole, [read["whole"]]) + invalid(events, read["events"])

    async def ask() -> None:
        async with anthropic.AsyncAnthropic(**options) as client:
            for case, address in addresses.items():
                at, read = client.with_options(base_url=address).messages, found[case]
                read["async_whole"] = dumped(await at.create(**asked))
                read["async_events"] = [
                    dumped(event) async for event in await at.create(**asked, stream=True)
                ]
                async with at.stream(**asked) as stream:
                    read["async_helper"] = dumped(await stream.get_final_message())

    asyncio.run(ask())
    return found


if __name__ == "__main__":
    sdk, server, *cases = sys.argv[1:]
    addresses = {case: f"{server}/{case}" for case in cases}
    print(json.dumps({"openai": of_openai, "anthropic": of_anthropic}[sdk](addresses)))
