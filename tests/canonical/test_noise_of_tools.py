"""What common tools print of a run: two runs are alike, and what they say of the work stays."""

from __future__ import annotations

import pytest

from canonical.scrubbing import scrubbed
from rewind_proxy.canonical.text import normalise_text

HEX, OTHER = "0a1b2c3d4e5f", "fa1b2c3d4e50"

# A name, what the tool printed, and what it printed the next time.
RUNS = [
    (
        "ps",
        "    PID TTY          TIME CMD\n  12345 pts/0    00:00:00 bash\n  12399 pts/0    00:00:00 ps\n",
        "    PID TTY          TIME CMD\n   9345 pts/1    00:00:01 bash\n   9399 pts/1    00:00:00 ps\n",
    ),
    (
        "ps aux",
        (
            "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
            "ann        12345  1.2  0.3 1234567 65432 pts/0   Sl+  09:01   0:12 node server.js --port 3000\n"
        ),
        (
            "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
            "ann         9345 12.2  1.3 1134567 75432 pts/1   Rl+  Nov29   1:12 node server.js --port 3000\n"
        ),
    ),
    (
        "ps -ef",
        (
            "UID          PID    PPID  C STIME TTY          TIME CMD\n"
            "ann        12345       1  3 09:00 pts/0    00:00:00 sleep 5\n"
        ),
        (
            "UID          PID    PPID  C STIME TTY          TIME CMD\n"
            "ann         2345       1  0 10:00 pts/0    00:00:00 sleep 5\n"
        ),
    ),
    (
        "ps aux | grep",
        "ann        12345  1.2  0.3 1234567 65432 pts/0   Sl+  09:01   0:12 node server.js\n",
        "ann         2345  0.2  0.4 1334567 65332 ?   Sl+  Nov29   1:12 node server.js\n",
    ),
    (
        "ps -ef | grep",
        "ann        12345       1  3 09:00 pts/0    00:00:00 sleep 5\n",
        "ann         2345       1  0 10:00 ?    00:00:01 sleep 5\n",
    ),
    (
        "ps of macOS",
        "  PID TTY TIME CMD\n 1234 ttys000 0:00.05 -zsh\n",
        "  PID TTY TIME CMD\n  5 ?? 0:01.15 -zsh\n",
    ),
    (
        "top",
        (
            "top - 09:00:01 up 3 days,  2:03,  1 user,  load average: 0.10, 0.20, 0.30\n"
            "Tasks: 123 total,   1 running, 122 sleeping,   0 stopped,   0 zombie\n"
            "%Cpu(s):  1.2 us,  0.3 sy,  0.0 ni, 98.3 id,  0.1 wa,  0.0 hi,  0.1 si,  0.0 st\n"
            "MiB Mem :  15900.1 total,   1234.5 free,   4321.0 used,  10344.6 buff/cache\n"
            "MiB Swap:   2048.0 total,   2048.0 free,      0.0 used.  11000.2 avail Mem\n\n"
            "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
            "  12345 ann       20   0 1234567  65432  12345 S   1.3   0.4   0:12.34 node\n"
        ),
        (
            "top - 10:10:01 up 13 days,  4:03,  2 users,  load average: 1.10, 0.90, 0.31\n"
            "Tasks: 126 total,   2 running, 124 sleeping,   0 stopped,   0 zombie\n"
            "%Cpu(s): 11.2 us,  0.5 sy,  0.0 ni, 88.3 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\n"
            "MiB Mem :  15900.1 total,   2234.5 free,   3321.0 used,  10344.6 buff/cache\n"
            "MiB Swap:   2048.0 total,   2048.0 free,      0.0 used.  12000.2 avail Mem\n\n"
            "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
            "   2345 ann       20   0 1134567  75432  13345 R  21.3   0.5   1:12.34 node\n"
        ),
    ),
    (
        "uptime",
        " 09:00:01 up 3 days,  2:03,  1 user,  load average: 0.10, 0.20, 0.30\n",
        " 10:00:01 up 12 min,  2 users,  load average: 0.18, 0.22, 0.31\n",
    ),
    (
        "uptime of macOS",
        "9:00  up 3 days,  2:03, 2 users, load averages: 1.10 1.20 1.30\n",
        "19:00  up 13 days,  2:33, 2 users, load averages: 2.10 2.20 1.30\n",
    ),
    (
        "lsof",
        "COMMAND PID USER FD TYPE DEVICE SIZE/OFF NODE NAME\nnode 12345 ann 23u IPv6 123456 0t0 TCP *:3000\n",
        "COMMAND PID USER FD TYPE DEVICE SIZE/OFF NODE NAME\nnode 2345 ann 23u IPv6 523456 0t0 TCP *:3000\n",
    ),
    (
        "Get-Process",
        (
            "Handles NPM(K) WS(K) CPU(s) Id SI ProcessName\n------- ------ ----- ------ -- -- -----------\n"
            "    123 12 12345 1.23 12345 1 node\n"
        ),
        (
            "Handles NPM(K) WS(K) CPU(s) Id SI ProcessName\n------- ------ ----- ------ -- -- -----------\n"
            "    133 13 22345 2.23 2345 1 node\n"
        ),
    ),
    ("tasklist", "node.exe 12345 Console 1 65,432 K", "node.exe 2345 Console 1 75,432 K"),
    (
        "netstat",
        "tcp 0 0 0.0.0.0:3000 0.0.0.0:* LISTEN 12345/node",
        "tcp 0 0 0.0.0.0:3000 0.0.0.0:* LISTEN 7/node",
    ),
    ("systemctl", '  ├─1234 "nginx: master"\n  └─1235 "nginx"', '  ├─34 "nginx: master"\n  └─35 "nginx"'),
    (
        "curl",
        (
            "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
            "                                 Dload  Upload   Total   Spent    Left  Speed\n"
            "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
            "\r100  1256  100  1256    0     0   7123      0 --:--:-- --:--:-- --:--:--  7136\nhello"
        ),
        (
            "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
            "                                 Dload  Upload   Total   Spent    Left  Speed\n"
            "\r 50  1256   50   628    0     0    612      0  0:00:02  0:00:01  0:00:01   612"
            "\r100  1256  100  1256    0     0   3123      0  0:00:01  0:00:01 --:--:--  3136\nhello"
        ),
    ),
    ("wget", "2026-11-30 09:00:01 (12.3 MB/s) - 'a' saved", "2026-11-30 09:10:01 (2.3 KB/s) - 'a' saved"),
    (
        "git clone",
        "Receiving objects: 100% (12/12), 1.23 MiB | 4.56 MiB/s, done.",
        "Receiving objects: 100% (12/12), 1.23 MiB | 512.00 KiB/s, done.",
    ),
    ("maven", "x.pom (12 kB at 34 kB/s)", "x.pom (12 kB at 1.4 MB/s)"),
    ("apt", "Fetched 1,234 kB in 1s (1,100 kB/s)", "Fetched 1,234 kB in 0s (4,100 kB/s)"),
    ("pip", "   ━━━━━━ 64.9/64.9 kB 1.2 MB/s eta 0:00:00", "   ━━━━━━ 64.9/64.9 kB 512.3 kB/s eta 0:00:01"),
    ("an older pip", "     |████████| 64 kB 3.2 MB/s", "     |████████| 64 kB 12.2 MB/s"),
    ("dd", "12 bytes (12 B) copied, 0.00123 s, 853 MB/s", "12 bytes (12 B) copied, 0.00223 s, 453 MB/s"),
    (
        "rsync",
        "sent 1,234 bytes  received 35 bytes  2,538.00 bytes/sec",
        "sent 1,234 bytes  received 35 bytes  838.00 bytes/sec",
    ),
    ("tqdm", "100%|███| 10/10 [00:01<00:00,  9.87it/s]", "100%|███| 10/10 [00:02<00:01,  1.87s/it]"),
    ("klog", "I1130 09:00:00.000000   12345 file.go:1] up", "I1129 10:00:00.000100    2345 file.go:1] up"),
    ("syslog", "Nov 30 09:00:00 box sshd[123]: Accepted", "Nov 30 09:10:00 box sshd[4123]: Accepted"),
    ("journal", "2026-11-30T09:00:00+0000 box a[1]: x", "2026-11-30T09:00:01+0000 box a[12]: x"),
    (
        "dmesg",
        "[    0.123456] usb 1-1: new\n[12345.678901] up",
        "[    0.123556] usb 1-1: new\n[ 2345.678901] up",
    ),
    ("a crash", "a.out[1234]: segfault at 0 ip 0000", "a.out[2234]: segfault at 0 ip 0000"),
    (
        "gunicorn",
        "[2026-11-30 09:00:00 +0000] [12345] [INFO] up",
        "[2026-11-30 10:00:00 +0000] [2345] [INFO] up",
    ),
    (
        "PostgreSQL",
        "2026-11-30 09:00:00.123 UTC [12345] LOG:  up",
        "2026-11-30 09:10:00.123 UTC [2345] LOG:  up",
    ),
    ("nginx", "2026/11/30 09:00:00 [error] 12345#0: *1 x", "2026/11/30 10:00:00 [error] 2345#0: *1 x"),
    (
        "Ruby",
        "I, [2026-11-30T09:00:00.123456 #12345]  INFO -- : up",
        "I, [2026-11-30T09:00:01.123456 #45]  INFO -- : up",
    ),
    (
        "Spring Boot",
        "2026-11-30T09:00:00.123Z  INFO 12345 --- [main] c.x.App : Started App (process running for 1.5)",
        "2026-11-30T09:00:10.123Z  INFO 2345 --- [main] c.x.App : Started App (process running for 2.5)",
    ),
    ("logcat", "11-30 09:00:00.123  1234  1250 I Tag: hi", "11-30 09:10:00.123  4234  5250 I Tag: hi"),
    ("Redis", "12345:M 30 Nov 2026 09:00:00.123 * Ready", "2345:M 30 Nov 2026 09:10:00.123 * Ready"),
    ("Valgrind", "==12345== Memcheck\n==12345== HEAP", "==2345== Memcheck\n==2345== HEAP"),
    ("Node", "process.pid = 1234", "process.pid = 4321"),
    (
        "a panic of Go",
        "goroutine 18 [running]:\nmain.f(0xc000012345)\n\t/app/main.go:3 +0x1d",
        "goroutine 7 [running]:\nmain.f(0xc000022345)\n\t/app/main.go:3 +0x1d",
    ),
    ("go test", "ok  \texample.com/x\t0.123s", "ok  \texample.com/x\t(cached)"),
    (
        "go test -bench",
        "BenchmarkA-8  1000000  1234 ns/op  120 B/op",
        "BenchmarkA-8  900000  1334 ns/op  120 B/op",
    ),
    ("jest", "Time:        1.234 s, estimated 2 s\nx", "Time:        12.3 s\nx"),
    ("cargo test", "target/debug/deps/app-0123456789abcdef", "target/debug/deps/app-fedcba9876543210"),
    ("rspec", "Randomized with seed 12345", "Randomized with seed 5345"),
    ("PHPUnit", "Time: 00:00.012, Memory: 6.00 MB", "Time: 00:01.012, Memory: 8.00 MB"),
    (
        "XCTest",
        "Executed 1 test, with 0 failures in 0.001 (0.002) seconds",
        "Executed 1 test, with 0 failures in 1.1 (1.2) seconds",
    ),
    ("flutter", "00:01 +3: All tests passed!", "00:02 +3: All tests passed!"),
    (
        "psql",
        "Seq Scan on t (actual time=0.012..0.013 rows=1 loops=1)",
        "Seq Scan on t (actual time=0.112..0.113 rows=1 loops=1)",
    ),
    (
        "ping",
        "rtt min/avg/max/mdev = 0.031/0.032/0.033/0.001 ms",
        "rtt min/avg/max/mdev = 0.041/0.042/0.043/0.002 ms",
    ),
    ("ab", "Requests per second:    1234.56 [#/sec] (mean)", "Requests per second:    234.56 [#/sec] (mean)"),
    (
        "zsh's time",
        "sleep 1  0.00s user 0.00s system 0% cpu 1.005 total",
        "sleep 1  0.01s user 0.02s system 1% cpu 1.1 total",
    ),
    (
        "GNU's time",
        (
            "0.00user 0.00system 0:01.00elapsed 0%CPU (0avgtext+0avgdata 1916maxresident)k\n"
            "0inputs+0outputs (0major+79minor)pagefaults 0swaps"
        ),
        (
            "0.01user 0.10system 0:01.10elapsed 1%CPU (0avgtext+0avgdata 1920maxresident)k\n"
            "0inputs+8outputs (0major+81minor)pagefaults 0swaps"
        ),
    ),
    ("stat", "Device: 8,1\tInode: 1234567 Links: 1", "Device: 8,1\tInode: 2234567 Links: 1"),
    (
        "uvicorn",
        'INFO: 127.0.0.1:54321 - "GET / HTTP/1.1" 200',
        'INFO: 127.0.0.1:44321 - "GET / HTTP/1.1" 200',
    ),
    ("docker ps", f"CONTAINER ID IMAGE\n{HEX} nginx\n", f"CONTAINER ID IMAGE\n{OTHER} nginx\n"),
    (
        "docker build",
        f"Removing intermediate container {HEX}\n ---> Running in {HEX}\nSuccessfully built {HEX}",
        f"Removing intermediate container {OTHER}\n ---> Running in {OTHER}\nSuccessfully built {OTHER}",
    ),
    ("a shell in a container", f"root@{HEX}:/app# ls", f"root@{OTHER}:/app# ls"),
    (
        "kubectl describe",
        f"containerID: containerd://{HEX * 5}0a1b",
        f"containerID: containerd://{OTHER * 5}0a1b",
    ),
    ("BuildKit", "#5 0.123 hi", "#5 1.123 hi"),
    (
        "kubectl get pods",
        "NAME READY\nweb-5d4f8c7b9-x2x7k 1/1",
        "NAME READY\nweb-5d4f8c7b9-zz9d4 1/1",
    ),
    ("a progress bar", "Downloading 45% eta 0:00:03", "Downloading 45% eta 0:00:13"),
    ("supervisord", "web RUNNING pid 1234, uptime 0:01:02", "web RUNNING pid 4234, uptime 1:01:02"),
]


