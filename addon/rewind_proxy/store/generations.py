"""Generations: `<folder>/CURRENT` names the one in use, `<folder>/<n>/data.mdb` holds it.

A generation is replaced as a whole when the list of redaction rules grows (DESIGN §6) and when it is
compacted. The switch is made under the old generation's write lock, and every write looks at CURRENT under
that lock, so nothing is ever written to a generation that was left. Reads look at it too (one `stat`) and
move over.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from rewind_proxy.errors import StoreError
from rewind_proxy.store.current import CURRENT, Current
from rewind_proxy.store.environment import (
    DATA_FILE,
    META,
    Environment,
    EnvironmentClosedError,
    open_environment,
    store_error,
)
from rewind_proxy.store.origin import Origin, read_origin, read_redaction, write_origin, write_redaction
from rewind_proxy.store.transaction import LmdbTxn, MemoryTxn, Txn

_STATE_FOLDER = ".rewind"
_TRIES = 20
_COPIES = 3


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
        self._current = Current(folder)
        self._map_size = map_size
        self._lock = threading.RLock()
        self._seen: tuple[int, int] | None = None
        self._number = 0
        self._environment: Environment | None = None
        self._closed = False
        try:
            if folder.exists() and not folder.is_dir():  # what is missing is empty, this is a mistake
                raise StoreError(f"{folder} is not a folder: name another with --store")
            if not readonly:
                if create:
                    self._create()
                elif self._current.signature() is None:
                    raise StoreError(
                        f"there is no store at {folder}: record first, or name another with --store"
                    )
            self._known = frozenset(redaction) | frozenset(self.redaction)
            if not readonly:
                self._remove_left(redaction)
        except OSError as error:
            self.close()
            raise store_error(folder, error) from error
        except BaseException:
            self.close()
            raise

    # -- reading and writing

    def read(self) -> AbstractContextManager[Txn]:
        """A consistent view of the generation in use; an empty one where there is no store."""
        while True:
            environment = self._settle()
            if environment is None:
                return nullcontext(MemoryTxn())
            with suppress(EnvironmentClosedError):  # by another thread, just here
                return environment.read()

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
                txn = self._begun(stack)
                if txn is not None and self._current.signature() == self._seen:
                    self._check_redaction(txn)
                    yield txn
                    return

    def _begun(self, stack: ExitStack) -> LmdbTxn | None:
        environment = self._settle()
        # Another thread may move this object to a new generation just here.
        with suppress(EnvironmentClosedError):
            return stack.enter_context(environment.write()) if environment else None
        return None

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

    def spare(self) -> int:
        """About how many bytes of it hold nothing any more."""
        environment = self._settle()
        return 0 if environment is None else environment.spare()

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

    def _settle(self) -> Environment | None:
        """The environment of the generation that CURRENT names, opened if it is not the one in use."""
        environment = self._environment
        if self._current.signature() == self._seen and not self._closed:
            return environment
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.folder} is closed")
            for attempt in range(_TRIES):
                signature = self._current.signature()
                if signature == self._seen:
                    return self._environment
                if signature is None:
                    raise StoreError(f"{self.folder / CURRENT} is gone: restore it, or start anew")
                number = self._current.read()
                try:
                    environment = self._open(number)
                except StoreError:
                    # Perhaps it was left and removed between the two reads: then CURRENT has changed.
                    if self._current.signature() == signature or attempt == _TRIES - 1:
                        raise
                    continue
                old, self._environment = self._environment, environment
                self._seen, self._number = signature, number
                if old is not None:
                    old.close()
            raise StoreError(
                f"{self.folder / CURRENT} keeps changing: end the other processes that rewrite it"
            )

    def _open(self, number: int) -> Environment:
        folder = self.folder / str(number)
        if not (folder / DATA_FILE).is_file():
            raise StoreError(f"{folder / DATA_FILE} is missing: restore it, or move the store away")
        return open_environment(folder, self._tables, readonly=self.readonly, map_size=self._map_size)

    # -- making, replacing and removing generations

    def _create(self) -> None:
        if self._current.signature() is not None:
            return
        parent = self.folder.parent
        if parent.name == _STATE_FOLDER and not parent.exists():
            parent.mkdir(parents=True, exist_ok=True)
            (parent / ".gitignore").write_text("*\n")
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._current.locked():
            if self._current.signature() is None:
                self._make(1).close()
                self._current.write(1)

    def _make(self, number: int) -> Environment:
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        return open_environment(folder, self._tables, map_size=self._map_size)

    def _remove_left(self, redaction: Iterable[str]) -> None:
        """Remove what a killed process left, unless one is at work, or this one would go on with it."""
        with self._current.locked(wait=False) as got:
            if got:
                rules = self._merged(redaction)
                for folder in self._current.others():
                    origin = self._origin_of(folder)
                    wanted = origin is not None and (origin.number, origin.rules) == (self.number, rules)
                    if not wanted or rules == self.redaction:
                        shutil.rmtree(folder)

    def _merged(self, redaction: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.redaction, *redaction)))

    def _origin_of(self, folder: Path) -> Origin | None:
        """What a generation that is not in use is made from; None when it cannot be gone on with."""
        if not (folder / DATA_FILE).is_file():
            return None
        try:
            environment = open_environment(folder, (META,), map_size=self._map_size)
        except StoreError:
            return None
        try:
            with environment.read() as txn:
                return read_origin(txn)
        except StoreError:
            return None
        finally:
            environment.close()

    def replace(
        self,
        redaction: Iterable[str],
        finish: Callable[[Txn, Txn], None],
        fill: Callable[[Environment], None] | None = None,
        kind: str = "",
    ) -> Origin:
        """Make the next generation, switch to it and remove the one in use; how far the work had come.

        `fill` may write most of the new one while others go on using the old one. `finish(old, new)` brings
        it up to date under the old one's write lock, so that nothing comes between it and the switch. Both
        begin by `read_origin`, and note there what they have done (`write_origin`). Killed at any point, the
        old generation stays in use, and a later call for the same rules and `kind` goes on with the new one;
        after an error nothing of it is left. What another process did meanwhile is not done again.
        """
        rules, before = tuple(redaction), self.number
        with self._current.locked():
            origin = Origin(before, self._merged(rules), kind)
            if self.number != before and (made := self.origin) is not None and origin.same_work(made):
                self._known |= frozenset(rules)
                return made
            origin = Origin(self.number, self._merged(rules), kind)
            with self._next(origin) as fresh:
                if fill is not None:
                    fill(fresh)
                with self.write() as left:
                    with fresh.write() as txn:
                        finish(left, txn)
                        write_redaction(txn, origin.rules)
                        made = read_origin(txn) or origin
                    fresh.sync()
                    self._current.write(origin.number + 1)
                self._known |= frozenset(rules)
        return made

    @contextmanager
    def _next(self, origin: Origin) -> Iterator[Environment]:
        """The next generation, as far as it had come; at the end whichever is not in use then is removed."""
        old, number = origin.number, origin.number + 1
        folder = self.folder / str(number)
        if folder.exists() and not origin.same_work(self._origin_of(folder)):
            shutil.rmtree(folder)
        fresh = self._make(number)
        try:
            with fresh.write() as txn:
                if read_origin(txn) is None:
                    write_origin(txn, origin)
            yield fresh
            self._settle()
        except Exception:
            fresh.close()
            self._remove(old, number)
            raise
        except BaseException:  # interrupted: it can be gone on with
            fresh.close()
            raise
        fresh.close()
        self._remove(old, number)

    def _remove(self, *numbers: int) -> None:
        """Remove those of some generations that are not in use."""
        for number in {*numbers} - {self._current.read()}:
            shutil.rmtree(self.folder / str(number))

    def compact(self) -> tuple[int, int]:
        """Copy the generation in use without its freed pages, and remove it; bytes before and after.

        The copy is made while others go on; when something was written meanwhile it is made again, the last
        time with writers waiting. Raises `StoreError`; then the generation stays in use.
        """
        with self._current.locked():
            before, old = self.size(), self.number
            folder = self.folder / str(old + 1)
            try:
                for attempt in range(_COPIES):
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.mkdir()
                    waiting = attempt == _COPIES - 1
                    copied = -1 if waiting else self._copied(folder)
                    with self.write() as txn:
                        assert isinstance(txn, LmdbTxn)
                        if waiting:
                            self._copied(folder)
                        if waiting or txn.number == copied + 1:
                            self._current.write(old + 1)
                            break
                self._settle()
            finally:
                self._remove(old, old + 1)
        return before, self.size()

    def _copied(self, folder: Path) -> int:
        environment = self._settle()
        assert environment is not None
        return environment.copy(folder)

    @property
    def origin(self) -> Origin | None:
        """What the generation in use was rewritten from; None when it was not."""
        with self.read() as txn:
            return read_origin(txn)
