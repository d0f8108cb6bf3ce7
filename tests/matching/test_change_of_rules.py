"""Redaction rules that are added later (DESIGN §6): the law of the fingerprints, and killed rewrites."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_tables import fake
from matching.recorded_projects import Project, read, request, settings_at, unseen
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.canonical.redact import rule_list
from rewind_proxy.cli.demo_scan import scan
from rewind_proxy.matching.opening import Opened, open_ready
from rewind_proxy.settings import Settings
from rewind_proxy.store import Log, Store
from rewind_proxy.store.environment import META
from rewind_proxy.wire import HostTable

spawn = multiprocessing.get_context("spawn")
RULE_IDS = sorted(rule.partition("@")[0] for rule in rule_list(True, (), ()))
SECRET_OF_PROJECT = "zebra-crossing-17"
PATTERN = "zebra-[a-z]+-[0-9]+"


@contextmanager
def opened(of: Settings) -> Iterator[Opened]:
    """A store made ready, as a proxy does it."""
    ready = open_ready(of, HostTable({}), lambda _: unseen)
    try:
        yield ready
    finally:
        ready.close()


# -- the law

SECRETS = st.sampled_from(
    [
        fake("sk-proj-", 40),
        fake("sk-ant-api03-", 93),
        fake("ghp_", 36),
        fake("AKIA", 16),
        fake("xoxb-", 40),
        fake("AIza", 35),
        SECRET_OF_PROJECT,
    ]
)
FRAMES = st.sampled_from(
    [
        "{}",
        "key={}, done",
        "password: {}",
        "Authorization: Bearer {}",
        'export API_KEY="{}"',
        "https://user:{}@x.test/a",
        '{{"token": "{}", "n": 1}}',
        "a{}",
        "{}{}",
        "[REDACTED]{}",
    ]
)
WORDS = st.text(alphabet='ab ⟨\n{}":,é7-', max_size=12)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Some words with credentials in them, in contexts that rules look at."""
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        frame, secret = draw(FRAMES), draw(SECRETS)
        pieces += [draw(WORDS), frame.replace("{}", secret).replace("{{", "{").replace("}}", "}")]
    return " ".join([*pieces, draw(WORDS)])


@st.composite
def bodies(draw: st.DrawFn) -> JsonObject:
    """A chat request with credentials in messages, tool arguments and parameters."""
    messages: list[JsonObject] = [
        {"role": draw(st.sampled_from(["system", "user", "assistant"])), "content": draw(texts())}
        for _ in range(draw(st.integers(1, 3)))
    ]
    if draw(st.booleans()):
        call: JsonObject = {"name": "run", "arguments": draw(texts())}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "call_1", "content": draw(texts())},
        ]
    parameters = draw(
        st.dictionaries(st.sampled_from(["password", "x_token", "x_new", "api_key"]), texts(), max_size=2)
    )
    return {"model": "m1", "messages": [*messages], **parameters}


@settings(max_examples=12)
@given(
    body=bodies(),
    off=st.sets(st.sampled_from(RULE_IDS)),
    patterns=st.sampled_from([(), (PATTERN,)]),
    sent=SECRETS,
)
def test_a_request_finds_its_recording_whatever_rules_were_added_since(
    body: JsonObject, off: set[str], patterns: tuple[str, ...], sent: str
) -> None:
    """The law: live, stored and re-keyed requests land on one normalised fingerprint (DESIGN §6)."""
    with tempfile.TemporaryDirectory() as folder:
        before = settings_at(Path(folder), redact_off=tuple(sorted(off)), redact_patterns=patterns)
        after = settings_at(Path(folder), redact_patterns=("[a-z]+-crossing",))
        live = request(body, headers=[("authorization", f"Bearer {sent}")])
        record = Project(before).record(live)
        with opened(before) as ready:
            assert ready.store.lookup_normalised(read(ready.reader, live).fingerprint) == (record,)
        with opened(after) as ready:
            reading = read(ready.reader, live)
            (found,) = ready.store.lookup_normalised(reading.fingerprint)
            assert (found.id, found.seq, found.exact) == (record.id, record.seq, reading.exact)
            assert ready.store.request_body(found) == reading.body
            assert found.request == reading.record
            assert set(rule_list(True, (), ())) <= set(ready.store.redaction) == set(ready.log.redaction)
            # The law through a re-key of what is stored, under other match settings beside.
        with opened(after.model_copy(update={"tail_n": 1})) as ready:
            assert len(ready.store.lookup_normalised(read(ready.reader, live).fingerprint)) == 1
        with opened(after) as ready:
            assert not ready.store.needs_index()


