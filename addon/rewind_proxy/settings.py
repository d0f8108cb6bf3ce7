"""Every setting of Rewind and the one way to read it (DESIGN §12).

Precedence: flag, mitmproxy option `rewind_<field>`, variable `REWIND_<FIELD>`, `rewind.toml`, default.
Whatever is unknown or badly written fails, in every source and also where a stronger source would win.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from rewind_proxy.canonical.model import ScrubRule
from rewind_proxy.canonical.scrub import OWN_RULE
from rewind_proxy.errors import SettingsError
from rewind_proxy.settings_table import DEFAULT_STORE, FIELDS, VCR_WORDS, Field, Settings, reference_table
from rewind_proxy.settings_values import BadValueError, Origin, did_you_mean, is_true_word, quote

__all__ = [
    "CONFIG_NAME",
    "DEFAULT_STORE",
    "FIELDS",
    "OTHER_VARIABLES",
    "VCR_WORDS",
    "Field",
    "Resolved",
    "Settings",
    "find_config",
    "load",
    "reference_table",
    "resolve",
    "unknown_option",
    "with_keys",
]

CONFIG_NAME = "rewind.toml"
OTHER_VARIABLES: frozenset[str] = frozenset()
"""Variables named `REWIND_…` that are no settings, but are read elsewhere."""

_NOTHING: Mapping[str, object] = MappingProxyType({})
_FOLDERS = frozenset({"store", "cassettes"})
_BY_NAME = {field.name: field for field in FIELDS}
_BY_OPTION = {field.option: field for field in FIELDS}
_BY_VARIABLE = {field.variable: field for field in FIELDS}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with the place each value came from, for `doctor`.

    `sources` maps every field to `flag --mode`, `option rewind_mode`, `variable REWIND_MODE`, the path of the
    `rewind.toml`, `variable CI` or `default`; `file` is the `rewind.toml` that was found.
    """

    settings: Settings
    sources: Mapping[str, str]
    file: Path | None


FlagsAre = Literal["flag", "marker argument"]
_LIVE_MODES = ("auto", "record")
"""Those that record what goes live."""


def load(
    *,
    flags: Mapping[str, object] = _NOTHING,
    options: Mapping[str, object] = _NOTHING,
    environ: Mapping[str, str],
    cwd: Path,
    flags_are: FlagsAre = "flag",
) -> Settings:
    """The settings in force; arguments and errors as for `resolve`."""
    return resolve(flags=flags, options=options, environ=environ, cwd=cwd, flags_are=flags_are).settings


def resolve(
    *,
    flags: Mapping[str, object] = _NOTHING,
    options: Mapping[str, object] = _NOTHING,
    environ: Mapping[str, str],
    cwd: Path,
    flags_are: FlagsAre = "flag",
) -> Resolved:
    """Read every source and say which one won.

    `flags` is keyed by field name, None meaning not given; `flags_are` what errors call them. `options` is
    keyed by option name (`rewind_mode`), an empty text or list meaning not set; an empty variable is not set.
    Raises `SettingsError` naming the source.
    """
    file = find_config(cwd)
    values: dict[str, object] = {}
    sources = dict.fromkeys(_BY_NAME, "default")
    if is_true_word(environ.get("CI", "")):
        values["mode"] = "replay"
        sources["mode"] = "variable CI"
    weakest_first: tuple[tuple[Origin, Iterable[tuple[Field, object, str]]], ...] = (
        ("file", () if file is None else _from_file(file)),
        ("variable", _from_environ(environ)),
        ("option", _from_options(options)),
        ("flag", _from_flags(flags, flags_are)),
    )
    origins: dict[str, Origin] = {}
    own_rules: set[str] = set()
    for origin, given in weakest_first:
        for field, value, source in given:
            values[field.name] = _parsed(field, value, origin, source)
            sources[field.name] = str(file) if origin == "file" else source
            origins[field.name] = origin
            own_rules.update(_own_rules(values))
    values.setdefault("store", Path(DEFAULT_STORE))
    for name in _FOLDERS & values.keys():
        # A path in a file is meant from where the file stands; one typed in a shell from where it was typed.
        of_file = origins.get(name, "file") == "file"
        base = file.parent if file is not None and of_file else cwd.absolute()
        values[name] = base / cast("Path", values[name])
    if values.get("from_step") and values.get("mode", "auto") not in _LIVE_MODES:
        raise SettingsError(
            f"{sources['from_step']}: the calls from step {values['from_step']} on are to go live, "
            f"which mode {values['mode']} ({sources['mode']}) does not allow: add --mode auto"
        )
    key = ": scrub_off" if origins.get("scrub_off") == "file" else ""
    _check_own_rules(values, own_rules, sources["scrub_off"] + key)
    return Resolved(Settings.model_validate(values), MappingProxyType(sources), file)


