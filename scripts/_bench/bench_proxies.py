"""Benches through real proxies: hits per second, memory, and the time to the first streamed byte."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from bench_bodies import SIZES, Agent
from bench_client import write_requests
from bench_figures import Figure, Report, alternate, median
from bench_own_time import Desk

from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.matching.reading import RawRequest

_HERE = Path(__file__).parent
_ADDON = _HERE.parents[1] / "addon"
_LISTENING = re.compile(rb"listening at \S*?:(\d+)")
_TUNNELS = 8
_QUESTIONS = {"4 KB": 16, "64 KB": 8, "1 MB": 2}
_AGENTS = {"4 KB": 8, "64 KB": 8, "1 MB": 4}
_REPEATS = {"4 KB": 5, "64 KB": 5, "1 MB": 2}
_BUDGETS = {"4 KB": 0.9, "64 KB": 0.8, "1 MB": 0.55}
_START = 60.0


class Told(TypedDict):
    """What the client prints."""

    answers: int
    seconds: float
    tiers: dict[str, int]
    firsts: list[float]


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy."""

    port: int
    pid: int
    ready_after: float
    """Seconds from its start until it listened."""

    @property
    def anonymous_memory(self) -> float:
        """MiB of resident anonymous memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def floor() -> list[str]:
    """A stock mitmdump with the fixed answer."""
    lazy = ("--set", "connection_strategy=lazy", "--set", "flow_detail=0")  # nothing is to be dialled
    return [str(Path(sys.executable).with_name("mitmdump")), "-s", str(_HERE / "bench_floor.py"), *lazy]


def scripted() -> list[str]:
    """A stock mitmdump with our add-on."""
    return [
        str(Path(sys.executable).with_name("mitmdump")),
        "-s",
        str(_ADDON / "rewind.py"),
        "--set",
        "flow_detail=0",
    ]


def lean() -> list[str]:
    """What `rewind proxy` starts."""
    return [sys.executable, "-m", "rewind_proxy.mitm", "proxy"]


@contextmanager
def running(
    argv: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None, **variables: str
) -> Iterator[Proxy]:
    """A proxy on a free port, ended with the block."""
    options = [f"rewind_{name}={value}" for name, value in (settings or {}).items()]
    options += [f"confdir={folder / 'ca'}", "termlog_verbosity=info"]
    argv = [*argv, "--listen-host", "127.0.0.1", "--listen-port", "0"]
    for option in options:
        argv += ["--set", option]
    begun = time.perf_counter()
    with (folder / "proxies.log").open("ab") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "PYTHONPATH": str(_ADDON),
                "PYTHONUNBUFFERED": "1",
                "HOME": str(folder),
                **variables,
            },
            cwd=folder,
            start_new_session=True,
        )
        try:
            port = _wait_for_port(process)
            yield Proxy(port, process.pid, time.perf_counter() - begun)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                log.write(process.communicate(timeout=20)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _wait_for_port(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        end = time.monotonic() + _START
        while time.monotonic() < end and selector.select(end - time.monotonic()):
            piece = os.read(process.stdout.fileno(), 65536)
            said += piece
            if found := _LISTENING.search(said):
                return int(found[1])
            if not piece:
                break
    raise RuntimeError(f"a proxy did not start:\n{said.decode(errors='replace')}")


def ask(
    proxy: Proxy, folder: Path, requests: Path, *, seconds: float, limit: int = 10**9, tunnels: int = _TUNNELS
) -> Told:
    """Run the client against a proxy."""
    argv = [proxy.port, folder / "ca" / "mitmproxy-ca-cert.pem", requests, tunnels, seconds, limit]
    done = subprocess.run(
        [sys.executable, str(_HERE / "bench_client.py"), *map(str, argv)],
        capture_output=True,
        timeout=seconds + 120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the client failed:\n{done.stderr.decode(errors='replace')}")
    told: Told = json.loads(done.stdout)
    return told


def wire_form(request: RawRequest) -> bytes:
    """A request as HTTP/1.1 writes it."""
    head = [f"{request.method} {request.path} HTTP/1.1", f"Host: {request.host}"]
    head += [f"{name}: {value}" for name, value in request.headers if name != "host"]
    head.append(f"content-length: {len(request.body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + request.body


def _hits_only(told: Told) -> float:
    wrong = {tier: count for tier, count in told["tiers"].items() if tier not in ("200 ", "200 normalised")}
    if wrong or not told["answers"]:
        raise RuntimeError(f"these are no hits of the normalised tier: {wrong}")
    return told["answers"] / told["seconds"]


def measure_hits(report: Report, folder: Path, *, quick: bool) -> None:
    """Hits per second of each size, and memory after them, against the floor."""
    desk = Desk(folder / "hits")
    for seed, (name, size) in enumerate(SIZES.items()):
        requests: list[bytes] = []
        agents = [Agent(90_000 + 100 * seed + each, size) for each in range(_AGENTS[name])]
        for tunnel in range(_TUNNELS):
            agent = agents[tunnel % len(agents)]
            for question in range(tunnel * _QUESTIONS[name], (tunnel + 1) * _QUESTIONS[name]):
                requests.append(wire_form(agent.asking(question)))
                desk.record(agent.asking(question, model="gpt-recorded"), reader=desk.reader)
        write_requests(folder / f"{name}.requests", requests)
    desk.store.close()
    settings = {"store": str(folder / "hits"), "mode": "replay"}
    seconds, repeats = (0.7, 2) if quick else (1.5, 5)
    with ExitStack() as stack:
        proxies = {
            "floor": stack.enter_context(running(floor(), folder)),
            "script": stack.enter_context(running(scripted(), folder, settings)),
            "lean": stack.enter_context(running(lean(), folder, settings)),
        }
        for name in SIZES:
            path = folder / f"{name}.requests"
            for proxy in proxies.values():
                ask(proxy, folder, path, seconds=seconds)
            rates = alternate(
                min(repeats, _REPEATS[name]),
                **{
                    way: lambda proxy=proxy, path=path: _hits_only(ask(proxy, folder, path, seconds=seconds))
                    for way, proxy in proxies.items()
                },
            )
            detail = f"{rates['script']:.0f} of {rates['floor']:.0f} per second"
            report.add(
                Figure(
                    "replay hits, of the floor",
                    f"{name}, mitmdump -s addon/rewind.py",
                    rates["script"] / rates["floor"],
                    "×",
                    _BUDGETS[name],
                    "more",
                    detail,
                ),
                Figure(
                    "replay hits, of the floor",
                    f"{name}, rewind proxy",
                    rates["lean"] / rates["floor"],
                    "×",
                    1.6 if name == "4 KB" else None,
                    "more",
                    f"{rates['lean']:.0f} per second",
                ),
            )
    count = 1000 if quick else 3000
    with running(floor(), folder) as plain, running(scripted(), folder, settings) as ours:
        mixed = folder / "4 KB.requests"
        for proxy in (plain, ours):
            ask(proxy, folder, folder / "64 KB.requests", seconds=60, limit=count // 20)
            ask(proxy, folder, mixed, seconds=120, limit=count)
        report.add(
            Figure(
                "memory",
                f"anonymous, after {count:,} replays",
                ours.anonymous_memory / plain.anonymous_memory,
                "×",
                1.3,
                detail=f"{ours.anonymous_memory:.0f} of {plain.anonymous_memory:.0f} MiB",
            )
        )


def measure_first_byte(report: Report, folder: Path, *, quick: bool) -> None:
    """Time to the first streamed byte while recording, against a stock mitmdump that passes the same."""
    repeats, each = (2, 10) if quick else (5, 20)
    with FakeProvider() as provider:
        settings = {
            "store": str(folder / "recorded"),
            "mode": "record",
            "upstream": f"api.openai.com={provider.url}",
        }
        upstream = provider.url.removeprefix("http://")
        agents = [Agent(70_000 + index, SIZES["64 KB"]) for index in range(repeats)]
        with (
            running(floor(), folder, BENCH_UPSTREAM=upstream) as plain,
            running(scripted(), folder, settings) as ours,
        ):
            firsts: dict[str, list[float]] = {"plain": [], "ours": []}
            for agent in agents:
                write_requests(
                    folder / "first.requests", [wire_form(agent.asking(question)) for question in range(each)]
                )
                for way, proxy in (("plain", plain), ("ours", ours)):
                    told = ask(proxy, folder, folder / "first.requests", seconds=60, limit=each, tunnels=1)
                    firsts[way] += told["firsts"]
    before, after = median(firsts["plain"]), median(firsts["ours"])
    report.add(
        Figure(
            "recording",
            "added time to the first streamed byte, 64 KB",
            after - before,
            "ms",
            2.0,
            detail=f"{after:.2f} against {before:.2f} ms",
        )
    )
