"""`rewind run`, `proxy` and `web`: a proxy around one command, or in the foreground."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rewind_proxy import settings
from rewind_proxy.canonical.model import JsonObject, Mode
from rewind_proxy.cli.authority import Authority, ca_folder, ensure_ca
from rewind_proxy.cli.bundle import make_bundle, node_extra
from rewind_proxy.cli.child_environment import child_environment, split_credentials, upstream_proxy
from rewind_proxy.cli.environment import DEFAULT_PORT, warn
from rewind_proxy.cli.interference import upstream_problems
from rewind_proxy.cli.junit import JUNIT, write_junit
from rewind_proxy.cli.output import console, json_text, make_way, print_error, write_text
from rewind_proxy.cli.proxy_child import (
    ProxyChild,
    ProxyError,
    child_variables,
    command,
    wait_until_ready,
)
from rewind_proxy.cli.run_summary import print_summary
from rewind_proxy.cli.savings import with_money
from rewind_proxy.cli.settings_flags import as_options, with_settings
from rewind_proxy.cli.step_summary import append_step_summary
from rewind_proxy.cli.verb import FlagsAfterDashes
from rewind_proxy.explain.summary import NO_CALL
from rewind_proxy.handover import CALLS_FLAG, READY_FLAG
from rewind_proxy.report import FAILED_EXIT, REFUSED_EXIT
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable

NOT_FOUND_EXIT = 127
NOT_EXECUTABLE_EXIT = 126
REPORT = "the report"
DEFAULT_WEB_PORT = 8081
_PANEL = "Record and replay"
_REST = {"allow_extra_args": True, "ignore_unknown_options": True}
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH")

Flags = dict[str, object]
ListenPort = Annotated[
    int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="Port to listen on.")
]


def register(app: typer.Typer) -> None:
    """Add `run`, `proxy` and `web`."""
    app.command("run", rich_help_panel=_PANEL, no_args_is_help=True)(with_settings(run_command))
    app.command("proxy", cls=FlagsAfterDashes, rich_help_panel=_PANEL)(with_settings(proxy_command))
    app.command("web", cls=FlagsAfterDashes, rich_help_panel=_PANEL)(with_settings(web_command))


def run_command(
    words: Annotated[list[str], typer.Argument(metavar="-- CMD …", help="The command to run.")],
    report: Annotated[
        Path | None, typer.Option("--report", metavar="F.json", help="Write the report as JSON.")
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", metavar="F.xml", help="Write the report as JUnit XML, a case for each model call."
        ),
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="In replay, a run without model calls is no failure.")
    ] = False,
    *,
    flags: Flags,
) -> None:
    """Run a command with its model calls recorded and replayed; nothing but its environment is changed.

    Exit status: 4 when a model call was refused, or in replay none arrived; else 5 when a recording failed;
    else the command's own.
    """
    resolved = settings.load(flags=flags, environ=os.environ, cwd=Path.cwd())
    for file, what in ((report, REPORT), (junit, JUNIT)):
        if file is not None:
            make_way(file, what)
    hosts = HostTable(resolved.hosts)
    authority = ca_for(hosts)
    executable = shutil.which(words[0])
    if executable is None:
        found = Path(words[0]).exists()
        why = "cannot be executed" if found else "was not found"
        print_error(f"the command {words[0]!r} {why}")
        raise typer.Exit(NOT_EXECUTABLE_EXIT if found else NOT_FOUND_EXIT)
    bundle = make_bundle(authority.confdir, authority.ca_file, os.environ)
    arguments, upstream_auth = proxy_arguments(flags, 0, bundle)
    warn(upstream_warnings())
    keep_steps = junit is not None
    with ProxyChild("proxy", authority.confdir, arguments, upstream_auth, keep_steps=keep_steps) as proxy:
        listening = proxy.wait_until_ready()
        variables = agent_variables(authority, bundle, hosts, listening.port)
        child_exit = run_child([executable, *words[1:]], variables)
        try:
            result = with_money(proxy.end(), resolved) | {"child_exit": child_exit}
        except ProxyError as error:  # nothing went live: the command had no other way out
            print_error(f"{error}\nthe command itself ended with {child_exit}")
            raise typer.Exit(FAILED_EXIT) from None
        outcome = Outcome(result, resolved.mode, allow_empty)
        steps = proxy.steps() if keep_steps else []
        print_summary(result, outcome.reason, proxy.log if result["failed"] else None, resolved.fault)
        if not result["failed"]:
            proxy.forget()
    append_step_summary(os.environ, result, outcome.reason)
    if report is not None:
        write_text(report, json_text(result) + "\n", REPORT)
    if junit is not None:
        write_junit(junit, result, steps, outcome.reason if outcome.empty else "")
    raise typer.Exit(outcome.status)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run ends with, from its report (DESIGN §12)."""

    report: JsonObject
    mode: Mode
    allow_empty: bool

    @property
    def status(self) -> int:
        """The exit status of `rewind run`."""
        if self.report["refused"] or self.empty:
            return REFUSED_EXIT
        if self.report["failed"]:
            return FAILED_EXIT
        child_exit = self.report["child_exit"]
        assert isinstance(child_exit, int)
        return child_exit

    @property
    def reason(self) -> str:
        """Why the status is ours and not the command's; empty when it is the command's."""
        if self.report["refused"]:
            return "a model call was refused"
        if self.empty:
            return f"{NO_CALL}: does the command use HTTPS_PROXY? (`rewind doctor`, or --allow-empty)"
        if self.report["failed"]:
            place = " or written into the folder `cassettes`" if "cassettes" in self.report else ""
            return f"a call could not be recorded{place}"
        return ""

    @property
    def empty(self) -> bool:
        """Whether no model call arrived where one had to."""
        return self.mode == "replay" and not self.report["steps"] and not self.allow_empty


