"""Rewind's settings as mitmproxy options, and mitmproxy's own options that would go past our hooks."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mitmproxy import exceptions, optmanager
from mitmproxy.addonmanager import Loader

from rewind_proxy.errors import SettingsError
from rewind_proxy.settings import FIELDS, Settings, load, unknown_option

_SCRIPTS = "mitmproxy.addons.script"  # whose import loads every add-on of mitmproxy's
PREFIX = "rewind_"

# Options that let a known host past our hooks, or answer in our place, and why. Each is refused in replay.
_BYPASSES: dict[str, str] = {
    "stream_large_bodies": "bodies would go upstream before Rewind sees them",
    "ignore_hosts": "connections would be tunnelled undecrypted",
    "allow_hosts": "connections to hosts not listed would be tunnelled undecrypted",
    "tcp_hosts": "connections would be handled as raw TCP",
    "udp_hosts": "connections would be handled as raw UDP",
    "server_replay": "mitmproxy's own server replay would answer",
    "client_replay": "requests would be sent that no client made",
    "map_remote": "requests would be sent to other hosts",
    "map_local": "mitmproxy would answer from files",
}
_MODES = ("regular", "upstream")


def bind(loader: Loader) -> None:
    """Add one option for each setting. Unset is an empty text or list: defaults are `settings`' own."""
    logging.getLogger(_SCRIPTS).addFilter(_plainly)
    for field in FIELDS:
        help_text = f"{field.help} Default: {field.default_text or 'none'}."
        if field.is_list:
            loader.add_option(field.option, Sequence[str], [], help_text)
        else:
            loader.add_option(field.option, str, "", help_text)


def _plainly(record: logging.LogRecord) -> bool:
    """What is wrong with an option of ours is said without a traceback, as if it were no script's."""
    if record.exc_info and isinstance(error := record.exc_info[1], exceptions.OptionsError):
        record.msg, record.args, record.exc_info = str(error), (), None
    return True


def settings_from(options: optmanager.OptManager) -> Settings:
    """The settings in force. Raises `SettingsError`, for a misspelt `rewind_…` option too."""
    deferred: dict[str, Any] = options.deferred
    for name in deferred:
        if name.startswith(PREFIX):
            raise SettingsError(unknown_option(name))
    given = {field.option: getattr(options, field.option) for field in FIELDS}
    return load(options=given, environ=os.environ, cwd=Path.cwd())


def bypasses(options: optmanager.OptManager) -> list[str]:
    """What in mitmproxy's options stands in the way of "no live call in replay": one sentence each."""
    found = [
        f"{name}: {why}" for name, why in _BYPASSES.items() if name in options and getattr(options, name)
    ]
    found += [
        f"mode {mode}: it looks names up" for mode in getattr(options, "mode", ()) if mode.startswith("dns")
    ]
    if "mode" in options and options.connection_strategy != "lazy":
        other = [mode for mode in options.mode if mode.partition(":")[0] not in _MODES]
        found += [
            f"mode {mode}: it connects before a request is seen; add --set connection_strategy=lazy"
            for mode in other
        ]
    return found
