"""`rewind run --junit`: a run as JUnit XML, one test case a model step.

The elements and attributes are those that the Jenkins schema (junit-10.xsd), GitLab and the readers on GitHub
have in common: `testsuites` > `testsuite` > `properties`, then `testcase` with `failure` or `error` in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree as ET

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.output import safe, safe_line, write_text
from rewind_proxy.cli.run_summary import miss_text
from rewind_proxy.journal import JournalStep
from rewind_proxy.store import StepRecord

JUNIT = "the JUnit file"
_SUITE = "rewind"
_NOT_XML = re.compile("[\ufffe\uffff]")
"""What XML 1.0 §2.2 leaves out beside control characters and surrogates, which `safe` makes visible."""
_NAME_LENGTH = 120
_PROPERTIES = (
    "mode session steps exact normalised alias recorded refused passed side failed unused tokens_saved "
    "child_exit"
).split()


def write_junit(file: Path, report: JsonObject, steps: Sequence[JournalStep], empty: str) -> None:
    """Write a run as JUnit XML. Raises `RewindError` when the file cannot be written.

    `empty` says that no model call arrived where one had to; it is a case of its own, which fails.
    """
    ordered = sorted(steps, key=lambda each: (each.step.started_at, each.step.number))
    listed = report["misses"] if isinstance(report["misses"], list) else []
    misses = {each["step"]: each for each in listed if isinstance(each, dict)}
    cases = [_case(each, misses.get(f"{each.step.run}.{each.step.number}")) for each in ordered]
    if empty:
        cases.append(_problem(_named(_SUITE, "model calls", 0.0), "failure", "empty", empty, empty))
    seconds = sum(each.step.latency_ms for each in ordered) / 1000
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{seconds:.3f}",
    }
    root = ET.Element("testsuites", {"name": _SUITE, **totals})
    suite = ET.SubElement(root, "testsuite", {"name": _SUITE, **totals, "skipped": "0"})
    if ordered:
        begun = datetime.fromtimestamp(ordered[0].step.started_at, UTC)
        suite.set("timestamp", begun.strftime("%Y-%m-%dT%H:%M:%S"))
    properties = ET.SubElement(suite, "properties")
    for name in _PROPERTIES:
        ET.SubElement(properties, "property", {"name": name, "value": _attribute(str(report[name]))})
    suite.extend(cases)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    write_text(file, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', JUNIT)


def _case(of: JournalStep, miss: JsonObject | None) -> ET.Element:
    step = of.step
    about = " · ".join(filter(None, (f"step {step.number}", step.model, step.preview or step.path)))
    case = _named(of.session, about, step.latency_ms / 1000)
    if miss is not None:
        text = dedent(miss_text(miss).plain)
        return _problem(case, "failure", "refused", step.reason, text)
    if step.tier == "failed":
        text = f"{_address(step)}\n{step.reason}"
        return _problem(case, "error", "failed", step.reason or "the call could not be recorded", text)
    how = [step.tier, *filter(None, (step.note, step.cassette and f"recording {step.cassette[:12]}"))]
    ET.SubElement(case, "system-out").text = _content(f"{_address(step)}\n{' · '.join(how)}")
    return case


def _address(step: StepRecord) -> str:
    return f"{step.method} https://{step.host}{step.path}"


def _named(session: str, name: str, seconds: float) -> ET.Element:
    # Readers take what stands before the last dot for a package; the first word keeps runs together.
    named = _SUITE if session in ("", _SUITE) else f"{_SUITE}.{session}"
    line = _attribute(name)
    cut = line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"
    return ET.Element("testcase", {"classname": _attribute(named), "name": cut, "time": f"{seconds:.3f}"})


def _problem(case: ET.Element, kind: str, what: str, message: str, text: str) -> ET.Element:
    ET.SubElement(case, kind, {"type": what, "message": _attribute(message)}).text = _content(text)
    return case


def _attribute(text: str) -> str:
    return _NOT_XML.sub("\ufffd", safe_line(text))


def _content(text: str) -> str:
    return _NOT_XML.sub("\ufffd", safe(text))
