"""`python -m rewind_proxy.cli.plugin_proxy SETTINGS`: the proxy of the pytest plugin, a process of its own.

`SETTINGS` are a JSON object, as in `rewind.toml`. It says what a test needs, in one line of JSON, and becomes
the proxy then, which is led by lines (`handover.QUESTIONS_FLAG`):

    {"environment": {name: value or null, …}, "warnings": [text, …], "mode", "store"}     or {"error": text}
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rewind_proxy import settings
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.bundle import make_bundle, node_extra
from rewind_proxy.cli.child_environment import child_environment
from rewind_proxy.cli.proxy_child import child_variables, command
from rewind_proxy.cli.run import ca_for, proxy_arguments, upstream_warnings
from rewind_proxy.errors import RewindError
from rewind_proxy.handover import PROXY_URL, QUESTIONS_FLAG
from rewind_proxy.wire import HostTable


def main(arguments: list[str]) -> None:
    """Say what a test needs, and be the proxy."""
    try:
        told, words, variables = prepared(json.loads(arguments[0]))
    except RewindError as error:
        _tell({"error": str(error)})
        sys.exit(1)
    _tell(told)
    if sys.platform == "win32":  # there a process cannot become another
        sys.exit(subprocess.run(words, env=variables, check=False).returncode)  # noqa: S603  # our own module
    os.execve(words[0], words, variables)  # noqa: S606  # our own module, no shell


def prepared(wanted: Mapping[str, JsonValue]) -> tuple[JsonObject, list[str], dict[str, str]]:
    """What a test needs; the command line of the proxy, and its environment. Raises `RewindError`."""
    flags: dict[str, object] = {name: flag(value) for name, value in wanted.items()}
    resolved = settings.load(flags=flags, environ=os.environ, cwd=Path.cwd(), flags_are="marker argument")
    hosts = HostTable(resolved.hosts)
    authority = ca_for(hosts)
    bundle = make_bundle(authority.confdir, authority.ca_file, os.environ)
    extra = node_extra(authority.confdir, authority.ca_file, os.environ)
    changes, warnings = child_environment(os.environ, PROXY_URL, bundle, extra, hosts.patterns())
    options, upstream_auth = proxy_arguments(flags, 0, bundle)
    told: JsonObject = {
        "environment": {**changes},
        "warnings": [*warnings, *upstream_warnings()],
        "mode": resolved.mode,
        "store": str(resolved.store),
    }
    words = command("proxy", authority.confdir, [QUESTIONS_FLAG, *options])
    return told, words, child_variables(upstream_auth)


def flag(value: JsonValue) -> str | list[str]:
    """A value of a setting as the flag of it is written."""
    match value:
        case str():
            return value
        case list():
            return [each if isinstance(each, str) else json.dumps(each) for each in value]
        case dict():
            return [f"{name}={each}" for name, each in value.items()]
        case _:
            return json.dumps(value)


def _tell(value: JsonObject) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
