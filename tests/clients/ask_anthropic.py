"""What a user of Anthropic's SDK does, case by case; prints one JSON object of what the SDK returned.

Runs in the environment of the SDKs. `ask_anthropic.py refused` asks what no recording answers.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import anthropic

MODEL = "claude-fake"
TOOLS: Any = [
    {
        "name": "shell",
        "description": "Run a command.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    }
]

client = anthropic.Anthropic()


def asked(text: str) -> Any:
    """The arguments of a request with one user message."""
    return {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": text}]}


def whole() -> object:
    return client.messages.create(**asked("This is the case whole."), system="You are terse.")


def stream() -> object:
    return list(client.messages.create(**asked("This is the case stream."), stream=True))


def stream_helper() -> object:
    with client.messages.stream(**asked("This is the case stream_helper.")) as events:
        return [list(events), events.get_final_message()]


def tool() -> object:
    request = asked("Please run `echo tool`.")
    first = client.messages.create(**request, tools=TOOLS)
    return [first, client.messages.create(**answered(request, first, "tool"), tools=TOOLS)]


def tool_stream() -> object:
    request = asked("Please run `echo tool_stream`.")
    with client.messages.stream(**request, tools=TOOLS) as events:
        first = events.get_final_message()
    with client.messages.stream(**answered(request, first, "tool_stream"), tools=TOOLS) as events:
        return [first, list(events)]


def answered(request: Any, first: Any, output: str) -> Any:
    """The request that follows a tool call."""
    call = next(block for block in first.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": output}
    turn = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
    return {**request, "messages": [*request["messages"], turn, {"role": "user", "content": [result]}]}


def thinking() -> object:
    request = asked("This is the case thinking.") | {"max_tokens": 5000}
    with client.messages.stream(**request, thinking={"type": "enabled", "budget_tokens": 1024}) as events:
        return events.get_final_message()


def count_tokens() -> object:
    messages = asked("This is the case count_tokens.")["messages"]
    return client.messages.count_tokens(model=MODEL, messages=messages)


def asynchronous() -> object:
    async def ask() -> object:
        async with anthropic.AsyncAnthropic() as later:
            message = await later.messages.create(**asked("This is the case async."))
            async with later.messages.stream(**asked("This is the case async stream.")) as events:
                return [message, await events.get_final_message()]

    return asyncio.run(ask())


def refused() -> object:
    try:
        client.messages.create(**asked("Nobody has recorded this."))
    except anthropic.BadRequestError as error:
        return {"error": type(error).__name__, "status": error.status_code, "message": str(error)}
    return None


CASES = (whole, stream, stream_helper, tool, tool_stream, thinking, count_tokens, asynchronous)


def dumped(value: object) -> Any:
    """JSON of what the SDK returned: its types all have `model_dump`."""
    return value.model_dump(mode="json", warnings=False)  # type: ignore[attr-defined]


if __name__ == "__main__":
    cases = [refused] if sys.argv[1:] == ["refused"] else CASES
    print(json.dumps({case.__name__: case() for case in cases}, default=dumped))
