"""Step 8 of the normalised fingerprint: the window of the last messages (`tail_n`, DESIGN §5)."""

from __future__ import annotations

from collections.abc import Sequence

from rewind_proxy.canonical.linking import linking_id
from rewind_proxy.canonical.model import Message


def tail(messages: Sequence[Message], count: int) -> list[Message]:
    """The last `count` messages of `messages`, and the system's, wherever they stand; all of them for 0.

    The system's are not counted. The window grows until no result in it lacks its call: parallel results may
    be parted by what the user says, and one that names no call stands behind the message it answers.
    """
    if count <= 0:
        return [*messages]
    start = _start(messages, count)
    if start > 0:
        start = _with_calls(messages, start)
    return [message for at, message in enumerate(messages) if at >= start or message.role == "system"]


def _start(messages: Sequence[Message], count: int) -> int:
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role != "system":
            count -= 1
            if count == 0:
                return at
    return 0


def _with_calls(messages: Sequence[Message], start: int) -> int:
    """The first message at `start` or before it with which no result from there on lacks its call."""
    made: dict[str, int] = {}
    call_of: list[int] = []
    for at, message in enumerate(messages):
        first = at
        for part in message.parts:
            kind = part.get("type")
            if kind == "tool_call":
                made[linking_id(part.get("id"))] = at
            elif kind == "tool_result":
                first = min(first, made.get(linking_id(part.get("id")), at))
        call_of.append(first)
    at = len(messages) - 1
    while at >= start:
        start = min(start, call_of[at])
        if at == start and messages[at].role == "tool" and at > 0:
            start -= 1  # what it answers is not named, or is an item of the provider's own
        at -= 1
    return start
