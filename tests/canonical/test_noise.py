"""Noise of tool results: durations, processes, ids that clients make. A user means them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canonical.scrubbing import scrubbed
from rewind_proxy.canonical.text import normalise_text

DURATIONS = [
    ("took 3s", "took @"),
    ("took 1m 2s", "took @"),
    ("took 1 minute and 2 seconds", "took @"),
    ("took 2h 3m", "took @"),
    ("took 1 second", "took @"),
    ("in 2 hours", "in @"),
    ("real 0m1.234s\nuser 0m0.1s\nsys 0m0.0s", "real @\nuser @\nsys @"),
    ("real 1.23\nuser 0.10\nsys 0.02", "real @\nuser @\nsys @"),
    ("3 passed in 0.12s", "3 passed in @"),
    ("3 passed in 62.12s (0:01:02)", "3 passed in @"),
    ("Finished `dev` profile in 0.52s", "Finished `dev` profile in @"),
    ("test result: ok. 3 passed; finished in 2.3s", "test result: ok. 3 passed; finished in @"),
    ("ok example.com/x 0.123s", "ok example.com/x @"),
    ("--- PASS: TestA (0.00s)", "--- PASS: TestA (@)"),
    ("12.3 ns/op, 5 ms/op", "@/op, @/op"),
    ("added 12 packages in 812ms", "added 12 packages in @"),
    ("added 12 packages in 3s", "added 12 packages in @"),
    ("audited 13 packages in 1m", "audited 13 packages in @"),
    ("Time: 1.234 s, estimated 2 s", "Time: @"),
    ("Time: 3 s", "Time: @"),
    ("Duration 1.23s (transform 45ms, setup 0ms)", "Duration @ (transform @, setup @)"),
    ("[1.2s] [3s] (5 ms) (4s)", "[@] [@] (@) (@)"),
    ("1,234 ms", "@"),
    ("1.2e-3 s", "@"),
    ("12µs 12μs 12us 3 ns", "@ @ @ @"),
    ("\x1b[32m0.52s\x1b[0m", "\x1b[32m@\x1b[0m"),
    ("elapsed 00:00:01.23", "elapsed @"),
    (
        "Elapsed (wall clock) time (h:mm:ss or m:ss): 0:01.23",
        "Elapsed (wall clock) time (h:mm:ss or m:ss): @",
    ),
    ("Total time: 01:02 min", "Total time: @"),
    ("Total time: 1.234 s", "Total time: @"),
    ("done in 0:01:02", "done in @"),
    ("Wall time: 0.0000 seconds", "Wall time: @"),
    ('{"duration_ms": 412, "took": 12, "latency": 0.5}', '{"duration_ms": @, "took": @, "latency": @}'),
    ('{\\"duration_seconds\\":0.1}', '{\\"duration_seconds\\":@}'),
    ("time_total: 0.123", "time_total: @"),
    ("created 3 days ago, 5s ago", "created @ ago, @ ago"),
    ("web-1 1/1 Running 0 45s\n", "web-1 1/1 Running 0 @\n"),
    ("✓ built in 90s", "✓ built in @"),
]


@pytest.mark.parametrize(("text", "seen"), DURATIONS)
def test_durations(text: str, seen: str) -> None:
    """They go with their unit, which may be another the next time, and stay in a user's words."""
    assert scrubbed(text, "tool_result") == seen.replace("@", "⟨duration⟩")
    assert scrubbed(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "music of the 1960s",
        "90s music",
        "popular in 90s music",
        "in 1960s style",
        "iPhone 5s",
        "the 5s is old",
        "4s and 5s",
        "timeout: 30s",
        "timeout: 5m",
        "transition: 3s",
        "const TIMEOUT = '30 s'",
        "a 5m cable, 2h",
        "join 12 us",
        "v1.2s3",
        "key 3s-a",
        "12 MB, 12 MB/s, 12 ms/px",
        "5 sons",
        "the 1-2 s range",
        "duration: short",
        "## Duration\n\n3 files",
        "due in 3 days",
        "John 3:16 and ratio 16:9",
        "mistook 5, overtook 7",
        "line 12, exit code 1",
        "time = 3",
        "runtime: 3.11",
        "total 12",
        "transition: all 300ms ease-in;",
        "animation-duration: 0.3s",
        "transition: opacity 0.3s ease, color 0.5s ease",
        "--ease-time: 300ms;",
        "latency under 200 ms",
        "build_time = 12.5",
        '{"duration": 12.5, "codec": "h264"}',
        'timeout = "500ms"',
        '"timeout": "30 seconds"',
        "timeout: 30 seconds",
        "cacheTtl: 10 minutes",
        "delay(1.5s)",
        "poll_interval=250ms",
        "retry after 30 seconds",
        "tokens expire in 15 minutes",
        "rotate every 12 hours",
        'expect(format(61000)).toBe("1 minute")',
        'assert humanize(90) == "About a minute"',
        "duration: 3600",
        "latency: 100",
        "max_latency_ms=100",
        '"duration_minutes": 30',
        '{"title": "Song", "duration": 215}',
        "process_time_limit: 3",
    ],
)
def test_numbers_that_are_no_duration_stay(text: str) -> None:
    """Decades, models, settings, sizes, lengths: a number with one letter needs a word beside it."""
    assert scrubbed(text, "tool_result") == text


