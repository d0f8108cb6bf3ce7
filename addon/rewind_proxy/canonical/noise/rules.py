"""Noise of tool results that is told by the words before it: processes, addresses, ids made at random.

A rule's words start each of its matches. What a group holds is another on each run, or in another folder.
"""

from __future__ import annotations

from rewind_proxy.canonical.noise.http import COUNTERS, REQUEST_IDS
from rewind_proxy.canonical.noise.made import MADE_ANEW
from rewind_proxy.canonical.noise.noise_rule import IS, noise_rule

# What is counted up (`a0000001`) is not random.
_AGENT = r"(a(?!0{3})(?=[a-f]*[0-9])[0-9a-f]{7,32})(?![A-Za-z0-9_])"
_TASK = r"(b(?!0{3})[a-z0-9]{8})(?![A-Za-z0-9_])"
# A letter after a digit, or more consonants in a row than words have: not `blueberry`, not `banana123`.
_CONSONANT = "[bcdfghjklmnpqrstvwxz]"
_LOOKS_RANDOM = (
    rf"(?=[a-z]*[0-9]+[a-z]|[a-z0-9]*?{_CONSONANT}{{5}}|(?=[a-z]*[0-9])[a-z0-9]*?{_CONSONANT}{{4}})"
)

# Words and years that are joined are a name.
_REQUEST_ID = (
    r"(?=[^\s\"'\\]{0,64}(?:[0-9][A-Za-z]|[A-Za-z][0-9]|[0-9]{10}))"
    r"([\w=;:,.+/|-]{16,200}+)(?![^\s\"'\\)\]}>])"
)
_OPENCODE = "[0-9a-f]{12}[0-9A-Za-z]{14}"
_SAVED = r"(?i:saved to: )(?:[^\\/\n]{0,80}+[\\/]){1,32}+"

# A header as it is sent, or as JSON: code that sets one, or expects it, quotes it in other ways.
_HEADER_IS = r"\\{0,3}\"?:[ \t]{0,4}\\{0,3}\"?"

# Digits alone are a number: of an account, of a box that is shipped.
_CONTAINER = r"((?=[a-f]{0,63}[0-9])(?=[0-9]{0,63}[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12}))(?![\w])"

