"""More of what tools print of one run: crashes, builds, servers, clusters, HTTP, agents themselves."""

from __future__ import annotations

import json

import pytest

from canonical.scrubbing import scrubbed
from rewind_proxy.canonical.text import normalise_text

HEX, OTHER = "0a1b2c3d4e5f6071", "fa1b2c3d4e5f6070"

# A form of text with places for what differs, and the values of two runs.
RUNS = [
    ("thread 'main' ({}) panicked at src/main.rs:2:5:", "12345", "9"),
    ("<Thread(Thread-1, started {})>", "140234567890123", "139234567890123"),
    ("<Process name='P-1' pid=12 parent={} started>", "12345", "77"),
    ("SIGSEGV (0xb) at pc=0x0000{0}, pid=1, tid={1}", ("7f3a2b1c4d50", "12"), ("7a3a2b1c4d50", "345")),
    ("#<Foo:0x0000{} @a=1>", "7f3a2b1c4d50", "55aa2b1c4d50"),
    ("libc.so.6 => /lib/libc.so.6 (0x0000{})", "7f3a2b1c4d50", "7f002b1c4d50"),
    ("<MagicMock name='x' id='{}'>", "140234567890123", "139234567890123"),
    ('<code object f at 0x{}, file "a.py", line 3>', "7f3a2b1c4d50", "7a3a2b1c4d50"),
    ("<A object at 0x{}>", "000001F2A3B4C5D6", "000002F2A3B4C5D6"),
    ("com.x.Foo@{} and [I@1a2b3c4d", "1b6d3586", "4554617c"),
    ("    #0 0x{} in main /app/a.c:3", "55d0c1234567", "563bc1234567"),
    ("Write at 0x00c0000{} by goroutine {}:", ("12345", "7"), ("92345", "19")),
    ("created by main.main in goroutine {}\n\t/app/a.go:3", "1", "17"),
    ("[1]+ {} Running sleep 5 &", "12345", "77"),
    ("[{0}:77:1130/{1}:ERROR:gpu.cc(5)] x", ("12345", "090001.123456"), ("45", "100001.123457")),
    ("2026-11-30 09:00:01.123 app[{0}:{1}] hi", ("12345", "678901"), ("45", "ab8901")),
    ("systemd(1)───bash({0})───node({1})", ("12345", "12346"), ("45", "46")),
    (
        "ERROR: heap-buffer-overflow on address 0x{0} at pc 0x{1} bp 0x{1} sp 0x{0}",
        ("602000000014", "55d0c1234567"),
        ("603000000014", "563bc1234567"),
    ),
    (
        "SEGV on unknown address 0x{0} (pc 0x{1} bp 0x{1} sp 0x{1} T0)",
        ("55d0c1234567", "55d0c1234567"),
        ("1f" * 6, "1f" * 6),
    ),
    ("node {0} ann 23u IPv6 {1} 0t0 TCP *:3000 (LISTEN)", ("12345", "123456"), ("45", "0x9f8e7d")),
    ("PID PPID CMD %MEM %CPU\n{0} 1 node a.js {1} 0.3\n", ("12345", "1.2"), ("45", "11.2")),
    ("    PID CMD\n  {} bash\n", "12345", "45"),
    ("Your MySQL connection id is {}", "12", "13"),
    ("[main {0}] fix\n 1 file changed, 1 insertion(+)\n1a2b3c4..{0} main -> main", "9fceb02", "0a1b2c3"),
    ("[main (root-commit) {}] a\n 1 file changed", "9fceb02", "0a1b2c3"),
    ("Dropped refs/stash@{{0}} ({})", HEX * 2 + HEX[:8], OTHER * 2 + OTHER[:8]),
    ("Delta compression using up to {} threads", "8", "2"),
    ("NAME READY STATUS RESTARTS AGE\nweb-1 1/1 Running 2 ({0} ago) {1}\n", ("3m", "5d3h"), ("13m", "42m")),
    ("NAME STATUS ROLES AGE VERSION\nn1 Ready worker {} v1.31.0\n", "5d", "42m"),
    (
        "Type Reason Age From Message\n---- --- --- ---\nNormal Pulled {0} (x3 over {1}) kubelet ok",
        ("2s", "1m"),
        ("9m", "4h"),
    ),
    ("NAME READY\nkube-proxy-{} 1/1", "x2x7k", "b5d9f"),
    ("NAME READY\nbackup-{} 0/1", "29384756-x2x7k", "29384757-b5d9f"),
    ("web Up {} 80/tcp", "3 minutes", "About an hour"),
    ("pushed {} ago", "3 hours", "an hour"),
    (
        "CONTAINER ID NAME CPU %\n{0} web {1}% 12.3MiB / 15.5GiB 0.08% 1kB / 0B",
        (HEX[:12], "0.12"),
        (OTHER[:12], "1.12"),
    ),
    (
        "failed to calculate checksum of ref {}: not found",
        "abcdefghijklmnopqrstuvwxy",
        "bbcdefghijklmnopqrstuvwx2",
    ),
    (
        "HTTPS_PROXY=http://127.0.0.1:{0}\n* Trying 127.0.0.1:{0}...\n* Connected to x port {0}",
        "34567",
        "43210",
    ),
    ("* Uses proxy env variable https_proxy == 'http://me:x@127.0.0.1:{}'", "34567", "43210"),
    ("* Established connection to localhost (127.0.0.1 port 80) from 127.0.0.1 port {}", "54321", "44321"),
    ("< x-request-id: {}", HEX, OTHER),
    ('"CF-RAY": "{}-FRA"', HEX, OTHER),
    ("x-ratelimit-remaining: {0}\nx-runtime: {1}", ("59", "0.012"), ("7", "0.1")),
    ("time_connect: {0}\nspeed_download: {1}", ("0.01", "1234"), ("0.2", "99")),
    ('127.0.0.1 - - [{}] "GET / HTTP/1.1" 200 -', "30/Nov/2026 09:00:01", "01/Dec/2026 10:00:01"),
    (" * Debugger PIN: {}", "123-456-789", "987-654-321"),
    (" * Running on http://{}:5000", "172.17.0.2", "192.168.1.12"),
    ("  ➜  Network: http://{}:5173/", "172.17.0.2", "10.1.2.3"),
    ('<testsuite tests="1" time="{0}" hostname="{1}">', ("0.012", "laptop"), ("1", "ci-1")),
    ("Total: 3, Duration: {} - a.dll", "12 ms", "< 1 ms"),
    ("Finished in 0.1s, {0} runs/s, {0} assertions/s.", "1234.5", "9.5"),
    ("Running ExUnit with seed: {0}, max_cases: {1}", ("123456", "16"), ("77", "4")),
    ("created: {0}/{0} workers\n{0} workers [3 items]", "8", "2"),
    ("goos: linux\ncpu: {0}\nBenchmarkA-{1} 10 1 ns/op {2} MB/s", ("Intel", "8", "1.2"), ("AMD", "16", "9")),
    ("test a ... bench: 1,234.56 ns/iter (+/- {})", "12.3", "4"),
    ("Requests/sec: {0}\nTransfer/sec: {1}MB", ("123.4", "1.2"), ("99.1", "0.9")),
    ("frame= 100 fps= {0} q=28.0 time=00:00:04.00 speed={1}x", ("25", "1.01"), ("35", "2")),
    ("1 loops, best of 5: {} per loop", "212 nsec", "3 usec"),
    ("Run Time: real {0} user {0} sys 0.1", "0.001", "0.2"),
    ("/x/.cache/pypoetry/virtualenvs/app-{}-py3.12/bin", "aB3dEf_1", "Zz3dEf-9"),
    ("/x/DerivedData/App-{}/Build", "abcdefghijklmnopqrstuvwxyzab", "bbcdefghijklmnopqrstuvwxyzab"),
    ("/x/.cache/bazel/_bazel_ann/{}/execroot", HEX * 2, OTHER * 2),
    (
        "/x/sessions/{0}/rollout-{1}.jsonl",
        ("2026/11/30", "2026-11-30T09-00-01-3f2504e0-4f89-41d3-9a0c-0305e82c3300"),
        ("2026/12/01", "2026-12-01T10-00-01-12345678-1234-41d3-9a0c-0305e82c3301"),
    ),
    ("{} 4 -rw-r--r-- 1 ann ann 12 Nov 30 09:00 ./a", "1234567", "77"),
    ("Device: {0} Inode: {1}", ("254,1", "12"), ("801h/2049d", "1234567")),
    ("{0} 3 passed in {1} {0}=", ("=" * 30, "0.12s"), ("=" * 29, "10.12s")),
    ("{0} 1 failed, 3 passed in {1} {0}", ("=" * 20, "9.87s"), ("=" * 14, "62.12s (0:01:02)")),
    ("{0} generated xml file: /tmp/{1}/r.xml {0}", ("-" * 20, "tmp.Ab12Cd34"), ("-" * 9, "tmp.Zb12Cd3456")),
    ("py312: OK ({} seconds)", "1.23=setup[0.50]+cmd[0.73]", "11.23=setup[0.60]+cmd[10.63]"),
    ("[INFO] app ... SUCCESS [{}]", " 1.234 s", "01:02 min"),
    ("✓ pkg/a ({})", "12ms", "cached"),
    ("INFO[{}] starting", "0000", "0012"),
    ('{{"pid":{0},"hostname":"{1}","msg":"x"}}', ("12345", "laptop"), ("7", "ci-1")),
    ('{{"hostname":"{1}","pid":{0},"msg":"x"}}', ("12345", "laptop"), ("7", "ci-1")),
    ("iterations.....: 10 {}/s", "9.87", "8"),
    ("Memory: {} samples, avg is {}MB, max is 60.2MB", ("12", "50.1"), ("13", "51.1")),
    ("Finished in 2ms on 5 files using {} threads.", "8", "2"),
    ("elm-test --fuzz 100 --seed {}", "123456789012", "987654321"),
    ("Using --randomly-seed={}", "1234567890", "77"),
    ("Random Seed:   {}", "1796029200", "1796029300"),
    ("-test.shuffle {}", "1796029200123456789", "1796029300123456789"),
    ("run_id:{}", HEX * 2 + HEX[:8], OTHER * 2 + OTHER[:8]),
    ("{{ insertedId: ObjectId('{0}') }} _id: ObjectId('{0}')", HEX + HEX[:8], OTHER + OTHER[:8]),
    (
        "{{ insertedIds: {{ '0': ObjectId('{0}'), '1': ObjectId('{1}') }} }}",
        (HEX + HEX[:8], OTHER + HEX[:8]),
        (OTHER + OTHER[:8], HEX + OTHER[:8]),
    ),
    ("datetime.datetime({})", "2026, 11, 30, 9, 0, 1, 123456", "2026, 12, 1, 10, 0, 1, 77"),
    ("SystemTime {{ {} }}", "tv_sec: 1796029200, tv_nsec: 123", "tv_sec: 1796029300, tv_nsec: 77"),
    ("Original token count: {}\nOutput:\nok", "9", "12"),
    ('{{"original_token_count":{}}}', "9", "12"),
    ("start …{} tokens truncated… end", "1234", "1250"),
    ("Output too large ({}). Full output saved", "52.1KB", "53KB"),
]

