"""What each SDK makes of a fault on purpose; prints `{"raised": …, "retried": …}`.

`ask_at_fault.py openai | anthropic | gemini`, in the environment of the SDKs. The first request is made by a
client that does not retry, the second by one that does.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

RAISED, RETRIED = "This is the case raised.", "This is the case retried."


def openai() -> tuple[object, object]:
    from openai import APIStatusError, OpenAI

    def ask(client: OpenAI, text: str) -> object:
        messages: Any = [{"role": "user", "content": text}]
        return client.chat.completions.create(model="gpt-fake", messages=messages).choices[0].message.content

    return raised(lambda: ask(OpenAI(max_retries=0), RAISED), APIStatusError), ask(OpenAI(), RETRIED)


def anthropic() -> tuple[object, object]:
    from anthropic import Anthropic, APIStatusError

    def ask(client: Anthropic, text: str) -> object:
        messages: Any = [{"role": "user", "content": text}]
        with client.messages.stream(model="claude-fake", max_tokens=500, messages=messages) as events:
            return events.get_final_text()

    return raised(lambda: ask(Anthropic(max_retries=0), RAISED), APIStatusError), ask(Anthropic(), RETRIED)


def gemini() -> tuple[object, object]:
    from google import genai
    from google.genai import errors, types

    def ask(client: genai.Client, text: str) -> object:
        return client.models.generate_content(model="gemini-fake", contents=text).text

    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.1)
    once = types.HttpRetryOptions(attempts=1)
    first, second = (
        genai.Client(http_options=types.HttpOptions(retry_options=each)) for each in (once, retries)
    )
    return raised(lambda: ask(first, RAISED), errors.APIError), ask(second, RETRIED)


def raised(ask: Callable[[], object], kind: type[Exception]) -> object:
    """The error that a request raises, as the SDK tells it; None when it is answered."""
    try:
        ask()
    except kind as error:
        response: Any = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        waits = response.headers.get("retry-after") if response is not None else None
        return {"error": type(error).__name__, "status": status, "retry_after": waits, "message": str(error)}
    return None


if __name__ == "__main__":
    sdks = {"openai": openai, "anthropic": anthropic, "gemini": gemini}
    print(json.dumps(dict(zip(("raised", "retried"), sdks[sys.argv[1]](), strict=True))))
