"""A folder of recordings as text: the setting `cassettes`, and `rewind export -o DIR`.

It is read into the store where the store does not have it, and gets what is recorded. Files are never changed
in place, and none goes without being named: an export removes a file only for the one that takes its place.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.errors import PortingError
from rewind_proxy.matching.opening import Opened, Watch
from rewind_proxy.porting import text
from rewind_proxy.porting.document import Kept, from_document, is_document
from rewind_proxy.porting.exporting import Exported, Exporter, Key, in_order
from rewind_proxy.porting.keeping import FileRun, Keeper, Outcome
from rewind_proxy.porting.sources import MAX_BYTES, cassette_files
from rewind_proxy.settings import Settings
from rewind_proxy.store import CassetteRecord

_HEAD = re.compile(rb'\{\n  "rewind": 1,\n  "sha256": "([0-9a-f]{64})",(?=\n)')
_KEY = re.compile(
    rb'\n  "id": "[0-9a-f]{64}",\n  "exact": "(?P<exact>[0-9a-f]{64})",\n  "run": "(?P<run>[A-Za-z0-9._-]+)",'
    rb'\n  "recorded_at": (?P<at>[0-9.e+-]+),\n'
)
_EDITED = (
    "it was edited: its content does not match its sha256. `rewind import` takes it as a recording of its own"
)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that is no recording of the store, and why."""

    file: Path
    why: str

    @property
    def name(self) -> str:
        """The file as logs and JSON name it: what is no character, or none that shows, is a `?`."""
        return "".join(char if char.isprintable() else "?" for char in str(self.file))

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(slots=True)
class Scan:
    """What stands in a folder."""

    files: dict[Key, list[Path]] = field(default_factory=dict)
    """The files of each recording: more than one where it was redacted anew."""
    orphans: list[Orphan] = field(default_factory=list)


