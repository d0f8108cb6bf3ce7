"""Scrubbing: what is noise in a text leaf and what is meaning (DESIGN §5; CASES 15 to 18)."""

from __future__ import annotations

import pytest

from canonical.scrubbing import scrubbed
from rewind_proxy.canonical.model import ScrubRule

U1 = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
U2 = "3f2504e0-4f89-41d3-9a0c-0305e82c3302"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"copy {U1} to {U2}", "copy ⟨uuid:1⟩ to ⟨uuid:2⟩"),
        (f"copy {U1} to {U1.upper()}", "copy ⟨uuid:1⟩ to ⟨uuid:1⟩"),
        (f"urn:uuid:{U1}", "⟨uuid:1⟩"),
        (f"msg_{U1}.", "msg_⟨uuid:1⟩."),
        (f"{U1}0", f"{U1}0"),
        (f"a{U1}", f"a{U1}"),
        (f"{U1}-{U2}", f"{U1}-{U2}"),
        ("3f2504e04f8941d39a0c0305e82c3301", "3f2504e04f8941d39a0c0305e82c3301"),
        ("d670460b4b4aece5915caf5c68d12f560a9fe3e4", "d670460b4b4aece5915caf5c68d12f560a9fe3e4"),
        ("⟨uuid:1⟩", "⟨⟨uuid:1⟩"),
    ],
)
def test_uuids(text: str, seen: str) -> None:
    """UUIDs with dashes are numbered, equal ones alike; near misses, shas and look-alikes stay apart."""
    assert scrubbed(text) == seen


TIMES = [
    "2026-11-30T09:00:01.123456Z",
    "2026-11-30T09:00:01+01:00",
    "2026-11-30 09:00",
    "2026-11-30 09:00:56",
    "2026-11-30 09:00:56,123",
    "2026-04-21T00-20-58-197Z",
    "2026-04-21T00_20_58_197Z",
    "20261130T090001Z",
    "Mon Nov 30 09:00:01 2026",
    "Mon Nov 30 09:00:01 UTC 2026",
    "Sat Sep  5 05:35:07 2026",
    "30/Nov/2026:09:00:01 +0000",
    "Sep  5 05:35:07",
    "Mon, 30 Nov 2026 09:00:01 GMT",
    "30 Nov 2026 09:00:01 +0000",
    "11/30/2026, 9:00:01 AM",
    "Monday, November 30, 2026 at 9:00 AM",
    "2026/11/30 09:00:01",
]


@pytest.mark.parametrize("time", TIMES)
def test_times_leave_no_digit(time: str) -> None:
    """Each common form of a date with a time goes as a whole, in prose and alone."""
    assert scrubbed(f"it ran at {time} and ended") == "it ran at ⟨time:1⟩ and ended"
    assert scrubbed(time) == "⟨time:1⟩"
    assert scrubbed(f"[{time}] ok") == "[⟨time:1⟩] ok"


@pytest.mark.parametrize(
    "text",
    [
        "Today's date: {}",
        "Today’s date is {}.",
        "Current date: {}",
        "current_date={}",
        "<current_date>{}</current_date>",
        'the "date": "{}" of it',
        "The current date is {}.",
        "Today is {}",
    ],
)
@pytest.mark.parametrize(
    "date", ["2026-11-30", "11/30/2026", "Monday, November 30, 2026", "30 November 2026", "Nov 30, 2026"]
)
def test_dates_beside_a_cue(text: str, date: str) -> None:
    """A date alone goes only beside a word that says it is today's."""
    assert scrubbed(text.format(date)) == text.format("⟨date:1⟩")


