"""The pytest plugin in pytest runs of their own: recorded, the provider stopped, replayed."""

from __future__ import annotations

import json
import re
import shutil
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.pytest_plugin import session_name
from support.children import PYTHON_PATH, Finished, environment, rewind, run
from support.sockets import SocketLog

SUITE = Path(__file__).with_name("asking.py")
_NUMBERS = count(1)
PLUGIN = ("-p", "rewind_proxy.pytest_plugin")
LATE = """
import asking, pytest

@pytest.fixture(scope="module")
def leaving():
    environments = []
    yield environments
    import os, urllib.error
    os.environ.update(environments[-1])
    try:
        asking.ask("late")
    except urllib.error.HTTPError as error:
        error.close()

@pytest.mark.parametrize("number", range(4))
@pytest.mark.rewind
def test_one(rewind, leaving, number):
    leaving.append(rewind.env)
    asking.ask("marked")
"""
"""Calls that are made after the tests have ended."""
KILLING = """
import os, signal
import pytest

@pytest.fixture(scope="session", autouse=True)
def killing():
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()

@pytest.mark.rewind(allow_empty=True)
def test_one(rewind, killing):
    killing.append(rewind._proxy._process)
"""
"""A proxy that dies after the last test."""
LOSING = """
import os
import asking, pytest

@pytest.fixture(scope="session", autouse=True)
def losing():
    environments = []
    yield environments
    os.environ.update(environments[-1])
    asking.ask(__import__("secrets").token_hex(3_000_000))

@pytest.mark.rewind(allow_empty=True)
def test_one(rewind, losing):
    losing.append(rewind.env)
"""
"""A call after the last test, whose recording is lost."""
MARKED = "import asking, pytest\n\n@pytest.mark.rewind\ndef test_one():\n    asking.ask({prompt})\n"


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    kind: str
    """`passed`, or what is in its case: `failure`, `error`, `skipped`."""
    text: str


@dataclass(frozen=True)
class Ended:
    """A finished run of pytest."""

    finished: Finished
    outcomes: Mapping[str, Outcome]
    sockets: SocketLog


