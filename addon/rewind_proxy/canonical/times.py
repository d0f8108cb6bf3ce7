"""Every common form of a time, and dates beside a cue (DESIGN §5; CASES 16 and 18)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TypeAlias

from rewind_proxy.canonical.spans import Span

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_LONG_DAY = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_LONG_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[A-Z]{3,4}T|[+-]\d{2}:?\d{2}))?(?:\s?\((?:UTC|GMT|[A-Z]{3,4})\))?"
_BEFORE = r"(?<![\w.+-])"
_AFTER = r"(?![\w+-])(?!\.\d)"


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of a time, and what stands in each text that holds one: cheap to look for, led by a literal."""

    pattern: re.Pattern[str]
    look: re.Pattern[str] | None
    """None: a month's name and a colon."""


def _form(form: str, look: str | None = None) -> _Form:
    return _Form(re.compile(_BEFORE + form + _AFTER), None if look is None else re.compile(look))


_WITH_TIME = (
    # ISO 8601 and RFC 3339, also with dashes in the time, as in file names
    _form(
        rf"\d{{4}}-\d{{2}}-\d{{2}}[T _]\d{{2}}[:-]\d{{2}}(?:[:-]\d{{2}}(?:[.,-]\d{{1,9}})?)?{_ZONE}",
        r"-\d\d-\d\d[T _]\d\d",
    ),
    _form(r"\d{8}T\d{6}(?:\.\d{1,9})?Z?", r"T\d{6}"),
    _form(rf"\d{{4}}/\d{{2}}/\d{{2}} {_CLOCK}{_ZONE}", r"/\d\d/\d\d \d"),
    # RFC 5322 and HTTP dates (RFC 9110 §5.6.7), ctime, `date`
    _form(rf"(?:{_DAY}, ?)?\d{{1,2}} {_MONTH} \d{{4}} {_CLOCK}{_ZONE}"),
    _form(rf"{_DAY},? {_MONTH} {{1,2}}\d{{1,2}},? {_CLOCK}{_ZONE}(?: \d{{4}})?"),
    _form(rf"{_DAY},? {_MONTH} {{1,2}}\d{{1,2}},? \d{{4}},? {_CLOCK}{_ZONE}"),
    # common log format, syslog (RFC 3164), US forms
    _form(rf"\d{{2}}/{_MONTH}/\d{{4}}:\d{{2}}:\d{{2}}:\d{{2}}(?: [+-]\d{{4}})?", r"/\d{4}:\d\d:"),
    _form(rf"{_MONTH} {{1,2}}\d{{1,2}} \d{{2}}:\d{{2}}:\d{{2}}(?:\.\d{{1,9}})?"),
    _form(rf"\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK}{_ZONE}", r"/\d{1,2}/\d{4}"),
    _form(rf"(?:{_LONG_DAY}, )?{_LONG_MONTH} \d{{1,2}}, \d{{4}},?(?: at)? {_CLOCK}{_ZONE}"),
)
# A long name starts with its short one.
_MONTHS = tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_DATE = (
    rf"(?:{_LONG_DAY}|{_DAY}),? {_LONG_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    rf"|{_LONG_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    rf"|(?:(?:{_LONG_DAY}|{_DAY}),? )?\d{{1,2}} {_LONG_MONTH},? \d{{4}}"
    r"|\d{4}[-/.]\d{2}[-/.]\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{4}"
    r"|1\d{9}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?"
)
_CUED = re.compile(
    r"(?i:\b(?:today(?:['’]s)?(?:[ _]date)?|(?:current|now)[ _-]?(?:date)?(?:[ _-]?time)?"
    r"|date(?:[ _-]?time)?|timestamp|time)\b)"
    r"(?i:[ \t]*(?:\([^()\n]{0,40}\))?[ \t]*(?:is|was|=|:|>|\"[ \t]*:)?[ \t]*[\"'`]?)"
    rf"(?P<date>{_DATE}){_AFTER}"
)
_CLOCK_LOOK = re.compile(r":(?<=\d:)\d\d")
# Each date has these; cues are looked for only where there is one.
_DATE_LOOK = re.compile(r"\d{4}")
_CUES = ("today", "current", "now", "date", "time")
_CUE_WORDS = tuple("today Today TODAY current Current CURRENT now Now date Date DATE time Time TIME".split())
_WHOLE_DATE = re.compile(rf"\s*(?P<date>{_DATE})\s*")
DATE_MEMBERS = frozenset(
    (
        "date datetime timestamp time now today current_date current_time current_datetime currentdate "
        "currenttime created_at updated_at start_time end_time starttime endtime mtime ctime"
    ).split()
)


def _cued(text: str) -> Iterator[re.Match[str]]:
    """`_CUED.finditer(text)`, tried only where a cue stands."""
    if not any(word in text for word in _CUE_WORDS):
        return
    if not text.isascii():  # lower case may be longer, and `re` knows more letters that are alike
        yield from _CUED.finditer(text)
        return
    lowered = text.lower()
    places: list[int] = []
    for cue in _CUES:
        at = lowered.find(cue)
        while at >= 0:
            places.append(at)
            at = lowered.find(cue, at + 1)
    end = 0
    for at in sorted(places):
        if at >= end and (match := _CUED.match(text, at)):
            yield match
            end = match.end()


def time_spans(text: str, member: str, *, numbered: bool) -> Iterator[Span]:
    """Dates with a time (RS103); a date or epoch alone beside a cue, or under such a member (RS104)."""
    months = _CLOCK_LOOK.search(text) and any(month in text for month in _MONTHS)
    for form in _WITH_TIME:
        if months if form.look is None else form.look.search(text):
            for match in form.pattern.finditer(text):
                yield Span(match.start(), match.end(), "RS103", "time", match.group(), numbered)
    if not _DATE_LOOK.search(text):
        return
    for match in _cued(text):
        yield Span(*match.span("date"), "RS104", "date", match.group("date"), numbered)
    if member.lower() in DATE_MEMBERS:
        whole = _WHOLE_DATE.fullmatch(text)
        if whole:
            yield Span(*whole.span("date"), "RS104", "date", whole.group("date"), numbered)


# -- which day is before which

_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{2})[-/.](\d{2})|(\d{4})(\d{2})(\d{2})T")
_YEAR_LAST = re.compile(r"(\d{1,2})([/.])(\d{1,2})[/.](\d{4})")
_EPOCH = re.compile(r"1\d{9}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?")
_MONTH_NAME = re.compile("|".join(_MONTHS))
_DAY_OF_MONTH = re.compile(r"(?<![\d:.])\d{1,2}(?![\d:])")
_YEAR = re.compile(r"(?<![\d:+.-])\d{4}(?!\d)")
_FIRST_DAY = date(1970, 1, 1)
_DATED = frozenset({"RS103", "RS104"})

