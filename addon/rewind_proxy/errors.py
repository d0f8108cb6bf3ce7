"""The errors of Rewind, one small tree.

Every message names the place (option, file, key, rule) and the next step, and never the secret.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator


class RewindError(Exception):
    """The root: anything a person should read as one sentence, without a traceback."""


class SettingsError(RewindError):
    """A setting, variable, key or option that is unknown, misspelt or has a bad value."""


class StoreError(RewindError):
    """The store cannot be opened, read or written."""


class StoreVersionError(StoreError):
    """The store was written by a newer Rewind: both versions are named."""


class StoreFullError(StoreError):
    """The disk or the map is full: the recording is lost, the client's answer is not."""


class CorruptRecordError(StoreError):
    """A stored value does not parse or does not match its checksum."""


class GoneError(CorruptRecordError):
    """A recording that was there when it was listed was deleted since, by another process."""


class OpaqueBodyError(RewindError):
    """A body that cannot be read as one JSON document (duplicate member, bad UTF-8, not JSON …)."""


class CertificateError(RewindError):
    """The CA or a bundle cannot be made or read."""


class CoreHashError(RewindError):
    """A value that has no interoperable hash (DESIGN §13): the message says what stands in the way."""


class PortingError(RewindError):
    """A file that is to be imported is none that Rewind reads, or broken: the message names the place."""


def words_of(error: BaseException) -> str:
    """What may be told of an exception: the words of ours and of the system's.

    Of another its type alone: its words may quote the value it choked on, a credential perhaps.
    """
    return str(error) if isinstance(error, RewindError | OSError) else type(error).__name__


def traceback_of(error: BaseException) -> str:
    """Where an exception was raised, and in the course of which others, for a log; words as in `words_of`."""
    return "".join(_lines(error))


def _lines(error: BaseException) -> Iterator[str]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _lines(before)
        yield "\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    words = words_of(error)
    yield f"{kind}\n" if kind.endswith(words) else f"{kind}: {words}\n"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _lines(each)