def pytest_run(
    folder: Path,
    home: Path,
    *options: str,
    words: tuple[str, ...] = (),
    seconds: float = 120.0,
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Run pytest in a folder as a user does who has the plugin."""
    number = next(_NUMBERS)
    sockets = SocketLog(home / f"sockets-{number}.jsonl")
    env = environment(home, NO_PROXY="mine.example", REWIND_UNKNOWN="refuse", CORP="http://127.0.0.1:9")
    env |= {**(variables or {}), **sockets.environment(PYTHON_PATH)}
    report = home / f"junit-{number}.xml"
    own = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}", *PLUGIN)
    finished = run([*words, sys.executable, "-m", "pytest", *own, *options], env, folder, seconds)
    outcomes: dict[str, Outcome] = {}
    for case in ET.fromstring(report.read_bytes()).iter("testcase"):
        wrong = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
        text = "\n".join(filter(None, (each.text for each in case)))
        outcomes[case.get("name") or ""] = Outcome("passed" if wrong is None else wrong.tag, text)
    return Ended(finished, outcomes, sockets)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME for all runs: our CA is made once, as on a user's machine."""
    return tmp_path_factory.mktemp("home")


@dataclass(frozen=True)
class Project:
    """The suite, recorded in one folder and replayed in another with the provider gone."""

    recorded: Ended
    replayed: Ended
    provider: FakeProvider
    folder: Path
    """Where it was replayed."""


@pytest.fixture(scope="module")
def project(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Recorded as `auto` does, replayed as CI does; prompts that have WORD in them are others then."""
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    for folder in (first, second):
        shutil.copy(SUITE, folder / "test_asking.py")
    # Modules in the user's folder that are called as what the proxy imports.
    for name in ("mitmproxy.py", "lmdb.py"):
        (first / name).write_text("raise RuntimeError('this is not for the proxy')\n")
    with FakeProvider() as provider:
        upstream = {"REWIND_UPSTREAM": provider.upstream, "CORP": provider.url}
        recorded = pytest_run(first, home, variables=upstream)
    shutil.copytree(first / ".rewind", second / ".rewind")
    replayed = pytest_run(second, home, variables={**upstream, "CI": "true", "WORD": "then"})
    return Project(recorded, replayed, provider, second)


def test_a_suite_records(project: Project) -> None:
    """In `auto` every test does what it does without Rewind, but the one whose marker is misspelt."""
    ended = {name: outcome.kind for name, outcome in project.recorded.outcomes.items()}
    assert ended.pop("test_misspelt") == "error"
    assert set(ended.values()) == {"passed"}, project.recorded.finished.output


def test_a_suite_replays_with_the_provider_gone(project: Project) -> None:
    """What was recorded is answered, in another folder and without a connection."""
    for name in (
        "marked",
        "fixture[a::b]",
        "counts_at_once",
        "session",
        "settings",
        "case",
        "left_alone",
        "may_ask_nothing",
    ):
        assert project.replayed.outcomes[f"test_{name}"].kind == "passed", project.replayed.finished.output
    assert project.recorded.sockets.outward(project.provider.port)
    assert project.replayed.sockets.outward(project.provider.port) == []


@pytest.mark.parametrize("name", ["swallows", "case_swallows", "skips"])
def test_a_refused_call_fails_its_test(project: Project, name: str) -> None:
    """Whatever the test made of it, and with the miss for a text, not a traceback of ours."""
    outcome = project.replayed.outcomes[f"test_{name}"]
    assert outcome.kind == "failure"
    assert "rewind: no recording for POST https://api.openai.com/v1/chat/completions\n" in outcome.text
    assert "\nat $.messages[0].parts[0].text\n" in outcome.text
    assert " then" in outcome.text
    assert "pytest_plugin" not in outcome.text


def test_a_test_that_raises_shows_the_miss_beside(project: Project) -> None:
    """Its own error comes first; few clients show all that the answer says."""
    assert project.replayed.outcomes["test_raises"].kind == "failure"
    output = project.replayed.finished.stdout
    raised = output[output.index("_ test_raises _") :]
    assert "HTTPError" in raised
    assert "+ live      raised then" in raised


def test_a_call_refused_after_the_test_is_an_error(project: Project) -> None:
    """Fixtures that end after the test call models, too."""
    assert project.replayed.outcomes["test_teardown"].kind == "error"
    assert "+ live      goodbye then" in project.replayed.outcomes["test_teardown"].text


def test_a_replay_without_a_call_is_a_warning(project: Project) -> None:
    """Unless the marker says that it is meant to be so; while recording it is nobody's matter."""
    assert project.replayed.outcomes["test_asks_nothing"].kind == "passed"
    assert project.replayed.finished.stdout.count("RewindWarning: no model call of this test arrived") == 1
    assert "RewindWarning" not in project.recorded.finished.stdout


def test_a_misspelt_setting_is_named(project: Project) -> None:
    """As it is everywhere, with the nearest that exists."""
    text = project.replayed.outcomes["test_misspelt"].text
    assert "rewind: marker argument tail_m is not a setting of Rewind; did you mean tail_n?" in text


def test_sessions_are_named_by_test_ids(project: Project, home: Path) -> None:
    """A path of the machine is in none of them."""
    listed = rewind("runs", "--json", "--limit", "0", env=environment(home), cwd=project.folder).json
    assert isinstance(listed, list)
    names = {str(each["session"]) for each in listed if isinstance(each, dict)}
    assert {"test_asking.py/test_marked", "test_asking.py/TestOfUnittest/test_case", "one name"} <= names
    assert not any(str(project.folder) in name for name in names)


def test_workers_of_xdist_share_a_store(project: Project, home: Path, tmp_path: Path) -> None:
    """Each has a proxy; all are counted. What is refused after the tests fails the run, and is shown."""
    shutil.copy(SUITE, tmp_path / "asking.py")
    (tmp_path / "test_late.py").write_text(LATE)
    store = str(project.folder / ".rewind" / "store")
    options = ("-v", "-n", "2", "--rewind-mode", "replay", "--rewind-store", store)
    tested = pytest_run(tmp_path, home, *options)
    assert [each.kind for each in tested.outcomes.values()] == ["passed"] * 4, tested.finished.output
    assert tested.finished.status == 1
    _, _, shown = tested.finished.stdout.partition("refused or lost after the test had ended")
    assert "rewind: no recording for POST https://api.openai.com/v1/chat/completions" in shown
    assert re.search(
        r"^rewind · replay · \d calls: 4 exact, [12] refused$", tested.finished.stdout, re.MULTILINE
    )


def test_a_lost_recording_is_an_error(home: Path, tmp_path: Path) -> None:
    """The test itself has its answer, and passes."""
    shutil.copy(SUITE, tmp_path / "asking.py")
    (tmp_path / "test_large.py").write_text(
        MARKED.format(prompt="__import__('secrets').token_hex(3_000_000)")
    )
    limited = ("sh", "-c", 'ulimit -f 4096; exec "$@"', "sh")
    with FakeProvider() as provider:
        tested = pytest_run(tmp_path, home, words=limited, variables={"REWIND_UPSTREAM": provider.upstream})
    (outcome,) = tested.outcomes.values()
    assert outcome.kind == "error", tested.finished.output
    assert "rewind: a call could not be recorded" in outcome.text
    assert "1 passed, 1 error" in tested.finished.stdout


@pytest.mark.parametrize(
    ("suite", "said"), [(KILLING, "the proxy ended without a report"), (LOSING, "could not be recorded")]
)
def test_what_is_lost_after_the_tests_fails_it(home: Path, tmp_path: Path, suite: str, said: str) -> None:
    """A proxy that dies before it has said all, and a recording that nobody waited for."""
    shutil.copy(SUITE, tmp_path / "asking.py")
    (tmp_path / "test_late.py").write_text(suite)
    limited = ("sh", "-c", 'ulimit -f 4096; exec "$@"', "sh")
    with FakeProvider() as provider:
        tested = pytest_run(tmp_path, home, words=limited, variables={"REWIND_UPSTREAM": provider.upstream})
    assert tested.outcomes["test_one"].kind == "passed", tested.finished.output
    assert tested.finished.status == 1
    _, _, shown = tested.finished.stdout.partition("refused or lost after the test had ended")
    assert said in shown


def test_a_proxy_that_does_not_start_says_why(home: Path, tmp_path: Path) -> None:
    """A store that is none, an interpreter that does not exist, and one that has nothing of Rewind's."""
    shutil.copy(SUITE, tmp_path / "asking.py")
    (tmp_path / "test_one.py").write_text(MARKED.format(prompt="'x'"))
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "CURRENT").write_text("nonsense")
    tested = pytest_run(tmp_path, home, "--rewind-store", "store")
    text = tested.outcomes["test_one"].text
    assert ("names no generation" in text, "listening" in text) == (True, False)
    tested = pytest_run(tmp_path, home, "--rewind-python=/nowhere/python")
    assert "/nowhere/python cannot be started" in tested.outcomes["test_one"].text
    venv.create(tmp_path / "bare")
    bare = tmp_path / "bare" / "bin" / "python"
    tested = pytest_run(tmp_path, home, f"--rewind-python={bare}")
    text = tested.outcomes["test_one"].text
    wanted = rf"rewind: {bare} has no module \w+, which the proxy needs: install .* --rewind-python=PATH"
    assert re.search(wanted, text)
    assert "Traceback" not in text


def test_it_costs_nothing_where_it_is_not_used(home: Path, tmp_path: Path) -> None:
    """Nothing of Rewind's but the plugin is imported, and no proxy is started."""
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_one():\n"
        "    assert not {'mitmproxy', 'typer', 'lmdb', 'pydantic', 'rich'} & set(sys.modules)\n"
        "    ours = {name for name in sys.modules if name.startswith('rewind_proxy')}\n"
        "    print(sorted(ours))\n"
    )
    tested = pytest_run(tmp_path, home, "-s")
    assert tested.finished.status == 0, tested.finished.output
    listed = re.search(r"\[.*\]", tested.finished.stdout)
    assert listed
    assert set(json.loads(listed[0].replace("'", '"'))) == {
        "rewind_proxy",
        "rewind_proxy.handover",
        "rewind_proxy.pytest_plugin",
        "rewind_proxy.pytest_plugin.session",
        "rewind_proxy.pytest_plugin.surroundings",
    }
    assert not (tmp_path / ".rewind").exists()


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_a.py::TestB::test_c", "tests/test_a.py/TestB/test_c"),
        ("t.py::t[1 2]", "t.py/t[1 2]"),
        ("t.py::t[a:b]", "t.py/t[a?b]~368d31c8"),
        ("t.py::t[a\nb]", "t.py/t[a?b]~6dfd3866"),
        ("t.py::t[é]", "t.py/t[?]~3ea34c25"),
    ],
)
def test_a_session_name_can_be_a_user_name(nodeid: str, name: str) -> None:
    """What a proxy's user name cannot hold becomes `?`, and a digest tells such names apart."""
    assert session_name(nodeid) == name


def test_a_long_session_name_is_cut() -> None:
    """A parameter may be a document."""
    names = {session_name(f"t.py::t[{'x' * 9000}{end}]") for end in "ab"}
    assert len(names) == 2
    assert {len(name) for name in names} == {169}
