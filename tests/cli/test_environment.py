"""What a child process gets: the proxy, trust, and no way past Rewind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from rewind_proxy.cli import authority, environment
from rewind_proxy.cli.authority import KEY_FILE, ensure_ca, load_ca
from rewind_proxy.cli.bundle import BUNDLE_VARIABLES
from rewind_proxy.cli.child_environment import (
    child_environment,
    hidden_hosts,
    split_credentials,
    upstream_proxy,
)
from rewind_proxy.cli.environment import (
    docker_options,
    for_fish,
    for_github,
    for_powershell,
    for_sh,
    proxy_url,
)
from rewind_proxy.errors import CertificateError, RewindError, SettingsError
from rewind_proxy.wire.hosts import HostTable

KNOWN = (
    "api.openai.com",
    "*.api.openai.com",
    "chatgpt.com",
    "*-aiplatform.googleapis.com",
    "bedrock-runtime.*.amazonaws.com",
)
PROXY = "http://127.0.0.1:8080"
BUNDLE = Path("/certs/bundle.pem")
NODE_EXTRA = Path("/certs/node-extra.pem")


def changes_for(
    environ: Mapping[str, str], known: tuple[str, ...] = KNOWN
) -> tuple[dict[str, str | None], list[str]]:
    return child_environment(environ, PROXY, BUNDLE, NODE_EXTRA, known)


# The variables of a child


def test_a_child_gets_exactly_these_variables() -> None:
    """DESIGN §12, `run`: nothing more, nothing less, both cases, with a scheme."""
    changes, warnings = changes_for({"HOME": "/home/a", "PATH": "/bin"})
    assert changes == {
        "HTTPS_PROXY": PROXY,
        "https_proxy": PROXY,
        "HTTP_PROXY": PROXY,
        "http_proxy": PROXY,
        "NO_PROXY": "localhost,127.0.0.1,::1",
        "no_proxy": "localhost,127.0.0.1,::1",
        "SSL_CERT_FILE": "/certs/bundle.pem",
        "REQUESTS_CA_BUNDLE": "/certs/bundle.pem",
        "CURL_CA_BUNDLE": "/certs/bundle.pem",
        "CODEX_CA_CERTIFICATE": "/certs/bundle.pem",
        "GIT_SSL_CAINFO": "/certs/bundle.pem",
        "AWS_CA_BUNDLE": "/certs/bundle.pem",
        "PIP_CERT": "/certs/bundle.pem",
        "NODE_EXTRA_CA_CERTS": "/certs/node-extra.pem",
        "NODE_USE_ENV_PROXY": "1",
    }
    assert warnings == []


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "openai.com",
        ".openai.com",
        "*.openai.com",
        "api.openai.com",
        "API.OpenAI.COM",
        "api.openai.com:443",
        ".openai.com:443",
        "openai.com.",
        "eu.api.openai.com",
        "ai.com",
        "com",
        "us-central1-aiplatform.googleapis.com",
        "googleapis.com",
        "api.*.com",
    ],
)
def test_an_entry_that_hides_a_known_host_is_left_out_and_named(entry: str) -> None:
    """However a client reads it, no model call goes past Rewind; the warning says what went and why."""
    changes, warnings = changes_for({"NO_PROXY": f"corp.example, {entry}"})
    assert changes["NO_PROXY"] == changes["no_proxy"] == "corp.example,localhost,127.0.0.1,::1"
    [warning] = warnings
    assert repr(entry) in warning
    assert any(host in warning for host in KNOWN)


@pytest.mark.parametrize(
    "entry",
    [
        "corp.example",
        ".corp.example",
        "foo.openai.com",
        "api.openai.com.corp.example",
        "storage.googleapis.com",
        "s3.us-east-1.amazonaws.com",
        "10.0.0.0/8",
        "fd00::/8",
        "[::1]:8080",
        "<local>",
    ],
)
def test_an_entry_that_hides_none_is_kept(entry: str) -> None:
    """What the user's network needs stays."""
    changes, warnings = changes_for({"no_proxy": entry})
    assert changes["NO_PROXY"] == f"{entry},localhost,127.0.0.1,::1"
    assert warnings == []


