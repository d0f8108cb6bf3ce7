"""Dates, epochs and clocks alone: noise beside a cue that says now, else meaning (CASES 16, 18)."""

from __future__ import annotations

import pytest

from canonical.scrubbing import scrubbed

DATES = (
    "2026-11-30",
    "2026/11/30",
    "30.11.2026",
    "11/30/2026",
    "11/30/26",
    "20261130",
    "30-Nov-2026",
    "November 30, 2026",
    "Nov 30th, 2026",
    "30 November 2026",
    "the 30th of November 2026",
    "Monday, November 30, 2026",
    "Mon Nov 30 2026",
    "2026-11-30 (Monday)",
    "Monday, 2026-11-30",
    "2026年11月30日",
)


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    "cue",
    [
        "Today's date: @",
        "Today is @.",
        "**Current date:** @",
        "**Today's date**: @",
        "- **Date**: @",
        "Current date:\n@",
        "Today's date\n@",
        "<current_date>\n  @\n</current_date>",
        "<date>@</date>",
        '<env date="@">',
        "# Date: @",
        "Current date (YYYY-MM-DD): `@`",
        "Current date:\u00a0@",
        "It is currently @",
        "As of today (@)",
        "System date - @",
        "The date is @",
        "It's now @.",
        "Current date and time: @",
        "current_date=@",
        '{"currentDate":"@"}',
        '{"created_at": "@"}',
        '{\\"updated_at\\": \\"@\\"}',
        "timestamp: @",
        "event_timestamp=@",
        "在 Current date: @",
        "\\nDate: @\\n",
    ],
)
def test_a_date_beside_a_cue_goes(cue: str, date: str) -> None:
    """In Markdown, tags, keys and sentences, also over the end of a line."""
    assert scrubbed(cue.replace("@", date)) == cue.replace("@", "⟨date:1⟩")


@pytest.mark.parametrize("epoch", ["1764493201", "1764493201.123", "1764493201123", "1764493201123456789"])
@pytest.mark.parametrize(
    "cue",
    [
        "epoch: @",
        "unix timestamp @",
        "timestamp=@",
        "now = @",
        '{"created": @, "x": 1}',
        '{"mtime":@}',
        '{"ts": @}',
        '{"time": @}',
        '{"updatedAt": @}',
        '{\\"created_at\\": @}',
        "<time>@</time>",
        "mtime: @",
    ],
)
def test_an_epoch_beside_a_cue_goes(cue: str, epoch: str) -> None:
    """Seconds to nanoseconds, under a word or a key that says what they are."""
    assert scrubbed(cue.replace("@", epoch)) == cue.replace("@", "⟨date:1⟩")


@pytest.mark.parametrize("clock", ["09:00", "09:00:01", "9:00 AM", "09:00:01.123 UTC"])
@pytest.mark.parametrize(
    "cue", ["Current time: @", "The current time is @.", "Local time: @", "<current_time>@<"]
)
def test_a_clock_beside_a_cue_goes(cue: str, clock: str) -> None:
    """Only where it is said to be the time of now."""
    assert scrubbed(cue.replace("@", clock)) == cue.replace("@", "⟨date:1⟩")


@pytest.mark.parametrize("name", ["created", "Updated_At", "modifiedAt", "epoch", "ts", "mtime"])
@pytest.mark.parametrize("value", ["2026-11-30", " 30 November 2026 ", "1764493201"])
def test_a_member_that_says_date(name: str, value: str) -> None:
    """A whole text goes under a member whose name says what it is."""
    assert scrubbed(value, member=name) == value.replace(value.strip(), "⟨date:1⟩").rstrip()
    assert scrubbed(value, member="born").strip() == value.strip()


@pytest.mark.parametrize(
    "text",
    [
        "due date: 2026-11-30",
        "Due Date: **2026-11-30**",
        "due_date: 2026-11-30",
        "due-date: 2026-11-30",
        '{"dueDate": "2026-11-30"}',
        "birth date: 1990-01-01",
        "the date of birth is 1990-01-01",
        "release date is 2026-11-30",
        "The release date: 2026-11-30",
        "start date 2026-11-30",
        "the start date is November 30, 2026",
        "on the date 2024-01-06 it rained",
        "up to date 2024-01-06 report",
        "date 2024-01-06 or 2024-01-07?",
        "name,date\n2024-01-06,5",
        "the current 2024-08-06 model",
        "time = 1764493201",
        "time: 1764493201",
        "timeout: 1764493201",
        "until now 1764493201 rows",
        "order 1764493201",
        "I know 2024-01-06",
        "concurrent: 2024-01-06",
        "validated: 2024-01-06",
        "they created 1764493201 rows",
        "the train time is 09:00",
        "current ratio: 16:09",
        "epoch: 12",
        "timestamp: 123",
        "today at 5",
    ],
)
def test_dates_that_mean_something_stay(text: str) -> None:
    """A date that is not said to be of now is part of the question."""
    assert scrubbed(text) == text


