"""The structure of the code base: which part may import which, and what the folders hold (DESIGN §3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ADDON = ROOT / "addon"
PACKAGE = ADDON / "rewind_proxy"
MODULES = sorted(PACKAGE.rglob("*.py"))

SETTINGS = {"settings", "settings_table", "settings_lists", "settings_values"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "canonical": {"errors"},
    "wire": {"canonical", "errors"},
    "presets": {"canonical", "errors"},
    "store": {"canonical", "errors"},
    "faults": set(),
    "visible": set(),
    "pace": {"faults", "wire"},
    **{name: (SETTINGS - {name}) | {"faults", "presets", "canonical", "errors"} for name in SETTINGS},
    "matching": {"store", "wire", "presets", "canonical", "errors", "settings", "visible"},
    "explain": {"matching", "store", "wire", "canonical", "errors", "visible"},
    "decisions": {"faults", "matching", "store", "canonical"},
    "faulted": {"decisions", "faults", "matching", "wire"},
    "engine": {
        "decisions",
        "faulted",
        "faults",
        "matching",
        "store",
        "wire",
        "canonical",
        "errors",
        "settings",
    },
    "recording": {"engine", "matching", "store", "wire", "canonical", "errors", "settings"},
    "porting": {
        "recording",
        "decisions",
        "matching",
        "store",
        "wire",
        "canonical",
        "errors",
        "settings",
    },
    "report": {"store", "canonical", "errors"},
    "journal": {"report", "store", "canonical"},
    "handover": {"canonical", "errors"},
    "pytest_plugin": {"handover"},
}
"""For each part, the others that it may import. `cli` and `mitm` may import all of these, not each other."""
ENDS = ("cli", "mitm")
ONLY_IN = {
    "mitmproxy": "mitm",
    "lmdb": "store",
    "typer": "cli",
    "pytest": "pytest_plugin",
    "rich": "cli",
    "rfc8785": "canonical",
    "yaml": "porting",
    "genai_prices": "cli",
}
"""Third parties that a single part knows."""

TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "addon", "tests", "scripts", "certs"}
BUILT = {"dist", "build", "__pycache__"}
MOST_LINES = 350
# Written so that this file does not match.
UNFINISHED = re.compile(r"\b(?:TOD[O]|FIXM[E]|NotImplementedErro[r])\b")
LEFT_OUT = re.compile(r"\b(?:pytest\.|mark\.)(?:ski[p]|xfai[l]|importorski[p])")


def name_of(module: Path) -> str:
    """How a test run names a module."""
    return module.relative_to(PACKAGE).as_posix()


def part_of(module: Path) -> str:
    """The part a module belongs to: its folder in the package, or itself."""
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(module: Path) -> Iterator[str]:
    """Every name that a module imports, in full, wherever in it; relative imports keep their dots."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (f"{start}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_arrows_point_one_way(module: Path) -> None:
    """A module imports only from parts below its own, and always by full name."""
    part = part_of(module)
    allowed = set(MAY_IMPORT) if part in ENDS else MAY_IMPORT.get(part, set())
    for name in imports(module):
        assert not name.startswith("."), f"relative import {name}"
        package, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if package == "rewind_proxy" and target not in {"", "__version__", part}:
            assert target in allowed, f"{part} imports {name}"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_one_part_alone_knows_each_third_party(module: Path) -> None:
    """mitmproxy, LMDB and the command's libraries are each imported in one folder only."""
    for name in imports(module):
        home = ONLY_IN.get(name.partition(".")[0], part_of(module))
        assert part_of(module) == home, f"{name} is imported outside {home}"


def test_every_part_has_its_arrows() -> None:
    """No part of the package is missing from the table above."""
    assert {part_of(module) for module in MODULES} == {*MAY_IMPORT, *ENDS, "__init__"}


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_fits_on_a_few_screens(module: Path) -> None:
    """A module that grows past the limit usually holds two ideas."""
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_says_what_it_is(module: Path) -> None:
    """Every module that holds anything begins with a docstring."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)


def test_nothing_is_left_unfinished() -> None:
    """No module and no test carries a note of work to do, and no test is left out."""
    for folder, patterns in ((ADDON, [UNFINISHED]), (ROOT / "tests", [UNFINISHED, LEFT_OUT])):
        for file in folder.rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            for pattern in patterns:
                found = pattern.search(text)
                assert not found, f"{file.relative_to(ROOT)}: {found and found.group()}"


def test_the_top_level_is_as_the_owner_fixed_it() -> None:
    """Beside dot-files and what builds leave behind there are the named files and folders, and no others."""
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - BUILT
    assert {name for name in found if not name.endswith(".egg-info")} == TOP_LEVEL


def test_beside_the_script_stands_exactly_one_package() -> None:
    """`mitmdump -s addon/rewind.py` puts this folder on the path: nothing else may be importable from it."""
    found = {path.name for path in ADDON.iterdir()} - BUILT
    assert {name for name in found if not name.endswith(".egg-info")} == {"rewind.py", "rewind_proxy"}


def test_the_script_holds_nothing_of_its_own() -> None:
    """It is loaded under another name, so a class in it would be a second one: it only sets `addons`."""
    tree = ast.parse((ADDON / "rewind.py").read_text(encoding="utf-8"))
    assert [type(node) for node in tree.body[1:]] == [ast.ImportFrom, ast.Assign]
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("script", sorted((ROOT / "scripts").glob("[!_.]*")), ids=lambda path: path.name)
def test_a_script_is_short_and_strict(script: Path) -> None:
    """A script stops at its first error, says what it does, and is executable."""
    lines = script.read_text(encoding="utf-8").splitlines()
    assert script.stat().st_mode & 0o111
    assert lines[1].startswith(("# ", '"""'))
    if lines[0] == "#!/usr/bin/env bash":
        assert "set -euo pipefail" in lines
        assert len(lines) <= 30