def test_both_cases_and_odd_spacing_come_together() -> None:
    """Entries of both variables count, blanks and empty entries do not, and none comes twice."""
    changes, _ = changes_for(
        {"NO_PROXY": " a.example ,,b.example localhost", "no_proxy": "c.example,a.example,"}
    )
    assert changes["NO_PROXY"] == "a.example,b.example,localhost,c.example,127.0.0.1,::1"


@pytest.mark.parametrize(
    ("gateway", "no_proxy"),
    [
        ("localhost:4000", "127.0.0.1,::1"),
        ("127.0.0.1:4000", "localhost,::1"),
        ("[::1]:4000", "localhost,127.0.0.1"),
        ("llm.corp.example", "localhost,127.0.0.1,::1"),
    ],
)
def test_a_gateway_on_this_machine_is_not_hidden(gateway: str, no_proxy: str) -> None:
    """A host that `hosts` adds goes through Rewind, even on loopback; that needs no warning."""
    changes, warnings = changes_for({}, (*KNOWN, gateway))
    assert changes["NO_PROXY"] == no_proxy
    assert warnings == []


@pytest.mark.parametrize(
    ("entry", "gateway", "hides"),
    [
        ("localhost", "localhost:4000", True),
        ("localhost:4000", "localhost:4000", True),
        ("localhost:5000", "localhost:4000", False),
        ("10.0.0.0/8", "10.1.2.3:8000", True),
        ("10.1.2.3", "10.1.2.3:8000", True),
        ("10.1.2.4", "10.1.2.3:8000", False),
        ("10.", "10.1.2.3", True),
        ("fd00::/8", "[fd00::5]:80", True),
        ("corp.example", "LLM.Corp.example.", True),
        ("a.b.llm.example", "*.llm.example", True),
        ("a.b.llm.example", "x.*.llm.example", False),
        ("us-east-1.amazonaws.com", "bedrock-runtime.*.amazonaws.com", True),
        ("dashscope-intl.aliyuncs.com", "dashscope*.aliyuncs.com", True),
        ("oss.aliyuncs.com", "*-dashscope.aliyuncs.com", False),
    ],
)
def test_ports_networks_and_patterns_are_understood(entry: str, gateway: str, hides: bool) -> None:
    """Two ports that differ do not meet; a network covers its addresses; a pattern covers its hosts."""
    assert hidden_hosts(entry, [gateway]) == ([gateway] if hides else [])


@pytest.mark.parametrize("pattern", HostTable().patterns())
def test_no_end_of_a_known_host_is_overlooked(pattern: str) -> None:
    """Whatever part of a host's end stands in `NO_PROXY`, some client reads it as that host."""
    host = pattern.replace("*", "eu-1")
    ends = {host[start:] for start in range(len(host))}
    assert [end for end in ends if not hidden_hosts(end, [pattern])] == []


@pytest.mark.parametrize("name", ["WSS_PROXY", "wss_proxy", "SOCKS_PROXY", "grpc_proxy", "NO_GRPC_PROXY"])
def test_a_variable_that_some_clients_rank_higher_is_taken_out(name: str) -> None:
    """Python's `websockets` and gRPC would send model calls past `HTTPS_PROXY`."""
    changes, [warning] = changes_for({name: "socks5://proxy.example:1080"})
    assert changes[name] is None
    assert name in warning
    assert "proxy.example" not in warning


@pytest.mark.parametrize("name", ["ALL_PROXY", "all_proxy", "NODE_TLS_REJECT_UNAUTHORIZED", "SSL_CERT_DIR"])
def test_what_does_not_get_in_the_way_is_left_alone(name: str) -> None:
    """Other protocols keep their proxy, and the user's own switches stay the user's."""
    changes, warnings = changes_for({name: "1"})
    assert name not in changes
    assert warnings == []


# The proxy that was there before


