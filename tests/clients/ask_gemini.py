"""What a user of Google's SDK does, case by case; prints one JSON object of what the SDK returned.

Runs in the environment of the SDKs. `ask_gemini.py refused` asks what no recording answers.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from google import genai
from google.genai import errors, types

MODEL = "gemini-fake"
SHELL = types.FunctionDeclaration(
    name="shell",
    description="Run a command.",
    parameters_json_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
)
TOOLS = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[SHELL])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)

client = genai.Client()


def whole() -> object:
    return client.models.generate_content(model=MODEL, contents="This is the case whole.")


def stream() -> object:
    return list(client.models.generate_content_stream(model=MODEL, contents="This is the case stream."))


def tool() -> object:
    question = types.Content(role="user", parts=[types.Part(text="Please run `echo tool`.")])
    first = client.models.generate_content(model=MODEL, contents=[question], config=TOOLS)
    call = first.function_calls[0]
    result = types.Part.from_function_response(name=call.name, response={"output": "tool"})
    contents = [question, first.candidates[0].content, types.Content(role="user", parts=[result])]
    return [first, list(client.models.generate_content_stream(model=MODEL, contents=contents, config=TOOLS))]


def count_tokens() -> object:
    return client.models.count_tokens(model=MODEL, contents="This is the case count_tokens.")


def embedding() -> object:
    return client.models.embed_content(model="embedding-fake", contents="This is the case embedding.")


def asynchronous() -> object:
    async def ask() -> object:
        async with genai.Client().aio as later:
            answer = await later.models.generate_content(model=MODEL, contents="This is the case async.")
            stream = await later.models.generate_content_stream(
                model=MODEL, contents="This is the case async stream."
            )
            return [answer, [chunk async for chunk in stream]]

    return asyncio.run(ask())


def refused() -> object:
    try:
        client.models.generate_content(model=MODEL, contents="Nobody has recorded this.")
    except errors.ClientError as error:
        return {"error": type(error).__name__, "status": error.code, "message": str(error)}
    return None


CASES = (whole, stream, tool, count_tokens, embedding, asynchronous)


def dumped(value: object) -> Any:
    """JSON of what the SDK returned, less the raw headers that it keeps beside."""
    return value.model_dump(mode="json", exclude={"sdk_http_response"})  # type: ignore[attr-defined]


if __name__ == "__main__":
    cases = [refused] if sys.argv[1:] == ["refused"] else CASES
    print(json.dumps({case.__name__: case() for case in cases}, default=dumped))
