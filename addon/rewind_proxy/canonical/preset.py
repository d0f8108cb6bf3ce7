"""What is known of one agent, as data: how it is recognised, and what in its requests is its machine's.

What an agent says of its machine (platform, shell, time zone, user name) is environment, so a session
recorded on a laptop replays on a CI machine; what it says of the project (branch, files, instructions) is
meaning. `presets/` holds one file per agent. A preset is chosen from what is stored with a recording, the
redacted request and user agent, so a live request and its stored copy get the same one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rewind_proxy.canonical.model import CanonicalRequest, Message, Volatile

Where = Literal["any", "system", "user", "assistant", "tool_result", "tools"]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _compiled(pattern: str, *, groups: tuple[int, ...]) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a FutureWarning for `[[` is a mistake in a file of ours
            compiled = re.compile(pattern)
    except (re.error, FutureWarning) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    if compiled.groups not in groups:
        raise ValueError(f"{pattern!r} has {compiled.groups} groups, not {' or '.join(map(str, groups))}")
    if compiled.search(""):
        raise ValueError(f"{pattern!r} matches the empty text")
    return compiled


class Finder(_Data):
    """A pattern, and a text that stands in all it finds.

    Looking for the hint first costs a tenth of a search for the pattern, and most texts hold none.
    """

    hint: str = Field(min_length=3)
    pattern: re.Pattern[str]

    def matches(self, text: str) -> Iterable[re.Match[str]]:
        """Where the pattern stands in the text."""
        return self.pattern.finditer(text) if self.hint in text else ()


class PresetRule(Finder):
    """What `pattern` finds at one of the places `where` is noise: its group, or all of it without one.

    It is shown as `preset:<id>:<name>`, which `scrub_off` takes; `name` is the kind of its slots too.
    """

    name: str = Field(pattern="^[a-z][a-z-]*$")
    where: tuple[Where, ...] = ("any",)

    @field_validator("pattern", mode="before")
    @classmethod
    def _compile(cls, value: str) -> re.Pattern[str]:
        return _compiled(value, groups=(0, 1))


class Cue(Finder):
    """Words of an agent's own that name a folder, which is group 1 of `pattern`."""

    @field_validator("pattern", mode="before")
    @classmethod
    def _compile(cls, value: str) -> re.Pattern[str]:
        return _compiled(value, groups=(1,))


class Recognition(_Data):
    """How an agent's requests are told from others."""

    user_agent: re.Pattern[str] | None = None
    """Found in the user agent. It goes before the rest: one agent may quote the prompt of another."""
    system_starts: tuple[str, ...] = ()
    """A block of a system message starts so."""
    user_starts: tuple[str, ...] = ()
    """A block of the first user message starts so."""
    tools: frozenset[str] = frozenset()
    """All these tools are offered."""

    @field_validator("user_agent", mode="before")
    @classmethod
    def _compile(cls, value: str) -> re.Pattern[str]:
        return _compiled(value, groups=(0,))

    def by_shape(self, written: _Written) -> bool:
        """Whether a request is written as the agent writes them, whoever sends it."""
        return (
            bool(self.tools and self.tools <= written.tools)
            or any(text.startswith(self.system_starts) for text in written.system)
            or any(text.startswith(self.user_starts) for text in written.user)
        )


class _Written(NamedTuple):
    """What of a request tells its agent."""

    tools: frozenset[str]
    """The names of the tools that are offered."""
    system: tuple[str, ...]
    """The blocks of system messages."""
    user: tuple[str, ...]
    """The blocks of the first user message."""


def _written(request: CanonicalRequest) -> _Written:
    first = next((message for message in request.messages if message.role == "user"), None)
    return _Written(
        frozenset([str(tool.get("name")) for tool in request.tools]),
        tuple(text for message in request.messages if message.role == "system" for text in _texts(message)),
        tuple(_texts(first)) if first else (),
    )


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(text := part.get("text"), str):
            yield text


class Cues(_Data):
    """What folders the agent names, beyond the cues that all share."""

    cwd: tuple[Cue, ...] = ()
    home: tuple[Cue, ...] = ()
    root: tuple[Cue, ...] = ()
    """Folders that are the same place on every machine and neither the project nor the home."""


class Preset(_Data):
    """One agent. `version` grows with every change that could change a fingerprint."""

    id: str = Field(pattern="^[a-z][a-z-]*$")
    version: int = Field(ge=1)
    recognise: Recognition
    volatile: Volatile = Volatile()
    """What the agent changes on every request without meaning anything by it, beyond what its wire does."""
    scrub: tuple[PresetRule, ...] = ()
    cues: Cues = Cues()

    @field_validator("scrub")
    @classmethod
    def _distinct(cls, rules: tuple[PresetRule, ...]) -> tuple[PresetRule, ...]:
        if len({rule.name for rule in rules}) < len(rules):
            raise ValueError("two rules have one name")
        return rules

    @property
    def name(self) -> str:
        """`id@version`, as it is kept with a cassette."""
        return f"{self.id}@{self.version}"

    def rule_id(self, rule: PresetRule) -> str:
        """`preset:<id>:<name>`."""
        return f"preset:{self.id}:{rule.name}"


def recognise(presets: Iterable[Preset], user_agent: str, request: CanonicalRequest) -> Preset | None:
    """The preset of the agent that sent a redacted request: by its user agent, else by its shape."""
    known = tuple(presets)
    for preset in known:
        pattern = preset.recognise.user_agent
        if pattern is not None and pattern.search(user_agent):
            return preset
    written = _written(request)
    return next((preset for preset in known if preset.recognise.by_shape(written)), None)
