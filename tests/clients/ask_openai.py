"""What a user of OpenAI's SDK does, case by case; prints one JSON object of what the SDK returned.

Runs in the environment of the SDKs. `ask_openai.py refused` asks what no recording answers.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import openai

MODEL = "gpt-fake"
SHELL: dict[str, Any] = {
    "name": "shell",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
CHAT_TOOLS: Any = [{"type": "function", "function": SHELL}]
RESPONSE_TOOLS: Any = [{"type": "function", "strict": False, **SHELL}]

client = openai.OpenAI()


def said(case: str) -> str:
    """A prompt of that case alone."""
    return f"This is the case {case}."


def user(text: str) -> Any:
    """A user's message, for both APIs."""
    return {"role": "user", "content": text}


def chat_whole() -> object:
    return client.chat.completions.create(model=MODEL, messages=[user(said("chat_whole"))])


def chat_stream() -> object:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[user(said("chat_stream"))],
        stream=True,
        stream_options={"include_usage": True},
    )
    return list(stream)


def chat_stream_helper() -> object:
    with client.chat.completions.stream(model=MODEL, messages=[user(said("chat_stream_helper"))]) as stream:
        return [list(stream), stream.get_final_completion()]


def chat_tool() -> object:
    messages = [user("Please run `echo chat_tool`.")]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=CHAT_TOOLS)
    message = first.choices[0].message
    call = message.tool_calls[0]
    result = {"role": "tool", "tool_call_id": call.id, "content": "chat_tool"}
    messages += [message.model_dump(exclude_none=True), result]
    second = client.chat.completions.create(model=MODEL, messages=messages, tools=CHAT_TOOLS)
    return [first, second]


def chat_tool_stream() -> object:
    stream = client.chat.completions.create(
        model=MODEL, messages=[user("Please run `echo chat_tool_stream`.")], tools=CHAT_TOOLS, stream=True
    )
    return list(stream)


def responses_whole() -> object:
    return client.responses.create(model=MODEL, input=said("responses_whole"))


def responses_stream() -> object:
    return list(client.responses.create(model=MODEL, input=said("responses_stream"), stream=True))


def responses_stream_helper() -> object:
    with client.responses.stream(model=MODEL, input=said("responses_stream_helper")) as stream:
        return [list(stream), stream.get_final_response()]


def responses_tool() -> object:
    items: list[Any] = [user("Please run `echo responses_tool`.")]
    first = client.responses.create(model=MODEL, input=items, tools=RESPONSE_TOOLS)
    call = first.output[0]
    items += [
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "responses_tool"},
    ]
    return [first, list(client.responses.create(model=MODEL, input=items, tools=RESPONSE_TOOLS, stream=True))]


def embeddings() -> object:
    return client.embeddings.create(model="embedding-fake", input=[said("embeddings"), "another"])


def asynchronous() -> object:
    async def ask() -> object:
        async with openai.AsyncOpenAI() as later:
            chat = await later.chat.completions.create(model=MODEL, messages=[user(said("async_chat"))])
            events = await later.responses.create(model=MODEL, input=said("async_responses"), stream=True)
            return [chat, [event async for event in events]]

    return asyncio.run(ask())


def refused() -> object:
    try:
        client.chat.completions.create(model=MODEL, messages=[user("Nobody has recorded this.")])
    except openai.BadRequestError as error:
        return {"error": type(error).__name__, "status": error.status_code, "message": str(error)}
    return None


CASES = (
    chat_whole,
    chat_stream,
    chat_stream_helper,
    chat_tool,
    chat_tool_stream,
    responses_whole,
    responses_stream,
    responses_stream_helper,
    responses_tool,
    embeddings,
    asynchronous,
)


def dumped(value: object) -> Any:
    """JSON of what the SDK returned: its types all have `model_dump`."""
    return value.model_dump(mode="json", warnings=False)  # type: ignore[attr-defined]


if __name__ == "__main__":
    cases = [refused] if sys.argv[1:] == ["refused"] else CASES
    print(json.dumps({case.__name__: case() for case in cases}, default=dumped))