def proxy_arguments(flags: Flags, port: int, bundle: Path) -> tuple[list[str], str | None]:
    """Arguments of the proxy child, and the credentials of the corporate proxy that it chains to.

    Providers are verified by `bundle`, the system's roots and the user's: mitmproxy's are certifi's, which
    do not hold the CA of a company that reads TLS.
    """
    trust = ["--set", f"ssl_verify_upstream_trusted_ca={bundle}"]
    arguments = ["--listen-port", str(port), *trust, *as_options(flags)]
    corporate = upstream_proxy(os.environ, port or None)
    if corporate is None:
        return arguments, None
    server, credentials = split_credentials(corporate)
    return [*arguments, "--mode", f"upstream:{server}"], credentials


def upstream_warnings() -> list[str]:
    """Why live calls would fail behind us: the shell may still have what `rewind env` set."""
    return [f"{problem}: {step}" for problem, step in upstream_problems(os.environ)]


def ca_for(hosts: HostTable) -> Authority:
    """The CA for the known hosts, made when there is none."""
    names = hosts.dns_names()
    return ensure_ca(ca_folder(names, os.environ), names)


def agent_variables(authority: Authority, bundle: Path, hosts: HostTable, port: int) -> dict[str, str]:
    """The environment of the command; warnings about what had to be changed are printed."""
    extra = node_extra(authority.confdir, authority.ca_file, os.environ)
    url = f"http://127.0.0.1:{port}"
    changes, warnings = child_environment(os.environ, url, bundle, extra, hosts.patterns())
    warn(warnings)
    variables = dict(os.environ)
    for name, value in changes.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables


def run_child(words: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run the command in the foreground, pass signals on, and return its status (128 + n for a signal n)."""
    process = subprocess.Popen(words, env=variables)  # noqa: S603  # the user's own command

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    # The terminal sends Ctrl-C to the command itself; we wait for it to end.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    for name in _PASSED_ON:
        if number := getattr(signal, name, None):
            before[number] = signal.signal(number, pass_on)
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - status if status < 0 else status


def proxy_command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- FLAGS …]", help="More flags of mitmdump.")
    ] = None,
    port: ListenPort = DEFAULT_PORT,
    *,
    flags: Flags,
) -> None:
    """Run the proxy in the foreground, for clients started elsewhere (see `rewind env`)."""
    # A bare proxy is a leaner master; whoever asks for flags of mitmdump gets mitmdump.
    _foreground("proxy", "dump" if words else "proxy", port, flags, [CALLS_FLAG, *(words or [])])


def web_command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- FLAGS …]", help="More flags of mitmweb.")
    ] = None,
    port: ListenPort = DEFAULT_PORT,
    web_port: Annotated[
        int,
        typer.Option("--web-port", metavar="PORT", min=1, max=65535, help="Port of the page."),
    ] = DEFAULT_WEB_PORT,
    *,
    flags: Flags,
) -> None:
    """Run the proxy with mitmweb, and print the address of its page."""
    own = ["--no-web-open-browser", "--set", "web_columns=icon"]
    own += [word for column in WEB_COLUMNS for word in ("--set", f"web_columns={column}")]
    _foreground("web", "web", port, flags, [*own, "--web-port", str(web_port), *(words or [])])


WEB_COLUMNS = ("comment", "method", "path", "status", "size", "time")


def _foreground(verb: str, tool: str, port: int, flags: Flags, more: Sequence[str]) -> None:
    resolved: Settings = settings.load(flags=flags, environ=os.environ, cwd=Path.cwd())
    authority = ca_for(HostTable(resolved.hosts))
    bundle = make_bundle(authority.confdir, authority.ca_file, os.environ)
    arguments, upstream_auth = proxy_arguments(flags, port, bundle)
    with tempfile.TemporaryDirectory(prefix="rewind-") as folder:
        ready = Path(folder) / "ready.json"
        words = command(tool, authority.confdir, [READY_FLAG, str(ready), *arguments, *more])
        process = subprocess.Popen(words, env=child_variables(upstream_auth))  # noqa: S603  # our own module
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if number := getattr(signal, name, None):
                # Sent to us alone, they are to end the proxy; after a Ctrl-C it has two, and ends once.
                signal.signal(number, lambda n, _: process.send_signal(n))
        if listening := wait_until_ready(process, ready):
            console(stderr=True).print(
                f"rewind {verb} · mode {resolved.mode} · store {resolved.store}\n"
                f'In the shell of the client: eval "$(rewind env --port {listening.port})"',
                soft_wrap=True,
            )
    sys.exit(process.wait())
