"""Every common form of a date with a time (DESIGN §5; CASES 16 and 18), and which day is before which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TypeAlias

from rewind_proxy.canonical.dates.cued import date_spans
from rewind_proxy.canonical.dates.forms import AFTER, CLOCK, DAY, EPOCH, MONTH, MONTHS, ORDINAL, SPACE, ZONE
from rewind_proxy.canonical.spans import Span
from rewind_proxy.canonical.text import places

# What may stand right before a token, after its first character was taken: no word, sign or point; but the
# end of an escape (`\n` in JSON, a colour of a terminal, `%3D` in a URL), or the mark of a line in a diff.
_FREE = r"(?:(?<![\w.+-].)|(?<=\\[nrt].)|(?<=[0-9;\[]m.)|(?<=%[2-7][0-9A-Fa-f].)|(?<=\n[+-].))"
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_MONTH_NUMBER, _DAY_NUMBER = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_AT = rf"(?:,?{SPACE}(?:at |@ |- )?)"
_COLON = "(?::|%3[Aa])"
_IN_NAME = (  # as in names of files, behind which a UUID may stand
    r"[0-9]{2}[-._][0-9]{2}[-._][0-9]{2}(?:[-._][0-9]{1,9}Z?(?![0-9A-Za-z])(?!-[0-9a-f]{4}-))?+(?![0-9])"
)

# Each starts with a digit that was taken already.
_NUMERIC = re.compile(
    r"[0-9](?:"
    # ISO 8601 and RFC 3339, whatever word stands before it: also in names and URLs, also in its basic form
    r"(?<![0-9].)(?:"
    rf"[0-9]{{3}}-{_MONTH_NUMBER}-{_DAY_NUMBER}(?:"
    rf"[Tt_]{CLOCK}{ZONE}"
    rf"|[Tt_-]{_IN_NAME}Z?"
    r"|[Tt_][0-9]{2}-[0-9]{2}(?![0-9-])"
    rf"|[Tt]{_HOUR}%3[Aa]{_SIXTY}(?:%3[Aa]{_SIXTY}(?:\.[0-9]{{1,9}})?+)?+"
    r"(?:Z|(?:%2[Bb]|-)[0-9]{2}%3[Aa][0-9]{2})?+"
    rf"|(?:[Tt]{_HOUR}{_SIXTY}(?:{_SIXTY}(?:\.[0-9]{{1,9}})?)?[Zz]?|_{_HOUR}{_SIXTY}{_SIXTY})"
    r")(?![0-9])"
    rf"|(?<=[12])[09][0-9]{{2}}{_MONTH_NUMBER}{_DAY_NUMBER}(?:"
    rf"[Tt]{_HOUR}{_SIXTY}(?:{_SIXTY}(?:[.,][0-9]{{1,9}})?)?(?:[Zz]|[+-][0-9]{{4}})?"
    rf"|[_-]{_HOUR}{_SIXTY}{_SIXTY}"
    r")(?![0-9])"
    ")"
    rf"|{_FREE}(?:"
    rf"[0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}{_AT}(?:{CLOCK}{ZONE}|{_IN_NAME}(?:{SPACE}[AaPp][Mm](?![\w]))?+)"
    rf"|[0-9]{{3}}/[0-9]{{2}}/[0-9]{{2}}[T-]?{_AT}?{CLOCK}{ZONE}"
    rf"|[0-9]{{3}}\.[0-9]{{2}}\.[0-9]{{2}}{_AT}{CLOCK}{ZONE}"
    rf"|[0-9]{{3}}年[0-9]{{1,2}}月[0-9]{{1,2}}日{SPACE}?"
    rf"(?:(?:[(（]?(?:星期|周|週)?[一二三四五六日天月火水木金土](?:曜日?)?[)）]?){SPACE}?)?"
    rf"(?:上午|下午|午前|午後)?{SPACE}?{CLOCK}{ZONE}"
    rf"|[0-9]?/[0-9]{{1,2}}/(?:[0-9]{{4}}|[0-9]{{2}})(?![0-9])[T-]?{_AT}?{CLOCK}{ZONE}"
    rf"|[0-9]?(?:\.[0-9]{{1,2}}\.|-[0-9]{{1,2}}-)[0-9]{{4}}{_AT}{CLOCK}{ZONE}"
    rf"){AFTER}"
    ")",
    re.ASCII,
)
# Only after seconds: what stands after the time in `ls -l` is a file's name.
_YEAR_LATER = rf"(?=[0-9]{{1,2}}:[0-9]{{2}}:){CLOCK}{ZONE} (?:19|20)[0-9]{{2}}(?![\w:-])(?!\.[\w]){ZONE}"
# RFC 5322 and HTTP dates (RFC 9110 §5.6.7, RFC 850), the common log format, and as people write
_DAY_FIRST = re.compile(
    rf"{ORDINAL}(?:\.? |\.|[/-])(?:of )?{MONTH}(?:"
    rf"[/-][0-9]{{4}}[: ]{CLOCK}{ZONE}"
    rf"|-(?:[0-9]{{4}}|[0-9]{{2}})(?![0-9]){_AT}{CLOCK}{ZONE}"
    rf"|,? [0-9]{{4}}{_AT}{CLOCK}{ZONE}"
    rf"|{_AT}{_YEAR_LATER}"
    rf"|{_AT}{CLOCK}{ZONE}"
    rf"){AFTER}",
    re.ASCII,
)
# ctime, `date`, syslog (RFC 3164), `ls -l`
_MONTH_FIRST = re.compile(
    rf"{MONTH} {{1,2}}{ORDINAL}(?:"
    rf",? [0-9]{{4}}{_AT}{CLOCK}{ZONE}"
    rf"|{_AT}{_YEAR_LATER}"
    rf"|{_AT}{CLOCK}{ZONE}"
    rf"){AFTER}",
    re.ASCII,
)
_DAY_OF_MONTH_BEFORE = re.compile(r"[0-9]{1,2}(?:st|nd|rd|th)?(?:\.? |\.|[/-])(?:of )?\Z")
_WORD_BEFORE = re.compile(_FREE, re.ASCII)
_WEEKDAY_BEFORE = re.compile(rf"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=[0-9;\[]m)){DAY}[,.]?{SPACE}\Z")
_WEEKDAY_AFTER = re.compile(rf" \({DAY}\)")
# klog (Kubernetes): `I1130 09:00:01.123456`
_KLOG = re.compile(
    rf"[IWEF](?<!\w.)({_MONTH_NUMBER}{_DAY_NUMBER} {_HOUR}:{_SIXTY}:{_SIXTY}\.[0-9]{{6}})(?![0-9])", re.ASCII
)
_KLOG_LOOK = re.compile(r":[0-9]{2}\.[0-9]{6}")
# A file of another year in `ls -l`, which shows the year instead of the time.
_LISTED = re.compile(
    r"(?m:^)[-dlbcps][-rwxsStT]{9}[.+@]? +[0-9]+ \S+ \S+ +[0-9][0-9.,]*[KMGTP]? "
    rf"({MONTH} {{1,2}}{ORDINAL} {{1,2}}[0-9]{{4}})(?= )",
    re.ASCII,
)

_CLOCK_LOOK = re.compile(r":(?<=[0-9]:)[0-9]{2}")
# Led by a literal each: `re` is slow to search for one of many.
_IN_NAME_LOOK = re.compile(r"-(?<=[0-9]-)[0-9]{2}[Tt _-](?:at )?[0-9]{1,2}[-.%0-9]")
_BASIC_LOOKS = (re.compile(r"20[0-9]{6}[Tt_-][0-9]{4}"), re.compile(r"19[0-9]{6}[Tt_-][0-9]{4}"))


def time_spans(
    text: str, member: str, words: frozenset[str], *, numbered: bool, date: str = "date"
) -> Iterator[Span]:
    """Dates with a time (RS103); a date or epoch alone beside a cue, or under such a member (RS104).

    `words` are those of `cued.CUE_WORDS` that the text holds. `numbered` says whether equal times are told
    from others, `date` of what kind dates alone are.
    """
    clock = _CLOCK_LOOK.search(text) is not None
    if clock:
        for start, end in _worded(text):
            yield _time(text, start, end, numbered=numbered)
        if _KLOG_LOOK.search(text):
            for match in _KLOG.finditer(text):
                yield _time(text, *match.span(1), numbered=numbered)
    if (
        clock
        or ("-" in text and _IN_NAME_LOOK.search(text))
        or _BASIC_LOOKS[0].search(text)
        or _BASIC_LOOKS[1].search(text)
    ):
        for match in _NUMERIC.finditer(text):
            yield _time(text, *match.span(), numbered=numbered)
    if not numbered and ("r-" in text or "rw" in text):
        for match in _LISTED.finditer(text):
            yield _time(text, *match.span(1), numbered=numbered)
    yield from date_spans(text, member, date, words, numbered=numbered, logs=clock and not numbered)


def _time(text: str, start: int, end: int, *, numbered: bool) -> Span:
    """The time at a place, with the name of its day before or after it."""
    if text[start - 1 : start].isspace() and (day := _WEEKDAY_BEFORE.search(text, max(0, start - 12), start)):
        start = day.start()
    if text.startswith(" (", end) and (day := _WEEKDAY_AFTER.match(text, end)):
        end = day.end()
    return Span(start, end, "RS103", "time", text[start:end], numbered)


def _worded(text: str) -> Iterator[tuple[int, int]]:
    """Where times stand that name their month."""
    for at in sorted(at for month in MONTHS for at in places(text, month)):
        found = None
        day = _DAY_OF_MONTH_BEFORE.search(text, max(0, at - 8), at)
        if day and _WORD_BEFORE.match(text, day.start() + 1):
            found = _DAY_FIRST.match(text, day.start())
        if found is None and _WORD_BEFORE.match(text, at + 1):
            found = _MONTH_FIRST.match(text, at)
        if found:
            yield found.span()


# -- which day is before which

_YEAR_FIRST = re.compile(
    r"([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})|(?<![0-9])([0-9]{4})([0-9]{2})([0-9]{2})(?:[Tt_-]|\Z)"
)
_YEAR_LAST = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})[/.-]([0-9]{4}|[0-9]{2})(?![0-9])")
_NO_YEAR = re.compile(r"([0-9]{2})([0-9]{2}) ")
_WHOLE_EPOCH = re.compile(EPOCH)
_MONTH_NAME = re.compile("|".join(MONTHS))
_DAY_OF_MONTH = re.compile(r"(?<![\d:.,])\d{1,2}(?![\d:])")
_YEAR = re.compile(r"(?<![\d:+.])(?:19|20)\d\d(?!\d)")
_SHORT_YEAR = re.compile(r"-([0-9]{2}) ")
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
    order = {day: place for place, day in enumerate(sorted(set(filter(None, days.values()))), start=1)}
    if len(order) < 2:
        return [*spans]
    return [
        span._replace(kind=f"{span.kind} day {order[day]}") if is_date and (day := days[span.value]) else span
        for span, is_date in zip(spans, dated, strict=True)
    ]


def _day(value: str) -> _Day | None:
    """Year, month and day as written, in any of the forms above; the year is 0 where none is.

    None for a clock, which is of any day.
    """
    if name := _MONTH_NAME.search(value):
        number, full = _DAY_OF_MONTH.search(value), _YEAR.search(value)
        year = full[0] if full else short[1] if (short := _SHORT_YEAR.search(value)) else "0"
        return int(year), MONTHS[name[0]], int(number[0]) if number else 0
    if _WHOLE_EPOCH.fullmatch(value):
        then = _FIRST_DAY + timedelta(seconds=int(value[:10]))
        return then.year, then.month, then.day
    if found := _YEAR_FIRST.search(value):
        year, month, day = (each for each in found.groups() if each is not None)
        return int(year), int(month), int(day)
    if found := _YEAR_LAST.search(value):
        first, mark, second, last = found.groups()
        if mark == "/" and len(last) == 2 and int(first) > 12:  # 26/11/30
            return int(first), int(second), int(last)
        month, day = (first, second) if mark == "/" else (second, first)
        return int(last), int(month), int(day)
    if found := _NO_YEAR.match(value):
        return 0, int(found[1]), int(found[2])
    return None