CLOCKS = [("{} INF starting", "9:00AM", "10:30PM")]
"""What is looked for at the starts of a text's own lines only."""


def _filled(text: str, values: str | tuple[str, ...]) -> str:
    return text.format(*([values] if isinstance(values, str) else values))


@pytest.mark.parametrize(("text", "one", "other"), [*RUNS, *CLOCKS], ids=lambda value: str(value)[:40])
def test_two_runs_are_alike(text: str, one: str | tuple[str, ...], other: str | tuple[str, ...]) -> None:
    """What is another on each run, in another folder or on another machine goes from a tool's result."""
    here, there = _filled(text, one), _filled(text, other)
    assert here != there
    assert scrubbed(here, "tool_result") == scrubbed(there, "tool_result")


@pytest.mark.parametrize(("text", "one", "other"), RUNS, ids=[run[0][:40] for run in RUNS])
def test_two_runs_are_alike_in_json(
    text: str, one: str | tuple[str, ...], other: str | tuple[str, ...]
) -> None:
    """So it does where a tool gives back what a command printed as a member of JSON, or of JSON in that."""
    here, there = (json.dumps({"code": 0, "output": f"{_filled(text, run)}\n"}) for run in (one, other))
    assert scrubbed(here, "tool_result") == scrubbed(there, "tool_result")
    here, there = (json.dumps({"result": each}, indent=2) for each in (here, there))
    assert scrubbed(here, "tool_result") == scrubbed(there, "tool_result")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":"PID CMD\\n 1 x\\n"}', '{"a":"PID CMD\\n 1 y\\n"}'),
        ('{"a":"PID CMD\\n 1 x\\n","pids":3}', '{"a":"PID CMD\\n 1 x\\n","pids":4}'),
        ('{"a":"x\\n","b":"y"}', '{"a":"x\\n","b":"z"}'),
        ("[main 1a2b3c4] a\n 1 file changed", "[main 1a2b3c4] a\n 2 files changed"),
        ("[worker 1234567] started", "[worker 1234568] started"),
        ("NAME READY AGE\na 1/1 5d\n", "NAME READY AGE\na 0/1 5d\n"),
        ("NAME AGE\nann 45\n", "NAME AGE\nann 46\n"),
        ("pr-24567 READY", "pr-24568 READY"),
        (
            "http_proxy=http://127.0.0.1:34567 at 127.0.0.1:80",
            "http_proxy=http://127.0.0.1:34567 at 127.0.0.1:81",
        ),
        ("HTTPS_PROXY=http://proxy.corp:3128", "HTTPS_PROXY=http://proxy.corp:3129"),
        ("x-ratelimit-limit: 5000", "x-ratelimit-limit: 60"),
        ("SEGV on unknown address 0x000000000000", "SEGV on unknown address 0x000000000008"),
        (
            "1234567 -rw-r--r-- 2 a a 1 b\n1234567 -rw-r--r-- 2 a a 1 c",
            "1234567 -rw-r--r-- 2 a a 1 b\n7 -rw-r--r-- 2 a a 1 c",
        ),
        ("PID PPID CMD %CPU\n1 1 node a.js 0\n", "PID PPID CMD %CPU\n1 1 node b.js 0\n"),
        ("BenchmarkA-8 10 1 ns/op 3 allocs/op", "BenchmarkA-8 10 1 ns/op 4 allocs/op"),
        ("created: 8/8 workers [3 items]", "created: 8/8 workers [4 items]"),
        ("  ➜  Network: http://10.1.2.3:5173/", "  ➜  Network: http://10.1.2.3:5174/"),
        ("NAME TYPE TTL AGE\na b 30d 5d\n", "NAME TYPE TTL AGE\na b 60d 5d\n"),
        ("NAME CITY AGE\nAnn Rome 30y\n", "NAME CITY AGE\nAnn Rome 31y\n"),
        ("x-ratelimit-remaining: 0", "x-ratelimit-remaining: 59"),
        ("NAME READY\nweb-x2x7k 1/1\nsku-x2x7k", "NAME READY\nweb-x2x7k 1/1\nsku-x4x7k"),
    ],
)
def test_what_is_meant_counts(one: str, other: str) -> None:
    """Results, counts, limits, ports of servers, null pointers, which file is which."""
    assert scrubbed(one, "tool_result") != scrubbed(other, "tool_result")


