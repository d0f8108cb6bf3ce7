"""`rewind run --junit`: one test case a model step, in XML that every reader takes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rewind_proxy.cli.junit import write_junit
from rewind_proxy.errors import RewindError
from rewind_proxy.journal import JournalStep
from rewind_proxy.report import Report
from rewind_proxy.store import StepRecord

MISS = {
    "reason": "The nearest recording differs in one place.",
    "nearest": "ab" * 32,
    "difference": {"path": "$.messages[0].parts[0].text", "a": "bees", "b": "wasps"},
    "would_match_with": ["ignore = top_k"],
}
ODD = "\x00\x1b[31m\ud83d ]]> <b>&\"' \ufffe\uffff é😀\u2028\t\n"


def step(number: int, **known: object) -> StepRecord:
    """A model step."""
    facts: dict[str, object] = {
        "run": "20261130-120000-abcd",
        "number": number,
        "started_at": 1_800_000_000.0 + number,
        "method": "POST",
        "host": "api.openai.com",
        "path": "/v1/responses",
        "tier": "exact",
        "model": "m1",
        "preview": "Say hello.",
        "latency_ms": 250,
    }
    return StepRecord.model_validate(facts | known)


def written(file: Path, *steps: StepRecord, session: str = "", empty: str = "") -> ET.Element:
    """The root of the XML of a run of these steps."""
    report = Report("replay")
    for each in steps:
        report.add(each)
    counts = report.to_json(cassettes=7, child_exit=3)
    write_junit(file, counts, [JournalStep(session, each) for each in steps], empty)
    return ET.fromstring(file.read_bytes())


def test_each_step_is_a_case(tmp_path: Path) -> None:
    """In the order of the calls, whatever ended first: named by number, model and preview, with its time."""
    root = written(tmp_path / "j.xml", step(2, preview="And goodbye."), step(1))
    cases = root.findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == ["step 1 · m1 · Say hello.", "step 2 · m1 · And goodbye."]
    assert [case.get("time") for case in cases] == ["0.250", "0.250"]
    assert [case.get("classname") for case in cases] == ["rewind", "rewind"]
    assert cases[0].findtext("system-out") == "POST https://api.openai.com/v1/responses\nexact"


def test_the_class_of_a_case_is_its_session(tmp_path: Path) -> None:
    """So that readers group the calls of a session."""
    root = written(tmp_path / "j.xml", step(1), session="checkout")
    assert [case.get("classname") for case in root.iter("testcase")] == ["rewind.checkout"]


def test_a_refused_step_is_a_failure_with_the_miss(tmp_path: Path) -> None:
    """Reason, nearest recording, difference and what would have matched are all in its text."""
    root = written(tmp_path / "j.xml", step(1, tier="miss", reason=MISS["reason"], miss=MISS))
    (failure,) = root.iter("failure")
    assert (failure.get("type"), failure.get("message")) == ("refused", MISS["reason"])
    text = failure.text or ""
    for part in (
        "abababababab",
        "$.messages[0].parts[0].text",
        "- recorded  bees",
        "+ live      wasps",
        "top_k",
    ):
        assert part in text


def test_a_failed_recording_is_an_error(tmp_path: Path) -> None:
    """With the reason as its message."""
    root = written(tmp_path / "j.xml", step(1, tier="failed", reason="the disk is full"))
    (error,) = root.iter("error")
    assert (error.get("type"), error.get("message")) == ("failed", "the disk is full")


def test_a_run_without_a_model_call_is_a_failing_case(tmp_path: Path) -> None:
    """A file without cases would count as a success."""
    root = written(tmp_path / "j.xml", empty="no model call arrived")
    (case,) = root.iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "no model call arrived"


def test_the_totals_agree_with_the_cases(tmp_path: Path) -> None:
    """On both levels, since some readers look at one only; the counts of the report are properties."""
    failed = step(3, tier="failed", reason="full")
    root = written(tmp_path / "j.xml", step(1), step(2, tier="miss", miss=MISS), failed, empty="none")
    suite = root.find("testsuite")
    assert suite is not None
    for element in (root, suite):
        found = {name: element.get(name) for name in ("tests", "failures", "errors", "time")}
        assert found == {"tests": "4", "failures": "2", "errors": "1", "time": "0.750"}
    assert suite.get("timestamp") == "2027-01-15T08:00:01"
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert (properties["steps"], properties["refused"], properties["unused"]) == ("3", "1", "7")
    assert (properties["mode"], properties["child_exit"]) == ("replay", "3")


def test_the_elements_stand_as_the_schema_wants_them(tmp_path: Path) -> None:
    """Properties come before cases, a case has one outcome, and every attribute is one that readers know."""
    root = written(tmp_path / "j.xml", step(1), step(2, tier="miss", miss=MISS), session="s")
    assert (root.tag, [child.tag for child in root]) == ("testsuites", ["testsuite"])
    suite = root[0]
    assert [child.tag for child in suite] == ["properties", "testcase", "testcase"]
    known = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
        "properties": set(),
        "property": {"name", "value"},
        "testcase": {"classname", "name", "time"},
        "failure": {"type", "message"},
        "system-out": set(),
    }
    for element in root.iter():
        assert set(element.keys()) == known[element.tag] or element.tag == "property", element.tag


def test_whatever_a_client_wrote_is_good_xml(tmp_path: Path) -> None:
    """Control characters, half characters and noncharacters are shown in another way."""
    miss = {**MISS, "difference": {"path": f"$.{ODD}", "a": ODD, "b": ODD}, "would_match_with": [ODD]}
    odd = step(1, tier="miss", model=ODD, preview=ODD, reason=ODD, miss={**miss, "reason": ODD})
    root = written(tmp_path / "j.xml", odd, step(2, tier="failed", reason=ODD), session=ODD)
    names = [case.get("name") or "" for case in root.iter("testcase")]
    assert "]]> <b>&\"' \ufffd\ufffd é😀" in names[0]
    assert "\\x1b[31m" in names[0]
    assert "\\ud83d" in names[0]


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    """Some readers keep 255 characters of a name, and fail on more."""
    root = written(tmp_path / "j.xml", step(1, model="m" * 500))
    (case,) = root.iter("testcase")
    assert len(case.get("name") or "") == 120


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Folders are made; what stands in the way of one is an error with its path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RewindError, match=r"JUnit file .*x\.xml cannot be written"):
        written(tmp_path / "file" / "x.xml", step(1))
    written(tmp_path / "a" / "b" / "x.xml", step(1))
    assert (tmp_path / "a" / "b" / "x.xml").is_file()
