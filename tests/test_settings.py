"""Settings: one table, five sources, and no misspelling that passes unnoticed (DESIGN §12)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from pydantic import ValidationError

from rewind_proxy.canonical import scrub
from rewind_proxy.canonical.model import DEFAULT_IGNORE, ScrubRule
from rewind_proxy.errors import SettingsError
from rewind_proxy.presets import in_force, scrub_rules
from rewind_proxy.settings import (
    FIELDS,
    OTHER_VARIABLES,
    Settings,
    find_config,
    load,
    reference_table,
    resolve,
    unknown_option,
    with_keys,
)

NOTHING: Mapping[str, object] = MappingProxyType({})
NAMES = [field.name for field in FIELDS]
SCALARS = {
    # name: (text as typed, what it becomes)
    "mode": ("record", "record"),
    "session": ("nightly build", "nightly build"),
    "unknown": ("refuse", "refuse"),
    "max_body": ("512KiB", 512 * 1024),
    "tail_n": ("4", 4),
    "paths": ("all", "all"),
    "repeat": ("first", "first"),
    "exhausted": ("miss", "miss"),
    "match": ("exact", "exact"),
    "rebase": ("off", False),
    "pace": ("Recorded", "recorded"),
    "socket": ("pass", "pass"),
    "record_errors": ("yes", True),
    "preset": ("codex", "codex"),
    "redact_defaults": ("no", False),
    "redact_answers": ("1", True),
    "mask_flow": ("false", False),
    "review_threshold": ("0.5", 0.5),
    "fault": ("turn=3:429; turn=1:stall=2", "turn=3:429; turn=1:stall=2"),
    "from_step": ("7", 7),
}
LISTS = {
    # name: (text of a variable, the same repeated for flag and option, TOML, what it becomes)
    "hosts": (
        "llm.corp.example=anthropic,localhost:4000=chat_completions",
        ["llm.corp.example=anthropic", "localhost:4000=chat_completions"],
        'hosts = { "llm.corp.example" = "anthropic", "localhost:4000" = "chat_completions" }',
        {"llm.corp.example": "anthropic", "localhost:4000": "chat_completions"},
    ),
    "upstream": (
        "api.openai.com=http://127.0.0.1:9000",
        ["api.openai.com=http://127.0.0.1:9000"],
        'upstream = ["api.openai.com=http://127.0.0.1:9000"]',
        {"api.openai.com": "http://127.0.0.1:9000"},
    ),
    "ignore": ("model, seed", ["model", "seed"], 'ignore = ["model", "seed"]', ("model", "seed")),
    "scrub": (
        '[{"name": "build", "pattern": "build \\\\d{1,9}"}]',
        ['{"name": "build", "pattern": "build \\\\d{1,9}"}'],
        "[[scrub]]\nname = 'build'\npattern = 'build \\d{1,9}'",
        (ScrubRule(name="build", pattern=r"build \d{1,9}"),),
    ),
    "scrub_off": ("RS101,RS102", ["RS101", "RS102"], 'scrub_off = ["RS101", "RS102"]', ("RS101", "RS102")),
    "roots": ("/data,/srv", ["/data", "/srv"], 'roots = ["/data", "/srv"]', ("/data", "/srv")),
    "redact_patterns": (
        '["corp-[a-z]{8,9}"]',
        ["corp-[a-z]{8,9}"],
        'redact_patterns = ["corp-[a-z]{8,9}"]',
        ("corp-[a-z]{8,9}",),
    ),
    "redact_off": ("RW112", ["RW112"], 'redact_off = ["RW112"]', ("RW112",)),
}


def write_config(folder: Path, text: str) -> Path:
    file = folder / "rewind.toml"
    file.write_text(text, encoding="utf-8")
    return file


def from_variables(tmp_path: Path, **variables: str) -> Settings:
    return load(environ=variables, cwd=tmp_path)


def refusal(
    tmp_path: Path,
    *,
    flags: Mapping[str, object] = NOTHING,
    options: Mapping[str, object] = NOTHING,
    environ: Mapping[str, object] = NOTHING,
) -> str:
    variables = {name: str(value) for name, value in environ.items()}
    with pytest.raises(SettingsError) as caught:
        load(flags=flags, options=options, environ=variables, cwd=tmp_path)
    return str(caught.value)


class TestTable:
    def test_every_field_of_the_model_is_in_the_table_once(self) -> None:
        """The table and the model name the same settings."""
        assert sorted(NAMES) == sorted(Settings.model_fields)

    def test_names_are_derived(self) -> None:
        """One field name gives the option, the variable, the key and the flag."""
        field = next(field for field in FIELDS if field.name == "tail_n")
        names = (field.option, field.variable, field.key, field.flag)
        assert names == ("rewind_tail_n", "REWIND_TAIL_N", "tail_n", "--tail-n")

    def test_help_is_one_line(self) -> None:
        """Help fits the option list of mitmproxy, a table cell and `--help`."""
        assert [field.name for field in FIELDS if not re.fullmatch(r"[^\n|]{10,100}\.", field.help)] == []

    def test_reference_lists_every_setting_with_its_default(self) -> None:
        """The reference table of the README has one row for each setting."""
        rows = reference_table().splitlines()[2:]
        assert [row.split("`")[1] for row in rows] == NAMES
        assert "| `mode` | auto / replay / record / passthrough | `auto; replay in CI` |" in rows[0]
        assert all(row.replace(r"\|", "").count("|") == 5 for row in rows)

    def test_every_setting_is_covered_below(self) -> None:
        """A new setting needs a row in the tables of this file."""
        assert {*SCALARS, *LISTS, "store", "cassettes"} == set(NAMES)


class TestDefaults:
    def test_defaults_are_those_of_the_design(self, tmp_path: Path) -> None:
        """With no source at all the table of DESIGN §12 holds."""
        settings = load(environ={}, cwd=tmp_path)
        assert settings == Settings(
            mode="auto",
            store=tmp_path / ".rewind/store",
            session="",
            hosts={},
            upstream={},
            unknown="tunnel",
            max_body=64 * 1024 * 1024,
            ignore=DEFAULT_IGNORE,
            tail_n=0,
            paths="roots",
            repeat="sequence",
            exhausted="last",
            match="normalised",
            rebase=True,
            pace="instant",
            socket="fallback",
            record_errors=False,
            preset="auto",
            redact_defaults=True,
            redact_answers=False,
            mask_flow=True,
            review_threshold=0.85,
        )

    @pytest.mark.parametrize(("sources", "named"), [({"CI": "1"}, "variable CI"), ({}, "flag --mode")])
    def test_a_fork_goes_live(self, tmp_path: Path, sources: dict[str, str], named: str) -> None:
        """`from_step` in a mode that may not go live is an error that names who set the mode."""
        flags = {"from_step": "3"} | ({} if sources else {"mode": "replay"})
        with pytest.raises(SettingsError, match=re.escape(f"({named})")):
            load(flags=flags, environ=sources, cwd=tmp_path)
        assert load(flags=flags | {"mode": "auto"}, environ=sources, cwd=tmp_path).from_step == 3

    @pytest.mark.parametrize("word", ["true", "1", "yes", "TRUE", "woodpecker"])
    def test_ci_replays(self, tmp_path: Path, word: str) -> None:
        """In CI the default mode never calls a model."""
        assert from_variables(tmp_path, CI=word).mode == "replay"

    @pytest.mark.parametrize("word", ["", " ", "false", "0", "no", "off", "False"])
    def test_a_false_ci_is_no_ci(self, tmp_path: Path, word: str) -> None:
        """`CI` set to a word for no leaves the default mode alone."""
        assert from_variables(tmp_path, CI=word).mode == "auto"

    def test_settings_are_frozen(self, tmp_path: Path) -> None:
        """Nobody changes a setting after it was read."""
        settings = load(environ={}, cwd=tmp_path)
        with pytest.raises(ValidationError):
            settings.mode = "record"  # type: ignore[misc]

    def test_match_settings_are_the_part_that_decides_the_fingerprint(self, tmp_path: Path) -> None:
        """The match settings carry over every field of theirs."""
        write_config(
            tmp_path,
            'ignore = ["seed"]\ntail_n = 2\nscrub_off = ["RS101"]\nroots = ["/d"]\npaths = "off"\n'
            'preset = "codex"',
        )
        match = load(environ={}, cwd=tmp_path).match_settings
        assert match.model_dump() == {
            "ignore": ("seed",),
            "tail_n": 2,
            "scrub": (),
            "scrub_off": ("RS101",),
            "roots": ("/d",),
            "paths": "off",
            "preset": "codex",
            "presets": in_force("codex"),
        }


class TestSources:
    @pytest.mark.parametrize("name", SCALARS)
    def test_a_scalar_reads_the_same_from_every_source(self, tmp_path: Path, name: str) -> None:
        """Flag, option, variable and key give one value."""
        text, expected = SCALARS[name]
        by_flag = load(flags={name: text}, environ={}, cwd=tmp_path)
        by_option = load(options={f"rewind_{name}": text}, environ={}, cwd=tmp_path)
        by_variable = from_variables(tmp_path, **{f"REWIND_{name.upper()}": text})
        write_config(tmp_path, f"{name} = {json.dumps(text)}")
        by_key = load(environ={}, cwd=tmp_path)
        values = [getattr(settings, name) for settings in (by_flag, by_option, by_variable, by_key)]
        assert values == [expected] * 4
        assert type(values[3]) is type(expected)

    @pytest.mark.parametrize("name", LISTS)
    def test_a_list_reads_the_same_from_every_source(self, tmp_path: Path, name: str) -> None:
        """Repeated flags and options, a variable and a key give one list."""
        text, repeated, toml, expected = LISTS[name]
        by_flag = load(flags={name: tuple(repeated)}, environ={}, cwd=tmp_path)
        by_option = load(options={f"rewind_{name}": repeated}, environ={}, cwd=tmp_path)
        by_variable = from_variables(tmp_path, **{f"REWIND_{name.upper()}": text})
        write_config(tmp_path, toml)
        by_key = load(environ={}, cwd=tmp_path)
        values = [getattr(settings, name) for settings in (by_flag, by_option, by_variable, by_key)]
        assert values == [expected] * 4

    @pytest.mark.parametrize(
        ("toml", "name", "expected"),
        [
            ("tail_n = 3", "tail_n", 3),
            ("rebase = false", "rebase", False),
            ("max_body = 1000", "max_body", 1000),
            ("review_threshold = 1", "review_threshold", 1.0),
            ('[hosts]\n"A.Example" = "gemini"', "hosts", {"a.example": "gemini"}),
            (
                '[upstream]\n"a.example" = "https://b.example/v1/"',
                "upstream",
                {"a.example": "https://b.example/v1"},
            ),
            ('ignore = ["a,b"]', "ignore", ("a,b",)),
            ("ignore = []", "ignore", ()),
        ],
    )
    def test_toml_keeps_its_own_types(self, tmp_path: Path, toml: str, name: str, expected: object) -> None:
        """Numbers, truth values, tables and lists of TOML are read as they are."""
        write_config(tmp_path, toml)
        assert getattr(load(environ={}, cwd=tmp_path), name) == expected

    def test_precedence(self, tmp_path: Path) -> None:
        """Flag beats option beats variable beats file beats CI."""
        write_config(tmp_path, 'mode = "record"')
        environ = {"CI": "true"}
        modes = [load(environ=environ, cwd=tmp_path).mode]
        environ["REWIND_MODE"] = "passthrough"
        modes.append(load(environ=environ, cwd=tmp_path).mode)
        modes.append(load(options={"rewind_mode": "auto"}, environ=environ, cwd=tmp_path).mode)
        flag = load(flags={"mode": "replay"}, options={"rewind_mode": "auto"}, environ=environ, cwd=tmp_path)
        modes.append(flag.mode)
        assert modes == ["record", "passthrough", "auto", "replay"]

    def test_a_list_replaces_as_a_whole(self, tmp_path: Path) -> None:
        """A project's ignore list does not add to the default, nor a flag to the file."""
        write_config(tmp_path, 'ignore = ["seed", "user"]')
        assert load(environ={}, cwd=tmp_path).ignore == ("seed", "user")
        assert load(flags={"ignore": ["model"]}, environ={}, cwd=tmp_path).ignore == ("model",)

    def test_what_is_not_given_does_not_count(self, tmp_path: Path) -> None:
        """None and no repetition of a flag, an unset option and an empty variable leave the file's value."""
        write_config(tmp_path, 'mode = "record"\nignore = ["seed"]')
        settings = load(
            flags={"mode": None, "ignore": ()},
            options={"rewind_mode": "", "rewind_ignore": [], "rewind_scrub_off": [""]},
            environ={"REWIND_MODE": "", "REWIND_IGNORE": " "},
            cwd=tmp_path,
        )
        assert (settings.mode, settings.ignore, settings.scrub_off) == ("record", ("seed",), ())

    def test_an_empty_list_can_be_said(self, tmp_path: Path) -> None:
        """`[]` empties a list from a variable, an option and a flag."""
        assert from_variables(tmp_path, REWIND_IGNORE="[]").ignore == ()
        assert load(options={"rewind_ignore": ["[]"]}, environ={}, cwd=tmp_path).ignore == ()
        assert load(flags={"ignore": ["[]"]}, environ={}, cwd=tmp_path).ignore == ()

    @pytest.mark.parametrize(
        "text",
        ['{"a.example": "gemini"}', '["a.example=gemini"]', '[{"a.example": "gemini"}]', "a.example=gemini,"],
    )
    def test_hosts_in_a_variable_may_be_json(self, tmp_path: Path, text: str) -> None:
        """A variable holds pairs with commas, or JSON."""
        assert from_variables(tmp_path, REWIND_HOSTS=text).hosts == {"a.example": "gemini"}

    def test_a_pattern_that_looks_like_json_is_a_pattern(self, tmp_path: Path) -> None:
        """A character class given as a flag is not taken for a list."""
        assert load(
            flags={"redact_patterns": ["[0]", "[a-f]x{1,3}"]}, environ={}, cwd=tmp_path
        ).redact_patterns == (
            "[0]",
            "[a-f]x{1,3}",
        )

    def test_an_ipv6_host(self, tmp_path: Path) -> None:
        """A gateway on an IPv6 address is a host too."""
        assert from_variables(tmp_path, REWIND_HOSTS="[::1]:4000=gemini").hosts == {"[::1]:4000": "gemini"}

    @pytest.mark.parametrize(
        ("word", "mode"), [("none", "replay"), ("new_episodes", "auto"), ("all", "record")]
    )
    def test_vcr_words(self, tmp_path: Path, word: str, mode: str) -> None:
        """The record modes of VCR are accepted."""
        assert from_variables(tmp_path, REWIND_MODE=word).mode == mode

    @pytest.mark.parametrize(
        ("text", "size"),
        [("1", 1), ("64MiB", 2**26), ("64 mib", 2**26), ("2kb", 2000), ("1GiB", 2**30), ("10 B", 10)],
    )
    def test_sizes(self, tmp_path: Path, text: str, size: int) -> None:
        """A size is a number of bytes, or has a unit."""
        assert from_variables(tmp_path, REWIND_MAX_BODY=text).max_body == size

    def test_sources_are_told(self, tmp_path: Path) -> None:
        """Every setting can say where its value came from."""
        file = write_config(tmp_path, "tail_n = 1\nrebase = false")
        resolved = resolve(
            flags={"session": "s"},
            options={"rewind_repeat": "first"},
            environ={"CI": "1", "REWIND_TAIL_N": "2"},
            cwd=tmp_path,
        )
        told = {
            name: resolved.sources[name]
            for name in ("session", "repeat", "tail_n", "rebase", "mode", "match")
        }
        assert told == {
            "session": "flag --session",
            "repeat": "option rewind_repeat",
            "tail_n": "variable REWIND_TAIL_N",
            "rebase": str(file),
            "mode": "variable CI",
            "match": "default",
        }
        assert resolved.file == file
        assert set(resolved.sources) == set(NAMES)


