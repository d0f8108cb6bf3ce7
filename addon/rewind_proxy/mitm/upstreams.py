"""`rewind_upstream`: where a known host's live traffic goes instead, and which addresses that makes ours."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from rewind_proxy.errors import SettingsError
from rewind_proxy.wire import Host, HostTable

Address = tuple[str, int]


class Upstreams:
    """The base URLs by host. Raises `SettingsError` for a host that no call could ever go to.

    A key is a known host's name or a pattern of the table; a name comes before a pattern.
    """

    def __init__(self, base_urls: Mapping[str, str], hosts: HostTable) -> None:
        self._base_urls: dict[str, str] = {}
        for key, base_url in base_urls.items():
            name = key.lower().removesuffix(":443").rstrip(".")
            bare, _, port = name.partition(":")
            if name not in hosts.patterns() and hosts.find(bare, int(port or 443)) is None:
                raise SettingsError(
                    f"rewind_upstream: {key} is no known host, so no call to it is seen; "
                    f"correct it, or add it to rewind_hosts as {key}=WIRE"
                )
            self._base_urls[name] = base_url
        self._places = frozenset(_place(_address(base_url)) for base_url in base_urls.values())

    def of(self, host: Host | None, requested: str) -> str | None:
        """The base URL for a known host; `requested` is the name in the request."""
        names = (host.name, requested.lower().rstrip("."), host.pattern) if host else (requested,)
        return next((self._base_urls[name] for name in names if name in self._base_urls), None)

    def leads_to(self, address: Address | None) -> bool:
        """Whether an address, however spelled, stands for a known host: never dialled in replay."""
        return address is not None and bool(self._places) and _place(address) in self._places


def is_address(name: str) -> bool:
    """Whether a host is given as an IP address, in any spelling."""
    with suppress(ValueError):
        ipaddress.ip_address(name.strip("[]"))
        return True
    with suppress(OSError):
        socket.inet_aton(name)
        return True
    return False


def _address(base_url: str) -> Address:
    split = urlsplit(base_url)
    return split.hostname or "", split.port or (443 if split.scheme == "https" else 80)


def _place(address: Address) -> Address:
    """An address in one spelling; all of this machine's loopback is one place."""
    name, port = address[0].lower().rstrip(".").strip("[]"), address[1]
    if name == "localhost" or name.endswith(".localhost"):
        return "loopback", port
    with suppress(ValueError):
        found = ipaddress.ip_address(name)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        found = mapped or found
        return ("loopback", port) if found.is_loopback or found.is_unspecified else (str(found), port)
    with suppress(OSError):  # `127.1` and other short forms of an address
        return _place((socket.inet_ntoa(socket.inet_aton(name)), port))
    return name, port
