"""`python -m rewind_proxy.mitm {proxy|dump|web} …`: the child that `rewind run`, `proxy` and `web` start.

`proxy` is a lean master: only the add-ons that a recording proxy needs. `dump` and `web` are mitmproxy's own
tools with all their flags and our add-on in its place. `--ready FILE` is written with `{"port", "url"}` once
the proxy listens, or with `{"error"}` when it cannot; `--report FILE` with the report when it has ended
(`handover.py` has all such flags).
`flows FILE` prints the flows of a file for `rewind import`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mitmproxy import master, options
from mitmproxy.addons import (
    core,
    disable_h2c,
    dns_resolver,
    errorcheck,
    next_layer,
    proxyserver,
    script,
    tlsconfig,
    upstream_auth,
)
from mitmproxy.tools import cmdline, main

from rewind_proxy.handover import (
    CALLS_FLAG,
    FLOWS_TOOL,
    QUESTIONS_FLAG,
    READY_FLAG,
    REPORT_FLAG,
    STEPS_FLAG,
    UPSTREAM_AUTH_VARIABLE,
)
from rewind_proxy.mitm.child import Orders, equip
from rewind_proxy.mitm.flows import print_flows
from rewind_proxy.mitm.questions import take_standard_output
from rewind_proxy.mitm.starting import port_taken


class LeanMaster(master.Master):
    """The add-ons that decode, answer and forward; none that prints, saves or changes flows.

    Every flow passes each add-on of a master, so leaving out twenty-five nearly doubles the hits per second.
    """

    def __init__(self, opts: options.Options) -> None:
        super().__init__(opts, with_termlog=True)
        self.addons.add(
            core.Core(),
            disable_h2c.DisableH2C(),
            proxyserver.Proxyserver(),
            dns_resolver.DnsResolver(),
            next_layer.NextLayer(),
            tlsconfig.TlsConfig(),
            upstream_auth.UpstreamAuth(),
            errorcheck.ErrorCheck(),
        )


def run(arguments: Sequence[str]) -> None:
    """Run the proxy until it is told to end. `SystemExit` carries its exit status when that is not 0."""
    if arguments[:1] == [FLOWS_TOOL]:
        print_flows(Path(arguments[1]))
        return
    parser = argparse.ArgumentParser(prog="python -m rewind_proxy.mitm", add_help=False)
    parser.add_argument("tool", choices=("proxy", "dump", "web"))
    parser.add_argument(READY_FLAG, type=Path)
    parser.add_argument(REPORT_FLAG, type=Path)
    parser.add_argument(STEPS_FLAG, type=Path)
    parser.add_argument(QUESTIONS_FLAG, action="store_true")
    parser.add_argument(CALLS_FLAG, action="store_true")
    own, rest = parser.parse_known_args(arguments)
    sys.argv[0] = "rewind"  # in whose name mitmproxy says what is wrong with an option
    answers = take_standard_output() if own.questions else None
    orders = Orders(own.ready, own.report, own.steps, answers, calls=own.calls)
    if upstream_auth := os.environ.pop(UPSTREAM_AUTH_VARIABLE, None):
        rest += ["--set", f"upstream_auth={upstream_auth}"]

    class Proxy(LeanMaster):
        def __init__(self, opts: options.Options) -> None:
            super().__init__(opts)
            equip(self, next_layer.NextLayer, orders)

    match own.tool:
        case "proxy":
            main.run(Proxy, cmdline.mitmdump, rest)
        case "dump":
            main.run(_dump(orders), cmdline.mitmdump, rest)
        case "web":
            main.run(_web(orders), cmdline.mitmweb, rest)


def _dump(orders: Orders) -> type[master.Master]:
    from mitmproxy.tools.dump import DumpMaster  # the lean proxy starts without it

    class Dump(DumpMaster):
        def __init__(self, opts: options.Options) -> None:
            super().__init__(opts)
            equip(self, script.ScriptLoader, orders)

    return Dump


def _web(orders: Orders) -> type[master.Master]:
    from mitmproxy.tools.web.master import WebMaster  # nor a web server

    class Web(WebMaster):
        def __init__(self, opts: options.Options) -> None:
            super().__init__(opts)
            self._start_check = equip(self, script.ScriptLoader, orders)

        async def running(self) -> None:
            try:
                await super().running()  # type: ignore[no-untyped-call]  # mitmproxy's
            except OSError as error:  # the page's own port; mitmproxy prints a traceback
                place = self.options.web_host, self.options.web_port
                self._start_check.refuse(port_taken(*place, error, "--web-port"))

    return Web


if __name__ == "__main__":
    run(sys.argv[1:])
