"""`rewind explain` and `diff`: why a call was answered as it was, and where two runs part."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.shelf import Call
from rewind_proxy.canonical.model import JsonObject, JsonValue, Mode
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.engine import Engine, Forward, Refuse, Replay, Session, Step
from rewind_proxy.matching.opening import open_ready
from rewind_proxy.matching.reading import RawRequest, RequestReader
from rewind_proxy.recording import Captured, exchange, recorded_step, refusal, refused_step, replayed_step
from rewind_proxy.settings import Settings
from rewind_proxy.store import Exchange, Log, Recorder, Refusal, RunRecord, StepRecord, Store
from rewind_proxy.wire import HostTable

pytestmark = pytest.mark.usefixtures("place")

Run = Callable[..., tuple[int, str]]
START = 1_796_039_103.0
HOSTS = HostTable({})


@pytest.fixture
def rewind(rewind: Call) -> Run:
    """Runs the command in this process: exit status, and all that it printed."""

    def call(*arguments: str) -> tuple[int, str]:
        status, out, err = rewind(*arguments)
        return status, out + err

    return call


class Proxy:
    """What a proxy does with a request, without one: decides, records and logs."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(store=folder / ".rewind" / "store")
        match = self.settings.match_settings
        self._reader = RequestReader(HOSTS, Redactor(rule_list(True, (), ())), match, 2**26)
        self._sessions: dict[str, Session] = {}
        self.refusals: list[Refusal | None] = []
        """What a proxy keeps as pending."""

    def ask(self, body: JsonValue, *, run: str = "run-a", mode: Mode = "auto") -> str:
        """Ask for something in a run; the name of the step."""
        session = self._sessions.setdefault(run, Session(RunRecord(id=run, mode=mode, started_at=START)))
        session.calls += 1
        step = Step(session, session.calls, START)
        with (
            Store.open(self.settings.store, settings_digest=self._reader.settings_digest) as store,
            Log.open(self.settings.store) as log,
        ):
            log.start_run(session.run)
            log.append([self._step(body, step, mode, store)])
        return step.id

    def _step(self, body: JsonValue, step: Step, mode: Mode, store: Store) -> StepRecord:
        engine = Engine(self.settings, self._reader, store)
        content = json.dumps(body).encode()
        headers = (("content-type", "application/json"),)
        raw = RawRequest("POST", "api.openai.com", 443, "/v1/chat/completions", headers, content)
        host = HOSTS.find("api.openai.com", 443)
        assert host is not None
        decision = engine.decide(raw, host, step, mode=mode)
        match decision:
            case Replay():
                return replayed_step(decision, 2)
            case Refuse():
                self.refusals.append(refusal(decision, 0.85))
                return refused_step(decision, ("", "", ""))
            case Forward():
                captured = Captured(200, headers, ((ANSWER, 900),), START + 1)
                made = exchange(decision, captured, record_errors=False)
                assert isinstance(made, Exchange)
                record = store.put(made)
                return recorded_step(decision, record, 200)
        raise AssertionError(decision)


ANSWER = json.dumps(
    {
        "model": "m1",
        "choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 34},
    }
).encode()


@pytest.fixture
def proxy(tmp_path: Path) -> Proxy:
    return Proxy(tmp_path)


def chat(*texts: str, model: str = "m1", **more: JsonValue) -> JsonObject:
    """A conversation whose first words are the system's."""
    roles = ("system", "user", "assistant")
    messages: list[JsonValue] = [
        {"role": roles[0 if index == 0 else 2 - index % 2], "content": text}
        for index, text in enumerate(texts)
    ]
    return {"model": model, "messages": messages, **more}