# -- what is left in the files


def test_what_a_new_rule_takes_out_is_in_no_file(tmp_path: Path) -> None:
    """Not in a page, a freed page or a zstd frame of store or log; the old generations are gone."""
    project = Project(settings_at(tmp_path))
    for number in range(60):
        text = f"{number}: it is {SECRET_OF_PROJECT} " + "and more " * number
        body: JsonObject = {
            "model": "m1",
            "messages": [{"role": "system", "content": SECRET_OF_PROJECT}, {"role": "user", "content": text}],
            "x_new": SECRET_OF_PROJECT,
        }
        project.record(request(body, query=f"?trace={SECRET_OF_PROJECT}"))
    place = tmp_path / ".rewind"
    assert scan(place, [SECRET_OF_PROJECT]).found
    with opened(settings_at(tmp_path, redact_patterns=(PATTERN,))) as ready:
        assert ready.prepared.rewritten == 60
        assert ready.prepared.rules_added == 1
    assert not scan(place, [SECRET_OF_PROJECT]).found
    assert {folder.name for folder in place.glob("*/*") if folder.is_dir()} == {"2"}


def test_a_credential_of_the_query_is_in_no_body(tmp_path: Path) -> None:
    """What a parameter sent as a credential is one in the body too, as an auth header's is."""
    key = fake("", 40)
    project = Project(settings_at(tmp_path))
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": f"I have {key}, and you?"}]}
    project.record(request(body, query=f"?key={key}"))
    assert read(project.reader, request(body, query=f"?key={key}")).preview == "I have [REDACTED], and you?"
    assert not scan(tmp_path / ".rewind", [key]).found


def test_a_parameter_that_goes_by_its_name_is_redacted_in_the_record_too(tmp_path: Path) -> None:
    """The scalar parameters beside the body are looked at with their names."""
    body: JsonObject = {"model": "m1", "messages": [], "password": "correct-horse-9"}
    Project(settings_at(tmp_path, redact_off=("RW310",))).record(request(body))
    with opened(settings_at(tmp_path)) as ready:
        (record,) = ready.store.cassettes()
        assert record.request.params["password"] == "[REDACTED]"
    assert not scan(tmp_path / ".rewind", ["correct-horse-9"]).found


# -- killed at any moment

KEPT = 60


def user_messages(count: int) -> list[JsonObject]:
    """So many of them, that hold it too."""
    return [{"role": "user", "content": f"{SECRET_OF_PROJECT} {turn}"} for turn in range(count)]


def fill(folder: Path) -> None:
    """Record some exchanges that hold what a later rule takes out."""
    project = Project(settings_at(folder))
    for number in range(KEPT):
        messages: list[JsonObject] = [
            {"role": "system", "content": f"it is {SECRET_OF_PROJECT} " * 5},
            *user_messages(number % 7 + 1),
        ]
        project.record(request({"model": "m1", "messages": [*messages], "n": number}))


