"""The README is true: its commands are run, its tables compared with the code, its verbs and flags looked up.

`codex` is a stand-in here, and the provider is the fake one; tests/clients_npm has the real clients.
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from ruamel.yaml import YAML
from typer.core import TyperGroup

from rewind_proxy import settings
from rewind_proxy.cli.app import make_app
from rewind_proxy.cli.provider import FakeProvider
from rewind_proxy.report import FAILED_EXIT, REFUSED_EXIT, Report
from support.children import Finished, environment, run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#]+)\)")
SETTINGS_TABLE = re.compile(r"<!-- settings -->\n(.*)<!-- /settings -->\n", re.DOTALL)
OUTCOME = re.compile(r"rewind · (\w+) · [\d,]+ calls?: (.*)")
COUNT = re.compile(r"[\d,.]+k? ([a-z]+)")
ID = re.compile(r"\b[0-9a-f]{12}\b")
VALUE = re.compile(r"(at \$|- recorded |\+ live ).*|\b[0-9a-f]{12}\b")

STAND_IN = """#!{python}
import http.client, json, os, ssl, sys
from urllib.parse import urlsplit

proxy = urlsplit(os.environ["HTTPS_PROXY"])
context = ssl.create_default_context()
connection = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=context, timeout=30)
connection.set_tunnel("api.openai.com")
body = json.dumps({{"model": "gpt-5.1-codex", "input": sys.argv[-1]}})
for _ in range(6):  # as Codex asks for its catalogues
    connection.request("GET", "/v1/models")
    connection.getresponse().read()
