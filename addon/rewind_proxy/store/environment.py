"""LMDB environments: opened once per process, shared, with every error as a sentence.

Durability: `metasync=False`. LMDB then flushes a commit's pages before it writes the meta page and leaves
flushing the meta page to the next commit: a killed process loses nothing (the page cache survives it), a
machine that loses power may lose its last exchange, and none is ever half there. It takes about 60 % of the
time of a full sync.

The map is reserved large at open and never resized: resizing under an open transaction crashes (py-lmdb
issue 97), and a map reserved in a sparse file costs address space only. `meminit` stays on, so that no
memory of the process lands in the file. All readers of a process share one environment, because LMDB's locks
belong to the process and a second open would release the first one's.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import lmdb

from rewind_proxy.errors import StoreError, StoreFullError, StoreVersionError
from rewind_proxy.store.network import refuse_network
from rewind_proxy.store.records import FORMAT_VERSION
from rewind_proxy.store.transaction import LmdbTxn

if TYPE_CHECKING:
    from lmdb import _Database

META = "meta"
FORMAT_KEY = b"format"
DATA_FILE = "data.mdb"

_GIB = 1 << 30
# A limit on address space (`ulimit -v`) refuses the first: the next smaller one is taken. LMDB on Windows
# gives the file its full size.
_RESERVED = (64 * _GIB, 8 * _GIB, _GIB) if sys.platform != "win32" and sys.maxsize > 2**32 else (_GIB,)
_MAX_READERS = 512
_MAX_TABLES = 16

# Pages that a transaction takes at the end of the file and frees again are never written, so a sound file may
# be a little shorter than its meta page says. A file cut short by a broken copy kills the process on access.
_UNWRITTEN_PAGES = 16

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_LOCK_FILE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR)
_DAMAGED = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    lmdb.PanicError,
    lmdb.IncompatibleError,
)

_open: dict[Path, Environment] = {}
_open_lock = threading.RLock()


def store_error(path: Path, error: lmdb.Error | OSError) -> StoreError:
    """An error of LMDB or the system as one of ours, naming the place and the next step."""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error).removeprefix(f"{path}: ")
    code = error.errno if isinstance(error, OSError) else getattr(error, "code", 0)
    if isinstance(error, lmdb.MapFullError | lmdb.DiskError) or code in _FULL:
        return StoreFullError(f"{path} is full: free some disk space or run `rewind prune`")
    if code == errno.EIO:  # LMDB's word for a short write too, which is how most disks get full
        return StoreError(f"{path} could not be written or read: is the disk full or failing? ({why})")
    if isinstance(error, _DAMAGED):
        return StoreError(f"{path} is damaged or no store of Rewind's: restore it, or move it away ({why})")
    if isinstance(error, lmdb.ReadersFullError):
        return StoreError(f"{path} has too many readers at once: end some of the proxies that use it")
    if isinstance(error, lmdb.MapResizedError):
        return StoreError(f"{path} outgrew this process's limit on address space: raise it (`ulimit -v`)")
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(f"{path} may not be written or read by this user: change its mode ({why})")
    return StoreError(f"{path} cannot be used ({why}): name another place with --store")


class EnvironmentClosedError(StoreError):
    """The environment was closed: by its last user, or because its generation was left."""


class View:
    """A transaction for reading that has begun, and ends with its block.

    A class, for each look-up makes one: generators that do the same take three times as long.
    """

    __slots__ = ("_environment", "_txn")

    def __init__(self, environment: Environment, txn: LmdbTxn) -> None:
        self._environment = environment
        self._txn = txn

    def __enter__(self) -> LmdbTxn:
        return self._txn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._txn.end()
        self._environment.leave()
        if isinstance(error, lmdb.Error):
            raise store_error(self._environment.path, error) from error


class Environment:
    """An open environment, shared by all who open its path in this process."""

    def __init__(self, path: Path, raw: lmdb.Environment, *, readonly: bool) -> None:
        self.path = path
        self.readonly = readonly
        self.users = 1
        self._raw = raw
        self._tables: dict[str, _Database] = {}
        self._pid = os.getpid()
        self._active = 0
        self._lock = threading.Lock()

    def read(self) -> View:
        """One consistent view, from now until the end of the block that it is for. Raises `StoreError`."""
        self._enter()
        try:
            return View(self, LmdbTxn(self._raw.begin(), self._tables))
        except BaseException as error:
            self.leave()
            if isinstance(error, lmdb.Error):
                raise store_error(self.path, error) from error
            raise

    @contextmanager
    def write(self) -> Iterator[LmdbTxn]:
        """Changes that are committed at the end, or dropped when the block raises.

        Waits for another writer, in whatever process. Raises `StoreError` (`StoreFullError` when there is no
        room).
        """
        with self._busy(), self._raw.begin(write=True) as raw:
            yield LmdbTxn(raw, self._tables)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        except lmdb.Error as error:
            raise store_error(self.path, error) from error
        finally:
            self.leave()

    def _enter(self) -> None:
        if self._pid != os.getpid():
            raise StoreError(f"{self.path} was opened before a fork: a forked child cannot use it")
        with self._lock:
            if self.users <= 0:
                raise EnvironmentClosedError(f"{self.path} is closed")
            self._active += 1

    def leave(self) -> None:
        """A transaction is over; the last one closes an environment that was given back meanwhile."""
        with self._lock:
            self._active -= 1
            if self.users <= 0 and not self._active:
                self._raw.close()

    def sync(self) -> None:
        """Flush everything to disk, the meta page too."""
        with self._busy():
            self._raw.sync(True)

    def spare(self) -> int:
        """About how many bytes of the file are in pages that hold nothing any more."""
        with self._busy():
            raw = self._raw.begin()
            try:
                stats = [raw.stat(table) for table in self._tables.values()]
            finally:
                raw.abort()
            used = sum(
                each["branch_pages"] + each["leaf_pages"] + each["overflow_pages"]
                for each in (*stats, self._raw.stat())
            )
            pages: int = self._raw.info()["last_pgno"] + 1 - used
            return max(0, pages - _UNWRITTEN_PAGES) * int(self._raw.stat()["psize"])

    def copy(self, folder: Path) -> int:
        """Write a copy without free pages into an empty folder; a transaction that it has, no newer one."""
        with self._busy():
            number: int = self._raw.info()["last_txnid"]
            self._raw.copy(str(folder), compact=True)
        with (folder / DATA_FILE).open("rb+") as file:
            os.fsync(file.fileno())
        return number

    def close(self) -> None:
        """Give it back; the last one closes it, once no transaction is open any more."""
        with _open_lock, self._lock:
            self.users -= 1
            if self.users <= 0:
                if _open.get(self.path) is self:
                    del _open[self.path]
                if not self._active and self._pid == os.getpid():
                    self._raw.close()

    def prepare(self, tables: Sequence[str]) -> None:
        """Open the tables, make those that are missing, check the format.

        Nothing is written before the format is known to be ours. Raises `StoreVersionError` for a newer one.
        """
        with self._busy():
            if self.readonly:
                self._open_existing(tables)
                return
            # LMDB keeps a table open only if the transaction that opened it is committed, and py-lmdb commits
            # no others than write transactions here. One that changes nothing writes nothing.
            with self._raw.begin(write=True) as raw:
                try:
                    self._tables[META] = self._raw.open_db(META.encode(), txn=raw, create=False)
                except lmdb.NotFoundError:
                    if raw.stat()["entries"]:
                        raise self._foreign() from None
                    self._tables[META] = self._raw.open_db(META.encode(), txn=raw)
                    raw.put(FORMAT_KEY, b"%d" % FORMAT_VERSION, db=self._tables[META])
                self._check_format(raw.get(FORMAT_KEY, db=self._tables[META]))
                for table in tables:
                    self._tables[table] = self._raw.open_db(table.encode(), txn=raw)

    def _open_existing(self, tables: Sequence[str]) -> None:
        try:
            self._tables[META] = self._raw.open_db(META.encode(), create=False)
            with self._raw.begin() as raw:
                self._check_format(raw.get(FORMAT_KEY, db=self._tables[META]))
            for table in tables:
                self._tables[table] = self._raw.open_db(table.encode(), create=False)
        except lmdb.NotFoundError:
            raise self._foreign() from None

    def _foreign(self) -> StoreError:
        return StoreError(f"{self.path} is no store of Rewind's: move it away, or name another with --store")

    def _check_format(self, value: bytes | None) -> None:
        if value is None or not value.isdigit():
            raise StoreError(f"{self.path} names no format: restore it, or move it away")
        if int(value) > FORMAT_VERSION:
            raise StoreVersionError(
                f"{self.path} was written in format {int(value)}, this Rewind reads up to {FORMAT_VERSION}: "
                "update rewind-proxy, or name another store with --store"
            )

    def check_length(self) -> None:
        """Refuse a file cut short: touching a page that is not there would kill the process (SIGBUS)."""
        size, page = (self.path / DATA_FILE).stat().st_size, self._raw.stat()["psize"]
        if self._raw.info()["last_pgno"] + 1 - size // page > _UNWRITTEN_PAGES:
            raise StoreError(f"{self.path / DATA_FILE} is cut short: restore it, or move it away")

    def clear_stale_readers(self) -> None:
        """Free the places of readers whose processes are gone: they would keep old pages in use."""
        self._raw.reader_check()


def open_environment(
    folder: Path, tables: Sequence[str], *, readonly: bool = False, map_size: int | None = None
) -> Environment:
    """Open the environment in an existing folder, or share the one this process has open.

    `tables` begins with `meta`. A read-only one is opened without a lock where the lock file cannot be made.
    `map_size` is for tests. Raises `StoreError`: a network file system, damage, a newer format, no access, or
    one that this process has open read-only already.
    """
    path = folder.resolve()
    with _open_lock:
        shared = _open.get(path)
        if shared is not None:
            if shared.readonly and not readonly:
                raise StoreError(f"{path} is open read-only in this process: close it first")
            shared.users += 1
            return shared
        refuse_network(path)
        environment = Environment(path, _open_raw(path, readonly, map_size), readonly=readonly)
        try:
            environment.check_length()
            environment.clear_stale_readers()
            environment.prepare(tables)
        except lmdb.Error as error:
            environment.close()
            raise store_error(path, error) from error
        except BaseException:
            environment.close()
            raise
        _open[path] = environment
        return environment


def _open_raw(path: Path, readonly: bool, map_size: int | None) -> lmdb.Environment:
    sizes = _RESERVED if map_size is None else (map_size,)
    locks = (True, False) if readonly else (True,)
    for lock in locks:
        for size in sizes:
            try:
                return lmdb.open(
                    str(path),
                    map_size=size,
                    create=False,
                    readonly=readonly,
                    lock=lock,
                    metasync=False,
                    mode=0o644,
                    max_dbs=_MAX_TABLES,
                    max_readers=_MAX_READERS,
                )
            except lmdb.MemoryError as error:
                if size == sizes[-1]:
                    raise store_error(path, error) from error
            except lmdb.Error as error:
                if lock and readonly and getattr(error, "code", 0) in _NO_LOCK_FILE:
                    break
                raise store_error(path, error) from error
    raise StoreError(f"{path} cannot be opened")