@given(
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.sampled_from(["took {}.{:03}s", "in {}ms {}", "real {}m{}.5s", "({}.{:03} secs)"]),
)
def test_two_durations_are_alike(number: int, part: int, form: str) -> None:
    """Whatever the numbers, of any length."""
    one, two = (scrubbed(form.format(*each), "tool_result") for each in ((number, part), (7, part)))
    assert one == two


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("started, pid: 31337", "started, pid: ⟨process⟩"),
        ("PID 12345 PPID=1", "PID ⟨process⟩ PPID=⟨process⟩"),
        ("worker_pid=12", "worker_pid=⟨process⟩"),
        ('{"pid": 12}', '{"pid": ⟨process⟩}'),
        ("Process ID: 12", "Process ID: ⟨process⟩"),
        ("Background PIDs: 12345, 12346", "Background PIDs: ⟨process⟩"),
        ("Process Group PGID: 8786", "Process Group PGID: ⟨process⟩"),
        ("process 12345 exited", "process ⟨process⟩ exited"),
        ("Killed process 12345 (node)", "Killed process ⟨process⟩ (node)"),
        ("Killed process 12345", "Killed process ⟨process⟩"),
        ("Started server process [4321]", "Started server process [⟨process⟩]"),
        ("(node:12345) Warning: x", "(node:⟨process⟩) Warning: x"),
        ("/bin/sh: line 1: 4321 Terminated  sleep 5", "/bin/sh: line 1: ⟨process⟩ Terminated sleep 5"),
        ("bash: kill: (4321) - No such process", "bash: kill: (⟨process⟩) - No such process"),
        ("[pid 4321:tid 140] up", "[pid ⟨process⟩:tid ⟨process⟩] up"),
        ("<app.Foo object at 0x7f3a2b1c4d50>", "<app.Foo object at ⟨address:1⟩>"),
        ("Process running with session ID 60582", "Process running with session ID ⟨session:1⟩"),
    ],
)
def test_processes(text: str, seen: str) -> None:
    """The number of a process, and where its objects lie, are others on each run."""
    assert scrubbed(text, "tool_result") == seen
    assert scrubbed(text) == normalise_text(text)


AGENT, TASK = "a1f3c9d2e5b70418f", "b9x7k2m4q"


