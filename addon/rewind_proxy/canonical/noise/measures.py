"""Lines of tool results that say what a machine was doing meanwhile, and how quick it was.

Times alone are in `durations`. A size, a count or a result is none of this.
"""

from __future__ import annotations

from rewind_proxy.canonical.noise.line_rule import CLOCK, DATED, GAP, NUMBER, RATE, LineRule, line_rule

_INDENT = r"[ \t]{0,40}"
_SPENT = r"[0-9]{1,3}:[0-9]{2}:[0-9]{2}\.[0-9]{3}"
# An address that a router or Docker gave this machine (RFC 1918).
_PRIVATE = r"(?:10|172\.(?:1[6-9]|2[0-9]|3[01])|192\.168)(?:\.[0-9]{1,3}){2,3}"

MEASURES: tuple[LineRule, ...] = (
    # What the machine was doing meanwhile.
    line_rule(
        "RS204",
        "measure",
        ("load average",),
        rf"(?:top - | )?({CLOCK} up [^\n]{{1,60}}?load averages?:(?: [0-9.,]{{1,12}}){{3}})",
    ),
    line_rule(
        "RS204",
        "measure",
        ("it/s", "s/it"),
        r"[^\n]{0,200}?(\[[0-9:?]{4,10}<[0-9:?]{1,10},[ ]{0,4}[0-9.?]{1,12}(?:it/s|s/it)[^\]\n]{0,40}\])",
    ),
    line_rule("RS201", "duration", ("(cached)",), rf"ok{GAP}\S{{1,200}}{GAP}(\(cached\))(?!\w)"),
    line_rule(
        "RS201",
        "duration",
        (") seconds",),
        r"[ \t]{0,20}Executed [0-9]{1,6} tests?, with [^\n]{1,80}? in "
        r"([0-9.]{1,12} \([0-9.]{1,12}\) seconds)",
    ),
    line_rule(
        "RS204",
        "measure",
        (", Memory: ",),
        r"Time: ([0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]{1,3})?, Memory: [0-9.]{1,12} ?[KMG]?B)",
    ),
    line_rule(
        "RS201", "duration", ("/mdev", "/stddev"), r"(?:rtt|round-trip) [a-z/]{1,24} = ([0-9./]{1,64} ms)"
    ),
    line_rule(
        "RS201",
        "duration",
        (" cpu ",),
        r"[^\n]{0,200}?([0-9.]{1,12}s user [0-9.]{1,12}s system [0-9.]{1,12}% cpu [0-9:.]{1,12}) total",
    ),
    line_rule("RS204", "measure", (" zombie",), r"Tasks:([^\n]{1,120}? zombie)"),
    line_rule("RS204", "measure", ("%Cpu(s)",), r"%Cpu\(s\):([^\n]{1,120}? st\b)"),
    line_rule(
        "RS204",
        "measure",
        (" buff/cache", " avail Mem"),
        r"[KMG]iB (?:Mem|Swap) ?:([^\n]{1,120}?(?:cache|Mem))",
    ),
    # How quick a download or a copy was.
    line_rule("RS204", "measure", ("Fetched ",), rf"Fetched [^\n]{{1,40}}? in [^\n]{{1,20}}? \(({RATE})\)"),
    line_rule("RS204", "measure", ("B/s)",), rf"{DATED} \(({RATE})\) - "),
    line_rule("RS204", "measure", ("B/s)",), rf"[^\n]{{0,200}}?\({NUMBER} ?[kMG]?B at ({RATE})\)"),
    line_rule(
        "RS204", "measure", ("B/s",), rf"[^\n]{{0,24}}?ing objects: [^\n]{{1,60}}? \| ({RATE})(?=,|$|\n)"
    ),
    line_rule("RS204", "measure", (" copied, ",), rf"[^\n]{{0,120}}? copied, [^\n]{{1,24}}?, ({RATE})"),
    line_rule(
        "RS204",
        "measure",
        ("━", "█|", "─ "),
        rf"[ \t]{{0,40}}[|━╸╺─█▏▎▍▌▋▊▉ ]{{2,160}}[0-9./]{{1,24}} ?[kKMGT]?i?B "
        rf"({RATE}(?: (?:eta )?(?:[0-9:]{{4,10}}|-[:-]{{3,10}}))?)",
    ),
    line_rule(
        "RS204",
        "measure",
        (" bytes/sec",),
        rf"sent [^\n]{{1,40}}? received [^\n]{{1,40}}?{GAP}({NUMBER}) bytes/sec",
    ),
    line_rule("RS204", "measure", (" per second",), r"Requests per second:[ ]{1,8}([0-9.]{1,16}) \[#/sec\]"),
    line_rule("RS201", "duration", (" per request",), r"Time per request:[ ]{1,8}([0-9.]{1,16}) \[ms\]"),
    line_rule(
        "RS204",
        "measure",
        ("Dload",),
        rf"{_INDENT}Dload{GAP}Upload{GAP}Total{GAP}Spent{GAP}Left{GAP}Speed\n"
        rf"((?:\n{{0,2}}{_INDENT}(?:[0-9]{{1,3}}{GAP}[0-9.kMGT]{{1,8}}{GAP}){{3}}[0-9.kMGT]{{1,8}}{GAP}[0-9.kMGT]{{1,8}}"
        rf"(?:{GAP}[0-9:dh-]{{5,8}}){{3}}{GAP}[0-9.]{{1,8}}[kMGT]?)+)",
    ),
    line_rule(
        "RS204",
        "measure",
        (" ns/op",),
        rf"Benchmark[^\s-]{{1,120}}(?:-([0-9]{{1,4}}))?{GAP}([0-9]{{1,12}}){GAP}[0-9.]{{1,16}} ns/op"
        rf"(?:{GAP}([0-9.]{{1,16}}) MB/s)?",
    ),
    # Git on the threads of this machine; how much memory systemd counts, and how many threads it allows.
    line_rule(
        "RS204", "measure", ("Delta compression",), r"Delta compression using up to ([0-9]{1,4}) threads"
    ),
    line_rule(
        "RS204",
        "measure",
        ("Memory: ",),
        r"[ \t]{1,20}Memory: ([0-9.]{1,10}[KMGT]?B?(?: \([a-z]{1,12}: [^)\n]{1,80}\))?)\n"
        r"[ \t]{1,20}CPU: (?:[0-9]{1,4}[a-z]{1,5} ){0,3}[0-9.]{1,10}(?:s|ms|us)\b",
    ),
    line_rule("RS204", "measure", ("Tasks: ",), r"[ \t]{1,20}Tasks: [0-9]{1,8} \(limit: ([0-9]{3,9})\)"),
    # Minitest, sqlite, composer, tsc, Ansible.
    line_rule(
        "RS204",
        "measure",
        (" runs/s",),
        r"Finished in [^\n]{1,40}?, ([0-9.]{1,16} runs/s, [0-9.]{1,16} assertions/s)",
    ),
    line_rule(
        "RS201",
        "duration",
        ("Run Time: ",),
        r"Run Time: (real(?: [a-z]{0,4} ?[0-9.]{1,12}){3})",
    ),
    line_rule("RS204", "measure", ("Memory used: ",), r"Memory used:[ ]{1,20}([0-9]{1,12}K)"),
    line_rule(
        "RS204",
        "measure",
        ("Memory usage: ",),
        r"[^\n]{0,24}?Memory usage: ([0-9.]{1,10}[KMG]?i?B \(peak: [0-9.]{1,10}[KMG]?i?B\))",
    ),
    line_rule(
        "RS201",
        "duration",
        (" ***",),
        rf"[^\n]{{0,80}}?(\({_SPENT}\){GAP}{_SPENT}) \*\*\*",
    ),
    # What measures speed.
    line_rule(
        "RS204",
        "measure",
        ("change: [",),
        r"[ \t]{0,40}(?:time: {1,4})?change: (\[[^\]\n]{5,60}\] \(p = [0-9.]{1,8} [<>] [0-9.]{1,8}\))",
    ),
    line_rule("RS204", "measure", (" … ",), r"[ ]{0,4}Range \(min … max\): [^\n]{1,60}? ([0-9]{1,8}) runs"),
    line_rule("RS204", "measure", (" ns/iter",), r"[^\n]{0,200}? ns/iter \(\+/- ([0-9.,]{1,16})\)"),
    line_rule(
        "RS204",
        "measure",
        (" requests per second",),
        r"[^\n]{0,80}?([0-9]{1,9}\.[0-9]{1,3}) requests per second, p50=",
    ),
    line_rule(
        "RS204",
        "measure",
        ("/sec:",),
        rf"{_INDENT}(?:Requests|Transfer)/sec:[ \t]{{0,20}}([0-9.]{{1,16}}[KMG]?B?)",
    ),
    line_rule(
        "RS204",
        "measure",
        (" fps=",),
        r"frame=[ 0-9]{1,12} fps=[ ]{0,4}([0-9.]{1,6}) [^\n]{1,120}? speed=[ ]{0,4}([0-9.e+]{1,10}x)",
    ),
    line_rule("RS204", "measure", ("\ncpu: ",), r"cpu: ([^\n]{1,100})\n(?=Benchmark[^\s:]{1,120}[ \t])"),
    # Test runners on many processors, and what ExUnit draws.
    line_rule("RS204", "measure", (" workers",), r"[^\n]{0,40}?created: ([0-9]{1,3}/[0-9]{1,3}) workers"),
    line_rule("RS204", "measure", (" workers [",), r"([0-9]{1,3}) workers \[[0-9]{1,8} items?\]"),
    line_rule(
        "RS203",
        "seed",
        (", max_cases: ",),
        r"Running ExUnit with seed: ([0-9]{1,12}), max_cases: ([0-9]{1,4})",
    ),
    # Containers, and how much a disk of Windows has left.
    line_rule(
        "RS204",
        "measure",
        ("iB / ",),
        rf"[0-9a-f]{{12}}{GAP}\S{{1,100}}{GAP}([0-9.]{{1,8}}%{GAP}[0-9.]{{1,8}}[KMGT]?i?B /[^\n]{{1,160}})",
    ),
    line_rule(
        "RS204",
        "measure",
        (" bytes free",),
        rf"{_INDENT}[0-9]{{1,8}} Dir\(s\){GAP}([0-9.,]{{1,24}}) bytes free",
    ),
    # The port of this end; other names of this machine.
    line_rule(
        "RS203",
        "port",
        (" port ",),
        r"\* Established connection to [^\n]{1,160}? from [0-9a-fA-F.:]{3,45} port ([0-9]{1,5})(?= |\n|\Z)",
    ),
    line_rule(
        "RS204",
        "host",
        ("etwork:",),
        rf"[^\w\n]{{0,12}}(?:On Your )?Network:{GAP}https?://({_PRIVATE})(?::[0-9]{{2,5}})?",
    ),
    line_rule("RS204", "host", ("Running on http",), rf" ?\* Running on https?://({_PRIVATE}):"),
    # Where it is on a disk: `find -ls`, `ls -li`, `stat`.
    line_rule(
        "RS203",
        "inode",
        (" -r", " -w", " dr", " lr"),
        # no mode in digits, as `stat` may print it
        rf"[ ]{{0,12}}(?![0-7]{{3,4}}[ \t])([0-9]{{1,20}})(?:{GAP}[0-9]{{1,12}})?{GAP}[-dl][-rwxsStT]{{9}}"
        rf"[.+@]?{GAP}[0-9]{{1,6}}{GAP}\S{{1,32}}{GAP}\S{{1,32}}{GAP}[0-9]",
        numbered=True,
    ),
    line_rule(
        "RS203",
        "device",
        ("Device: ",),
        rf"Device: ([0-9a-f]{{1,8}}(?:h/[0-9]{{1,12}}d|,[0-9]{{1,12}})){GAP}Inode: ",
    ),
    # What fills a line up to the width of a terminal: pytest's summary, and where it has written a report.
    line_rule(
        "RS204",
        "measure",
        ("\n=",),
        r"(={1,200}) [^\n=]{1,200}? in [0-9.]{1,12}s(?: \([0-9:, a-z]{4,24}\))? (={1,200})(?=\n|\Z)",
    ),
    line_rule(
        "RS204",
        "measure",
        ("\n-",),
        r"(-{1,200}) [Gg]enerated [a-z]{2,8} (?:file|report): [^\n]{1,400}? (-{1,200})(?=\n|\Z)",
    ),
    # tox, gotestsum, Docker's and others' logs by seconds, k6, golangci-lint, oxlint, Next.js.
    line_rule(
        "RS201",
        "duration",
        ("=setup[",),
        r"[^\n]{1,80}? \(([0-9.]{1,12}=setup\[[^\n)]{1,120}\] seconds)\)",
    ),
    line_rule("RS201", "duration", ("(cached)",), rf"[✓✖∅]{GAP}\S{{1,200}} \((cached)\)"),
    line_rule(
        "RS201",
        "duration",
        ("INFO[", "WARN[", "ERRO[", "DEBU[", "FATA["),
        r"(?:\x1b\[[0-9;]{1,8}m)?[A-Z]{4}(?:\x1b\[[0-9;]{0,8}m)?\[([0-9]{4,8})\] ",
    ),
    line_rule(
        "RS204",
        "measure",
        ("..:",),
        rf"{_INDENT}(?:[✓✗] )?[a-z_]{{3,40}}\.{{2,60}}: [^\n]{{1,60}}?{GAP}([0-9.]{{1,12}}(?: [kMG]?B)?/s)"
        r"(?=\n|\Z)",
    ),
    line_rule(
        "RS204",
        "measure",
        (" samples, avg is ",),
        r"[^\n]{0,80}?Memory: ([0-9]{1,8} samples, avg is [0-9.]{1,12}MB, max is [0-9.]{1,12}MB)",
    ),
    line_rule(
        "RS204",
        "measure",
        (" using ",),
        rf"{_INDENT}(?:Finished in|✓ Generating static pages) [^\n]{{1,120}}?"
        r" using ([0-9]{1,4} (?:thread|worker)s?)",
    ),
)
