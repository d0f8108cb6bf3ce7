"""`rewind run`: the command's environment, its exit status, the report, signals."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from proxy.calls import CHAT_PATH, OPENAI, fake_credential, new_prompt
from proxy.conftest import Stage
from proxy.looking import run_of
from rewind_proxy.cli.provider import FakeProvider
from support.children import Child, Finished, environment, rewind
from support.children import run as run_command
from support.runs import Place, Run, rewind_run

CLIENT = """
import json, sys, urllib.error, urllib.request

plan = json.load(open("plan.json"))
status = 0
for prompt, more in plan["calls"]:
    body = json.dumps({"model": "m1", "messages": [{"role": "user", "content": prompt}]}).encode()
    headers = {"content-type": "application/json", **more}
    request = urllib.request.Request("https://api.openai.com" + plan["path"], body, headers)
    try:
        print(urllib.request.urlopen(request).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
        status = 3
sys.exit(status if plan["status"] is None else plan["status"])
"""
"""A client as it comes: it knows of no proxy but by its environment."""
ASKED_TO_REPLAY = {"x-rewind-mode": "replay"}


Call = str | tuple[str, Mapping[str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One HOME for all runs: our CA is made once, as on a user's machine."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def place(tmp_path: Path, home: Path) -> Place:
    """Where the command works."""
    for name in ("work", "notes"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "work", home, tmp_path / "notes")


def client(place: Place, *calls: Call, path: str = CHAT_PATH, status: int | None = None) -> list[str]:
    """The client's command line: it asks each prompt, with headers perhaps, and ends with 3 when refused."""
    listed = [(call, {}) if isinstance(call, str) else call for call in calls]
    plan = {"path": path, "calls": listed, "status": status}
    (place.work / "plan.json").write_text(json.dumps(plan))
    return python(CLIENT)


def python(code: str) -> list[str]:
    """The command line of a piece of Python."""
    return [sys.executable, "-c", code]


def run(
    place: Place,
    provider: FakeProvider,
    argv: Sequence[str],
    mode: str,
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> Run:
    """`rewind run` on a store beside the place."""
    store = place.notes.parent / "store"
    return rewind_run(
        argv, place, mode=mode, store=store, provider=provider, options=options, variables=variables
    )


def test_a_run_forks_at_a_step(place: Place) -> None:
    """`--from-step 2`: the first call is replayed, the second asks the provider again and is kept beside."""
    argv = client(place, new_prompt(), new_prompt())
    with FakeProvider() as provider:
        run(place, provider, argv, "auto")
        heard = len(provider.requests)
        forked = run(place, provider, argv, "auto", "--from-step", "2")
        assert len(provider.requests) == heard + 1
    assert [forked.report[name] for name in ("exact", "recorded", "refused")] == [1, 1, 0]


def test_record_then_replay_without_the_provider(place: Place) -> None:
    """The second run prints what the first printed; the report has the counts."""
    argv = client(place, new_prompt(), new_prompt())
    with FakeProvider() as provider:
        recorded = run(place, provider, argv, "auto")
    recorded.sockets.clear()
    replayed = run(place, provider, argv, "replay", "--session", "ci")
    assert (recorded.finished.status, replayed.finished.status) == (0, 0)
    assert replayed.finished.stdout == recorded.finished.stdout
    assert replayed.sockets.outward(provider.port) == []
    counts = ("mode", "steps", "recorded", "unused", "child_exit")
    assert [recorded.report[name] for name in counts] == ["auto", 2, 2, 0, 0]
    assert replayed.report.pop("tokens_saved") > 0
    assert replayed.report.pop("saved_ms") >= 0
    # Prices are in the development environment where they install; the fake provider's model has none.
    assert replayed.report.pop("money_saved_usd") is None
    assert replayed.report.pop("runs") == [run_of(place.notes.parent / "store", "ci").id]
    assert replayed.report == {
        "mode": "replay",
        "session": "ci",
        "steps": 2,
        "exact": 2,
        "normalised": 0,
        "alias": 0,
        "recorded": 0,
        "refused": 0,
        "passed": 0,
        "side": 0,
        "failed": 0,
        "unused": 0,
        "tunnelled": [],
        "refused_hosts": [],
        "sockets": 0,
        "child_exit": 0,
        "misses": [],
    }


def test_the_session_of_a_run_can_have_any_name(place: Place, stage: Stage) -> None:
    """`--session` is in log and report as it was given; what looks like a credential is in neither."""
    secret, store = fake_credential(), place.notes.parent / "store"
    for given, shown in (("night, a=b: é ⟨1⟩", "night, a=b: é ⟨1⟩"), (f"of {secret}", "of [REDACTED]")):
        named = run(place, stage.provider, client(place, new_prompt()), "auto", "--session", given)
        assert named.report["session"] == shown
        assert named.report["runs"] == [run_of(store, shown).id]


# Exit statuses


def test_a_refused_call_is_4(place: Place, stage: Stage, stopped: FakeProvider) -> None:
    """The command's own status is in the report, with the miss: the nearest recording, where they differ."""
    run(place, stage.provider, client(place, "Tell me of bees."), "auto")
    refused = run(place, stopped, client(place, "Tell me of wasps."), "replay")
    assert (refused.finished.status, refused.report["child_exit"]) == (4, 3)
    assert (refused.report["refused"], refused.report["unused"]) == (1, 1)
    [miss] = refused.report["misses"]
    assert (miss["method"], miss["url"]) == ("POST", f"https://{OPENAI}{CHAT_PATH}")
    assert len(miss["nearest"]) == 64
    assert miss["difference"]["path"].startswith("$.messages[0]")
    assert ("bees" in miss["difference"]["a"], "wasps" in miss["difference"]["b"]) == (True, True)
    assert "rewind: no recording" in refused.finished.stdout
    assert "a model call was refused; the command itself ended with 3" in refused.finished.stderr


def test_a_replay_without_a_model_call_is_4(place: Place, stopped: FakeProvider) -> None:
    """A command that went past the proxy must not look like a success; a side call does not make it one."""
    argv = client(place, "x", path="/v1/initialize", status=7)
    empty = run(place, stopped, argv, "replay")
    assert (empty.finished.status, empty.report["child_exit"]) == (4, 7)
    assert [empty.report[name] for name in ("steps", "refused", "side")] == [0, 0, 1]
    assert empty.finished.stderr.count("no model call arrived") == 1
    assert run(place, stopped, argv, "replay", "--allow-empty").finished.status == 7


NEARLY_FULL = 'ulimit -f 2000; exec "$@"'
"""No file may grow past one or two megabytes."""
REWIND = python("from rewind_proxy.cli.app import main; main()")


def run_on_a_nearly_full_disk(place: Place, stage: Stage, argv: Sequence[str]) -> Finished:
    """`rewind run` and all that it starts."""
    env = environment(place.home) | {"REWIND_UPSTREAM": stage.provider.upstream}
    store, report = place.notes.parent / "store", place.notes / "report.json"
    words = ["run", "--store", str(store), "--report", str(report), "--", *argv]
    return run_command(["sh", "-c", NEARLY_FULL, "sh", *REWIND, *words], env, place.work)


def too_large() -> str:
    """A prompt that no compression makes small enough."""
    return secrets.token_hex(3_000_000)


def test_a_lost_recording_is_5(place: Place, stage: Stage) -> None:
    """The command has its answer and ends as it wishes; that the recording failed goes before its status."""
    ended = run_on_a_nearly_full_disk(place, stage, client(place, too_large(), status=6))
    assert json.loads(ended.stdout)["choices"]
    assert ended.status == 5
    report = json.loads((place.notes / "report.json").read_text())
    counts = ("failed", "recorded", "refused", "child_exit")
    assert [report[name] for name in counts] == [1, 0, 0, 6]
    assert "a call could not be recorded" in ended.stderr
    log = re.search(r"the proxy's log: (\S+)", ended.stderr)
    assert log
    assert "is the disk full" in Path(log[1]).read_text()


KILL_THE_PROXY = """
import os, signal
from pathlib import Path
for folder in Path("/proc").glob("[0-9]*"):
    try:
        words = (folder / "cmdline").read_bytes().split(b"\\0")
        of_run = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getppid()
    except OSError:  # it has ended meanwhile
        continue
    if of_run and b"rewind_proxy.mitm" in words:
        os.kill(int(folder.name), signal.SIGKILL)
"""


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_a_proxy_that_dies_is_5(place: Place, stopped: FakeProvider, mode: str) -> None:
    """Whatever the command ends with; and no report of an earlier run stands where this one's would."""
    files = place.notes / "report.json", place.notes / "junit.xml"
    for file in files:
        file.write_text("an earlier run's")
    env = environment(place.home) | {"REWIND_UPSTREAM": stopped.upstream}
    flags = ("--mode", mode, "--store", place.notes / "store", "--report", files[0], "--junit", files[1])
    ended = rewind("run", *flags, "--", *python(KILL_THE_PROXY), env=env, cwd=place.work)
    assert (ended.status, [file.exists() for file in files]) == (5, [False, False])
    assert "the proxy ended without a report" in ended.output
    assert "the command itself ended with 0" in ended.output


def test_4_goes_before_5(place: Place, stage: Stage) -> None:
    """A run that was refused a call and lost a recording ends with 4."""
    argv = client(place, too_large(), (new_prompt(), ASKED_TO_REPLAY))
    ended = run_on_a_nearly_full_disk(place, stage, argv)
    report = json.loads((place.notes / "report.json").read_text())
    assert (ended.status, report["failed"], report["refused"]) == (4, 1, 1)


def test_a_command_that_is_not_there_is_127(place: Place) -> None:
    """No proxy is started for it, and nothing but its name is said."""
    for name, status in (("no-such-command", 127), ("./plan.json", 126)):
        client(place, "x")
        ended = rewind("run", "--", name, env=environment(place.home), cwd=place.work)
        assert ended.status == status
        assert name in ended.stderr
    assert not (place.work / ".rewind").exists()


# Signals

PATIENT = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda number, frame: (print("got it", flush=True), sys.exit(9)))
print("waiting", flush=True)
time.sleep(60)
"""
"""It ends by itself on Ctrl-C, and is killed by any other signal."""


def test_a_signal_is_the_commands(place: Place, stage: Stage) -> None:
    """What is sent to `rewind run` is passed on; a command killed by signal n ends with 128 + n."""
    child = start_run(place, stage, python(PATIENT))
    child.wait_for(re.compile("waiting"))
    ended = child.stop(signal.SIGTERM)
    assert ended.status == 128 + signal.SIGTERM
    assert json.loads((place.notes / "report.json").read_text())["child_exit"] == ended.status


def test_ctrl_c_is_the_commands(place: Place, stage: Stage) -> None:
    """The terminal sends it to the whole group: the command ends, then the proxy, with its report."""
    child = start_run(place, stage, python(PATIENT))
    child.wait_for(re.compile("waiting"))
    os.killpg(child.pid, signal.SIGINT)
    ended = child.wait()
    assert (ended.status, "got it" in ended.output, "Traceback" in ended.output) == (9, True, False)
    assert json.loads((place.notes / "report.json").read_text())["child_exit"] == 9


def start_run(place: Place, stage: Stage, argv: Sequence[str]) -> Child:
    """A `rewind run` that goes on."""
    env = environment(place.home) | {"REWIND_UPSTREAM": stage.provider.upstream}
    store, report = str(place.notes.parent / "store"), str(place.notes / "report.json")
    return Child([*REWIND, "run", "--store", store, "--report", report, "--", *argv], env, place.work)


# The environment


def test_an_inherited_no_proxy_does_not_hide_the_provider(place: Place, stage: Stage) -> None:
    """Entries that would send model calls past the proxy are left out, with a warning; the others stay."""
    prompt = new_prompt()
    variables = {"NO_PROXY": "*", "no_proxy": "git.example.org, .openai.com"}
    argv = client(place, prompt)
    show = "import os; print(os.environ['NO_PROXY'], os.environ['no_proxy'], sep='\\n', flush=True)\n"
    ended = run(place, stage.provider, python(show + argv[-1]), "auto", variables=variables)
    assert (ended.finished.status, ended.report["recorded"]) == (0, 1)
    assert ended.finished.stdout.splitlines()[:2] == ["git.example.org,localhost,127.0.0.1,::1"] * 2
    assert len(stage.heard(prompt)) == 1
    for entry in (r"\*", r"\.openai\.com"):
        warning = rf"NO_PROXY: '{entry}' is left out for the child, it would hide .*api\.openai\.com"
        assert re.search(warning, ended.finished.stderr)


def test_an_unknown_host_that_is_kept_out_is_reported(place: Place, stopped: FakeProvider) -> None:
    """`unknown = refuse` refuses no model call, so the status is the command's; the host is named."""
    code = (
        "import urllib.request, urllib.error\n"
        "try: urllib.request.urlopen('http://nobody.invalid/')\n"
        "except urllib.error.HTTPError as error: raise SystemExit(7)"
    )
    ended = run(place, stopped, python(code), "auto")
    assert (ended.finished.status, ended.report["refused_hosts"]) == (7, ["nobody.invalid"])
    assert [ended.report[name] for name in ("refused", "child_exit", "tunnelled")] == [0, 7, []]
    assert "0 calls · no model call arrived · refused unknown nobody.invalid\n" in ended.finished.stderr


def test_a_misspelt_setting_runs_nothing(place: Place) -> None:
    """The command is not started: a typo in the mode must not go live."""
    env = environment(place.home, REWIND_MOD="replay")
    ended = rewind("run", "--", *python("print('ran')"), env=env, cwd=place.work)
    assert ended.status == 1
    assert ("REWIND_MOD" in ended.stderr, "ran" in ended.stdout) == (True, False)


def test_a_proxy_that_cannot_start_runs_nothing(place: Place) -> None:
    """A store that cannot be opened is exit 1, with its name, and the command is not run."""
    (place.work / "file").write_text("")
    argv = ["run", "--store", "file/store", "--", *python("print('ran')")]
    ended = rewind(*argv, env=environment(place.home), cwd=place.work)
    assert (ended.status, "ran" in ended.stdout, "file/store" in ended.stderr) == (1, False, True)
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("rewind: ")
    assert ended.stderr.endswith("cannot be used (Not a directory): name another place with --store\n")
    assert ended.stderr.count("\n") == 1


def test_junit_and_step_summary_tell_of_the_same_run(
    place: Place, stage: Stage, stopped: FakeProvider
) -> None:
    """A case for each call in the order asked, one of them failed; the summary has its diff."""
    run(place, stage.provider, client(place, "Tell me of ants.", "Tell me of ants again."), "auto")
    junit, summary = place.notes / "out" / "junit.xml", place.notes / "summary.md"
    argv = client(place, "Tell me of ants.", "Tell me of moths.\x07\ud83d")
    run(
        place, stopped, argv, "replay", "--junit", str(junit), variables={"GITHUB_STEP_SUMMARY": str(summary)}
    )
    root = ET.fromstring(junit.read_bytes())
    assert [case.get("name") for case in root.iter("testcase")] == [
        "step 1 · m1 · Tell me of ants.",
        "step 2 · m1 · Tell me of moths.\\x07?",
    ]
    (failure,) = root.iter("failure")
    assert "- recorded  Tell me of ants." in (failure.text or "")
    assert "<h3>❌ " in summary.read_text(encoding="utf-8")
    assert "\n+ live " in summary.read_text(encoding="utf-8")


@pytest.mark.parametrize("flag", ["--report", "--junit"])
def test_a_report_that_cannot_be_written_runs_nothing(place: Place, flag: str) -> None:
    """It is said before the command is run, not after its calls were paid for."""
    (place.work / "file").write_text("")
    argv = ["run", flag, "file/report", "--", *python("print('ran')")]
    ended = rewind(*argv, env=environment(place.home), cwd=place.work)
    assert (ended.status, ended.stdout) == (1, "")
    assert "file/report cannot be written (File exists): name another place" in ended.stderr
