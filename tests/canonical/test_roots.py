"""Roots of paths: where they are named, how they are written, what of a path stays (DESIGN §5, "Paths").

Each table goes both ways: a project that has moved reads the same, another file of it does not.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.model import MatchSettings
from rewind_proxy.canonical.paths.roots import discover, find_roots, root_spans
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.scrub import Numbering, Scrubber

HERE, THERE = "/home/ann/app", "/builds/7/work"
WINDOWS = "C:\\Users\\ann\\app"


def scrubbed(*leaves: str) -> list[str]:
    """The leaves of one request with their placeholders, as the normalised fingerprint sees them."""
    roots = find_roots([discover(leaf) for leaf in leaves])
    numbering, scrubber = Numbering(), Scrubber(MatchSettings())
    return [numbering.render(scrubber.leaf(leaf, "text", "user", roots), ROOT) for leaf in leaves]


def told(root: str, text: str) -> str:
    """What is seen of a text in a project whose agent has told its root."""
    return scrubbed(f"<cwd>{root}</cwd>", text)[1]


# What stands around a path.

AROUND = [
    "look at @{}/x.py",
    "@{}/x.py what",
    "(@{}/x)",
    "-I{}/inc",
    "gcc -isystem{}/inc -L{}/lib",
    "--out={}/x",
    "a:{}/x",
    "({}/x)",
    "'{}/x' \"{}/x\" `{}/x`",
    "\x1b[31m{}/x\x1b[0m",
    "\\u001b[1;31m{}/x\\u001b[0m",
    "print('a\\n{}/x')",
    "打开{}/x",
    "在{}目录",
    "vscode://file{}/x.py:1",
    "vscode-remote://ssh-remote+box{}/x",
    "file:{}/x",
    "file://{}/x",
    "file://localhost{}/x",
    "+{}/x\n-{}/y",
    "in {}. Or {}, or {}... and {}!",
    "**{}**",
]


@pytest.mark.parametrize("text", AROUND)
def test_a_root_is_found_whatever_stands_around_it(text: str) -> None:
    """Marks, escapes, options, schemes and letters of scripts without blanks hide no root."""
    seen = [told(root, text.replace("{}", root)) for root in (HERE, THERE)]
    assert seen == [text.replace("{}", "⟨cwd⟩")] * 2


@pytest.mark.parametrize(
    "text",
    [
        "/mnt{}/x",
        "./x{}",
        "a{}",
        "https://x.test{}/y",
        "{}2/x",
        "{}-old",
        "{}.git",
        "{}_b",
        "/仓库{}/x",
        "x-I{}",
        "a@b{}",
    ],
)
def test_a_root_is_a_whole_prefix(text: str) -> None:
    """In the middle of a path, a URL or a word, and before the rest of a name, it is another folder."""
    root = "/srv/ann/app"
    assert told(root, text.format(root)) == text.format(root)


@pytest.mark.parametrize("folder", ["/root", "/app", "/home"])
def test_the_end_of_an_element_is_no_root(folder: str) -> None:
    """`</app>` closes an element, wherever the project or the home is."""
    text = f"<a>x<{folder}> y </b><{folder} >"
    assert told(folder, text) == text
    assert told("/app", "see </app/x.py>") == "see <⟨cwd⟩/x.py>"


@given(st.text("ab/-_.", min_size=1, max_size=12), st.text("ab/-_.", min_size=1, max_size=12))
def test_the_rest_of_a_path_counts(one: str, other: str) -> None:
    """Two files of one project are never the same, and a file that moved with it is."""
    here, there = (told(root, f"see {root}/{one}") for root in (HERE, THERE))
    assert here == there
    assert (told(HERE, f"see {HERE}/{other}") == here) == (one == other)


# Spellings of one folder.


@pytest.mark.parametrize(
    ("root", "text"),
    [
        (WINDOWS, "c:\\Users\\ann\\app\\src\\x"),
        (WINDOWS, "C:/Users/ann/app/src/x"),
        (WINDOWS, "C:\\Users\\ann/app/src\\x"),
        (WINDOWS, "C:\\\\Users\\\\ann\\\\app\\\\src\\\\x"),
        (WINDOWS, "/c/Users/ann/app/src/x"),
        (WINDOWS, "/mnt/c/Users/ann/app/src/x"),
        ("/mnt/c/Users/ann/app", "C:\\Users\\ann\\app\\src\\x"),
        ("/c/Users/ann/app", "c:/Users/ann/app/src/x"),
        ("\\\\srv\\share\\app", "\\\\srv\\share\\app\\src\\x"),
        ("\\\\srv\\share\\app", "\\\\\\\\srv\\\\share\\\\app\\\\src\\\\x"),
        ("\\\\wsl.localhost\\Ubuntu\\home\\ann\\app", "/home/ann/app/src/x"),
        ("/home/ann/app", "\\\\wsl$\\Ubuntu\\home\\ann\\app\\src\\x"),
        ("/private/tmp/app", "/tmp/app/src/x"),
        ("/var/folders/a/b/T/app", "/private/var/folders/a/b/T/app/src/x"),
        ("/Users/ju\u0308rgen/app", "/Users/j\u00fcrgen/app/src/x"),
        ("/srv/my  app", "/srv/my  app/src/x"),
        ("/srv/my app", "/srv/my\\ app/src/x"),
    ],
)
def test_spellings_of_one_folder(root: str, text: str) -> None:
    """Separators, drives, mounts, shares, links of macOS and ways to escape are no part of a root."""
    assert told(root, f"see {text}") == "see ⟨cwd⟩/src/x"


@pytest.mark.parametrize(
    ("root", "text", "seen"),
    [
        (WINDOWS, "file:///C:/Users/ann/app/x", "file://⟨cwd⟩/x"),
        (WINDOWS, "file:///c%3A/Users/ann/app/x", "file://⟨cwd⟩/x"),
        ("\\\\srv\\share\\app", "file://srv/share/app/x", "file://⟨cwd⟩/x"),
        ("/srv/my app", "file:///srv/my%20app/x", "file://⟨cwd⟩/x"),
        (HERE, '{"p":"\\/home\\/ann\\/app\\/x"}', '{"p":"⟨cwd⟩/x"}'),
        (WINDOWS, "open('C:\\\\Users\\\\ann\\\\app\\\\x\\n')", "open('⟨cwd⟩/x\\n')"),
        (HERE, "cd /home/ann/app\\nls", "cd ⟨cwd⟩\\nls"),
        (WINDOWS, "D:\\Users\\ann\\app\\x", "⟨home⟩/app/x"),
    ],
)
def test_urls_and_escapes(root: str, text: str, seen: str) -> None:
    """A URL reads as on another system, and an escape after a root is no separator."""
    assert told(root, text) == seen


@pytest.mark.parametrize(
    ("root", "text", "seen"),
    [
        (HERE, "projects/-home-ann-app/m", "projects/⟨cwd⟩/m"),
        (HERE, "projects/-home-ann-app-sub/m", "projects/⟨cwd⟩-sub/m"),
        ("/app", "/root/.claude/projects/-app/m", "⟨home⟩/.claude/projects/⟨cwd⟩/m"),
        (WINDOWS, "projects\\C--Users-ann-app\\m", "projects\\⟨cwd⟩\\m"),
        (HERE, "projects/-home-ann-app2/m", "projects/⟨home⟩-app2/m"),
        ("/srv/ann/app", "projects/-srv-ann-app2/m", "projects/-srv-ann-app2/m"),
        ("/app", "an -app-like flag", "an -app-like flag"),
    ],
)
def test_slugs(root: str, text: str, seen: str) -> None:
    """A folder named after a root, or after one below it, goes with the root."""
    assert told(root, text) == seen


@pytest.mark.parametrize(
    ("home", "path", "seen"),
    [
        (r"C:\Users\ann", r"C:\Users\ann\AppData\Local\Temp\tmpk3x9q2_a\out.txt", "⟨tmp⟩/⟨random:1⟩/out.txt"),
        ("/home/runner", "/home/runner/work/shop/shop/a.py", "⟨cwd⟩/a.py"),
        ("/home/ann", "/home/ann/AppData/a.py", "⟨home⟩/AppData/a.py"),
        ("/root", "/root/.qwen/tmp/0123abcd/shell.output", "⟨root:1⟩/shell.output"),
        ("/home/ann", "/home/ann/.gemini/tmp/app/plans/a.md", "⟨root:1⟩/plans/a.md"),
    ],
)
def test_a_known_shape_below_a_home_that_was_named(home: str, path: str, seen: str) -> None:
    """The temp folder of Windows and a CI machine's folder are what they are, though their home is known."""
    state = "\\.claude\\x" if "\\" in home else "/.claude/x"
    roots = find_roots([discover(f"memory in {home}{state}")])
    leaf = Scrubber(MatchSettings()).leaf(path, "text", "tool_result", roots)
    assert Numbering().render(leaf, ROOT) == seen


