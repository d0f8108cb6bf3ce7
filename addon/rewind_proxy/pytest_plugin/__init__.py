"""The pytest plugin: a test's model calls go through Rewind, and a refused one fails the test.

    @pytest.mark.rewind                      # or the fixture `rewind`; settings as keywords: tail_n=4
    def test_the_agent(): ...

The environment is set for the test alone, so it works with any client that is made in it, and any subprocess.
The proxy is a child (`cli/plugin_proxy.py`), in whatever interpreter has Rewind: this module imports the
standard library and pytest alone, and costs nothing where it is not used.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any, cast

import pytest

from rewind_proxy.pytest_plugin.session import Proxy, Report, Rewind, RewindWarning, wrong_in
from rewind_proxy.pytest_plugin.surroundings import environment

_MODES = ("auto", "replay", "record", "passthrough", "none", "new_episodes", "all")
_NAME_LENGTH = 160
_NOT_IN_A_NAME = re.compile(r"[^ -9;-~]")
"""A user name for a proxy has no colon and no control characters; beyond ASCII clients differ."""
_ALLOW_EMPTY = "allow_empty"
_LATE, _CALLS, _MODES_SEEN = "rewind_late", "rewind_calls", "rewind_modes"
_COUNTED = ("exact", "normalised", "alias", "recorded", "passed", "refused", "failed")
"""As the line has them that `rewind run` ends with."""


class _Plugin:
    """The proxies of this process: one for each set of settings that tests ask for, so one nearly always."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._proxies: dict[str, Proxy] = {}
        self._failed: dict[str, str] = {}
        """Why there is no proxy for some settings: each of their tests says so, and none starts it again."""
        self._sessions: dict[str, int] = {}
        self.late: list[str] = []
        self.calls: Counter[str] = Counter()
        self.modes: set[str] = set()

    def begin(self, item: pytest.Item) -> Rewind:
        """The session of a test. Fails the test when its proxy does not start."""
        marked = [mark.kwargs for mark in item.iter_markers("rewind")]
        wanted = {name: value for kwargs in reversed(marked) for name, value in kwargs.items()}
        name = wanted.pop("session", None) or session_name(item.nodeid)
        allow_empty = bool(wanted.pop(_ALLOW_EMPTY, False))
        again = self._sessions[name] = self._sessions.get(name, 0) + 1
        # A test that runs again starts from its first recording again.
        session = name if again == 1 else f"{name} #{again}"
        return Rewind(session, self._proxy(wanted), allow_empty=allow_empty)

    def _proxy(self, settings: dict[str, Any]) -> Proxy:
        option = self._config.getoption
        if (mode := option("rewind_mode")) is not None:
            settings.setdefault("mode", mode)
        if (store := option("rewind_store")) is not None:
            settings.setdefault("store", str(self._config.invocation_params.dir / store))
        key = json.dumps(settings, sort_keys=True, default=str)
        if key in self._failed:
            pytest.fail(self._failed[key], pytrace=False)
        if key not in self._proxies:
            python = option("rewind_python") or self._config.getini("rewind_python") or sys.executable
            try:
                self._proxies[key] = Proxy(python, json.loads(key), self._config.rootpath)
            except pytest.fail.Exception as error:
                self._failed[key] = str(error.msg)
                raise
            for warning in self._proxies[key].warnings:
                warnings.warn(RewindWarning(warning), stacklevel=2)
        return self._proxies[key]

    def end(self) -> None:
        """End all proxies, and keep what went wrong after its test had ended."""
        for proxy in self._proxies.values():
            report = proxy.end()
            wrong = "rewind: the proxy ended without a report" if report is None else wrong_in(report)
            self.late += filter(None, [wrong])
            self.count(proxy.mode, report or {})
        self._proxies.clear()

    def count(self, mode: str, report: Report) -> None:
        """Add the calls of a report to those that pytest tells of at its end."""
        if report.get("steps"):
            self.modes.add(mode)
            self.calls.update({name: report[name] for name in ("steps", *_COUNTED)})

    def told(self) -> str:
        """`rewind · replay · 3 calls: 2 exact, 1 normalised`; empty when no model was called."""
        if not (steps := self.calls["steps"]):
            return ""
        counts = ", ".join(f"{self.calls[name]:,} {name}" for name in _COUNTED if self.calls[name])
        return f"rewind · {'/'.join(sorted(self.modes))} · {steps:,} call{'s' * (steps != 1)}: {counts}"


