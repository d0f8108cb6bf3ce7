"""Scrubbing takes time in proportion to the text, also on text made to hurt it."""

from __future__ import annotations

import time

import pytest

from rewind_proxy.canonical.model import MatchSettings
from rewind_proxy.canonical.paths.roots import discover, find_roots
from rewind_proxy.canonical.scrub import Scrubber

pytestmark = pytest.mark.once

# What makes each rule start again and again: the beginnings of its matches without their ends.
HOSTILE = (
    "=/home/a /home/a\t/root / \\ - a1b2 -1234-1234- 2026-11-30\t2026-11- 12:30: Mon\tNov\t "
    "January\t1 today\t "
    "date:\t /.claude /a/.claude <cwd>/a cwd:/a working\tdirectory\t /tmp/ \t/tmp/run-8f3a/ =/tmp/a1b2c3 "
    "C:\\Users\\a\\ 12\t 1.1.1 duration\t PID\t agentId:\ta Chunk\tID:\t tasks/ ⟨ -home-a-app ( 1 1T1 ```\n "
    "1,111, 1m\t2h\t in\t5s\t took\t1:00:00 duration( duration\t(a Current\tdate:\t** Current\ttime\t(a)\t1: "
    'today\'s\t( date>" "created_at":1 "ts":1 2026\tdate ID:\tb1c2d3 task_id:b process\t1\t pids:\t1, '
    "tool-results/a1 20261130_ 2026-11-30T09 11/30/ Nov\t30\t09: 30\tNov\t 09:00\tMon\tNov\t I1130\t09:00: "
    "09:00:01.123456 -rw-r--r--\t1\tu\tu\t1\t -1234-1234-abcd- 2026年 bbbb1b "
    "(node: process\t[1 :\tline\t1:\t1\t at\t0xa [10:11:12]\t 10:11:12\t Start\tat\t10:11:12 \n10:11:12\t "
    "PID\tTTY\tCMD\n PID\tTTY\tCMD\n1\tx\ty\n NAME\tAGE\n1d CONTAINER\tID A.B@abcdef1 a.A@ "
    '":"\\n ":"\\n" \\":\\"\\\\n \n=\ta \n=\ta\tin\t1s\t= \n-\tgenerated\ta\tfile:\ta INFO[ a..:\t1 '
    "\tusing\t "
    "http_proxy=http://localhost:1234\tport\t1234 ://a@ "
    "<testcase\ta=b\t …1\ttokens\t cf-ray:\t1a about\ta\t READY-bcdf2- (1)─a(1)─ "
    "1/tcp:\t1\t \n[a\t1234567]\ta virtualenvs/a- \n\t1\t-rw \n[09:00:00]\t[1]\t \n09:00:00\tb\ta[1] \n[ "
    'transition:1ms timeout:1ms every\t1ms toBe(\t"1ms "duration":1\t READY\ta-b2c4d\t1/1\n '
    'NAME\tDATA\tAGE\n1d\t1d objects:\t|\t1\tMB/s ==12==\n "pid":1,"hostname":"a" ObjectId(\' '
    "heute\tist\t1\ta\t 今天是2026年 2026年1月1日\t星期 "
    "09:00elapsed\t %\tcpu\t1s\tuser\t B/s)\t |\t1.2\tMB/s Dload\tUpload\t READY\t-bcdfghjk-bcdf 1.2MB/s━ "
    "id:\tbg_ba22 ses_dd4292f03fff saved\tto:\t/a saved\tto:\t/a/b_564d7e11d197 /tool-outputs/session-a1 "
    "/tool-output/tool_22e7f0f88001"
).split(" ")
SIZE = 100_000


def seconds(unit: str, size: int) -> float:
    """Best of three times (of this thread, whatever else runs) to scrub a text of one unit."""
    text = (unit.replace("\t", " ") * (size // len(unit) + 1))[:size]
    best = float("inf")
    for _ in range(3):
        scrubber = Scrubber(MatchSettings(paths="all"))
        start = time.thread_time()
        scrubber.leaf(text, "text", "tool_result", find_roots([discover(text)]))
        best = min(best, time.thread_time() - start)
    return best


@pytest.mark.parametrize("unit", HOSTILE)
def test_twice_the_text_takes_twice_the_time(unit: str) -> None:
    """Four times the text takes no more than some seven times the time: a square would take sixteen."""
    for _ in range(3):  # a neighbour on the machine may slow one of the two; a square fails every time
        small, large = seconds(unit, SIZE), seconds(unit, 4 * SIZE)
        if large <= 7 * small + 0.05:
            return
    pytest.fail(f"{small:.3f} s, and {large:.3f} s for four times the text")