def as_json(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


class TestExplain:
    """The report of a step."""

    def test_a_recorded_step(self, rewind: Run, proxy: Proxy) -> None:
        """What was made, and what was taken out of the request for matching."""
        step = proxy.ask(chat("Work in <cwd>/home/ann/app</cwd>.", "hello"))
        status, out = rewind("explain", step)
        assert status == 0
        told = [line.rstrip() for line in out.splitlines()]
        assert told[0] == "recording · recorded · step run-a.1"
        assert "call         POST https://api.openai.com/v1/chat/completions" in told
        assert "  RS105 $.messages[0].parts[0].text  /home/ann/app" in told

    def test_an_exact_hit(self, rewind: Run, proxy: Proxy) -> None:
        """There is nothing to leave aside."""
        proxy.ask(chat("s", "hello"))
        step = proxy.ask(chat("s", "hello"))
        out = rewind("explain", step)[1]
        assert out.startswith("replayed · exact · step run-a.2\n")
        assert "It is the same request" in out
        assert "left aside" not in out

    def test_a_normalised_hit(self, rewind: Run, proxy: Proxy) -> None:
        """Each rule that was needed, with both values; from the log and the recording alone."""
        proxy.ask(chat("Work in <cwd>/home/ann/app</cwd>.", "hello"))
        step = proxy.ask(chat("Work in <cwd>/builds/7/app</cwd>.", "hello", model="m2"))
        out = rewind("explain", step)[1]
        assert out.startswith("replayed · normalised · step run-a.2\n")
        assert "  model m1->m2\n" in out
        assert "  scrubbed RS105" in out
        assert "  RS105 $.messages[0].parts[0].text  /home/ann/app → /builds/7/app\n" in out
        assert "2 ms instead of 900 ms" in out

    def test_a_miss(self, rewind: Run, proxy: Proxy) -> None:
        """The common prefix, the first difference with both sides, and what would have matched."""
        proxy.ask(chat("s", "one", "two", "three", top_k=4))
        step = proxy.ask(chat("s", "one", "two", "three", top_k=5), mode="replay")
        out = rewind("explain", step)[1]
        assert out.startswith("refused · miss · step run-a.2\n")
        assert "The first 4 of 4 messages are the same." in out
        assert "  at $.params.top_k\n    - recorded  4\n    + live      5\n" in out
        assert "would match with: ignore += top_k" in out

    def test_json(self, rewind: Run, proxy: Proxy) -> None:
        """Everything, for scripts."""
        proxy.ask(chat("s", "one", "two", "three"))
        hit = proxy.ask(chat("s", "one", "two", "three", model="m2"))
        miss = proxy.ask(chat("s", "one", "two", "four"), mode="replay")
        found = as_json(rewind("explain", hit, "--json")[1])
        assert (found["step"], found["outcome"], found["tier"]) == (hit, "replayed", "normalised")
        assert found["notes"] == ["model m1->m2"]
        assert len(found["cassette"]) == 64
        found = as_json(rewind("explain", miss, "--json")[1])
        assert (found["outcome"], found["tier"], found["cassette"]) == ("refused", "miss", None)
        assert found["miss"]["difference"] == {
            "path": "$.messages[3].parts[0].text",
            "a": "three",
            "b": "four",
        }
        assert (found["miss"]["shared"], found["miss"]["messages"]) == (3, 4)

    def test_a_step_that_passed(self, rewind: Run, proxy: Proxy) -> None:
        """Outcome and tier are one word there, and it is said once; a fault on purpose is named."""
        passed = StepRecord(
            run="run-a",
            number=1,
            started_at=START,
            method="POST",
            host="api.openai.com",
            path="/v1/chat/completions",
            tier="passed",
            status=429,
            note="fault turn=1:429",
        )
        with Log.open(proxy.settings.store) as log:
            log.start_run(RunRecord(id="run-a", mode="auto", started_at=START))
            log.append([passed])
        out = rewind("explain", "run-a.1")[1]
        assert out.startswith("passed · step run-a.1\n")
        assert "fault turn=1:429" in out

    def test_a_recording_that_is_gone(self, rewind: Run, proxy: Proxy) -> None:
        """The step is still explained, from the log alone."""
        step = proxy.ask(chat("s", "hello"))
        cassette = as_json(rewind("explain", step, "--json")[1])["cassette"]
        with Store.open(proxy.settings.store, settings_digest="0") as store:
            store.delete([cassette])
        status, out = rewind("explain", step)
        assert status == 0
        assert f"{cassette[:12]}, which is not in the store any more" in out

    def test_a_step_by_its_run(self, rewind: Run, proxy: Proxy) -> None:
        """`last` and the start of an id name a run here too."""
        proxy.ask(chat("s", "hello"))
        assert rewind("explain", "last.1") == rewind("explain", "run.1") == rewind("explain", "run-a.1")

    @pytest.mark.parametrize(
        "name", ["run-a", "run-a.2", "run-b.1", "run-a.x", ".1", "", "run-a.99999999999"]
    )
    def test_what_is_no_step_is_said(self, rewind: Run, proxy: Proxy, name: str) -> None:
        """In one line, with how to find one."""
        proxy.ask(chat("s", "hello"))
        status, out = rewind("explain", name)
        assert (status, out.count("\n")) == (1, 1)
        assert out.startswith("rewind: ")

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("last", "last is a run: a step is RUN.NUMBER, or last.NUMBER, as last.1 (`rewind steps last` "),
            ("run-", "run- is a run: a step is RUN.NUMBER, or last.NUMBER, as run-a.1 (`rewind steps run-` "),
            (
                "{id}",
                "{id} is a recording, not a step: a step is RUN.NUMBER, or last.NUMBER; `rewind show {id}`",
            ),
            ("zz", "zz is no step: a step is RUN.NUMBER, or last.NUMBER (`rewind steps last` lists them)"),
        ],
    )
    def test_what_it_is_instead_is_said(self, rewind: Run, proxy: Proxy, name: str, said: str) -> None:
        """A run has steps, a recording can be shown."""
        step = proxy.ask(chat("s", "hello"))
        cassette = as_json(rewind("explain", step, "--json")[1])["cassette"]
        status, out = rewind("explain", name.format(id=cassette[:12]))
        assert (status, out.startswith(f"rewind: {said.format(id=cassette[:12])}")) == (1, True)

    def test_a_credential_is_in_no_report(self, rewind: Run, proxy: Proxy) -> None:
        """Nor in what the log keeps of a request: neither before it is cut, nor after."""
        secret = "sk-proj-" + secrets.token_hex(20)
        proxy.ask(chat(f"Work in <cwd>/home/ann/{secret}</cwd>.", f"hello {secret}"))
        for text in ("hello", "good-bye"):
            body = chat(f"Work in <cwd>/home/bob/{secret}</cwd>.", f"{text} {secret}")
            step = proxy.ask(body, mode="replay")
            for form in ((), ("--json",)):
                status, out = rewind("explain", step, *form)
                assert (status, secret in out) == (0, False)

    def test_a_longer_redaction_list_takes_the_slots_along(self, rewind: Run, proxy: Proxy) -> None:
        """A value without the words around it cannot be judged: it goes."""
        proxy.ask(chat("Work in <cwd>/home/ann/app</cwd>.", "hello"))
        step = proxy.ask(chat("Work in <cwd>/home/bob/app</cwd>.", "hello"))
        assert "/home/bob/app" in rewind("explain", step)[1]
        grown = proxy.settings.model_copy(update={"redact_patterns": ("<cwd>[^<]*</cwd>",)})
        open_ready(grown, HOSTS, lambda _: lambda *_: None).close()
        assert "/home/bob/app" not in rewind("explain", step)[1]