class TestRules:
    """What is switched off is a rule that there is, wherever it is said."""

    @pytest.mark.parametrize(
        ("name", "rule", "said"),
        [
            ("scrub_off", "RS999", '"RS999" is not a scrub rule (they are RS001, '),
            ("scrub_off", "rs101", '"rs101" is not a scrub rule; did you mean RS101? (they are RS001, '),
            ("scrub_off", "preset:codex:nothing", "is not a scrub rule; did you mean preset:codex:"),
            ("scrub_off", "scrub:build", '"scrub:build" is not a rule of your own (`scrub` has none)'),
            ("redact_off", "RW999", '"RW999" is not a redaction rule (`rewind canon'),
            ("redact_off", "rw112", '"rw112" is not a redaction rule; did you mean RW112?'),
            ("redact_off", "RS101", '"RS101" is not a redaction rule'),
        ],
    )
    def test_an_unknown_one_is_named_in_every_source(
        self, tmp_path: Path, name: str, rule: str, said: str
    ) -> None:
        """Flag, option, variable and key say that there is no such rule."""
        told = [
            refusal(tmp_path, flags={name: [rule]}),
            refusal(tmp_path, options={f"rewind_{name}": [rule]}),
            refusal(tmp_path, environ={f"REWIND_{name.upper()}": rule}),
        ]
        file = write_config(tmp_path, f'{name} = ["{rule}"]')
        told.append(refusal(tmp_path))
        assert [said in text for text in told] == [True] * 4
        places = (
            f"flag --{name.replace('_', '-')}",
            f"option rewind_{name}",
            f"variable REWIND_{name.upper()}",
        )
        for text, place in zip(told, (*places, str(file)), strict=True):
            assert text.startswith(f"{place}: ")

    def test_one_of_the_project_may_be_off_where_another_source_has_it(self, tmp_path: Path) -> None:
        """A rule in `rewind.toml` can be switched off for one call, also where a flag replaces it."""
        write_config(tmp_path, "[[scrub]]\nname = 'build'\npattern = 'build [0-9]+'")
        off = {"scrub_off": ["scrub:build"]}
        assert load(flags=off, environ={}, cwd=tmp_path).scrub_off == ("scrub:build",)
        other = {**off, "scrub": ['{"name": "job", "pattern": "job [0-9]+"}']}
        assert load(flags=other, environ={}, cwd=tmp_path).scrub_off == ("scrub:build",)
        said = refusal(tmp_path, flags={"scrub_off": ["scrub:biuld"]})
        assert "is not a rule of your own; did you mean scrub:build? (they are scrub:build)" in said

    def test_every_rule_of_the_code_is_known(self) -> None:
        """The list of built-in scrub rules is that of the ids in the modules that find them."""
        folder = Path(scrub.__file__).parent
        sources = (file.read_text(encoding="utf-8") for file in folder.rglob("*.py"))
        ids = {rule for source in sources for rule in re.findall(r'"(RS[0-9]{3})"', source)}
        assert sorted(ids) == sorted(scrub.SCRUB_RULES)

    def test_rules_of_presets_are_known(self, tmp_path: Path) -> None:
        """A rule of a preset goes by the id that it is shown under."""
        (first, *_) = scrub_rules()
        assert load(flags={"scrub_off": [first]}, environ={}, cwd=tmp_path).scrub_off == (first,)

    def test_a_table_of_cases_is_held_to_them_too(self, tmp_path: Path) -> None:
        """Settings of one case are checked as those of a project are."""
        settings = load(environ={}, cwd=tmp_path)
        with pytest.raises(SettingsError, match=r"^line 3: scrub_off: .*RS999"):
            with_keys(settings, {"scrub_off": ["RS999"]}, "line 3")
        with pytest.raises(SettingsError, match=r"^line 3: scrub_off: .*scrub:build"):
            with_keys(settings, {"scrub_off": ["scrub:build"]}, "line 3")


