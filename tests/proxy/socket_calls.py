"""What the clients of model sockets send, and what they get."""

from __future__ import annotations

import json
from typing import Any

from proxy.calls import new_prompt
from proxy.conftest import tell
from proxy.looking import recorded
from support.proxies import Proxy
from support.websocket import Socket

TOOL: dict[str, Any] = {"type": "function", "name": "shell", "parameters": {"required": ["command"]}}


def mode(running: Proxy, name: str) -> None:
    """Set the mode of a proxy."""
    assert tell(running, "set", "rewind_mode", name).status == 200


def create(prompt: str, previous: str | None = None, **more: Any) -> dict[str, Any]:
    """A frame that asks for a response, as Codex writes it."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    frame = {"type": "response.create", "model": "m1", "stream": True, "input": [item], **more}
    return frame if previous is None else {**frame, "previous_response_id": previous}


def connect(running: Proxy, session: str, **more: Any) -> Socket:
    """A socket of a session."""
    return Socket(running, headers={"x-rewind-session": session}, **more)


def said(got: list[dict[str, Any]]) -> str:
    """The text of an answer."""
    return "".join(event["delta"] for event in got if event["type"] == "response.output_text.delta")


def response_id(got: list[dict[str, Any]]) -> str:
    """The id of an answer."""
    return str(got[-1]["response"]["id"])


def in_stream(body: bytes) -> list[Any]:
    """The events of a stream."""
    lines = body.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def record(running: Proxy, prompt: str, **more: Any) -> list[dict[str, Any]]:
    """Record one turn over a socket."""
    with connect(running, new_prompt()) as socket:
        got = socket.turn(create(prompt, **more))
    recorded(running.store, prompt)
    return got
