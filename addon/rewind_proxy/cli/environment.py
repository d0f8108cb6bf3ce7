"""`rewind env`, `ca` and `doctor`: what a client needs before it can talk through the proxy."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.text import Text

from rewind_proxy import settings
from rewind_proxy.cli import doctor
from rewind_proxy.cli.authority import Authority, ca_folder, ensure_ca, exposed_files, load_ca
from rewind_proxy.cli.bundle import make_bundle, node_extra
from rewind_proxy.cli.child_environment import child_environment
from rewind_proxy.cli.opening import STORE_HELP
from rewind_proxy.cli.output import console, facts, print_json, safe_line
from rewind_proxy.errors import RewindError, SettingsError
from rewind_proxy.wire.hosts import HostTable

DEFAULT_PORT = 8080
_PANEL = "Set up"

# In a container the files stand here, mounted one by one: the folder of the CA holds its key.
_CONTAINER_BUNDLE = Path("/rewind/bundle.pem")
_CONTAINER_NODE_EXTRA = Path("/rewind/node-extra.pem")

Changes = Mapping[str, str | None]
Port = Annotated[int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="Port of the proxy.")]
Store = Annotated[Path | None, typer.Option("--store", metavar="DIR", help=STORE_HELP)]


class Shell(StrEnum):
    """A shell that `env` can write for."""

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"


class CaAction(StrEnum):
    """What `ca` does."""

    SHOW = "show"
    PATH = "path"
    MAKE = "make"


def register(app: typer.Typer) -> None:
    """Add `env`, `ca` and `doctor`."""
    app.command("env", rich_help_panel=_PANEL)(env_command)
    app.command("ca", rich_help_panel=_PANEL)(ca_command)
    app.command("doctor", rich_help_panel=_PANEL)(doctor_command)


def env_command(
    port: Port = DEFAULT_PORT,
    shell: Annotated[
        Shell, typer.Option("--shell", help="Shell to write for; sh is for bash and zsh, too.")
    ] = Shell.SH,
    github: Annotated[bool, typer.Option("--github", help='For `>> "$GITHUB_ENV"`.')] = False,
    docker: Annotated[bool, typer.Option("--docker", help="Options for `docker run`.")] = False,
    session: Annotated[
        str, typer.Option("--session", metavar="S", help="Name the session in the proxy's URL.")
    ] = "",
    unset: Annotated[bool, typer.Option("--unset", help="Take the variables out again.")] = False,
    store: Store = None,
) -> None:
    """Print the variables that send a client through the proxy: `eval "$(rewind env)"`."""
    if github + docker + (shell is not Shell.SH) > 1 or (docker and unset):
        raise typer.BadParameter(
            "--shell, --github and --docker exclude each other, and --docker has no --unset"
        )
    hosts = known_hosts(store)
    authority = ensure_ca(ca_folder(hosts.dns_names(), os.environ), hosts.dns_names())
    bundle = make_bundle(authority.confdir, authority.ca_file, os.environ)
    extra = node_extra(authority.confdir, authority.ca_file, os.environ)
    url = proxy_url(_host_of_proxy() if docker else "127.0.0.1", port, session)
    files = (_CONTAINER_BUNDLE, _CONTAINER_NODE_EXTRA) if docker else (bundle, extra)
    changes, warnings = child_environment(os.environ, url, *files, hosts.patterns())
    if unset:
        changes = dict.fromkeys(changes)
    else:
        warn(warnings)
    text = (
        docker_options(changes, bundle, extra) if docker else WRITERS["github" if github else shell](changes)
    )
    typer.echo(text)


def ca_command(
    action: Annotated[CaAction, typer.Argument(help="Show it, print its path, or make it.")] = CaAction.SHOW,
    as_json: Annotated[bool, typer.Option("--json", help="Show it as JSON.")] = False,
    store: Store = None,
) -> None:
    """The CA that clients are told to trust; `path` and `make` make it when there is none."""
    names = known_hosts(store).dns_names()
    folder = ca_folder(names, os.environ)
    if action is CaAction.PATH:
        typer.echo(str(ensure_ca(folder, names).ca_file))
        return
    authority = ensure_ca(folder, names) if action is CaAction.MAKE else load_ca(folder, names)
    _show_ca(authority, as_json=as_json)


def doctor_command(
    port: Port = DEFAULT_PORT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    store: Store = None,
) -> None:
    """Check what recording and replaying need; exit 1 when something is broken."""
    report = doctor.examine(os.environ, Path.cwd(), port, store)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        doctor.show(report)
    if report.broken:
        raise typer.Exit(1)


def known_hosts(store: Path | None = None) -> HostTable:
    """The table of hosts under the settings of the working directory. Raises `SettingsError`."""
    return HostTable(settings.load(flags={"store": store}, environ=os.environ, cwd=Path.cwd()).hosts)


def proxy_url(host: str, port: int, session: str = "") -> str:
    """The URL of our proxy for a client; its user name is the session (DESIGN §8).

    With a password, since several clients do not send a name alone. Raises `SettingsError` for a session that
    cannot be a user name.
    """
    if ":" in session or not session.isprintable():
        raise SettingsError(
            f"session {session!r} cannot be sent as a user name: no colon, no control characters"
        )
    user = f"{quote(session, safe='')}:x@" if session else ""
    return f"http://{user}{host}:{port}"


def warn(messages: list[str]) -> None:
    """Print warnings, one a line, on standard error: standard output is for `eval`."""
    for message in messages:
        line = Text("rewind: ", style="bold yellow").append(safe_line(message), style="default")
        console(stderr=True).print(line, soft_wrap=True)


def for_sh(changes: Changes) -> str:
    """For sh, bash and zsh."""
    return "\n".join(
        f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
        for name, value in changes.items()
    )


def for_fish(changes: Changes) -> str:
    """For fish, where only `\\` and `'` are special between single quotes."""
    return "\n".join(
        f"set -e {name}" if value is None else f"set -gx {name} '{_escaped(value)}'"
        for name, value in changes.items()
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def for_powershell(changes: Changes) -> str:
    """For PowerShell, where `''` is a quote between single quotes."""
    return "\n".join(
        f"Remove-Item Env:{name} -ErrorAction SilentlyContinue"
        if value is None
        else f"$env:{name} = '{value.replace(chr(39), chr(39) * 2)}'"
        for name, value in changes.items()
    )


def for_github(changes: Changes) -> str:
    """For the file that `$GITHUB_ENV` names: `NAME=value` lines; an empty value is all the unset it has."""
    for name, value in changes.items():
        if value and not value.isprintable():
            raise RewindError(f"the value of {name} holds a control character, which $GITHUB_ENV cannot take")
    return "\n".join(f"{name}={value or ''}" for name, value in changes.items())


WRITERS: Mapping[str, Callable[[Changes], str]] = {
    Shell.SH: for_sh,
    Shell.FISH: for_fish,
    Shell.POWERSHELL: for_powershell,
    "github": for_github,
}


def docker_options(changes: Changes, bundle: Path, node_extra: Path) -> str:
    """The options for `docker run`: network, the two files, the variables.

    On Linux the container shares the host's network, as the proxy listens on loopback alone; Docker Desktop
    leads `host.docker.internal` to the host's loopback.
    """
    options = ["--network=host"] if sys.platform == "linux" else []
    for source, target in ((bundle, _CONTAINER_BUNDLE), (node_extra, _CONTAINER_NODE_EXTRA)):
        options += ["-v", f"{source}:{target}:ro"]
    for name, value in changes.items():
        if value is not None:
            options += ["-e", f"{name}={value}"]
    return shlex.join(options)


def _host_of_proxy() -> str:
    return "127.0.0.1" if sys.platform == "linux" else "host.docker.internal"


def _show_ca(authority: Authority, *, as_json: bool) -> None:
    exposed = [str(path) for path in exposed_files(authority.confdir)]
    if as_json:
        print_json(
            {
                "path": str(authority.ca_file),
                "subject": authority.subject,
                "names": list(authority.names),
                "expires": authority.expires.isoformat(),
                "sha256": authority.fingerprint,
                "exposed": list(exposed),
            }
        )
        return
    rows = [
        ("path", str(authority.ca_file)),
        ("subject", authority.subject),
        ("signs for", ", ".join(authority.names)),
        ("expires", f"{authority.expires:%Y-%m-%d}"),
        ("sha256", authority.fingerprint),
        ("open to others", ", ".join(exposed)),
    ]
    console().print(facts([(name, safe_line(value)) for name, value in rows]))
