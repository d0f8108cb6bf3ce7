"""The real agents, run without their users' accounts: a fresh HOME, a made-up key, nothing to ask a person.

What each needs was measured with Codex 0.171.0 and Claude Code 2.1.332.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.runs import Place

NO_KEY = "no-key-at-all"
"""The agents only check that there is one."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How to run an agent on one prompt."""

    argv: tuple[str, ...]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and how it is run."""

    name: str
    invoke: Callable[[Path, Place, str], Invocation]
    """From the folder of npm's commands, the place to work, and the prompt."""


def _codex(commands: Path, place: Place, prompt: str, *options: str) -> Invocation:
    """`codex exec`: only `CODEX_API_KEY` counts, and the folder of `CODEX_HOME` must exist.

    Standard output holds the last message alone; the rest goes to standard error, a refusal too. The sandbox
    is off: it needs kernel features that containers often lack.
    """
    home = place.home / ".codex"
    home.mkdir(exist_ok=True)
    argv = (
        str(commands / "codex"),
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "danger-full-access",
        *options,
        prompt,
    )
    return Invocation(argv, {"CODEX_HOME": str(home), "CODEX_API_KEY": NO_KEY})


def _claude(commands: Path, place: Place, prompt: str) -> Invocation:
    """`claude -p`: `--dangerously-skip-permissions` is refused for root, `--allowedTools` is not.

    The prompt stands after `--`, else `--allowedTools`, which takes several values, swallows it.
    """
    argv = (str(commands / "claude"), "-p", "--allowedTools", "Bash", "--", prompt)
    return Invocation(argv, {"ANTHROPIC_API_KEY": NO_KEY})


def _codex_with_functions(commands: Path, place: Place, prompt: str) -> Invocation:
    """With this model Codex offers its tools as plain functions, not in one that takes JavaScript."""
    return _codex(commands, place, prompt, "--model", "gpt-5.1-codex")


CODEX = Agent("codex", _codex)
CODEX_WITH_FUNCTIONS = Agent("codex-with-functions", _codex_with_functions)
CLAUDE = Agent("claude", _claude)


def npm_commands() -> Path:
    """Where scripts/test-clients has installed the agents."""
    return Path(os.environ["CLIENTS_FOLDER"]) / "node_modules" / ".bin"
