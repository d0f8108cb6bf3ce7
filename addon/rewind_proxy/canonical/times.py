"""Every common form of a time, and dates beside a cue (DESIGN §5; CASES 16 and 18)."""

from __future__ import annotations

import re
from collections.abc import Iterator

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

_WITH_TIME = tuple(
    re.compile(_BEFORE + form + _AFTER)
    for form in (
        # ISO 8601 and RFC 3339, also with dashes in the time, as in file names
        rf"\d{{4}}-\d{{2}}-\d{{2}}[T _]\d{{2}}[:-]\d{{2}}(?:[:-]\d{{2}}(?:[.,-]\d{{1,9}})?)?{_ZONE}",
        r"\d{8}T\d{6}(?:\.\d{1,9})?Z?",
        rf"\d{{4}}/\d{{2}}/\d{{2}} {_CLOCK}{_ZONE}",
        # RFC 5322 and HTTP dates (RFC 9110 §5.6.7), ctime, `date`
        rf"(?:{_DAY}, ?)?\d{{1,2}} {_MONTH} \d{{4}} {_CLOCK}{_ZONE}",
        rf"{_DAY},? {_MONTH} {{1,2}}\d{{1,2}},? {_CLOCK}{_ZONE}(?: \d{{4}})?",
        rf"{_DAY},? {_MONTH} {{1,2}}\d{{1,2}},? \d{{4}},? {_CLOCK}{_ZONE}",
        # common log format, syslog (RFC 3164), US forms
        rf"\d{{2}}/{_MONTH}/\d{{4}}:\d{{2}}:\d{{2}}:\d{{2}}(?: [+-]\d{{4}})?",
        rf"{_MONTH} {{1,2}}\d{{1,2}} \d{{2}}:\d{{2}}:\d{{2}}(?:\.\d{{1,9}})?",
        rf"\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK}{_ZONE}",
        rf"(?:{_LONG_DAY}, )?{_LONG_MONTH} \d{{1,2}}, \d{{4}},?(?: at)? {_CLOCK}{_ZONE}",
    )
)
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
_CLOCK_LOOK = re.compile(r"\d[:-]\d\d|\dT\d")
_CUE_LOOK = re.compile(r"[tT]oday|[cC]urrent|CURRENT|TODAY|[nN]ow|[dD]ate|DATE|[tT]ime|TIME")
_WHOLE_DATE = re.compile(rf"\s*(?P<date>{_DATE})\s*")
DATE_MEMBERS = frozenset(
    (
        "date datetime timestamp time now today current_date current_time current_datetime currentdate "
        "currenttime created_at updated_at start_time end_time starttime endtime mtime ctime"
    ).split()
)


def time_spans(text: str, member: str, *, numbered: bool) -> Iterator[Span]:
    """Dates with a time (RS103); a date or epoch alone beside a cue, or under such a member (RS104)."""
    if _CLOCK_LOOK.search(text):
        for form in _WITH_TIME:
            for match in form.finditer(text):
                yield Span(match.start(), match.end(), "RS103", "time", match.group(), numbered)
    if _CUE_LOOK.search(text):
        for match in _CUED.finditer(text):
            yield Span(*match.span("date"), "RS104", "date", match.group("date"), numbered)
    if member.lower() in DATE_MEMBERS:
        whole = _WHOLE_DATE.fullmatch(text)
        if whole:
            yield Span(*whole.span("date"), "RS104", "date", whole.group("date"), numbered)