# CLIENTS.md: what Codex, Claude Code, Gemini CLI and Qwen Code write into tool results.
NOISE_IN_TOOL_RESULTS = (
    noise_rule(
        "RS202",
        "process",
        ("pid", "pgid", "process id", "process_id", "process group"),
        r"(?i:(?:(?<![a-z0-9?&])|(?<=p)(?<![a-z0-9]p))(?:pid|pgid|process[ _]id|process group (?:id|pgid)))"
        r"[\"'\\]{0,4}+[ \t]?[:= ]\s{0,8}+([0-9]+)\b",
        numbered=False,
    ),
    noise_rule(
        "RS202",
        "process",
        ("pids",),
        r"(?<![A-Za-z0-9])(?i:pids):? ([0-9]+(?:, ?[0-9]+)*+)\b",
        numbered=False,
    ),
    noise_rule(
        "RS202",
        "process",
        ("process ",),
        r"(?i:process) ([0-9]+) "
        r"(?=\([\w.-]+\)|(?:exited|ended|died|finished|terminated|killed|stopped|started"
        r"|is(?: not| still| already)? running)\b)",
        numbered=False,
    ),
    # Node, uvicorn, the kernel, shells, Apache.
    noise_rule("RS202", "process", ("(node:",), r"\((?i:node):([0-9]+)\) ", numbered=False),
    noise_rule(
        "RS202",
        "process",
        ("process [",),
        r"(?:(?<=server )|(?<=parent )|(?<=reloader )|(?<=worker ))(?i:process) \[([0-9]+)\]",
        numbered=False,
    ),
    noise_rule(
        "RS202",
        "process",
        ("process ",),
        r"(?:(?<=illed )|(?<=tarted )|(?<=pawned )|(?<=topped ))(?i:process) ([0-9]+)\b(?! of\b)",
        numbered=False,
    ),
    noise_rule("RS202", "process", ("kill: (",), r"kill: \(([0-9]+)\) - ", numbered=False),
    noise_rule(
        "RS202",
        "process",
        (": line ",),
        r": line [0-9]+:[ \t]{1,4}([0-9]+)[ \t]{1,4}"
        r"(?=(?:Terminated|Killed|Aborted|Hangup|Segmentation fault|Bus error|Illegal instruction)\b)",
        numbered=False,
    ),
    noise_rule("RS202", "process", (":tid ",), r":tid ([0-9]+)\]", numbered=False),
    # Rust, Python's threads and processes, Java, MySQL, Gradle.
    noise_rule(
        "RS202",
        "process",
        ("thread '",),
        r"(?i:thread) '[^'\n]{0,80}' \(([0-9]{1,8})\) panicked at ",
        numbered=False,
    ),
    noise_rule("RS202", "process", ("started ",), r"started (?:daemon )?([0-9]{12,18})\)>", numbered=False),
    noise_rule("RS202", "process", (" parent=",), r" parent=([0-9]+) (?=[a-z]+>|[a-z]+ )", numbered=False),
    noise_rule("RS202", "process", (", tid=",), r"(?<=[0-9]), tid=([0-9]+)\b", numbered=False),
    noise_rule(
        "RS202", "process", ("connection id is ",), r"(?i:connection id is )([0-9]+)\b", numbered=False
    ),
    noise_rule("RS202", "process", ("daemon-",), r"daemon-([0-9]+)\.out\.log\b", numbered=False),
    noise_rule("RS202", "process", ("goroutine ",), r"(?<=by )goroutine ([0-9]+)\b", numbered=False),
    noise_rule("RS202", "process", ("goroutine ",), r"(?<=in )goroutine ([0-9]+)(?=\n|\Z)", numbered=False),
    noise_rule("RS202", "process", ("goroutine ",), r"Goroutine ([0-9]+) \([a-z]+\) created", numbered=False),
    # `pstree -p`
    noise_rule("RS202", "process", ("─", "-+-"), r"(?:─|-\+-)[\w.@:-]{1,40}\(([0-9]+)\)", numbered=False),
    # Where an object of Python's lies in memory, which is another place on each run.
    noise_rule(
        "RS203",
        "address",
        (" at 0x",),
        r" at (0x[0-9a-fA-F]{6,16})(?=>|; (?:to '|dead>)|, file \"|: \w{1,64} object at 0x| thread T)",
    ),
    noise_rule("RS203", "address", (" id='",), r" id='([0-9]{12,16})'>"),
    # Go's heap, what is written as 64 bits, and a sanitiser's report.
    noise_rule("RS203", "address", ("0xc000",), r"(0xc000(?!000)[0-9a-f]{6})\b"),
    noise_rule("RS203", "address", (" at 0x00c0",), r" at (0x00c0[0-9a-f]{8}) by "),
    # A constant in code stands behind a blank.
    noise_rule(
        "RS203",
        "address",
        ("0x00005", "0x00007"),
        r"(?<=[\[(<:=])(?<![A-Za-z_]{4}=)(0x0000[57](?!f{11})[0-9a-f]{11})\b",
    ),
    noise_rule(
        "RS203",
        "address",
        (" address 0x",),
        r"(?:(?<=on)|(?<=on unknown)) address (0x(?!0{8})[0-9a-f]{6,16})(?= at pc | \(pc )",
    ),
    noise_rule(
        "RS203",
        "address",
        ("pc 0x",),
        r"(?<=[ (])pc (0x[0-9a-f]{6,16} bp 0x[0-9a-f]{6,16} sp 0x[0-9a-f]{6,16})\b",
        numbered=False,
    ),
    noise_rule(
        "RS203",
        "address",
        (" 0x5", " 0x7"),
        r"(?:(?<=#[0-9])|(?<=#[0-9][0-9])) (0x[57][0-9a-f]{11})(?= in | \()",
    ),
    noise_rule("RS203", "address", ("region [0x",), r"region \[(0x[0-9a-f]{6,16},0x[0-9a-f]{6,16})\)"),
    noise_rule(
        "RS203",
        "request",
        REQUEST_IDS,
        rf"(?i:(?<![\w-])(?:{'|'.join(REQUEST_IDS)})){IS}{_REQUEST_ID}",
    ),
    noise_rule(
        "RS204",
        "measure",
        COUNTERS,
        rf"(?i:(?<![a-z])(?:{'|'.join(COUNTERS)})(?:(?<!time)-(?:requests|tokens))?){_HEADER_IS}"
        # nothing left is another answer
        r"(?!0(?![0-9.]))([0-9.]{1,16}(?:ms|s)?)\b(?! [a-z])",
        numbered=False,
    ),
    noise_rule(
        "RS204",
        "measure",
        ("speed_download", "speed_upload"),
        rf"speed_(?:down|up)load{IS}([0-9.]{{1,16}})\b",
        numbered=False,
    ),
    noise_rule("RS203", "session", ("running with session id ",), r"running with session ID ([0-9]+)\b"),
    noise_rule("RS203", "chunk", ("chunk id: ",), r"Chunk ID: ([0-9a-f]{4,})\b"),
    # How long an output was before it was cut: in other folders, and with other times in it, it is another.
    noise_rule(
        "RS204",
        "measure",
        ("original token count: ",),
        r"(?i:original token count: )([0-9]{1,12})\b",
        numbered=False,
    ),
    noise_rule(
        "RS204",
        "measure",
        ("original_token_count",),
        rf"original_token_count{IS}([0-9]{{1,12}})\b",
        numbered=False,
    ),
    noise_rule("RS204", "measure", ("…",), r"…([0-9]{1,12}) (?:tokens|chars) truncated…", numbered=False),
    noise_rule(
        "RS204",
        "measure",
        ("output too large (",),
        r"(?i:output too large \()([0-9.]{1,10} ?[KMG]?B)\)\. Full output",
        numbered=False,
    ),
    # Codex keeps its sessions by day.
    noise_rule(
        "RS104",
        "date",
        ("sessions",),
        r"sessions[\\/]{1,2}(20[0-9]{2}[\\/]{1,2}[0-9]{2}[\\/]{1,2}[0-9]{2})[\\/]{1,2}rollout-",
        numbered=False,
    ),
    noise_rule("RS203", "agent", ("agent", "task"), rf"(?i:agent|task)[_ -]?[Ii][Dd]{IS}{_AGENT}"),
    noise_rule("RS203", "agent", ("tasks",), rf"(?<=[\\/])tasks[\\/]{{1,2}}{_AGENT}\.output\b"),
    noise_rule(
        "RS203",
        "task",
        ("task", "shell", "agent"),
        rf"(?i:task|shell|agent)[_ -]?[Ii][Dd]{IS}{_LOOKS_RANDOM}{_TASK}",
    ),
    noise_rule("RS203", "task", ("background",), rf"background(?:ed)?(?: by user)? with ID: {_TASK}"),
    noise_rule("RS203", "task", ("id: b", "task: b"), rf"(?<!\w)(?:ID|task): {_LOOKS_RANDOM}{_TASK}"),
    noise_rule("RS203", "task", ("tasks",), rf"(?<=[\\/])tasks[\\/]{{1,2}}{_TASK}\.output\b"),
    # Qwen Code's shells and monitors, opencode's sub-agents.
    noise_rule(
        "RS203",
        "task",
        ("id: bg_", "id: mon_", "background as bg_"),
        r"(?:(?<![^\n])id: |background as )(bg_[0-9a-f]{8}|mon_[0-9a-f]{16})(?!\w)",
    ),
    noise_rule("RS203", "task", ("ses_",), rf"(?<!\w)(ses_{_OPENCODE})(?!\w)"),
    # Where an agent keeps an output that is too long to show: Claude Code and Gemini CLI, opencode,
    # Qwen Code, Copilot CLI.
    noise_rule(
        "RS203",
        "result",
        ("tool-results", "tool-outputs"),
        r"(?<=[\\/])tool-(?:results|outputs)[\\/]{1,2}(?:session-[\w-]{1,64}+[\\/]{1,2})?"
        r"((?:(?=[A-Za-z0-9_-]{0,80}[0-9]{10})|(?=[a-z]{4,8}_[A-Za-z0-9]{16})|(?=[A-Za-z]{0,16}[0-9][A-Za-z0-9]{0,32}\.))"
        r"[A-Za-z0-9_-]{6,})\.\w+",
    ),
    noise_rule(
        "RS203", "result", ("tool-output",), rf"(?<=[\\/])tool-output[\\/]{{1,2}}(tool_{_OPENCODE})(?!\w)"
    ),
    noise_rule("RS203", "result", ("saved to: ",), rf"{_SAVED}([\w.-]{{1,80}}_[0-9a-f]{{12}})\.output\b"),
    noise_rule(
        "RS203",
        "result",
        ("saved to: ",),
        rf"{_SAVED}([0-9]{{13}}-copilot-tool-output-[0-9]{{1,8}}-[0-9a-f-]{{36}})\.txt\b",
    ),
    # Containers and what Docker's first builder made on the way, by what stands before and after; a layer's
    # digest is of its content and stays.
    noise_rule("RS203", "container", ("container ",), rf"(?i:container) {_CONTAINER}"),
    noise_rule(
        "RS203",
        "container",
        ("container",),
        rf"(?i:container)[_-]?[Ii][Dd]{IS}(?:docker://|containerd://)?{_CONTAINER}",
    ),
    noise_rule("RS203", "container", ("containers/", "docker-"), rf"(?:containers/|docker-){_CONTAINER}"),
    noise_rule("RS203", "container", ("---> ",), rf"---> (?:Running in )?{_CONTAINER}"),
    noise_rule("RS203", "container", ("successfully built ",), rf"Successfully built {_CONTAINER}"),
    noise_rule("RS203", "container", ("root@",), r"root@([0-9a-f]{12})(?=:[/~])"),
    *MADE_ANEW,
)
