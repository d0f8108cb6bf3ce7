"""The ids that link a call to its result."""

from __future__ import annotations

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonValue

_OTHER = "\0"


def linking_id(sent: JsonValue) -> str:
    """An id as a text that no other id has. Most are strings; some servers send numbers.

    A missing id and an empty one are the same: `""`.
    """
    if sent is None:
        return ""
    if isinstance(sent, str) and not sent.startswith(_OTHER):
        return sent
    return _OTHER + dumps(sent).decode("utf-8", "surrogatepass")