def test_dates_that_the_model_wrote() -> None:
    """They come back as recorded on any day: they are told from each other, and not from today's."""
    assert scrubbed("date: 2026-11-30", "assistant") == "date: ⟨written:1⟩"
    assert scrubbed("2026-11-30", "assistant", member="date") == "⟨written:1⟩"
    seen = scrubbed("created_at: 2026-11-30, updated_at: 2026-12-01, modified_at: 2026-11-30", "assistant")
    assert seen == "created_at: ⟨written:1⟩, updated_at: ⟨written:2⟩, modified_at: ⟨written:1⟩"
    assert scrubbed("at 2026-11-30T09:00:01Z", "assistant") == "at ⟨time:1⟩"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("   Start at  10:11:12", "   Start at ⟨date⟩"),
        ("[10:11:12 AM] File change detected", "[⟨date⟩] File change detected"),
        ("[10:11:12] Starting 'build'...", "[⟨date⟩] Starting 'build'..."),
        ("[10:11:12.123] INFO up", "[⟨date⟩] INFO up"),
        ("10:11:12.123 [main] INFO App", "⟨date⟩ [main] INFO App"),
        ("9:08:07 PM [vite] hmr update", "⟨date⟩ [vite] hmr update"),
        ("10:11:12 ERROR no", "⟨date⟩ ERROR no"),
        ("[00:12:34] Ann: we start", "[00:12:34] Ann: we start"),
        ("00:12:34 Ann: INFO", "00:12:34 Ann: INFO"),
        ("00:12:34 [music] a song", "00:12:34 [music] a song"),
        ("10:00:00 [Keynote] Ann", "10:00:00 [Keynote] Ann"),
        ("[1:00:00 PM] Session 3", "[1:00:00 PM] Session 3"),
        ("Start at 10:11:12 sharp", "Start at 10:11:12 sharp"),
    ],
)
def test_the_clock_of_a_log(text: str, seen: str) -> None:
    """A line of a log may start with the time of day; the line of a transcript says where it stands."""
    assert scrubbed(text, "tool_result") == seen
    assert "⟨" not in scrubbed(text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Date du jour : lundi 30 novembre 2026", "Date du jour : @"),
        ("Nous sommes le 1er décembre 2026.", "Nous sommes le @."),
        ("Heutiges Datum: 30.11.2026", "Heutiges Datum: @"),
        ("Heute ist Montag, der 30. November 2026", "Heute ist @"),
        ("Fecha actual: 30 de noviembre de 2026", "Fecha actual: @"),
        ("Hoy es lunes, 30 de noviembre de 2026", "Hoy es @"),
        ("Data odierna: 30 novembre 2026", "Data odierna: @"),
        ("**Data atual:** 30/11/2026", "**Data atual:** @"),
        ("Huidige datum: 30 november 2026", "Huidige datum: @"),
        ("Dzisiejsza data: 30.11.2026", "Dzisiejsza data: @"),
        ("Сегодня: 30 ноября 2026 г.", "Сегодня: @ г."),
        ("今日の日付: 2026年11月30日", "今日の日付: @"),
        ("現在の日付は2026年11月30日です", "現在の日付は@です"),
        ("今天是2026年11月30日，星期一", "今天是@"),
        ("오늘 날짜: 2026년 11월 30일", "오늘 날짜: @"),
    ],
)
def test_a_date_beside_a_cue_in_another_language(text: str, seen: str) -> None:
    """Today, as agents tell it to those who do not read English."""
    assert scrubbed(text) == seen.replace("@", "⟨date:1⟩")


@pytest.mark.parametrize(
    "text",
    [
        "que s'est-il passé le 30 novembre 2026 ?",
        "Geburtsdatum: 30.11.2026",
        "fecha de entrega: 30/11/2026",
        "2026年11月30日に何があった",
        "30 ноября 2026 г.",
        "heute ist ein guter Tag, anders als am 30.11.2026",
        "Heute ist v2 da",
    ],
)
def test_a_date_without_a_cue_in_another_language_stays(text: str) -> None:
    """Birthdays, deliveries and questions are meaning in every language."""
    assert scrubbed(text) == text


@pytest.mark.parametrize("text", ["2026年11月30日 星期一 09:00:01 CST", "2026年11月30日 上午9:00:01"])
def test_a_time_in_chinese(text: str) -> None:
    """The day of the week and the half of the day are parts of a time."""
    assert scrubbed(text) == "⟨time:1⟩"
