"""The real agents, run without their users' accounts: a fresh HOME, a made-up key, nothing to ask a person.

What each needs was measured with the versions that scripts/test-clients installs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rewind_proxy.canonical.model import JsonObject
from support.runs import Place

NO_KEY = "no-key-at-all"
"""The agents only check that there is one."""
_MODEL = "m1"
_OPENAI = "https://api.openai.com/v1"
"""For the agents that are told their provider."""


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
    in_background: JsonObject = field(default_factory=dict)
    """What in a call of its shell tool lets the command run on while the model goes on."""
    fakes_time: bool = True
    """Whether `faketime` reaches it: no static binary."""
    asks: int = 1
    """How many requests a prompt makes before one is answered: besides its own for a title or a model."""
    titles: int = 0
    """How many requests of a session are for a title, with the prompt alone."""
    tells_folders: bool = True
    """Whether its requests tell where it keeps long outputs, also with a home that does not look like one."""


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


def _gemini(commands: Path, _place: Place, prompt: str) -> Invocation:
    """`gemini -p`: in a folder that nobody has trusted it ends at once, and asks before each tool."""
    argv = (str(commands / "gemini"), "--skip-trust", "--yolo", "-p", prompt)
    return Invocation(argv, {"GEMINI_API_KEY": NO_KEY})


def _qwen(commands: Path, _place: Place, prompt: str) -> Invocation:
    """`qwen -p`, with a provider that speaks as OpenAI does."""
    argv = (str(commands / "qwen"), "--yolo", "-p", prompt)
    return Invocation(argv, {"OPENAI_API_KEY": NO_KEY, "OPENAI_BASE_URL": _OPENAI, "OPENAI_MODEL": _MODEL})


def _opencode(commands: Path, place: Place, prompt: str) -> Invocation:
    """`opencode run`: the provider must be in its settings, with its models.

    Instructions for all projects are all that tells where the home is, when it is nowhere that homes are.
    """
    instructions = place.home / ".config" / "opencode" / "AGENTS.md"
    instructions.parent.mkdir(parents=True)
    instructions.write_text("Be brief.\n")
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": _OPENAI, "apiKey": NO_KEY},
        "models": {_MODEL: {}},
    }
    settings = {"provider": {"own": provider}, "permission": "allow", "autoupdate": False}
    argv = (str(commands / "opencode"), "run", "--model", f"own/{_MODEL}", prompt)
    return Invocation(argv, {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)})


def _copilot(commands: Path, _place: Place, prompt: str) -> Invocation:
    """`copilot -p`: with a provider of the user's own it asks for no login."""
    argv = (str(commands / "copilot"), "--allow-all-tools", "--allow-all-paths", "-p", prompt)
    return Invocation(
        argv,
        {
            "COPILOT_PROVIDER_BASE_URL": _OPENAI,
            "COPILOT_PROVIDER_API_KEY": NO_KEY,
            "COPILOT_MODEL": _MODEL,
        },
    )


CODEX = Agent("codex", _codex, fakes_time=False)
CODEX_WITH_FUNCTIONS = Agent("codex-with-functions", _codex_with_functions, fakes_time=False)
CLAUDE = Agent("claude", _claude, {"run_in_background": True})
GEMINI = Agent("gemini", _gemini, {"is_background": True}, asks=2)
QWEN = Agent("qwen", _qwen, {"is_background": True}, tells_folders=False)
OPENCODE = Agent("opencode", _opencode, asks=2, titles=1)
COPILOT = Agent("copilot", _copilot, {"mode": "async"})
AGENTS = (CODEX, CLAUDE, GEMINI, QWEN, OPENCODE, COPILOT)


def npm_commands() -> Path:
    """Where scripts/test-clients has installed the agents."""
    return Path(os.environ["CLIENTS_FOLDER"]) / "node_modules" / ".bin"
