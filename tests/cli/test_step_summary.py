"""The summary on the page of a GitHub workflow: Markdown in which nothing that others wrote is Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli.step_summary import VARIABLE, append_step_summary, step_summary
from rewind_proxy.report import Report

REFUSED = "a model call was refused"


def report(*misses: JsonObject, **counts: int) -> JsonObject:
    """A report of a run in replay."""
    counted = Report("replay", steps=3, exact=3 - len(misses), refused=len(misses), tokens_saved=1812)
    counted.misses += misses
    return counted.to_json(cassettes=3, child_exit=1) | dict(counts)


def miss(a: str = "bees", b: str = "wasps", url: str = "https://api.openai.com/v1/responses") -> JsonObject:
    """A miss as reports have it."""
    return {
        "step": "r.1",
        "method": "POST",
        "url": url,
        "reason": "The nearest recording differs in one place.",
        "nearest": "ab" * 32,
        "difference": {"path": "$.messages[0].parts[0].text", "a": a, "b": b},
        "would_match_with": ["ignore = top_k"],
    }


def test_a_good_run_is_a_headline_and_a_table() -> None:
    """The headline is that of the terminal; the table has the kinds of calls that there were."""
    text = step_summary(report(), "")
    assert text.startswith("<h3>✅ <code>rewind · replay · 3 calls: 3 exact · 1,812 tokens saved")
    assert text[: text.index("\n")].endswith("</code></h3>")
    assert "| exact | 3 |" in text
    assert "recorded" not in text
    assert "Next" not in text


def test_each_miss_is_a_block_with_a_diff() -> None:
    """What was recorded and what was asked begin their lines, so that they are coloured."""
    text = step_summary(report(miss()), REFUSED)
    assert text.startswith("<h3>❌ ")
    assert "<p><b>a model call was refused</b>; the command itself ended with 1.</p>" in text
    assert (
        "<details><summary>Refused: <code>POST https://api.openai.com/v1/responses</code></summary>" in text
    )
    assert "\n- recorded  bees\n+ live      wasps\n" in text
    assert "would match with: ignore = top_k" in text
    assert "`rewind run --mode auto -- CMD …`" in text


def test_nothing_breaks_out_of_its_block() -> None:
    """Fences are longer than those in the text; what is outside of one is escaped HTML on one line."""
    hostile = "```\n</details>\n# big |x| <script>alert(1)</script>\n`````js"
    text = step_summary(report(miss(a=hostile, url="https://x/<b>|`\n\n# y")), REFUSED)
    opening = text[text.index("``````diff\n") + len("``````diff\n") :]
    inside, closing, after = opening.partition("\n``````\n")
    assert closing
    assert "<script>" in inside
    assert "<script>" not in after
    assert "<code>POST https://x/&lt;b&gt;|` # y</code>" in text


def test_a_summary_keeps_to_what_github_takes() -> None:
    """Many and long misses are cut, and the rest is counted."""
    text = step_summary(report(*[miss(a="x" * 50_000)] * 40), REFUSED)
    assert len(text.encode()) < 2**20
    assert "… and 20 more" in text


def test_a_run_without_calls_says_what_to_do() -> None:
    """`doctor` knows what a command needs."""
    text = step_summary(report(steps=0, exact=0), "no model call arrived")
    assert "`rewind doctor`" in text


def test_it_is_appended_where_github_wants_it(tmp_path: Path) -> None:
    """Several runs of one step follow one another; without the variable nothing is written."""
    file = tmp_path / "summary.md"
    for _ in range(2):
        append_step_summary({VARIABLE: str(file)}, report(), "")
    append_step_summary({}, report(), "")
    assert file.read_text(encoding="utf-8").count("<h3>") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["summary.md"]


def test_a_summary_that_cannot_be_written_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run is what it was."""
    append_step_summary({VARIABLE: str(tmp_path)}, report(), "")
    assert "cannot be written" in capsys.readouterr().err
