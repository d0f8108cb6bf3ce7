"""What a user of vcrpy and OpenAI's SDK has in their tests; prints one JSON object of what the SDK returned.

`ask_with_vcrpy.py CASSETTE` records with vcrpy, serialised as the cassette's name says; without a cassette
the SDK asks by itself. Runs in the environment of the SDKs.
"""
# mypy: disable-error-code="import-not-found"
# The SDKs are not in the environment that is checked.

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import openai
import vcr

MODEL = "gpt-fake"
PROMPT = "Grüße 世界 from vcrpy."


def ask() -> dict[str, Any]:
    """One whole answer, one stream, one call of the Responses API."""
    # Behind a reverse proxy ($OPENAI_BASE_URL) the provider's own name is kept.
    client = openai.OpenAI(default_headers={"Host": host} if (host := os.environ.get("ASK_HOST")) else {})
    messages: Any = [{"role": "user", "content": PROMPT}]
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    stream = client.chat.completions.create(model=MODEL, messages=messages, stream=True)
    return {
        "whole": whole.model_dump(mode="json"),
        "stream": [chunk.model_dump(mode="json") for chunk in stream],
        "responses": client.responses.create(model=MODEL, input=PROMPT).model_dump(mode="json"),
    }


def recording(cassette: str) -> Any:
    """What vcrpy records into."""
    serializer = "json" if Path(cassette).suffix == ".json" else "yaml"
    return vcr.use_cassette(cassette, serializer=serializer)


with recording(sys.argv[1]) if len(sys.argv) > 1 else nullcontext():
    answers = ask()
print(json.dumps(answers))
