"""The line that `rewind run` ends with: what it names, and what it leaves out."""

from __future__ import annotations

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.cli.run_summary import headline, print_summary
from rewind_proxy.report import SERVED, Report
from rewind_proxy.store import StepRecord


def told(**known: JsonValue) -> str:
    """The headline of a report with these members, and nothing else in it."""
    return headline(Report("replay").to_json(cassettes=0, child_exit=0) | known).plain


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ((0, None, 0), ""),
        ((812, None, 999), " · 812 tokens saved"),
        ((18_750, None, 4200), " · 18,750 tokens and 4.2 s saved"),
        ((18_750, 0.07, 4200), " · 18,750 tokens, $0.07 and 4.2 s saved"),
        ((12, 0.0001, 0), " · 12 tokens and under $0.01 saved"),
        ((0, None, 65_000), " · 1 min 5 s saved"),
    ],
)
def test_what_was_saved(saved: tuple[int, float | None, int], words: str) -> None:
    """Tokens, money and time, each only where it is known and worth a word."""
    tokens, money, ms = saved
    line = told(steps=1, exact=1, tokens_saved=tokens, money_saved_usd=money, saved_ms=ms)
    assert line == f"rewind · replay · 1 call: 1 exact{words}"


def test_what_was_not_used_of_the_recordings() -> None:
    """A run that was answered, or should have been, says how many recordings it did not touch."""
    assert told(steps=1, exact=1, unused=3).endswith("1 exact · 3 unused")
    assert told(steps=1, refused=1, unused=3).endswith("1 refused · 3 unused")


def test_a_first_recording_says_nothing_of_others() -> None:
    """Where nothing was to be replayed, what other runs recorded is not unused."""
    assert "unused" not in told(steps=1, recorded=1, unused=3)


def test_unknown_hosts_that_were_kept_out_are_named() -> None:
    """A call that went to a host which Rewind does not know is not lost without a word."""
    line = told(tunnelled=["a.example"], refused_hosts=["127.0.0.2", "b.example"])
    assert line.endswith(
        " · no model call arrived · tunnelled a.example · refused unknown 127.0.0.2, b.example"
    )


def test_a_socket_that_was_passed_on_is_said() -> None:
    """What is said on it is not seen, so nobody can tell that no model call arrived; no other is one."""
    report = Report("passthrough")
    facts = {"run": "r", "number": 1, "started_at": 1.0, "cls": "socket", "host": "h", "path": "/p"}
    for tier, status, reason in (
        ("passed", 101, ""), ("passed", 404, ""), ("miss", 426, ""), ("passed", 101, SERVED),
    ):  # fmt: skip
        known = {"method": "GET", "tier": tier, "status": status, "reason": reason}
        report.add(StepRecord.model_validate(facts | known))
    line = headline(report.to_json(cassettes=0, child_exit=0)).plain
    assert line == "rewind · passthrough · 0 calls · 4 side · 1 socket passed on, not counted"


def test_a_log_that_is_elsewhere_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A store that cannot be written keeps no miss for later, and the summary says what to do."""
    report = Report("replay").to_json(cassettes=0, child_exit=0) | {"log": "/tmp/rewind-log-1/store.log"}
    print_summary(report, "", None)
    told = "the store cannot be written: this run is logged in /tmp/rewind-log-1/store.log; to answer a miss"
    assert told in capsys.readouterr().err


def test_faults_on_purpose_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """What they made counts as passed or as a hit, so the end of the run names them."""
    report = Report("replay").to_json(cassettes=0, child_exit=0) | {"passed": 1, "steps": 1}
    print_summary(report, "", None, "turn=1:429")
    assert "with faults on purpose: turn=1:429" in capsys.readouterr().err
    print_summary(report, "", None)
    assert "faults" not in capsys.readouterr().err
