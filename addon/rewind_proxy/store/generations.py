"""Generations: `<folder>/CURRENT` names the one in use, `<folder>/<n>/data.mdb` holds it.

A generation is replaced as a whole when the list of redaction rules grows (DESIGN §6). The switch is made
under the old generation's write lock, and every write looks at CURRENT under that lock, so nothing is ever
written to a generation that was left. Reads look at it too (one `stat`) and move over.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from rewind_proxy.errors import StoreError
from rewind_proxy.store.environment import (
    DATA_FILE,
    META,
    Environment,
    EnvironmentClosedError,
    open_environment,
    store_error,
)
from rewind_proxy.store.transaction import LmdbTxn, MemoryTxn, Txn

CURRENT = "CURRENT"
LOCK = "LOCK"
REDACTION_KEY = b"redaction"

_GENERATION = re.compile(r"\d+")
_STATE_FOLDER = ".rewind"
_TRIES = 20

if sys.platform == "win32":
    import msvcrt

    def _lock_file(descriptor: int, *, wait: bool) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock_file(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


class Generations:
    """The folder of a store or of its log: opens the generation in use and follows it when it changes."""

    def __init__(
        self,
        folder: Path,
        tables: Sequence[str],
        *,
        redaction: Iterable[str] = (),
        readonly: bool = False,
        create: bool = True,
        map_size: int | None = None,
    ) -> None:
        """Open the folder; make it when it is missing, unless it is to be read only.

        `redaction` names the rules by which the caller redacts. Raises `StoreError`.
        """
        self.folder = folder
        self.readonly = readonly
        self._tables = (META, *tables)
        self._current = str(folder / CURRENT)
        self._map_size = map_size
        self._lock = threading.RLock()
        self._seen: tuple[int, int] | None = None
        self._number = 0
        self._environment: Environment | None = None
        self._closed = False
        try:
            if not readonly:
                if create:
                    self._create()
                elif self._signature() is None:
                    raise StoreError(
                        f"there is no store at {folder}: record first, or name another with --store"
                    )
                self._remove_left()
            self._known = frozenset(redaction) | frozenset(self.redaction)
        except OSError as error:
            self.close()
            raise store_error(folder, error) from error
        except BaseException:
            self.close()
            raise

    # -- reading and writing

    @contextmanager
    def read(self) -> Iterator[Txn]:
        """A consistent view of the generation in use; an empty one where there is no store."""
        with ExitStack() as stack:
            yield self._begin(stack, Environment.read) or MemoryTxn()

    @contextmanager
    def write(self) -> Iterator[Txn]:
        """Changes to the generation in use, all or none.

        Raises `StoreError` when it cannot be written, or when its list of redaction rules has grown past what
        this process redacts by: what it would write might hold a credential.
        """
        if self.readonly:
            raise StoreError(f"{self.folder} is open for reading only")
        while True:
            with ExitStack() as stack:
                txn = self._begin(stack, Environment.write)
                if txn is not None and self._signature() == self._seen:
                    self._check_redaction(txn)
                    yield txn
                    return

    def _begin(
        self, stack: ExitStack, begin: Callable[[Environment], AbstractContextManager[LmdbTxn]]
    ) -> LmdbTxn | None:
        while True:
            environment = self._settle()
            if environment is None:
                return None
            # Another thread may move this object to a new generation just here.
            with suppress(EnvironmentClosedError):
                return stack.enter_context(begin(environment))

    @property
    def redaction(self) -> tuple[str, ...]:
        """The redaction rules that everything in it went through."""
        with self.read() as txn:
            return read_redaction(txn)

    @property
    def number(self) -> int:
        """The number of the generation in use; 0 where there is no store."""
        self._settle()
        return self._number

    def set_redaction(self, rules: Iterable[str]) -> None:
        """Add rules to the list of what is still empty; the caller has made sure that it is."""
        self._known |= frozenset(rules)
        with self.write() as txn:
            write_redaction(txn, rules)

    def size(self) -> int:
        """Bytes on disk of the generation in use."""
        environment = self._settle()
        return 0 if environment is None else (environment.path / DATA_FILE).stat().st_size

    def close(self) -> None:
        """Close it. Twice is once."""
        with self._lock:
            self._closed = True
            environment, self._environment = self._environment, None
            if environment is not None:
                environment.close()

    def _check_redaction(self, txn: Txn) -> None:
        unknown = set(read_redaction(txn)) - self._known
        if unknown:
            raise StoreError(
                f"{self.folder} got {len(unknown)} redaction rules since this process opened it: restart it"
            )

    # -- following CURRENT

    def _signature(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._current)  # noqa: PTH116  # every look-up does this; pathlib costs 3 µs more
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_mtime_ns

    def _settle(self) -> Environment | None:
        """The environment of the generation that CURRENT names, opened if it is not the one in use."""
        environment = self._environment
        if self._signature() == self._seen and not self._closed:
            return environment
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.folder} is closed")
            for attempt in range(_TRIES):
                signature = self._signature()
                if signature == self._seen:
                    return self._environment
                if signature is None:
                    raise StoreError(f"{self.folder / CURRENT} is gone: restore it, or start anew")
                number = self._read_current()
                try:
                    environment = self._open(number)
                except StoreError:
                    # Perhaps it was left and removed between the two reads: then CURRENT has changed.
                    if self._signature() == signature or attempt == _TRIES - 1:
                        raise
                    continue
                old, self._environment = self._environment, environment
                self._seen, self._number = signature, number
                if old is not None:
                    old.close()
            raise StoreError(
                f"{self.folder / CURRENT} keeps changing: end the other processes that rewrite it"
            )

    def _read_current(self) -> int:
        text = (self.folder / CURRENT).read_text(errors="replace").strip()
        if not text.isdecimal():
            raise StoreError(
                f"{self.folder / CURRENT} names no generation: restore it, or move the store away"
            )
        return int(text)

    def _open(self, number: int) -> Environment:
        folder = self.folder / str(number)
        if not (folder / DATA_FILE).is_file():
            raise StoreError(f"{folder / DATA_FILE} is missing: restore it, or move the store away")
        return open_environment(folder, self._tables, readonly=self.readonly, map_size=self._map_size)

    # -- making, replacing and removing generations

    def _create(self) -> None:
        if self._signature() is not None:
            return
        parent = self.folder.parent
        if parent.name == _STATE_FOLDER and not parent.exists():
            parent.mkdir(parents=True, exist_ok=True)
            (parent / ".gitignore").write_text("*\n")
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if self._signature() is None:
                self._make(1).close()
                self._write_current(1)

    def _make(self, number: int) -> Environment:
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        return open_environment(folder, self._tables, map_size=self._map_size)

    def _write_current(self, number: int) -> None:
        fresh = self.folder / f"{CURRENT}.new"
        with fresh.open("w") as file:
            file.write(f"{number}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / CURRENT)

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[bool]:
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

    def _remove_left(self) -> None:
        """Remove what a killed rewrite left, unless one is running."""
        with self._locked(wait=False) as got:
            if got:
                current = str(self._read_current())
                for entry in self.folder.iterdir():
                    if entry.is_dir() and _GENERATION.fullmatch(entry.name) and entry.name != current:
                        shutil.rmtree(entry)

    def replace(
        self,
        redaction: Iterable[str],
        finish: Callable[[Txn, Txn], None],
        fill: Callable[[Environment], None] | None = None,
    ) -> bool:
        """Make the next generation, switch to it and remove the one in use; whether it was needed.

        `fill` may write most of the new one while others go on using the old one. `finish(old, new)` brings
        it up to date under the old one's write lock, so that nothing comes between it and the switch. Killed
        at any point before, the old generation stays in use and the next open removes what there is of the
        new one. It is not needed when another process did it while this one waited for its turn.
        """
        rules, before = tuple(redaction), self.number
        with self._locked():
            if self.number != before and set(rules) <= set(self.redaction):
                self._known |= frozenset(rules)
                return False
            old, number = self._number, self._number + 1
            shutil.rmtree(self.folder / str(number), ignore_errors=True)
            fresh = self._make(number)
            try:
                if fill is not None:
                    fill(fresh)
                with self.write() as left:
                    with fresh.write() as txn:
                        finish(left, txn)
                        write_redaction(txn, (*read_redaction(left), *rules))
                    fresh.sync()
                    self._write_current(number)
                self._known |= frozenset(rules)
                self._settle()
            finally:
                fresh.close()
                # Whichever is not in use now; the error, if there is one, goes on.
                shutil.rmtree(self.folder / str(old if self._number == number else number))
        return True


def read_redaction(txn: Txn) -> tuple[str, ...]:
    """The list of redaction rules of a generation."""
    value = txn.get(META, REDACTION_KEY)
    return tuple(json.loads(value)) if value else ()


def write_redaction(txn: Txn, rules: Iterable[str]) -> None:
    """Add rules to the list of a generation, in order; it only grows."""
    merged = dict.fromkeys((*read_redaction(txn), *rules))
    txn.put(META, REDACTION_KEY, json.dumps(list(merged)).encode())
