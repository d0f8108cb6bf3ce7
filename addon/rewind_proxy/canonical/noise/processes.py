"""Tables of processes in tool results: what `ps`, `top`, `lsof` and `Get-Process` print (RS202).

The numbers of a process, its times and what it takes are others on each run; its user, its state when it is a
zombie or stopped, and its command are meaning.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from rewind_proxy.canonical.text import places

# Columns in upper case; what is not of a run stays: `USER`, `COMMAND`, `NAME`, `FD`, `TYPE`.
_OF_A_RUN = frozenset(
    "PID PPID PGID PGRP SID SESS TID SPID LWP NLWP TTY TT TIME TIME+ STIME START STARTED ETIME ELAPSED "
    "ETIMES %CPU %MEM CPU% MEM% C CPU VSZ RSS VIRT RES SHR SZ MEM WCHAN ADDR DEVICE "
    "HANDLES NPM(K) PM(K) WS(K) VM(M) CPU(S) ID".split()
)
_STATES = frozenset({"STAT", "S"})
_OTHER = frozenset(
    "UID USER RUSER EUSER GROUP F PR PRI NI NICE CLS CMD COMMAND COMM ARGS NAME FD TYPE SIZE/OFF NODE SI "
    "PROCESSNAME P".split()
)
PROCESS_WORDS = frozenset({"pid", "processname"})
"""One of these stands in every text with such a table, in lower case."""
_NUMBERS = frozenset({"PID", "ID"})
# What tells a table with names from one of products: `PID NAME`.
_OF_PROCESSES = frozenset("FD TTY TT %CPU %MEM CPU% MEM% TIME TIME+ RSS VSZ VIRT RES".split())
_LEAST_COLUMNS = 2
_MOST_COLUMNS = 24
_LONGEST_HEADER = 200
_WORD = re.compile(r"[^\s]{1,200}+")
_WORDY = frozenset({"CMD", "COMMAND", "COMM", "ARGS", "NAME", "PROCESSNAME"})
_RULER = re.compile(r"[ \t]{0,40}-{2,}[- \t]{0,200}\n")


def process_spans(text: str) -> Iterator[tuple[int, int]]:
    """The cells of a run, in the rows below each header."""
    done = 0
    for word in ("PID", "ProcessName"):
        at = text.find(word)
        while at >= 0:
            start = text.rfind("\n", max(0, at - _LONGEST_HEADER), at) + 1
            end = text.find("\n", at, at + _LONGEST_HEADER)
            if end >= 0 and start >= done and (start or at < _LONGEST_HEADER):
                columns = _columns(text[start:end])
                if columns:
                    done = yield from _rows(text, end + 1, columns)
            at = text.find(word, max(end, at + 1))
        done = 0


def _columns(line: str) -> list[str]:
    """The columns of a header, in upper case; none when the line is no header."""
    words = line.upper().split()
    known = _LEAST_COLUMNS <= len(words) <= _MOST_COLUMNS and all(
        word in _OF_A_RUN or word in _STATES or word in _OTHER for word in words
    )
    commands = sum(word in _WORDY for word in words)
    if not known or commands != 1 or _NUMBERS.isdisjoint(words):
        return []
    return words if "NAME" not in words or not _OF_PROCESSES.isdisjoint(words) else []


def _rows(text: str, start: int, columns: list[str]) -> Generator[tuple[int, int], None, int]:
    """The cells of the rows from `start` on; gives back where they end."""
    number = next(index for index, column in enumerate(columns) if column in _NUMBERS)
    wordy = next(index for index, column in enumerate(columns) if column in _WORDY)
    after = len(columns) - wordy - 1
    ruler = _RULER.match(text, start)
    position = ruler.end() if ruler else start
    while position < len(text):
        end = text.find("\n", position)
        stop = end if end >= 0 else len(text)
        cells = [word.span() for word in _WORD.finditer(text, position, stop)]
        if len(cells) < len(columns):
            break
        # The words of a command, up to the columns behind it, are one cell.
        cells = cells[: wordy + 1] + (cells[-after:] if after else [])
        if not text[slice(*cells[number])].isdigit():
            break
        yield from _of_a_run(text, position, cells, columns)
        position = stop + 1
    return position


def _of_a_run(
    text: str, line: int, cells: list[tuple[int, int]], columns: list[str]
) -> Iterator[tuple[int, int]]:
    for index, ((start, end), column) in enumerate(zip(cells, columns, strict=True)):
        if column in _OF_A_RUN or (column in _STATES and text[start] not in "ZT"):
            yield (start if index else line), end  # numbers stand to the right, behind blanks


# Tables of Kubernetes: how old a thing is stands in a column of its own, in letters of `kubectl`.
AGE_WORDS = frozenset({" age", "last seen"})
"""One of these stands in every text with such a table, in lower case."""
_AGE_COLUMNS = (" AGE", "LAST SEEN", " Age")
_AGE_HEADER = re.compile(
    # A column of Kubernetes between the name and its age; one behind it only in wide tables, or of nodes.
    r"(?:NAMESPACE[ \t]+)?NAME[ \t](?=[^\n]{0,160}\b(?:READY|STATUS|PHASE|DATA|TYPE|ROLES|CAPACITY"
    r"|DESIRED|SECRETS|SCHEDULE|HOSTS|CLASS|PROVISIONER|REFERENCE|COMPLETIONS)\b)"
    r"[A-Z0-9()/ \t-]{2,160}?[ \t](?P<last>AGE)"
    r"(?P<more>[ \t]+(?:VERSION|CONTAINERS|IP|SELECTOR|LABELS|VOLUMEMODE)\b[A-Z0-9()/ \t-]{0,160})?\n"
    r"|(?:NAMESPACE[ \t]+)?LAST SEEN[ \t]+TYPE[ \t]+REASON[ \t]+OBJECT\b[A-Z0-9()/ \t-]{0,160}\n"
    r"|[ \t]{0,8}Type[ \t]+Reason[ \t]+Age[ \t]+From[ \t]+Message\n"
)
_TIME_AGO = r"(?:[0-9]{1,6}[smhdy]){1,3}"
_AGE = re.compile(rf"(?<![^\s(]){_TIME_AGO}(?![^\s)])")
# Where the age is the last column, another cell of that form may be a limit.
_LAST_AGE = re.compile(rf"(?<![^\s(]){_TIME_AGO}(?= ago\)|[ \t]*(?:\n|\Z))")


def age_spans(text: str) -> Iterator[tuple[int, int]]:
    """The ages in the rows below each header, as far as a blank line."""
    for column in _AGE_COLUMNS:
        done = 0
        for at in places(text, column):
            start = text.rfind("\n", max(done, at - _LONGEST_HEADER), at) + 1
            if at < done or not (start or at < _LONGEST_HEADER):
                continue
            if header := _AGE_HEADER.match(text, start):
                end = text.find("\n\n", header.end() - 1)
                done = end if end >= 0 else len(text)
                form = _LAST_AGE if header["last"] and not header["more"] else _AGE
                yield from (age.span() for age in form.finditer(text, header.end(), done))