@pytest.mark.parametrize(
    ("environ", "upstream"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ({"https_proxy": "proxy.example:3128"}, "http://proxy.example:3128"),
        ({"https_proxy": "127.0.0.1:3128"}, "http://127.0.0.1:3128"),
        ({"https_proxy": "http://low.example", "HTTPS_PROXY": "http://up.example"}, "http://low.example"),
        ({"https_proxy": " ", "HTTPS_PROXY": "http://up.example"}, "http://up.example"),
        ({"ALL_PROXY": "http://all.example:1", "HTTPS_PROXY": "http://s.example:2"}, "http://s.example:2"),
        ({"ALL_PROXY": "http://all.example:1"}, "http://all.example:1"),
        ({"HTTP_PROXY": "http://plain.example:1"}, None),
        ({"HTTPS_PROXY": "u:p%40w@proxy.example:3128"}, "http://u:p%40w@proxy.example:3128"),
        ({"HTTPS_PROXY": "http://[::1]:3128"}, "http://[::1]:3128"),
    ],
)
def test_a_proxy_that_is_set_becomes_the_upstream(environ: dict[str, str], upstream: str | None) -> None:
    """The user's own proxy, with a scheme and its credentials (DESIGN §4)."""
    assert upstream_proxy(environ) == upstream


def test_our_own_proxy_is_no_upstream() -> None:
    """In a shell that ran `rewind env`, the proxy does not send its traffic to itself."""
    environ = {"HTTPS_PROXY": "http://my-test:x@127.0.0.1:8080"}
    assert upstream_proxy(environ, listen_port=8080) is None
    assert upstream_proxy(environ, listen_port=9090) == "http://my-test:x@127.0.0.1:8080"


@pytest.mark.parametrize(
    "value",
    [
        "socks5://user:hidden@proxy.example:1080",
        "http://user:hidden@",
        "http://user:hidden@h:99999",
        "hidden x",
    ],
)
def test_a_proxy_that_cannot_stand_behind_rewind_is_an_error(value: str) -> None:
    """The variable is named, its value is not: it may hold a password."""
    with pytest.raises(SettingsError, match="HTTPS_PROXY") as error:
        upstream_proxy({"HTTPS_PROXY": value})
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "server", "auth"),
    [
        ("http://proxy.example:3128", "http://proxy.example:3128", None),
        ("http://proxy.example/", "http://proxy.example", None),
        ("HTTPS://u:p%40w%3A@Proxy.example", "https://proxy.example", "u:p@w:"),
        ("http://u@proxy.example:1", "http://proxy.example:1", "u:"),
        ("http://[::1]:3128", "http://[::1]:3128", None),
    ],
)
def test_credentials_are_split_off_for_mitmproxy(url: str, server: str, auth: str | None) -> None:
    """Its `upstream:` mode takes no user in the URL; `upstream_auth` takes it decoded."""
    assert split_credentials(url) == (server, auth)


# How shells are told

ODD = {"A_PLAIN": "/certs/bundle.pem", "B_ODD": 'it\'s $HOME; "x" \\n `id` %', "C_GONE": None}


def test_sh_gets_back_what_went_in() -> None:
    """A real sh reads every character as it is, and unsets what goes."""
    script = f"C_GONE=1; export C_GONE\n{for_sh(ODD)}\nenv"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, check=True
    )
    lines = done.stdout.decode().splitlines()
    assert f"B_ODD={ODD['B_ODD']}" in lines
    assert f"A_PLAIN={ODD['A_PLAIN']}" in lines
    assert not any(line.startswith("C_GONE") for line in lines)


def test_fish_is_written_as_fish_reads() -> None:
    """Single quotes with two escapes; the fish documentation, "Quotes"."""
    assert for_fish(ODD).splitlines() == [
        "set -gx A_PLAIN '/certs/bundle.pem'",
        """set -gx B_ODD 'it\\'s $HOME; "x" \\\\n `id` %'""",
        "set -e C_GONE",
    ]


def test_powershell_is_written_as_powershell_reads() -> None:
    """Single quotes, doubled inside; about_Quoting_Rules."""
    assert for_powershell(ODD).splitlines() == [
        "$env:A_PLAIN = '/certs/bundle.pem'",
        """$env:B_ODD = 'it''s $HOME; "x" \\n `id` %'""",
        "Remove-Item Env:C_GONE -ErrorAction SilentlyContinue",
    ]


