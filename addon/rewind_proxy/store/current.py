"""Which generation of a folder is in use: the file CURRENT, and the lock of whoever makes or removes one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewind_proxy.errors import StoreError

CURRENT = "CURRENT"
LOCK = "LOCK"

_GENERATION = re.compile(r"\d+")

if sys.platform == "win32":
    import msvcrt

    def _lock_file(descriptor: int, *, wait: bool) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock_file(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


class Current:
    """The file CURRENT of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = str(folder / CURRENT)

    def signature(self) -> tuple[int, int] | None:
        """What changes whenever CURRENT is written; None where it is missing."""
        try:
            status = os.stat(self._file)  # noqa: PTH116  # every look-up does this; pathlib costs 3 µs more
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_mtime_ns

    def read(self) -> int:
        """The number of the generation in use. Raises `StoreError`."""
        text = (self.folder / CURRENT).read_text(errors="replace").strip()
        if not text.isdecimal():
            raise StoreError(
                f"{self.folder / CURRENT} names no generation: restore it, or move the store away"
            )
        return int(text)

    def write(self, number: int) -> None:
        """Switch to another generation."""
        fresh = self.folder / f"{CURRENT}.new"
        with fresh.open("w") as file:
            file.write(f"{number}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / CURRENT)

    def others(self) -> list[Path]:
        """The folders of all generations but the one in use."""
        current = str(self.read())
        return [
            entry
            for entry in self.folder.iterdir()
            if entry.is_dir() and _GENERATION.fullmatch(entry.name) and entry.name != current
        ]

    @contextmanager
    def locked(self, *, wait: bool = True) -> Iterator[bool]:
        """The lock of whoever makes or removes generations; whether it was got."""
        descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                _lock_file(descriptor, wait=wait)
            except OSError:
                if wait:
                    raise
                yield False
                return
            yield True
        finally:
            os.close(descriptor)


def is_store(folder: Path) -> bool:
    """Whether there is a store in a folder; one that is missing is empty."""
    return Current(folder).signature() is not None