connection.request("POST", "/v1/responses", body, {{"content-type": "application/json"}})
response = connection.getresponse()
answer = json.loads(response.read())
sys.exit(response.status != 200)
"""
REWIND = """#!{python}
from rewind_proxy.cli.app import main
main()
"""
MITMDUMP = """#!{python}
from mitmproxy.tools.main import mitmdump
mitmdump()
"""
PYTEST = """#!{python}
import sys, pytest
sys.exit(pytest.main(["-p", "rewind_proxy.pytest_plugin", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""
INSTALLS = """#!{python}
import sys
sys.exit(not set(sys.argv[1:]) & {{"install"}})
"""
COMMANDS = {
    "codex": STAND_IN,
    "rewind": REWIND,
    "mitmdump": MITMDUMP,
    "pytest": PYTEST,
    "pip": INSTALLS,
    "npm": INSTALLS,
}


@dataclass(frozen=True)
class Shown:
    """A command of the README and what it is shown to print."""

    command: str
    output: str


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [match[2] for match in BLOCK.finditer(README) if match[1] == language]


def shown() -> list[Shown]:
    """Every command of the `console` blocks, in order."""
    found = []
    for block in blocks("console"):
        for part in block.removeprefix("$ ").split("\n$ "):
            command, _, output = part.partition("\n")
            found.append(Shown(command, output))
    return found


@dataclass
class Desk:
    """A place to type the commands of the README."""

    folder: Path
    variables: Mapping[str, str]

    def type(self, script: str, **more: str) -> Finished:
        return run(["bash", "-c", script], {**self.variables, **more}, self.folder)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder with the script and the README's test; its commands are on PATH, `codex` as a stand-in."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in COMMANDS.items():
        (commands / name).write_text(text.format(python=sys.executable), encoding="utf-8")
        (commands / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "addon").symlink_to(ROOT / "addon")
    (test,) = blocks("python")
    (work / "test_codex.py").write_text(test, encoding="utf-8")
    variables = environment(tmp_path)
    return Desk(work, variables | {"PATH": f"{commands}:{variables['PATH']}"})


def outcome(text: str) -> tuple[str, list[str]]:
    """Mode and kinds of counts of the last summary in a text: `("replay", ["refused"])`.

    A hit is a hit here: real agents put times and folders into their prompts, the stand-in does not.
    """
    found = OUTCOME.findall(text)
    assert found, f"no summary in:\n{text}"
    mode, counts = found[-1]
    kinds = COUNT.findall(counts.partition(" · ")[0])
    return mode, ["hit" if kind in ("exact", "normalised") else kind for kind in kinds]


def test_the_first_screen_shows_what_to_type() -> None:
    """The two commands, Codex recorded and replayed, and the addon in CI come first, in this order."""
    first = README[: README.index("\n## ")]
    places = [first.index(word) for word in ("scripts/demo", "scripts/test", "codex exec", "mitmdump -s")]
    assert places == sorted(places)


def test_every_command_does_what_is_shown(desk: Desk) -> None:
    """The console commands, typed one after another, end in the outcome that the README prints."""
    with FakeProvider() as provider:
        recorded = ""
        for each in shown():
            command = ID.sub(recorded, each.command)
            finished = desk.type(command, REWIND_UPSTREAM=provider.upstream)
            if each.output:
                assert outcome(finished.stderr) == outcome(each.output), finished.output
            refused = "refused" in each.output
            # `doctor` looks at this machine, whose state is not the README's matter.
            if command != "rewind doctor":
                assert finished.status == (REFUSED_EXIT if refused else 0), finished.output
            recorded = recorded or re.findall(r"[0-9a-f]{12}", desk.type("rewind ls --json").stdout)[0]


def test_a_miss_looks_as_shown(desk: Desk) -> None:
    """The explained miss of the README is what is printed, line by line, but for ids, paths and values."""
    with FakeProvider() as provider:
        for each in shown():
            finished = desk.type(each.command, REWIND_UPSTREAM=provider.upstream)
            if "refused" in each.output:
                break
    assert VALUE.sub(r"\1…", finished.stderr).strip() == VALUE.sub(r"\1…", each.output).strip()


def test_the_addon_in_ci_does_what_is_said(desk: Desk) -> None:
    """The CI block replays with status 0, and ends with 4 when the prompt was never recorded."""
    (block,) = blocks("bash")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    script = block.replace("8080", str(port))
    prompt = shlex.quote("Say hello to the whole team in one line.")
    with FakeProvider() as provider:
        recorded = desk.type(f"rewind run -- codex exec {prompt}", REWIND_UPSTREAM=provider.upstream)
    assert recorded.status == 0, recorded.output
    replayed = desk.type(script)
    assert replayed.status == 0, replayed.output
    assert "1 exact" in replayed.output
    refused = desk.type(script.replace("hello", "goodbye").replace("&& codex", "; codex"))
    assert refused.status == REFUSED_EXIT, refused.output


def test_the_workflow_passes_without_a_provider(desk: Desk, tmp_path: Path) -> None:
    """Recorded on a desk and committed, every step of the workflow ends well and leaves its reports."""
    (block,) = blocks("yaml")
    workflow = YAML(typ="safe").load(block)
    (job,) = workflow["jobs"].values()
    steps = [step["run"] for step in job["steps"] if "run" in step]
    (desk.folder / settings.CONFIG_NAME).write_text('cassettes = "cassettes"\n', encoding="utf-8")
    with FakeProvider() as provider:
        for step in steps:
            if step.startswith(("rewind run", "pytest")):
                recorded = desk.type(step, REWIND_UPSTREAM=provider.upstream)
                assert recorded.status == 0, recorded.output
    checkout = Desk(tmp_path / "checkout", desk.variables)
    left_out = shutil.ignore_patterns(".rewind", "reports", "__pycache__")
    shutil.copytree(desk.folder, checkout.folder, symlinks=True, ignore=left_out)
    summary = tmp_path / "summary.md"
    for step in steps:
        ended = checkout.type(step, **job["env"], CI="true", GITHUB_STEP_SUMMARY=str(summary))
        assert ended.status == 0, f"{step}\n{ended.output}"
    assert {file.name for file in (checkout.folder / "reports").iterdir()} == {"rewind.xml", "pytest.xml"}
    assert "1 exact" in summary.read_text(encoding="utf-8")
    (upload,) = (step["with"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert upload["path"] == "reports"


def test_the_scripts_exist() -> None:
    """Each script that a shell block starts with is there and can be executed."""
    for block in blocks("sh"):
        for line in block.splitlines():
            script = ROOT / line.split()[0]
            assert script.stat().st_mode & 0o111, line


def test_the_settings_are_those_of_the_code() -> None:
    """The reference of the README is the table of settings, word for word."""
    found = SETTINGS_TABLE.search(README)
    assert found
    assert found[1] == settings.reference_table()


def test_the_example_of_a_configuration_is_accepted(tmp_path: Path) -> None:
    """The `rewind.toml` of the README is read, and each of its keys takes effect."""
    (block,) = blocks("toml")
    (tmp_path / settings.CONFIG_NAME).write_text(block, encoding="utf-8")
    loaded = settings.load(environ={}, cwd=tmp_path)
    for key in tomllib.loads(block):
        assert getattr(loaded, key) != settings.Settings.model_fields[key].default


def test_every_verb_and_flag_exists() -> None:
    """Every `rewind VERB --flag` in the text is one that the command has, and no verb is left out."""
    group = typer.main.get_command(make_app())
    assert isinstance(group, TyperGroup)
    text = "\n".join(match[1] for match in INLINE.finditer(README)) + "\n".join(blocks("console"))
    named = set()
    for line in text.splitlines():
        for verb, rest in re.findall(r"(?:^|[$( ])rewind ([a-z][a-z-]*)([^`()]*)", line):
            assert verb in group.commands, line
            named.add(verb)
            known = {word for each in group.commands[verb].params for word in each.opts}
            for flag in re.findall(r"--[a-z][a-z-]+", rest.partition(" -- ")[0]):
                assert flag in known, f"{verb} has no {flag}"
    assert named == set(group.commands)


def test_the_report_is_described_in_full() -> None:
    """Each member of the report, and each status of our own, is in the README."""
    words = set(INLINE.findall(README))
    assert set(Report("auto").to_json(cassettes=0, child_exit=0)) <= words
    for status in (REFUSED_EXIT, FAILED_EXIT):
        assert f"\n| {status} | " in README


def test_every_link_leads_somewhere() -> None:
    """The files that the README links to exist."""
    for target in LINK.findall(README):
        assert target.startswith("https://") or (ROOT / target).is_file(), target
