"""The Responses API of the fake provider over a WebSocket: one `response.create` frame, one turn.

It keeps what its own responses stand for, on one socket, as the provider does (OpenAI's guide to the
WebSocket mode). Nothing here uses Rewind's own reading of frames: what that misreads must not be misread
here as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

import wsproto
from wsproto import events
from wsproto.extensions import PerMessageDeflate
from wsproto.utilities import LocalProtocolError

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.provider.chat_completions import openai_error
from rewind_proxy.cli.provider.endpoints import Answer, answer
from rewind_proxy.cli.provider.turn import as_object, fresh_id, now, typed_sse

Frame: TypeAlias = str | bytes

SOCKET = "SOCKET"
"""The method under which a turn on a socket is kept."""


class ProviderSocket:
    """The provider's side of one socket, on a connection whose upgrade request was read.

    `read` gives bytes (none at the end), `write` sends them.
    """

    def __init__(
        self,
        headers: tuple[tuple[str, str], ...],
        path: str,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
    ) -> None:
        self._read = read
        self._write = write
        self._inputs: dict[str, list[JsonValue]] = {}
        """What each response of this socket stands for: its input, and what it put out."""
        self._connection = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        self._connection.initiate_upgrade_connection(raw, path)

    def accept(self) -> None:
        """Answer the upgrade, with compression where the client offers it."""
        list(self._connection.events())
        extra = [(b"x-request-id", fresh_id("req_").encode()), (b"x-models-etag", b'"fake"')]
        accepted = events.AcceptConnection(extensions=[PerMessageDeflate()], extra_headers=extra)
        self._write(self._connection.send(accepted))

    def frames(self) -> Iterator[Frame]:
        """What the client sends, until it closes or is gone."""
        pieces: list[Frame] = []
        while True:
            for event in self._connection.events():
                match event:
                    case events.TextMessage() | events.BytesMessage():
                        pieces.append(event.data)
                        if event.message_finished:
                            empty: Frame = "" if isinstance(event.data, str) else b""
                            yield empty.join(pieces)  # type: ignore[arg-type]  # of one kind
                            pieces = []
                    case events.Ping() | events.CloseConnection():
                        self._send(event.response())
                        if isinstance(event, events.CloseConnection):
                            return
            data = self._read(1 << 16)
            if not data:
                return
            self._connection.receive_data(data)

    def send(self, frame: Frame) -> None:
        """Send a message."""
        if isinstance(frame, str):
            self._send(events.TextMessage(frame))
        else:
            self._send(events.BytesMessage(frame))

    def ping(self) -> None:
        """Ask whether the client is still there."""
        self._send(events.Ping(b"there?"))

    def close(self, code: int, reason: str = "") -> None:
        """Close the socket."""
        self._send(events.CloseConnection(code, reason))

    def _send(self, event: events.Event) -> None:
        try:
            self._write(self._connection.send(event))
        except LocalProtocolError as error:  # it is closing
            raise BrokenPipeError(str(error)) from error

    # -- turns ---------------------------------------------------------------------------------------------

    def full(self, asked: JsonObject) -> JsonObject | None:
        """The request that a frame asks for; None when it goes on from a response that is not known here."""
        body = {name: value for name, value in asked.items() if name not in ("type", "generate")}
        previous = body.pop("previous_response_id", None)
        given = body.get("input")
        if isinstance(given, str):
            given = [{"type": "message", "role": "user", "content": given}]
        items: list[JsonValue] = given if isinstance(given, list) else []
        if previous is not None:
            before = self._inputs.get(str(previous))
            if before is None:
                return None
            items = [*before, *items]
        return body | {"input": items, "stream": True}

    def remember(self, body: JsonObject, chunks: tuple[bytes, ...]) -> None:
        """Keep what an answer stands for."""
        response = as_object(as_object(json.loads(data_of(chunks[-1]))).get("response"))
        items, output = body["input"], response.get("output")
        assert isinstance(items, list)
        assert isinstance(output, list)
        self._inputs[str(response["id"])] = [*items, *output]


def data_of(chunk: bytes) -> str:
    """The JSON of an event of a stream."""
    return chunk.decode().partition("data: ")[2].strip()


def plan(socket: ProviderSocket, frame: Frame) -> Answer:
    """What the provider answers to a frame: the events of a stream, or one error."""
    try:
        asked = json.loads(frame)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or asked.get("type") != "response.create":
        return _error("The frame is no response.create.", None)
    body = socket.full(asked)
    if body is None:
        text = f"Previous response with id '{asked['previous_response_id']}' not found."
        return _error(text, "previous_response_not_found")
    if asked.get("generate") is False:
        planned = _warmed_up(asked.get("model"))
    else:
        planned = answer("POST", "/v1/responses", "", json.dumps(body).encode(), 1)
    socket.remember(body, planned.chunks)
    return planned


def _warmed_up(model: JsonValue) -> Answer:
    response: JsonObject = {
        "id": fresh_id("resp_"),
        "object": "response",
        "created_at": now(),
        "model": model,
    }
    usage: JsonObject = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    begun: JsonObject = {**response, "status": "in_progress"}
    ended: JsonObject = {**response, "status": "completed", "output": [], "usage": usage}
    return Answer(
        200,
        "text/event-stream",
        (
            typed_sse({"type": "response.created", "response": begun}),
            typed_sse({"type": "response.completed", "response": ended}),
        ),
    )


def _error(message: str, code: str | None) -> Answer:
    error = {**as_object(openai_error(400, message).get("error")), "code": code}
    return Answer(400, "text/event-stream", (typed_sse({"type": "error", "status": 400, "error": error}),))
