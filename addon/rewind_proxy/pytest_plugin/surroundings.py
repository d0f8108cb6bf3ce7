"""What a test finds around it: the variables of its process, and libraries that read them too early."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


def _context(bundle: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=bundle)
    context.set_alpn_protocols(["http/1.1"])  # as aiohttp's own has it
    return context


_KEPT: tuple[tuple[str, str, Callable[[str | None], object] | None], ...] = (
    ("urllib.request", "_opener", None),
    ("openai", "_client", None),
    ("aiohttp.connector", "_SSL_CONTEXT_VERIFIED", _context),
)
"""What libraries keep of an environment that they have read: module, name, and how it is made for another.

They would go past the proxy, which is a live call, or take our certificate for a wrong one. What nothing here
makes is None, and the library makes it anew.
"""


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """The variables of this process, changed for a while."""
    before = {name: os.environ.get(name) for name in changes}
    _apply(changes)
    try:
        with _forgotten(changes.get("SSL_CERT_FILE")):
            yield
    finally:
        _apply(before)


def _apply(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _forgotten(bundle: str | None) -> Iterator[None]:
    """Have libraries forget, for a while, what they keep; `bundle` is what to trust."""
    before: dict[str, object] = {}
    for name, attribute, make in _KEPT:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, attribute):
            before[name] = getattr(module, attribute)
            setattr(module, attribute, make(bundle) if make else None)
    try:
        yield
    finally:
        for name, attribute, make in _KEPT:
            module = sys.modules.get(name)  # perhaps imported only now
            if module is not None and (name in before or make is None):
                setattr(module, attribute, before.get(name))
