"""The errors of Rewind, one small tree.

Every message names the place (option, file, key, rule) and the next step, and never the secret.
"""


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


class OpaqueBodyError(RewindError):
    """A body that cannot be read as one JSON document (duplicate member, bad UTF-8, not JSON …)."""


class CertificateError(RewindError):
    """The CA or a bundle cannot be made or read."""


class CoreHashError(RewindError):
    """A value that has no interoperable hash (DESIGN §13): the message says what stands in the way."""


class PortingError(RewindError):
    """A file that is to be imported is none that Rewind reads, or broken: the message names the place."""