def test_github_gets_one_line_for_each() -> None:
    """Its file takes values as they are, and no line break may smuggle another variable in."""
    assert for_github({"A": "x y", "B": None}) == "A=x y\nB="
    with pytest.raises(RewindError, match="BAD"):
        for_github({"BAD": "/tmp/a\nPATH=/evil"})


def test_docker_gets_the_two_files_and_never_the_folder() -> None:
    """The folder of the CA holds its key, so only the bundle and Node's file are mounted, read-only."""
    options = docker_options(
        {"A": "b c", "GONE": None}, Path("/certs/x/bundle.pem"), Path("/certs/x/node.pem")
    )
    assert "-v /certs/x/bundle.pem:/rewind/bundle.pem:ro" in options
    assert "-v /certs/x/node.pem:/rewind/node-extra.pem:ro" in options
    assert "-e 'A=b c'" in options
    assert "GONE" not in options


@pytest.mark.parametrize(
    ("session", "url"),
    [
        ("", "http://127.0.0.1:8080"),
        ("my-test", "http://my-test:x@127.0.0.1:8080"),
        ("a b/ü@", "http://a%20b%2F%C3%BC%40:x@127.0.0.1:8080"),
    ],
)
def test_the_session_is_the_user_name_of_the_proxy(session: str, url: str) -> None:
    """Encoded for a URL, and with a password: a name alone is not sent by several clients."""
    assert proxy_url("127.0.0.1", 8080, session) == url


@pytest.mark.parametrize("session", ["a:b", "a\nb"])
def test_a_session_that_is_no_user_name_is_refused(session: str) -> None:
    """A colon would end it in Basic authentication."""
    with pytest.raises(SettingsError, match="session"):
        proxy_url("127.0.0.1", 8080, session)


# The verbs


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of roots, so that the system need not have any."""
    return ensure_ca(tmp_path_factory.mktemp("roots") / "ca", ["corp.example"]).ca_file


@pytest.fixture
def rewind(roots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The verbs in an empty working folder, a clean environment, and a data folder of their own."""
    for name in os.environ:
        if name.upper().endswith("_PROXY") or name.startswith("REWIND_") or name == "CI":
            monkeypatch.delenv(name)
    for name in BUNDLE_VARIABLES:
        monkeypatch.setenv(name, str(roots))
    monkeypatch.delenv("NODE_EXTRA_CA_CERTS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(
        authority, "__file__", str(tmp_path / "lib" / "rewind_proxy" / "cli" / "authority.py")
    )
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    app = typer.Typer()
    environment.register(app)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments)

    return call


def exports(text: str) -> dict[str, str]:
    """What a shell that evaluates the text has in its environment."""
    show = f"{sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    done = subprocess.run(["/bin/sh", "-c", f"{text}\n{show}"], capture_output=True, env={}, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_env_makes_what_its_exports_name(rewind: Callable[..., Result]) -> None:
    """The CA, the bundle and Node's file are there after the first `env`, and a shell reads the exports."""
    result = rewind("env", "--port", "9999", "--session", "my-test")
    found = exports(result.stdout)
    assert found["HTTPS_PROXY"] == found["http_proxy"] == "http://my-test:x@127.0.0.1:9999"
    assert found["NO_PROXY"] == found["no_proxy"] == "localhost,127.0.0.1,::1"
    bundle = Path(found["SSL_CERT_FILE"])
    assert bundle.is_absolute()
    assert load_ca(bundle.parent, HostTable().dns_names())
    assert Path(found["NODE_EXTRA_CA_CERTS"]).is_file()
    assert result.stderr == ""


def test_env_says_the_same_every_time(rewind: Callable[..., Result]) -> None:
    """Nothing is made anew, so the files of a client that runs already stay as they are."""
    assert rewind("env").stdout == rewind("env").stdout