@pytest.mark.parametrize(
    "folder",
    [
        "/srv/runs/5b3f9e3c-8d2b-4f9a-9a65-1f7d0c1b2a3e/app",
        "/home/ann/runs/2026-11-30T10-11-12",
        "/data/build 2026-11-30 10:11:12/app",
    ],
)
def test_a_root_with_a_uuid_or_a_time_in_its_name(folder: str) -> None:
    """A folder that is named as a root is one, whatever else its name could be taken for."""
    text = f"Working directory: {folder}\nis a directory"
    roots = find_roots([discover(text)])
    leaf = Scrubber(MatchSettings()).leaf(f"in {folder}/src/a.py", "text", "tool_result", roots)
    assert Numbering().render(leaf, ROOT) == "in ⟨cwd⟩/src/a.py"


def test_the_slug_of_a_home() -> None:
    """Another project of the same person is named after the home."""
    seen = [
        scrubbed(f"<cwd>/srv/x</cwd> {home}/.claude/projects/-{slug}-other/m")[0]
        for home, slug in (("/home/ann", "home-ann"), ("/root", "root"))
    ]
    assert seen == ["<cwd>⟨cwd⟩</cwd> ⟨home⟩/.claude/projects/⟨home⟩-other/m"] * 2


# Shapes.


