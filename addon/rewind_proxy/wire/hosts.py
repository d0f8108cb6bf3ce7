"""The hosts whose traffic Rewind reads (DESIGN §4), extended by `rewind_hosts`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from rewind_proxy.canonical.model import Wire
from rewind_proxy.errors import SettingsError

_WIRES: tuple[str, ...] = get_args(Wire)
_ENTRY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9*._-]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9*_](?:[a-z0-9*_-]*[a-z0-9*_])?")
_CACHED = 1024


@dataclass(frozen=True, slots=True)
class Host:
    """A known host.

    `name` is the host as `Target.host` has it: lower case, with `:port` when the table lists it so. `wire` is
    what it speaks by default. `telemetry`: nothing but telemetry. `auth_only`: nothing but logins, so it is
    tunnelled undecrypted in live modes.
    """

    pattern: str
    name: str
    wire: Wire
    telemetry: bool = False
    auth_only: bool = False


_DEFAULT_WIRES: dict[Wire, tuple[str, ...]] = {
    "responses": ("api.openai.com", "*.api.openai.com", "chatgpt.com", "*.chatgpt.com"),
    "anthropic": ("api.anthropic.com",),
    "gemini": (
        "generativelanguage.googleapis.com",
        "aiplatform.googleapis.com",
        "*-aiplatform.googleapis.com",
        "cloudcode-pa.googleapis.com",
    ),
    "chat_completions": (
        "*.openai.azure.com",
        "*.services.ai.azure.com",
        "openrouter.ai",
        "api.mistral.ai",
        "api.groq.com",
        "api.deepseek.com",
        "api.x.ai",
        "api.together.xyz",
        "api.fireworks.ai",
        "api.perplexity.ai",
        "api.cerebras.ai",
        "dashscope*.aliyuncs.com",
        "api.moonshot.ai",
        "api.githubcopilot.com",
        "api.*.githubcopilot.com",
    ),
    "generic": ("bedrock-runtime.*.amazonaws.com", "api.cohere.com"),
}
_HOSTS = (
    *(Host(pattern, pattern, wire) for wire, patterns in _DEFAULT_WIRES.items() for pattern in patterns),
    Host("auth.openai.com", "auth.openai.com", "responses", auth_only=True),
    Host("play.googleapis.com", "play.googleapis.com", "gemini", telemetry=True),
)


class HostTable:
    """Looks hosts up. Built once from the settings; the look-up costs one dictionary access when warm."""

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        """`extra` is `rewind_hosts`: a host, host:port or pattern to the wire it speaks; it goes first.

        Raises `SettingsError`, which names the entry.
        """
        own = tuple(_entry(entry, wire) for entry, wire in (extra or {}).items())
        taken = {host.pattern for host in own}
        self._hosts = own + tuple(host for host in _HOSTS if host.pattern not in taken)
        self._matchers = tuple((_matcher(host.pattern), host) for host in self._hosts)
        self._found: dict[tuple[str, int], Host | None] = {}

    def find(self, host: str, port: int) -> Host | None:
        """The known host at this address; None for an unknown one. Case and a trailing dot do not matter."""
        key = (host, port)
        try:
            return self._found[key]
        except KeyError:
            if len(self._found) >= _CACHED:
                self._found.clear()
            found = self._found[key] = self._look_up(host, port)
            return found

    def _look_up(self, host: str, port: int) -> Host | None:
        name = _normal(host)
        for matcher, entry in self._matchers:
            listed_port = _port(entry.pattern)
            if (listed_port is None or listed_port == port) and matcher.fullmatch(name):
                return replace(entry, name=name if listed_port is None else f"{name}:{port}")
        return None

    def patterns(self) -> tuple[str, ...]:
        """All patterns, the project's own first."""
        return tuple(host.pattern for host in self._hosts)

    def dns_names(self) -> tuple[str, ...]:
        """The names a CA for these hosts must be allowed to sign, sorted.

        A wildcard counts as the domain above it, and a name covers what is below it (RFC 5280 §4.2.1.10).
        Addresses are no names: an HTTPS gateway has to be listed by name.
        """
        names = {_domain(_bare(pattern)) for pattern in self.patterns() if not _is_address(_bare(pattern))}
        return tuple(sorted(name for name in names if not any(name.endswith(f".{other}") for other in names)))


def _entry(entry: str, wire: str) -> Host:
    place = f"hosts: {entry!r}"
    if wire not in _WIRES:
        raise SettingsError(f"{place}: unknown wire format {wire!r}; choose one of {', '.join(_WIRES)}")
    pattern = entry.strip().lower()
    found = _ENTRY.fullmatch(pattern)
    if found is None:
        raise SettingsError(f"{place}: write a host name, with a port if need be, and no scheme or path")
    port = found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise SettingsError(f"{place}: the port must be between 1 and 65535")
    host = _normal(found["host"])
    if not _is_address(host):
        if host.startswith("[") or not all(map(_LABEL.fullmatch, host.split("."))):
            raise SettingsError(f"{place}: this is no host name")
        if "*" in host and "." not in _domain(host):
            raise SettingsError(f"{place}: a pattern needs a domain of two names or more after its last `*`")
    pattern = host if port is None else f"{host}:{int(port)}"
    return Host(pattern, pattern, cast("Wire", wire))


def _normal(host: str) -> str:
    name = host.lower().removesuffix(".")
    address = name.removeprefix("[").removesuffix("]")
    if ":" in address:
        try:
            return f"[{ipaddress.IPv6Address(address)}]"
        except ValueError:  # no address after all: it matches nothing
            return name
    return name


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _port(pattern: str) -> int | None:
    _, colon, port = pattern.rpartition(":")
    return int(port) if colon and port.isdigit() and not pattern.endswith("]") else None


def _bare(pattern: str) -> str:
    return pattern if _port(pattern) is None else pattern.rpartition(":")[0]


def _domain(pattern: str) -> str:
    """What stands after the label of the last `*`."""
    return pattern if "*" not in pattern else pattern.rpartition("*")[2].partition(".")[2]


def _matcher(pattern: str) -> re.Pattern[str]:
    """A `*.` at the start is one label or more, a label `*` is one, and a `*` inside a label stays in it."""
    labels = _bare(pattern).split(".")
    head = r"(?:[^.]+\.)+" if labels[0] == "*" else ""
    rest = labels[1:] if head else labels
    return re.compile(
        head
        + r"\.".join("[^.]+" if label == "*" else re.escape(label).replace(r"\*", "[^.]*") for label in rest)
    )