@pytest.mark.parametrize(
    "text",
    [
        "=== A heading ===",
        "== Deploy in two steps ==",
        "--- generated code below ---",
        "datetime.datetime(2026, 11, 30)",
        "uses: actions/checkout@8ade135",
        "lodash@1234567 and a@b.test",
        "const MAX = 0x00007fffffffffff",
        '<video time="0.50">',
        "f(12)─── x",
        "[1] 12345",
        "use about a minute",
        "AVERAGE AGE\n5d",
        "…5 items truncated…",
        "x-request-id: test-1",
        "0x7f3a2b1c4d50",
        "the age of 5d",
        "sessions/2026/11/30",
        "virtualenvs/my-projects",
        "virtualenvs/my-Project1/bin",
        "pre-commit/repositories",
        "HTTPS_PROXY=http://localhost:3128",
        "x-runtime-version: 3.11",
        "X-RateLimit-Remaining: 30 requests per minute",
        "{ 'x-ratelimit-remaining': '30' }",
        '{"pid":"a","hostname":"prod-db","db":"x"}',
        '{"hostname":"prod-db","port":5432}',
        "Memory usage: 45 MB",
        "x-response-time-limit: 30",
        "x-request-id-prefix: orders-of-2026-europe",
        "x-request-id: ${request.headers.id1}",
        "x-correlation-id: order-import-2026-10",
        "proxy_set_header X-Request-ID $upstream_http_x_id_00002;",
        "the load address 0x80008000",
        "I2C address 0x0000003c",
        "at pc 0x08000400",
        "#define USER 0x00007f1234567890",
        "USER_TOP=0x00007f1234567890",
        "const BASE = 0xc000000001",
        "#1 0x712345678901 is a key",
        "{ _id: ObjectId('507f1f77bcf86cd799439011') }",
        'new ObjectId("507f1f77bcf86cd799439011")',
        "expires=datetime.datetime(2030, 1, 1, 0, 0, 0, 0)",
        "datetime.datetime(2030, 12, 31, 23, 59, 59, 999999)",
        "Timespec { tv_sec: 1, tv_nsec: 500000000 }",
        "Output too large (10 MB)",
        "random seed: 42",
        "Random Seed: 42",
        "addopts = -p randomly --randomly-seed=42",
        "jasmine --random=true --seed=12345",
        "elm-test --fuzz 100 --seed 42",
        "go test -test.shuffle 42",
        "Commit@abcdef1",
        "User@12345678",
        "ALREADY IN: sku-24x67",
        "READY: gpt-4t5x2",
        "NAME AGE\nAnn 30y\n",
        "NAME AGE LIMIT\nbackup 30d 10\n",
        "PID NAME\n20 chair\n",
        "a list, tid=12",
        "3000/tcp: 8080",
        '127.0.0.1:54321 - "a server"',
        "* Allow traffic from 10.0.0.1 port 8080",
        "  Memory: 512M\n  CPU: 500m\n",
        "cpu: 500m\nBenchmarks:\n",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    """Packages, constants, headings, short values."""
    assert scrubbed(text, "tool_result") == normalise_text(text)
