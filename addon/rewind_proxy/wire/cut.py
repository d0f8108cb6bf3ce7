"""Where an answer is cut off on purpose."""

from __future__ import annotations

from rewind_proxy.wire.sse import Parser


class Cut:
    """Lets an answer through up to its cut: a stream's first events, or half of what is no stream.

    A stream of fewer events comes whole. `over` says whether the cut was reached.
    """

    def __init__(self, after: int, *, streamed: bool) -> None:
        self._left = after
        self._parser = Parser() if streamed else None
        self.over = streamed and after == 0

    def keep(self, data: bytes) -> bytes:
        """What still passes of the next bytes."""
        if self.over or not data:
            return b""
        if self._parser is None:
            self.over = True
            return data[: len(data) // 2]
        place = 0
        for line in data.splitlines(keepends=True):
            place += len(line)
            self._left -= len(self._parser.feed(line))
            if self._left <= 0:
                self.over = True
                break
        return data[:place]
