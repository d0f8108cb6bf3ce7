"""How long something took, in tool results (RS201). In a user's words it means something.

A decade (`1960s`), a model (`iPhone 5s`) and a setting (`timeout: 30s`) are meaning there too: a bare number
with one letter is a duration only beside a word that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.text import folded, places

_NUMBER = r"[0-9]++(?:\.[0-9]++)?+"
_SMALL = r"(?:ms|msecs?|millis|milliseconds?|[uµμ]s|[uµμ]secs?|microseconds?|ns|nsecs?|nanoseconds?)"
_AND = r"(?:,? (?:and )?)?"
# pytest adds `(0:01:02)` to what takes a minute.
_SECONDS = (
    rf"(?:seconds?|secs?|s)(?:{_AND}{_NUMBER} ?{_SMALL}| \([0-9]+:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]+)?\))?"
)
_MINUTES = rf"(?:minutes?|mins?|m)(?:{_AND}{_NUMBER} ?{_SECONDS})?"
_HOURS = rf"(?:hours?|hrs?|h)(?:{_AND}{_NUMBER} ?(?:{_MINUTES}|{_SECONDS}))?"
_DAYS = rf"(?:days?|d){_AND}{_NUMBER} ?{_HOURS}"
# Led by the digit, which is quicker to search for; the number of a terminal's colour (`\x1b[32m`) is none.
# `µ` and `μ` are two characters.
_SPELLED = re.compile(
    r"[0-9](?:(?<![\w.,/-].)(?<![\x1bb]\[.)(?<![0-9];.)|(?<=[0-9;\[]m.)|(?<=\\[nrt].))[0-9]*+(?:,[0-9]{3})*+(?:\.[0-9]++)?+(?:[eE]-?[0-9]{1,3})?+"
    r"(?:"
    rf" ?(?:{_SMALL}|{_DAYS}|{_HOURS}|{_MINUTES}|{_SECONDS})"
    r"(?![\w-])(?!/(?!(?:op|it|iter|step|loop)\b))"
    r"|:[0-9]{2}(?::[0-9]{2})?+(?:\.[0-9]+)?+ (?:hours?|minutes?|mins?|h)\b"
    r"|(?P<clock>:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?+(?![\w:.-]))"
    r"| (?:weeks?|months?|years?|days?)(?= ago\b)"
    r")",
    re.ASCII,
)
# One letter after a number: it may be meters, a decade, a setting.
_BARE = re.compile(r"[0-9,]+(?P<point>\.[0-9]+)?(?:[eE]-?[0-9]+)?(?: ?(?P<unit>[dhms])| us)\Z")
_DECADE = re.compile(r"(?:1[5-9]|20)?[0-9]0s")
_WORDS_BEFORE = frozenset(
    (
        "in took taken after elapsed duration time latency real user sys waited slept ran running runtime "
        "uptime estimated average avg mean median pass passed fail failed done finished completed built"
        " ready ✓ ✔ ✗ ✕"
    ).split()
)
_MARKS = " \t\"'`([:=~≈<"
_WORD_AFTER = re.compile(r" (?:ago|elapsed|later)\b")
_THING_AFTER = re.compile(r" ?[A-Za-z]")
_LINE_ENDS = re.compile(r"[ \t]{0,4}(?:\n|\Z)")

_VALUE = (
    r"[A-Za-z_]{0,24}+[\"'\\]{0,4}+[ \t]{0,8}+(?:\([^()\n0-9]{1,40}\))?+"
    r"[ \t]{0,8}+[:=]?+[ \t]{0,8}+[\"'\\]{0,4}+"
    r"(?P<value>[0-9]++(?::[0-9]{2}){0,2}+(?:\.[0-9]++)?+(?:[eE]-?[0-9]{1,3})?+)"
)
# What a number is called that needs no unit, by a word of it.
_NAMED = {
    word: re.compile(f"(?i:{name}){_VALUE}", re.ASCII)
    for word, name in {
        "duration": "duration",
        "elapsed": "elapsed",
        "latency": "latency",
        "took": r"took(?<=[\"']took)(?=[\"'\\])",
        "time": "time(?:[ _-](?:total|taken|namelookup|(?:app)?connect|pretransfer|redirect|starttransfer)|"
        + "|".join(
            f"(?<={before}[ _-]time)"
            for before in r"wall clock clock\) total execution response process build run".split()
        )
        + ")",
    }.items()
}
# What takes no number: `About an hour`, `Less than a second`, `a few seconds ago`.
_VAGUE_UNIT = "(?:second|minute|hour|day|week|month|year)"
_VAGUE = re.compile(rf"(?:[Ll]ess than|About) an? {_VAGUE_UNIT}\b")
_VAGUE_AGO = re.compile(rf"(?<![A-Za-z])(?:an?|a few) {_VAGUE_UNIT}s?\Z")
_LONGEST_VAGUE = 16
_VAGUE_WORDS = ("less than a", "about a", " ago")
DURATION_WORDS = frozenset({*_NAMED, *_VAGUE_WORDS})
"""One of these stands in every text with a number that is called a duration, in lower case."""
_NEAR = 24
_BEFORE_CLOCK = (" in ", " took ", " eta ", " uptime ")
# What stands before a duration that somebody chose, or that a test expects: a setting's name, a phrase, an
# equation. Each is looked for behind what it ends with.
_SETTINGS = (
    r"time-?out interval delay ttl expir(?:es?|ed|y|ation) retention debounce throttle backoff deadline "
    r"keep-?_?alive lifetime max[_-]?age period budget cooldown (?:sleep|wait)(?=\() "
    r"(?:transition|animation)-duration"
)
_PHRASES = (
    "expires? in/expires? after/valid for/every/retry after/times? out after/time-?out of/time-?out after/"
    "within/at least/at most/up to/no more than/more than/less than/older than/under/maximum of/limited to/"
    "limit of/defaults? to"
)
_SETTING = re.compile(
    rf"(?i:{'|'.join(_SETTINGS.split())})[A-Za-z_-]{{0,24}}[\"'\\]{{0,4}}(?:[ \t]?[:=]|\()\Z"
)
_PHRASE = re.compile(rf"\b(?i:{'|'.join(_PHRASES.split('/'))})\Z")
_LAST_WORDS = tuple({phrase.split()[-1] for phrase in _PHRASES.split("/")})
_STYLE = re.compile(r"(?:transition|animation|--[\w-]{1,40}):[^;{}]{1,60}\Z", re.ASCII)
_STYLES = ("transition:", "animation:", "--")
_EXPECTED = re.compile(r"(?:[!=]=|(?:toBe|[eE]quals?|assert_eq!?)\([^\n]{0,40})[ \t]?\Z")
_SET_WITHIN = 72
_QUOTES = "\"'`\\"
# A limit is called like what it limits.
_LIMIT_BEFORE = re.compile(
    r"(?i:max|min|limit|default|target|threshold|expected|allowed)[a-z]{0,8}[_ .-]?\Z"
    r"|(?:animation|transition)-\Z"
)
_LIMIT_WITHIN = 20
_IN_YAML = re.compile(r"[A-Za-z]:[ \t]\Z")
_WITH_UNIT = re.compile(r"_?[mnu]s:[ \t]\Z")
# How long a song, a film or a meeting is has that name too.
_LENGTH = re.compile(r"duration[\"\\]{1,4}[ \t]?:[ \t]?\Z")
_OF_A_RUN = "pass fail skip status state exit error test success stdout output result request".split()
_AROUND = 160
_NO_MEASURE = re.compile(r"(?i:limit|max|threshold|budget|minutes|hours|days|weeks)")
# Jest says so when it knows of an earlier run.
_ESTIMATE = re.compile(r", estimated [0-9.]{1,12} (?:m|s|ms)\b")
# `time -p`
_POSIX = re.compile(r"(?m:^)(?:real|user|sys) ([0-9]+\.[0-9]+)(?m:$)")


def duration_spans(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where durations stand, with their units. `words` are those of `DURATION_WORDS` that the text holds."""
    for match in _SPELLED.finditer(text):
        start, end = match.span()
        if match["clock"]:
            if text.endswith(_BEFORE_CLOCK, 0, start):
                yield start, end
            continue
        if _is_set(text, start):
            continue
        bare = _BARE.match(match[0])
        if bare is None or (bare["unit"] == "s" and bare["point"]) or _told(text, start, end):
            if text.endswith(("[< ", ": < "), 0, start):
                start -= 2  # `< 1 ms`, as dotnet rounds
            elif text.endswith("[ ", 0, start):
                start -= 1  # as Maven makes short ones as long as others
            yield start, (estimate.end() if (estimate := _ESTIMATE.match(text, end)) else end)
    if not DURATION_WORDS.isdisjoint(words):
        yield from _named(text)
        yield from _vague(text, words)
    if "real " in text:
        for match in _POSIX.finditer(text):
            yield match.span(1)


