"""The variables that send a client through the proxy. Pure: an environment goes in, changes come out.

Both cases of each proxy variable are set: curl reads only `http_proxy` in lower case, others prefer the upper
one. `NODE_TLS_REJECT_UNAUTHORIZED` and the like are the user's, and are left alone; so is `ALL_PROXY`, which
every client ranks below `HTTPS_PROXY`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rewind_proxy.cli.bundle import BUNDLE_VARIABLES, NODE_VARIABLE
from rewind_proxy.errors import SettingsError

PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
NO_PROXY_VARIABLES = ("NO_PROXY", "no_proxy")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Local servers (MCP) are reached directly (CASES 63)."""

UPSTREAM_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")

OVERRIDING_VARIABLES = ("WSS_PROXY", "WS_PROXY", "SOCKS_PROXY", "GRPC_PROXY", "NO_GRPC_PROXY")
"""What some clients (Python's `websockets`, gRPC) rank above `HTTPS_PROXY`, and so past Rewind."""

_SEPARATORS = re.compile(r"[\s,]+")
_NODE_SWITCH = "NODE_USE_ENV_PROXY"


def child_environment(
    environ: Mapping[str, str],
    proxy_url: str,
    bundle: Path,
    node_extra: Path,
    known_hosts: Sequence[str],
) -> tuple[dict[str, str | None], list[str]]:
    """What to change in a child's environment, and the warnings to print first.

    `proxy_url` has a scheme; `known_hosts` are patterns, with a port where `rewind_hosts` has one. In the
    changes, None means that the variable goes.
    """
    changes: dict[str, str | None] = dict.fromkeys(PROXY_VARIABLES, proxy_url)
    kept, hiding = split_no_proxy(environ, known_hosts)
    local = [host for host in LOCAL_HOSTS if not hidden_hosts(host, known_hosts) and host not in kept]
    changes |= dict.fromkeys(NO_PROXY_VARIABLES, ",".join([*kept, *local]))
    changes |= dict.fromkeys(BUNDLE_VARIABLES, str(bundle))
    changes |= {NODE_VARIABLE: str(node_extra), _NODE_SWITCH: "1"}
    warnings = [
        f"NO_PROXY: {entry!r} is left out for the child, it would hide {', '.join(hosts)} from Rewind"
        for entry, hosts in hiding.items()
    ]
    for name in overriding_variables(environ):
        changes[name] = None
        warnings.append(f"{name} is taken out for the child, some clients rank it above HTTPS_PROXY")
    return changes, warnings


def overriding_variables(environ: Mapping[str, str]) -> list[str]:
    """The variables set in `environ`, in either case, that would send model calls past the proxy."""
    names = (case for name in OVERRIDING_VARIABLES for case in (name, name.lower()))
    return [name for name in names if environ.get(name)]


def split_no_proxy(
    environ: Mapping[str, str], known_hosts: Sequence[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """The entries of the user's `NO_PROXY` to keep, and those to drop with the known hosts that they hide."""
    text = ",".join(environ.get(name, "") for name in NO_PROXY_VARIABLES)
    entries = dict.fromkeys(entry for entry in _SEPARATORS.split(text) if entry)
    hiding = {entry: hosts for entry in entries if (hosts := hidden_hosts(entry, known_hosts))}
    return [entry for entry in entries if entry not in hiding], hiding


def hidden_hosts(entry: str, known_hosts: Iterable[str]) -> list[str]:
    """The known hosts that some client would reach directly because of one `NO_PROXY` entry.

    Clients differ, so the widest reading counts: `openai.com`, `.openai.com` and `*.openai.com` cover every
    host that ends so (requests does not even ask for a dot), in any case, with any port unless both have one.
    """
    return [host for host in known_hosts if _hides(entry, host)]


def _hides(entry: str, known: str) -> bool:
    name, port = host_and_port(entry)
    host, host_port = host_and_port(known)
    if port and host_port and port != host_port:
        return False
    suffix = name.lstrip("*").lstrip(".")
    if is_address(host):
        return suffix == "" or _covers_address(suffix, host)
    if "*" in suffix:
        return fnmatchcase(host.replace("*", "x"), f"*{suffix}")
    return _ends(host).fullmatch(suffix) is not None


@lru_cache(256)
def _ends(pattern: str) -> re.Pattern[str]:
    """What some host of a pattern ends with: any tail of the pattern, filled in as `HostTable` reads it."""
    tails = [re.escape(pattern[start:]).replace(r"\*", "[^.]*") for start in range(len(pattern) + 1)]
    if pattern.startswith("*."):
        tails.append(r".+\." + tails[2])
    return re.compile("|".join(tails))


def host_and_port(host: str) -> tuple[str, str]:
    """A host in lower case without brackets and last dot, and its port or "" (`[::1]:4000`)."""
    text = host.strip().lower()
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        return address, rest.removeprefix(":")
    name, colon, port = text.partition(":")
    if colon and ":" in port:  # an IPv6 address without brackets
        return text, ""
    return name.rstrip("."), port


def is_address(host: str) -> bool:
    """Whether a host (without port and brackets) is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _covers_address(entry: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        # `10.` and `.5` are prefixes and suffixes to some clients.
        return address.startswith(entry) or address.endswith(entry)


def upstream_proxy(environ: Mapping[str, str], listen_port: int | None = None) -> str | None:
    """The proxy the user already has, as a URL with scheme and credentials, or None.

    `https_proxy` in either case, then `all_proxy`; where the cases differ the lower one counts, as for curl,
    Python and Node. One on this machine's `listen_port` is ourselves (`rewind env` was run in this shell),
    and none. Raises `SettingsError` (without the value, which may hold a password) for what mitmproxy cannot
    use.
    """
    for name in UPSTREAM_VARIABLES:
        if value := environ.get(name, "").strip():
            url = _proxy_url(name, value)
            parts = urlsplit(url)
            ourselves = parts.hostname in LOCAL_HOSTS and parts.port is not None and parts.port == listen_port
            return None if ourselves else url
    return None


def _proxy_url(name: str, value: str) -> str:
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in url):
        raise SettingsError(f"{name} is not the URL of a proxy; write it as http://host:port, or unset it")
    if parts.scheme.lower() not in ("http", "https"):
        raise SettingsError(
            f"{name} names a {parts.scheme} proxy, and only http and https ones can stand behind Rewind; "
            "unset it, or set HTTPS_PROXY to an HTTP proxy"
        )
    return url


def split_credentials(proxy_url: str) -> tuple[str, str | None]:
    """A proxy URL for mitmproxy's `upstream:` mode, and `user:password` (decoded) for its `upstream_auth`."""
    parts = urlsplit(proxy_url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    server = f"{parts.scheme.lower()}://{host}" + (f":{parts.port}" if parts.port else "")
    if parts.username is None:
        return server, None
    return server, f"{unquote(parts.username)}:{unquote(parts.password or '')}"