@pytest.mark.parametrize(
    "text",
    [
        "agentId: @A",
        "agent_id: '@A'",
        '"agent_id":"@A"',
        '{\\"agentId\\": \\"@A\\"}',
        "Agent ID: @A.",
        "<agent-id>@A</agent-id>",
        "task_id=@A",
        "/x/tasks/@A.output",
        "Command running in background with ID: @T. Output",
        "Command was manually backgrounded by user with ID: @T",
        "Successfully stopped task: @T (sleep 100)",
        "ID: @T",
        "task_id: @T",
        '"taskId": "@T"',
        "<task-id>@T</task-id>",
        "shell_id: '@T'",
        "/x/tasks/@T.output",
        "C:\\x\\tasks\\@T.output",
        "saved to /x/tool-results/@T.txt",
    ],
)
def test_ids_that_clients_make(text: str) -> None:
    """Of agents and background tasks, as each client writes them; in a user's words they are meaning."""
    kind, value = ("agent", AGENT) if "@A" in text else ("task", TASK)
    kind = "result" if "tool-results" in text else kind
    told, seen = text.replace("@A", value).replace("@T", value), text.replace("@A", "@").replace("@T", "@")
    assert scrubbed(told, "tool_result") == seen.replace("@", f"⟨{kind}:1⟩")
    assert scrubbed(told) == told


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("Background shell started.\nid: @\npid: x\noutput: /x/shell-@.output", "bg_ba223acb", "task"),
        (
            "\"sleep 9\" promoted to background as @. To stop: `task_stop({ task_id: '@' })`",
            "bg_ba223acb",
            "task",
        ),
        ("Monitor started.\nid: @\ncommand: x", "mon_0f3a9c2b7d1e4456", "task"),
        ('<task id="@" state="done">\n</task>', "ses_dd4292f03ffefBHh3DlhJPkctB", "task"),
        ("For full output see: /x/tool-outputs/@.txt", "run_shell_command_1796076397433_0", "result"),
        (
            "/x/tool-outputs/session-a-b/@.txt",
            "run_shell_command__run_shell_command_1796076397433_0",
            "result",
        ),
        ("Full output saved to: /x/tool-output/@\n\n18002", "tool_22e7f0f88001pRr0vGYB6H81bv", "result"),
        ("has been saved to: /x y/z/@.output\nTo read", "run_shell_command_564d7e11d197", "result"),
        (
            "Saved to: C:\\x\\@.txt\nSee @",
            "1796076414524-copilot-tool-output-15386-4966b3d7-6fd4-4af7-ac81-ada9c90fee77",
            "result",
        ),
    ],
)
def test_ids_of_other_agents(text: str, value: str, kind: str) -> None:
    """Of Qwen Code, opencode, Gemini CLI and Copilot CLI: tasks, and files for what was too long to show."""
    told = text.replace("@", value)
    assert scrubbed(told, "tool_result") == text.replace("@", f"⟨{kind}:1⟩")
    assert scrubbed(told) == told


@pytest.mark.parametrize(
    "text",
    [
        "plant ID: blueberry",
        "ID: banana123",
        "ID: birthdays",
        "task_id: buildtest",
        "task: backbones",
        "with ID: bash_1",
        "agent_id: 12",
        "agentId: alice",
        "agent_id: abcdefab",
        "shell_id: 3",
        "process 3 files",
        "user id: 12, valid: 12, stupid: 12",
        "pid: abc",
        "/x/tool-results/summary.txt",
        "/x/tool-results/gpt-4o.json",
        "/x/tool-outputs/2026-q1.csv",
        "Color id: bg_ff0000ff",
        "/x/tool-outputs/session-a-b/summary.txt",
        "/x/tool-output/tool_kit",
        "saved to: /x/report_final.output",
        ".bg_ff0000ff { color: red }",
        "id: bg_image1",
        "ses_sion_expired",
        "/x/tasks/buildings.txt",
        "chunk_id: 12",
        "[1] 12345",
        "main.py: line 12: 4 errors",
        "mov eax at 0x7f3a2b1c4d50, then",
        "process [x]",
        "process 12 is the slowest",
        "/cart?pid=12&qty=1",
        "agent_id: a0000001",
        "task_id: b00000001",
        "task_id: backlog42",
    ],
)
def test_ids_that_mean_something_stay(text: str) -> None:
    """Words, counts, and what is numbered from one."""
    assert scrubbed(text, "tool_result") == text
