"""Dates with a time: every common form goes as a whole, and what only looks like one stays (CASES 16, 18)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canonical.scrubbing import scrubbed

# One instant of each form, and another one of it.
FORMS = {
    "RFC 3339 in small letters": ("2026-11-30t09:00:01z", "2027-01-02t11:12:13z"),
    "with a short offset": ("2026-11-30 09:00:01.123+00", "2027-01-02 11:12:13.654+05"),
    "with the name of a zone": ("2026-11-30 09:00:01 CET", "2027-01-02 11:12:13 PST"),
    "with a place as zone": ("2026-11-30T09:00:01+01:00[Europe/Berlin]", "2027-01-02T11:12:13Z[Etc/UTC]"),
    "with AM": ("2026-11-30 09:00:01 AM", "2027-01-02 11:12:13 PM"),
    "with AM and a zone": ("11/30/2026, 9:00:01 AM UTC", "1/2/2027, 11:12:13 PM GMT+1"),
    "JavaScript's narrow blank": ("11/30/2026, 9:00:01\u202fAM", "1/2/2027, 11:12:13\u202fPM"),
    "milliseconds after a colon": ("2026-11-30T09:00:01:123Z", "2027-01-02T11:12:13:456Z"),
    "a word between": ("2026-11-30 at 09:00:01", "2027-01-02 at 11:12:13"),
    "Go": (
        "2026-11-30 09:00:01.123456789 +0000 UTC m=+0.000012",
        "2027-01-02 11:12:13.987654321 +0000 UTC m=+12.000044",
    ),
    "JavaScript": (
        "Mon Nov 30 2026 09:00:01 GMT+0000 (Coordinated Universal Time)",
        "Sat Jan 02 2027 11:12:13 GMT+0100 (Central European Standard Time)",
    ),
    "systemd": ("Mon 2026-11-30 09:00:01 UTC", "Sat 2027-01-02 11:12:13 UTC"),
    "RFC 850": ("Sunday, 06-Nov-94 08:49:37 GMT", "Monday, 07-Nov-94 09:49:37 GMT"),
    "a month between dashes": ("30-Nov-2026 09:00", "02-Jan-2027 11:12"),
    "day first": ("30 November 2026 09:00", "2 January 2027 11:12"),
    "day first with its name": ("Monday, 30 November 2026 09:00:01", "Saturday, 2 January 2027 11:12:13"),
    "ordinals": ("November 30th, 2026 at 9:00 AM", "January 2nd, 2027 at 11:12 PM"),
    "points": ("30.11.2026 09:00", "02.01.2027 11:12"),
    "points and a comma": ("30.11.2026, 09:00:01", "02.01.2027, 11:12:13"),
    "dashes, day first": ("30-11-2026 09:00:01", "02-01-2027 11:12:13"),
    "two digits of a year": ("11/30/26 9:00 AM", "1/2/27 11:12 PM"),
    "two digits of a year first": ("26/11/30 09:00:01", "27/01/02 11:12:13"),
    "Chinese and Japanese": ("2026年11月30日 09:00:01", "2027年1月2日 11:12:13"),
    "date of GNU": ("Mon Nov 30 09:00:01 AM CET 2026", "Sat Jan 2 11:12:13 PM CET 2027"),
    "date of GNU, day first": ("Mon 30 Nov 2026 09:00:01 AM UTC", "Sat 02 Jan 2027 11:12:13 AM UTC"),
    "date of GNU in German": ("Mo 30. Nov 09:00:01 CET 2026", "Sa 2. Mär 11:12:13 CET 2027"),
    "certificates": ("Nov 30 09:00:01 2026 GMT", "Jan 2 11:12:13 2027 GMT"),
    "ls -l": ("Nov 30 09:00", "Jan 2 11:12"),
    "the day's name after it": ("2026-11-30 09:00 (Mon)", "2027-01-02 11:12 (Sat)"),
    "the basic form of ISO 8601": ("20261130T090001Z", "20270102T111213Z"),
    "the basic form without seconds": ("20261130T0900", "20270102T1112"),
    "in names of files": ("20261130_090001", "20270102_111213"),
    "in names of files, with a dash": ("20261130-090001", "20270102-111213"),
    "in names of files, all dashes": ("2026-11-30-09-00-01", "2027-01-02-11-12-13"),
    "in names of files, in blocks": ("2026-11-30_090001", "2027-01-02_111213"),
    "a screenshot's": ("2026-11-30 at 09.00.01", "2027-01-02 at 11.12.13"),
    "in a URL": ("2026-11-30T09%3A00%3A01Z", "2027-01-02T11%3A12%3A13Z"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_time_goes_as_a_whole(form: str) -> None:
    """Nothing of it is left, in prose, alone, in brackets, at the end of a sentence."""
    for time in FORMS[form]:
        assert scrubbed(f"it ran at {time} and ended") == "it ran at ⟨time:1⟩ and ended"
        assert scrubbed(time) == "⟨time:1⟩"
        assert scrubbed(f"[{time}] ok") == "[⟨time:1⟩] ok"
        assert scrubbed(f"It ended {time}.") == "It ended ⟨time:1⟩."
        assert scrubbed(f"It ended {time}, then", "tool_result") == "It ended ⟨time⟩, then"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("log-@.txt", "log-⟨time:1⟩.txt"),
        ("backup_@.tar.gz", "backup_⟨time:1⟩.tar.gz"),
        ("at@", "at⟨time:1⟩"),
        ("\\n@\\n", "\\n⟨time:1⟩\\n"),
        ("\x1b[32m@\x1b[0m", "\x1b[32m⟨time:1⟩\x1b[0m"),
        ("?since=@&a=1", "?since=⟨time:1⟩&a=1"),
        ("%3D@", "%3D⟨time:1⟩"),
        ("在@发生", "在⟨time:1⟩发生"),
        ('{"at":"@"}', '{"at":"⟨time:1⟩"}'),
        ("app.log:12:@ started", "app.log:12:⟨time:1⟩ started"),
        ("@/@", "⟨time:1⟩/⟨time:1⟩"),
    ],
)
def test_what_may_stand_beside_a_time(text: str, seen: str) -> None:
    """A name, an escape, a colour, letters of another alphabet: a time is found in all of them."""
    assert scrubbed(text.replace("@", "2026-11-30T09:00:01Z")) == seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("2026-11-30 09:00:01 GET /a", "⟨time⟩ GET /a"),
        ("2026-11-30 09:00:01 POST /a", "⟨time⟩ POST /a"),
        ("2026-11-30 09:00,12,13", "⟨time⟩,12,13"),
        ("2026-11-30 09:00:01,123,a", "⟨time⟩,123,a"),
        ("2026-11-30 09:00:01,123 INFO", "⟨time⟩ INFO"),
        ("I1130 09:00:01.123456 1 a.go:7] up", "I⟨time⟩ ⟨process⟩ a.go:7] up"),
        ("-rw-r--r-- 1 u u 12 Nov 30 09:00 a.txt", "-rw-r--r-- 1 u u 12 ⟨time⟩ a.txt"),
        ("drwxr-xr-x 2 u u 4.0K Nov 30 09:00 2025", "drwxr-xr-x 2 u u 4.0K ⟨time⟩ 2025"),
        ("-rw-r--r-- 1 u u 12 Nov 30 2024 a.txt", "-rw-r--r-- 1 u u 12 ⟨time⟩ a.txt"),
        ("-2026-11-30 09:00:01 a\n+2026-11-30 09:00:02 b", "-2026-11-30 09:00:01 a\n+⟨time⟩ b"),
    ],
)
def test_times_in_lines_of_tools(text: str, seen: str) -> None:
    """What stands beside a time stays: methods, columns of a table, sizes, names of files."""
    assert scrubbed(text, "tool_result") == seen


@pytest.mark.parametrize(
    "text",
    [
        "signed on Nov 30 2024 in Rome",
        "gpt-4o-2024-08-06 at 30",
        "order 99991130-090001",
        "id 20261330_090001",
        "id 20261130_250001",
        "9920261130_090001",
        "20261130_0900012",
        "call 555-12-2024 10:30",
        "the train at 09:00",
        "ratio 16:9, John 3:16, 127.0.0.1:8080",
        "2026-11-30 09:00:5",
        "Marching 12 09:30x",
        "Version 1.2.3 09:00",
        "commit 20261130 fixed 090001",
    ],
)
def test_what_is_no_time_stays(text: str) -> None:
    """A date alone, a number that is no date, a clock, a piece of a longer number."""
    assert scrubbed(text) == text


def test_days_are_told_in_every_form() -> None:
    """Where a result names two days, which is the earlier one counts, whatever the form."""
    for early, late in (
        ("30 November 2026 09:00", "1 December 2026 09:00"),
        ("30.11.2026 09:00", "01.12.2026 09:00"),
        ("30-Nov-26 09:00", "01-Dec-26 09:00"),
        ("11/30/26 9:00 AM", "12/1/26 9:00 AM"),
        ("26/11/30 09:00:01", "26/12/01 09:00:01"),
        ("20261130_090001", "20261201_090001"),
        ("Mon 2026-11-30 09:00:01", "Tue 2026-12-01 09:00:01"),
        ("2026年11月30日 09:00", "2026年12月1日 09:00"),
        ("Nov 30 09:00", "Dec 1 09:00"),
        ("I1130 09:00:01.123456", "I1201 09:00:01.123456"),
        ("Mo 30. Nov 09:00:01 CET 2026", "Di 1. Dez 09:00:01 CET 2026"),
    ):
        marked = f"a {early} b {late}", f"a {late} b {early}"
        first, second = (scrubbed(text, "tool_result").replace("I⟨", "⟨") for text in marked)
        assert first == "a ⟨time day 1⟩ b ⟨time day 2⟩", early
        assert second == "a ⟨time day 2⟩ b ⟨time day 1⟩", early


def test_a_clock_is_of_no_day() -> None:
    """It does not make a text of one day one of two."""
    text = "Current time: 09:00:01\n2026-11-30 09:00:01 up"
    assert scrubbed(text, "tool_result") == "Current time: ⟨date⟩\n⟨time⟩ up"


WRITTEN = (
    "%Y-%m-%dT%H:%M:%S.%fZ|%Y-%m-%d_%H-%M-%S|%Y%m%dT%H%M%SZ|%Y%m%d_%H%M%S|%d/%b/%Y:%H:%M:%S|"
    "%Y-%m-%d %H:%M:%S|%Y/%m/%d %H:%M|%d.%m.%Y %H:%M:%S|%d-%b-%Y %H:%M|%A, %d %B %Y %H:%M:%S GMT|"
    "%a %b %d %H:%M:%S %Y|%B %d, %Y at %I:%M %p|%m/%d/%Y, %I:%M:%S %p|%b %d %H:%M:%S|%A, %d-%b-%y %H:%M:%S"
).split("|")


@given(
    st.integers(10**8, 2 * 10**9),
    st.sampled_from(WRITTEN),
    st.sampled_from(["@", "at @ ok", "(@)", '"@"', "<t>@</t>", "a\n@\nb", "\x1b[1;32m@\x1b[0m"]),
)
def test_no_digit_of_any_instant_is_left(second: int, form: str, around: str) -> None:
    """Whatever the instant, form and place."""
    time = datetime.fromtimestamp(second, UTC).strftime(form)
    assert scrubbed(around.replace("@", time)) == around.replace("@", "⟨time:1⟩")