@dataclass(slots=True)
class ReadIn:
    """What reading a folder in did."""

    recordings: int = 0
    redacted: int = 0
    """Files that hold a credential by today's rules; the store has them without."""
    orphans: list[Orphan] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What writing to a folder did."""

    written: list[Path] = field(default_factory=list)
    unchanged: int = 0
    replaced: list[Path] = field(default_factory=list)
    """Files that went because another one has their recording now."""
    orphans: list[Orphan] = field(default_factory=list)


def scan(folder: Path) -> Scan:
    """What stands in a folder; one that is missing is empty. Raises `PortingError` when it cannot be read."""
    found = Scan()
    if not folder.exists():
        return found
    if not folder.is_dir():
        raise PortingError(f"{folder} is no folder: `cassettes` names one")
    try:
        files = cassette_files(folder)
    except OSError as error:
        raise PortingError(f"{folder} cannot be read ({error.strerror})") from error
    for file in files:
        try:
            found.files.setdefault(_key(file), []).append(file)
        except PortingError as error:
            found.orphans.append(_orphan(file, error))
    return found


def read_in(folder: Path, opened: Opened, settings: Settings, now: float, watch: Watch) -> ReadIn:
    """Put into the store what it does not have of a folder. Raises `PortingError`, `StoreError`.

    Another process that does the same meanwhile waits, and then finds it done.
    """
    found = scan(folder)
    result = ReadIn(orphans=found.orphans)
    if not found.files:
        return result
    if opened.store.readonly:
        keeper = Keeper(opened, settings, now)
        missing = sum(not keeper.holds(*key) for key in found.files)
        if missing:
            raise PortingError(
                f"{folder} has {missing} recordings that are not in {opened.store.path}, "
                "which cannot be written"
            )
        return result
    with opened.store.alone():
        keeper = Keeper(opened, settings, now)
        wanted = [key for key in found.files if not keeper.holds(*key)]
        wanted.sort(key=lambda key: (key[2], key[0]))
        tell = watch("reading the recordings in")
        for done, key in enumerate(wanted, start=1):
            file = found.files[key][-1]
            outcome = Outcome()
            try:
                keeper.keep(recording_in(file), FileRun(), outcome)
            except PortingError as error:
                result.orphans.append(_orphan(file, error))
            result.recordings += outcome.recordings
            result.redacted += outcome.redacted
            result.orphans += [Orphan(file, reason) for reason in outcome.left]
            result.orphans += [
                Orphan(file, f"{host!r} is no known host: add it to `hosts`")
                for host in outcome.unknown_hosts
            ]
            tell(done, len(wanted))
        keeper.finish()
    return result


def _orphan(file: Path, error: PortingError) -> Orphan:
    return Orphan(file, str(error).removeprefix(f"{file}: "))


def write(folder: Path, exported: Iterable[Exported], *, whole: bool) -> Written:
    """Write recordings into a folder, where they are not there already. Raises `PortingError`.

    `whole`: they are all that the store has, so every other file is an orphan.
    """
    found = scan(folder)
    result = Written(orphans=found.orphans)
    keys: set[Key] = set()
    for each in exported:
        keys.add(each.key)
        file = folder / each.folder / each.name
        before = found.files.get(each.key, [])
        same = next((old for old in before if old.name == each.name), None)
        if same is None:
            if not file.parent.resolve().is_relative_to(folder.resolve()):
                raise PortingError(f"{file.parent} leads out of {folder}: nothing is written there")
            write_file(file, each.text)
            result.written.append(file)
        else:
            result.unchanged += 1
        for old in before:
            if old not in (file, same):
                _remove(folder, old)
                result.replaced.append(old)
    if whole:
        result.orphans += [
            Orphan(file, "the store does not have it: it was pruned, or a newer answer took its place")
            for key, files in found.files.items()
            if key not in keys
            for file in files
        ]
    return result


def redact_again(folder: Path, opened: Opened, answers: Redactor | None) -> list[Path]:
    """Write those recordings of a store again that stand in a folder otherwise; the files that went.

    A longer list of rules reaches the folder so. Raises `PortingError`, `StoreError`.
    """
    found = scan(folder).files
    records = [each for each in in_order(opened.store.cassettes()) if _key_of(each) in found]
    exporter = Exporter(opened.store, opened.log, opened.reader, answers)
    return write(folder, exporter.export(records), whole=False).replaced


def remove(folder: Path, recordings: Iterable[CassetteRecord]) -> None:
    """Delete the files of recordings that are no longer in the store. Raises `PortingError`."""
    files = scan(folder).files
    for file in {file for each in recordings for file in files.get(_key_of(each), ())}:
        _remove(folder, file)


def _key_of(recording: CassetteRecord) -> Key:
    return recording.run, recording.exact, recording.recorded_at


def _remove(folder: Path, file: Path) -> None:
    try:
        file.unlink()
    except OSError as error:
        raise PortingError(f"{file} cannot be deleted ({error.strerror})") from None
    if file.parent != folder:
        with suppress(OSError):  # others stand in it
            file.parent.rmdir()


def _key(file: Path) -> Key:
    """What recording a file holds. Raises `PortingError` for one that is none, or was edited."""
    data = _bytes(file)
    head = _HEAD.match(data)
    # As `export` wrote it, to the last byte: nothing needs to be parsed to know that.
    if head and hashlib.sha256(b"{" + data[head.end() :].removesuffix(b"\n")).hexdigest().encode() == head[1]:
        key = _KEY.match(data, head.end())
        if key:
            return key["run"].decode(), key["exact"].decode(), float(key["at"])
    kept = recording_in(file, data)
    return kept.run, kept.exact, kept.recorded_at


def _bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise PortingError(f"{file}: larger than {MAX_BYTES >> 20} MiB")
        return file.read_bytes()
    except OSError as error:
        raise PortingError(f"{file}: cannot be read ({error.strerror})") from None


def recording_in(file: Path, data: bytes | None = None) -> Kept:
    """What a file says that `rewind export` wrote, and nobody edited. Raises `PortingError`."""
    place = str(file)
    try:
        whole = (_bytes(file) if data is None else data).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PortingError(f"{place}: not UTF-8") from None
    try:
        document = text.load(whole, place)
    except PortingError as error:
        conflict = "<<<<<<< " in whole and ">>>>>>> " in whole
        raise PortingError(f"{error}{': a conflict of a merge stands in it' if conflict else ''}") from None
    if not is_document(document):
        raise PortingError(f"{place}: no recording that `rewind export` wrote")
    kept = from_document(document, place)
    if kept.edited or not kept.run or not kept.exact:
        raise PortingError(f"{place}: {_EDITED}")
    return kept


def write_file(file: Path, content: str) -> None:
    """Write a file whole or not at all: a reader, or git, may look at any time. Raises `PortingError`."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content.encode())
        part.replace(file)
    except OSError as error:
        raise PortingError(f"{file} cannot be written ({error.strerror})") from error