_PLUGIN: pytest.StashKey[_Plugin] = pytest.StashKey()
_CURRENT: pytest.StashKey[Rewind] = pytest.StashKey()


def session_name(nodeid: str) -> str:
    """The session of a test: its id, which no path of the machine is in, as a user name can be written."""
    name = nodeid.replace("::", "/")
    plain = _NOT_IN_A_NAME.sub("?", name)[:_NAME_LENGTH]
    # What was changed or cut still names one test.
    return plain if plain == name else f"{plain}~{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("rewind", "model calls, recorded and replayed")
    group.addoption(
        "--rewind-mode",
        choices=_MODES,
        help="What to do with a model call (default: as rewind.toml says, auto, or replay in CI).",
    )
    group.addoption("--rewind-store", metavar="DIR", help="Folder of the recordings (.rewind/store).")
    group.addoption(
        "--rewind-python", metavar="PATH", help="The interpreter that has Rewind, when it is not this one."
    )
    parser.addini("rewind_python", "The interpreter that has Rewind, when it is not pytest's own.")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "rewind(session=…, allow_empty=…, **settings): the test's model calls go through Rewind, under these "
        "settings of rewind.toml.",
    )
    config.stash[_PLUGIN] = _Plugin(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test uses the fixture, before any other: they may make its clients."""
    if isinstance(item, pytest.Function) and item.get_closest_marker("rewind") is not None:
        if "rewind" in item.fixturenames:
            item.fixturenames.remove("rewind")
        item.fixturenames.insert(0, "rewind")


@pytest.fixture
def rewind(request: pytest.FixtureRequest) -> Iterator[Rewind]:
    """The test's session: its model calls go through Rewind, and a refused one fails the test."""
    item = cast("pytest.Item", request.node)
    plugin = item.config.stash[_PLUGIN]
    current = plugin.begin(item)
    item.stash[_CURRENT] = current
    with environment(current.changes):
        yield current
        wrong = current.finish()
        plugin.count(current.mode, current.total)
    if wrong:
        pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A refused call fails its test, whatever the test made of it."""
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise
    except BaseException as error:
        if text := _new_misses(item):
            if _is_skip(error):
                pytest.fail(text, pytrace=False)
            item.add_report_section("call", "rewind", text)
        raise
    if text := _new_misses(item):
        pytest.fail(text, pytrace=False)
    return result


def _is_skip(error: BaseException) -> bool:
    unittest = sys.modules.get("unittest")
    return isinstance(error, pytest.skip.Exception) or (
        unittest is not None and isinstance(error, unittest.SkipTest)
    )


def _new_misses(item: pytest.Item) -> str:
    current = item.stash.get(_CURRENT, None)
    return "" if current is None else current.new_misses()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the proxies; a call that was refused or lost after its test had ended fails the session."""
    plugin = session.config.stash[_PLUGIN]
    plugin.end()
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        # Of pytest-xdist: its main process tells.
        output |= {_LATE: plugin.late, _CALLS: dict(plugin.calls), _MODES_SEEN: sorted(plugin.modes)}
    if plugin.late and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of pytest-xdist says at its end; one that crashed says nothing."""
    plugin, output = node.config.stash[_PLUGIN], getattr(node, "workeroutput", {})
    plugin.late += output.get(_LATE, [])
    plugin.calls.update(output.get(_CALLS, {}))
    plugin.modes.update(output.get(_MODES_SEEN, []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how the calls were answered, and name those refused or lost after their test had ended."""
    plugin = config.stash[_PLUGIN]
    if (told := plugin.told()) and terminalreporter.verbosity >= 0:
        terminalreporter.write_line(told)
    if late := plugin.late:
        terminalreporter.section("refused or lost after the test had ended", red=True)
        for text in late:
            terminalreporter.write_line(text)
