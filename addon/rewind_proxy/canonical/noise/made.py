"""Noise of tool results that builds, test runners, databases and clusters make anew: seeds, places, reports.

What a source, a setting or a fixture says in such words stays: its line, or its size, is another.
"""

from __future__ import annotations

from rewind_proxy.canonical.noise.noise_rule import QUOTED, NoiseRule, noise_rule

MADE_ANEW: tuple[NoiseRule, ...] = (
    # Cargo's tests, and the seeds that test runners draw.
    noise_rule("RS203", "artifact", ("deps",), r"deps[\\/]{1,2}[\w-]{1,64}-([0-9a-f]{16})\b"),
    noise_rule(
        "RS203",
        "seed",
        (
            "randomized with seed ",
            "run options: --seed ",
            "--randomly-seed=",
            "random seed: ",
            "-test.shuffle ",
        ),
        # PHPUnit and Go take the time; a small number is one that somebody chose.
        r"(?:Randomized with seed |Run options: --seed |(?<=Using )--randomly-seed="
        r"|Random Seed: {1,8}(?=[0-9]{9})|-test\.shuffle (?=[0-9]{16}))([0-9]{1,20})\b",
        numbered=False,
    ),
    noise_rule("RS203", "inode", ("inode: ",), r"Inode: ([0-9]{1,20})\b"),
    noise_rule("RS203", "pin", ("debugger pin: ",), r"Debugger PIN: ([0-9]{3}-[0-9]{3}-[0-9]{3})\b"),
    # systemd, BuildKit, Windows' `dir`, Terraform's resources without a thing behind them.
    noise_rule("RS203", "boot", ("-- boot ",), r"-- Boot ([0-9a-f]{32}) --"),
    noise_rule("RS203", "unit", ("invocation id: ",), r"(?i:invocation id: )([0-9a-f]{32})\b"),
    noise_rule(
        "RS203", "build", ("checksum of ref ",), r"checksum of ref ([a-z0-9]{20,40}(?:::[a-z0-9]{20,40})?)\b"
    ),
    noise_rule(
        "RS203",
        "build",
        ("docker-desktop://",),
        r"docker-desktop://dashboard/build/[\w.-]{1,64}/[\w.-]{1,64}/([a-z0-9]{25})\b",
    ),
    noise_rule("RS203", "volume", ("serial number is ",), r"Serial Number is ([0-9A-F]{4}-[0-9A-F]{4})\b"),
    noise_rule(
        "RS203",
        "resource",
        ("null_resource.",),
        r"null_resource\.[^\n]{1,100}? \[id=([0-9]{15,20})\]",
    ),
    # Named after a hash of where the project lies: Xcode, Bazel, Poetry and pipenv; and at random.
    noise_rule("RS203", "place", ("deriveddata",), r"DerivedData[\\/]{1,2}[\w.-]{1,64}-([a-z]{28})\b"),
    noise_rule("RS203", "place", ("_bazel_",), r"_bazel_[\w.-]{1,64}[\\/]{1,2}([0-9a-f]{32})\b"),
    noise_rule(
        "RS203",
        "place",
        ("virtualenvs",),
        r"virtualenvs[\\/]{1,2}[\w.-]{1,64}?-(?:(?=[\w-]{8}-py[0-9])|(?=[\w-]{1,7}[A-Z])(?=[A-Z0-9_-]{0,7}[a-z])"
        r"(?=[A-Za-z_-]{0,7}[0-9]))([\w-]{8})(?=-py[0-9]|[\\/\s\"'`:)]|\Z)",
    ),
    noise_rule(
        "RS203", "place", ("pre-commit",), r"pre-commit[\\/]{1,2}repo((?=[a-z]*[0-9_])[a-z0-9_]{8})\b"
    ),
    noise_rule("RS203", "place", ("-v0",), r"-v0[\\/]{1,2}(\.tmp[A-Za-z0-9]{6})\b"),
    # Reports of JUnit's form.
    noise_rule(
        "RS201",
        "duration",
        ("<testcase ", "<testsuite"),
        r"<test(?:case|suites?) [^<\n]{0,1000}? time=\\?\"([0-9]{1,9}(?:\.[0-9]{1,9})?)\\?\"",
        numbered=False,
    ),
    noise_rule(
        "RS204",
        "host",
        ("<testsuite ",),
        r"<testsuite [^<\n]{0,1000}? hostname=\\?\"([\w.-]{1,64})\\?\"",
        numbered=False,
    ),
    # The port of a client, as uvicorn logs it.
    noise_rule(
        "RS203", "port", ("127.0.0.1:",), r"127\.0\.0\.1:([0-9]{5}) - \\?\"[A-Z]{3,7} /", numbered=False
    ),
    # Seeds and memory of other test runners; logs of pino and bunyan; Redis and MongoDB.
    noise_rule(
        "RS203",
        "seed",
        ("--random=true --seed=", "elm-test --fuzz "),
        r"(?:(?<=\(jasmine )--random=true|elm-test --fuzz [0-9]{1,8}(?= --seed [0-9]{9}))"
        r" --seed[ =]([0-9]{1,20})\b",
        numbered=False,
    ),
    noise_rule("RS204", "measure", ("maxrss:",), r"MaxRSS:([0-9]{1,8}[KMG]?)\b", numbered=False),
    noise_rule(
        "RS204",
        "host",
        ("hostname",),
        rf"hostname{QUOTED}([\w.-]{{1,64}})(?=\\{{0,3}}\",\\{{0,3}}\"pid\\{{0,3}}\":"
        r"[^\n]{1,400}?\"msg\\{0,3}\":)",
        numbered=False,
    ),
    noise_rule(
        "RS204",
        "host",
        ("pid",),
        rf"pid\\{{0,3}}\":[0-9]{{1,8}},\\{{0,3}}\"hostname{QUOTED}([\w.-]{{1,64}})"
        r"(?=\\{0,3}\"[^\n]{1,400}?\"msg\\{0,3}\":)",
        numbered=False,
    ),
    noise_rule("RS203", "server", ("run_id:",), r"run_id:([0-9a-f]{40})\b"),
    noise_rule(
        "RS201", "duration", ("uptime_in_",), r"uptime_in_(?:seconds|days):([0-9]{1,12})\b", numbered=False
    ),
    # What MongoDB's shell says it made; what a source or a fixture names is meaning.
    noise_rule(
        "RS203",
        "object",
        ("objectid(",),
        r"(?:(?<=insertedId: )|(?<=upsertedId: )|(?<='[0-9]': ))ObjectId\('([0-9a-f]{24})'\)",
    ),
    # Moments as Python and Rust print them. No microseconds, or all of them, are of a source.
    noise_rule(
        "RS103",
        "time",
        ("datetime.datetime(",),
        r"datetime\.datetime\(((?:19|20)[0-9]{2}(?:, [0-9]{1,2}){5}, (?!9{6})[1-9][0-9]{0,5})\b",
        numbered=False,
    ),
    noise_rule(
        "RS103",
        "time",
        ("time.struct_time(",),
        r"time\.struct_time\((tm_year=[a-z_0-9=, ]{60,160}tm_isdst=-?[0-9])\)",
        numbered=False,
    ),
    noise_rule(
        "RS204",
        "measure",
        ("tv_sec: ",),
        r"(?:(?<=Instant \{ )|(?=tv_sec: [0-9]{9}))tv_sec: ([0-9]{1,12}, tv_nsec: [0-9]{1,9})\b",
        numbered=False,
    ),
)
