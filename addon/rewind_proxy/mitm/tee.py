"""The tee: what a stream of the provider's brings is kept while it passes, unchanged and undelayed."""

from __future__ import annotations

from collections.abc import Callable


class Tee:
    """A `flow.response.stream` callable that keeps each chunk with the time it came.

    The chunk is handed on in the same call. Past `limit` bytes it keeps nothing more: the client's answer
    goes on, the recording does not happen. An empty chunk is no sign of the end (it comes twice on HTTP/2).
    """

    def __init__(self, clock: Callable[[], float], started: float, limit: int) -> None:
        self._clock = clock
        self._started = started
        self._room = limit
        self.chunks: list[tuple[bytes, int]] = []
        self.overflow = False

    def __call__(self, data: bytes) -> bytes:
        if data and not self.overflow:
            self._room -= len(data)
            if self._room < 0:
                self.overflow = True
                self.chunks.clear()
            else:
                self.chunks.append((data, round((self._clock() - self._started) * 1000)))
        return data