def _named(text: str) -> Iterator[tuple[int, int]]:
    lower = folded(text)
    for word, pattern in _NAMED.items():
        for at in places(lower, word):
            if (match := pattern.match(text, at)) and _is_measured(text, match):
                yield match.span("value")


def _is_set(text: str, start: int) -> bool:
    """Whether what stands before a duration says that somebody chose it, or expects it."""
    before = text[max(0, start - _SET_WITHIN) : start]
    if any(style in before for style in _STYLES) and _STYLE.search(before):
        return True
    said = before.rstrip(_QUOTES)
    quoted = said != before
    if quoted and ("==" in said or "!=" in said or "(" in said) and _EXPECTED.search(said):
        return True
    said = said.rstrip(" \t")
    if said.endswith((":", "=", "(")):
        return _SETTING.search(said) is not None
    return said.lower().endswith(_LAST_WORDS) and _PHRASE.search(said) is not None


def _is_measured(text: str, match: re.Match[str]) -> bool:
    """Whether a number that is called a duration is of a run: no limit, no whole number in YAML or code."""
    start = match.start("value")
    name = text[match.start() : start]
    if _LIMIT_BEFORE.search(text, max(0, match.start() - _LIMIT_WITHIN), match.start()) or _NO_MEASURE.search(
        name
    ):
        return False
    if _LENGTH.match(name):
        around = text[max(0, start - _AROUND) : start + _AROUND].lower()
        return any(word in around for word in _OF_A_RUN)
    if name.endswith(" = "):
        return False
    return not (match["value"].isdigit() and _IN_YAML.search(name) and not _WITH_UNIT.search(name))