_Day: TypeAlias = tuple[int, int, int]


def in_days(spans: Sequence[Span]) -> list[Span]:
    """The spans of a text, with the days of its unnumbered times told apart, in their order.

    Two lines of a log may fall into one second in one run and not in the next, so such times are not
    numbered. But where a text names several calendar days, which is the earlier one is meaning: each time
    says which of these days it is of (`time day 2`). A text of one day says nothing of it. Two texts are not
    compared: a commit and a log of one day are of two on the day after.
    """
    dated = [span.rule in _DATED and not span.numbered for span in spans]
    if not any(dated):
        return [*spans]
    days = {span.value: _day(span.value) for span, is_date in zip(spans, dated, strict=True) if is_date}
    order = {day: place for place, day in enumerate(sorted(set(days.values())), start=1)}
    if len(order) < 2:
        return [*spans]
    return [
        replace(span, kind=f"{span.kind} day {order[days[span.value]]}") if is_date else span
        for span, is_date in zip(spans, dated, strict=True)
    ]


def _day(value: str) -> _Day:
    """Year, month and day as written, in any of the forms above; the year is 0 where none is."""
    if found := _YEAR_FIRST.match(value):
        year, month, day = (each for each in found.groups() if each is not None)
        return int(year), int(month), int(day)
    if _EPOCH.fullmatch(value):
        then = _FIRST_DAY + timedelta(seconds=int(value[:10]))
        return then.year, then.month, then.day
    if found := _YEAR_LAST.match(value):
        first, mark, second, last = found.groups()
        month, day = (second, first) if mark == "." else (first, second)
        return int(last), int(month), int(day)
    name, number, full = _MONTH_NAME.search(value), _DAY_OF_MONTH.search(value), _YEAR.search(value)
    return (
        int(full[0]) if full else 0,
        _MONTHS.index(name[0]) + 1 if name else 0,
        int(number[0]) if number else 0,
    )