@pytest.mark.parametrize(("one", "other"), [run[1:] for run in RUNS], ids=[run[0] for run in RUNS])
def test_two_runs_of_a_tool_are_alike(one: str, other: str) -> None:
    """In a tool result; a user who quotes one means these numbers, but for the times."""
    assert scrubbed(one, "tool_result") == scrubbed(other, "tool_result")
    assert "⟨process" not in scrubbed(one)
    assert "⟨measure" not in scrubbed(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("PID TTY TIME CMD\n 1 pts/0 00:00:00 bash\n", "PID TTY TIME CMD\n 1 pts/0 00:00:00 zsh\n"),
        (
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nann 1 0 0 1 1 ? Z 09:00 0:00 x\n",
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nann 1 0 0 1 1 ? S 09:00 0:00 x\n",
        ),
        ("PID USER COMMAND\n1 ann x\n", "PID USER COMMAND\n1 bob x\n"),
        ("PID TTY CMD\n1 ? a\n2 ? b\n", "PID TTY CMD\n1 ? a\n"),
        ("x.pom (12 kB at 34 kB/s)", "x.pom (13 kB at 34 kB/s)"),
        ("tcp 0 0 0.0.0.0:3000 0.0.0.0:* LISTEN 1/node", "tcp 0 0 0.0.0.0:3001 0.0.0.0:* LISTEN 1/node"),
        ("Nov 30 09:00:00 box sshd[123]: Accepted", "Nov 30 09:00:00 box sshd[123]: Refused"),
        (f"CONTAINER ID IMAGE\n{HEX} nginx\n", f"CONTAINER ID IMAGE\n{HEX} httpd\n"),
        (f"container {HEX} linked to container {OTHER}", f"container {HEX} linked to container {HEX}"),
        ("goroutine 18 [running]:", "goroutine 18 [select]:"),
        ("NAME READY\nweb-5d4f8c7b9-x2x7k 1/1", "NAME READY\napi-5d4f8c7b9-x2x7k 1/1"),
        ("2026-11-30 09:00:00 [404] ERROR: x", "2026-11-30 09:00:00 [500] ERROR: x"),
        ("[2026-11-30 09:00:00] [404] [x]", "[2026-11-30 09:00:00] [500] [x]"),
    ],
)
def test_what_tools_say_of_the_work_counts(one: str, other: str) -> None:
    """Commands, states, users, sizes, ports, which container is which."""
    assert scrubbed(one, "tool_result") != scrubbed(other, "tool_result")


