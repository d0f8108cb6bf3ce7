"""A user's tests of code that uses the SDKs. They know nothing of Rewind but the marker."""
# mypy: disable-error-code="import-not-found,import-untyped"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import anthropic
import openai
import pytest
import requests
from google import genai

pytestmark = pytest.mark.rewind


def user(text: str) -> Any:
    """A user's message."""
    return [{"role": "user", "content": text}]


def test_openai() -> None:
    client = openai.OpenAI()
    assert client.responses.create(model="m1", input="openai").output_text
    assert list(client.chat.completions.create(model="m1", messages=user("openai"), stream=True))


def test_openai_as_a_module() -> None:
    assert openai.responses.create(model="m1", input="module").output_text


def test_openai_as_a_module_again() -> None:
    assert openai.responses.create(model="m1", input="module again").output_text


def test_openai_asynchronous() -> None:
    async def ask() -> Any:
        async with openai.AsyncOpenAI() as client:
            return await client.responses.create(model="m1", input="asynchronous")

    assert asyncio.run(ask()).output_text


def test_anthropic() -> None:
    client = anthropic.Anthropic()
    assert client.messages.create(model="m1", max_tokens=100, messages=user("anthropic")).content


def test_gemini() -> None:
    assert genai.Client().models.generate_content(model="m1", contents="gemini").text


def test_requests() -> None:
    answer = requests.post(
        "https://api.openai.com/v1/responses", json={"model": "m1", "input": "requests"}, timeout=30
    )
    assert json.loads(answer.content)["output"]


def test_swallowed(pytestconfig: pytest.Config) -> None:
    word = "then" if pytestconfig.getoption("rewind_mode") == "replay" else "now"
    client = openai.OpenAI()
    with contextlib.suppress(openai.BadRequestError):
        client.responses.create(model="m1", input=f"swallowed {word}")
