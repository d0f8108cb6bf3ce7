"""The clients that `doctor` knows: how to find them, and what each needs (CLIENTS.md)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class Client:
    """A command, and what a user of it should know."""

    command: str
    title: str
    needs: str
    proxied_from: tuple[tuple[int, int], ...] = ()
    """The first minor version of each major that goes through a proxy by itself; empty when all do."""


CLIENTS = (
    Client(
        "codex",
        "Codex CLI",
        "CODEX_CA_CERTIFICATE or SSL_CERT_FILE; full-screen as `codex --no-daemon`, since its daemon keeps "
        "the proxy and CA of its first start (`codex exec` is not affected, and takes CODEX_API_KEY)",
    ),
    Client(
        "claude",
        "Claude Code",
        "NODE_EXTRA_CA_CERTS from the shell: its settings.json is too late; "
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC changes its requests: set it in record and replay alike",
    ),
    Client(
        "gemini",
        "Gemini CLI",
        "NODE_EXTRA_CA_CERTS (SSL_CERT_FILE alone is ignored); its prompt lists the folder tree, so names "
        "in the working folder should not change between runs",
    ),
    Client("opencode", "opencode", "NODE_EXTRA_CA_CERTS or SSL_CERT_FILE"),
    Client("qwen", "Qwen Code", "NODE_EXTRA_CA_CERTS"),
    Client("copilot", "Copilot CLI", "NODE_EXTRA_CA_CERTS or SSL_CERT_FILE; each CA once in it"),
    Client(
        "node",
        "Node",
        "NODE_EXTRA_CA_CERTS and NODE_USE_ENV_PROXY; it ignores the system store without --use-system-ca",
        proxied_from=((22, 21), (24, 0)),
    ),
    Client(
        "python3",
        "Python",
        "REQUESTS_CA_BUNDLE for requests, SSL_CERT_FILE for the rest; aiohttp also needs trust_env=True",
    ),
    Client("curl", "curl", "CURL_CA_BUNDLE or SSL_CERT_FILE"),
    Client("git", "git", "GIT_SSL_CAINFO"),
)

_VERSION = re.compile(r"\d+(?:\.\d+)+")
# Agents written for Node take a second or two to start.
_TIMEOUT = 10.0


class ClientReport(BaseModel):
    """A client that was found on PATH."""

    model_config = ConfigDict(frozen=True)

    name: str
    command: str
    path: str
    version: str
    """As it says itself; empty when it does not answer."""
    status: Literal["ok", "warn"]
    needs: str


def installed_clients(environ: Mapping[str, str]) -> tuple[ClientReport, ...]:
    """Those of the clients that are on `PATH`, each asked for its version."""
    found = [
        (client, path)
        for client in CLIENTS
        if (path := shutil.which(client.command, path=environ.get("PATH", "")))
    ]
    if not found:
        return ()
    with ThreadPoolExecutor(4) as pool:
        versions = pool.map(lambda item: _version(item[1], environ), found)
        return tuple(
            _report(client, path, version) for (client, path), version in zip(found, versions, strict=True)
        )


def goes_through_proxy(client: Client, version: str) -> bool:
    """Whether this version of a client uses `HTTPS_PROXY` by itself; an unknown version is taken to do so."""
    parts = tuple(int(part) for part in version.split(".")[:2] if part)
    if not client.proxied_from or not parts:
        return True
    return parts >= client.proxied_from[-1] or any(
        parts[0] == first[0] and parts >= first for first in client.proxied_from
    )


def _report(client: Client, path: str, version: str) -> ClientReport:
    needs = client.needs
    proxied = goes_through_proxy(client, version)
    if not proxied:
        first = " or ".join(f"{major}.{minor}+" for major, minor in client.proxied_from)
        needs = f"an update to {first}: what is older goes past every proxy; {needs}"
    return ClientReport(
        name=client.title,
        command=client.command,
        path=path,
        version=version,
        status="ok" if proxied else "warn",
        needs=needs,
    )


def _version(path: str, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a program the user has on PATH, asked for its version
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    return match[0] if match else ""