class TestFile:
    @pytest.mark.parametrize(
        ("toml", "said"),
        [
            ("ignore = 3", 'ignore: write a list, as ["…", "…"]'),
            ('ignore = "seed"', 'ignore: write a list, as ["…", "…"], not one text'),
            ("hosts = 3", 'hosts: write a list, as ["host=value"], or a table, as { "host" = "value" }'),
            ("scrub = true", 'scrub: write a list, as [{ name = "build", pattern = "…" }]'),
        ],
    )
    def test_what_is_no_list_is_told_what_to_write(self, tmp_path: Path, toml: str, said: str) -> None:
        """A value that is none of what a list setting takes shows how one is written."""
        file = write_config(tmp_path, toml)
        assert refusal(tmp_path) == f"{file}: {said}"

    def test_the_nearest_file_upwards_counts(self, tmp_path: Path) -> None:
        """A working directory deep in the project finds the project's file, and the inner one first."""
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        outer = write_config(tmp_path, "tail_n = 1")
        assert find_config(deep) == outer
        inner = write_config(tmp_path / "a", "tail_n = 2")
        assert find_config(deep) == inner
        assert load(environ={}, cwd=deep).tail_n == 2

    def test_a_folder_of_that_name_is_no_file(self, tmp_path: Path) -> None:
        """Only a file can be the configuration."""
        (tmp_path / "inner" / "rewind.toml").mkdir(parents=True)
        outer = write_config(tmp_path, "")
        assert find_config(tmp_path / "inner") == outer

    def test_the_default_store_stands_beside_the_file(self, tmp_path: Path) -> None:
        """One project has one store, wherever in it a command is run."""
        deep = tmp_path / "a"
        deep.mkdir()
        write_config(tmp_path, "")
        assert load(environ={}, cwd=deep).store == tmp_path / ".rewind/store"

    def test_a_relative_store_is_relative_to_where_it_was_written(self, tmp_path: Path) -> None:
        """In the file from the file's folder, from flag and variable from the working directory."""
        deep = tmp_path / "a"
        deep.mkdir()
        write_config(tmp_path, 'store = "tapes"')
        assert load(environ={}, cwd=deep).store == tmp_path / "tapes"
        assert load(flags={"store": "mine"}, environ={}, cwd=deep).store == deep / "mine"
        assert load(flags={"store": Path("mine")}, environ={}, cwd=deep).store == deep / "mine"
        assert load(environ={"REWIND_STORE": "mine"}, cwd=deep).store == deep / "mine"

    def test_the_cassettes_stand_where_the_store_would(self, tmp_path: Path) -> None:
        """In the file from the file's folder, from a flag from the working directory."""
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        write_config(tmp_path, 'cassettes = "tapes"')
        assert load(environ={}, cwd=deep).cassettes == tmp_path / "tapes"
        assert load(flags={"cassettes": "mine"}, environ={}, cwd=deep).cassettes == deep / "mine"

    def test_an_absolute_store_and_a_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Absolute paths stay, `~` is the home folder."""
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
        assert from_variables(tmp_path, REWIND_STORE=str(tmp_path / "x")).store == tmp_path / "x"
        assert from_variables(tmp_path, REWIND_STORE="~/tapes").store == tmp_path / "home" / "tapes"

    def test_a_byte_order_mark_is_tolerated(self, tmp_path: Path) -> None:
        """A file saved by a Windows editor reads the same."""
        (tmp_path / "rewind.toml").write_bytes(b"\xef\xbb\xbftail_n = 2\r\n")
        assert load(environ={}, cwd=tmp_path).tail_n == 2

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b'mode = "auto"\nmode = "auto"\n', "line 2"),
            (b"\n\nmode = \n", "line 3"),
            (b'session = "\xff"\n', "not UTF-8 (at line 1)"),
            (b"ignore = " + b"[" * 5000, "nested too deeply"),
        ],
    )
    def test_a_broken_file_is_named_with_its_line(self, tmp_path: Path, content: bytes, said: str) -> None:
        """What is no TOML fails with file and line."""
        file = tmp_path / "rewind.toml"
        file.write_bytes(content)
        message = refusal(tmp_path)
        assert message.startswith(f"{file}: ")
        assert said in message

    def test_an_unknown_key_names_the_nearest(self, tmp_path: Path) -> None:
        """A misspelt key fails with file, key, suggestion and choices."""
        file = write_config(tmp_path, "tail-n = 1")
        message = refusal(tmp_path)
        assert message.startswith(
            f"{file}: key tail-n is not a setting of Rewind; did you mean tail_n? Keys: mode,"
        )

    def test_a_bad_value_names_file_and_key(self, tmp_path: Path) -> None:
        """A bad word in the file is found by file and key."""
        file = write_config(tmp_path, 'mode = "repaly"')
        message = refusal(tmp_path)
        assert message.startswith(f'{file}: mode: "repaly" is not one of auto, replay, record, passthrough')
        assert message.endswith("; did you mean replay?")


class TestMisspelt:
    def test_variable(self, tmp_path: Path) -> None:
        """`REWIND_MOD` fails, names `REWIND_MODE` and lists the variables."""
        message = refusal(tmp_path, environ={"REWIND_MOD": "replay"})
        assert message.startswith("variable REWIND_MOD is not a setting of Rewind; did you mean REWIND_MODE?")
        assert "REWIND_REVIEW_THRESHOLD" in message

    def test_option(self, tmp_path: Path) -> None:
        """`rewind_mod` fails, names `rewind_mode` and lists the options."""
        message = refusal(tmp_path, options={"rewind_mod": "replay"})
        assert message == unknown_option("rewind_mod")
        assert message.startswith("option rewind_mod is not a setting of Rewind; did you mean rewind_mode?")
        assert "rewind_review_threshold" in message

    def test_flag(self, tmp_path: Path) -> None:
        """A flag of no setting fails too."""
        assert "did you mean mode?" in refusal(tmp_path, flags={"mod": "replay"})

    def test_nothing_near(self) -> None:
        """Where nothing is near, only the choices are given."""
        assert unknown_option("rewind_zzzzzzzzzzzzzzzz").startswith(
            "option rewind_zzzzzzzzzzzzzzzz is not a setting of Rewind"
        )
        assert "did you mean" not in unknown_option("zzzzzz")

    def test_other_peoples_variables_are_left_alone(self, tmp_path: Path) -> None:
        """Only names that start with `REWIND_` are ours, but for those other parts read."""
        environ = {
            "MY_REWIND_MOD": "x",
            "REWINDER": "x",
            "rewind_mod": "x",
            **dict.fromkeys(OTHER_VARIABLES, "x"),
        }
        assert load(environ=environ, cwd=tmp_path).mode == "auto"

    def test_a_weaker_source_is_checked_too(self, tmp_path: Path) -> None:
        """A bad value fails although a flag would win over it."""
        environ: dict[str, object] = {"REWIND_MODE": "repaly"}
        assert "variable REWIND_MODE" in refusal(tmp_path, flags={"mode": "auto"}, environ=environ)


class TestBadValues:
    @pytest.mark.parametrize(
        ("variable", "text", "said"),
        [
            ("MODE", "repaly", "did you mean replay?"),
            ("MODE", "once", "none, new_episodes, all"),
            ("UNKNOWN", "drop", "tunnel, refuse"),
            ("REBASE", "maybe", "not true or false"),
            ("TAIL_N", "-1", "not a whole number from 0"),
            ("TAIL_N", "1.5", "not a whole number from 0"),
            ("TAIL_N", "9" * 5000, "not a whole number from 0"),
            ("MAX_BODY", "64 parsecs", "not a size"),
            ("MAX_BODY", "0", "not a size"),
            ("PACE", "0", "a number above 0"),
            ("PACE", "inf", "a number above 0"),
            ("PACE", "record", "did you mean recorded?"),
            ("REVIEW_THRESHOLD", "nan", "from 0 to 1"),
            ("REVIEW_THRESHOLD", "1.01", "from 0 to 1"),
            ("SESSION", "a\x1b[31m", "a control character"),
            ("STORE", "..", "does not name a folder"),
            ("STORE", "/", "does not name a folder"),
            ("HOSTS", "llm.corp.example", "entry 1 is not host=value"),
            ("HOSTS", "https://llm.corp.example=gemini", "entry 1 is not a host name"),
            ("HOSTS", "*=gemini", "entry 1 is not a host name"),
            ("HOSTS", "a.example:99999=gemini", "entry 1 is not a host name"),
            ("HOSTS", "a.example=gemnii", "did you mean gemini?"),
            ("HOSTS", "a.example=gemini,a.example=generic", "given twice"),
            ("HOSTS", '{"a.example": "gemini", "a.example": "generic"}', "given twice"),
            ("UPSTREAM", "a.example=127.0.0.1:9000", "host a.example"),
            ("UPSTREAM", "a.example=ftp://b.example", "host a.example"),
            ("UPSTREAM", "a.example=http://b.example/?q=1", "host a.example"),
            ("UPSTREAM", "a.example=http://b.example:x/", "host a.example"),
            ("REDACT_PATTERNS", "corp-[a-z]{8,9}", "write a JSON list"),
            ("REDACT_PATTERNS", '["ok", "("]', "entry 2 is not a regular expression"),
            ("REDACT_PATTERNS", '["x*"]', "matches the empty text"),
            ("REDACT_PATTERNS", '["a{99999999999999999999}"]', "too large"),
            ("SCRUB", "build", "write a JSON list"),
            ("SCRUB", '["build"]', "entry 1 is not an object"),
            ("SCRUB", '[{"name": "build"}]', "entry 1 (build) has no pattern"),
            ("SCRUB", '[{"name": "", "pattern": "x"}]', "entry 1: name is empty"),
            (
                "SCRUB",
                '[{"name": "build", "pattern": "("}]',
                "the pattern of build is not a regular expression",
            ),
            ("SCRUB", '[{"name": "b", "pattern": "x", "were": "any"}]', "did you mean where?"),
            (
                "SCRUB",
                '[{"name": "b", "pattern": "x", "where": "tools_result"}]',
                "did you mean tool_result?",
            ),
            (
                "SCRUB",
                '[{"name": "b", "pattern": "x"}, {"name": "b", "pattern": "y"}]',
                "taken by an earlier",
            ),
            ("SOCKET", "refuse", "fallback"),
            ("FAULT", "turn=3:42", "write turn=3:429"),
            ("CASSETTES", "/", "does not name a folder"),
        ],
    )
    def test_refused_with_the_reason(self, tmp_path: Path, variable: str, text: str, said: str) -> None:
        """A bad value names its variable and says what would be right, in one line."""
        message = refusal(tmp_path, environ={f"REWIND_{variable}": text})
        assert message.startswith(f"variable REWIND_{variable}: ")
        assert said in message
        assert "\n" not in message
        assert len(message) < 400

    @pytest.mark.parametrize(
        "toml",
        [
            'ignore = "model"',
            "ignore = 3",
            "ignore = [3]",
            'ignore = [""]',
            "tail_n = true",
            "tail_n = 1.5",
            "session = 5",
            "session = 2026-11-30",
            "mode = true",
            "mode = ['auto']",
            "rebase = 'maybe'",
            "max_body = -1",
            "pace = true",
            "pace = -1",
            "review_threshold = inf",
            "store = 3",
            "hosts = 'a.example=gemini'",
            "hosts = ['a.example']",
            "hosts = { 'a.example' = 3 }",
            "upstream = { 'a.example' = 3 }",
            "redact_patterns = 'x'",
            "redact_patterns = [3]",
            "scrub = ['x']",
            "scrub = { name = 'a', pattern = 'x' }",
            "fault = 'turn=3'",
            "fault = ['turn=3:429']",
            "cassettes = ['tapes']",
        ],
    )
    def test_wrong_types_in_the_file(self, tmp_path: Path, toml: str) -> None:
        """A value of another type is refused by file and key, never converted by guess."""
        file = write_config(tmp_path, toml)
        assert refusal(tmp_path).startswith(f"{file}: {toml.split(' ')[0]}: ")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("redact_patterns", '["{secret}("]'),
            ("redact_patterns", "{secret}("),
            ("scrub", '[{{"name": "b", "pattern": "{secret}("}}]'),
            ("upstream", "a.example=http://user:{secret}@b.example/?q"),
            ("upstream", "a.example=user:{secret}@b.example"),
            ("upstream", "http://user:{secret}@b.example"),
            ("hosts", "a.example=http://user:{secret}@b.example"),
        ],
    )
    def test_what_may_be_secret_is_not_repeated(self, tmp_path: Path, name: str, text: str) -> None:
        """Neither a pattern nor the password of a URL is in a message."""
        secret = "hunter" + "2" * 6
        text = text.format(secret=secret)
        assert secret not in refusal(tmp_path, environ={f"REWIND_{name.upper()}": text})
        assert secret not in refusal(tmp_path, flags={name: [text]})

    def test_a_pattern_and_a_url_are_not_in_the_repr(self, tmp_path: Path) -> None:
        """Settings that land in a traceback do not show patterns and URLs."""
        secret = "hunter" + "2" * 6
        settings = load(
            flags={"redact_patterns": [secret], "upstream": [f"a.example=http://u:{secret}@b.example"]},
            environ={},
            cwd=tmp_path,
        )
        assert settings.redact_patterns == (secret,)
        assert secret not in repr(settings)

    def test_json_nested_without_end_is_an_ordinary_bad_value(self, tmp_path: Path) -> None:
        """A variable of a hundred thousand brackets fails in words."""
        assert "not host=value" in refusal(tmp_path, environ={"REWIND_HOSTS": "[" * 100_000})

    def test_a_relative_store_is_no_setting(self) -> None:
        """The model itself only holds absolute stores."""
        with pytest.raises(ValidationError):
            Settings(store=Path("store"))
