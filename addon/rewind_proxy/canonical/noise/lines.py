"""Noise in tool results that is told by the whole line it stands in: prefixes of logs, progress, load.

A row's literal stands in its line, the pattern matches from the start of the line on; each group goes. What a
group holds must be another on each run of the same program: a size, a count or a result is none of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.noise.line_rule import CLOCK, DATED, GAP, PID, SYSLOG, WHEN, LineRule, line_rule
from rewind_proxy.canonical.noise.measures import MEASURES
from rewind_proxy.canonical.spans import Span
from rewind_proxy.canonical.text import places

_REACH = 240
"""How far from the start of its line a literal may stand."""
_STATE = r"[RSDIWNLtXl<+s]{1,6}"
_START = r"(?:[0-9]{1,2}:[0-9]{2}(?:AM|PM)?|[A-Z][a-z]{2}[0-9]{1,2}|[0-9]{4})"
_TTY = r"(?:\?{1,2}|-|(?:pts/|tty)\w{1,6}|con\w{0,6}|s[0-9]{3})"
_OF_AUX = (
    rf"[0-9.]{{1,5}}{GAP}[0-9.]{{1,5}}{GAP}[0-9]{{1,12}}{GAP}[0-9]{{1,12}}{GAP}"
    rf"{_TTY}{GAP}{_STATE}{GAP}{_START}"
)
_OF_EF = rf"[0-9]{{1,8}}{GAP}[0-9]{{1,3}}{GAP}{_START}{GAP}{_TTY}"

LINES_OF_TOOL_RESULTS = (
    # syslog and journald: the pid behind the program's name.
    line_rule("RS202", "process", ("]: ",), rf"{SYSLOG} [\w.:-]{{1,64}} [\w./@():-]{{1,64}}\[{PID}\]: "),
    # klog: the thread behind the time.
    line_rule(
        "RS202",
        "process",
        (".go:",),
        rf"[IWEF][0-9]{{4}} {CLOCK}{GAP}{PID} [\w./-]{{1,80}}:[0-9]+\]",
    ),
    # Apple's log, PostgreSQL, nginx.
    line_rule(
        "RS202",
        "process",
        ("\n20",),
        rf"{DATED} (?:[\w.-]{{1,40}}\[{PID}:([0-9a-f]{{1,12}})\] "
        rf"|(?<=[A-Z]{{3}} )\[{PID}\](?: \S{{1,40}})? [A-Z]{{3,9}}: |\[[a-z]{{3,8}}\] {PID}#[0-9]{{1,6}}: )",
    ),
    # Ruby's logger, Spring Boot, Android, Redis.
    line_rule("RS202", "process", (", [",), rf"[DIWEFA], \[{WHEN} #{PID}\] "),
    line_rule(
        "RS202",
        "process",
        (" --- [",),
        rf"{DATED}{GAP}[A-Z]{{4,5}} {PID} --- \["
        r"(?:[^\n]{1,200}?\(process running for ([0-9.]{1,12})\))?",
    ),
    line_rule(
        "RS202",
        "process",
        ("\n0", "\n1"),
        rf"([0-9]{{2}}-[0-9]{{2}} [0-9:]{{8}}\.[0-9]{{3}}{GAP}{PID}{GAP}{PID}) [VDIWEF] ",
    ),
    line_rule("RS202", "process", (":M ",), rf"{PID}:M [0-9]{{1,2}} [A-Z][a-z]{{2}} 20"),
    # What `ps` prints without its header, behind `grep`.
    line_rule(
        "RS202",
        "process",
        (" pts/", "? ", " tty"),
        rf"[\w.+-]{{1,32}}{GAP}([0-9]{{1,8}}{GAP}(?:{_OF_AUX}|{_OF_EF}){GAP}[0-9:.-]{{1,12}})(?=[ \t])",
    ),
    line_rule(
        "RS201",
        "duration",
        ("\n0",),
        r"(0[0-4]:[0-9]{2}) \+[0-9]{1,6}(?: [ {_-][0-9]{1,6}){0,2}: ",
    ),
    line_rule(
        "RS201",
        "duration",
        ("elapsed ",),
        r"([0-9.]{1,12}user [0-9.]{1,12}system [0-9:.]{1,12}elapsed [0-9.]{1,8}%CPU "
        r"\([0-9]{1,12}avgtext\+[0-9]{1,12}avgdata [0-9]{1,12}maxresident\)k"
        r"(?:\n[0-9]{1,12}inputs\+[0-9]{1,12}outputs "
        r"\([0-9]{1,12}major\+[0-9]{1,12}minor\)pagefaults [0-9]{1,12}swaps)?)",
    ),
    line_rule("RS202", "process", ("]: segfault at ",), rf"[^\n]{{0,80}}?\[{PID}\]: segfault at "),
    # gunicorn; `jobs -l`; Chrome.
    line_rule("RS202", "process", ("\n[",), rf"\[{WHEN}\] \[{PID}\] \[[A-Z]{{4,8}}\] "),
    line_rule(
        "RS202",
        "process",
        ("\n[",),
        rf"\[[0-9]{{1,3}}\](?:[+-]|{GAP}){GAP}?{PID}{GAP}(?=(?:Running|Done|Stopped|Terminated|Killed|Exit)\b)",
    ),
    line_rule(
        "RS202",
        "process",
        ("\n[",),
        rf"\[{PID}:{PID}:([0-9]{{4}}/[0-9]{{6}}\.[0-9]{{3,6}}):[A-Z]{{3,9}}:",
    ),
    # A commit that was made just now: its id depends on the clock.
    line_rule(
        "RS203",
        "commit",
        ("\n[",),
        r"\[(?:[\w./-]{1,100}|detached HEAD)(?: \(root-commit\))? ([0-9a-f]{7,12})\] [^\n]{1,400}\n"
        r"(?= (?:[0-9]{1,8} files? changed|(?:Author|Committer|Date): |create mode ))",
        numbered=True,
    ),
    line_rule("RS203", "commit", ("Dropped ",), r"Dropped [\w/@{}]{1,64} \(([0-9a-f]{40})\)", numbered=True),
    # The kernel's: seconds since the machine was started.
    line_rule("RS201", "duration", ("\n[",), r"\[([ ]{1,6}[0-9]{1,8}\.[0-9]{6}|[0-9]{5,8}\.[0-9]{6})\] "),
    # Valgrind and the sanitisers.
    line_rule("RS202", "process", ("\n==",), r"(==[0-9]{2,8}==)(?=[ A-Z]|\n==[0-9])"),
    line_rule(
        "RS202",
        "process",
        (".exe ",),
        rf"[\w. -]{{1,40}}\.exe{GAP}([0-9]{{1,8}}{GAP}(?:Console|Services|RDP-Tcp#[0-9]{{1,4}})"
        rf"{GAP}[0-9]{{1,4}}{GAP}"
        r"[0-9][0-9.,]{0,12} K)",
    ),
    line_rule("RS202", "process", ("├─", "└─"), r"[ │\t]{0,40}[├└]─([0-9]{2,8}) (?=[\"/\w])"),
    line_rule(
        "RS202",
        "process",
        ("LISTEN ", "ESTABLISHED ", "_WAIT "),
        rf"(?:tcp|udp)6?{GAP}[^\n]{{1,160}}?{GAP}{PID}/[A-Za-z_]",
    ),
    line_rule("RS202", "process", (")─", ")-+-"), rf"[\w.@:-]{{1,40}}\({PID}\)[─┬+-]{{1,4}}(?=[\w{{])"),
    # `lsof` without its header.
    line_rule(
        "RS202",
        "process",
        (" TCP ", " UDP "),
        rf"\S{{1,40}}{GAP}{PID}{GAP}\S{{1,40}}{GAP}[0-9]{{1,6}}[urw]{GAP}IPv[46]{GAP}(\S{{1,20}})"
        rf"{GAP}\S{{1,12}}{GAP}(?:TCP|UDP) ",
    ),
    line_rule("RS202", "process", ("goroutine ",), r"goroutine ([0-9]{1,8})(?: gp=\S{1,20} m=\S{1,20})? \["),
    # PostgreSQL's plans.
    line_rule("RS201", "duration", ("(actual time=",), r"[^\n]{1,200}?\(actual time=([0-9.]{1,24}) rows="),
    # BuildKit.
    line_rule("RS201", "duration", ("\n#",), r"#[0-9]{1,4} ([0-9]{1,6}\.[0-9]{3}) "),
    *MEASURES,
)
LINE_WORDS = frozenset(literal.lower() for line in LINES_OF_TOOL_RESULTS for literal in line.literals)
"""One of these stands in every text with such a line below its first, in lower case."""
_LEADING = tuple(
    (literal, line) for line in LINES_OF_TOOL_RESULTS for literal in line.literals if literal[0] == "\n"
)
_INSIDE = tuple(
    (literal.lower(), literal, line)
    for line in LINES_OF_TOOL_RESULTS
    for literal in line.literals
    if literal[0] != "\n"
)


def line_spans(text: str, words: frozenset[str]) -> Iterator[Span]:
    """What is noise in lines of these forms. `words` are those of `LINE_WORDS` that the text holds."""
    for literal, line in _LEADING:
        if text.startswith(literal[1:]):
            yield from _spans(text, line, 0)
        if literal in words:
            for at in places(text, literal):
                yield from _spans(text, line, at + 1)
    if LINE_WORDS.isdisjoint(words):
        return
    for word, literal, line in _INSIDE:
        if word in words:
            yield from _inside(text, line, literal)


def _inside(text: str, line: LineRule, literal: str) -> Iterator[Span]:
    done = 0
    for at in places(text, literal):
        start = text.rfind("\n", max(done, at - _REACH), at) + 1
        if at < done or not (start or at < _REACH):
            continue
        found = line.pattern.match(text, start)
        done = max(found.end() if found else 0, at + len(literal))
        if found:
            yield from _groups(line, found)


def _spans(text: str, line: LineRule, start: int) -> Iterator[Span]:
    found = line.pattern.match(text, start)
    if found:
        yield from _groups(line, found)


def _groups(line: LineRule, found: re.Match[str]) -> Iterator[Span]:
    for group in range(1, line.pattern.groups + 1):
        start, end = found.span(group)
        if start >= 0:
            yield Span(start, end, line.rule, line.kind, found[group], line.numbered)