@pytest.mark.parametrize(
    "home",
    [
        "/home/ann",
        "/Users/ann",
        "/Users/Jane Doe",
        "/root",
        "/var/home/ann",
        "/export/home/ann",
        "/usr/home/ann",
        "/mnt/c/Users/ann",
        "/c/Users/ann",
        "C:\\Users\\ann",
        "C:\\Users\\John Doe",
        "C:/Users/ann",
    ],
)
def test_homes_by_shape(home: str) -> None:
    """A home with a file below it is known by its shape."""
    separator = "\\" if "\\" in home else "/"
    assert scrubbed(f"see {home}{separator}notes.txt") == ["see ⟨home⟩/notes.txt"]


@pytest.mark.parametrize(
    "text", ["GET /Users/1/posts", "the link /home/index", "${base}/home/about/x", "/Users/Shared/x"]
)
def test_routes_are_no_homes(text: str) -> None:
    """A number, a name with nothing below it, and what follows an expression may be a route."""
    assert scrubbed(text) == [text]


@pytest.mark.parametrize(
    "root",
    [
        "/home/runner/work/app/app",
        "/__w/app/app",
        "/github/workspace",
        "/builds/group/app",
        "/var/jenkins_home/workspace/app",
        "/var/lib/jenkins/workspace/app",
        "/home/jenkins/agent/workspace/app",
        "/opt/atlassian/pipelines/agent/build",
        "/home/circleci/project",
        "/home/travis/build/o/app",
        "/agent/_work/1/s",
        "/home/vsts/work/1/s",
        "/var/lib/buildkite-agent/builds/host-1/org/app",
        "/workspace",
        "/home/bob/app",
        "D:\\a\\app\\app",
        "D:\\a\\1\\s",
    ],
)
def test_ci_roots_by_what_paths_share(root: str) -> None:
    """Where no cue is, the folder that two paths share below a CI root or a home is the project."""
    separator = "\\" if "\\" in root else "/"
    assert scrubbed(f"see {root}{separator}x.py {root}{separator}y.py") == ["see ⟨cwd⟩/x.py ⟨cwd⟩/y.py"]


