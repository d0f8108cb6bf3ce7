"""Today's date as agents tell it in other languages than English (RS104).

The cue alone says that the date is of now, so that a month may be any word between a day and a year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.text import folded, places

FOREIGN_CUES = frozenset(
    (
        # French, German, Spanish, Portuguese, Italian, Dutch, Scandinavian, Polish, Turkish
        "date du jour/date actuelle/date d'aujourd'hui/date d’aujourd’hui/nous sommes/"
        "heutiges datum/heutige datum/aktuelles datum/aktuelle datum/heute ist/"
        "fecha actual/fecha de hoy/hoy es/data atual/data de hoje/hoje é/"
        "data odierna/data di oggi/data attuale/oggi è/huidige datum/vandaag is/dagens datum/dagens dato/"
        "dzisiejsza data/aktualna data/dzisiaj jest/bugünün tarihi/güncel tarih/"
        # Russian and Ukrainian, Japanese, Chinese, Korean
        "текущая дата/сегодняшняя дата/сегодня/поточна дата/сьогодні/"
        "今日の日付/本日の日付/現在の日付/今日は/本日は/当前日期/今天的日期/今天日期/今日日期/今天是/今日是/"
        "當前日期/目前日期/오늘 날짜/현재 날짜/오늘은"
    ).split("/")
)
"""One of these stands in every text with such a date, in lower case."""

_LETTER = r"[^\W\d_]"
_FILL = r"[ \t\u00a0\u202f*_`\"'：:=,、–—-]{0,12}+"
_IS = r"(?:(?:est|ist|es|é|è|is|är|er|to|jest)(?!\w)|は|是|为|為|은)?+"
_ARTICLE = r"(?:(?:le|der|den|el|il|de|em|dnia)[ ])?+"
_DAY = rf"(?:{_LETTER}{{2,14}}\.?,?[ ](?:de[nr][ ]|le[ ])?)?"
_DATE = (
    rf"(?:[0-9]{{1,2}}(?:er|\.|º|°)?[ ](?:d[eiu][ ])?{_LETTER}{{3,12}}\.?,?[ ](?:de[ ])?[0-9]{{4}}"
    r"|[0-9]{4}年[ ]?[0-9]{1,2}月[ ]?[0-9]{1,2}日|[0-9]{4}년[ ]?[0-9]{1,2}월[ ]?[0-9]{1,2}일"
    r"|[0-9]{4}\.[ ]?[0-9]{1,2}\.[ ]?[0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}"
    r"|[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2})(?![0-9])"
    r"(?:[ ]?[（(][月火水木金土日][）)]|[ ,，、]{0,2}(?:星期|周)[一二三四五六日天]"
    r"|[ ]?[月火水木金土日]曜日?|[ ]?[월화수목금토일]요일)?"
)
_TODAY = re.compile(rf"{_FILL}{_IS}{_FILL}{_ARTICLE}(?P<date>{_DAY}{_DATE})")


def foreign_dates(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where such dates stand. `words` are those of `FOREIGN_CUES` that the text holds."""
    lower = folded(text)
    for cue in sorted(FOREIGN_CUES & words):
        for at in places(lower, cue):
            if at and text[at - 1].isalpha() and text[at - 1].isascii():
                continue
            if found := _TODAY.match(text, at + len(cue)):
                yield found.span("date")
