"""An exchange as another tool recorded it, plain: what every foreign format is read into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from rewind_proxy.errors import OpaqueBodyError
from rewind_proxy.matching.reading import RawRequest
from rewind_proxy.wire.body import decode

Headers: TypeAlias = tuple[tuple[str, str], ...]

LATEST = 221_845_392_000.0
"""The year 9000, in seconds since the epoch: a later time is none, and has no name in a calendar."""
NOT_THERE = "the body of its {} is not in the file"
_CODING = "content-encoding"
_LENGTH = "content-length"
_LONGEST = 10**9
_MOST = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Heard:
    """A request and its answer."""

    place: str
    """Names it in messages: the file, and which of its entries."""
    request: RawRequest
    status: int
    headers: Headers
    body: bytes
    started_at: float | None = None
    """Seconds since the epoch, where the file says so."""
    milliseconds: int = 0
    """From the request to the last byte of the answer."""
    broken: str = ""
    """What broke the answer off, if something did."""

    def started(self, now: float) -> float:
        """When it began; `now` where the file does not say so, or says nonsense."""
        said = self.started_at
        return said if said is not None and 0 <= said < LATEST else now

    @property
    def took(self) -> int:
        """Its milliseconds, where they make sense."""
        return self.milliseconds if 0 <= self.milliseconds < _LONGEST else 0


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that is no whole exchange, and why."""

    place: str
    reason: str


Entry: TypeAlias = Heard | Left


def request_to(method: str, url: str, headers: Headers, body: bytes) -> RawRequest | None:
    """A request by its whole URL; None when that names no host."""
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return None
    if not host or split.scheme not in ("http", "https", "ws", "wss"):
        return None
    return RawRequest(
        method=method,
        host=host,
        port=port or (80 if split.scheme in ("http", "ws") else 443),
        path=(split.path or "/") + (f"?{split.query}" if split.query else ""),
        headers=headers,
        body=body,
        upgrade=any(n.lower() == "upgrade" and v.lower() == "websocket" for n, v in headers),
    )


def lacks_body(headers: Headers, body: bytes, *told: object) -> bool:
    """Whether a body that is empty in the file was none: its own length, or a size `told` beside, says so.

    Tools leave out bodies that were large, or are no text; an empty one in their place is another message.
    """
    lengths = [value for name, value in headers if name.lower() == _LENGTH and value.strip(" 0")]
    return not body and (bool(lengths) or any(isinstance(size, int) and size > 0 for size in told))


def as_coded(headers: Headers, body: bytes) -> Headers:
    """The headers, without the content coding that the body no longer has.

    Many tools write a body decoded beside the headers as they came. What a coding does not decode, to the
    last byte, is no longer in it.
    """
    coding = next((value for name, value in headers if name.lower() == _CODING), "")
    if not coding:
        return headers
    try:
        decode(body, coding, _MOST)
    except OpaqueBodyError:
        return tuple((name, value) for name, value in headers if name.lower() != _CODING)
    return headers