def test_env_warns_on_standard_error_alone(
    rewind: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output is for `eval`."""
    monkeypatch.setenv("NO_PROXY", "api.openai.com,corp.example")
    result = rewind("env")
    assert "'api.openai.com' is left out" in result.stderr
    assert exports(result.stdout)["NO_PROXY"] == "corp.example,localhost,127.0.0.1,::1"


def test_env_knows_the_hosts_of_the_project(rewind: Callable[..., Result], tmp_path: Path) -> None:
    """A gateway of `rewind.toml` is in the CA, and not in `NO_PROXY`."""
    hosts = '["localhost:4000=chat_completions", "llm.corp.example=anthropic"]'
    Path("rewind.toml").write_text(f"hosts = {hosts}")
    assert exports(rewind("env").stdout)["NO_PROXY"] == "127.0.0.1,::1"
    names = json.loads(rewind("ca", "show", "--json").stdout)["names"]
    assert {"localhost", "llm.corp.example", "api.openai.com"} <= set(names)


def test_env_takes_the_variables_out_again(rewind: Callable[..., Result]) -> None:
    """`--unset` names each variable that `env` sets."""
    set_lines, unset_lines = rewind("env").stdout.split("\n"), rewind("env", "--unset").stdout.split("\n")
    names = [line.removeprefix("export ").partition("=")[0] for line in set_lines if line]
    assert [f"unset {name}" for name in names] == [line for line in unset_lines if line]


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (["--shell", "fish"], "set -gx HTTPS_PROXY 'http://127.0.0.1:8080'"),
        (["--shell", "powershell"], "$env:HTTPS_PROXY = 'http://127.0.0.1:8080'"),
        (["--github"], "HTTPS_PROXY=http://127.0.0.1:8080"),
    ],
)
def test_env_writes_for_other_readers(option: list[str], line: str, rewind: Callable[..., Result]) -> None:
    """One line a variable, in the reader's own words."""
    assert rewind("env", *option).stdout.splitlines()[0] == line


def test_env_for_docker_is_one_line(rewind: Callable[..., Result]) -> None:
    """`docker run $(rewind env --docker) image`: the paths are the container's, the key stays outside."""
    result = rewind("env", "--docker")
    [line] = result.stdout.splitlines()
    assert "-e SSL_CERT_FILE=/rewind/bundle.pem" in line
    assert "-e NODE_EXTRA_CA_CERTS=/rewind/node-extra.pem" in line
    assert KEY_FILE not in line


@pytest.mark.parametrize(
    "options", [["--github", "--docker"], ["--docker", "--unset"], ["--github", "--shell", "fish"]]
)
def test_env_for_two_readers_is_a_wrong_call(options: list[str], rewind: Callable[..., Result]) -> None:
    """It says so instead of choosing one."""
    assert rewind("env", *options).exit_code == 2


def test_a_bundle_variable_that_leads_nowhere_stops_env(
    rewind: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typo is reported before any client starts with it."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/typo/ca.pem")
    result = rewind("env")
    assert isinstance(result.exception, CertificateError)
    assert "REQUESTS_CA_BUNDLE=/typo/ca.pem" in str(result.exception)
    assert result.stdout == ""


def test_ca_path_prints_a_file_that_is_there(rewind: Callable[..., Result]) -> None:
    """One line, for `$(rewind ca path)`; the CA is made when there is none."""
    [line] = rewind("ca", "path").stdout.splitlines()
    assert b"BEGIN CERTIFICATE" in Path(line).read_bytes()


def test_ca_show_makes_nothing(rewind: Callable[..., Result], tmp_path: Path) -> None:
    """Looking at a CA that is not there says how to make it."""
    result = rewind("ca")
    assert isinstance(result.exception, CertificateError)
    assert "rewind ca make" in str(result.exception)
    assert not (tmp_path / "share").exists()


def test_ca_shows_what_can_be_checked(rewind: Callable[..., Result]) -> None:
    """Path, subject, names, expiry and the fingerprint that `openssl` prints."""
    made = "".join(rewind("ca", "make").stdout.split())  # a long path is folded
    found = json.loads(rewind("ca", "show", "--json").stdout)
    assert sorted(found) == ["expires", "exposed", "names", "path", "sha256", "subject"]
    assert found["exposed"] == []
    for value in (found["path"], found["subject"], found["sha256"], "api.openai.com", found["expires"][:10]):
        assert "".join(value.split()) in made