@pytest.mark.parametrize(
    "tmp",
    [
        "/tmp",
        "/private/tmp",
        "/var/tmp",
        "/var/folders/xx/y_1/T",
        "/private/var/folders/xx/y_1/T",
        "/dev/shm",
        "/run/user/1000",
        "C:\\Windows\\Temp",
        "C:\\Users\\ann\\AppData\\Local\\Temp",
        "/mnt/c/Users/ann/AppData/Local/Temp",
    ],
)
def test_temp_roots_by_shape(tmp: str) -> None:
    """The temp folder of each system is one place, and what a file in it is called counts."""
    separator = "\\" if "\\" in tmp else "/"
    assert scrubbed(f"see {tmp}{separator}notes.txt") == ["see ⟨tmp⟩/notes.txt"]


# Names below temp.


@pytest.mark.parametrize(
    "name",
    "tmp.Xa8dQ2k9Lm tmpab12cd_x tmpabcdefgh tmpab12cd .tmpAbC123 tmp4F3A.tmp run-8f3a run-77be run-8f3a91 "
    "a1b2c3 abcdef12 pytest-of-ann npm-12345-abcdef12 foo.Ab3dEf build-XkQ9Zf go-build1234567890 "
    "yarn--1700000000000-0.5 pip-req-build-abcdefgh ssh-AbCdEfGh1234 hsperfdata_ann ccXy12Zq rustcAb12Cd "
    "playwright_chromiumdev_profile-Ab3dEf".split(),
)
def test_random_names_below_temp(name: str) -> None:
    """What mktemp, the libraries of languages and known programs make up goes."""
    assert scrubbed(f"/tmp/{name}/out") == ["⟨tmp⟩/⟨random:1⟩/out"]


@pytest.mark.parametrize(
    "name",
    "llama70b data-2023.csv python3.11 report2024q1.csv face1.png dead2.png test12345.txt tmp_report "
    "tmpfiles decade2 MyProjectV2 fooBar run-fooBar my-GitHub2 backup-20261130 v1beta2 node-v22.1.0 "
    "IMG_2034 x86_64 job-12 sha256 qwen3b playwright-report puppeteer-output ccleaner rustcbackup tmp.backup "
    "tmp.README .tmpconfig ssh-production iPhone15 jQuery3 face2face".split(),
)
def test_names_that_a_person_may_give_below_temp(name: str) -> None:
    """Words, versions, dates and counts are meaning, below temp too."""
    assert scrubbed(f"/tmp/{name}") == [f"⟨tmp⟩/{name}"]


@pytest.mark.parametrize(
    "variable", ["$TMPDIR", "${TMPDIR}", "${TMPDIR:-/tmp}", "$TEMP", "%TEMP%", "$env:TEMP", "%TMP%"]
)
def test_random_names_below_the_variable_of_the_temp_folder(variable: str) -> None:
    """The variable stays as it is written, and so does what a person has called a file."""
    separator = "\\" if "%" in variable or ":T" in variable else "/"
    [random] = scrubbed(f"wrote {variable}{separator}run-8f3a{separator}out.txt")
    assert random == f"wrote {variable}{separator}⟨random:1⟩{separator}out.txt"
    [named] = scrubbed(f"wrote {variable}{separator}out.txt, TMPDIR/run-8f3a")
    assert named == f"wrote {variable}{separator}out.txt, TMPDIR/run-8f3a"


