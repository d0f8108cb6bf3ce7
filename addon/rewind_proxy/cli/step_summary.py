"""The summary of a run for the page of a GitHub workflow: Markdown, appended to `$GITHUB_STEP_SUMMARY`.

What a client or model wrote stands in HTML blocks, escaped, or in code fences longer than any in it: nothing
in there is read as Markdown or HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.environment import warn
from rewind_proxy.cli.output import number, safe_line
from rewind_proxy.cli.run_summary import headline, miss_text

VARIABLE = "GITHUB_STEP_SUMMARY"
_MISSES_SHOWN = 20
_TEXT_SHOWN = 8_000
"""Characters of one miss: GitHub refuses a summary of more than 1 MiB as a whole."""
_FENCES = re.compile(r"`{3,}")
_SIGNED = re.compile(r"^ +([-+] )", re.MULTILINE)


def append_step_summary(environ: Mapping[str, str], report: JsonObject, reason: str) -> None:
    """Append the summary where GitHub wants one. A file that cannot be written is a warning, and no more."""
    if file := environ.get(VARIABLE):
        try:
            with Path(file).open("a", encoding="utf-8") as summary:
                summary.write(step_summary(report, reason))
        except OSError as error:
            warn([f"the summary {file} ({VARIABLE}) cannot be written ({error.strerror})"])


def step_summary(report: JsonObject, reason: str) -> str:
    """The summary of a report; `reason` says why the run is no success, if it is none."""
    parts = [f"<h3>{'❌' if reason else '✅'} <code>{_text(headline(report).plain)}</code></h3>"]
    if reason:
        parts.append(f"<p><b>{_text(reason)}</b>; the command itself ended with {report['child_exit']}.</p>")
    counts = [(name.replace("_", " "), report[name]) for name in _ROWS]
    rows = [f"| {name} | {number(count)} |" for name, count in counts if isinstance(count, int) and count]
    if rows:
        parts.append("\n".join(["| model calls | |", "|---|--:|", *rows]))
    misses = report["misses"] if isinstance(report["misses"], list) else []
    parts += [_miss(miss) for miss in misses[:_MISSES_SHOWN] if isinstance(miss, dict)]
    if len(misses) > _MISSES_SHOWN:
        parts.append(f"… and {number(len(misses) - _MISSES_SHOWN)} more: `--report` and `--junit` have all.")
    if steps := _next(report):
        parts.append("**Next**\n\n" + "\n".join(f"- {step}" for step in steps))
    return "\n\n".join(parts) + "\n\n"


_ROWS = "exact normalised alias recorded passed refused failed tokens_saved side unused".split()


def _miss(miss: JsonObject) -> str:
    text = dedent(miss_text(miss).plain)
    if len(text) > _TEXT_SHOWN:
        text = text[:_TEXT_SHOWN] + " …"
    # A line of a diff is coloured by its first character.
    text = _SIGNED.sub(r"\1", text)
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCES.findall(text))])
    title = _text(f"{miss['method']} {miss['url']}")
    return (
        f"<details><summary>Refused: <code>{title}</code></summary>\n\n"
        f"{fence}diff\n{text}\n{fence}\n\n</details>"
    )


def _next(report: JsonObject) -> list[str]:
    steps = []
    if report["refused"]:
        steps.append("Record what is missing, where there is a key: `rewind run --mode auto -- CMD …`")
        misses = report["misses"] if isinstance(report["misses"], list) else []
        if any(isinstance(miss, dict) and miss["would_match_with"] for miss in misses):
            steps.append(
                "Or have the difference left aside: “would match with” names the setting, for `rewind.toml`."
            )
    elif not report["steps"]:
        steps.append("See what the command needs to be led through the proxy: `rewind doctor`")
    if report["failed"] and not report["refused"]:
        steps.append("See why a call could not be recorded: the log of the proxy, and `rewind verify`")
    return steps


def _text(text: str) -> str:
    return html.escape(safe_line(text))
