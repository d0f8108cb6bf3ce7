"""Multipart bodies as their parts: the boundary is drawn anew for each request and means nothing."""

from __future__ import annotations

import hashlib
import re

from rewind_proxy.canonical.model import JsonObject

_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)


def canonical_multipart(body: bytes, content_type: str) -> list[JsonObject] | None:
    """The parts of a multipart body (RFC 2046 §5.1.1), whatever the boundary; None when it is not one.

    A part is `{"headers": {name in lower case: value}, "text": str}`, or with `"sha256"` and `"length"` in
    place of `text` where it is no UTF-8. Anything unusual (a preamble, an epilogue, a repeated header, a
    missing end) gives None: such a body is opaque.
    """
    if not content_type.lstrip().lower().startswith("multipart/"):
        return None
    found = _BOUNDARY.search(content_type)
    if found is None:
        return None
    try:
        delimiter = b"\r\n--" + (found[1] or found[2]).encode("ascii")
    except UnicodeEncodeError:
        return None
    preamble, *pieces = (b"\r\n" + body).split(delimiter)
    if preamble or not pieces or pieces.pop() not in (b"--", b"--\r\n"):
        return None
    parts: list[JsonObject] = []
    for piece in pieces:
        part = _part(piece)
        if part is None:
            return None
        parts.append(part)
    return parts


def _part(piece: bytes) -> JsonObject | None:
    if not piece.startswith(b"\r\n"):
        return None
    head, blank, content = piece.partition(b"\r\n\r\n")
    if not blank:
        return None
    headers: JsonObject = {}
    for line in head.removeprefix(b"\r\n").split(b"\r\n") if head else ():
        name, colon, value = line.decode("utf-8", "surrogateescape").partition(":")
        name = name.strip().lower()
        if not colon or name in headers:
            return None
        headers[name] = value.strip()
    try:
        return {"headers": headers, "text": content.decode("utf-8")}
    except UnicodeDecodeError:
        digest = hashlib.sha256(content).hexdigest()
        return {"headers": headers, "sha256": digest, "length": len(content)}