@pytest.mark.parametrize("epoch", ["1796031203", "1796031203.53", "1796031203498", "1796031203498123456"])
def test_epochs_beside_a_cue(epoch: str) -> None:
    """Seconds, milliseconds and nanoseconds since 1970 go beside a cue and stay elsewhere."""
    assert scrubbed(f"timestamp: {epoch}") == "timestamp: ⟨date:1⟩"
    assert scrubbed(f"limit {epoch} rows") == f"limit {epoch} rows"


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-01-06 it was cold",
        "gpt-4o-2024-08-06",
        "version 1.2.3",
        "port 8080",
        "limit 1700000000 rows",
        "call +49 30 1234567 or order 20240106",
        "GET /v1/users",
        "https://x.test/a",
        "/foo/ and s/a/b/ and 1/2",
        "took 412 ms",
        "pid 8786",
        "edit /etc/nginx/nginx.conf",
        "/opt/old/nginx.conf",
        "see https://x.test/home/u1/page",
        "~/notes and ./home/u1",
        "ratio 16:09 or 3:45",
    ],
)
def test_meaning_stays(text: str) -> None:
    """Versions, ports, counts, routes, URLs, dates in a question, and noise words of a user are meaning."""
    assert scrubbed(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<cwd>/home/a/app</cwd> read /home/a/app/x.py", "<cwd>⟨cwd⟩</cwd> read ⟨cwd⟩/x.py"),
        (
            "Primary working directory: /builds/7/app\nread /builds/7/app/x.py and /root/.npmrc",
            "Primary working directory: ⟨cwd⟩\nread ⟨cwd⟩/x.py and ⟨home⟩/.npmrc",
        ),
        ("I'm currently working in the directory: /srv/w", "I'm currently working in the directory: ⟨cwd⟩"),
        ("<cwd>C:\\Users\\u3\\proj</cwd> C:\\Users\\u3\\proj\\src\\a.py", "<cwd>⟨cwd⟩</cwd> ⟨cwd⟩/src/a.py"),
        ("<cwd>/home/a/app</cwd> /home/a/app2/x", "<cwd>⟨cwd⟩</cwd> ⟨home⟩/app2/x"),
        ("<cwd>/home/a/app</cwd> in /home/a/app.", "<cwd>⟨cwd⟩</cwd> in ⟨cwd⟩."),
        ("<cwd>/home/a/app</cwd> file:///home/a/app/x", "<cwd>⟨cwd⟩</cwd> file://⟨cwd⟩/x"),
        ("<cwd>/home/a/app</cwd> projects/-home-a-app/m", "<cwd>⟨cwd⟩</cwd> projects/⟨cwd⟩/m"),
        ("<cwd>/app</cwd> projects/-app/m and -app", "<cwd>⟨cwd⟩</cwd> projects/⟨cwd⟩/m and -app"),
        ("/Users/u2/w/p/src/a.py and /Users/u2/w/p/b.py", "⟨cwd⟩/src/a.py and ⟨cwd⟩/b.py"),
        ("only /home/u1/a.py", "only ⟨home⟩/a.py"),
        ("memory in /srv/people/ann/.claude/memory", "memory in ⟨home⟩/.claude/memory"),
        ("wrote /tmp/run-8f3a/out.txt", "wrote ⟨tmp⟩/⟨random:1⟩/out.txt"),
        ("/tmp/tmpab12cd_x/report.md", "⟨tmp⟩/⟨random:1⟩/report.md"),
        ("/private/var/folders/ab/cd12/T/x.log", "⟨tmp⟩/x.log"),
        ("/tmp/build/report.md", "⟨tmp⟩/build/report.md"),
    ],
)
def test_roots_of_paths(text: str, seen: str) -> None:
    """A root goes and the rest of the path stays: by a cue, by what paths share, or by its shape."""
    assert scrubbed(text) == seen


def test_paths_setting() -> None:
    """`paths = off` leaves every path, `all` takes every absolute folder."""
    assert scrubbed("<cwd>/home/a/app</cwd> /etc/x/y", paths="off") == "<cwd>/home/a/app</cwd> /etc/x/y"
    assert scrubbed("see /etc/nginx/nginx.conf", paths="all") == "see ⟨folder:1⟩/nginx.conf"


def test_roots_setting() -> None:
    """A project's own roots count too."""
    assert scrubbed("see /srv/data/x", roots=("/srv/data",)) == "see ⟨root:1⟩/x"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("done in 412 ms", "done in ⟨duration⟩"),
        ("Wall time: 0.0000 seconds", "Wall time: ⟨duration⟩"),
        ("duration_ms: 397", "duration_ms: ⟨duration⟩"),
        ("Process Group PGID: 8786", "Process Group PGID: ⟨process⟩"),
        ("Chunk ID: 8e0fbe", "Chunk ID: ⟨chunk:1⟩"),
        ("agentId: a0123456789abcdef", "agentId: ⟨agent:1⟩"),
        ("with ID: bkzbuy480.", "with ID: ⟨task:1⟩."),
        ("/x/tasks/bkzbuy480.output", "/x/tasks/⟨task:1⟩.output"),
    ],
)
def test_noise_of_tool_results(text: str, seen: str) -> None:
    """Durations, processes and ids that a client makes go in a tool result, and stay in a user's words."""
    assert scrubbed(text, "tool_result") == seen
    assert scrubbed(text, "user") == text


@pytest.mark.parametrize("task", ["bkzbuy480", "bkzbuyxyz"])
def test_a_task_below_temp_is_a_task(task: str) -> None:
    """The id of a background task is one id, whether it looks random or not, wherever it is named."""
    text = f"Running in background with ID: {task}. See /tmp/claude-0/x/tasks/{task}.output"
    assert (
        scrubbed(text, "tool_result")
        == "Running in background with ID: ⟨task:1⟩. See ⟨tmp⟩/x/tasks/⟨task:1⟩.output"
    )


def test_equal_times_in_a_tool_result_mean_nothing() -> None:
    """Two lines of a log may fall into one second in one run and not in the next."""
    same = scrubbed("2026-11-30T09:00:01Z a\n2026-11-30T09:00:01Z b", "tool_result")
    apart = scrubbed("2026-11-30T09:00:01Z a\n2026-11-30T09:00:02Z b", "tool_result")
    assert same == apart


def test_own_rules_and_their_place() -> None:
    """A project's rule works at its place only, and a rule can be switched off by its id."""
    rule = ScrubRule(name="build", pattern=r"build-\d+", where="tool_result")
    assert scrubbed("build-77", "tool_result", scrub=(rule,)) == "⟨build:1⟩"
    assert scrubbed("build-77", "user", scrub=(rule,)) == "build-77"
    assert scrubbed(U1, scrub_off=("RS101",)) == U1


def test_members_that_say_date() -> None:
    """A date alone goes under a member whose name says that it is one."""
    assert scrubbed("2026-11-30", member="date") == "⟨date:1⟩"
    assert scrubbed("2026-11-30", member="born") == "2026-11-30"