@pytest.mark.parametrize(
    "text",
    [
        "items[3]: x",
        "09:00 list[3]: x",
        "| PID | TTY | CMD |\n| 12 | a | b |",
        "PID TTY CMD are columns\n12 of them",
        "PID TTY CMD\nsome words here\n",
        "0a1b2c3d4e5f: Pull complete",
        "commit 0a1b2c3d4e5f",
        "index 0a1b2c3..4d5e6f7 100644",
        "container deadbeefcafe",
        "limit: 12 MB/s",
        "the disk (12 MB/s)",
        "speed 12 MB/s | slow",
        "const a = b == 3",
        "a ? b : c 12",
        "# 5 things",
        "#12 fixes #13",
        "[0.123456] x",
        "[12] 345",
        "name-bcdfghjk-lmnpq",
        "LISTEN 80",
        "ok x (cached)y",
        "mov 0x7fffc000",
        "127.0.0.1:54321",
        "Memory: 6.00 MB",
        "seed 12, --seed 42",
        "12345 node server.js",
        "==title==",
        "in 0.001 (0.002)",
        "deps/app-0123.rs",
        "├── 12 a",
        "root@deadbeef:/",
        "x.exe 12 Console",
        "12:00 +3 x",
        "the load average of a server",
        "[error] 12#13: x",
        "- 10:30 lunch menu[12]: soup",
        "[DEBUG] 10:30 loop step[12]: x",
        "05-06 10:00 12 15 I x",
        "12:M 5 x",
        "==2024==\ntext",
        "==1== A chapter",
        "├─1 (chapters)",
        "tcp LISTEN 10.0.0.0 10.0.0.0 12/24",
        "#5 1.5 million people",
        "#1 10.50 GBP",
        "Plan Basic (5 MB/s) - 5 EUR",
        "a disk (rated at 10 MB/s)",
        "USB 3 | 625 MB/s",
        "│ Disk │ 5 GB 10 MB/s │ ─",
        "Requests per second: 5 [limit",
        "The API allows 10.00 requests per second",
        "644 -rw-r--r-- 1 ann ann 12 a",
        "755 drwxr-xr-x is its mode",
        "[3] 12 Running shoes",
        "container 123456789012",
        "docker-123456789012",
        "Process [5]",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    """Code, headings, commits, layers, limits, ports: these numbers are the work itself."""
    assert scrubbed(text, "tool_result") == normalise_text(text)
