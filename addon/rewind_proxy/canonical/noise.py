"""Noise in tool results only: durations, process ids, ids made at random (DESIGN §5).

In a user's words these mean something. What a whole line tells is in `noise_lines`, what a table's header
does in `process_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.durations import DURATION_WORDS, duration_spans
from rewind_proxy.canonical.noise_http import COUNTERS, PROXY_WORDS, REQUEST_IDS, proxy_spans
from rewind_proxy.canonical.noise_lines import LINE_WORDS, line_spans
from rewind_proxy.canonical.process_tables import AGE_WORDS, PROCESS_WORDS, age_spans, process_spans
from rewind_proxy.canonical.spans import Span
from rewind_proxy.canonical.text import folded, places


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """Noise that only means nothing in a tool result; group 1 is what goes."""

    rule: str
    kind: str
    words: tuple[str, ...]
    """What every match starts with, in any case."""
    pattern: re.Pattern[str]
    numbered: bool = True


def _rule(rule: str, kind: str, words: tuple[str, ...], pattern: str, *, numbered: bool = True) -> NoiseRule:
    return NoiseRule(rule, kind, words, re.compile(pattern, re.ASCII), numbered)


_IS = r"[\"'\\]{0,4}+[ \t]{0,4}+[:=>][ \t]{0,4}+[\"'\\]{0,4}+"
_AGENT = r"(a(?=[a-f]*[0-9])[0-9a-f]{7,32})(?![A-Za-z0-9_])"
_TASK = r"(b[a-z0-9]{8})(?![A-Za-z0-9_])"
# A letter after a digit, or more consonants in a row than words have: not `blueberry`, not `banana123`.
_CONSONANT = "[bcdfghjklmnpqrstvwxz]"
_LOOKS_RANDOM = (
    rf"(?=[a-z]*[0-9]+[a-z]|[a-z0-9]*?{_CONSONANT}{{5}}|(?=[a-z]*[0-9])[a-z0-9]*?{_CONSONANT}{{4}})"
)

_REQUEST_ID = r"(?=[^\s\"'\\]{0,64}[0-9])([^\s\"'\\]{8,200}+)"

_CONTAINER = r"((?=[a-f]{0,63}[0-9])(?:[0-9a-f]{64}|[0-9a-f]{12}))(?![\w])"

# CLIENTS.md: what Codex, Claude Code, Gemini CLI and Qwen Code write into tool results.
NOISE_IN_TOOL_RESULTS = (
    _rule(
        "RS202",
        "process",
        ("pid", "pgid", "process id", "process_id", "process group"),
        r"(?i:(?:(?<![a-z0-9])|(?<=p)(?<![a-z0-9]p))(?:pid|pgid|process[ _]id|process group (?:id|pgid)))"
        r"[\"'\\]{0,4}+[ \t]?[:= ]\s{0,8}+([0-9]+)\b",
        numbered=False,
    ),
    _rule(
        "RS202",
        "process",
        ("pids",),
        r"(?<![A-Za-z0-9])(?i:pids):? ([0-9]+(?:, ?[0-9]+)*+)\b",
        numbered=False,
    ),
    _rule(
        "RS202",
        "process",
        ("process ",),
        r"(?i:process) ([0-9]+) "
        r"(?=\([\w.-]+\)|(?:exited|ended|died|finished|terminated|killed|stopped|started|is)\b)",
        numbered=False,
    ),
    # Node, uvicorn, the kernel, shells, Apache.
    _rule("RS202", "process", ("(node:",), r"\((?i:node):([0-9]+)\) ", numbered=False),
    _rule("RS202", "process", ("process [",), r"(?i:process) \[([0-9]+)\]", numbered=False),
    _rule(
        "RS202",
        "process",
        ("process ",),
        r"(?:(?<=illed )|(?<=tarted )|(?<=pawned )|(?<=topped ))(?i:process) ([0-9]+)\b",
        numbered=False,
    ),
    _rule("RS202", "process", ("kill: (",), r"kill: \(([0-9]+)\) - ", numbered=False),
    _rule(
        "RS202",
        "process",
        (": line ",),
        r": line [0-9]+:[ \t]{1,4}([0-9]+)[ \t]{1,4}"
        r"(?=(?:Terminated|Killed|Aborted|Hangup|Segmentation fault|Bus error|Illegal instruction)\b)",
        numbered=False,
    ),
    _rule("RS202", "process", (":tid ",), r":tid ([0-9]+)\]", numbered=False),
    # Rust, Python's threads and processes, Java, MySQL, Gradle.
    _rule(
        "RS202",
        "process",
        ("thread '",),
        r"(?i:thread) '[^'\n]{0,80}' \(([0-9]{1,8})\) panicked at ",
        numbered=False,
    ),
    _rule("RS202", "process", ("started ",), r"started (?:daemon )?([0-9]{12,18})\)>", numbered=False),
    _rule("RS202", "process", (" parent=",), r" parent=([0-9]+) (?=[a-z]+>|[a-z]+ )", numbered=False),
    _rule("RS202", "process", (", tid=",), r", tid=([0-9]+)\b", numbered=False),
    _rule("RS202", "process", ("connection id is ",), r"(?i:connection id is )([0-9]+)\b", numbered=False),
    _rule("RS202", "process", ("daemon-",), r"daemon-([0-9]+)\.out\.log\b", numbered=False),
    _rule("RS202", "process", ("goroutine ",), r"(?<=by )goroutine ([0-9]+)\b", numbered=False),
    _rule("RS202", "process", ("goroutine ",), r"(?<=in )goroutine ([0-9]+)(?=\n|\Z)", numbered=False),
    _rule("RS202", "process", ("goroutine ",), r"Goroutine ([0-9]+) \([a-z]+\) created", numbered=False),
    # `pstree -p`
    _rule("RS202", "process", ("─", "-+-"), r"(?:─|-\+-)[\w.@:-]{1,40}\(([0-9]+)\)", numbered=False),
    # Where an object of Python's lies in memory, which is another place on each run.
    _rule(
        "RS203",
        "address",
        (" at 0x",),
        r" at (0x[0-9a-fA-F]{6,16})(?=>|; (?:to '|dead>)|, file \"|: \w{1,64} object at 0x| thread T)",
    ),
    _rule("RS203", "address", (" id='",), r" id='([0-9]{12,16})'>"),
    # Go's heap, what is written as 64 bits, and a sanitiser's report.
    _rule("RS203", "address", ("0xc000",), r"(0xc000[0-9a-f]{6})\b"),
    _rule("RS203", "address", (" at 0x00c0",), r" at (0x00c0[0-9a-f]{8}) by "),
    _rule("RS203", "address", ("0x00005", "0x00007"), r"(?<!\w)(0x0000[57][0-9a-f]{11})\b"),
    _rule("RS203", "address", (" address 0x",), r" address (0x[0-9a-f]{6,16})\b"),
    _rule("RS203", "address", (" pc 0x", " bp 0x", " sp 0x"), r" [pbs][cp] (0x[0-9a-f]{6,16})\b"),
    _rule(
        "RS203",
        "address",
        (" 0x5", " 0x7"),
        r"(?:(?<=#[0-9])|(?<=#[0-9][0-9])) (0x[57][0-9a-f]{11})(?= in |\b)",
    ),
    _rule("RS203", "address", ("region [0x",), r"region \[(0x[0-9a-f]{6,16},0x[0-9a-f]{6,16})\)"),
    _rule("RS203", "request", REQUEST_IDS, rf"(?i:(?<![\w-])[a-z\d-]{{4,24}}){_IS}{_REQUEST_ID}"),
    _rule(
        "RS204",
        "measure",
        COUNTERS,
        rf"(?i:(?<![a-z])(?:ratelimit|x)-[a-z-]{{4,40}}){_IS}([0-9.]{{1,16}}(?:ms|s)?)\b",
        numbered=False,
    ),
    _rule(
        "RS204",
        "measure",
        ("speed_download", "speed_upload"),
        rf"speed_(?:down|up)load{_IS}([0-9.]{{1,16}})\b",
        numbered=False,
    ),
    _rule("RS203", "session", ("running with session id ",), r"running with session ID ([0-9]+)\b"),
    _rule("RS203", "chunk", ("chunk id: ",), r"Chunk ID: ([0-9a-f]{4,})\b"),
    # Codex keeps its sessions by day.
    _rule(
        "RS104",
        "date",
        ("sessions",),
        r"sessions[\\/]{1,2}(20[0-9]{2}[\\/]{1,2}[0-9]{2}[\\/]{1,2}[0-9]{2})[\\/]{1,2}rollout-",
        numbered=False,
    ),
    _rule("RS203", "agent", ("agent", "task"), rf"(?i:agent|task)[_ -]?[Ii][Dd]{_IS}{_AGENT}"),
    _rule("RS203", "agent", ("tasks",), rf"(?<=[\\/])tasks[\\/]{{1,2}}{_AGENT}\.output\b"),
    _rule(
        "RS203",
        "task",
        ("task", "shell", "agent"),
        rf"(?i:task|shell|agent)[_ -]?[Ii][Dd]{_IS}(?=[a-z]*[0-9]){_TASK}",
    ),
    _rule("RS203", "task", ("background",), rf"background(?:ed)?(?: by user)? with ID: {_TASK}"),
    _rule("RS203", "task", ("id: b", "task: b"), rf"(?<!\w)(?:ID|task): {_LOOKS_RANDOM}{_TASK}"),
    _rule("RS203", "task", ("tasks",), rf"(?<=[\\/])tasks[\\/]{{1,2}}{_TASK}\.output\b"),
    _rule(
        "RS203",
        "result",
        ("tool-results",),
        r"(?<=[\\/])tool-results[\\/]{1,2}((?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{6,})\.\w+",
    ),
    # Containers and what Docker's first builder made on the way, by what stands before and after; a layer's
    # digest is of its content and stays.
    _rule("RS203", "container", ("container ",), rf"(?i:container) {_CONTAINER}"),
    _rule(
        "RS203",
        "container",
        ("container",),
        rf"(?i:container)[_-]?[Ii][Dd]{_IS}(?:docker://|containerd://)?{_CONTAINER}",
    ),
    _rule("RS203", "container", ("containers/", "docker-"), rf"(?:containers/|docker-){_CONTAINER}"),
    _rule("RS203", "container", ("---> ",), rf"---> (?:Running in )?{_CONTAINER}"),
    _rule("RS203", "container", ("successfully built ",), rf"Successfully built {_CONTAINER}"),
    _rule("RS203", "container", ("root@",), r"root@([0-9a-f]{12})(?=:[/~])"),
    # Cargo's tests, and the seeds that test runners draw.
    _rule("RS203", "artifact", ("deps",), r"deps[\\/]{1,2}[\w-]{1,64}-([0-9a-f]{16})\b"),
    _rule(
        "RS203",
        "seed",
        (
            "randomized with seed ",
            "run options: --seed ",
            "--randomly-seed=",
            "random seed: ",
            "-test.shuffle ",
        ),
        r"(?i:randomized with seed |run options: --seed |--randomly-seed=|random seed: {1,8}|\.shuffle )"
        r"([0-9]{1,20})\b",
        numbered=False,
    ),
    _rule("RS203", "inode", ("inode: ",), r"Inode: ([0-9]{1,20})\b"),
    _rule("RS203", "pin", ("debugger pin: ",), r"Debugger PIN: ([0-9]{3}-[0-9]{3}-[0-9]{3})\b"),
    # systemd, BuildKit, Windows' `dir`, Terraform's resources without a thing behind them.
    _rule("RS203", "boot", ("-- boot ",), r"-- Boot ([0-9a-f]{32}) --"),
    _rule("RS203", "unit", ("invocation id: ",), r"(?i:invocation id: )([0-9a-f]{32})\b"),
    _rule(
        "RS203", "build", ("checksum of ref ",), r"checksum of ref ([a-z0-9]{20,40}(?:::[a-z0-9]{20,40})?)\b"
    ),
    _rule(
        "RS203",
        "build",
        ("docker-desktop://",),
        r"docker-desktop://dashboard/build/[\w.-]{1,64}/[\w.-]{1,64}/([a-z0-9]{25})\b",
    ),
    _rule("RS203", "volume", ("serial number is ",), r"Serial Number is ([0-9A-F]{4}-[0-9A-F]{4})\b"),
    _rule(
        "RS203",
        "resource",
        ("null_resource.",),
        r"null_resource\.[^\n]{1,100}? \[id=([0-9]{15,20})\]",
    ),
    # Named after a hash of where the project lies: Xcode, Bazel, Poetry and pipenv; and at random.
    _rule("RS203", "place", ("deriveddata",), r"DerivedData[\\/]{1,2}[\w.-]{1,64}-([a-z]{28})\b"),
    _rule("RS203", "place", ("_bazel_",), r"_bazel_[\w.-]{1,64}[\\/]{1,2}([0-9a-f]{32})\b"),
    _rule(
        "RS203",
        "place",
        ("virtualenvs",),
        r"virtualenvs[\\/]{1,2}[\w.-]{1,64}?-(?=[a-z_-]*[A-Z0-9])([\w-]{8})(?=-py[0-9]|[\\/\s\"'`:)]|\Z)",
    ),
    _rule("RS203", "place", ("pre-commit",), r"pre-commit[\\/]{1,2}repo([a-z0-9_]{8})\b"),
    _rule("RS203", "place", ("-v0",), r"-v0[\\/]{1,2}(\.tmp[A-Za-z0-9]{6})\b"),
    # Reports of JUnit's form.
    _rule(
        "RS201",
        "duration",
        ("<testcase ", "<testsuite"),
        r"<test(?:case|suites?) [^<\n]{0,1000}? time=\\?\"([0-9]{1,9}(?:\.[0-9]{1,9})?)\\?\"",
        numbered=False,
    ),
    _rule(
        "RS204",
        "host",
        ("<testsuite ",),
        r"<testsuite [^<\n]{0,1000}? hostname=\\?\"([\w.-]{1,64})\\?\"",
        numbered=False,
    ),
    # The port of a client, as uvicorn logs it.
    _rule("RS203", "port", ("127.0.0.1:",), r"127\.0\.0\.1:([0-9]{5}) - \"", numbered=False),
)
_CONTAINER_WORDS = frozenset({"container id", "ready", "pod/"})
_LONGEST_ROW = 1000
_CONTAINER_ROW = re.compile(r"([0-9a-f]{12})[ \t]")
# Kubernetes makes names of letters and digits that spell no word.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_POD = re.compile(
    rf"-(?<=[a-z0-9]-)(?:{_SAFE}{{8,10}}-({_SAFE}{{5}})|([0-9]{{8}}-{_SAFE}{{5}})|((?=[a-z]*[0-9]){_SAFE}{{5}}))(?![\w-])"
)


def _container_spans(text: str) -> Iterator[Span]:
    """The ids of the table that `docker ps` prints, and the random part of what `kubectl get pods` does."""
    for at in places(text, "CONTAINER ID"):
        line = text.find("\n", at, at + _LONGEST_ROW) + 1
        while line and (row := _CONTAINER_ROW.match(text, line)):
            yield Span(*row.span(1), "RS203", "container", row[1])
            line = text.find("\n", row.end(), row.end() + _LONGEST_ROW) + 1
    if "READY" in text or "pod/" in text:
        for pod in _POD.finditer(text):
            group = pod.lastindex or 1
            yield Span(*pod.span(group), "RS203", "pod", pod[group])


# What Java prints of an object that does not say how: its class and where it was, as a hash.
_HASH_CODE = re.compile(r"@([0-9a-f]{6,8})(?![\w-])")
_CLASS_BEFORE = re.compile(
    r"(?:(?<![\w./$@-])(?:[a-z][\w$]{0,40}\.){0,8}[A-Z][\w$]{0,60}|\[{1,3}(?:[BCDFIJSZ]|L[\w.$/]{1,80};))\Z",
    re.ASCII,
)
_LONGEST_CLASS = 120


def _hash_code_spans(text: str) -> Iterator[Span]:
    for code in _HASH_CODE.finditer(text):
        at = code.start()
        if _CLASS_BEFORE.search(text, max(0, at - _LONGEST_CLASS), at):
            yield Span(*code.span(1), "RS203", "address", code[1])


NOISE_WORDS = DURATION_WORDS.union(
    LINE_WORDS,
    PROCESS_WORDS,
    PROXY_WORDS,
    AGE_WORDS,
    _CONTAINER_WORDS,
    {"@"},
    *(noise.words for noise in NOISE_IN_TOOL_RESULTS),
)
"""One of these stands in every text with noise that is no duration, in lower case."""


def noise_spans(text: str, words: frozenset[str]) -> Iterator[Span]:
    """What is noise in the text of a tool result. `words` are those of `NOISE_WORDS` that it holds."""
    if not PROCESS_WORDS.isdisjoint(words):
        for start, end in process_spans(text):
            yield Span(start, end, "RS202", "process", text[start:end], numbered=False)
    yield from line_spans(text, words)
    if not _CONTAINER_WORDS.isdisjoint(words):
        yield from _container_spans(text)
    for start, end in duration_spans(text, words):
        yield Span(start, end, "RS201", "duration", text[start:end], numbered=False)
    if NOISE_WORDS.isdisjoint(words):
        return
    if not PROXY_WORDS.isdisjoint(words):
        for start, end in proxy_spans(text):
            yield Span(start, end, "RS204", "proxy", text[start:end], numbered=False)
    if not AGE_WORDS.isdisjoint(words):
        for start, end in age_spans(text):
            yield Span(start, end, "RS201", "duration", text[start:end], numbered=False)
    if "@" in words:
        yield from _hash_code_spans(text)
    lower = folded(text)
    for noise in NOISE_IN_TOOL_RESULTS:
        for word in noise.words:
            if word not in words:
                continue
            for at in places(lower, word):
                if match := noise.pattern.match(text, at):
                    yield Span(*match.span(1), noise.rule, noise.kind, match[1], noise.numbered)