def redact_and_die(folder: Path, moment: int, counted: object) -> None:
    """Add a rule, and be killed at the n-th call that the store makes, if there are so many."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event in ("call", "c_call") and "/store/" in frame.f_code.co_filename:
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    with opened(settings_at(folder, redact_patterns=(PATTERN,))):
        pass
    sys.setprofile(None)
    counted.value = calls  # type: ignore[attr-defined]


def run_child(folder: Path, moment: int) -> tuple[int | None, int]:
    """The exit status of a child that adds the rule, and how many calls it made."""
    counted = spawn.Value("q", 0)
    child = spawn.Process(target=redact_and_die, args=(folder, moment, counted))
    child.start()
    child.join(120)
    if child.is_alive():
        child.kill()
        raise AssertionError("the child hangs")
    return child.exitcode, counted.value


def content(folder: Path) -> dict[str, dict[bytes, bytes]]:
    """Everything in the tables of store and log."""
    store = Store.open(folder / ".rewind" / "store", settings_digest="any", readonly=True)
    log = Log.open(folder / ".rewind" / "store", readonly=True)
    found: dict[str, dict[bytes, bytes]] = {}
    with store, log:
        for name, place in (("store", store._place), ("log", log._place)):
            with place.read() as txn:
                for table in place._tables:
                    found[f"{name}/{table}"] = dict(txn.scan(table, b""))
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[bytes, bytes]], int]:
    """A project before the rule is added, what it holds afterwards, and how many calls that takes."""
    before = tmp_path_factory.mktemp("before")
    fill(before)
    after = tmp_path_factory.mktemp("after")
    shutil.copytree(before, after, dirs_exist_ok=True)
    status, calls = run_child(after, 0)
    assert (status, calls > 5_000) == (0, True)
    return before, content(after), calls


@pytest.mark.parametrize("seed", range(2))
def test_a_rewrite_killed_again_and_again_ends_as_an_undisturbed_one(
    tmp_path: Path, undisturbed: tuple[Path, dict[str, dict[bytes, bytes]], int], seed: int
) -> None:
    """It goes on where it stopped; readers find everything at any time; nothing is left over in the end."""
    before, wanted, calls = undisturbed
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    draw = random.Random(seed)
    killed = 0
    for _ in range(3):
        status, _ = run_child(tmp_path, draw.randrange(1, calls))
        assert status in (0, -signal.SIGKILL)
        killed += status != 0
        with Store.open(tmp_path / ".rewind" / "store", settings_digest="any", readonly=True) as store:
            assert store.check() == []
            assert store.count() == KEPT
    assert killed
    status, needed = run_child(tmp_path, 0)
    assert status == 0
    assert needed < calls
    assert content(tmp_path) == wanted
    assert len(wanted["store/" + META]) > 3
    place = tmp_path / ".rewind"
    assert {folder.name for folder in place.glob("*/*") if folder.is_dir()} == {"2"}
    assert not scan(place, [SECRET_OF_PROJECT]).found


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_killed_rewrite_goes_on_where_it_stopped(
    tmp_path: Path, undisturbed: tuple[Path, dict[str, dict[bytes, bytes]], int], share: float
) -> None:
    """What was copied before the kill is not copied again."""
    before, wanted, calls = undisturbed
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    status, _ = run_child(tmp_path, int(calls * share))
    assert status == -signal.SIGKILL
    status, needed = run_child(tmp_path, 0)
    assert status == 0
    assert needed < calls * (1 - share) + calls * 0.35
    assert content(tmp_path) == wanted


def test_what_a_killed_rewrite_left_goes_when_its_rule_does(
    tmp_path: Path, undisturbed: tuple[Path, dict[str, dict[bytes, bytes]], int]
) -> None:
    """An opener that does not want that rule removes what there is; its own work starts anew."""
    before, _, calls = undisturbed
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    run_child(tmp_path, calls // 4)
    place = tmp_path / ".rewind" / "store"
    assert (place / "2").exists()
    with Store.open(place, settings_digest="any", readonly=True):
        assert (place / "2").exists()
    with opened(settings_at(tmp_path)) as ready:
        assert not (place / "2").exists()
        assert ready.prepared.rewritten == 0