# In URLs.

CODED = [
    ("/home/a/app", "https://x.test/?p=%2Fhome%2Fa%2Fapp%2Fx.py"),
    ("/home/a/app", "%2Fhome%2Fa%2Fapp"),
    ("/home/a/app", "https://x.test/?path=%2fhome%2fa%2fapp&x=1"),
    ("/home/a b/app", "https://x.test/?p=%2Fhome%2Fa%20b%2Fapp%2Fx.py"),
    ("/home/a b/app", "https://x.test/?p=%2Fhome%2Fa+b%2Fapp%2Fx.py"),
    ("/home/ä/app", "https://x.test/?p=%2Fhome%2F%C3%A4%2Fapp%2Fx.py"),
    ("C:\\Users\\a\\app", "https://x.test/?p=C%3A%5CUsers%5Ca%5Capp%5Cx.py"),
    ("C:\\Users\\a\\app", "https://x.test/?p=c%3A%2FUsers%2Fa%2Fapp%2Fx.py"),
    ("C:\\Users\\a b\\app", "file:///C:/Users/a%20b/app/x.py"),
    ("C:\\Users\\a\\app", "\\\\?\\C:\\Users\\a\\app\\x.py"),
    ("/home/a/app", "file://wsl.localhost/Ubuntu/home/a/app/x.py"),
    ("/home/a/app", "file://wsl%24/Ubuntu/home/a/app/x.py"),
]


@pytest.mark.parametrize(("root", "text"), CODED)
def test_a_root_with_its_separators_escaped(root: str, text: str) -> None:
    """As the value of a parameter, as a share of WSL, and with the prefix of a long path."""
    assert "⟨cwd⟩" in told(root, text)


@pytest.mark.parametrize(
    "text",
    [
        "https://x.test/?p=%2Fhome%2Fa%2Fapp2",
        "https://x.test/?p=%2Fhome%2Fa%2Fapp%20old",
        "https://x.test/?p=%2Fhome%2Fa%2Fapp-old%2Fx",
        "https://x.test/?p=%2Fsrv%2Fhome%2Fa%2Fapp",
        "https://x.test/?p=x%2Fhome%2Fa%2Fapp",
        "https://x.test/?p=%2Fhome%2Fa",
    ],
)
def test_an_escaped_path_of_another_folder(text: str) -> None:
    """A longer name, a path that goes on before, and the folder above are no root."""
    assert "⟨cwd⟩" not in told("/home/a/app", text)


def test_a_name_with_an_extension() -> None:
    """The extension of a random name stays."""
    assert scrubbed("/tmp/run-8f3a91.log") == ["⟨tmp⟩/⟨random:1⟩.log"]


# Time.


@pytest.mark.parametrize(
    "unit",
    [
        "/home/a@",
        "/Users/A B C ",
        'cwd": "/a',
        "PWD=/a\n",
        "working directory: /a b ",
        "working directory:\n- /a\n",
        "<workspace_roots><root>/a",
        "HOME=/a /.claude ",
        "[1;1;1;/tmp",
        "打/home/a/x",
        "://file/home/a/x",
        "\\\\wsl$\\a\\",
        "/tmp/aBcDeFgH-_.aB",
        "/c/Users/a ",
        "\\/home\\/a ",
        "PWD=/a %2Fa",
        "%2Fhome%2Fa",
        "$TMPDIR/",
        "${TMPDIR:-",
        "\\\\?\\C:\\",
    ],
)
def test_time_is_linear(unit: str) -> None:
    """A text of beginnings of cues, paths and names costs less than two seconds of work for a megabyte."""
    text = unit * (2**18 // len(unit))
    begun = time.thread_time()
    roots = find_roots([discover(text)])
    assert time.thread_time() - begun < 2 / 4 + 0.2
    begun = time.thread_time()
    for _ in root_spans(text, roots):
        pass
    assert time.thread_time() - begun < 2 / 4 + 0.2
