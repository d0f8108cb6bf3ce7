"""What a file holds, told by its content and never by its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.errors import PortingError
from rewind_proxy.porting import flow_lines, har, safe_yaml, text, vcr
from rewind_proxy.porting.document import Kept, from_document, is_document
from rewind_proxy.porting.heard import Entry

Format: TypeAlias = Literal["flows", "har", "vcrpy", "rewind"]
FlowReader: TypeAlias = Callable[[Path], Iterable[str]]
"""Gives the lines of `flow_lines` for a flow file."""

MAX_BYTES = 512 * 2**20
_FLOWS = re.compile(rb"[0-9]{1,12}:[0-9]{1,12}:")
"""How a file of mitmproxy's begins: a dictionary in tnetstrings, and its first key."""
_BOM = b"\xef\xbb\xbf"
_OTHER = (
    "is none of what Rewind reads: flows of mitmproxy, a HAR file, a cassette of vcrpy, "
    "or what `rewind export` wrote"
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that can be imported."""

    file: Path
    format: Format
    digest: str
    """Of its bytes, in hex: names the run that it becomes."""
    entries: Iterator[Entry | Kept]
    """Reading on raises `PortingError`."""
    count: int | None = None
    """How many entries, where that is known at once."""


def sources(path: Path, flows: FlowReader) -> list[Source]:
    """The source that a file is, or those in a folder that `rewind export` made.

    Raises `PortingError` for what cannot be read, and for a folder without any.
    """
    if not path.is_dir():
        return [source(path, flows)]
    files = cassette_files(path)
    if not files:
        raise PortingError(f"{path}: a folder without files that `rewind export` wrote (*.json, *.jsonl)")
    digest = hashlib.sha256()
    by_time: list[tuple[float, Path]] = []
    for file in files:
        # Read once to know them all before anything is stored, and again one by one: not all at once.
        each = source(file, flows)
        first = next(each.entries, None)
        if not isinstance(first, Kept):
            raise PortingError(f"{file}: no recording that `rewind export` wrote; import it by its own name")
        digest.update(each.digest.encode())
        by_time.append((first.recorded_at, file))
    by_time.sort()
    entries = (entry for _, file in by_time for entry in source(file, flows).entries)
    return [Source(path, "rewind", digest.hexdigest(), entries, len(files))]


def cassette_files(folder: Path) -> list[Path]:
    """The files below a folder that are meant as recordings, by name; hidden ones are not."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in (".json", ".jsonl")
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    )


def source(file: Path, flows: FlowReader) -> Source:
    """What a file is. Raises `PortingError`, which names it."""
    try:
        with file.open("rb") as opened:
            head = opened.read(64)
            if _FLOWS.match(head):
                opened.seek(0)
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
                return Source(file, "flows", digest, flow_lines.entries(flows(file), str(file)))
            data = head + opened.read(MAX_BYTES + 1 - len(head))
    except OSError as error:
        raise PortingError(f"{file} cannot be read ({error.strerror})") from None
    if len(data) > MAX_BYTES:
        raise PortingError(f"{file}: larger than {MAX_BYTES >> 20} MiB")
    digest = hashlib.sha256(data).hexdigest()
    plain = data.removeprefix(_BOM)
    if plain.lstrip()[:1] in (b"{", b"["):
        return _json(file, digest, plain)
    if b"interactions" in plain:
        document = safe_yaml.load(plain, str(file))
        if isinstance(document, dict) and vcr.is_cassette(document):
            return Source(file, "vcrpy", digest, vcr.entries(document, str(file)), _length(document))
    raise PortingError(f"{file} {_OTHER}")


def _json(file: Path, digest: str, data: bytes) -> Source:
    name = str(file)
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PortingError(f"{file}: not UTF-8 (line {line})") from None
    first, _, rest = whole.partition("\n")
    document: JsonValue = None
    try:
        document = text.load(first, name)
    except PortingError:
        if not rest.strip():
            raise
    else:
        if rest.strip() and is_document(document):
            lines = [from_document(text.load(line, place), place) for place, line in _lines(whole, name)]
            lines.sort(key=lambda kept: kept.recorded_at)
            return Source(file, "rewind", digest, iter(lines), len(lines))
    if rest.strip():
        document = text.load(whole, name)
    if is_document(document):
        return Source(file, "rewind", digest, iter((from_document(document, name),)), 1)
    if har.is_har(document):
        return Source(file, "har", digest, har.entries(document, name), _length(document))
    if isinstance(document, dict) and vcr.is_cassette(document):
        return Source(file, "vcrpy", digest, vcr.entries(document, name), _length(document))
    raise PortingError(f"{file} {_OTHER}")


def _lines(whole: str, name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(whole.split("\n"), start=1):
        if line.strip():
            yield f"{name}, line {number}", line


def _length(document: object) -> int | None:
    match document:
        case {"interactions": [*items]} | {"log": {"entries": [*items]}}:
            return len(items)
    return None