def _vague(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    lower = folded(text)
    for word in _VAGUE_WORDS:
        for at in places(lower, word) if word in words else ():
            if word != " ago":
                found = _VAGUE.match(text, at)
            else:
                found = _VAGUE_AGO.search(text, max(0, at - _LONGEST_VAGUE), at)
            if found and not _is_set(text, found.start()):
                yield found.span()


def _told(text: str, start: int, end: int) -> bool:
    """Whether what stands around a bare number with one letter says that it is a duration."""
    if _WORD_AFTER.match(text, end):
        return True
    line = text[max(0, start - _NEAR) : start]
    if _last_word(line) in _WORDS_BEFORE:
        if not line.endswith("in ") or not _THING_AFTER.match(text, end):
            return True
        return text[end - 1] == "s" and not _DECADE.match(text, start)  # in 90s music, in 5m water
    if text[end - 1] != "s":
        return False
    if line[-1:] in ("(", "["):
        return text[end : end + 1] in (")", "]")
    # a column of a table, as the age in `kubectl get pods`
    return line[-1:] == " " and line[-2:-1].isdigit() and _LINE_ENDS.match(text, end) is not None


def _last_word(line: str) -> str:
    words = line.rstrip(_MARKS)
    return "" if words[-1:].isspace() else words.replace("_", " ").split(" ")[-1].lstrip(_MARKS).lower()
