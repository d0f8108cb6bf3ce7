"""`scripts/bench`: Rewind against the budgets of DESIGN §11, within one run on one machine.

All figures are medians of alternating repeats; what depends on the machine is a ratio to something measured
in the same run. It fails only when something broke, never because a figure is beyond its budget.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import bench_own_time
import bench_proxies
import bench_store
from bench_figures import Report

_ALL = ("own-time", "session", "hits", "first-byte", "sizes")


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats: under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--cassettes", type=int, metavar="N", help="size of the large store (20,000)")
    parser.add_argument("--wire", choices=("responses", "anthropic"), default="responses")
    parser.add_argument("only", nargs="*", metavar="PART", help=f"parts to run: {', '.join(_ALL)}")
    options = parser.parse_args()
    if unknown := set(options.only) - set(_ALL):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    quick: bool = options.quick
    cassettes: int = options.cassettes or (4_000 if quick else 20_000)
    report = Report()
    # As from the keyboard: what was started is ended, and the folder goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "own-time": partial(bench_own_time.measure, report, folder, quick=quick, wire=options.wire),
            "session": partial(bench_store.measure_session, report, folder, quick=quick),
            "hits": partial(bench_proxies.measure_hits, report, folder, quick=quick),
            "first-byte": partial(bench_proxies.measure_first_byte, report, folder, quick=quick),
            "sizes": partial(bench_store.measure_sizes, report, folder, cassettes=cassettes, quick=quick),
        }
        for part in options.only or _ALL:
            parts[part]()
    report.print()
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
