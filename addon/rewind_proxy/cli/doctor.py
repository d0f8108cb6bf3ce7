"""What `rewind doctor` looks at. It changes nothing: no CA, bundle or store is made by looking."""

from __future__ import annotations

import os
import shutil
import socket
import textwrap
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from rich.text import Text

from rewind_proxy import settings
from rewind_proxy.cli.authority import ca_folder, exposed_files, load_ca
from rewind_proxy.cli.bundle import node_certificates, trusted_certificates
from rewind_proxy.cli.child_environment import host_and_port, is_address
from rewind_proxy.cli.clients import ClientReport, installed_clients
from rewind_proxy.cli.interference import interference
from rewind_proxy.cli.output import console, plural, safe_line, size, table
from rewind_proxy.errors import CertificateError, SettingsError, StoreError
from rewind_proxy.settings import Resolved, Settings
from rewind_proxy.store import Log, Store, log_path
from rewind_proxy.store.network import network_file_system
from rewind_proxy.wire.hosts import HostTable

Status = Literal["ok", "warn", "fail"]

MITMPROXY_VERSIONS = ((11, 0), (13, 0))
"""The first that works, and the first that was not tried (`pyproject.toml`)."""

_STYLES: Mapping[Status, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_LITTLE_SPACE = 512 * 2**20
_TIMEOUT = 2.0
_INDENT = 17
_LEAST_ROOM = 30
# Counting does not depend on the match settings that a store is opened under.
_ANY_SETTINGS = "0" * 16


class Check(BaseModel):
    """One thing looked at. `next_step` is empty when there is nothing to do."""

    model_config = ConfigDict(frozen=True)

    name: str
    status: Status
    detail: str
    next_step: str = ""


class Report(BaseModel):
    """All that was looked at."""

    model_config = ConfigDict(frozen=True)

    checks: tuple[Check, ...]
    clients: tuple[ClientReport, ...]

    @property
    def broken(self) -> bool:
        """Whether something does not work as it is; warnings do not count."""
        return any(check.status == "fail" for check in self.checks)


def examine(environ: Mapping[str, str], cwd: Path, port: int, store: Path | None = None) -> Report:
    """Look at everything, for a proxy on `port` of this machine and clients started with `environ`."""
    checks = [check_mitmproxy()]
    try:
        resolved = settings.resolve(flags={"store": store}, environ=environ, cwd=cwd)
        hosts = HostTable(resolved.settings.hosts)
    except SettingsError as error:
        next_step = "correct it; the rest was checked with the defaults"
        checks.append(Check(name="settings", status="fail", detail=str(error), next_step=next_step))
        fallback = Settings(store=(cwd / (store or settings.DEFAULT_STORE)).absolute())
        resolved, hosts = Resolved(fallback, {}, None), HostTable()
    else:
        checks.append(check_settings(resolved))
    checks += [
        *check_ca(hosts, environ),
        *check_trust(environ),
        check_port(port),
        *check_store(resolved.settings.store),
        *check_variables(hosts, environ),
    ]
    return Report(checks=tuple(checks), clients=installed_clients(environ))


def show(report: Report) -> None:
    """Print a report for a person."""
    out = console()
    for check in report.checks:
        line = Text(f"{check.status:<5}", style=_STYLES[check.status])
        line.append(f"{check.name:<12}", style="bold")
        line.append(_hanging(check.detail, out.width, _INDENT), style="default")
        out.print(line, soft_wrap=True)
        if check.next_step:
            step = _hanging(check.next_step, out.width, _INDENT + 2)
            out.print(Text(f"{'':<{_INDENT}}→ {step}", style="dim"), soft_wrap=True)
    if report.clients:
        out.print()
        grid = table(("client", "left"), ("version", "left"), ("needs", "left"))
        for client in report.clients:
            grid.add_row(
                Text(client.name, style=_STYLES[client.status]), safe_line(client.version), client.needs
            )
        out.print(grid)


def _hanging(text: str, width: int, indent: int) -> str:
    """One line, or several of `width` characters that go on below the first; paths are never broken."""
    room = max(width - indent, _LEAST_ROOM)
    lines = textwrap.wrap(safe_line(text), room, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)


def check_mitmproxy() -> Check:
    """Whether mitmproxy is there, in a version that was tried."""
    try:
        found = version("mitmproxy")
    except PackageNotFoundError:
        detail = "not installed in Rewind's environment"
        return Check(name="mitmproxy", status="fail", detail=detail, next_step="install rewind-proxy anew")
    first, beyond = MITMPROXY_VERSIONS
    number = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if first <= number < beyond:
        return Check(name="mitmproxy", status="ok", detail=found)
    wanted = f"{first[0]}.{first[1]} to {beyond[0] - 1}"
    detail, next_step = f"{found} was not tried with this Rewind", f"install one from {wanted}"
    return Check(name="mitmproxy", status="warn", detail=detail, next_step=next_step)


def check_settings(resolved: Resolved) -> Check:
    """Where the settings come from. Values are left out, as some may be secret, but for the mode."""
    given = [f"{name} ({source})" for name, source in sorted(resolved.sources.items()) if source != "default"]
    detail = f"mode {resolved.settings.mode}; set: {', '.join(given) or 'none, all defaults'}"
    return Check(name="settings", status="ok", detail=detail)


def check_ca(hosts: HostTable, environ: Mapping[str, str]) -> Iterator[Check]:
    """The CA as it is on disk, and hosts that no CA can sign for."""
    names = hosts.dns_names()
    folder = ca_folder(names, environ)
    try:
        exposed = exposed_files(folder)
        if folder.exists():
            ca = load_ca(folder, names)
            detail = f"{ca.ca_file}, for {plural(len(ca.names), 'name')}, until {ca.expires:%Y-%m-%d}"
            yield Check(name="ca", status="ok", detail=detail)
        else:
            detail = f"none yet in {folder}; the first use makes it"
            yield Check(name="ca", status="warn", detail=detail, next_step="rewind ca make")
    except CertificateError as error:
        exposed = ()
        yield Check(name="ca", status="fail", detail=str(error), next_step="rewind ca make")
    if exposed:
        detail = f"others than you may open {', '.join(map(str, exposed))}"
        yield Check(name="ca modes", status="fail", detail=detail, next_step="rewind ca make")
    addresses = [pattern for pattern in hosts.patterns() if is_address(host_and_port(pattern)[0])]
    if addresses:
        yield Check(
            name="hosts",
            status="warn",
            detail=f"{', '.join(addresses)}: plain HTTP only, the CA does not sign for IP addresses",
            next_step="give the host a DNS name if it speaks TLS",
        )


def check_trust(environ: Mapping[str, str]) -> Iterator[Check]:
    """Whether the bundles can be made: roots of the system, and the user's variables lead somewhere."""
    try:
        system, own = trusted_certificates(environ)
        extra = node_certificates(environ)
    except CertificateError as error:
        yield Check(name="trust", status="fail", detail=str(error))
        return
    parts = (
        f"{plural(len(system), 'root')} of the system",
        f"{plural(len(own), 'certificate')} of your bundle variables",
        f"{len(extra)} of NODE_EXTRA_CA_CERTS",
    )
    yield Check(name="trust", status="ok", detail=", ".join(parts))


def check_port(port: int) -> Check:
    """Whether the port is free on loopback, or who has it."""
    place = f"127.0.0.1:{port}"
    try:
        with socket.create_server(("127.0.0.1", port)):
            return Check(name="port", status="ok", detail=f"{place} is free")
    except PermissionError:
        detail = f"{place} may not be used by you"
        return Check(name="port", status="warn", detail=detail, next_step="choose one above 1023 with --port")
    except OSError:
        if listener_is_mitmproxy(port):
            return Check(name="port", status="ok", detail=f"{place} is taken by a mitmproxy: a Rewind, maybe")
        detail = f"{place} is taken by another program"
        return Check(name="port", status="warn", detail=detail, next_step="choose another with --port")


def listener_is_mitmproxy(port: int) -> bool:
    """Whether what listens on a port of this machine answers as mitmproxy does.

    It is sent what is no HTTP, and refuses that itself, with its name: there is no host to look up or report.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT) as connection:
            connection.sendall(b"rewind-doctor\r\n\r\n")
            answer = connection.recv(4096)
    except OSError:
        return False
    return b"mitmproxy" in answer.lower()


def check_store(path: Path) -> Iterator[Check]:
    """Whether the store and its log can be read, and their place written to."""
    store = _check_store(path)
    yield store
    if log_path(path).exists():
        yield check_log(path)
    yield check_file_system(path, replays=store.status == "ok")


def _check_store(path: Path) -> Check:
    if not path.exists():
        return Check(name="store", status="ok", detail=f"{path}: none yet, the first recording makes it")
    if not path.is_dir():
        detail, next_step = f"{path} is not a folder", "name another with --store"
        return Check(name="store", status="fail", detail=detail, next_step=next_step)
    try:
        with Store.open(path, settings_digest=_ANY_SETTINGS, readonly=True, create=False) as store:
            stats = store.stats()
    except StoreError as error:  # it says itself what to do
        return Check(name="store", status="fail", detail=str(error))
    detail = f"{path}: {plural(stats.cassettes, 'recording')}, {size(stats.bytes_on_disk)}"
    return Check(name="store", status="ok", detail=detail)


def check_log(store: Path) -> Check:
    """Whether the log of a store can be read: no proxy starts without it."""
    try:
        with Log.open(store, readonly=True) as log:
            runs = sum(1 for _ in log.runs())
    except StoreError as error:
        return Check(name="log", status="fail", detail=str(error))
    return Check(name="log", status="ok", detail=f"{log_path(store)}: {plural(runs, 'run')}")


def check_file_system(path: Path, *, replays: bool) -> Check:
    """Whether LMDB can work where the store is or will be, and whether there is room.

    `replays`: whether what the store holds can be replayed.
    """
    place = next(folder for folder in (path, *path.parents) if folder.exists()).resolve()
    if kind := network_file_system(place, _mounts()):
        detail = f"{place} is on a network file system ({kind}), which LMDB cannot use"
        return Check(
            name="file system", status="fail", detail=detail, next_step="put the store on a local disk"
        )
    if not os.access(place, os.W_OK):
        what = "is read-only for you: replay works, recording does not"
        detail = f"{place} {what if replays else 'may not be written by you'}"
        return Check(name="file system", status="warn", detail=detail, next_step="change its mode")
    free = shutil.disk_usage(place).free
    detail = f"{size(free)} free at {place}"
    if free < _LITTLE_SPACE:
        return Check(name="file system", status="warn", detail=detail, next_step="free some disk space")
    return Check(name="file system", status="ok", detail=detail)


def _mounts() -> str:
    try:
        return Path("/proc/mounts").read_text(errors="replace")
    except OSError:
        return ""  # no Linux: the store itself does its best


def check_variables(hosts: HostTable, environ: Mapping[str, str]) -> Iterator[Check]:
    """Variables that get in the way; none of them is fatal."""
    found = tuple(interference(hosts, environ))
    if not found:
        yield Check(name="variables", status="ok", detail="none gets in the way")
    for detail, next_step in found:
        yield Check(name="variables", status="warn", detail=detail, next_step=next_step)