class TestDiff:
    """Where two runs part."""

    def test_runs_that_ask_for_the_same(self, rewind: Run, proxy: Proxy) -> None:
        """Status 0, and no more to say."""
        for run in ("run-a", "run-b"):
            for text in ("one", "two"):
                proxy.ask(chat("s", text), run=run)
        status, out = rewind("diff", "run-a", "run-b")
        assert (status, out.splitlines()[-1]) == (0, "They ask for the same, in 2 model calls.")
        assert as_json(rewind("diff", "run-a", "run-b", "--json")[1])["same"] is True

    def test_the_first_call_that_differs(self, rewind: Run, proxy: Proxy) -> None:
        """Which one, in which place, with what is there in both; what does not count is not named."""
        for run, text, model in (("run-a", "red", "m1"), ("run-b", "blue", "m2")):
            proxy.ask(chat("s", "one", model=model), run=run)
            proxy.ask(chat("s", "one", "fine", text), run=run)
            proxy.ask(chat("s", text), run=run)
        status, out = rewind("diff", "run-a", "run-b")
        told = [line.rstrip() for line in out.splitlines()]
        assert status == 1
        assert told[2:] == [
            "They part at model call 2.",
            "  - a  run-a.2  recorded  red",
            "  + b  run-b.2  recorded  blue",
            "  The first 3 of 4 messages are the same.",
            "  at $.messages[3].parts[0].text",
            "    - a  red",
            "    + b  blue",
        ]
        found = as_json(rewind("diff", "run-a", "run-b", "--json")[1])
        assert (found["same"], found["together"], found["calls"]) == (False, 1, [3, 3])
        assert [step["number"] for step in found["steps"]] == [2, 2]
        assert found["differences"] == [{"path": "$.messages[3].parts[0].text", "a": "red", "b": "blue"}]

    def test_a_run_that_goes_on(self, rewind: Run, proxy: Proxy) -> None:
        """The other one has ended there."""
        proxy.ask(chat("s", "one"), run="run-a")
        proxy.ask(chat("s", "one"), run="run-b")
        proxy.ask(chat("s", "two"), run="run-b")
        status, out = rewind("diff", "run-a", "run-b")
        assert status == 1
        assert "  - a has ended\n  + b  run-b.2  recorded  two\n" in out
        assert as_json(rewind("diff", "run-a", "run-b", "--json")[1])["steps"][0] is None

    @pytest.mark.parametrize(
        ("order", "sides"),
        [(("run-a", "run-b"), ("red", "blue")), (("run-b", "run-a"), ("blue", "red"))],
        ids=["recorded first", "refused first"],
    )
    def test_a_refused_call_is_compared_by_its_report(
        self, rewind: Run, proxy: Proxy, order: tuple[str, str], sides: tuple[str, str]
    ) -> None:
        """Its request is in no recording, but its nearest one is the other run's."""
        proxy.ask(chat("s", "colours", "yes", "red"), run="run-a")
        proxy.ask(chat("s", "colours", "yes", "blue"), run="run-b", mode="replay")
        out = rewind("diff", *order)[1]
        assert f"    - a  {sides[0]}\n    + b  {sides[1]}\n" in out
        assert "The first 3 of 4 messages are the same." in out

    def test_refused_calls_are_compared_as_long_as_they_are_pending(self, rewind: Run, proxy: Proxy) -> None:
        """Each is kept until it is answered."""
        proxy.ask(chat("s", "red"), run="run-a", mode="replay")
        proxy.ask(chat("s", "blue"), run="run-b", mode="replay")
        with (
            Store.open(proxy.settings.store, settings_digest="0") as store,
            Log.open(proxy.settings.store) as log,
            Recorder(store, log) as recorder,
        ):
            for each in proxy.refusals:
                assert each is not None
                recorder.keep(each)
        out = rewind("diff", "run-a", "run-b")[1]
        assert "  at $.messages[1].parts[0].text\n    - a  red\n    + b  blue\n" in out

    def test_requests_that_nobody_kept(self, rewind: Run, proxy: Proxy) -> None:
        """It says that there is nothing to compare."""
        proxy.ask(chat("s", "red"), run="run-a", mode="replay")
        proxy.ask(chat("s", "blue"), run="run-b", mode="replay")
        status, out = rewind("diff", "run-a", "run-b")
        assert status == 1
        assert "there is nothing to compare" in out
        assert as_json(rewind("diff", "run-a", "run-b", "--json")[1])["differences"] is None

    def test_an_unknown_run_is_said(self, rewind: Run, proxy: Proxy) -> None:
        """In one line."""
        proxy.ask(chat("s", "one"))
        status, out = rewind("diff", "run-a", "nobody")
        assert (status, out.count("\n")) == (1, 1)
