"""The presets of known agents: one TOML file each, read and checked once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from rewind_proxy.canonical.model import CanonicalRequest
from rewind_proxy.canonical.preset import Preset, recognise

AUTO = "auto"
"""The word that has the preset chosen from each request."""
NONE = "none"
"""The word that has none applied."""


@cache
def presets() -> Mapping[str, Preset]:
    """All presets by id, in order. Raises pydantic's `ValidationError` for a file that is none."""
    folder = files(__name__)
    found = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda e: e.name
    )
    known: dict[str, Preset] = {}
    for entry in found:
        preset = Preset.model_validate(tomllib.loads(entry.read_text(encoding="utf-8")))
        if f"{preset.id}.toml" != entry.name:
            raise ValueError(f"the preset in {entry.name} calls itself {preset.id}")
        known[preset.id] = preset
    return MappingProxyType(known)


def choices() -> tuple[str, ...]:
    """What the setting `preset` takes."""
    return (AUTO, NONE, *presets())


def scrub_rules() -> tuple[str, ...]:
    """The ids of the scrub rules of all presets."""
    return tuple(preset.rule_id(rule) for preset in presets().values() for rule in preset.scrub)


def in_force(choice: str) -> tuple[str, ...]:
    """The names (`id@version`) of the presets that requests may get under a value of the setting."""
    chosen: Iterable[Preset] = presets().values()
    return tuple(preset.name for preset in chosen if choice in (AUTO, preset.id))


def preset_for(choice: str, user_agent: str, request: CanonicalRequest) -> Preset | None:
    """The preset of a redacted request under a value of the setting; None when no agent is recognised.

    `user_agent` is as stored: a live request and its stored copy must get the same preset.
    """
    if choice == AUTO:
        return recognise(presets().values(), user_agent, request)
    return presets().get(choice)
