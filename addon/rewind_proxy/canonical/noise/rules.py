"""Noise of tool results that is told by the words before it: processes, addresses, ids made at random.

A rule's words start each of its matches. What a group holds is another on each run, or in another folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rewind_proxy.canonical.noise.http import COUNTERS, REQUEST_IDS


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
_QUOTED = r"\\{0,3}\":[ ]?\\{0,3}\""
_AGENT = r"(a(?=[a-f]*[0-9])[0-9a-f]{7,32})(?![A-Za-z0-9_])"
_TASK = r"(b[a-z0-9]{8})(?![A-Za-z0-9_])"
# A letter after a digit, or more consonants in a row than words have: not `blueberry`, not `banana123`.
_CONSONANT = "[bcdfghjklmnpqrstvwxz]"
_LOOKS_RANDOM = (
    rf"(?=[a-z]*[0-9]+[a-z]|[a-z0-9]*?{_CONSONANT}{{5}}|(?=[a-z]*[0-9])[a-z0-9]*?{_CONSONANT}{{4}})"
)

_REQUEST_ID = r"(?=[^\s\"'\\]{0,64}[0-9])([^\s\"'\\]{16,200}+)"
_OPENCODE = "[0-9a-f]{12}[0-9A-Za-z]{14}"
_SAVED = r"(?i:saved to: )(?:[^\\/\n]{0,80}+[\\/]){1,32}+"

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
    _rule("RS203", "address", ("0x00005", "0x00007"), r"(?<!\w)(0x0000[57](?!f{11})[0-9a-f]{11})\b"),
    _rule("RS203", "address", (" address 0x",), r" address (0x(?!0{8})[0-9a-f]{6,16})\b"),
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
    # How long an output was before it was cut: in other folders, and with other times in it, it is another.
    _rule(
        "RS204",
        "measure",
        ("original token count: ",),
        r"(?i:original token count: )([0-9]{1,12})\b",
        numbered=False,
    ),
    _rule(
        "RS204",
        "measure",
        ("original_token_count",),
        rf"original_token_count{_IS}([0-9]{{1,12}})\b",
        numbered=False,
    ),
    _rule("RS204", "measure", ("…",), r"…([0-9]{1,12}) (?:tokens|chars) truncated…", numbered=False),
    _rule(
        "RS204",
        "measure",
        ("output too large (",),
        r"(?i:output too large \()([0-9.]{1,10} ?[KMG]?B)\)",
        numbered=False,
    ),
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
    # Qwen Code's shells and monitors, opencode's sub-agents.
    _rule(
        "RS203",
        "task",
        ("id: bg_", "id: mon_", "background as bg_"),
        r"(?:(?<!\w)(?i:id): |background as )(bg_[0-9a-f]{8}|mon_[0-9a-f]{16})(?!\w)",
    ),
    _rule("RS203", "task", ("ses_",), rf"(?<!\w)(ses_{_OPENCODE})(?!\w)"),
    # Where an agent keeps an output that is too long to show: Claude Code and Gemini CLI, opencode,
    # Qwen Code, Copilot CLI.
    _rule(
        "RS203",
        "result",
        ("tool-results", "tool-outputs"),
        r"(?<=[\\/])tool-(?:results|outputs)[\\/]{1,2}(?:session-[\w-]{1,64}+[\\/]{1,2})?"
        r"((?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{6,})\.\w+",
    ),
    _rule("RS203", "result", ("tool-output",), rf"(?<=[\\/])tool-output[\\/]{{1,2}}(tool_{_OPENCODE})(?!\w)"),
    _rule("RS203", "result", ("saved to: ",), rf"{_SAVED}([\w.-]{{1,80}}_[0-9a-f]{{12}})\.output\b"),
    _rule(
        "RS203",
        "result",
        ("saved to: ",),
        rf"{_SAVED}([0-9]{{13}}-copilot-tool-output-[0-9]{{1,8}}-[0-9a-f-]{{36}})\.txt\b",
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
    # Seeds and memory of other test runners; logs of pino and bunyan; Redis and MongoDB.
    _rule(
        "RS203",
        "seed",
        ("--random=true --seed=", "elm-test --fuzz "),
        r"(?:--random=true|elm-test --fuzz [0-9]{1,8}) --seed[ =]([0-9]{1,20})\b",
        numbered=False,
    ),
    _rule("RS204", "measure", ("maxrss:",), r"MaxRSS:([0-9]{1,8}[KMG]?)\b", numbered=False),
    _rule(
        "RS204",
        "host",
        ("hostname",),
        rf"hostname{_QUOTED}([\w.-]{{1,64}})(?=\\{{0,3}}\",\\{{0,3}}\"pid\\{{0,3}}\":)",
        numbered=False,
    ),
    _rule(
        "RS204",
        "host",
        ("pid",),
        rf"pid\\{{0,3}}\":[0-9]{{1,8}},\\{{0,3}}\"hostname{_QUOTED}([\w.-]{{1,64}})\\{{0,3}}\"",
        numbered=False,
    ),
    _rule("RS203", "server", ("run_id:",), r"run_id:([0-9a-f]{40})\b"),
    _rule(
        "RS201", "duration", ("uptime_in_",), r"uptime_in_(?:seconds|days):([0-9]{1,12})\b", numbered=False
    ),
    _rule("RS203", "object", ("objectid(",), r"ObjectId\(\\{0,3}[\"']([0-9a-f]{24})\\{0,3}[\"']\)"),
    # Moments as Python and Rust print them.
    _rule(
        "RS103",
        "time",
        ("datetime.datetime(",),
        r"datetime\.datetime\(((?:19|20)[0-9]{2}(?:, [0-9]{1,2}){5}, [0-9]{1,6})",
        numbered=False,
    ),
    _rule(
        "RS103",
        "time",
        ("time.struct_time(",),
        r"time\.struct_time\((tm_year=[a-z_0-9=, ]{60,160}tm_isdst=-?[0-9])\)",
        numbered=False,
    ),
    _rule("RS204", "measure", ("tv_sec: ",), r"tv_sec: ([0-9]{1,12}, tv_nsec: [0-9]{1,9})\b", numbered=False),
)