def with_keys(settings: Settings, keys: Mapping[str, object], place: str) -> Settings:
    """`settings` with the keys of a `rewind.toml` that stand at `place` over them. Raises `SettingsError`."""
    values: dict[str, object] = {}
    for key, value in keys.items():
        if key not in _BY_NAME:
            raise SettingsError(_unknown(f"{place}: key {key}", key, _BY_NAME, "Keys"))
        values[key] = _parsed(_BY_NAME[key], value, "file", f"{place}: {key}")
    for name in _FOLDERS & values.keys():
        values[name] = settings.store.parent / cast("Path", values[name])
    _check_own_rules(values, {*_own_rules(dict(settings)), *_own_rules(values)}, f"{place}: scrub_off")
    return Settings.model_validate(dict(settings) | values)


def _own_rules(values: Mapping[str, object]) -> Iterable[str]:
    """The ids of the project's own scrub rules."""
    return (OWN_RULE + rule.name for rule in cast("Iterable[ScrubRule]", values.get("scrub", ())))


def _check_own_rules(values: Mapping[str, object], own: set[str], place: str) -> None:
    """Raise `SettingsError` for a rule that is off and is a project's own, but none of any source."""
    for rule in cast("Iterable[str]", values.get("scrub_off", ())):
        if rule.startswith(OWN_RULE) and rule not in own:
            known = f"they are {', '.join(sorted(own))}" if own else "`scrub` has none"
            guess = did_you_mean(rule, sorted(own))
            raise SettingsError(f"{place}: {quote(rule)} is not a rule of your own{guess} ({known})")


def find_config(cwd: Path) -> Path | None:
    """The nearest `rewind.toml` in `cwd` or above it."""
    start = cwd.absolute()
    for folder in (start, *start.parents):
        candidate = folder / CONFIG_NAME
        if candidate.is_file():
            return candidate
    return None


def unknown_option(name: str) -> str:
    """What to say of a `rewind_…` option that does not exist: the nearest, and the choices."""
    return _unknown(f"option {name}", name, _BY_OPTION, "Options")


def _unknown(what: str, name: str, choices: Iterable[str], title: str) -> str:
    known = list(choices)
    guess = did_you_mean(name, known) or "."
    return f"{what} is not a setting of Rewind{guess} {title}: {', '.join(known)}"


def _parsed(field: Field, value: object, origin: Origin, source: str) -> object:
    try:
        return field.kind.parse(value, origin)
    except BadValueError as error:
        raise SettingsError(f"{source}: {error}") from None


def _from_file(file: Path) -> Iterable[tuple[Field, object, str]]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        document = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(f"{file}: not UTF-8 (at line {line})") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: not TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{file}: nested too deeply") from None
    for key, value in document.items():
        if key not in _BY_NAME:
            raise SettingsError(_unknown(f"{file}: key {key}", key, _BY_NAME, "Keys"))
        yield _BY_NAME[key], value, f"{file}: {key}"


def _from_environ(environ: Mapping[str, str]) -> Iterable[tuple[Field, object, str]]:
    for name, value in environ.items():
        if not name.startswith("REWIND_") or name in OTHER_VARIABLES:
            continue
        if name not in _BY_VARIABLE:
            raise SettingsError(_unknown(f"variable {name}", name, _BY_VARIABLE, "Variables"))
        if value.strip():
            yield _BY_VARIABLE[name], value, f"variable {name}"


def _from_options(options: Mapping[str, object]) -> Iterable[tuple[Field, object, str]]:
    for name, value in options.items():
        if name not in _BY_OPTION:
            raise SettingsError(unknown_option(name))
        if _is_set(value):
            yield _BY_OPTION[name], value, f"option {name}"


def _is_set(value: object) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(_is_set(item) for item in value)
    return value is not None and value != ""


def _from_flags(flags: Mapping[str, object], flags_are: FlagsAre) -> Iterable[tuple[Field, object, str]]:
    for name, value in flags.items():
        if name not in _BY_NAME:
            raise SettingsError(_unknown(f"{flags_are} {name}", name, _BY_NAME, f"{flags_are.capitalize()}s"))
        if value is not None and value != () and value != []:
            spelt = _BY_NAME[name].flag if flags_are == "flag" else name
            yield _BY_NAME[name], value, f"{flags_are} {spelt}"
