"""How dates and clocks are written: the pieces of patterns that times and dates beside a cue share.

All are for `re.ASCII`: a letter of another alphabet may stand right beside a date.
"""

from __future__ import annotations

_LONG_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_SHORT_DAYS = "Mon Tue Wed Thu Fri Sat Sun"
_GERMAN_DAYS = "Mo Di Mi Do Fr Sa So"
DAY = rf"(?:{'|'.join(f'{_LONG_DAYS} {_SHORT_DAYS} {_GERMAN_DAYS}'.split())})"

MONTHS = {
    name: number
    for number, names in enumerate(
        "Jan Feb Mar/Mär Apr May/Mai Jun Jul Aug Sep Oct/Okt Nov Dec/Dez".split(), start=1
    )
    for name in names.split("/")
}
"""Short names in English and German, as `date` and `ls` write them. A long name starts with its short one."""

MONTH = (
    r"(?:January|February|March|April|June|July|August|September|October|November|December|Sept"
    rf"|{'|'.join(MONTHS)})(?![A-Za-z])\.?"
)
ORDINAL = r"[0-9]{1,2}(?![0-9])(?:st|nd|rd|th)?"
SPACE = r"[ \u00a0\u202f]"

# A comma before milliseconds is a log's (Python, Java). In a table it parts two columns.
_FRACTION = r"(?:\.[0-9]{1,12}|,[0-9]{3}(?=[ \])Z+-]|\Z)|:[0-9]{3})"
CLOCK = (
    rf"(?>[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}}{_FRACTION}?+)?+(?![0-9])(?![:.][0-9])"
    rf"(?:{SPACE}?[AaPp](?:[Mm]|\.[Mm]\.)(?![A-Za-z0-9]))?+)"
)
"""Wholly or not at all: no seconds are left behind."""

_NAMED = (
    "UTC GMT UCT WET WEST CET CEST MEZ MESZ EET EEST MSK BST IST SAST EAT WAT CAT "
    "EST EDT CST CDT MST MDT PST PDT AKST AKDT HST BRT ART CLT "
    "PKT NPT ICT WIB SGT HKT PHT JST KST AWST ACST ACDT AEST AEDT NZST NZDT"
).split()  # a list, since `GET` and `POST` look like zones and stand after times in logs
_OFFSET = r"[+-][0-9]{2}:?[0-9]{2}(?![0-9])"
ZONE = (
    rf"(?>(?: ?(?:Z|{'|'.join(_NAMED)})(?![A-Za-z0-9_])|z(?![A-Za-z0-9_]))?+"
    rf"(?: ?{_OFFSET}|[+-][0-9]{{1,2}}(?![0-9A-Za-z:]))?+"
    rf"(?: (?:{'|'.join(_NAMED)})(?![A-Za-z0-9_]))?+"
    r"(?: m=[+-][0-9]+\.[0-9]+)?+"  # Go's monotonic clock
    r"(?: ?\((?:[A-Z]{2,5}|(?:[A-Z][A-Za-z]{1,20} ){1,4}Time)\))?+"
    r"(?:\[[A-Za-z_]{2,20}(?:/[A-Za-z_+-]{2,20}){0,2}\])?+)"
)

AFTER = r"(?![\w])(?![:.][0-9])(?![+-][0-9])"
"""Nothing of a longer number or word follows."""

EPOCH = r"(?:1[0-9]|2[01])[0-9]{8}(?:\.[0-9]{1,9}|[0-9]{3}|[0-9]{6}|[0-9]{9})?(?![0-9])"

DATE = (
    rf"(?>(?:{DAY},?{SPACE})?+"
    rf"(?:{MONTH}{SPACE}{ORDINAL},?{SPACE}[0-9]{{4}}"
    rf"|(?:the )?{ORDINAL}\.?{SPACE}(?:of{SPACE})?{MONTH},?{SPACE}[0-9]{{4}}"
    rf"|[0-9]{{1,2}}-{MONTH}-[0-9]{{4}}"
    r"|[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}"
    r"|[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"|[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日)(?![0-9])"
    rf"(?:,? \(?{DAY}\)?(?![\w]))?+)"
)
"""A date alone, with the name of its day before or after it."""
