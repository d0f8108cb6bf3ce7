"""Whether some text is anywhere in a folder's files: as it stands, or inside a zstd frame."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

_FRAME = zstandard.FRAME_HEADER
"""The magic number that every frame starts with (RFC 8878, section 3.1.1)."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What was looked at, and which of the texts were found."""

    files: int
    bytes: int
    frames: int
    found: frozenset[str]


def scan(folder: Path, texts: Sequence[str]) -> Scan:
    """Look for `texts` in every file below `folder`, and in every zstd frame of them, decompressed."""
    files = size = frames = 0
    found: set[str] = set()
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or not file.stat().st_size:
            continue
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            files += 1
            size += len(content)
            found.update(text for text in texts if content.find(text.encode()) >= 0)
            for frame in _frames(content):
                frames += 1
                found.update(text for text in texts if text.encode() in frame)
    return Scan(files, size, frames, frozenset(found))


def _frames(content: mmap.mmap) -> Iterator[bytes]:
    """The decompressed frames that start anywhere in `content`."""
    start = content.find(_FRAME)
    while start >= 0:
        # Four bytes may only look like the start of a frame.
        with contextlib.suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(content[start:])
        start = content.find(_FRAME, start + 1)
