"""The table of settings: the model that holds them, and for each its kind and its one line of help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic import Field as ModelField

from rewind_proxy import faults
from rewind_proxy import settings_lists as lists
from rewind_proxy import settings_values as values
from rewind_proxy.canonical.model import DEFAULT_IGNORE, MatchSettings, Mode, ScrubRule, Wire
from rewind_proxy.canonical.redact import REDACTION_RULES
from rewind_proxy.canonical.scrub import OWN_RULE, SCRUB_RULES
from rewind_proxy.presets import choices, in_force, scrub_rules
from rewind_proxy.settings_values import Kind

DEFAULT_STORE = ".rewind/store"
VCR_WORDS = MappingProxyType({"none": "replay", "new_episodes": "auto", "all": "record"})


class Settings(BaseModel):
    """The settings in force, parsed and checked. `store` is absolute."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "auto"
    store: Path
    session: str = ""
    hosts: dict[str, str] = ModelField(default_factory=dict)
    upstream: dict[str, str] = ModelField(default_factory=dict, repr=False)
    unknown: Literal["tunnel", "refuse"] = "tunnel"
    max_body: int = ModelField(default=64 * 2**20, gt=0)
    ignore: tuple[str, ...] = DEFAULT_IGNORE
    tail_n: int = ModelField(default=0, ge=0)
    scrub: tuple[ScrubRule, ...] = ()
    scrub_off: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    paths: Literal["roots", "all", "off"] = "roots"
    repeat: Literal["sequence", "first", "last"] = "sequence"
    exhausted: Literal["last", "miss"] = "last"
    match: Literal["normalised", "exact"] = "normalised"
    rebase: bool = True
    pace: Literal["instant", "recorded"] | float = "instant"
    """A number is a factor of the recorded times."""
    socket: Literal["fallback", "serve", "pass"] = "fallback"
    record_errors: bool = False
    preset: str = "auto"
    redact_defaults: bool = True
    redact_patterns: tuple[str, ...] = ModelField(default=(), repr=False)
    redact_off: tuple[str, ...] = ()
    redact_answers: bool = False
    mask_flow: bool = True
    review_threshold: float = ModelField(default=0.85, ge=0, le=1)
    fault: str = ""
    from_step: int = ModelField(default=0, ge=0)
    cassettes: Path | None = None
    """Absolute, as `store` is."""

    @field_validator("store", "cassettes")
    @classmethod
    def _absolute(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_absolute():
            raise ValueError("a folder is an absolute path here; `load` makes it one")
        return folder

    @property
    def match_settings(self) -> MatchSettings:
        """The part that decides the normalised fingerprint."""
        return MatchSettings(
            ignore=self.ignore,
            tail_n=self.tail_n,
            scrub=self.scrub,
            scrub_off=self.scrub_off,
            roots=self.roots,
            paths=self.paths,
            preset=self.preset,
            presets=in_force(self.preset),
        )


@dataclass(frozen=True, slots=True)
class Field:
    """One setting and its names. `help` is one line, for option list, reference and `--help` alike."""

    name: str
    kind: Kind
    help: str

    @property
    def option(self) -> str:
        """The mitmproxy option. Bind scalars as `str` with `""` for unset, lists as `Sequence[str]`."""
        return f"rewind_{self.name}"

    @property
    def variable(self) -> str:
        return f"REWIND_{self.name.upper()}"

    @property
    def key(self) -> str:
        """The key in `rewind.toml`."""
        return self.name

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def is_list(self) -> bool:
        return self.kind.is_list

    @property
    def default_text(self) -> str:
        """The default as a person reads it; empty for none."""
        if self.name in _DEFAULT_TEXTS:
            return _DEFAULT_TEXTS[self.name]
        default = Settings.model_fields[self.name].get_default(call_default_factory=True)
        if isinstance(default, bool):
            return str(default).lower()
        return ", ".join(default) if isinstance(default, tuple | dict) else str(default)


_DEFAULT_TEXTS = {
    "mode": "auto; replay in CI",
    "store": DEFAULT_STORE,
    "max_body": "64MiB",
    "tail_n": "0 (all)",
    "from_step": "0 (never)",
    "cassettes": "",
}

FIELDS: tuple[Field, ...] = (
    Field(
        "mode",
        values.one_of(*get_args(Mode), synonyms=VCR_WORDS),
        "What to do with a model call: replay or record it (auto), only replay, only record, or only log.",
    ),
    Field("store", values.folder(), "Folder of the recordings; its log stands beside it."),
    Field(
        "session", values.plain_text(), "Name of the session that calls without one of their own belong to."
    ),
    Field(
        "hosts",
        lists.host_map(values.one_of(*get_args(Wire)).read),
        "More hosts to decode, as host=wire format (localhost:4000=chat_completions).",
    ),
    Field(
        "upstream",
        lists.host_map(lists.base_url),
        "Where a host's live calls go instead, as host=base URL; fingerprints keep the host.",
    ),
    Field("unknown", values.one_of("tunnel", "refuse"), "What happens to hosts that Rewind does not know."),
    Field("max_body", values.byte_size(), "Largest decoded request body that is read as JSON."),
    Field(
        "ignore", lists.names(), "Parameters left out of the normalised fingerprint; replaces the default."
    ),
    Field("tail_n", values.count(), "Match on the last N messages only; 0 is all of them."),
    Field(
        "scrub",
        lists.scrub_rules(),
        "Noise to leave out when matching, as { name, pattern, where }.",
    ),
    Field(
        "scrub_off",
        lists.rule_ids(
            "scrub",
            (*SCRUB_RULES, *scrub_rules()),
            f"they are {', '.join(SCRUB_RULES)}, preset:AGENT:NAME, and your own as {OWN_RULE}NAME",
            own=OWN_RULE,
        ),
        "Ids of scrub rules to switch off (RS101).",
    ),
    Field(
        "roots", lists.names(commas="variable"), "More folders that count as roots of the project in paths."
    ),
    Field(
        "paths",
        values.one_of("roots", "all", "off"),
        "Which folders are noise: the named roots, every absolute folder, or none.",
    ),
    Field(
        "repeat",
        values.one_of("sequence", "first", "last"),
        "Which of several recorded answers a session gets: each in its turn, the first, or the last.",
    ),
    Field(
        "exhausted",
        values.one_of("last", "miss"),
        "After the last recorded answer of a sequence: give it again, or miss.",
    ),
    Field(
        "match",
        values.one_of("normalised", "exact"),
        "Weakest tier that may answer.",
    ),
    Field("rebase", values.yes_or_no(), "Put this run's folders, ids and times into replayed answers."),
    Field(
        "pace",
        values.word_or_factor("instant", "recorded"),
        "Pace of replayed answers: at once, as recorded, or a factor of its times (0.5 is twice as fast).",
    ),
    Field(
        "socket",
        values.one_of("fallback", "serve", "pass"),
        "Model WebSockets: send the client back to POST (426), serve them, or pass them on.",
    ),
    Field("record_errors", values.yes_or_no(), "Keep whole error answers too, and replay them."),
    Field(
        "preset",
        values.one_of(*choices()),
        "What is known of the agent that asks; auto recognises it by its requests.",
    ),
    Field("redact_defaults", values.yes_or_no(), "Use the built-in redaction rules."),
    Field("redact_patterns", lists.patterns(), "Regular expressions for more credentials to redact."),
    Field(
        "redact_off",
        lists.rule_ids("redaction", REDACTION_RULES, "`rewind canon FILE` shows the rules at work"),
        "Ids of redaction rules to switch off (RW112).",
    ),
    Field("redact_answers", values.yes_or_no(), "Redact the recorded answers too."),
    Field(
        "mask_flow", values.yes_or_no(), "Mask credentials of finished flows before other add-ons see them."
    ),
    Field("review_threshold", values.fraction(), "Similarity from which a recording is a review candidate."),
    Field(
        "fault",
        values.checked_text(faults.parse),
        "Faults to make on purpose, as turn=3:429; turn=2:cut-after=5; turn=1:stall=10.",
    ),
    Field(
        "from_step",
        values.count(),
        "Replay the model calls before the Nth of a session, then go live from there; 0 is never.",
    ),
    Field(
        "cassettes",
        values.folder(),
        "Folder of recordings as text, to commit: read into the store at start, what is recorded goes there.",
    ),
)


def reference_table() -> str:
    """The reference of the README, in Markdown: key, what it holds, default, meaning."""
    lines = ["| setting | holds | default | meaning |", "|---|---|---|---|"]
    for field in FIELDS:
        default = f"`{field.default_text}`" if field.default_text else "–"
        lines.append(f"| `{field.key}` | {field.kind.label} | {default} | {field.help} |")
    return "\n".join(lines) + "\n"
