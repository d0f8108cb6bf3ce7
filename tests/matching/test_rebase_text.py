"""Where a value stands in text, in JSON in a string and in code, and how it is spelled there (DESIGN §8)."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.matching.rebasing.finder import Finder
from rewind_proxy.matching.rebasing.slots import Replacements
from rewind_proxy.matching.rebasing.text import Kind, Rewriter, escape_json, unescape_json

U1, U2 = "6f1c2a3b-0000-4000-8000-00000000aaaa", "12345678-1111-4111-8111-11111111bbbb"
POSIX = {"/home/a/app": "/builds/7/app", "/home/a": "/root"}
TO_WINDOWS = {"/home/a/app": "D:\\src\\app"}
WINDOWS = {"C:\\Users\\a\\app": "D:\\b\\app"}
FROM_WINDOWS = {"C:\\Users\\a\\app": "/builds/7/app"}


def rewritten(values: Replacements, text: str, kind: Kind = "text") -> str:
    """The text with its edits made."""
    pieces: list[str] = []
    position = 0
    for edit in Rewriter(Finder(values)).edits(text, kind):
        assert edit.start >= position
        pieces += (text[position : edit.start], edit.new)
        position = edit.end
    return "".join([*pieces, text[position:]])


def roots(values: dict[str, str]) -> Replacements:
    """Replacements of roots alone."""
    return Replacements(values, {}, {})


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("/home/a/app", "/builds/7/app"),
        ("in /home/a/app.", "in /builds/7/app."),
        ("/home/a/app/src/x.py and /home/a/b", "/builds/7/app/src/x.py and /root/b"),
        ("`/home/a/app`,'/home/a/app':\"/home/a/app\"", "`/builds/7/app`,'/builds/7/app':\"/builds/7/app\""),
        ("PATH=/home/a/app/bin:/home/a/bin", "PATH=/builds/7/app/bin:/root/bin"),
        ("file:///home/a/app/x", "file:///builds/7/app/x"),
        ("--dir=/home/a/app\n/home/a", "--dir=/builds/7/app\n/root"),
        ("~/.claude/projects/-home-a-app/x", "~/.claude/projects/-builds-7-app/x"),
        # A name that goes on is another name; a shorter root may still be what it lies in.
        ("/home/a/app2 /home/a/app-old /home/a/app.git", "/root/app2 /root/app-old /root/app.git"),
        ("/home/ab /home/a_b /home/a@c", "/home/ab /home/a_b /home/a@c"),
        ("/mnt/home/a/app x/home/a ./home/a ~/home/a", "/mnt/home/a/app x/home/a ./home/a ~/home/a"),
        ("https://x.test/home/a/app", "https://x.test/home/a/app"),
        ("-home-a-app2 x-home-a-app -home-a-app-b", "-home-a-app2 x-home-a-app -home-a-app-b"),
        ("/home/a/ap", "/root/ap"),
        # What stands around a path hides it no more than in a request.
        ("@/home/a/app/x -I/home/a/app/inc", "@/builds/7/app/x -I/builds/7/app/inc"),
        ("\x1b[31m/home/a/app/x 打开/home/a/app/y", "\x1b[31m/builds/7/app/x 打开/builds/7/app/y"),
        ("projects/-home-a-app-sub/x", "projects/-builds-7-app-sub/x"),
    ],
)
def test_roots(text: str, live: str) -> None:
    """A root is replaced as a whole path prefix, the longest first, and as a slug."""
    assert rewritten(roots(POSIX), text) == live


@pytest.mark.parametrize(
    ("values", "text", "live"),
    [
        (TO_WINDOWS, "cat /home/a/app/src/x.py now", "cat D:\\src\\app\\src\\x.py now"),
        (TO_WINDOWS, "file:///home/a/app/x.py", "file:///D:/src/app/x.py"),
        (TO_WINDOWS, "-home-a-app", "D--src-app"),
        (FROM_WINDOWS, "C:\\Users\\a\\app\\src\\x.py", "/builds/7/app/src/x.py"),
        (FROM_WINDOWS, "C:/Users/a/app/src", "/builds/7/app/src"),
        (FROM_WINDOWS, "'C:\\\\Users\\\\a\\\\app\\\\src'", "'/builds/7/app/src'"),
        (FROM_WINDOWS, "file:///C:/Users/a/app/x", "file:///builds/7/app/x"),
        (FROM_WINDOWS, "C:\\Users\\a\\app2", "C:\\Users\\a\\app2"),
        (WINDOWS, "C:\\Users\\a\\app\\x C:/Users/a/app/x", "D:\\b\\app\\x D:/b/app/x"),
        (WINDOWS, "'C:\\\\Users\\\\a\\\\app\\\\x'", "'D:\\\\b\\\\app\\\\x'"),
        (WINDOWS, "file:///C:/Users/a/app/x", "file:///D:/b/app/x"),
        (WINDOWS, "c:\\Users\\a\\app\\x /c/Users/a/app/x", "D:\\b\\app\\x /d/b/app/x"),
        (FROM_WINDOWS, "/mnt/c/Users/a/app/x c:/Users/a/app/x", "/builds/7/app/x /builds/7/app/x"),
        ({"/tmp/p": "/builds/p"}, "/private/tmp/p/x /tmp/p/x", "/builds/p/x /builds/p/x"),
        ({"C:/Users/a": "D:/b"}, "C:/Users/a/x C:\\Users\\a\\x", "D:/b/x D:\\b\\x"),
        ({"/home/a/app": "C:/b/app"}, "/home/a/app/x", "C:/b/app/x"),
    ],
)
def test_separators(values: dict[str, str], text: str, live: str) -> None:
    """A Windows root is found in each of its spellings; the rest of a path gets the live separator."""
    assert rewritten(roots(values), text) == live


SPACED = {"/home/a/my app": "/srv/её x"}


@pytest.mark.parametrize(
    ("values", "text", "live"),
    [
        (SPACED, "cd /home/a/my\\ app/src", "cd /srv/её\\ x/src"),
        (SPACED, "file:///home/a/my%20app/x", "file:///srv/%D0%B5%D1%91%20x/x"),
        (POSIX, "?p=%2Fhome%2Fa%2Fapp%2Fx", "?p=%2Fbuilds%2F7%2Fapp%2Fx"),
        (SPACED, "?p=%2Fhome%2Fa%2Fmy%20app%2Fx", "?p=%2Fsrv%2F%D0%B5%D1%91%20x%2Fx"),
        (POSIX, "?p=%2Fsrv%2Fhome%2Fa%2Fapp2%2Fx", "?p=%2Fsrv%2Fhome%2Fa%2Fapp2%2Fx"),
        (POSIX, "in \\/home\\/a\\/app\\/x", "in \\/builds\\/7\\/app\\/x"),
        ({"/app": "/home/a/app"}, "tmp/-app/tasks/b.output", "tmp/-home-a-app/tasks/b.output"),
        ({"/app": "/home/a/app"}, "grep -app x my-app/y -app", "grep -app x my-app/y -app"),
    ],
)
def test_escaped_spellings(values: dict[str, str], text: str, live: str) -> None:
    """A root is found as shells, URLs and JSON escape it, and as a short slug that is a whole name."""
    assert rewritten(roots(values), text) == live


def test_a_root_that_stays_shields_what_it_holds() -> None:
    """When the home moves and the project does not, paths in the project stay."""
    values = roots({"/srv/app": "/srv/app", "/srv": "/data"})
    assert rewritten(values, "/srv/app/x /srv/b -srv-app") == "/srv/app/x /data/b -srv-app"


def test_a_slug_of_two_roots_stays() -> None:
    """A slug that two recorded roots share says neither."""
    values = roots({"/home/a/app": "/b/app", "/home/a-app": "/c/app"})
    assert rewritten(values, "/home/a/app /home/a-app -home-a-app") == "/b/app /c/app -home-a-app"


@pytest.mark.parametrize(
    ("text", "live"),
    [
        (U1, U2),
        (U1.upper(), U2.upper()),
        (f"urn:uuid:{U1}", f"urn:uuid:{U2}"),
        (f"/tasks/{U1}.output task_{U1}", f"/tasks/{U2}.output task_{U2}"),
        (f"session-{U1}/a {U1}-1", f"session-{U2}/a {U2}-1"),
        (f"a{U1} {U1}0 {U1}-8f3a 8f3a-{U1}", f"a{U1} {U1}0 {U1}-8f3a 8f3a-{U1}"),
        (U1.replace("-", ""), U1.replace("-", "")),
        (U1[:-1], U1[:-1]),
        (U1[1:], U1[1:]),
    ],
)
def test_uuids(text: str, live: str) -> None:
    """A UUID is replaced where one is taken out of a request, in upper case where it was so."""
    assert rewritten(Replacements({}, {U1: U2}, {}), text) == live


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("at 2026-11-30T09:00 today", "at 2027-01-02T10:11 today"),
        ("2026-11-30T09:00.", "2027-01-02T10:11."),
        ("run-2026-11-30T09:00", "run-2026-11-30T09:00"),
        ("2026-11-30T09:00:01 2026-11-30T09:00Z 2026-11-30T09:00+01:00", None),
        ("2026-11-30 T09:00 12026-11-30T09:00 2026-11-30", None),
    ],
)
def test_times(text: str, live: str | None) -> None:
    """A time is replaced as it was written, and never as the start of a more exact one."""
    values = Replacements({}, {}, {"2026-11-30T09:00": "2027-01-02T10:11"})
    assert rewritten(values, text) == (text if live is None else live)


@pytest.mark.parametrize(
    ("values", "source"),
    [
        (
            POSIX,
            {"p": "/home/a/app", "c": "ls\n/home/a/app\t/home/a/app\\x", "/home/a": [1, {"q": "é/home/a"}]},
        ),
        (TO_WINDOWS, {"p": "/home/a/app/x", "quoted": 'say "/home/a/app"'}),
        (TO_WINDOWS, {"inner": json.dumps({"p": "/home/a/app/x", "deep": json.dumps(["/home/a/app"])})}),
        (FROM_WINDOWS, {"p": "C:\\Users\\a\\app\\n", "inner": json.dumps({"p": "C:\\Users\\a\\app\\x"})}),
        (WINDOWS, {"p": "C:\\Users\\a\\app\\n", "inner": json.dumps(["C:\\Users\\a\\app"])}),
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_in_a_string(values: dict[str, str], source: dict[str, object], ascii_only: bool) -> None:
    """JSON source says what its strings would say live, at any depth, and is otherwise written as before."""

    def live(value: object) -> object:
        if isinstance(value, dict):
            return {live(name): live(item) for name, item in value.items()}
        if isinstance(value, list):
            return [live(item) for item in value]
        if isinstance(value, str) and value[:1] in ("{", "["):
            return json.dumps(live(json.loads(value)))
        return rewritten(roots(values), value) if isinstance(value, str) else value

    text = json.dumps(source, ensure_ascii=ascii_only)
    assert rewritten(roots(values), text, "json") == json.dumps(live(source), ensure_ascii=ascii_only)


def test_a_text_that_is_json() -> None:
    """Structured output stays JSON; a text that only starts like JSON is words."""
    assert rewritten(roots(TO_WINDOWS), ' {"p": "/home/a/app"}') == ' {"p": "D:\\\\src\\\\app"}'
    assert rewritten(roots(TO_WINDOWS), '{"p": "/home/a/app"') == '{"p": "D:\\src\\app"'


@pytest.mark.parametrize(
    ("source", "live"),
    [
        ('f("/home/a/app/x")', 'f("D:\\\\src\\\\app\\\\x")'),
        ("f('/home/a/app')", "f('D:\\\\src\\\\app')"),
        ("f(`${x} /home/a/app\n/home/a/app`)", "f(`${x} D:\\\\src\\\\app\nD:\\\\src\\\\app`)"),
        ('f("ls\\n/home/a/app")', 'f("ls\\nD:\\\\src\\\\app")'),
        ('f("\\x2fhome\\u002fa\\u{2f}app!")', 'f("D:\\\\src\\\\app!")'),
        ('f("{\\"p\\": \\"/home/a/app\\"}")', 'f("{\\"p\\": \\"D:\\\\\\\\src\\\\\\\\app\\"}")'),
        ("// don't look in /home/a/app", "// don't look in D:\\src\\app"),
        ("*** Update File: /home/a/app/x.py\n+it's", "*** Update File: D:\\src\\app\\x.py\n+it's"),
        ('"\\"/home/a/app', '"\\"D:\\src\\app'),
    ],
)
def test_code(source: str, live: str) -> None:
    """In code a value is read and written as its literal spells it; outside of literals as it is."""
    assert rewritten(roots(TO_WINDOWS), source, "code") == live


def test_a_raw_literal() -> None:
    """`String.raw` has no escapes: what stands there is what it says."""
    source = "String.raw`C:\\Users\\a\\app\\x`"
    assert rewritten(roots(WINDOWS), source, "code") == "String.raw`D:\\b\\app\\x`"


def test_quotes_in_a_live_value_are_escaped() -> None:
    """A live folder with quotes in its name breaks neither JSON nor code."""
    values = roots({"/srv/x": "/srv/o'n`e \"${x}"})
    assert json.loads(rewritten(values, '["/srv/x"]', "json")) == ["/srv/o'n`e \"${x}"]
    assert rewritten(values, "'/srv/x'", "code") == "'/srv/o\\'n`e \"${x}'"
    assert rewritten(values, "`/srv/x`", "code") == "`/srv/o'n\\`e \"\\${x}`"


@given(st.text(), st.booleans())
def test_escapes_of_json_are_read_as_json_reads_them(text: str, ascii_only: bool) -> None:
    """What is escaped reads back, and each place of it is found in the source."""
    source = escape_json(text, ascii_only=ascii_only)
    said, place = unescape_json(source)
    assert said == text == json.loads(f'"{source}"')
    for index in range(len(text)):
        assert json.loads(f'"{source[place(index) : place(index + 1)]}"') == text[index]


@given(st.text(alphabet="/homeap\\\"'`{}[]:, \n", max_size=80), st.sampled_from(["text", "json", "code"]))
def test_edits_never_overlap(text: str, kind: Kind) -> None:
    """Whatever the text, its edits are in order and lie in it."""
    values = roots({"/home": "/m", "/home/app": "C:\\app"})
    edits = Rewriter(Finder(values)).edits(text, kind)
    assert all(0 <= edit.start < edit.end <= len(text) for edit in edits)
    assert all(one.end <= other.start for one, other in pairwise(edits))


@pytest.mark.parametrize("kind", ["text", "json", "code"])
@pytest.mark.parametrize(
    "piece",
    ['\\"', "'", "`", "\\`", "/home/a/", '"/home/a/app",', "-0000-4000-", "{", "\\u002f", "2026-1", '"\\\\'],
)
def test_linear_time(kind: Kind, piece: str) -> None:
    """Hostile text costs time in proportion to its length."""
    values = Replacements(
        POSIX, {U1: U2}, {f"2026-11-30T09:00:{n}": "2027-01-02T10:11:12" for n in range(10, 60)}
    )

    def seconds(length: int) -> float:
        text = f'"{piece * (length // len(piece))}'
        best = 9.0
        for _ in range(3):
            rewriter = Rewriter(Finder(values))
            started = time.thread_time()
            rewriter.edits(text, kind)
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(1_000_000) < 2
    # A neighbour on the machine may slow one of the two; a square fails every time.
    assert any(seconds(200_000) < max(3 * seconds(100_000), 0.02) for _ in range(4))


def test_thousands_of_values_cost_no_more() -> None:
    """A log of ten thousand times in the request does not make the answer slow."""
    times = {
        f"2026-11-30T09:{n // 60 % 60:02}:{n % 60:02}.{n:05}": "2027-01-02T10:11:12" for n in range(10_000)
    }
    folders = {f"/home/u{n}": f"/root/u{n}" for n in range(10_000)}
    text = "at 2026-11-30T09:00:07.00007 in /home/u9999/x " * 10_000
    started = time.thread_time()
    edits = Rewriter(Finder(Replacements(folders, {}, times))).edits(text, "text")
    assert len(edits) == 20_000
    assert time.thread_time() - started < 2
