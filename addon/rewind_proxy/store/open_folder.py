"""What an opened store and its log have in common: a folder of generations, and how much is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from rewind_proxy.store.generations import Generations


class OpenFolder:
    """A folder that is open until it is closed. A context manager."""

    def __init__(self, place: Generations) -> None:
        self._place = place

    def close(self) -> None:
        """Close it. Twice is once."""
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._place.folder

    @property
    def readonly(self) -> bool:
        """Whether it was opened for reading only."""
        return self._place.readonly

    @property
    def redaction(self) -> tuple[str, ...]:
        """The redaction rules that everything in it went through."""
        return self._place.redaction

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why entries were left out when everything was redacted again last: each could not be read."""
        origin = self._place.origin
        return origin.dropped if origin else ()

    def size(self) -> int:
        """Bytes on disk."""
        return self._place.size()

    def spare(self) -> int:
        """About how many bytes on disk `compact` would give back."""
        return self._place.spare()
