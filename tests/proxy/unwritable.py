"""A mitmproxy script after which no store can be written, as on a read-only disk: root may write anywhere."""

from __future__ import annotations

from rewind_proxy.matching import opening

opening._can_write = lambda store: not store
