"""Dates, epochs and clocks alone, which go only beside a cue (DESIGN §5; CASES 18).

The cue says that they are of now. A due date, a date of birth or a release date is meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.dates.foreign import FOREIGN_CUES, foreign_dates
from rewind_proxy.canonical.dates.forms import AFTER, CLOCK, DATE, EPOCH, ZONE
from rewind_proxy.canonical.spans import Span

# Between cue and date: blanks, a line's end, emphasis of Markdown, quotes (escaped or not).
_FILL = r"[ \t\n*_`\"'\\\u00a0\u202f]{0,24}+"
_NOTE = r"(?:\([^()\n0-9]{1,40}\)[ \t*_:`]{0,8}+)?+"  # (YYYY-MM-DD)
_IS = r"(?:(?:is|was)(?: now)?(?![\w])|[:=>])"
_SAID = rf"{_FILL}{_NOTE}{_IS}{_FILL}"
_NEAR = rf"{_FILL}{_NOTE}(?:{_IS}|[,(–—-])?+{_FILL}"

_A_DATE = rf"(?-i:{DATE}){AFTER}"
_AN_EPOCH = rf"{EPOCH}{AFTER}"
_A_CLOCK = rf"(?-i:{CLOCK}{ZONE}){AFTER}"

_WITH_TIME = r"(?:(?:[ _-]?| and | & )time)?+"
_END = r"(?![A-Za-z0-9_-])"


@dataclass(frozen=True, slots=True)
class _Cue:
    """A pattern that starts with a word, in any case; its one group that matched is the date."""

    word: str
    pattern: re.Pattern[str]
    alone: bool
    """Whether it is a cue where no other word stands before it."""
    after: frozenset[str] | None
    """Words after which it is one; None: after any."""
    inside: bool
    """Whether it is one at the end of a longer name, as in `event_timestamp`."""

    def stands(self, text: str, at: int) -> bool:
        """Whether what stands before a place lets it be a cue."""
        before = text[at - 1 : at] if at else ""
        if not before or self.inside:
            return self.alone
        if before in _IN_WORDS:
            return self.alone and text[at - 2 : at] in _ESCAPES
        if self.after is None:
            return True
        word = _WORD_BEFORE.search(text, max(0, at - 14), at)
        if word is None or text[word.start() - 1 : word.start()] == "<":  # `<env date="…">`
            return self.alone
        return word[1].lower() in self.after


_IN_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_ESCAPES = frozenset({r"\n", r"\t", r"\r"})
_WORD_BEFORE = re.compile(r"([A-Za-z0-9'’]{1,12})[ \t]\Z")


def _cue(
    word: str, pattern: str, *, alone: bool = True, after: str | None = None, inside: bool = False
) -> _Cue:
    words = None if after is None else frozenset(after.split())
    return _Cue(word, re.compile(f"(?i:{pattern})", re.ASCII), alone, words, inside)


def _key(word: str, more: str) -> _Cue:
    """A key that is longer by `more`, or in quotes, or a tag."""
    name = rf"(?:{word}{more}{_END}|(?<=[\"'<]){word}{_END})"
    return _cue(word, rf"{name}{_SAID}({_A_DATE}|{_AN_EPOCH})")


_CURRENT = r"current(?:[ _-]?(?:local|system|utc))?[ _-]?"
_AT = "[_-]?(?:at|on|date|time)"
_UNIT = "_?(?:ms|ns|seconds)"
_OF_NOW = "local system server"
_CUES = (
    _cue(
        "today",
        rf"today(?:['’]?s)?(?:[ _-]?date{_WITH_TIME})?{_END}(?:{_NEAR}({_A_DATE})|{_SAID}({_AN_EPOCH}))",
    ),
    _cue("current", rf"{_CURRENT}(?:date{_WITH_TIME}|day){_END}{_NEAR}({_A_DATE})"),
    _cue(
        "current",
        rf"{_CURRENT}(?:date(?:[ _-]?| and | & ))?time(?:[ _-]?stamp)?{_END}"
        rf"{_SAID}({_A_DATE}|{_AN_EPOCH}|{_A_CLOCK})",
    ),
    _cue("current", rf"current(?:ly(?: on)?{_END}{_NEAR}|{_END}{_SAID})({_A_DATE})"),
    _cue("now", rf"now{_END}(?:{_NEAR}({_A_DATE})|{_SAID}({_AN_EPOCH}))"),
    _cue("date", rf"date{_WITH_TIME}{_END}{_SAID}({_A_DATE}|{_AN_EPOCH})", after=f"the this {_OF_NOW}"),
    _cue("date", rf"date{_WITH_TIME}{_END}{_NEAR}({_A_DATE})", alone=False, after=_OF_NOW),
    _cue("time", rf"time[ _-]?stamp(?:{_UNIT})?{_END}{_NEAR}({_A_DATE}|{_AN_EPOCH})", inside=True),
    _cue("time", rf"time{_END}{_SAID}({_A_DATE}|{_AN_EPOCH}|{_A_CLOCK})", alone=False, after=_OF_NOW),
    _cue("time", rf"(?<=[\"'<])time{_END}{_SAID}({_A_DATE}|{_AN_EPOCH})"),
    _cue("epoch", rf"epoch(?:{_UNIT})?{_END}{_NEAR}({_AN_EPOCH})"),
    _cue('"ts"', rf'"ts"{_SAID}({_A_DATE}|{_AN_EPOCH})'),
    *(_key(word, _AT) for word in ("created", "updated", "modified")),
    *(_key(word, rf"(?:{_UNIT})?") for word in ("mtime", "ctime", "atime")),
)
_CUES_OF_WORD = {word: [cue for cue in _CUES if cue.word == word] for word in {cue.word for cue in _CUES}}
_WORDS = re.compile("|".join(_CUES_OF_WORD))
CUE_WORDS = FOREIGN_CUES.union(_CUES_OF_WORD)
"""One of these stands in every text with a cue, in lower case."""
_WORDS_IN_ANY_CASE = re.compile(_WORDS.pattern, re.ASCII | re.IGNORECASE)

# How dates, epochs and clocks start; cues are looked for before them only.
_LOOK = re.compile(
    r"[0-9](?:[0-9]{3}(?:[-/.年][0-9]|[0-9]{4})|[0-9]?[/.-][0-9]{1,2}[/.-][0-9]{2}|[0-9]?:[0-9]{2}"
    r"|[0-9]?(?:st|nd|rd|th)?[,.]?[ \u00a0\u202f-](?:of[ \u00a0\u202f])?"
    r"(?:[0-9]{4}|[A-Z][a-zä]{2,8}[-., \u00a0\u202f]))"
)
_REACH = 120
_WHOLE_DATE = re.compile(rf"\s*({DATE}|{EPOCH})\s*", re.ASCII)
DATE_MEMBERS = frozenset(
    (
        "date datetime timestamp time now today current_date current_time current_datetime currentdate "
        "currenttime created_at updated_at modified_at createdat updatedat modifiedat created updated "
        "modified start_time end_time starttime endtime mtime ctime atime epoch ts"
    ).split()
)


# A line of a log that starts with the time of day, and when vitest started. A transcript's line is none.
_LEVEL = r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b"
_LOGGED = re.compile(
    r"(?m:^)(?:"
    r"\[([0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M)\] (?=Starting |File change |Found [0-9]|\[|[a-z])"
    rf"|\[([0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:[.,][0-9]{{1,6}})?)\] (?=(?:Starting|Finished) '|\[?{_LEVEL})"
    r"|([0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M) (?=\[[a-z])"
    r"|([0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,6})?(?: [AP]M)?) "
    rf"(?=\[?(?:{_LEVEL}|(?:trace|debug|info|warn|error|fatal)\])|\[[^\]\n]{{1,60}}\] {{1,4}}{_LEVEL})"
    r"|([0-9]{1,2}:[0-9]{2}[AP]M) (?=(?:TRC|DBG|INF|WRN|ERR|FTL|PNC|DEBU|INFO|WARN|ERRO|FATA)\b)"
    r"|[ \t]{0,8}Start at[ \t]{1,4}([0-9]{2}:[0-9]{2}:[0-9]{2})(?m:$))",
    re.ASCII,
)


def date_spans(
    text: str, member: str, kind: str, words: frozenset[str], *, numbered: bool, logs: bool
) -> Iterator[Span]:
    """Dates, epochs and clocks beside a cue, or a whole text under a member that says date (RS104).

    `words` are those of `CUE_WORDS` that the text holds. `logs`: it may be a log, whose lines start with a
    clock.
    """
    if logs:
        for match in _LOGGED.finditer(text):
            start, end = match.span(match.lastindex or 0)
            yield Span(start, end, "RS104", kind, text[start:end], numbered)
    if not words.isdisjoint(_CUES_OF_WORD):
        for start, end in _cued(text):
            yield Span(start, end, "RS104", kind, text[start:end], numbered)
    if not words.isdisjoint(FOREIGN_CUES):
        for start, end in foreign_dates(text, words):
            yield Span(start, end, "RS104", kind, text[start:end], numbered)
    if member.lower() in DATE_MEMBERS and (whole := _WHOLE_DATE.fullmatch(text)):
        yield Span(*whole.span(1), "RS104", kind, whole[1], numbered)


def _cued(text: str) -> Iterator[tuple[int, int]]:
    # Beyond ASCII a text may be longer in lower case.
    searched, words = (text.lower(), _WORDS) if text.isascii() else (text, _WORDS_IN_ANY_CASE)
    done = 0
    for look in _LOOK.finditer(text):
        place = look.start()
        for word in words.finditer(searched, max(done, place - _REACH), place):
            if found := _date_after(text, word.start(), word[0].lower()):
                yield found
                done = found[1]
                break
        else:
            done = max(done, place)


def _date_after(text: str, at: int, word: str) -> tuple[int, int] | None:
    for cue in _CUES_OF_WORD[word]:
        if cue.stands(text, at) and (match := cue.pattern.match(text, at)) and match.lastindex:
            return match.span(match.lastindex)
    return None
