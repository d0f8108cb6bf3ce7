"""What a grown list of rules does to the log: texts that were cut are derived again or dropped."""

from __future__ import annotations

from pathlib import Path

from matching.recorded_projects import Project, request, settings_at
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.canonical.redact import MARK, Redactor
from rewind_proxy.matching.rewriting import run_rewriter, step_rewriter
from rewind_proxy.store import Log, RunRecord, StepRecord, Store

REDACTOR = Redactor(("pattern:zebra-[0-9]{2}",))


def rewritten(tmp_path: Path, **known: object) -> StepRecord:
    """A step of a project, with these members, redacted again."""
    project = Project(settings_at(tmp_path))
    text = "and so on " * 11 + "it is zebra-17"
    project.record(request({"model": "m1", "messages": [{"role": "user", "content": text}]}))
    with Log.open(project.settings.store, readonly=True) as log:
        (step,) = log.steps("20261130-090000-aaaa")
    assert step.preview.endswith("zebr")
    digest = project.reader.settings_digest
    with Store.open(project.settings.store, settings_digest=digest, readonly=True) as store:
        return step_rewriter(REDACTOR, project.reader, store)(step.model_copy(update=known))


def test_a_preview_is_derived_again(tmp_path: Path) -> None:
    """From what is stored, which has gone through the new rules by then; without it there is none."""
    assert rewritten(tmp_path).preview.startswith("and so on")
    assert rewritten(tmp_path, cassette=None).preview == ""
    assert rewritten(tmp_path, cassette="0" * 64).preview == ""


def test_all_other_texts_go_through_the_rules(tmp_path: Path) -> None:
    """Whole ones are redacted, what was cut is dropped."""
    miss: JsonObject = {
        "reason": "like zebra-17",
        "nearest": None,
        "difference": {"path": "$.a", "a": "zebra-1", "b": "7"},
        "would_match_with": [],
    }
    step = rewritten(
        tmp_path, path="/zebra-17", model="zebra-17", note="a->zebra-17", reason="no zebra-17", miss=miss
    )
    assert (step.path, step.model, step.note, step.reason) == (f"/{MARK}", MARK, f"a->{MARK}", f"no {MARK}")
    assert step.miss == miss | {
        "reason": f"like {MARK}",
        "difference": {"path": "$.a", "a": MARK, "b": MARK},
    }
    assert rewritten(tmp_path, note="x" * 897 + "...").note == ""


def test_a_run_goes_through_them_too() -> None:
    """Its client and its session."""
    run = RunRecord(id="r", mode="auto", started_at=1.0, client="zebra-17/1", session="s zebra-17")
    redacted = run_rewriter(REDACTOR)(run)
    assert (redacted.client, redacted.session) == (f"{MARK}/1", f"s {MARK}")
    assert run_rewriter(REDACTOR)(run.model_copy(update={"client": "x" * 200})).client == ""
